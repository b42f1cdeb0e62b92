"""LTTng for Xen: how large its traces are against xentrace's, and what tracing costs by mode."""

import json
import re
from pathlib import Path

from . import benching
from .common import REPO, LabError
from .reproduction import Reproduction, Row, call, run_lab, vperf

SOURCE = "Heidari, Desnoyers, Dagenais 2011, LTTng for Xen"
# MB of LTTng-Xen and of xentrace, of the same five workloads.
SIZES = ((11, 17), (63, 88), (45, 60), (9.1, 15), (7.1, 13))
LOW, HIGH = min(ours / peer for ours, peer in SIZES), max(ours / peer for ours, peer in SIZES)
SECONDS = 4
# Changes of state of all vCPUs, by one tool after the other: Xen's trace buffers have one reader. The guests sleep and wake up.
XEN = f"""host hypervisor=xen pcpus=1 icount=yes
guest pv memory=192 type=pv
guest pvh memory=192 type=pvh
workload pv sh -c 'while :; do usleep 2000; done'
workload pvh shares a=80 b=20
command xentrace -D -e 0x21000 -T {SECONDS} /tmp/trace 2>/dev/null && cp /tmp/trace /out
command vperf record -z --no-samples --no-symbols --account-events -d {SECONDS} -o /out/rec
"""
# CPU time of the programs, in which what is traced is, but not the tracer's own process: elapsed time has waits for the machine's
# files in it. As the published table: what a disk is good for, what computes; and, as the worst case, what only switches.
MODES = """repeats = 2
least-free = 0
[settle]
seconds = 0
[configuration.off]
directory = "/tmp"
[configuration.flight]
directory = "/tmp"
tracer = "vperf-flight"
[configuration.disk]
directory = "/tmp"
tracer = "vperf-disk"
[configuration.trace-cmd]
directory = "/tmp"
tracer = "trace-cmd"
[test.compress]
command = "gzip -9 -k text"
prepare = '''awk 'BEGIN { for (i = 0; i < 40000; i++) { s = (s * 16807 + 42) % 2147483647; printf "word%d ", s % 997 } }' > text'''
figure = "cpu"
cache = ["hot"]
[test.archive]
command = "for i in 1 2 3 4 5; do tar -cf tree.tar tree; done"
prepare = '''mkdir tree; awk 'BEGIN { for (f = 0; f < 200; f++) { name = "tree/" f; for (i = 0; i < 50; i++) print f, i > name; close(name) } }' '''
figure = "cpu"
cache = ["hot"]
[test.compile]
command = "cc -O1 -c 0.c"
prepare = '''awk 'BEGIN { for (f = 0; f < 60; f++) printf "int f%d(int *a, int n) { int s = %d; while (n--) s ^= a[n]; return s; }", f, f }' > 0.c'''
figure = "cpu"
cache = ["hot"]
[test.pipe]
command = "perf bench sched pipe -l 2000"
figure = "cpu"
cache = ["hot"]
"""
WORK = ("compress", "archive", "compile")
NEGLIGIBLE = 5.0  # percent


def _read_modes(out: Path) -> list[Row]:
    return mode_rows(json.loads(call(str(benching.BENCH), "report", "--format", "json", str(out / "lab/bench"))))


def mode_rows(results: dict) -> list[Row]:
    """Of a report of vperf-bench."""
    percent = {(cell["test"], cell["configuration"]): cell["percent"] and cell["percent"] - 100 for cell in results["cells"]}
    if None in percent.values():
        raise LabError(f"steps failed: {results['failures']}")
    rows = []
    for mode in ("flight", "disk"):
        values = {test: percent[test, mode] for test in WORK}
        rows.append(Row(f"% more CPU time with tracing, {mode}: {', '.join(WORK)}", "negligible (its abstract); here: less than 5",
                        ", ".join(f"{value:.2f}" for value in values.values()), max(values.values()) < NEGLIGIBLE))
    tests = (*WORK, "pipe")
    more = {mode: sum(percent[test, mode] for test in tests) for mode in ("flight", "disk", "trace-cmd")}
    rows += [Row("the flight recorder and writing to disk (sum over the tests, %)", "the flight recorder costs less",
                 f"{more['flight']:.2f} against {more['disk']:.2f}; not compared: it is the tracer's own process that writes", None),
             Row("the worst case, two threads that only wake each other: off, flight, disk, trace-cmd", "-",
                 ", ".join(["0"] + [f"{percent['pipe', mode]:.1f} %" for mode in more]), None),
             Row("% more CPU time under trace-cmd: " + ", ".join(WORK), "-",
                 ", ".join(f"{percent[test, 'trace-cmd']:.2f}" for test in WORK), None)]
    return rows


def xen_rows(theirs: int, ours: int, plain: int, spans: int, events: int) -> list[Row]:
    """Of bytes of both tools and what these are for: records of xentrace, states of vperf, compressed and not."""
    if not events or not spans:
        raise LabError(f"there are {events} records of xentrace, {spans} states in vperf's recording")
    each = ours / spans / (theirs / events)
    return [Row("bytes, LTTng's / xentrace's", f"{LOW:.2f} to {HIGH:.2f}",
                f"{ours / spans:.1f} a state / {theirs / events:.1f} a record = {each:.2f}", each < 1),
            Row(f"the same in whole traces of {SECONDS} s", ", ".join(f"{a}/{b} MB" for a, b in SIZES),
                f"{ours} / {theirs} bytes = {ours / theirs:.2f} ({spans} states, {events} records)", ours < theirs),
            Row("without -z", "-", f"{plain / spans:.1f} bytes a state, {plain} in all", None)]


def records_of(data: bytes) -> tuple[int, int]:
    """Of a file of xentrace: how many records of changes of state, and the bytes of all."""
    place = count = 0
    while place + 4 <= len(data):
        head = int.from_bytes(data[place:place + 4], "little")
        count += (head & 0x0ffff000) == 0x00021000
        place += 4 + 4 * (head >> 28 & 7) + 8 * (head >> 31)
    return count, len(data)


def plain_size(data: bytes) -> int:
    """Of a compressed stream: its bytes without compression, as each packet says (docs/format.md)."""
    place = size = 0
    while place < len(data):
        size += int.from_bytes(data[place + 12 + 48:place + 12 + 56], "little") // 8
        place += 12 + 80 + int.from_bytes(data[place + 8:place + 12], "little")
    return size


def _read_xen(out: Path) -> list[Row]:
    events, theirs = records_of((out / "lab/trace").read_bytes())
    files = [path.read_bytes() for path in (out / "lab/rec/host").glob("*.zst")]
    spans = vperf("script", str(out / "lab/rec"), "--format", "csv", "--event", "vcpu_span").count("\n") - 1
    return xen_rows(theirs, sum(map(len, files)), sum(map(plain_size, files)), spans, events)


def _run_sizes(out: Path) -> None:
    text = call(str(REPO / "bench/trace-cost"), "--out", str(out / "cost"), "--cpuid", "5000", "--trips", "5000", fine=(0, 1))
    (out / "printed").write_text(text, encoding="utf-8")


def size_rows(text: str) -> list[Row]:
    """Of what bench/trace-cost printed."""
    peer, tools = "trace-cmd record", ("vperf record --trace", "vperf record --trace -z")
    found = {tool: [float(word) for word in match[1].split()] for tool in (peer, *tools)
             if (match := re.search(rf"^{tool} +\S+ +\S+ +(\S+ +\S+)$", text, re.MULTILINE))}
    if len(found) != 3:
        raise LabError(f"bench/trace-cost printed no sizes: {text[-300:]}")
    return [Row(f"bytes per event, {kind}: {tool} / the peer's", f"{LOW:.2f} to {HIGH:.2f}",
                f"{ours:.1f} / {theirs:.1f} = {ours / theirs:.2f}", ours < theirs)
            for tool in tools for kind, ours, theirs in zip(("kvm", "sched"), found[tool], found[peer])]


NAMES = {
    "trace-sizes": Reproduction(
        "how large a trace of Xen is, against xentrace's", SOURCE,
        "changes of vCPUs' states only, vperf record --account-events for LTTng; a guest that sleeps and one that computes",
        lambda out: run_lab(XEN, out), _read_xen),
    "trace-sizes-kvm": Reproduction(
        "how large a trace of KVM is, against the other tracer of the host", SOURCE,
        "KVM for Xen, vperf record --trace for LTTng, trace-cmd for xentrace, VM exits and wake-ups for their workloads",
        _run_sizes, lambda out: size_rows((out / "printed").read_text(encoding="utf-8"))),
    "trace-overhead": Reproduction(
        "what tracing costs, by mode: off, flight recorder, disk", SOURCE,
        "a KVM host that counts instructions, vperf for LTTng, files in memory, CPU time of the programs for elapsed time; measured by vperf-bench, two repeats",
        lambda out: benching.run(MODES, "pcpus=1 icount=yes memory=3072", out), _read_modes)}
