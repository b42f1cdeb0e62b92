#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The demonstration: installs what is missing, builds vperf, boots a KVM host with two guests in an
# emulated machine, profiles it from the host alone, and shows who burned the CPU, where each vCPU's
# time went, what VM exits cost, and the stacks from guest functions through the guest kernel into KVM.
# A few minutes, most of which are the first build.
#
# usage: ./demo.sh [DIR]     the recording and the lab's logs go to DIR (a new temporary directory)
set -euo pipefail
cd "$(dirname "$0")"

case "${1-}" in
-*)
	sed -n '3,7s/^# \{0,1\}//p' "$0"
	[ "$1" = --help ] || exit 2
	exit 0
	;;
esac
out=${1:-$(mktemp -d -t vperf-demo.XXXXXX)}
mkdir -p "$out"

echo "== packages" >&2
DEBIAN_FRONTEND=noninteractive tools/install-packages packages.txt lab/packages.txt >"$out/packages.log" 2>&1 ||
	{ cat "$out/packages.log" >&2; exit 1; }
echo "== build" >&2
[ -e build/build.ninja ] || meson setup build --buildtype=release -Db_ndebug=false >"$out/setup.log"
ninja -C build vperf vperf-agent >"$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
echo "== lab: a KVM host with the guests g1 (a program that spends 80 % and 20 % in two functions)" >&2
echo "        and g2 (Shor's algorithm on a simulated quantum computer); results in $out" >&2
VLAB_VPERF_BUILD=$PWD/build lab/vlab run lab/scenarios/demo.scn --out "$out" --force

show() {
	echo
	echo "\$ vperf $*"
	build/vperf "$@"
}
show info "$out/rec"
show diagnose "$out/rec"
show report "$out/rec" --limit 20
show report "$out/rec" --view guest --vm g1 --limit 10
show report "$out/rec" --view guest --vm g2 --limit 10
show report "$out/rec" --view host --limit 10
show report "$out/rec" --vm g1 --call-graph=caller --limit 3
show account "$out/rec"
show steal "$out/rec" --limit 12
show exits "$out/rec" --by function --limit 12
build/vperf html "$out/rec" -o "$out/report.html"
echo
echo "All of it as one page for a browser: $out/report.html" >&2
echo "The recording is $out/rec. Next: build/vperf timeline $out/rec, build/vperf sched $out/rec" >&2
