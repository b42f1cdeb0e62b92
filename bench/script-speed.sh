#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Times `vperf script` and a summary, `vperf sched`, on a trace of the scheduler's events against babeltrace2
# on the same trace, `trace-cmd report` on the same events as a trace.dat (vperf export), and `perf script` on
# a recording of its own of the same program. Three runs each into /dev/null, the files in the page cache; the
# median of CPU time per event counts. Needs root.
#
#   bench/script-speed.sh [BUILD-DIR [ROUND-TRIPS]]      (build, 250000)
set -eu
build=$(realpath "${1:-build}")
trips=${2:-250000}
work=$(mktemp -d "${TMPDIR:-/tmp}/script-speed.XXXXXX")
trap 'rm -rf "$work"' EXIT

for tool in perf babeltrace2 trace-cmd; do
	command -v $tool >/dev/null || { echo "script-speed: $tool is needed" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "script-speed: root is needed" >&2; exit 77; }

program=(perf bench sched pipe -l "$trips")
events=(-e sched:sched_switch -e sched:sched_wakeup -e sched:sched_wakeup_new)

# Prints the CPU seconds of the command: the median of three runs.
measure()
{
	for _ in 1 2 3; do
		( TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1 ) 2>&1 | awk '{ print $1 + $2 }'
	done | sort -n | sed -n 2p
}

first=
row()
{
	local name=$1 bytes=$2 count=$3 cpu ns
	shift 3
	cpu=$(measure "$@")
	ns=$(awk "BEGIN { print $cpu / $count * 1e9 }")
	first=${first:-$ns}
	awk "BEGIN { printf \"%-20s %9d events %6.1f bytes/event %6.0f ns/event %6.1f\n\", \
		\"$name\", $count, $bytes / $count, $ns, $ns / $first }"
}

size_of()
{
	du -sb "$1" | cut -f1
}

"$build/vperf" record --trace=sched --no-samples --no-account -m 16384 -o "$work/vperf.data" \
	-- "${program[@]}" >/dev/null 2>&1
bytes=$(cat "$work"/vperf.data/host/trace-cpu* | wc -c)
count=$("$build/vperf" script "$work/vperf.data" | wc -l)
echo "perf bench sched pipe -l $trips, $(nproc) CPUs: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
row "vperf script" "$bytes" "$count" "$build/vperf" script "$work/vperf.data"
row "vperf script, jsonl" "$bytes" "$count" "$build/vperf" script --format jsonl "$work/vperf.data"
row "vperf script, csv" "$bytes" "$count" "$build/vperf" script --format csv "$work/vperf.data"
row "vperf sched" "$bytes" "$count" "$build/vperf" sched "$work/vperf.data"
row babeltrace2 "$bytes" "$(babeltrace2 "$work/vperf.data/host" | wc -l)" \
	babeltrace2 "$work/vperf.data/host"

"$build/vperf" export trace.dat "$work/vperf.data" -o "$work/dat" >/dev/null 2>&1
row "trace-cmd report" "$(size_of "$work/dat/host.dat")" \
	"$(trace-cmd report -i "$work/dat/host.dat" 2>/dev/null | wc -l)" trace-cmd report -i "$work/dat/host.dat"

perf record -q -a -m 16M "${events[@]}" -o "$work/perf.data" \
	-- "${program[@]}" >/dev/null 2>&1
row "perf script" "$(size_of "$work/perf.data")" "$(perf script -i "$work/perf.data" 2>/dev/null | wc -l)" \
	perf script -i "$work/perf.data"
