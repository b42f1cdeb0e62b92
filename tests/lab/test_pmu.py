# SPDX-License-Identifier: GPL-2.0-or-later
"""Lab hosts with a PMU (pmu=yes): AMD's core counters in the lab's own QEMU, exact (docs/lab.md)."""
import collections
import csv
import json
import os
import re
import subprocess

import test_counters
from lab import LATE, REPOSITORY, SIGMAS, VPERF, rows_named, run_scenario, samples_of, share_bound, vperf
from test_account import check_closing, read
from test_counters import LOOPS, check_moved, check_rounds, check_signals, check_threads, lines_of, said
from test_profile import end, start

COUNT_LOOPS = VPERF.parent / "tests/lab/count-loops"
EFLAGS_IF = 0x200
AT_INTERRUPT = 512  # a flag of a guest_sample
MOST_OFF, ACCURACY = 0.01, 0.1  # percent of a thread's count: where it is not touched, and everywhere

# The host's own counters, by perf and by libvperf, and NMIs.
COUNTS = """
# kernels may say: unchecked MSR access error
host pmu=yes pcpus=1 memory=1536
command vperf check >/out/check.txt; dmesg | grep 'PMU driver'
command for n in 1000000 1000000 11000000; do perf stat -x, -e instructions:u counted --loops $n 2>&1 >/dev/null | grep instr; done
command for way in user call; do {count_loops} --way $way --exact 1; done
command {count_loops} --threads 3 --loops 255000 --rounds 20 --event cycles:u --period 1000000
command cd /tmp; for event in cycles instructions; do perf record -q -o p.data -c 1000000 -e $event:u counted --loops 50000000 >/dev/null; \
perf script -i p.data -F period,ip,sym 2>/dev/null | sed "s/^ */$event /"; done
command cd /tmp; for event in instructions:k cpu-clock:k; do perf record -q -o q.data -c 20011 -e $event --intr-regs=flags -a -- \
sh -c 'find /sys/devices -name uevent | wc -l; for i in 1 2 3 4 5; do sh -c :; done' >/dev/null; \
perf script -i q.data -F iregs 2>/dev/null | sed "s/^/$event /"; done
command perf stat -x, -e branch-misses counted --loops 1000 >/dev/null 2>&1; dmesg | grep 'unchecked MSR'; true
""".replace("\\\n", "")


def perf_counts(text):
    """The counts of `perf stat -x,` runs of one event, in order."""
    return [int(count) for count in re.findall(r"^(\d+),,", text, re.MULTILINE)]


def masked(text):
    """Event -> (samples, samples with interrupts masked), of `perf script -F iregs`."""
    ret = {}
    for event, flags in re.findall(r"^([\w:-]+).*FLAGS:0x([0-9a-f]+)", text, re.MULTILINE):
        samples, off = ret.get(event, (0, 0))
        ret[event] = samples + 1, off + (not int(flags, 16) & EFLAGS_IF)
    return ret


def counts(run, claims):
    claims.check("hardware counter" in (run.out / "check.txt").read_text() and "AMD PMU driver" in run.command_output(1),
                 f"the host has AMD's PMU: {run.command_output(1).strip()}")
    one, two, more = perf_counts(run.command_output(2))
    # The rest of the program is not quite the same: addresses at random, numbers that are printed with more digits.
    claims.near("instructions:u of two equal runs, difference", two - one, 0, 1000)
    claims.near("instructions:u of 10,000,000 loops of six", more - one, 60000000, 1000)
    lines = lines_of(run.command_output(3))
    for way in ("user", "call"):
        check_rounds(claims, f"by {'RDPMC' if way == 'user' else 'read(2)'}", [line for line in lines if line.get("way", way) == way][:12], 150)
    threads = lines_of(run.command_output(4))
    check_threads(claims, "cycles:u with overflow signals", threads, 3, 1)
    check_signals(claims, "cycles:u", threads)
    text = run.command_output(5)
    for event, most in (("cycles", 302), ("instructions", 300)):
        samples = re.findall(rf"^{event} +1000000 +[0-9a-f]+ +(\S+)", text, re.MULTILINE)
        inside = samples.count("count_down")
        claims.check(300 <= len(samples) <= most and len(samples) - inside <= 1,
                     f"{event}:u, one sample for 1,000,000: {len(samples)} of 300,000,000 instructions, {inside} in the loop")
    found = masked(run.command_output(6))
    samples, off = found.get("instructions:k", (0, 0))
    timer, timer_off = found.get("cpu-clock:k", (0, 0))
    claims.check(samples > 1000 and 0.02 < off / samples < 0.5 and timer > 1000 and timer_off == 0,
                 f"{off} of {samples} samples by NMI hit code with interrupts masked; by the timer {timer_off} of {timer}")
    claims.check("unchecked MSR access error: WRMSR to 0xc001020" in run.command_output(7),
                 "an event that the emulator does not count is refused: the kernel complains")


def time_share(claims, report, what, expected):
    """The first of the two functions of `shares`, by the time (with a fixed period: the events) that samples represent; the sampling
    error follows from their number."""
    key = "ns" if "ns" in report else "events"
    fast, slow = (sum(row[key] for row in rows_named(report, function)) for function in ("share_a", "share_b"))
    samples = report["samples_taken"] * (fast + slow) / report[key]
    claims.check(samples > 1000, f"{what}: {samples:.0f} samples")
    claims.near(f"{what}, %", 100 * fast / (fast + slow), expected, share_bound(expected, samples, 0))


# A guest sampled by NMI; it has a vPMU with exact counts; and what the host counts of a VM of known instructions.
GUEST = """
host pmu=yes pcpus=1
guest g1 vcpus=1 memory=384 agent=yes
file g1 {count_loops} /bin/count-loops
{start}
command vperf record -o /out/rec -- lab-guest busy g1 3
{end}
command for way in user call; do lab-guest run g1 count-loops --way $way --exact 1; done
command for n in 10000000 20000000; do perf stat -x, -e instructions:G tinyvm --loops $n 2>&1 >/dev/null | grep instr; done
""".replace("{start}", start("g1", "shares fast=80 slow=20")).replace("{end}", end("g1"))


def guest(run, claims):
    report = run.report("guest", "--vm", "g1")
    time_share(claims, report, "share_a of both, by NMI", 80)
    account = read("account", run)
    halted = sum(row["ns"] for row in account["states"] if row["state"] == "halted")
    idle = report["shares"]["idle"] / 100 * report["ns"]
    claims.check(report["unit"] == "ns" and halted == 0 and idle < 0.002 * report["ns"],
                 f"the guest was never halted, and of {report['ns'] / 1e6:.0f} ms {idle / 1e6:.2f} are idle in the profile")
    check_closing(claims, account)
    claims.check(int(run.facts()["lost"]) == 0, "nothing was lost")
    log = (run.out / "guest-g1" / "kernel.log").read_text()
    claims.check("AMD PMU driver" in log, "the guest's kernel has a PMU")
    jobs = [lines for lines in said(run, "g1").values() if any("loop" in line for line in lines)]
    for way, lines in zip(("RDPMC", "read(2)"), jobs):
        check_rounds(claims, f"in the guest, by {way}", lines, 150)
    claims.check(len(jobs) == 2, f"{len(jobs)} of 2 clients counted in the guest")
    small, big = perf_counts(run.command_output(5))
    claims.near("instructions:G of 10,000,000 loops of two", small, 20000000, 50)
    claims.near("instructions:G of 10,000,000 loops more", big - small, 20000000, 0.5)


# Two vCPUs on pCPUs of their own, one of them shared with another VM; with a frequency, and with a fixed period. Under icount the pCPUs take
# turns: while one executes, time passes for the other, which has no cycles then. So samples do not cover all of a vCPU's time here.
SIDE_BY_SIDE = """
host pmu=yes pcpus=2 memory=1536
guest g1 vcpus=2 memory=384 pin=0,1
guest g2 vcpus=1 memory=256 pin=1
workload g1 copies=2 shares fast=80 slow=20
workload g2 shares fast=30 slow=70
command vperf record -e cycles -d 3 -o /out/frequency
command vperf record -e cycles -c 1000003 -d 5 -o /out/period
"""


def side_by_side(run, claims):
    for recording in ("frequency", "period"):
        account = read("account", run, recording=recording)
        for vm, expected in (("g1", 80), ("g2", 30)):
            report = run.report("guest", "--vm", vm, recording=recording)
            time_share(claims, report, f"{recording}, {vm}, share_a of both, by NMI", expected)
        check_closing(claims, account)
        claims.check(int(run.facts(recording)["lost"]) == 0, f"{recording}: nothing was lost")


# NMIs also come while the programs at the scheduler's switches write: those samples are not lost, nor is what was being written.
SWITCHES = """
host pmu=yes pcpus=1 memory=1536
guest g1 vcpus=1 memory=384
workload g1 idler 0.0001 0.0003
command sysctl -q kernel.perf_cpu_time_max_percent=100; echo 0 >/sys/module/kvm/parameters/halt_poll_ns
command vperf record -e cycles -c 50021 -d 2 -o /run/rec && cp -r /run/rec /out/
"""


def switches(run, claims):
    told = run.command_output(2, "err")
    claims.check(" 0 lost" in told and "stand for" not in told, f"nothing was lost: {told!r}")
    stream, = json.loads(vperf("info", str(run.recording()), "--json").stdout)["streams"]
    samples = sum(stream[kind] for kind in ("host_samples", "vcpu_samples", "guest_samples"))
    claims.check(stream["vcpu_in"] > 2000 and abs(stream["vcpu_in"] - stream["vcpu_out"]) <= 1, f"{stream['vcpu_in']} times on the pCPU, {stream['vcpu_out']} off it")
    found = sum(row["events"] for row in run.report("host")["rows"] if "note_vcpu_switch" in row["function"]) / 50021
    # 1.5 switches of 200 to 400 instructions for each 300 us, of which the program is an eighth at most.
    claims.check(0.0005 * samples < found < 0.02 * samples, f"{found:.0f} of {samples} samples hit the programs that write at switches")


# Each pCPU has its own count, even if another one is busy.
TWO_PCPUS = """
host pmu=yes pcpus=2 memory=1536
command for cpu in 0 1; do taskset -c $cpu perf stat -x, -e instructions:u counted --loops 10000000 2>&1 >/dev/null | grep instr; done
command taskset -c 1 counted --loops 500000000 & taskset -c 0 perf stat -x, -e instructions:u counted --loops 10000000 2>&1 >/dev/null | grep instr; kill $!; wait
command taskset -c 0 perf stat -x, -e instructions:u counted --loops 20000000 2>&1 >/dev/null | grep instr
command taskset -c 0 perf stat -x, -e cycles,task-clock counted --loops 200000000 2>&1 >/dev/null
command taskset -c 1 counted --loops 2000000000 & sleep 0.1; perf stat -a -A -x, -e cycles,cpu-clock taskset -c 0 counted --loops 200000000 2>&1 >/dev/null; \
kill $!; wait
""".replace("\\\n", "")


def cycles_of_time(text):
    """Per pCPU: its cycles by its time. At one cycle per ns, what part of the time it executed."""
    rows = [line.split(",") for line in text.splitlines() if line.startswith("CPU")]
    cycles, clock = ({row[0]: float(row[1]) for row in rows if row[3] == event} for event in ("cycles", "cpu-clock"))
    return {pcpu: cycles[pcpu] / (1e6 * clock[pcpu]) for pcpu in sorted(cycles)}


def two_pcpus(run, claims):
    alone, beside, more = (perf_counts(run.command_output(number)) for number in (1, 2, 3))
    # The two programs start with another address space each: some 20 instructions of the dynamic linker.
    claims.check(len(alone) == 2 and len(beside) == len(more) == 1 and max(alone + beside) - min(alone + beside) <= 2000,
                 f"the same program on pCPU 0, on 1, and beside a busy one: {alone + beside} instructions in user space")
    claims.near("instructions:u of 10,000,000 loops of six", more[0] - alone[0], 60000000, 2000)
    # Under icount only one pCPU executes at a time, and the clock goes on for both. Claims about a pCPU's time by its cycles need the other
    # one to be idle.
    cycles, task_clock = (float(line.split(",")[0]) for line in run.command_output(4).splitlines())
    both = cycles_of_time(run.command_output(5))
    claims.near("cycles per ns of a program, the other pCPU idle", cycles / (1e6 * task_clock), 1, 0.01)
    claims.near("cycles per ns of two busy pCPUs together", sum(both.values()), 1, 0.01)
    claims.check(len(both) == 2 and max(both.values()) < 0.9, f"neither has cycles for all of its time: {both}")


# Interrupts that KVM injects, each with a long handler with interrupts masked, in which timers of the host are due.
INJECTED = """
host pmu=yes pcpus=1 memory=1536
command perf record -q -o /tmp/p.data -e cpu-clock -F 9973 -a -- tinyvm --tick 500 --period 2000 --handler 200000
"""


def injected(run, claims):
    done = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", run.command_output(1))}
    # The timer may be due once more before the guest has stopped it.
    claims.check(done["tick"] == 500 and done["tick"] <= done["handled"] <= done["tick"] + 1,
                 f"the guest handled {done['handled']} interrupts of the {done['tick']} that it waited for")


# The same program's TLB misses, several times. Its second half has another speed by the machine's clock.
TLB = """
host pmu=yes pcpus=1 memory=1536
command for i in 1 2 3 4; do perf stat -x, -e dTLB-load-misses:u pages --mib 64 --rounds 20 2>&1 >/dev/null | grep dTLB; done
command perf stat -x, -e dTLB-load-misses:u pages --mib 64 --huge 1 --rounds 20 2>&1 >/dev/null | grep dTLB
"""


def tlb(run, claims):
    misses = perf_counts(run.command_output(1))
    claims.check(len(misses) == 4 and min(misses) > 1000 and max(misses) - min(misses) <= 0.01 * max(misses),
                 f"TLB misses of the same program, four times: {misses}")
    huge, = perf_counts(run.command_output(2))
    # 64 MiB are 32 huge pages, which the TLB holds; what is left is the rest of the program.
    claims.check(0 < huge < 0.01 * max(misses), f"TLB misses of the same accesses to huge pages: {huge}")


# Branches, loads and stores, which are counted by other code than instructions are: one branch in each loop of `counted`,
# one access and one branch for each line of `lines`. Counts that grow with a program's run time are exact.
EVENTS = """
# kernels may say: unchecked MSR access error
host pmu=yes pcpus=1 memory=1536
command for n in 1000000 3000000; do perf stat -x, -e instructions:u,branches:u,r00c4:u counted --loops $n 2>&1 >/dev/null | grep :u; done
command for store in 0 1; do for n in 100 300; do perf stat -x, -e instructions:u,branches:u,r0129:u,r0229:u lines --store $store --rounds $n 2>&1 >/dev/null | \
grep :u; done; done
command cd /tmp; perf record -q -o p.data -c 100000 -e branches:u counted --loops 10000000 >/dev/null; perf script -i p.data -F period,ip,sym 2>/dev/null
command perf stat -x, -e cache-misses counted --loops 1000 >/dev/null 2>&1; dmesg | grep 'unchecked MSR'
""".replace("\\\n", "")
LINES = 256  # in 16 KiB


def more(text, events):
    """By how much each event of the second of two runs is more than that of the first, run after run."""
    counts = perf_counts(text)
    return [[counts[begin + events + event] - counts[begin + event] for event in range(events)] for begin in range(0, len(counts), 2 * events)]


def events(run, claims):
    (instructions, branches, taken), = more(run.command_output(1), 3)
    # Other addresses and longer numbers make the rest of the program some instructions longer, of which some are branches.
    rest = abs(instructions - 12000000)
    claims.check(rest <= 1000, f"instructions:u of 2,000,000 loops of six: {instructions}")
    for what, count in (("branches", branches), ("branches that were taken", taken)):
        claims.check(abs(count - 2000000) <= rest, f"{what} of 2,000,000 loops: {count}; the rest of the program has {rest} instructions more or less")
    for what, (_, branches, loads, stores) in zip(("loads", "stores"), more(run.command_output(2), 4)):
        expected = (200 * LINES, 0) if what == "loads" else (0, 200 * LINES)
        # A round calls a function and looks at the clock: some branches, loads and stores of its own.
        for name, count, lines in zip(("branches", "loads", "stores"), (branches, loads, stores), (200 * LINES, *expected)):
            claims.check(lines <= count <= lines + 200 * 60, f"200 rounds of 256 {what}: {count} {name} for {lines} of the lines")
    samples = re.findall(r"^ *100000 +[0-9a-f]+ +(\S+)", run.command_output(3), re.MULTILINE)
    claims.check(100 <= len(samples) <= 101 and samples.count("count_down") >= len(samples) - 1,
                 f"branches:u, one sample for 100,000: {len(samples)} for 10,000,000 loops, {samples.count('count_down')} in the loop")
    claims.check("unchecked MSR access error: WRMSR to 0xc001020" in run.command_output(4), "without a model of the caches their events are refused")


# The model of the caches, and PerfMonV2. Memory that fits a cache has no misses of it after the first round; memory in order that
# is larger than the cache misses it with each line.
CACHES = """
host pmu=v2 caches=32,512 pcpus=1 memory=1536
command grep -o -m 1 perfmon_v2 /proc/cpuinfo
command for way in '16 100' '16 300' '256 20' '256 40' '4096 4' '4096 8'; do set -- $way; \
perf stat -x, -e instructions:u,cycles:u,rc860:u,cache-misses:u,r0129:u lines --kib $1 --rounds $2 2>&1 >/dev/null | grep :u; done
command for n in 1000000 1000000 11000000; do perf stat -x, -e instructions:u counted --loops $n 2>&1 >/dev/null | grep instr; done
command cd /tmp; for event in cycles instructions; do perf record -q -o p.data -c 1000000 -e $event:u counted --loops 50000000 >/dev/null; \
perf script -i p.data -F period,ip,sym 2>/dev/null | sed "s/^ */$event /"; done
""".replace("\\\n", "")
PENALTY_L1, PENALTY_L2 = 10, 60


def caches(run, claims):
    claims.check(run.command_output(1).strip() == "perfmon_v2", "the processor has PerfMonV2")
    for (kib, rounds, l1, l2), found in zip(((16, 200, 0, 0), (256, 20, 1, 0), (4096, 4, 1, 1)), more(run.command_output(2), 5)):
        instructions, cycles, l1_misses, l2_misses, _ = found
        lines = rounds * kib * 1024 // 64
        # The rest of the program, and the kernel's interrupts between, take some lines out.
        claims.near(f"{kib} KiB, {rounds} rounds: misses of the L1 cache", l1_misses, l1 * lines, 0.01 * lines)
        claims.near(f"{kib} KiB, {rounds} rounds: misses of the L2 cache", l2_misses, l2 * lines, 0.01 * lines)
        expected = instructions + PENALTY_L1 * l1_misses + PENALTY_L2 * l2_misses
        claims.near(f"{kib} KiB: cycles, % of instructions and penalties", 100 * cycles / expected, 100, 1)
    one, two, longer = perf_counts(run.command_output(3))
    claims.near("instructions:u of two equal runs, difference", two - one, 0, 1000)
    claims.near("instructions:u of 10,000,000 loops of six", longer - one, 60000000, 1000)
    for event in ("cycles", "instructions"):
        samples = re.findall(rf"^{event} +1000000 +[0-9a-f]+ +(\S+)", run.command_output(4), re.MULTILINE)
        claims.check(300 <= len(samples) <= 303 and samples.count("count_down") >= len(samples) - 2,
                     f"{event}:u, one sample for 1,000,000: {len(samples)} of 300,000,000 instructions, {samples.count('count_down')} in the loop")


# Intervals of known instructions, of a task and of a vCPU of a VM that starts during the recording; and of sets that take turns.
INTERVAL = 10000000
RECIPES = {"task": f"interval instructions {INTERVAL}; per task; count instructions instructions:u cycles",
           "vcpu": f"interval instructions {INTERVAL}; per vcpu; count instructions instructions:G instructions:H exits",
           "sets": f"interval instructions {INTERVAL}; per task; sub-intervals 9; count instructions; set r00c0 cycles:u dTLB-load-misses; "
                   "set cycles cycles:k instructions:k; set iTLB-load-misses dTLB-load-misses:u r00c0:u"}


def stat_command(name, work):
    """The recording is made in memory: a file of the share comes in the machine's time."""
    recipe = RECIPES[name].replace("; ", "\\n")
    return f"command printf '{recipe}\\n' >/tmp/{name} && vperf stat --recipe /tmp/{name} -o /tmp/{name}.rec -- {work} && cp -r /tmp/{name}.rec /out/{name}\n"


INTERVALS = ("host pmu=yes pcpus=1 memory=1536\n" + stat_command("task", "counted --loops 60000000") + stat_command("vcpu", "tinyvm --loops 100000000") +
             stat_command("sets", "counted --loops 100000000"))


def intervals_of(run, name):
    """All intervals of a recording, and the sums of their events."""
    report = json.loads(vperf("stat", "report", str(run.out / name), "--format", "json").stdout)
    return report["intervals"], {event: total["sum"] for event, total in report["totals"].items()}


def check_lengths(claims, name, rows, most):
    """The overflow's interrupt comes at the instruction; it is taken within the kernel's next instructions, or at the end of a part where
    interrupts of counters are off, because the kernel changes counters."""
    lengths = [row["events"]["instructions"]["counted"] for row in rows if not row["partial"]]
    claims.check(len(lengths) >= most and all(0 <= n - INTERVAL <= 1000 for n in lengths),
                 f"{name}: {len(lengths)} whole intervals of {INTERVAL} instructions are {min(lengths)} to {max(lengths)} long")


def intervals(run, claims):
    rows, sums = intervals_of(run, "task")
    check_lengths(claims, "task", rows[1:], 34)
    claims.near("instructions:u of 60,000,000 loops of six and the start of the program", sums["instructions:u"], 360000000, 200000)
    rows, sums = intervals_of(run, "vcpu")
    check_lengths(claims, "vCPU that appears", rows, 10)
    early = [row["events"]["instructions"]["counted"] for row in rows if row["partial"]]
    claims.check(len(early) <= 8, f"before its trigger was open, and at its end, it had these: {early}")
    claims.near("instructions:G of 100,000,000 loops of two", sums["instructions:G"], 200000000, 50)
    rows, _ = intervals_of(run, "sets")
    whole = [row["events"] for row in rows[1:] if not row["partial"]]
    off = [abs(row["r00c0"]["counted"] / row["r00c0"]["live"] / row["instructions"]["counted"] - 1) for row in whole]
    # As on 64-bit Arm (test_arm.check_sets): a timer tick with everything that it triggers is 1% of the shortest parts.
    claims.check(len(whole) >= 50 and max(off) < 0.01,
                 f"sets that take turns: in {len(whole)} intervals, the instructions of a set are within {100 * max(off):.3f} % of those counted all the time")

# Guest's and host's parts of a count. With PerfMonV2 perf starts and stops all counters at once; without, one after the other.
RECIPES["parts"] = f"interval instructions {INTERVAL}; per vcpu; count instructions instructions:G instructions:H sched:in"
PARTS = "host pmu=v2 pcpus=1 memory=1536\n" + stat_command("parts", "tinyvm --loops 100000000")


def parts(run, claims):
    rows, sums = intervals_of(run, "parts")
    claims.check(len(rows) > 10 and sums["sched:in"] > 5, f"{len(rows)} intervals, {sums['sched:in']} times on the pCPU")
    claims.near("instructions:G and instructions:H, less all instructions", sums["instructions:G"] + sums["instructions:H"] - sums["instructions"], 0, 0.5)
    claims.near("instructions:G of 100,000,000 loops of two", sums["instructions:G"], 200000000, 50)


# A CPI model against the truth: cycles are instructions and a known penalty for each TLB miss; in a guest, whose addresses are
# translated twice, also one for each nested miss (docs/lab.md), of which there are hardly any with huge pages. The same work natively and
# in a guest. The counter of the watchdog is needed.
CPI_INTERVAL = 1000000
MISSES = ("dTLB-load-misses", "iTLB-load-misses")
PENALTY = 20
RECIPES["model"] = f"interval instructions {CPI_INTERVAL}; per task; count instructions cycles {' '.join(MISSES)}"
RECIPES["guest"] = RECIPES["model"].replace("per task", "per vcpu") + " exits"
NESTED, PENALTY_NESTED = "r00f0", 10  # the emulator's own event
RECIPES["nested"] = RECIPES["guest"].replace(" exits", f" {NESTED} exits")
PAGES = "sh -c 'for loops in 400 100 30 10 3 60 200 1000; do pages --mib 8 --rounds 3 --loops $loops; sh -c :; done'"
# The same mix of misses in both, so that a guest's longer walks are most of what differs. Some ten intervals have the end of one program
# and the start of the next: with as many others only, a line through all of them can be as good as a split.
RECIPES["walk"], RECIPES["walk-nested"] = RECIPES["model"], RECIPES["nested"]
EVEN = "sh -c 'for loops in 4 5 6; do pages --mib 8 --rounds 900 --loops $loops; done'"
CPI = ("host pmu=yes pcpus=1 memory=1536 append='nmi_watchdog=0 transparent_hugepage=never'\nguest g1 vcpus=1 memory=384\n" + stat_command("model", PAGES) +
       stat_command("nested", f"lab-guest run g1 {PAGES}") + stat_command("walk", EVEN) + stat_command("walk-nested", f"lab-guest run g1 {EVEN}"))


def check_costs(run, claims, where, name, penalties):
    """By regression of cycles per instruction, by misses per 1000 instructions: cycles of a miss of each kind."""
    fit = json.loads(vperf("model", "linear", str(run.out / name), "--format", "json").stdout)["linear"]
    found = {predictor["name"]: 1000 * predictor["coefficient"] for predictor in fit["predictors"]}
    for event, cycles in penalties.items():
        claims.near(f"{where}: cycles of one of {event}, by regression", found[event], cycles, 0.05 * cycles)


def check_sum(claims, where, sums, penalties):
    """Cycles are instructions and penalties."""
    expected = sums["instructions"] + sum(cycles * sums[event] for event, cycles in penalties.items())
    claims.near(f"{where}: cycles of all, % of what instructions and misses cost", 100 * sums["cycles"] / expected, 100, 0.1)


def check_inflation(run, claims):
    """The increase of CPI from native to guest, by its parts: all of it is TLB misses; exits have some that cost less."""
    (run.out / "groups").write_text(f"misses: {', '.join(MISSES)}, {NESTED}, exits\n")
    compared = json.loads(vperf("model", "compare", str(run.out / "model"), str(run.out / "nested"), "--groups", str(run.out / "groups"),
                                "--merged", str(run.out / "merged.csv"), "--format", "json").stdout)["comparison"]
    parts = {part["name"]: part for part in compared["groups"]}
    whole = compared["virtualized"]["mean"] - compared["native"]["mean"]
    claims.near("parts of the increase, sum, % of the increase", 100 * sum(part["more"] for part in parts.values()) / whole, 100, 1e-6)
    for side in ("native", "virtualized"):
        claims.near(f"{side}: cycles per instruction without a miss", parts["(constant)"][side], 1, 0.005)
        claims.near(f"{side}: CPI by misses, % of what is above 1", 100 * parts["misses"][side] / (compared[side]["mean"] - 1), 100, 10)


def nodes_of(node):
    return [node] + (nodes_of(node["below"]) + nodes_of(node["above"]) if "below" in node else [])


def costs_in(node, event):
    """Cycles of one event by each leaf's equation that has it."""
    return [1000 * term["value"] for leaf in nodes_of(node) if "below" not in leaf for term in leaf.get("coefficients", []) if term["input"] == event]


def check_tree(run, claims):
    """Where a miss costs more in the guest, and nested misses are no column, the model tree of both splits on the side."""
    event = MISSES[0]
    merged, by_miss, columns = run.out / "walks.csv", run.out / "walks-by-miss.csv", [event, "virtualized", "cpi"]
    vperf("model", "compare", str(run.out / "walk"), str(run.out / "walk-nested"), "--merged", str(merged))
    with open(merged, newline="", encoding="utf-8") as data, open(by_miss, "w", newline="", encoding="utf-8") as kept:
        out = csv.DictWriter(kept, columns, extrasaction="ignore")
        out.writeheader()
        out.writerows(csv.DictReader(data))
    # A side has some 45 intervals of each mix, whose rates of misses are all equal: a node with one mix is not split.
    tree = json.loads(vperf("model", "tree", "--unsmoothed", "--min", "60", str(by_miss), "--format", "json").stdout)["tree"]
    splits = [node for node in nodes_of(tree["root"]) if node.get("input") == "virtualized"]
    native, guest = [costs_in(splits[0][side], event) for side in ("below", "above")] if splits else ([], [])
    claims.check(len(splits) == 1 and splits[0]["cut"] == 0.5 and native and all(abs(cost - PENALTY) < 0.05 * PENALTY for cost in native)
                 and guest and all(cost > 1.2 * PENALTY for cost in guest),
                 f"the model tree of both splits on the side {len(splits)} times; by the leaves' equations a miss costs {[round(cost, 2) for cost in native]} "
                 f"cycles natively, {[round(cost, 2) for cost in guest]} in the guest")


def cpi(run, claims):
    of_misses = dict.fromkeys(MISSES, PENALTY)
    for where, name, penalties in (("natively", "model", of_misses), ("in the guest", "nested", of_misses | {NESTED: PENALTY_NESTED})):
        check_costs(run, claims, where, name, penalties)
        rows, sums = intervals_of(run, name)
        claims.check(len(rows) > 50, f"{where}: {len(rows)} intervals")
        check_sum(claims, where, sums, penalties)
    check_inflation(run, claims)
    check_tree(run, claims)

# `vperf diagnose` finds a guest that waits for its TLB, and huge pages, which it advises, end that.
WALK = "sh -c 'for loops in 20 3 10 0 30 5; do pages --mib 16 --rounds 800 --loops $loops --huge %d; done'"
# Linux has no transparent huge pages with less than 512 MiB.
DIAGNOSED = ("host pmu=yes pcpus=1 memory=1536\nguest g1 vcpus=1 memory=640\n"
             f"command printf '{RECIPES['guest']}\\n' >/run/recipe\n".replace("; ", "\\n") +
             "".join(f"command vperf record -q --no-samples --stat /run/recipe -o /run/{pages} -- lab-guest run g1 {WALK % huge} && cp -r /run/{pages} /out/\n"
                     for huge, pages in enumerate(("small", "huge"))))


def tlb_findings(run, pages):
    findings = json.loads(vperf("diagnose", str(run.out / pages), "--format", "json").stdout)["findings"]
    return [finding for finding in findings if finding["id"] == "tlb-misses"]


def diagnosed(run, claims):
    """The cost of misses is known: on a host with huge pages, all cycles beyond one per instruction."""
    small, sums = tlb_findings(run, "small"), intervals_of(run, "small")[1]
    share = 100 * (1 - sums["instructions"] / sums["cycles"])
    claims.check(share > 5 and len(small) == 1 and "huge pages" in small[0]["advice"], f"with small pages misses are {share:.2f} % of the cycles: {small}")
    low, high, each = (float(n) for n in re.match(r"([\d.]+) to ([\d.]+)% of its cycles.*; (\d+) cycles for each", small[0]["detail"]).groups())
    claims.check(low - 0.05 <= share <= high + 0.05 and each == PENALTY, f"the finding has {low} to {high} % of the cycles, {each:.0f} for each miss")
    guest_ns = sum(row["ns"] for row in read("account", run, recording="small")["states"] if row["state"] == "guest")
    claims.near("time that is lost to them, % of the guest's time", 100 * small[0]["ns"] / guest_ns, share, 0.1)
    misses, after = (sum(sums[event] for event in MISSES) for sums in (sums, intervals_of(run, "huge")[1]))
    claims.check(not tlb_findings(run, "huge") and after < 0.2 * misses, f"with huge pages: {after} misses instead of {misses}, and no finding")


# Counters of dom0's interrupt guests (XENPMU): only if no guest has counters of its own since it was started.
XEN_RATE = 1009  # at more than 1000 Hz it does not matter that dom0's own ticks come late
XEN = f"""
host hypervisor=xen pmu=yes pcpus=1
guest pv memory=192 type=pv autostart=no
guest pvh memory=192 type=pvh autostart=no
workload pv shares fast=80 slow=20
workload pvh shares fast=50 slow=50
command-before vperf check --json >/out/alone.json
command lab-guest start pv; vperf check --json >/out/beside.json; vperf record --interrupts=pmu -d 1 -o /out/refused; echo $? >&2; lab-guest stop pv
command echo all >/sys/hypervisor/pmu/pmu_mode; lab-guest start pv; lab-guest start pvh
command vperf record --interrupts=pmu -F {XEN_RATE} -d 6 -o /out/rec
"""


def xen_check(run, claims):
    found = {name: next(probe for probe in json.loads((run.out / f"{name}.json").read_text())["features"] if probe["name"] == "Xen's PMU")
             for name in ("alone", "beside")}
    claims.check(found["alone"]["found"] and not found["beside"]["found"] and "since their start" in found["beside"]["detail"],
                 f"'vperf check' before a guest was started, and after: {found}")
    told = run.command_output(2, "err").splitlines()
    claims.check("1" in told and any("since their start" in line for line in told) and not (run.out / "refused").exists(),
                 f"'vperf record' refuses as 'vperf check' does, and leaves no recording: {told}")


def xen(run, claims):
    xen_check(run, claims)
    xen_samples(run, claims, {"pv": 80, "pvh": 50})
    check_rate(run, claims, ("pv", "pvh"))


def hits_of(run):
    """VM -> (interrupts of the counter that hit it, its CPU time in s)."""
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "guest_sample").stdout
    hits, ran = collections.Counter(), collections.Counter()
    for row in csv.DictReader(printed.splitlines()):
        hits[row["vm"]] += int(row["flags"], 16) & (AT_INTERRUPT | LATE) == AT_INTERRUPT
    for row in read("account", run)["states"]:
        ran[row["vm"]] += row["ns"] / 1e9 if row["state"] in ("guest", "kernel") else 0
    return {vm: (hits[vm], ran[vm]) for vm in ran}


def check_rate(run, claims, vms):
    """At an overflow Xen stops the counters until dom0 has handled it. An idle dom0 gets the pCPU at once, and handles it in less than
    a tenth of the period."""
    hits = hits_of(run)
    for vm in vms:
        places, ran = hits[vm]
        most, chance = ran * XEN_RATE, SIGMAS * (ran * XEN_RATE) ** 0.5
        claims.check(0.9 * most <= places <= most + chance,
                     f"{vm}: {places} interrupts of the counter in {ran:.2f} s of CPU time, {100 * places / most:.0f} % of {XEN_RATE} Hz")


def xen_samples(run, claims, shares):
    report = run.report("unified")
    vms = {row["vm"] for row in report["rows"] if row["vm"]}
    claims.check(vms == set(shares), f"samples are of these VMs: {vms}")
    for vm, (places, ran) in hits_of(run).items():
        if vm not in shares:
            continue
        expected = shares[vm]
        claims.check(places > 200, f"{vm}: {places} interrupts of the counter hit it")
        of_vm = run.report("guest", "--vm", vm)
        fast, slow = (samples_of(of_vm, function) for function in ("share_a", "share_b"))
        claims.check(fast + slow > 0.9 * ran * XEN_RATE, f"{vm}: {fast + slow} samples of the two functions by name")
        claims.near(f"{vm}: share_a of both, %", 100 * fast / max(fast + slow, 1), expected, share_bound(expected, places, 0))


# The same of a guest with a device model, which is a process of dom0.
XEN_HVM = f"""
host hypervisor=xen pmu=yes pcpus=1 memory=6144
guest hvm memory=192 type=hvm autostart=no
workload hvm shares fast=80 slow=20
command-before echo all >/sys/hypervisor/pmu/pmu_mode; lab-guest start hvm
command vperf record --interrupts=pmu -F {XEN_RATE} -d 6 -o /out/rec
"""


def xen_hvm(run, claims):
    xen_samples(run, claims, {"hvm": 80})


def on_amd(scenario, host=""):
    """A scenario of test_counters.py for such a host, whose counters are exact on each pCPU. KVM gives all guests a PMU or none."""
    return (re.sub(r"^host arch=arm64 (pcpus=\d) icount=yes memory=\d+", rf"host pmu=yes \1 memory=1536 {host}", scenario, flags=re.M)
            .replace("build-arm64/tests/lab/", f"{VPERF.parent}/tests/lab/").replace("echo 1 > /proc/sys/kernel/perf_user_access; ", "")
            .replace(" cpu=host,pmu=off", ""))


# Counters of the host and lent ones, where no guest has a PMU.
LENT = re.sub(r'^command lab-guest run g2 .*$', "command true", on_amd(test_counters.COUNTERS, "append=kvm.enable_pmu=0"), flags=re.M)


def lent(run, claims):
    test_counters.on_host(run, claims)
    test_counters.lent(run, claims, ACCURACY)


def beside(run, claims):
    test_counters.beside_a_busy_vm(run, claims, ACCURACY)


def moved(run, claims):
    """As on 64-bit Arm, but what the other pCPU executes is in no count."""
    pmu, of_host = (test_counters.jobs_of_moved(run, guest) for guest in ("g2", "g1"))
    check_moved(claims, "PMU", pmu, MOST_OFF, MOST_OFF)
    check_moved(claims, "lent", of_host, MOST_OFF, MOST_OFF)
    check_threads(claims, "PMU, a VM on a pCPU of its own, the other one offline", pmu[5], 3, MOST_OFF)
    check_signals(claims, "lent, vCPUs moved beside a busy VM", of_host[4])
    check_signals(claims, "PMU, vCPUs moved beside a busy VM", pmu[4], late=True)
    test_counters.check_moves(run, claims)


# TLB misses take cycles here.
PROCESSOR = test_counters.Processor(0.01, ACCURACY)


def run_shim(directory):
    """PAPI and perf, as Debian has them on this machine, in a guest without a PMU."""
    return run_scenario(test_counters.shim_scenario("pmu=yes pcpus=1 memory=2048 append=kvm.enable_pmu=0", "", "", "/usr/lib/x86_64-linux-gnu",
                                                    VPERF.parent), directory)


run_shim.is_virtual = True


def shim(run, claims):
    test_counters.shim(run, claims, PROCESSOR)


# PAPI's overflows with lent counters, in the placements of perfctr-xen's figure 9 (docs/reproduce.md): VMs on pCPUs of their own, both on
# one pCPU, and vCPUs that are moved.
# Not next to a VM that is busy on the other pCPU: under icount the pCPUs take turns, so a thread's time passes while the other one
# executes. The timer of lent overflows then polls more often, and mostly in sched_yield(), whose exits end a turn (docs/evidence/counters.md).
PAPI_LIBRARY = "/usr/lib/x86_64-linux-gnu/libpapi.so.7.0"


def run_placed(directory):
    papi = f'lab-guest run g1 sh -c "{test_counters.SHIM} papi-loops {test_counters.OVERFLOWING} PAPI_TOT_INS"'
    mover, ms = f"{VPERF.parent}/tests/lab/move-vcpus", test_counters.MOVE_MS
    scenario = f"""
host pmu=yes pcpus=2 memory=2048 append=kvm.enable_pmu=0
guest g1 vcpus=2 memory=512 truth=no agent=yes pin=0
guest g2 vcpus=2 memory=256 truth=no pin=1
file g1 {VPERF.parent}/tests/lab/papi-loops /bin/papi-loops
file g1 {VPERF.parent}/src/preload/vperf-perf-shim.so /lib/vperf-perf-shim.so
file g1 {PAPI_LIBRARY} {PAPI_LIBRARY}
file g2 {COUNT_LOOPS} /bin/count-loops
command lab-guest run g1 sh -c 'echo 1 > /proc/sys/kernel/perf_event_paranoid'
command vperf lend --vm g1 -e instructions:u -q --json -- sh -c '{papi}; JOB=$(lab-guest spawn g2 {test_counters.BUSY}); \
{mover} together {ms} {papi}; lab-guest end g2 $JOB; {mover} together {ms} {papi}; {mover} apart {ms} {papi}'
"""
    return run_scenario(scenario.replace("\\\n", ""), directory)


run_placed.is_virtual = True


def placed(run, claims):
    jobs = [lines for _, lines in sorted(said(run, "g1").items()) if lines]
    for placement, threads in zip(("VMs on pCPUs of their own", "vCPUs moved together, next to the busy VM", "vCPUs moved together",
                                   "vCPUs moved, each apart"), jobs):
        check_threads(claims, f"PAPI, {placement}", threads, 3, ACCURACY)
        test_counters.check_period(claims, f"PAPI, {placement}", threads)
        test_counters.check_in_loop(claims, f"PAPI, {placement}", threads)
    # Where a vCPU is moved, its timers may be late by more.
    test_counters.check_outside(claims, "PAPI, VMs on pCPUs of their own", jobs[0])
    claims.check(len(jobs) == 4, f"{len(jobs)} of 4 placements")
    moves = [int(n) for n in re.findall(r"^moved=(\d+)", run.command_output(2, "err"), re.MULTILINE)]
    claims.check(len(moves) == 3 and min(moves) > 1, f"threads of vCPUs were moved {moves} times")


def missing():
    """The reason why there is no lab host with a PMU, or None. Builds its emulator."""
    if os.environ.get("VPERF_SKIP_PMU"):
        return "by --skip, or there is no QEMU with a PMU"
    done = subprocess.run([REPOSITORY / "lab/vlab", "fetch", "--pmu"], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def with_programs(scenario):
    return scenario.replace("{count_loops}", str(COUNT_LOOPS))


TESTS = [("PMU: counts and NMIs of a host", with_programs(COUNTS), counts)]
QUICK = ()
FULL = [("PMU: a guest", with_programs(GUEST), guest), ("PMU: branches, loads and stores", EVENTS, events), ("PMU: caches, PerfMonV2", CACHES, caches), ("PMU: Xen", XEN, xen), ("PMU: Xen, a guest with a device model", XEN_HVM, xen_hvm), ("PMU: Xen of trixie", XEN.replace("host hypervisor=xen", "host kernel=trixie hypervisor=xen"), xen), ("PMU: intervals", INTERVALS, intervals), ("PMU: parts of a count", PARTS, parts), ("PMU: a CPI model", CPI, cpi), ("PMU: huge pages by diagnose", DIAGNOSED, diagnosed), ("PMU: NMIs in the scheduler", SWITCHES, switches), ("PMU: two pCPUs", TWO_PCPUS, two_pcpus), ("PMU: guests on two pCPUs", SIDE_BY_SIDE, side_by_side), ("PMU: injected once", INJECTED, injected), ("PMU: TLB misses", TLB, tlb),
        ("PMU: lent counters", LENT, lent), ("PMU: lent counters beside a busy VM", on_amd(test_counters.BESIDE), beside),
        ("PMU: lent counters and bad input", on_amd(test_counters.BAD, "append=kvm.enable_pmu=0"), test_counters.bad_input),
        ("PMU: counters of vCPUs that are moved", on_amd(test_counters.MOVED), moved),
        ("PMU: PAPI and perf without a PMU", run_shim, shim), ("PMU: PAPI with vCPUs that are moved", run_placed, placed)]
