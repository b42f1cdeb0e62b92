#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds vperf and passes its tests: unit tests under ASan and UBSan, house rules, a short fuzzing,
# and the lab tests against a real KVM host with real guests (docs/lab.md).
#
# usage: ./check.sh [--full] [--no-lab]
#   --full    the matrix of host and guest kernels too, and longer fuzzing
#   --no-lab  without the lab tests
# shellcheck disable=SC2317 # the steps are functions that step() calls
set -uo pipefail
cd "$(dirname "$0")" || exit 1

full='' lab=yes
for option in "$@"; do
	case "$option" in
	--full) full=yes ;;
	--no-lab) lab= ;;
	*)
		sed -n '3,8s/^# \{0,1\}//p' "$0"
		[ "$option" = --help ] || exit 2
		exit 0
		;;
	esac
done
fuzz_seconds=${full:+600}
fuzz_seconds=${fuzz_seconds:-5}

passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a step; its output is shown when it fails. Exit status 77: what it needs is not there.
step() {
	local name=$1 began=$SECONDS
	shift
	"$@" >"$log" 2>&1
	case $? in
	0)
		passed=$((passed + 1))
		echo "ok: $name ($((SECONDS - began)) s)"
		;;
	77)
		skipped=$((skipped + 1))
		echo "skipped: $name: $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		echo "NOT OK: $name ($((SECONDS - began)) s)"
		tail -n 60 "$log"
		return 1
		;;
	esac
}

close() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] || exit 1
	exit 0
}

configure() {
	local directory=$1
	shift
	if [ -e "$directory/build.ninja" ]; then
		meson setup --reconfigure "$directory" "$@"
	else
		meson setup "$directory" "$@"
	fi
}

unit_tests() {
	meson test -C build-dev --print-errorlogs --no-rebuild
}

peers() {
	tools/install-packages tests/packages.txt || return 77
}

fuzz() {
	CC=clang configure build-fuzz -Dfuzz=true && ninja -C build-fuzz &&
		tests/fuzz/run build-fuzz "$fuzz_seconds"
}

arm64() {
	tools/install-packages lab/packages-arm64.txt || return 77
	tools/configure-cross arm64 build-arm64 --buildtype=release -Db_ndebug=false &&
		ninja -C build-arm64
}

step "packages" tools/install-packages packages.txt lab/packages.txt || close
step "packages of peers" peers
step "configure, for developers" configure build-dev --native-file build-dev.ini || close
step "build with -Werror, ASan and UBSan" ninja -C build-dev || close
step "unit tests" unit_tests
step "order of the folders" tools/check-includes
step "format" tools/check-format
step "documents" tools/check-documents build-dev
mapfile -t scripts < <(git grep -lE '^#!.*\b(ba)?sh\b')
step "shell scripts" shellcheck "${scripts[@]}"
step "fuzzing, $fuzz_seconds s each" fuzz
step "configure, for use" configure build --buildtype=release -Db_ndebug=false || close
step "build, for use" ninja -C build || close
step "model trees beside WEKA's" tests/models/compare-weka build/vperf

step "build for 64-bit Arm" arm64

if [ -n "$lab" ]; then
	began=$SECONDS
	VPERF_BUILD=$PWD/build tests/lab/run ${full:+--full} | tee "$log"
	read -r lab_passed lab_failed < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log")
	if [ -z "${lab_passed-}" ]; then
		lab_passed=0 lab_failed=1
	fi
	passed=$((passed + lab_passed)) failed=$((failed + lab_failed))
	echo "lab tests took $((SECONDS - began)) s"
else
	skipped=$((skipped + 1))
fi
close
