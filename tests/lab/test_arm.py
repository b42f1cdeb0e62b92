# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold on a host of 64-bit Arm, whose emulated PMU counts exactly (see docs/lab.md)."""
import json
import re

from lab import vperf

HOST = "host arch=arm64 pcpus=1 icount=yes memory=1280\n"

# Its probes, its exact account, and whether the PMU is what the other tests take it for.
PORT = HOST + """
command vperf check --json
command vperf record --account -q -o /out/rec -- tinyvm --hvc 1000 --mmio 500 --rounds 3 --wait 0.1
command perf stat -x, -e instructions:G tinyvm --loops 100000 --rounds 10
command perf stat -x, -e instructions:u counted --loops 1000000
command perf stat -x, -e instructions:u counted --loops 2000000
"""


def parse_counts(text):
    """Event -> count of `perf stat -x,` output."""
    return {event: int(count) for count, event in re.findall(r"^(\d+),,([\w:-]+),", text, re.MULTILINE)}


def port(run, claims):
    probes = {probe["name"]: probe["found"] for probe in json.loads(run.command_output(1))}
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


# Intervals of a loop of known instructions, each recipe on the same work; and of a guest's.
LOOPS = 300000000
WORK = f"counted --wait 1 --loops {LOOPS}"
SHORT = "counted --loops 100000000"
RECIPES = {
    # The cycle counter's overflow comes in time: 10 million cycles, which are instructions here.
    "exact": "interval cycles 10M; per task; count instructions instructions:u",
    # An event counter's comes with the next system call: see docs/lab.md.
    "skid": "interval instructions 10M; per task; count instructions instructions:u",
    # Beside what is always live and the trigger, five of these nine find a counter.
    "sets": "interval cycles 60M; per task; sub-intervals 9; count instructions; set r08 r08:u r08:k; "
            "set instructions:u instructions:k cycles:u; set cycles:k r11:u r11",
    "guest": "interval exits 500; per vcpu; count instructions:G PMU/inst_retired/G exits:hypercall exits:mmio "
             "inject:interrupt",
}


def stat(name, work):
    """The command that records the work by the recipe of that name."""
    recipe = RECIPES[name].replace("; ", "\\n")
    return (f"command pmu=$(ls /sys/bus/event_source/devices | grep ^armv8) && "
            f"printf '{recipe}\\n' | sed s,PMU/,$pmu/, > /tmp/{name} && "
            f"vperf stat --recipe /tmp/{name} -o /out/{name} -- {work}\n")


INTERVALS = (HOST + stat("exact", WORK) + stat("skid", f"{SHORT} --batch 1000 --calls 1") +
             stat("sets", SHORT) +
             stat("guest", "tinyvm --loops 10000 --hvc 10 --mmio 5 --rounds 1000") +
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
    counts, sums = intervals_of(run, name)
    lengths = counts["instructions"]
    claims.check(len(lengths) >= least and all(abs(n - 10000000) <= tolerance for n in lengths),
                 f"{name}: {len(lengths)} intervals of 10000000 are {min(lengths):.0f} to "
                 f"{max(lengths):.0f} instructions long, at most {tolerance} off")
    return sums


def intervals(run, claims):
    sums = check_lengths(run, claims, "exact", 178, 2000)
    check_lengths(run, claims, "skid", 60, 7000)
    reference = parse_counts(run.command_output(5, "err"))
    for event in ("instructions", "instructions:u"):
        claims.near(f"{event} of all intervals, % of perf stat's of the whole run",
                    100 * sums[event] / reference[event], 100, 0.1)
    start = parse_counts(run.command_output(6, "err"))["instructions:u"]
    claims.near(f"instructions of {LOOPS} loops of 6, in the intervals",
                sums["instructions:u"] - start, 6 * LOOPS, 3000)

    counts, rotated = intervals_of(run, "sets")
    worst = max(abs(value / whole - 1) for value, whole in zip(counts["r08"], counts["instructions"]))
    claims.check(len(counts["r08"]) >= 8 and worst < 0.01,
                 f"a set that rotates is within {100 * worst:.3f} % of the same event unrotated, in each of "
                 f"{len(counts['r08'])} intervals")
    claims.near("instructions:u of a set that rotates, % of the loop's",
                100 * rotated["instructions:u"] / (6 * 100000000), 100, 1)

    totals = read_intervals(run, "guest")["totals"]
    guest = {event: total["sum"] for event, total in totals.items()}
    claims.check(totals["inject:interrupt"]["live"] == 0,
                 "what Arm's KVM does not tell, injections, is missing and not 0")
    claims.near("instructions of a guest, in its intervals", guest["instructions:G"], 1000 * (6 * 10000 + 73), 100)
    named = next(event for event in guest if event.endswith("/inst_retired/G"))
    claims.check(guest[named] == guest["instructions:G"],
                 f"{named}: {guest[named]}, instructions:G: {guest['instructions:G']}")
    claims.check((guest["exits:hypercall"], guest["exits:mmio"]) == (10000, 5000),
                 f"exits of a guest: {guest['exits:hypercall']} of 10000 hypercalls, {guest['exits:mmio']} of "
                 f"5000 accesses")

    alone, with_it = min(loop_ns(run.command_output(7))), min(loop_ns(run.command_output(1)))
    claims.check(with_it < 1.001 * alone,
                 f"the loop takes {100 * (with_it / alone - 1):.4f} % longer with intervals of 10000000 "
                 f"instructions, less than 0.1 %")


def loop_ns(text):
    """What `counted` says of its loop."""
    return [int(found) for found in re.findall(r" ns=(\d+)", text)]


# A Linux guest, busy, with intervals of its vCPU.
GUEST = HOST + """
guest g1 vcpus=1 memory=256 truth=no
workload g1 length=8 shares fast=80 slow=20
command printf 'interval cycles 10M\\nper vcpu\\ncount instructions instructions:G instructions:H\\n' > /tmp/vcpu && \
vperf stat --recipe /tmp/vcpu -o /out/vcpu --vm g1 -- sleep 1
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


# All of it there: the unit tests, and models that are WEKA's to the last digit.
WHOLE = HOST + """
command cd /tmp && for test in $(dirname $(command -v vperf))/tests/unit/test_*; do \
[ -d $test ] || $test 2>&1 || exit; done
command tests/models/run vperf
""".replace("\\\n", "")


def whole(run, claims):
    passed = [int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", run.command_output(1))]
    claims.check(len(passed) > 10, f"{sum(passed)} unit tests in {len(passed)} programs pass")
    claims.check(not run.command_output(2), "models are as WEKA has them")


TESTS = [("64-bit Arm", PORT, port), ("64-bit Arm, intervals", INTERVALS, intervals)]
FULL = [("64-bit Arm, guest", GUEST, linux_guest), ("64-bit Arm, whole", WHOLE, whole)]
