# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims on a host of 64-bit Arm, whose emulated PMU counts exactly (see docs/lab.md)."""
import json
import math
import re

import test_chains
import test_counters
import test_selftest
from lab import vperf
from test_trace import events, guests_own_events, outside_of_guest_mode

HOST = "host arch=arm64 pcpus=1 icount=yes memory=1280\n"

# Its probes, its exact account, and whether the PMU is what the other tests take it for.
PORT = HOST + """
command vperf check --json
command vperf record --account -q -o /out/rec -- tinyvm --hvc 1000 --mmio 500 --rounds 3 --wait 0.1
command perf stat -x, -e instructions:G tinyvm --loops 100000 --rounds 10
command perf stat -x, -e instructions:u counted --loops 1000000
command perf stat -x, -e instructions:u counted --loops 2000000
command vperf record -q -o /out/busy -- counted --loops 100000000
command vperf record -q -o /out/idle -- sleep 1
command vperf record -q -e instructions -c 10000000 -o /out/fixed -- counted --loops 100000000
command vperf record -q -e instructions -c 20000 -o /out/throttled -- counted --loops 10000000
"""


def weights(run, claims):
    """Samples of cycles at a frequency weigh by time, whose sum is the pCPU's from the first moment on, however densely
    they come at first and after idle time; at a fixed number of events, by that."""
    for name in ("busy", "idle"):
        report = json.loads(vperf("report", "--view", "host", "--format", "json", str(run.out / name)).stdout)
        claims.check(report["unit"] == "ns", f"{name}: the unit of samples of cycles is {report['unit']}")
        info = json.loads(vperf("info", "--json", str(run.out / name)).stdout)
        elapsed = info["end_ns"] - info["start_ns"]
        claims.near(f"{name}: ns of all rows, of {elapsed} that passed", report["ns"], elapsed, elapsed / 1000)
        claims.check(sum(row["ns"] for row in report["rows"]) == report["ns"], f"{name}: rows sum to the whole")
        # 600 million instructions, one a nanosecond, and the start of the program. The first sample after idle time comes late, and
        # has some of its time.
        own = sum(row["ns"] for row in report["rows"] if row["process"] == "counted")
        claims.near(f"{name}: ms of counted", own / 1e6, 600 if name == "busy" else 0, 100 if name == "busy" else 0)
    report = json.loads(vperf("report", "--view", "host", "--format", "json", str(run.out / "fixed")).stdout)
    claims.check(report["unit"] == "instructions" and report["events"] == 10000000 * report["samples_taken"],
                 f"{report['samples_taken']} samples of 10000000 each are {report['events']} {report['unit']}")
    own = sum(row["events"] for row in report["rows"] if row["process"] == "counted")
    # The program begins and ends within a period: two samples at most.
    claims.near("instructions of 100000000 loops of 6, by samples", own, 600000000, 20000000)
    # This host's kernel allows one sample per tick, 250 a second: of 50,000 most are missing, which is reported.
    said = [note for note in json.loads(vperf("report", "--format", "json", str(run.out / "throttled")).stdout)["notes"]
            if "the kernel throttled sampling" in note]
    claims.check(said, f"samples that the kernel throttled: {said}")


def parse_counts(text):
    """Event -> count of `perf stat -x,` output."""
    return {event: int(count) for count, event in re.findall(r"^(\d+),,([\w:-]+),", text, re.MULTILINE)}


def port(run, claims):
    probes = {probe["name"]: probe["found"] for probe in json.loads(run.command_output(1))["features"]}
    for name in ("sampling programs", "accounting programs", "interval programs", "KVM",
                 "hardware counter"):
        claims.check(probes[name], f"vperf check finds: {name}")
    table = json.loads(vperf("exits", str(run.recording()), "--format", "json").stdout)
    exits = {row["reason"]: row["count"] for row in table["exits"]}
    claims.check(exits.get("HVC64") == 3000, f"{exits.get('HVC64')} of 3000 hypercalls are counted")
    claims.check(exits.get("DABT_LOW") == 1500, f"{exits.get('DABT_LOW')} of 1500 accesses are counted")
    guest, one, two = (next(iter(parse_counts(run.command_output(n, "err")).values())) for n in (3, 4, 5))
    claims.near("instructions of a guest of 10 x 100000 loops of 6", guest, 6000000, 100)
    claims.near("instructions of 1000000 loops of 6", two - one, 6000000, 1000)
    weights(run, claims)


# Intervals of a loop of known instructions, each recipe on the same work; and of a guest's.
LOOPS = 300000000
WORK = f"counted --wait 1 --loops {LOOPS}"
SHORT = "counted --loops 100000000"
RECIPES = {
    # The cycle counter's overflow comes in time: 10 million cycles, which are instructions here.
    "exact": "interval cycles 10M; per task; count instructions instructions:u PMU/inst_retired/u",
    # An event counter's comes with the next system call: see docs/lab.md.
    "skid": "interval instructions 10M; per task; count instructions instructions:u",
    "guest": "interval exits 500; per vcpu; count instructions instructions:G instructions:H "
             "exits:hypercall exits:mmio "
             "inject:interrupt sched:in",
}


def stat(name, work):
    """The command that records the work by the recipe of that name. It records into memory: a file of the
    share comes in the machine's time, not in the lab's."""
    recipe = RECIPES[name].replace("; ", "\\n")
    return (f"command pmu=$(ls /sys/bus/event_source/devices | grep ^armv8) && "
            f"printf '{recipe}\\n' | sed s,PMU/,$pmu/, > /tmp/{name} && "
            f"vperf stat --recipe /tmp/{name} -o /tmp/{name}.rec -- {work} && cp -r /tmp/{name}.rec /out/{name}\n")


INTERVALS = (HOST + stat("exact", WORK) + stat("skid", f"{SHORT} --batch 1000 --calls 1") +
             stat("guest", "sh -c 'tinyvm --loops 10000 --hvc 10 --mmio 5 --rounds 1000 & "
                  "tinyvm --loops 20000 --hvc 7 --mmio 3 --rounds 1500 & wait'") +
             f"command perf stat -x, -e instructions,instructions:u {WORK}\n"
             "command perf stat -x, -e instructions:u counted --loops 1\n"
             f"command {WORK}; {WORK}\n")


def read_intervals(run, name):
    return json.loads(vperf("stat", "report", str(run.out / name), "--format", "json").stdout)


def intervals_of(run, name):
    """Event -> scaled counts of the whole intervals after the first, in which the program starts; and
    event -> sum over all."""
    report = read_intervals(run, name)
    whole = [interval["events"] for interval in report["intervals"] if not interval["partial"]][1:]
    counts = {event: [values[event]["counted"] / values[event]["live"] for values in whole]
              for event in report["totals"]}
    return counts, {event: total["sum"] for event, total in report["totals"].items()}


def check_lengths(run, claims, name, least, tolerance):
    """The ends are that number of instructions apart, each with its skid. That of the first interval can be far later, as the program
    starts in it, and the second one is as much shorter."""
    counts, sums = intervals_of(run, name)
    lengths = counts["instructions"][1:]
    claims.check(len(lengths) >= least and all(abs(n - 10000000) <= tolerance for n in lengths),
                 f"{name}: {len(lengths)} intervals of 10000000 are {min(lengths):.0f} to "
                 f"{max(lengths):.0f} instructions long, at most {tolerance} off")
    return sums


def intervals(run, claims):
    # An overflow within the handler of a timer tick, which takes some 2600 instructions 250 times in a
    # second of 10^9, waits for its end; the next interval is as much shorter. So it is with one overflow
    # of 1500: of 179, more than three are one chance in 100,000.
    sums = check_lengths(run, claims, "exact", 177, 5000)
    late = [n for n in intervals_of(run, "exact")[0]["instructions"] if abs(n - 10000000) > 500]
    claims.check(len(late) <= 6, f"exact: all but {len(late)} are at most 500 off: {late}")
    check_lengths(run, claims, "skid", 60, 7000)
    reference = parse_counts(run.command_output(4, "err"))
    for event in ("instructions", "instructions:u"):
        claims.near(f"{event} of all intervals, % of perf stat's of the whole run",
                    100 * sums[event] / reference[event], 100, 0.1)
    named = next(event for event in sums if event.endswith("/inst_retired/u"))
    claims.check(sums[named] == sums["instructions:u"],
                 f"{named}: {sums[named]}, instructions:u: {sums['instructions:u']}")
    start = parse_counts(run.command_output(5, "err"))["instructions:u"]
    claims.near(f"instructions of {LOOPS} loops of 6, in the intervals",
                sums["instructions:u"] - start, 6 * LOOPS, 3000)

    alone, with_it = min(loop_ns(run.command_output(6))), min(loop_ns(run.command_output(1)))
    # Time of other threads on the pCPU is not a cost of the intervals; the recorder's time is.
    claims.check(with_it < 1.001 * alone,
                 f"the loop takes {100 * (with_it / alone - 1):.4f} % longer with intervals of 10000000 "
                 f"instructions, less than 0.1 %")
    guests(read_intervals(run, "guest"), claims)


def guests(report, claims):
    """Two VMs that share the pCPU: each has its own."""
    claims.check(report["totals"]["inject:interrupt"]["live"] == 0,
                 "what Arm's KVM does not tell, injections, is missing and not 0")
    sums = {}
    for interval in report["intervals"]:
        events = sums.setdefault(interval["subject"], {})
        for event, value in interval["events"].items():
            events[event] = events.get(event, 0) + value["counted"]
    small, big = sorted(sums.values(), key=lambda events: events["instructions:G"])
    for guest, instructions, hypercalls, accesses in ((small, 1000 * (6 * 10000 + 73), 10000, 5000),
                                                      (big, 1500 * (6 * 20000 + 52), 10500, 4500)):
        claims.near("instructions of one of two guests, in its intervals", guest["instructions:G"],
                    instructions, 100)
        claims.check((guest["exits:hypercall"], guest["exits:mmio"]) == (hypercalls, accesses),
                     f"its exits: {guest['exits:hypercall']} of {hypercalls} hypercalls, {guest['exits:mmio']} of "
                     f"{accesses} accesses")
        claims.check(guest["instructions:G"] + guest["instructions:H"] == guest["instructions"],
                     "instructions of guest and host sum to all")
        claims.check(guest["sched:in"] > 10, f"it got the pCPU {guest['sched:in']} times")


# In addition to the permanent events and the trigger, five of these nine get a counter.
SETS = """count instructions; set r08 r08:u r08:k; set instructions:u instructions:k cycles:u;
set cycles:k r11:u r11""".replace("\n", " ")
TWO = f"sh -c '{SHORT} & {SHORT} & wait'"
RECIPES |= {
    "sets-60M": f"interval cycles 60M; per task; sub-intervals 9; {SETS}",
    "sets-10M": f"interval cycles 10M; per task; sub-intervals 9; {SETS}",
    "sets-1M": f"interval cycles 1M; per task; {SETS}",
    "sets-two": f"interval cycles 10M; per task; sub-intervals 9; {SETS}",
    "sets-pcpu": f"interval cycles 10M; per pcpu; {SETS}",
    "sets-exits": f"interval exits 500; per vcpu; count exits sched:out; {SETS}",
    "sets-too-big": "interval cycles 10M; per task; count r08 r08:u r08:k r11 r11:u; "
                    "set instructions instructions:u; set cycles",
}
ROTATION = (HOST + stat("sets-60M", SHORT) + stat("sets-10M", SHORT) + stat("sets-1M", SHORT) +
            stat("sets-two", TWO) + stat("sets-pcpu", SHORT) +
            stat("sets-exits", "tinyvm --loops 20000 --hvc 10 --rounds 1000") +
            stat("sets-too-big", SHORT).rstrip() + "; echo status $?\n")


def check_sets(run, claims, name, width, least):
    """In each interval of a steady loop, the scaled count of a multiplexed set equals the permanent count over all the
    time; and the sets have equal parts. An overflow that comes while Linux switches threads is lost, by the
    emulated PMU: such an interval is longer by a part, and is not judged."""
    rows = [interval["events"] for interval in read_intervals(run, name)["intervals"] if not interval["partial"]]
    lengths = [row["instructions"]["counted"] for row in rows]
    exact = [row for row in rows if abs(row["instructions"]["counted"] - width) <= 15000]
    claims.check(len(exact) >= least and len(exact) >= 0.97 * len(rows) - 3,
                 f"{name}: {len(exact)} of {len(rows)} intervals are {width} instructions long, at most 15000 off: "
                 f"{min(lengths)} to {max(lengths)}")
    # In the first of a task its program starts.
    steady = [row for row in exact if row["r08:u"]["counted"] > 0.8 * row["r08"]["counted"]]
    for event in ("r08", "r11"):
        off = sorted(abs(row[event]["counted"] / row[event]["live"] / row["instructions"]["counted"] - 1)
                     for row in steady)
        # A timer tick with everything that it triggers is 1% of the shortest parts.
        most = off[-1 - len(steady) // 200]
        claims.check(most < 0.01, f"{name}: {event} is within {100 * most:.3f} % of what is counted all the time, "
                                  f"in {len(steady)} intervals but {len(steady) // 200}; there {100 * off[-1]:.3f} %")
    uneven = [lives for lives in map(lives_of, steady) if any(abs(3 * live - 1) > 0.06 for live in lives)]
    lives = [live for row in steady for live in lives_of(row)]
    # Where tasks change places in the last part, one of them has a set of the other's.
    claims.check(len(uneven) <= (0.1 * len(steady) if name == "sets-two" else 0),
                 f"{name}: in all but {len(uneven)} intervals sets are live for a third of each: {min(lives):.4f} "
                 f"to {max(lives):.4f}")


def lives_of(events):
    return [value["live"] for event, value in events.items() if event != "instructions"]


def rotation(run, claims):
    for name, width, least in (("sets-60M", 60000000, 8), ("sets-10M", 10000000, 50),
                               ("sets-1M", 1000000, 500), ("sets-two", 10000000, 100),
                               ("sets-pcpu", 10000000, 50)):
        check_sets(run, claims, name, width, least)
    rows = [row["events"] for row in read_intervals(run, "sets-exits")["intervals"] if not row["partial"]]
    lives = [value["live"] for row in rows for event, value in row.items() if event.startswith("r")]
    claims.check(len(rows) >= 15 and {row["exits"]["counted"] for row in rows} == {498} and
                 0.32 < min(lives) and max(lives) < 0.35,
                 f"{len(rows)} intervals of 500 exits in 3 parts are of 3 x 166; sets are live for "
                 f"{min(lives):.4f} to {max(lives):.4f} of each")
    # In the first the VM is made.
    claims.check(sum(row["sched:out"]["counted"] for row in rows[1:]) < len(rows),
                 "that sets are switched is no switch of the vCPU's")
    claims.check(run.command_output(7).endswith("status 1\n") and not (run.out / "sets-too-big").exists() and
                 "set 1 does not fit into this CPU's hardware counters" in run.command_output(7, "err"),
                 "a set that does not even fit alone is refused")


def loop_ns(text):
    """How long the loops of `counted` took: on the pCPU, and the process that started it."""
    return [int(ns) - int(delay) + int(parent)
            for ns, delay, parent in re.findall(r" ns=(\d+) delay_ns=(\d+) parent_ns=(\d+)", text)]


# A Linux guest, busy, with intervals of its vCPU.
GUEST = HOST + """
guest g1 vcpus=1 memory=256 truth=no
guest g2 vcpus=1 memory=256 truth=no agent=yes autostart=no
workload g1 shares fast=80 slow=20
command printf 'interval cycles 10M\\nper vcpu\\ncount instructions instructions:G instructions:H\\n' > /tmp/vcpu && \
vperf stat --recipe /tmp/vcpu -o /out/vcpu --vm g1 -- sleep 1
command lab-guest stop g1; lab-guest start g2; vperf stat -e guest:system-calls,guest:context-switches,guest:page-faults,guest:forks -I 100 -o /out/calls -- \
sh -c 'sleep 4; lab-guest run g2 counted --loops 200000 --batch 10 --calls 1'
""".replace("\\\n", "")


def linux_guest(run, claims):
    check_lengths(run, claims, "vcpu", 90, 2000)
    report = read_intervals(run, "vcpu")
    subjects = {interval["subject"] for interval in report["intervals"]}
    claims.check(subjects == {"g1/0"}, f"the intervals are those of {subjects}")
    totals = {event: total["sum"] for event, total in report["totals"].items()}
    claims.check(totals["instructions:G"] + totals["instructions:H"] == totals["instructions"],
                 "instructions of guest and host sum to all")
    claims.check(totals["instructions:G"] > 0.99 * totals["instructions"],
                 f"the guest has {100 * totals['instructions:G'] / totals['instructions']:.2f} % of them")
    # The kernel is found meanwhile. The agent has what its memory has not: system calls, and forks without CONFIG_KALLSYMS_ALL.
    totals = {event: total["sum"] for event, total in read_intervals(run, "calls")["totals"].items()}
    claims.check(20000 <= totals["guest:system-calls"] <= 21000,
                 f"a program made 20000 system calls, the agent counted {totals['guest:system-calls']}")
    claims.check(totals["guest:context-switches"] > 0 and totals["guest:page-faults"] > 0 < totals["guest:forks"],
                 f"the agent counted {totals}")


# A guest's own events, whose kernel has no trace clock that is the counter. Since 6.4 KVM has the counter's offset elsewhere.
GUEST_EVENTS = HOST + """
guest g1 vcpus=2 memory=256 truth=no agent=yes
command vperf record --trace=sched,kvm --trace-guests=sched,irq,syscalls --no-account --no-samples --no-guest-memory --no-symbols \
-m 64M -o /out/guests -- lab-guest run g1 pingpong --rounds 8000
""".replace("\\\n", "")


def guest_events(run, claims):
    guests_own_events(run, claims, 100000)
    offsets = re.findall(r"^tsc ([0-9a-f]+) ", (run.recording("guests") / "vms").read_text(), re.M)
    claims.check(len(offsets) == 2 and "0" not in offsets, f"guests: offsets of the vCPUs' counters {offsets}")


# Two processes of a guest, by its memory; then a VM that leaves its guest all the time, at random times, whose share is the account's.
NAMES = HOST.rstrip() + """ kernel={host}
guest g1 vcpus=2 memory=256 truth=no {guest}
command vperf guests --json >/out/guests.json; for n in 1 2; do lab-guest spawn g1 shares fast=80 slow=20 >>/run/jobs; done
command nice -n -15 vperf record -e cpu-clock --no-agent -o /out/names -- lab-guest busy g1 3
command while read -r job; do lab-guest end g1 $job; done </run/jobs; lab-guest stop g1
command nice -n -15 vperf record --no-agent --no-guest-memory -o /out/mode -- \
tinyvm --hvc 2000 --mmio 1000 --rounds 150 --loops 4000000 --spread 512
""".replace("\\\n", "")


def attributed(run, claims):
    guest = json.loads((run.out / "guests.json").read_text())
    claims.check("Linux version" in json.dumps(guest), "the guest's kernel is found")
    report = json.loads(vperf("report", "--view", "unified", "--format", "json", str(run.out / "names")).stdout)
    own = [row for row in report["rows"] if row["vm"] == "g1" and row["process"] == "shares"]
    all_of_guest = sum(row["samples"] for row in report["rows"] if row["vm"] == "g1")
    fast, slow = (sum(row["samples"] for row in own if row["function"] == name) for name in ("share_a", "share_b"))
    claims.share("the first of two functions of two processes", fast, (fast + slow, report), 80)
    claims.check(fast + slow > 0.97 * all_of_guest > 1000,
                 f"{fast + slow} of {all_of_guest} samples of the guest are of the two functions")
    info = vperf("info", str(run.out / "names")).stdout
    claims.check("Guest samples attributed by: memory 100.00%" in info, "all samples of the guest have a process by its memory")


def names_of_guests(run, claims):
    attributed(run, claims)
    mode(run, claims)


# Linux 5.10: KVM receives all interrupts at one place, BPF programs have no atomic exchange and no helpers of later versions.
OLD_HOST = NAMES.format(host="bullseye", guest="") + "command vperf check --json >/out/check.json\n"


def names_on_old_host(run, claims):
    attributed(run, claims)
    mode(run, claims)
    features = {feature["name"]: feature for feature in json.loads((run.out / "check.json").read_text())["features"]}
    missing = [name for name in ("sampling programs", "accounting programs", "interval programs", "trace programs")
               if not features[name]["found"]]
    claims.check(not missing, f"vperf check finds all programs but {missing}")


# A host with pages of 16 KiB. Under this emulation, Linux guests of such a host hang at their first instructions.
LARGE_PAGES = HOST.rstrip() + """ kernel=sid flavour=16k
command getconf PAGESIZE
command nice -n -15 vperf record --no-agent --no-guest-memory -o /out/mode -- \
tinyvm --hvc 2000 --mmio 1000 --rounds 150 --loops 4000000 --spread 512
command vperf record -g --trace=sched,kvm -q --no-agent -o /run/rec -- tinyvm --hvc 1000 --mmio 500 --rounds 3 --wait 0.1; cp -r /run/rec /out
""".replace("\\\n", "")


def large_pages(run, claims):
    claims.check(run.command_output(1).strip() == "16384", f"the host's pages: {run.command_output(1)!r}")
    mode(run, claims)
    table = json.loads(vperf("exits", str(run.recording()), "--format", "json").stdout)
    exits = {row["reason"]: row["count"] for row in table["exits"]}
    claims.check((exits.get("HVC64"), exits.get("DABT_LOW")) == (3000, 1500), f"exits of 3000 hypercalls and 1500 accesses: {exits}")
    reasons = [row["reason"] for row in events(run, "--event", "kvm_exit", recording="rec")]
    # The account counts an exit when the next entry ends it, so not a VM's last one: an access that ends its program.
    claims.check((reasons.count("HVC64"), reasons.count("DABT_LOW")) == (3000, 1501), f"the trace has them and the last exit among its {len(reasons)}")


# The switch of worlds is nVHE's, and the hypervisor's own registers are VHE's.
HVHE = 'trixie append="id_aa64mmfr1.vh=0 arm64_sw.hvhe=1"'


def names_with_hvhe(run, claims):
    said = re.findall(r"kvm \[1\]: (.*)", (run.out / "host" / "kernel.log").read_text())
    claims.check("Hyp hVHE mode initialized successfully" in said, f"the host has hVHE: {said}")
    names_of_guests(run, claims)


def knows_switches(kernel):
    """Whether the host, since Linux 6.4, can run programs at the function that KVM calls first after guest mode: the switches to a
    guest and back are then known, and are the host's."""
    return tuple(int(number) for number in re.match(r"(\d+)\.(\d+)", kernel).groups()) >= (6, 4)


def program(run, number):
    """A VM of tinyvm: what it did, as it prints, and the ns that its instructions took, one each."""
    did = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", run.command_output(number).split("\n")[0])}
    return did, 6 * did["loops"] + 2 * did["spread"]


def mode(run, claims):
    """Ticks are the guest's where KVM lets in what ended its run."""
    commands = json.loads((run.out / "result.json").read_text())["commands"]
    executed = program(run, next(number for number, row in enumerate(commands, 1) if "-o /out/mode" in row["command"]))[1]
    report = json.loads(vperf("report", "--view", "host", "--format", "json", str(run.out / "mode")).stdout)
    sampled = sum(row["ns"] for row in report["rows"] if row["kind"] == "vm")
    claims.check(sampled > 20e6, f"{sampled / 1e6} ms of samples are the guest's")
    account = json.loads(vperf("account", "--format", "json", str(run.out / "mode")).stdout)
    states = {row["state"]: row["ns"] for row in account["states"]}
    whole = (states["guest"] + states["kernel"] + states["vmm"]) / 100
    claims.check(states["kernel"] > 5 * whole, f"the time in KVM is more than five times what the next claim allows: {states}")
    if knows_switches(run.info("mode")["kernel"]):
        # By samples with three standard deviations: of some 5,500, 70% are the guest's.
        claims.near("share of guest time by the account, and executed, %", states["guest"] / whole, executed / whole, 1.5)
        claims.near("share of guest time by samples, and executed, %", sampled / whole, executed / whole, 1 + 1.9)
        return
    # One instruction a nanosecond. Without VHE, the switch itself counts as the guest's: it is between KVM's events. The account
    # has the ways into the guest and out of it, too, up to KVM's events; of samples those are the guest's that come on the way in.
    claims.check(executed <= sampled <= states["guest"] + whole,
                 f"the guest executed {executed / 1e6} ms, samples have {sampled / 1e6} ms, the account {states['guest'] / 1e6} ms")


# The guest's share of the time by samples and by the account, at some 80,000 and some 20,000 exits per second. The exits come at
# random times: otherwise samples hit the same instructions again and again.
SHARE = HOST.rstrip() + """ kernel={host}
command nice -n -15 vperf record --no-agent --no-guest-memory -o /out/often -- \
tinyvm --hvc 2000 --mmio 1000 --rounds 300 --loops 4000000 --spread 512
command nice -n -15 vperf record --no-agent --no-guest-memory -o /out/seldom -- \
tinyvm --hvc 400 --mmio 100 --rounds 400 --loops 4000000 --spread 512
""".replace("\\\n", "")


def share_of_guest(run, claims):
    knows = knows_switches(run.info("often")["kernel"])
    for number, name, least, most in ((1, "often", 60000, 120000), (2, "seldom", 15000, 30000)):
        did, executed = program(run, number)
        exits, whole = did["hvc"] + did["mmio"], 1e9 * did["run_s"]
        rows = json.loads(vperf("report", "--view", "host", "--format", "json", str(run.recording(name))).stdout)["rows"]
        sampled = sum(row["ns"] for row in rows if row["kind"] == "vm")
        # Interrupts that come after the exit wait until this function unmasks them.
        after = sum(row["ns"] for row in rows if row["kind"] == "kernel" and row["function"] == "kvm_arch_vcpu_ioctl_run")
        states = json.loads(vperf("account", "--format", "json", str(run.recording(name))).stdout)["states"]
        account = next(row["ns"] for row in states if row["state"] == "guest")
        claims.note(f"{name}: {exits / did['run_s']:.0f} exits/s; ms: executed {executed / 1e6:.1f}, sampled {sampled / 1e6:.1f}, account "
                    f"{account / 1e6:.1f}, after exits {after / 1e6:.1f}; per exit the account has {(account - sampled) / exits:.0f} ns more than samples")
        claims.check(least < exits / did["run_s"] < most, f"{name}: {exits / did['run_s']:.0f} exits per second, {least} to {most} expected")
        # Three standard deviations of the samples, points.
        noise = 300 * math.sqrt(executed / whole * (1 - executed / whole) / (997 * did["run_s"]))
        if knows:
            # The account: the time that KVM takes to find why it left the guest, up to 150 ns an exit (1.2 points), is not known.
            claims.near(f"{name}: share of guest time by the account, and executed, %", 100 * account / whole, 100 * executed / whole,
                        1.2 if name == "often" else 0.3)
            claims.near(f"{name}: share of guest time by samples, and executed, %", 100 * sampled / whole, 100 * executed / whole, noise)
            claims.near(f"{name}: share of guest time by samples, %", 100 * sampled / whole, 100 * account / whole,
                        1 if name == "seldom" else 1 + noise)
            continue
        claims.check(executed < min(sampled, account), f"{name}: samples and account have more than the guest's own instructions")
        claims.check(sampled <= account + whole / 100 and account <= sampled + after + whole / 100,
                     f"{name}: the account has the time after exits, of which samples are the host's: {100 * sampled / whole:.2f} %, "
                     f"{100 * account / whole:.2f} %, {100 * (sampled + after) / whole:.2f} %")
        claims.near(f"{name}: share of guest time by samples, %", 100 * sampled / whole, 100 * account / whole, 1 if name == "seldom" else 2)


# Counts of a guest kernel, read from its memory, against its /proc.
BOOKS = "grep -h -e ctxt -e processes -e pgfault /proc/stat /proc/vmstat"
COUNTS = HOST.rstrip() + f""" kernel={{host}}
guest g1 vcpus=1 memory=256 truth=no kernel={{guest}}
command vperf stat -e guest:context-switches,guest:page-faults,guest:forks,time -I 100 --no-agent --vm g1 -o /out/counts -- \
sh -c "sleep 1; lab-guest run g1 sh -c '{BOOKS}; pingpong --rounds 3000; forkstorm --count 50 --rate 100; {BOOKS}'"
""".replace("\\\n", "")


# Event: its name in the books, how many the programs make, and the most that come with the search for the kernel and with grep.
COUNTED = {"guest:context-switches": ("ctxt", 6000, 400), "guest:page-faults": ("pgfault", 20, 400), "guest:forks": ("processes", 52, 10)}


def counts_of_guest(run, claims):
    report = json.loads(vperf("stat", "report", str(run.recording("counts")), "--format", "json").stdout)
    books = {}
    for lines in test_counters.outputs(run, "g1").values():
        for line in lines:
            if match := re.match(r"(ctxt|processes|pgfault) (\d+)", line):
                books.setdefault(match[1], []).append(int(match[2]))
    for event, (book, done, besides) in COUNTED.items():
        before, after = books[book]
        counted = sum(row["events"][event]["counted"] for row in report["intervals"])
        claims.check(done <= after - before <= counted <= after - before + besides,
                     f"{event}: the guest's own books say {after - before}, intervals {counted}")


# A VM whose memory is its own: the host's first read takes a page away from it, and it ends. vperf must not read.
PROTECTED_VM = "tinyvm --protected 1 --hvc 100 --loops 2000000"
PROTECTED = HOST.rstrip() + f""" kernel=sid append=kvm-arm.mode=protected
# kernels may say: protected VMs are experimental
command vperf record -g -e cpu-clock --trace=guest,kvm -o /out/rec -- {PROTECTED_VM} --rounds 200
command {PROTECTED_VM} --rounds 800 & vm=$!; sleep 0.5; vperf guests; vperf stat -e guest:context-switches,exits,time -d 1 -o /out/stat; \
timeout 10 vperf lend --vm vm-$vm -e task-clock -- sleep 1; kill -0 $vm && echo runs; wait $vm
command {PROTECTED_VM} --rounds 200 & vm=$!; sleep 0.5; at=$(awk '/rw-s.*zero/ {{split($1, a, "-"); print a[1]; exit}}' /proc/$vm/maps); \
dd if=/proc/$vm/mem bs=4096 count=1 skip=$((0x$at / 4096)) 2>/dev/null | od -An -v -tx4 | sort -u; wait $vm; echo "ended with $?"
""".replace("\\\n", "")


def protected(run, claims):
    loops = [int(n) for number in (1, 2, 3) for n in re.findall(r"loops=(\d+)", run.command_output(number))]
    claims.check(loops == [200 * 2000000, 800 * 2000000], f"recorded, counted and listed, the VM does all its work: {loops} loops")
    claims.check("runs" in run.command_output(2).split(), "it runs on when all commands have ended")
    told = run.command_output(1, "err")
    claims.check("memory encrypted (pKVM)" in told, f"it is said that its memory is not read: {told!r}"[:300])
    report = json.loads(vperf("report", "--view", "unified", "--format", "json", str(run.recording())).stdout)
    own = [row for row in report["rows"] if row["vm"]]
    claims.check(own and all(row["process"] in (None, "", "[unknown]") for row in own), f"its samples name no process: {own[:1]}")
    output = run.command_output(3)
    claims.check(re.sub(r"[ 0\n]+", "", output.split("ended")[0]) == "" and "ended with 2" in output and
                 "Bad address" in run.command_output(3, "err"), f"a read of its memory has nothing but zeros, and ends it: {output!r}"[:200])


CHAINS = HOST.rstrip() + """ kernel={host}
guest g1 vcpus=1 memory=256 truth=no {guest}
workload g1 calls --both
command nice -n -15 vperf record -g -e cpu-clock --no-agent -o /out/rec -- lab-guest busy g1 2
"""
# The names of the kernel's entry until Linux 5.13, and since.
READ_OF_5_10 = ["read", "el0_sync", "el0_sync_handler", "el0_svc", "do_el0_svc", "__arm64_sys_read", "ksys_read", "vfs_read"]
READ = ["read", "el0t_64_sync", "el0t_64_sync_handler", "el0_svc", "do_el0_svc", "__arm64_sys_read", "ksys_read", "vfs_read"]


def chains_of_guest(run, claims, read_calls=None):
    report, stacks = test_chains.stacks_of(run)
    test_chains.check_user(stacks, claims)
    test_chains.check_kernel(stacks, claims, read_calls or READ)
    test_chains.check_children(report, claims)
    test_chains.check_folded(run, claims)
    for kind, least in (("guest_user", 95), ("guest_kernel", 95)):
        ends = report["walks"][kind]
        total = sum(ends.values())
        claims.check(total > 50 and 100 * ends.get("whole", 0) >= least * total, f"of {total} walks of {kind}, at least {least} % are whole: {ends}")


def chains_of_old_guest(run, claims):
    chains_of_guest(run, claims, READ_OF_5_10)


# While the VM stands still, its guest's counter does: KVM's offset is another one then.
SUSPENDED = HOST + """
guest g1 vcpus=1 memory=256 truth=no agent=yes
command vperf record --trace=sched,kvm --trace-guests=sched --no-account --no-samples --no-guest-memory --no-symbols \
-m 64M -o /out/suspended -- sh -c 'lab-guest run g1 pingpong --rounds 1000; tests/lab/qmp /run/vlab/g1.qmp stop; sleep 0.5; \
tests/lab/qmp /run/vlab/g1.qmp cont; sleep 2; lab-guest run g1 pingpong --rounds 3000'
""".replace("\\\n", "")


def suspended(run, claims):
    said = re.findall(r"VM 'g1': .*was reset.*", run.command_output(1, "err"))
    claims.check(len(said) == 1, f"suspended: {said}")
    rows = events(run, recording="suspended")
    threads = sorted({row["tid"] for row in rows if row["machine"] == "guest" and row["comm"] == "pingpong"}, key=int)
    last = [row for row in rows if row["machine"] == "guest" and row["tid"] in threads[-2:]]
    bound = int(re.search(r"their times are accurate to (\d+) ns", run.info("suspended")["vms"][0]["agent"])[1])
    inside, outside = outside_of_guest_mode(rows, last, bound)
    claims.check(len(threads) == 4 and inside > 6000 and not outside,
                 f"suspended: {inside} events of the last 2 of {len(threads)} threads, {len(outside)} of them more than {bound} ns outside of guest mode {outside[:5]}")


# All of it there: the unit tests, and models that are WEKA's to the last digit.
WHOLE = HOST + """
command mkdir /run/unit && cd /run/unit && for test in $(dirname $(command -v vperf))/tests/unit/test_*; do \
[ -d $test ] || $test 2>&1 || failed="$failed $test"; done; [ -z "$failed" ] || { echo failed: $failed; exit 1; }
command tests/models/run vperf
""".replace("\\\n", "")


def whole(run, claims):
    passed = [int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", run.command_output(1))]
    claims.check(len(passed) > 10, f"{sum(passed)} unit tests in {len(passed)} programs pass")
    claims.check(not run.command_output(2), "models are as WEKA has them")


TESTS = [("64-bit Arm", PORT, port), ("64-bit Arm, intervals", INTERVALS, intervals)]
QUICK = ("64-bit Arm",)
FULL = [("64-bit Arm, sets", ROTATION, rotation), ("64-bit Arm, guest", GUEST, linux_guest),
        ("64-bit Arm, guest's events", GUEST_EVENTS, guest_events),
        ("64-bit Arm, guest's events, host trixie", GUEST_EVENTS.replace("arch=arm64", "arch=arm64 kernel=trixie"), guest_events),
        ("64-bit Arm, guest's events, host bullseye", GUEST_EVENTS.replace("arch=arm64", "arch=arm64 kernel=bullseye"), guest_events),
        ("64-bit Arm, a guest that was suspended", SUSPENDED, suspended),
        ("64-bit Arm, names", NAMES.format(host="bookworm", guest=""), names_of_guests),
        ("64-bit Arm, names, host and guest trixie", NAMES.format(host="trixie", guest="kernel=trixie"), names_of_guests),
        ("64-bit Arm, share of guest time", SHARE.format(host="bookworm"), share_of_guest),
        ("64-bit Arm, share of guest time, host bullseye", SHARE.format(host="bullseye"), share_of_guest),
        ("64-bit Arm, share of guest time, host trixie", SHARE.format(host="trixie"), share_of_guest),
        ("64-bit Arm, counts of a guest", COUNTS.format(host="trixie", guest="trixie"), counts_of_guest),
        ("64-bit Arm, counts of a guest, bookworm", COUNTS.format(host="bookworm", guest="bookworm"), counts_of_guest),
        ("64-bit Arm, counts of a guest, sid", COUNTS.format(host="sid", guest="sid"), counts_of_guest),
        ("64-bit Arm, counts of a guest, bullseye", COUNTS.format(host="bookworm", guest="bullseye"), counts_of_guest),
        ("64-bit Arm, a protected VM", PROTECTED, protected),
        ("64-bit Arm, names, guest bullseye", NAMES.format(host="bookworm", guest="kernel=bullseye"), names_of_guests),
        ("64-bit Arm, names, host bullseye", OLD_HOST, names_on_old_host),
        ("64-bit Arm, names, nVHE", NAMES.format(host="bookworm append=kvm-arm.mode=nvhe", guest=""), names_of_guests),
        ("64-bit Arm, names, hVHE", NAMES.format(host=HVHE, guest=""), names_with_hvhe),
        ("64-bit Arm, names, pKVM", NAMES.format(host="sid append=kvm-arm.mode=protected", guest=""), names_of_guests),
        ("64-bit Arm, names, host and guest sid", NAMES.format(host="sid", guest="kernel=sid"), names_of_guests),
        ("64-bit Arm, names, pages of 16 KiB", NAMES.format(host="sid", guest="kernel=sid flavour=16k"), names_of_guests),
        ("64-bit Arm, host with pages of 16 KiB", LARGE_PAGES, large_pages),
        ("64-bit Arm, chains, pages of 16 KiB", CHAINS.format(host="sid", guest="kernel=sid flavour=16k"), chains_of_guest),
        ("64-bit Arm, chains, host and guest sid", CHAINS.format(host="sid", guest="kernel=sid"), chains_of_guest),
        ("64-bit Arm, chains", CHAINS.format(host="bookworm", guest=""), chains_of_guest),
        ("64-bit Arm, chains, host bullseye", CHAINS.format(host="bullseye", guest=""), chains_of_guest),
        ("64-bit Arm, chains, guest bullseye", CHAINS.format(host="bookworm", guest="kernel=bullseye"), chains_of_old_guest),
        ("64-bit Arm, chains, host and guest trixie", CHAINS.format(host="trixie", guest="kernel=trixie"), chains_of_guest),
        ("64-bit Arm, whole", WHOLE, whole), ("64-bit Arm, selftest", test_selftest.ARM, test_selftest.arm)]
