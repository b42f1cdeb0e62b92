#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds vperf and passes its tests: unit tests under ASan and UBSan, house rules, a short fuzzing,
# and the lab tests against a real KVM host with real guests (docs/lab.md).
#
# usage: ./check.sh [--quick | --full | --slice] [--only WORD] [--skip NAME]... [--no-skips]
#   --quick      only what takes five minutes together, for work in between
#   --full       the matrix of host and guest kernels too, and longer fuzzing
#   --slice      a twentieth of the lab tests of --full, too: the one of this commit
#   --only WORD  builds, then only the lab tests whose name has WORD
#   --skip NAME  without weka, arm64, intel, pmu, bpf or lab; the last lines say so
#   --no-skips   what is skipped has failed, but for what tests/may-skip lists, with reasons (for CI)
# What was skipped is named in the last lines.
# shellcheck disable=SC2317 # the steps are functions that step() calls
set -uo pipefail
cd "$(dirname "$0")" || exit 1

usage() {
	sed -n '/^# usage/,/^# What/s/^# \{0,1\}//p' check.sh
}

full='' quick='' slice='' only='' may_skip=yes skip=' '
while [ $# -gt 0 ]; do
	case "$1" in
	--full) full=yes ;;
	--quick) quick=yes ;;
	--slice) slice=yes ;;
	--only)
		only=${2:?--only needs a word}
		shift
		;;
	--skip)
		case "${2-}" in
		weka | arm64 | intel | pmu | bpf | lab) skip+="$2 " ;;
		*)
			echo "check.sh: --skip ${2-}: expected weka, arm64, intel, pmu, bpf or lab" >&2
			exit 2
			;;
		esac
		shift
		;;
	--no-skips) may_skip='' ;;
	--help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift
done
[ "$full$quick$slice" = yes ] || [ -z "$full$quick$slice" ] || {
	echo "check.sh: --quick, --full and --slice exclude each other" >&2
	exit 2
}
fuzz_seconds=${full:+600}
fuzz_seconds=${fuzz_seconds:-2}

passed=0 failed=0
skips=() broken=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Of a step that failed: enough to know why, where only the end of the output is kept.
telling_lines() {
	grep -E 'FAIL|TIMEOUT|ERROR|LINE|NOT OK|error:' "$log" | sort -u | head -n 8 | sed -e 's/^ */    /' -e '1s/^/\n/'
}

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
		skips+=("$name: $(tail -n 1 "$log")")
		echo "skipped: $name: $(tail -n 1 "$log")"
		;;
	*)
		failed=$((failed + 1))
		broken+=("$name (see above)$(telling_lines)")
		echo "NOT OK: $name ($((SECONDS - began)) s)"
		tail -n 60 "$log"
		return 1
		;;
	esac
}

note_skip() {
	skips+=("$1")
	echo "skipped: $1"
}

is_skipped() {
	case "$skip" in *" $1 "*) return 0 ;; esac
	return 1
}

close() {
	local unlisted line
	[ ${#skips[@]} -eq 0 ] || printf 'skipped: %s\n' "${skips[@]}"
	if [ -z "$may_skip" ] && ! unlisted=$(printf '%s\n' "${skips[@]}" | tests/skips --unlisted); then
		while read -r line; do
			broken+=("skipped, and not listed in tests/may-skip: $line")
			failed=$((failed + 1))
		done <<<"$unlisted"
	fi
	[ ${#broken[@]} -eq 0 ] || printf 'NOT OK: %s\n' "${broken[@]}"
	[ -z "$quick" ] || echo "left out by --quick: fuzzing, the page in a browser, WEKA, 64-bit Arm, most lab tests"
	echo "$passed passed, $failed failed, ${#skips[@]} skipped"
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

# meson shows the end of a test's output, which may be leaks only: where it failed is shown again.
run_meson_tests() {
	local log=$1
	shift
	meson test -C build-dev --logbase "$log" --print-errorlogs --no-rebuild "$@" && return
	grep -E '^\[ *(ERROR|LINE) *\]|^NOT OK|^[A-Za-z.]+(Error|Expired)' "build-dev/meson-logs/$log.txt"
	return 1
}

unit_tests() {
	rm -f build-dev/meson-logs/testlog*
	run_meson_tests testlog-unit --no-suite bpf
}

kernel_programs() {
	run_meson_tests testlog-bpf --suite bpf
}

# What single tests left out.
note_left_out() {
	local said
	mapfile -t said < <(tests/skips build-dev)
	skips+=("${said[@]}")
}

order_of_folders() {
	tools/check-includes && tools/shared-names && tools/check-functions && tools/check-below-cmd && tools/check-interrupts &&
		tools/check-lab-texts
}

# Its own "there is no WEKA here" is no reason to skip it: it was installed.
weka() {
	local fewer=--fewer
	[ -z "$full" ] || fewer=''
	# shellcheck disable=SC2086 # an option or none
	tests/models/compare-weka $fewer build/vperf || return 1
}

# Without a browser or the compiler that checks its types; in CI they were installed.
page() {
	if ! command -v tsc >/dev/null; then
		echo "there is no tsc (Debian package node-typescript)"
		[ -n "$may_skip" ] && return 77
		return 1
	fi
	tsc -p web && tests/page/run build-dev && return
	local status=$?
	[ "$status" -eq 77 ] && [ -z "$may_skip" ] && return 1
	return "$status"
}

packages() {
	tools/install-packages debian/packages.txt && tools/check-packages build-packages
}

# Readers that are fetched or take longer than the unit tests may, and a page of ten million samples.
more_formats() {
	tools/install-packages tests/packages-more.txt &&
		tests/export/run --more build/vperf build/bench/gen-recording build/tests/export/make_recording_with_wakeups &&
		tests/commands/spool build-dev/vperf build-dev/bench/gen-recording &&
		tests/commands/pull build-dev/vperf build-dev/bench/gen-recording --ssh &&
		tests/metrics/run build-dev &&
		tests/metrics/web build-dev/tests/metrics/serve &&
		tests/metrics/servers build-dev &&
		tests/metrics/dashboard &&
		tests/metrics/profiles build-dev --more &&
		tests/metrics/fleet build-dev/vperf-fleet --more
}

large_page() {
	tests/page/run-large build && return
	local status=$?
	[ "$status" -eq 77 ] && [ -z "$may_skip" ] && return 1
	return "$status"
}

# Without a way to a minimal Debian there is nothing to install them in; in CI there is.
packages_installed() {
	local release status
	for release in bookworm trixie; do
		packaging/try-debian build-packages build/bench/gen-recording "$release" && continue
		status=$?
		[ "$status" -eq 77 ] && [ -z "$may_skip" ] && return 1
		return "$status"
	done
}

# In a few seconds each target does less than its compiler's optimizations take.
fuzz() {
	local optimization=1
	[ -z "$full" ] || optimization=3
	CC=clang configure build-fuzz -Dfuzz=true -Doptimization="$optimization" && ninja -C build-fuzz fuzz-targets &&
		tests/fuzz/run build-fuzz "$fuzz_seconds"
}

# Its own unit tests are built where a lab test runs them.
arm64() {
	local what=lab-programs
	if [ -n "$full" ] || { [ -n "$slice" ] && tests/lab/run --slice --list | grep -qx "64-bit Arm, whole"; }; then
		what=all
	fi
	tools/install-packages lab/packages-arm64.txt || return 1
	tools/configure-cross arm64 build-arm64 --buildtype=release -Db_ndebug=false &&
		ninja -C build-arm64 "$what"
}

# Without Bochs, and without a way to build it, there is no such host.
intel() {
	tools/install-packages lab/packages-intel.txt && lab/vlab fetch --vendor intel && return
	export VPERF_SKIP_INTEL=yes
	return 77
}

# Without QEMU's source package, or the packages to build it with, there is no such host.
pmu() {
	tools/install-packages lab/packages-pmu.txt && lab/vlab fetch --pmu && return
	export VPERF_SKIP_PMU=yes
	return 77
}

lab_tests() {
	local began=$SECONDS said
	VPERF_BUILD=$PWD/build tests/lab/run ${full:+--full} ${quick:+--quick} ${slice:+--slice} --only "$only" --results build/lab-tests.tsv | tee "$log"
	mapfile -t said < <(sed -n 's/^skipped: //p' "$log")
	skips+=("${said[@]}")
	read -r lab_passed lab_failed < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log")
	passed=$((passed + ${lab_passed:-0})) failed=$((failed + ${lab_failed:-1}))
	echo "lab tests took $((SECONDS - began)) s"
}

step "packages" tools/install-packages packages.txt lab/packages.txt || close
if [ -z "$only" ]; then
	is_skipped weka || step "packages of peers" tools/install-packages tests/packages.txt
	step "configure, for developers" configure build-dev --native-file build-dev.ini || close
	step "build with -Werror, ASan and UBSan" ninja -C build-dev || close
	step "unit tests" unit_tests
	if is_skipped bpf; then
		note_skip "bpf: programs in the kernel: by --skip"
	else
		step "bpf: programs in the kernel" kernel_programs
	fi
	note_left_out
	step "order of the folders" order_of_folders
	step "format" tools/check-format
	step "documents" tools/check-documents build-dev
	[ -n "$quick" ] || step "page: vperf html in a browser" page
	# By the first line: other programs have scripts in their text.
	mapfile -t scripts < <(git grep -nE '^#!.*\b(ba)?sh\b' | sed -n 's/:1:#!.*//p')
	step "shell scripts" shellcheck "${scripts[@]}"
	[ -n "$quick" ] || step "fuzzing, $fuzz_seconds s each" fuzz
fi
step "configure, for use" configure build --buildtype=release -Db_ndebug=false -Dwerror=true || close
step "build, for use, with -Werror" ninja -C build || close
if [ -n "$full" ] && step "packages: twice the same bytes, lintian" packages; then
	step "packages: in a minimal Debian 12 and 13" packages_installed
fi
if [ -n "$full" ] && [ -z "$only" ]; then
	step "export: newest perf, Hotspot, LTTng's analyses, 10,000 VMs, Prometheus" more_formats
	step "page: ten million samples" large_page
fi
if is_skipped weka; then
	note_skip "weka: model trees beside WEKA's: by --skip"
elif [ -z "$only$quick" ]; then
	step "weka: model trees beside WEKA's" weka
fi
if is_skipped arm64; then
	note_skip "arm64: build and lab of 64-bit Arm: by --skip"
	export VPERF_BUILD_ARM64=/nonexistent
elif [ -n "$quick" ]; then
	export VPERF_BUILD_ARM64=/nonexistent
else
	step "build for 64-bit Arm" arm64
fi
if is_skipped intel; then
	note_skip "intel: lab of a host of Intel: by --skip"
	export VPERF_SKIP_INTEL=yes
elif [ -z "$only$quick" ] && ! is_skipped lab; then
	step "Bochs, for a lab host of Intel" intel
fi
if is_skipped pmu; then
	note_skip "pmu: lab of a host with a PMU: by --skip"
	export VPERF_SKIP_PMU=yes
elif [ -z "$only$quick" ] && ! is_skipped lab; then
	step "QEMU with a PMU, for a lab host with one" pmu
fi
if is_skipped lab; then
	note_skip "lab: a real KVM host with real guests: by --skip"
else
	lab_tests
	if [ -n "$full" ] && [ -z "$only" ]; then
		step "lab: a host that is suspended" env VPERF_BUILD="$PWD/build" tests/lab/suspended
	fi
fi
close
