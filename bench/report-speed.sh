#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Times `vperf report` and `perf report --stdio` on as many samples each, made by bench/gen-recording:
# the same number of functions and processes, hit with the same distribution. Three runs each, the
# files in the page cache; the median counts. Text also by one thread, and from a compressed recording
# (record -z), of which the time relative to the uncompressed one is printed.
#
#   bench/report-speed.sh [BUILD-DIR [SAMPLES]]      (build, 10000000)
set -eu
build=$(realpath "${1:-build}")
samples=${2:-10000000}
work=$(mktemp -d "${TMPDIR:-/tmp}/report-speed.XXXXXX")
trap 'rm -rf "$work"' EXIT

for tool in perf gcc nm; do
	command -v $tool >/dev/null || { echo "report-speed: $tool is needed" >&2; exit 77; }
done

# A program whose functions lie where gen-recording puts its samples: 3000 of 64 bytes at 0x401000.
{
	for i in $(seq 0 2999); do
		printf '\t.globl function_%d\n\t.type function_%d, @function\nfunction_%d:\n' "$i" "$i" "$i"
		printf '\t.skip 63, 0x90\n\tret\n\t.size function_%d, 64\n' "$i"
	done
} | gcc -nostdlib -static -x assembler - -Wl,-Ttext=0x401000,-e,function_0 -o "$work/program"
[ "$(nm "$work/program" | awk '$3 == "function_1" { print $1 }')" = 0000000000401040 ]

"$build/bench/gen-recording" "$samples" "$work/vperf.data"
"$build/bench/gen-recording" -z "$samples" "$work/vperf-z.data"
"$build/bench/gen-recording" --perf "$samples" "$work/perf.data" "$work/program"

# Prints "CPU-SECONDS SECONDS KIB STATUS" of the command: the median of three runs by CPU time, which
# other load on the machine disturbs less than the time on the clock.
measure()
{
	for _ in 1 2 3; do
		python3 - "$@" <<-'END'
		import os, sys, time
		start = time.monotonic()
		pid = os.fork()
		if pid == 0:
		    null = os.open(os.devnull, os.O_RDWR)
		    os.dup2(null, 0), os.dup2(null, 1), os.dup2(null, 2)
		    os.execvp(sys.argv[1], sys.argv[1:])
		_, status, usage = os.wait4(pid, 0)
		cpu = usage.ru_utime + usage.ru_stime
		print(f"{cpu:.3f} {time.monotonic() - start:.3f} {usage.ru_maxrss} {os.waitstatus_to_exitcode(status)}")
		END
	done | sort -n | sed -n 2p
}

row()
{
	local name=$1 cpu seconds kib status
	shift
	read -r cpu seconds kib status < <(measure "$@")
	[ "$status" = 0 ] || { echo "report-speed: '$*' failed: $status" >&2; exit 1; }
	printf '%-28s %9s s %11s s %8.1f M/s %8d KiB\n' "$name" "$cpu" "$seconds" \
		"$(awk "BEGIN { print $samples / $cpu / 1e6 }")" "$kib"
	last=$cpu
}

echo "$samples synthetic samples, $(nproc) CPUs: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
cat "$work"/vperf.data/host/cpu* "$work"/vperf-z.data/host/cpu* "$work/perf.data" >/dev/null
printf '%-28s %11s %13s %12s %12s\n' "" CPU elapsed "CPU rate" "peak RSS"
row "perf report --stdio" perf report --stdio -i "$work/perf.data"
perf_cpu=$last
for view in host guest unified; do
	vm=()
	[ $view = guest ] && vm=(--vm vm0)
	row "vperf -j1 $view" "$build/vperf" report -j1 --view $view "${vm[@]}" "$work/vperf.data"
	awk "BEGIN { printf \"%-28s %9.1f times as fast (CPU time)\n\", \"\", $perf_cpu / $last }"
	plain_cpu=$last
	row "vperf -j1 $view, of -z" "$build/vperf" report -j1 --view $view "${vm[@]}" "$work/vperf-z.data"
	awk "BEGIN { printf \"%-28s %9.2f times the time of uncompressed\n\", \"\", $last / $plain_cpu }"
done
for format in text json csv folded; do
	for view in host guest unified; do
		vm=()
		[ $view = guest ] && vm=(--vm vm0)
		row "vperf $view, $format" "$build/vperf" report --view $view --format $format \
			"${vm[@]}" "$work/vperf.data"
		awk "BEGIN { printf \"%-28s %9.1f times as fast (CPU time)\n\", \"\", $perf_cpu / $last }"
	done
done
