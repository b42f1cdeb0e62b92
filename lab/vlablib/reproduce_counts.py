"""Counters of threads in guests against native ones, and where the time of a virtualized run goes."""

import json
import re
import sys
from pathlib import Path

from .common import REPO, LabError
from .reproduction import NOT_AT_HAND, Reproduction, Row, call, run_lab, vperf

CLIENT = "build-arm64/tests/lab/count-loops"
WORK = "--threads 3 --loops 250000 --rounds 20 --way call --event instructions:u"
# Two guests on one pCPU: first one of them works, then both.
THREADS = f"""host arch=arm64 pcpus=1 icount=yes memory=1536
guest g1 vcpus=1 memory=256 truth=no
guest g2 vcpus=1 memory=256 truth=no
file g1 {CLIENT} /bin/count-loops
file g2 {CLIENT} /bin/count-loops
command {CLIENT} {WORK}
command lab-guest run g1 count-loops {WORK}
command JOB=$(lab-guest spawn g2 count-loops --threads 2 --loops 250000 --rounds 10000); lab-guest run g1 count-loops {WORK}; \
lab-guest end g2 $JOB || true
""".replace("\\\n", "")
CLOSE = 0.1  # percent
REASONS = {"cpuid": "CPUID", "mmio": "NPF", "io": "IOIO"}
GROUPS = """cpuid: exits:cpuid
mmio: exits:mmio
io: exits:io
rest of exits: exits:halt, exits:msr, exits:interrupt, exits:page-fault
guest: time:guest, guest:context-switches, guest:page-faults
"""


def counts_of(text: str) -> dict[int, float]:
    """Count of each thread relative to its work, by thread number."""
    lines = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in text.splitlines() if re.search(r"\bthread=\d", line)]
    return {int(line["thread"]): int(line["values"].split(",")[0]) / int(line["expected"]) for line in lines}


def thread_rows(native: dict[int, float], alone: dict[int, float], beside: dict[int, float]) -> list[Row]:
    """Rows from the count of each thread relative to its work."""
    if not native or set(native) != set(alone) or set(native) != set(beside):
        raise LabError(f"not all threads said what they counted: {native}, {alone}, {beside}")
    rows = []
    for what, counts in (("three threads on the guest's one vCPU", alone), ("the same next to a busy VM on the same pCPU", beside)):
        ratios = [counts[number] / native[number] for number in sorted(native)]
        rows.append(Row(f"instructions of each thread, virtualized / native: {what}",
                        NOT_AT_HAND + "as when native (its abstract)", ", ".join(f"{ratio:.6f}" for ratio in ratios),
                        all(abs(ratio - 1) < CLOSE / 100 for ratio in ratios), bound=f"1 within {CLOSE}%"))
    return rows


def _read_threads(out: Path) -> list[Row]:
    log = (out / "lab/guest-g1/workloads.log").read_text(encoding="utf-8")
    jobs: dict[int, list[str]] = {}
    for job, line in re.findall(r"^out job=(\d+) copy=\d+ \| (.*)$", log, re.MULTILINE):
        jobs.setdefault(int(job), []).append(line)
    if len(jobs) != 2:
        raise LabError(f"the guest has {len(jobs)} jobs in its log, not two")
    alone, beside = (counts_of("\n".join(jobs[job])) for job in sorted(jobs))
    return thread_rows(counts_of((out / "lab/host/command-1.out").read_text(encoding="utf-8")), alone, beside)


def _run_inflation(out: Path) -> None:
    sys.stderr.write(call(str(REPO / "tests/lab/run"), "--full", "--only", "inflation", "--out", str(out / "tests")))


def inflation_rows(comparison: dict, cost: dict[str, float]) -> list[Row]:
    """Rows from 'vperf model compare', and from ns per interval according to exit durations."""
    parts = {part["name"]: part["virtualized"] - part["native"] for part in comparison["groups"]}
    rows = [Row(f"ns more in each 20 ms by {name}: by the model, and by the exits' own durations",
                NOT_AT_HAND + "hypervisor events explain what virtualization adds",
                f"{parts[name]:.0f}, {took:.0f}", abs(parts[name] - took) < 0.1 * took, bound="equal within 10%") for name, took in cost.items()]
    return rows + [Row("time on a pCPU for the same work, virtualized / native", "-", f"{comparison['inflation']:.3f}", None)]


def _read_inflation(out: Path) -> list[Row]:
    lab = out / "tests/1/stat-inflation"
    (out / "groups").write_text(GROUPS, encoding="ascii")
    compared = json.loads(vperf("model", "compare", str(lab / "native"), str(lab / "virt"), "--target", "time:running", "--groups",
                                str(out / "groups"), "--format", "json"))["comparison"]
    exits = {row["reason"]: row for row in json.loads(vperf("exits", str(lab / "rec"), "--json"))["exits"]}
    intervals = json.loads(vperf("stat", "report", str(lab / "virt"), "--format", "json"))["intervals"]
    whole = [row for row in intervals if not row["partial"]]
    cost = {}
    for name, reason in REASONS.items():
        row = exits[reason]
        each = sum(row[part] for part in ("kernel_ns", "poll_ns", "vmm_ns")) / row["count"]
        cost[name] = each * sum(entry["events"][f"exits:{name}"]["counted"] for entry in whole) / len(whole)
    return inflation_rows(compared, cost)


MOUSA = "Mousa and others 2007, aligned intervals: model trees"
TIME = "time on a pCPU for CPI, software events for the PMU's; a program of VM exits in changing mixture"
EXPLAINED = 0.9  # correlation of what a tree predicts, of intervals that it was not grown on


def _used(node: dict) -> set[str]:
    """The columns that a tree's splits and leaves have."""
    found = {node["input"]} if "input" in node else {entry["input"] for entry in node.get("coefficients", [])}
    return found.union(*(_used(node[side]) for side in ("below", "above") if side in node))


def tree_rows(name: str, tree: dict) -> list[Row]:
    """Rows from the model tree of a set: its accuracy, and whether it uses hypervisor events."""
    correlation, root = tree["cross_validation"]["correlation"], tree["tree"]["root"]
    events = sorted(column for column in _used(root) if column.startswith("exits:"))
    return [Row(f"{name}: correlation by ten-fold cross-validation; leaves", NOT_AT_HAND + "model trees explain it",
                f"{correlation:.4f}; {tree['tree']['rules']}", correlation >= EXPLAINED, bound=f"at least {EXPLAINED}"),
            Row(f"{name}: what its splits and leaves have of the hypervisor's events", NOT_AT_HAND + "hypervisor events explain what virtualization adds",
                ", ".join(events) or "none", bool(events), bound="one or more")]


def _tree(data: str) -> dict:
    return json.loads(vperf("model", "tree", data, "--target", "time:running", "--cv", "10", "--format", "json"))


def _read_tree(out: Path) -> list[Row]:
    """Rows from the virtualized set: natively, the target is the guest's time itself, and there is nothing to explain."""
    return tree_rows("virtualized", _tree(str(out / "tests/1/stat-inflation/virt")))


def _read_merged(out: Path) -> list[Row]:
    lab, merged = out / "tests/1/stat-inflation", out / "merged.csv"
    vperf("model", "compare", str(lab / "native"), str(lab / "virt"), "--target", "time:running", "--merged", str(merged))
    return tree_rows("native and virtualized", _tree(str(merged)))


MOST_OFF = 0.5  # percent


def program_rows(text: str) -> list[Row]:
    """Rows from the output of the lab test of programs: error of counts in a guest in %, by program, placement and way."""
    found: dict[tuple[str, str], list[str]] = {}
    worst: dict[tuple[str, str], float] = {}
    for program, placement, way, instructions, cycles in re.findall(
            r"^ +(gzip|openssl|sqlite3|shor) +(alone|both at once|beside a busy VM|moved) +(PMU|lent) +(-?[\d.]+) +(-?[\d.]+)", text, re.MULTILINE):
        key = way, placement
        found.setdefault(key, []).append(f"{program} {1 + float(instructions) / 100:.5f} {1 + float(cycles) / 100:.5f}")
        worst[key] = max(worst.get(key, 0), abs(float(instructions)), abs(float(cycles)))
    if len(found) != 8 or any(len(programs) != 4 for programs in found.values()):
        raise LabError(f"the lab test of programs printed no figures: {text[-300:]}")
    return [Row(f"{'a virtual PMU' if way == 'PMU' else 'lent counters'}, {placement}: instructions and cycles, virtualized / native",
                NOT_AT_HAND + "as when native (its abstract)", ", ".join(found[way, placement]),
                worst[way, placement] < MOST_OFF, bound=f"1 within {MOST_OFF}%") for way, placement in found]


def _run_programs(out: Path) -> None:
    text = call(str(REPO / "tests/lab/run"), "--full", "--only", "counters of programs", "--out", str(out / "tests"), fine=(0, 1))
    (out / "printed").write_text(text, encoding="utf-8")


DIRECT = 10  # a read without a system call costs at most a tenth of one with it


def tool_rows(text: str) -> list[Row]:
    """Rows made of the output of bench/counter-read: whether each tool reads a thread's counter without a system call."""
    one = text.partition("four counters")[0]  # what follows is of sets of four
    cost = {label: float(ns) for label, ns in re.findall(r"^((?:host|guest)[^:\n]*: .*?) {2,}([\d.]+) ", one, re.MULTILINE)}
    if not {"host: libvperf, user space", "host: read(2) of one event", "host: PAPI_read", "guest without PMU: lent"} <= cost.keys():
        raise LabError(f"bench/counter-read printed no figures: {text[-300:]}")
    call_ns, papi = cost["host: read(2) of one event"], cost["host: PAPI_read"]

    def is_direct(what: str) -> bool:
        return cost[what] * DIRECT <= call_ns

    def told(what: str) -> str:
        return f"{'yes' if is_direct(what) else 'no'}: {cost[what]:.0f} instructions a read, {call_ns:.0f} by read(2)"

    bound = f"yes: at most 1/{DIRECT} of read(2)"
    return [Row("perf_events, a host: counts of a thread are read directly (by libvperf)", "yes", told("host: libvperf, user space"),
                is_direct("host: libvperf, user space"), bound=bound),
            Row("PAPI: the same", "yes, by perfctr", told("host: PAPI_read"), None,
                "" if papi * DIRECT <= call_ns else "Debian's PAPI reads perf_events by system calls; perfctr is gone"),
            Row("a guest without a PMU, host-provided counters: the same", "- (perfctr-xen: yes)", told("guest without PMU: lent"),
                is_direct("guest without PMU: lent"), bound=bound)]


def _run_tools(out: Path) -> None:
    text = call(str(REPO / "bench/counter-read"), "--out", str(out / "reads"))
    (out / "printed").write_text(text, encoding="utf-8")


NAMES = {
    "counters-tools": Reproduction(
        "the counters of a thread, read directly: by tool", "Nikolaev and Back 2011, perfctr-xen, table 1",
        "the tools of Debian; an emulated 64-bit Arm host that counts instructions. Per thread, each of them counts: counters-threads",
        _run_tools, lambda out: tool_rows((out / "printed").read_text(encoding="utf-8"))),
    "counters-programs": Reproduction(
        "counts of programs in a guest, against the same without one, in four placements of the guest",
        "Nikolaev and Back 2011, perfctr-xen (its SPEC CPU2006)",
        "gzip, OpenSSL, sqlite3 and libquantum of Debian; libvperf, a virtual PMU and lent counters of 64-bit Arm for Xen's; the PMU is emulated and exact",
        _run_programs, lambda out: program_rows((out / "printed").read_text(encoding="utf-8"))),
    "counters-threads": Reproduction(
        "the counts of a program's threads in a guest, against the same program without one",
        "Nikolaev and Back 2011, perfctr-xen (its microbenchmarks)",
        "libvperf for PAPI, KVM's virtual PMU of 64-bit Arm for Xen, loops of known length; the PMU is emulated and exact",
        lambda out: run_lab(THREADS, out), _read_threads),
    "cpi-tree": Reproduction(
        "a model tree of the intervals of a virtualized run", MOUSA, TIME, _run_inflation, _read_tree),
    "cpi-merged": Reproduction("a model tree of the intervals of a native and of a virtualized run together", MOUSA, TIME, _run_inflation, _read_merged),
    "cpi-inflation": Reproduction(
        "the additional time of a virtualized run, decomposed by hypervisor events", "aligned intervals of hardware and "
        "hypervisor events: decomposition native and virtualized",
        "time on a pCPU for CPI: without the lab's PMU; a program of VM exits in changing mixture", _run_inflation,
        _read_inflation)}
