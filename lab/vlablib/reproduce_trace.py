"""LTTng for Xen: how large its traces are against xentrace's, and what tracing costs by mode."""

import json
import math
import re
import subprocess
from pathlib import Path

from . import benching, lttng
from .common import REPO, LabError
from .reproduction import Reproduction, Row, call, run_lab, vperf

SOURCE = "Heidari, Desnoyers, Dagenais 2011, LTTng for Xen"
# MB of LTTng-Xen and of xentrace, of the same five workloads.
SIZES = ((11, 17), (63, 88), (45, 60), (9.1, 15), (7.1, 13))
PUBLISHED_SIZE = math.exp(sum(math.log(ours / peer) for ours, peer in SIZES) / len(SIZES))
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
# CPU time of the programs includes the cost of tracing, but not the tracer's own process; elapsed time would include waits for the
# host's files. dbench reports throughput, which the tracer's process reduces, too. As in the published table: disk, computing and system
# calls; and, as the worst case, context switches only.
MODES_OF = {"none": "none", "off": "vperf-off", "flight": "vperf-flight", "disk": "vperf-disk", "samples": "vperf-samples", "account": "vperf-account",
            "trace-cmd": "trace-cmd", "lttng": "lttng"}
TREE = """mkdir tree; awk 'BEGIN { for (f = 0; f < 200; f++) { name = "tree/" f; for (i = 0; i < 50; i++) print f, i > name; close(name) } }' """
PLAN = """repeats = 2
least-free = 0
[settle]
seconds = 0
""" + "".join(f"[configuration.{name}]\ndirectory = \"/tmp\"\ntracer = \"{tracer}\"\n" + "tracer-options = \"--no-symbols\"\n" * tracer.startswith("vperf")
              for name, tracer in MODES_OF.items()) + f"""
[test.compile]
command = "cc -O1 -c 0.c"
prepare = '''awk 'BEGIN {{ for (f = 0; f < 60; f++) printf "int f%d(int *a, int n) {{ int s = %d; while (n--) s ^= a[n]; return s; }}", f, f }}' > 0.c'''
figure = "cpu"
[test.archive-create]
command = "for i in 1 2 3 4 5; do tar -cf tree.tar tree; done"
prepare = '''{TREE}'''
figure = "cpu"
[test.archive-extract]
command = "for i in 1 2 3 4 5; do mkdir $i; tar -xf tree.tar -C $i; done"
prepare = '''{TREE}; tar -cf tree.tar tree'''
figure = "cpu"
[test.compress]
command = "gzip -9 -k text"
prepare = '''awk 'BEGIN {{ for (i = 0; i < 40000; i++) {{ s = (s * 16807 + 42) % 2147483647; printf "word%d ", s % 997 }} }}' > text'''
figure = "cpu"
[test.dbench]
command = "dbench -D . -t 1 1"
figure = {{ pattern = 'ReadX +([0-9]+)', unit = "reads in a second", better = "more" }}
[test.memory]
command = "perf bench mem memcpy -f default -s 16MB -l 20"
figure = "cpu"
[test.messaging]
command = "perf bench sched messaging -g 1 -l 10"
figure = "cpu"
[test.pipe]
command = "perf bench sched pipe -l 2000"
figure = "cpu"
"""
WORK = ("compile", "archive-create", "archive-extract", "compress", "dbench", "memory")
SWITCHING = ("messaging", "pipe")  # hardly more than threads that wake each other
NEGLIGIBLE = 5.0  # percent


def _run_modes(out: Path) -> None:
    benching.run(PLAN, "pcpus=1 icount=yes memory=3072", out, f"{lttng.commands(lttng.get())}; {benching.dbench()}")


def _read_modes(out: Path) -> list[Row]:
    return mode_rows(json.loads(call(str(benching.BENCH), "report", "--format", "json", str(out / "lab/bench"))))


def cost_of(cell: dict) -> float:
    """How much more a test costs, in percent: where more is better, more of the same work costs less."""
    return cell["percent"] - 100 if cell["better"] == "less" else 100 * (100 / cell["percent"] - 1)


def mode_rows(results: dict) -> list[Row]:
    """Rows from a report of vperf-bench: the table by mode, and its claims."""
    cells = {(cell["test"], cell["configuration"]): cell for cell in results["cells"]}
    if any(cell["percent"] is None for cell in cells.values()):
        raise LabError(f"steps failed: {results['failures']}")
    rows = []
    for mode in [name for name in MODES_OF if name != "none"]:
        text = ", ".join(f"{test} {cost_of(cells[test, mode]):.2f} ± {cells[test, mode]['percent_half_width']:.2f}" for test in (*WORK, *SWITCHING))
        worst = max(cost_of(cells[test, mode]) for test in WORK)
        claimed = mode in ("off", "flight", "disk")
        rows.append(Row(f"% more with {mode} than with nothing, and the interval of that",
                        "negligible (its abstract)" if claimed else "-", text, worst < NEGLIGIBLE if claimed else None,
                        bound=f"less than {NEGLIGIBLE} but for {', '.join(SWITCHING)}, which only switch" if claimed else ""))
    more = {mode: sum(cost_of(cells[test, mode]) for test in (*WORK, *SWITCHING)) for mode in ("flight", "disk")}
    return rows + [Row("the flight recorder and writing to disk (sum over the tests, %)", "the flight recorder costs less",
                       f"{more['flight']:.2f} against {more['disk']:.2f}; not compared: it is the tracer's own process that writes", None)]


def xen_rows(plain: int, packed: int, plain_peer: int, packed_peer: int, spans: int, events: int) -> list[Row]:
    """Rows from bytes of vperf's states and of xentrace's records (the peer), each uncompressed and compressed; there are no
    published figures."""
    if not events or not spans:
        raise LabError(f"there are {events} records of xentrace, {spans} states in vperf's recording")

    def each(ours: int, theirs: int) -> str:
        return f"{ours / spans:.1f} a state / {theirs / events:.1f} a record = {ours / spans / (theirs / events):.2f}"

    def whole(ours: int, theirs: int) -> str:
        return f"{ours} / {theirs} bytes = {ours / theirs:.2f} ({spans} states, {events} records)"

    return [Row("bytes, LTTng's / xentrace's, neither compressed", f"{LOW:.2f} to {HIGH:.2f}", each(plain, plain_peer), plain / spans < plain_peer / events,
                numbers=(PUBLISHED_SIZE, plain / spans / (plain_peer / events)), bound="less than 1"),
            Row(f"the same in whole traces of {SECONDS} s", ", ".join(f"{a}/{b} MB" for a, b in SIZES), whole(plain, plain_peer), plain < plain_peer,
                numbers=(PUBLISHED_SIZE, plain / plain_peer), bound="less than 1"),
            Row("both compressed (vperf record -z; zstd of xentrace's file)", "-", each(packed, packed_peer), None),
            Row("the same in whole traces", "-", whole(packed, packed_peer), None)]


# The work in one guest and in four, each alone and traced; the first run warms up.
GUESTS = ("g1", "g2", "g3", "g4")
GUEST_WORK = "shares a=80 b=20 --iterations 1000"
GUEST_TRACER = "vperf record -q --no-samples --no-account --no-guest-memory --no-symbols --trace --trace-guests"


def _together(guests: tuple[str, ...]) -> str:
    return f"sh -c 'for g in {' '.join(guests)}; do lab-guest run $g {GUEST_WORK} & done; wait' > /dev/null"


def _traced(name: str, guests: tuple[str, ...]) -> str:
    return f"command {GUEST_TRACER} -o /run/{name} -- {_together(guests)}; vperf info --json /run/{name} > /out/{name}.json; rm -rf /run/{name}\n"


TRACED_GUESTS = ("host pcpus=1 icount=yes memory=3072\n" + "".join(f"guest {name} vcpus=1 memory=192 agent=yes truth=no\n" for name in GUESTS) +
                 f"command {_together(GUESTS)}\ncommand {_together(GUESTS[:1])}\n{_traced('one', GUESTS[:1])}"
                 f"command {_together(GUESTS)}\n{_traced('four', GUESTS)}")
SENT = re.compile(r'"agent": ?"ok: it sent (\d+) events, (\d+) lost')


def guest_rows(seconds: dict[str, list[float]], sent: dict[str, list[tuple[int, int]]]) -> list[Row]:
    """Rows from the duration of the work in each guest: warm-up; in the first guest, alone and traced; then four at once, and these traced.
    `sent`: numbers of events that agents sent and lost."""
    wanted = {name: 5 if name == GUESTS[0] else 3 for name in GUESTS}
    if {name: len(times) for name, times in seconds.items()} != wanted:
        raise LabError(f"not all guests said how long their work took: {seconds}")
    alone, traced = seconds[GUESTS[0]][1:3]
    four, four_traced = (max(times[place] for times in seconds.values()) for place in (-2, -1))
    rows = []
    for what, before, after, told in (("one guest", alone, traced, sent["one"]), ("four guests", four, four_traced, sent["four"])):
        more = 100 * (after / before - 1)
        rows.append(Row(f"{what}: % that the work takes longer with host and guests traced; events that guests sent, and lost",
                        "negligible (its abstract)",
                        f"{more:.2f}; {sum(events for events, _ in told)}, {sum(lost for _, lost in told)}",
                        more < NEGLIGIBLE and len(told) == len(GUESTS) and not any(lost for _, lost in told),
                        bound=f"less than {NEGLIGIBLE}; none lost"))
    return rows


def _read_guests(out: Path) -> list[Row]:
    seconds = {name: [float(word) for word in re.findall(r"elapsed_s=([0-9.]+)", (out / f"lab/guest-{name}/workloads.log").read_text(encoding="utf-8"))]
               for name in GUESTS}
    sent = {name: [(int(events), int(lost)) for events, lost in SENT.findall((out / f"lab/{name}.json").read_text(encoding="utf-8"))]
            for name in ("one", "four")}
    return guest_rows(seconds, sent)


# Tables 14 and 15, in seconds: four tasks, one in each of four VMs, and all in one VM of one vCPU.
TASKS = {"compile": ((1594, 1600, 1588, 1598), (1679, 1684, 1639, 1683)), "tar create": ((618, 655, 665, 664), (734, 768, 764, 771))}
TASK = "shares a=80 b=20 --iterations 2400"
TURNS = 4  # the first warms up


def _at_once(where: tuple[str, ...]) -> str:
    return f"command sh -c 'for g in {' '.join(where)}; do lab-guest run $g {TASK} & done; wait' >/dev/null\n"


FOUR_TASKS = ("host pcpus=1 icount=yes memory=3072\n" + "".join(f"guest {name} vcpus=1 memory=192 truth=no\n" for name in GUESTS) +
              TURNS * (_at_once(GUESTS) + _at_once(GUESTS[:1] * len(GUESTS))))


def task_rows(first: list[float], others: list[list[float]]) -> list[Row]:
    """Rows made of the times of tasks, turn by turn: in the first guest one and then four, in each of the others one."""
    each = 1 + len(GUESTS)
    if len(first) != TURNS * each or any(len(times) != TURNS for times in others):
        raise LabError(f"not all tasks said how long they took: {first}, {others}")
    apart = [max(first[each * turn], *(times[turn] for times in others)) for turn in range(1, TURNS)]
    together = [max(first[each * turn + 1:each * (turn + 1)]) for turn in range(1, TURNS)]
    ratios = [one / four for one, four in zip(together, apart)]
    mean = sum(ratios) / len(ratios)
    rows = []
    for name, (published_apart, published_together) in TASKS.items():
        published = sum(published_together) / sum(published_apart)
        rows.append(Row(f"four tasks in one VM, of the time that they take in four VMs; published: {name}", f"{published:.3f}",
                        f"{mean:.4f} ({min(ratios):.4f} to {max(ratios):.4f})", None,
                        "the emulated host has no caches and no disk, and its tasks only compute", (published, mean)))
    return rows + [Row("the three turns agree within, %", "-", f"{100 * (max(ratios) / min(ratios) - 1):.2f}",
                       max(ratios) / min(ratios) <= 1.01, bound="at most 1")]


def _read_tasks(out: Path) -> list[Row]:
    first, *others = [[float(word) for word in re.findall(r"elapsed_s=([0-9.]+)", (out / f"lab/guest-{name}/workloads.log").read_text(encoding="utf-8"))]
                      for name in GUESTS]
    return task_rows(first, others)


def records_of(data: bytes) -> tuple[int, int]:
    """Number of state changes in a file of xentrace, and the size of all records."""
    place = count = 0
    while place + 4 <= len(data):
        head = int.from_bytes(data[place:place + 4], "little")
        count += (head & 0x0ffff000) == 0x00021000
        place += 4 + 4 * (head >> 28 & 7) + 8 * (head >> 31)
    return count, len(data)


def plain_size(data: bytes) -> int:
    """Uncompressed size of a compressed stream, from the header of each packet (docs/format.md)."""
    place = size = 0
    while place < len(data):
        size += int.from_bytes(data[place + 20 + 48:place + 20 + 56], "little") // 8
        place += 20 + 80 + int.from_bytes(data[place + 8:place + 12], "little")
    return size


def _read_xen(out: Path) -> list[Row]:
    trace = (out / "lab/trace").read_bytes()
    events, theirs = records_of(trace)
    packed = subprocess.run(["zstd", "-q", "-c"], input=trace, check=True, capture_output=True).stdout
    files = [path.read_bytes() for path in (out / "lab/rec/host").glob("*.zst")]
    spans = vperf("script", str(out / "lab/rec"), "--format", "csv", "--event", "vcpu_span").count("\n") - 1
    return xen_rows(sum(map(plain_size, files)), sum(map(len, files)), theirs, len(packed), spans, events)


def _run_sizes(out: Path) -> None:
    text = call(str(REPO / "bench/trace-cost"), "--out", str(out / "cost"), "--cpuid", "5000", "--trips", "5000", fine=(0, 1))
    (out / "printed").write_text(text, encoding="utf-8")


# Rows of bench/trace-cost, which are compared only with what is compressed as they are.
ALIKE = {"neither compressed": ("vperf record --trace", "trace-cmd record, not compressed"),
         "both compressed": ("vperf record --trace -z", "trace-cmd record")}


def size_rows(text: str) -> list[Row]:
    """Rows from the output of bench/trace-cost."""
    found = {tool: [float(word) for word in match[1].split()] for pair in ALIKE.values() for tool in pair
             if (match := re.search(rf"^{tool} +\S+ +\S+ +(\S+ +\S+)$", text, re.MULTILINE))}
    if len(found) != 2 * len(ALIKE):
        raise LabError(f"bench/trace-cost printed no sizes: {text[-300:]}")
    return [Row(f"bytes per event, {kind}, {how}: {tool} / {peer}", f"{LOW:.2f} to {HIGH:.2f}",
                f"{ours:.1f} / {theirs:.1f} = {ours / theirs:.2f}", ours < theirs, numbers=(PUBLISHED_SIZE, ours / theirs), bound="less than 1")
            for how, (tool, peer) in ALIKE.items() for kind, ours, theirs in zip(("kvm", "sched"), found[tool], found[peer])]


NAMES = {
    "trace-sizes": Reproduction(
        "how large a trace of Xen is, against xentrace's", SOURCE,
        "changes of vCPUs' states only, vperf record --account-events for LTTng; a guest that sleeps and one that computes",
        lambda out: run_lab(XEN, out), _read_xen),
    "trace-sizes-kvm": Reproduction(
        "how large a trace of KVM is, against the other tracer of the host", SOURCE,
        "KVM for Xen, vperf record --trace for LTTng, trace-cmd for xentrace, VM exits and wake-ups for their workloads",
        _run_sizes, lambda out: size_rows((out / "printed").read_text(encoding="utf-8"))),
    "trace-guests": Reproduction(
        "the cost of tracing one guest and four at once, with their own events and the host's", SOURCE,
        "KVM for Xen, vperf's agent in each guest for LTTng in each domain; one pCPU of a host that counts instructions",
        lambda out: run_lab(TRACED_GUESTS, out), _read_guests),
    "trace-tasks": Reproduction(
        "four tasks in one VM, and one in each of four", SOURCE + ", tables 14, 15",
        "KVM for Xen, a program that computes for their compiler and archiver, one pCPU of a host that counts instructions",
        lambda out: run_lab(FOUR_TASKS, out), _read_tasks),
    "trace-overhead": Reproduction(
        "the cost of tracing by mode: off, flight recorder, disk", SOURCE,
        "a KVM host that counts instructions, vperf for LTTng for Xen, files in memory, CPU time of the programs for elapsed time; measured by "
        "vperf-bench, two repeats", _run_modes, _read_modes)}
