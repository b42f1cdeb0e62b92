# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of a thread, on a host of 64-bit Arm whose PMU counts exactly (docs/method-counters.md): a program
that knows how many instructions its loops have, on the host, in a guest with a PMU, and in one without to which
the host lends its own."""
import json
import re
import sys
import typing

from lab import REPOSITORY, run_scenario

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs, papi_tests, roots  # noqa: E402
from vlablib.arch import AMD64, ARM64  # noqa: E402

CLIENT = "build-arm64/tests/lab/count-loops"
SHORT = "--loops 250000 --rounds 20"  # of threads: number n has n times as many
# The overflow of a guest's counter is reported some thousand cycles late (docs/lab.md): no thread ends near a whole million.
UNEVEN = "--loops 255000 --rounds 20"
BUSY = "count-loops --event page-faults --threads 2 --loops 250000 --rounds 10000"  # where there is no PMU, too
LOOPS = 6000000  # instructions in user space between two reads of its rounds
SETUP = f"""
host arch=arm64 pcpus=1 icount=yes memory=1536
guest g1 vcpus=2 memory=256 truth=no agent=yes cpu=host,pmu=off
guest g2 vcpus=1 memory=256 truth=no
file g1 {CLIENT} /bin/count-loops
file g2 {CLIENT} /bin/count-loops
"""
LENT = "lab-guest run g1 count-loops --way lent --event instructions:u"
LENT_KERNEL = "lab-guest run g1 count-loops --way lent --event instructions --exact 1"

COUNTERS = SETUP + f"""
command echo 1 > /proc/sys/kernel/perf_user_access; for way in user call; do {CLIENT} --way $way; done; \
{CLIENT} --threads 3 {UNEVEN} --event cycles:u --period 1000000
command lab-guest run g2 sh -c "count-loops --way call; count-loops --threads 3 {SHORT}; \
count-loops --threads 3 {UNEVEN} --event cycles:u --period 1000000"
command vperf lend --vm g1 -e instructions:u,instructions -q --json -- sh -c "{LENT} --exact 1; \
{LENT} --threads 4 {SHORT}; {LENT} --threads 4 {SHORT} --move 2; {LENT} --threads 3 {UNEVEN} --period 1000000 --late 1; \
{LENT_KERNEL}; {LENT_KERNEL} --calibrate 1"
command vperf lend --vm g1 -e PAPI_TOT_INS; vperf lend --vm g1 -e cycles -q -- {LENT}; lab-guest run g1 count-loops; true
command vperf lend --vm g1 -e instructions:u -q -- sh -c '{{ tests/lab/await g1 busy count-loops; vperf lend --vm g1 -e cycles; kill -9 $PPID; }} & \
{LENT} --reads 100000000 --view 1'; lab-guest wait g1
""".replace("\\\n", "")

BESIDE = SETUP + f"""
command JOB=$(lab-guest spawn g2 {BUSY}); vperf lend --vm g1 -e instructions:u -q --json -- \
sh -c "{LENT} --exact 1; {LENT} --threads 3 {SHORT}; {LENT} --threads 3 {SHORT} --move 2"; lab-guest end g2 $JOB || true
""".replace("\\\n", "")


def said(run, *guests):
    """The client's output: for each line its values by name. For guests, everything that it did
    there, one list for each job."""
    if not guests:
        return lines_of(run.command_output(1))
    return {job: lines_of("\n".join(lines)) for job, lines in outputs(run, guests[0]).items()}


def outputs(run, guest):
    """The lines that each job in a guest printed."""
    log = (run.out / f"guest-{guest}" / "workloads.log").read_text()
    jobs = {}
    for job, line in re.findall(r"^out job=(\d+) copy=\d+ \| (.*)$", log, re.MULTILINE):
        jobs.setdefault(int(job), []).append(line)
    return jobs


def lines_of(text):
    return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in text.splitlines() if "=" in line]


def rounds_of(lines, event=0):
    """Per round, the loop's count minus that of two adjacent reads."""
    values = {what: [int(line[what].split(",")[event]) for line in lines if what in line]
              for what in ("nothing", "loop")}
    return [loop - nothing for loop, nothing in zip(values["loop"], values["nothing"])]


def check_rounds(claims, what, lines, tolerance):
    rounds = rounds_of(lines)
    off = [count - LOOPS for count in rounds]
    claims.check(len(rounds) == 5 and all(abs(n) <= tolerance for n in off),
                 f"{what}: a loop of {LOOPS} instructions is {off} off, at most {tolerance}")


def check_threads(claims, what, lines, threads, percent):
    """Each thread has what it did, and nothing of the others."""
    found = [(int(line["expected"]), int(line["values"].split(",")[0])) for line in lines if "thread" in line]
    worst = max((abs(count / expected - 1) for expected, count in found), default=1)
    claims.check(len(found) == threads and worst < percent / 100,
                 f"{what}: {len(found)} of {threads} threads are within {100 * worst:.4f} % of what they did, "
                 f"less than {percent} %")


def check_signals(claims, what, lines, late=False):
    """`late`: KVM may deliver an overflow after the thread was switched out, and its kernel then drops it; at most
    one for each time."""
    found = [(int(line["signals"]), int(line["values"].split(",")[0]) // 1000000, int(line["switches"]) if late else 0)
             for line in lines if "thread" in line]
    lost = sum(due - signals for signals, due, _ in found)
    claims.check(len(found) == 3 and all(due - switches <= signals <= due for signals, due, switches in found),
                 f"{what}: threads got {[signals for signals, _, _ in found]} signals, one each 1000000; "
                 f"dropped as the thread was switched out: {lost} of {sum(switches for *_, switches in found)} times")


def check_lent_signals(claims, what, lines, percent, latest):
    """These overflows raise no interrupt: a timer polls, never too early. The cost of polling is not in the counts."""
    check_signals(claims, what, lines)
    check_threads(claims, f"{what}, with signals", lines, 3, percent)
    late = [int(line.get("late", 1000000)) for line in lines if "thread" in line]
    claims.check(len(late) == 3 and all(0 < n < latest for n in late),
                 f"{what}: signals come {late} late on average, of 1000000, less than {latest}")


def split_at(lines, key):
    """The output of several runs of the client, each of which begins with a line that has the key."""
    runs = []
    for line in lines:
        if key in line or not runs:
            runs.append([])
        runs[-1].append(line)
    return runs


def on_host(run, claims):
    host = said(run)
    ways = split_at([line for line in host if "thread" not in line], "way")
    for name, way in zip(("in user space", "by a call"), ways):
        check_rounds(claims, f"on the host, {name}", way, 10)
    claims.check([int(way[0]["way"]) for way in ways] == [1, 2], "the ways that were asked for are taken")
    check_signals(claims, "on the host", host)


def in_guest_with_pmu(run, claims):
    with_pmu = said(run, "g2")
    first = with_pmu[min(with_pmu)]
    threads = [line for line in first if "thread" in line]
    check_rounds(claims, "a guest with a PMU", first, 10)
    check_threads(claims, "a guest with a PMU", threads[:3], 3, 0.1)
    check_signals(claims, "a guest with a PMU", threads[3:], late=True)


def lent(run, claims, percent=0.5):
    """`percent`: at most that much is added to a thread's count."""
    jobs = list(said(run, "g1").values())
    check_rounds(claims, "lent, exact", jobs[0], 10)
    check_threads(claims, "lent, threads on one vCPU", jobs[1], 4, percent)
    check_threads(claims, "lent, threads moved from vCPU to vCPU", jobs[2], 4, percent)
    moves = next((int(line["moves"]) for line in jobs[2] if "moves" in line), 0)
    claims.check(moves > 10, f"they were moved {moves} times")
    check_lent_signals(claims, "lent", jobs[3], percent, 100000)
    check_calibrated(claims, *jobs[4:6])
    summary = json.loads(run.command_output(3))
    claims.check(summary["vcpus"] == 2 and summary["published"] > 100 and not summary["unread"] and
                 not summary["unwritten"], f"the host: {summary}")
    check_errors(run, claims, jobs[6:])


def counters(run, claims):
    on_host(run, claims)
    in_guest_with_pmu(run, claims)
    lent(run, claims)


def check_calibrated(claims, lines, calibrated):
    """The kernel's instructions for a read are subtracted; the client's own between the reads are not."""
    nothing, left = (sorted(int(line["nothing"]) for line in of if "nothing" in line) for of in (lines, calibrated))
    claims.check(len(nothing) == len(left) == 5 and left[2] < 0.05 * nothing[2],
                 f"two exact reads with nothing between are {nothing} instructions apart, calibrated {left}")


def beside_a_busy_vm(run, claims, percent=0.5):
    busy = list(said(run, "g1").values())
    check_rounds(claims, "lent, beside a busy VM", busy[0], 10)
    check_threads(claims, "lent, beside a busy VM, on one vCPU", busy[1], 3, percent)
    check_threads(claims, "lent, beside a busy VM, moved", busy[2], 3, percent)
    times = next(line for line in busy[0] if "on_cpu" in line)
    stolen, on_cpu = int(times["stolen_least"]), int(times["on_cpu"])
    claims.check(times["known"] == "3" and times["stolen_most"] == times["stolen_least"] and
                 0.2 * on_cpu < stolen < on_cpu,
                 f"beside a busy VM, {100 * stolen / on_cpu:.1f} % of its time is stolen, as the host says it")


def check_errors(run, claims, jobs):
    unknown, missing = run.command_output(4, "err").splitlines()[0], jobs[0][0]
    claims.check("PAPI_TOT_INS" in unknown, f"an event that perf does not know is refused: {unknown}")
    claims.check(missing["error"] == "-6" and jobs[1][0]["error"] in ("-5", "-6"),
                 "what the host does not lend, and a host that lends nothing, are told")
    second = run.command_output(5, "err")
    claims.check("another host program lends to this guest" in second, "a second recorder is refused")
    reads = next(line for line in jobs[2] if "reads" in line)
    claims.check(reads["status"] == "-8" and reads["backwards"] == "0" and int(reads["reads"]) > 100000,
                 f"after {reads['reads']} reads, none of them backwards, the recorder's death is told")


# Long: reads while other threads take the vCPU, so that the reader migrates; and sudden ends of processes. And a thread that sleeps
# when it would get a signal: the overflow is in the call by which it goes to sleep; of a lent counter, right before it.
READS = 10000000
ASLEEP, ASLEEP_LENT = "overflow-asleep call cycles 1000000 165000", "overflow-asleep lent instructions:u 1000000 165000"
LASTING = SETUP + f"""
file g1 build-arm64/tests/lab/overflow-asleep /bin/overflow-asleep
file g2 build-arm64/tests/lab/overflow-asleep /bin/overflow-asleep
command JOB=$(lab-guest spawn g1 count-loops --event page-faults --threads 2 --loops 250000 --rounds 100000); \
vperf lend --vm g1 -e instructions:u -q --json -- sh -c "{LENT} --reads {READS}; {LENT} --reads {READS} --view 1"; lab-guest end g1 $JOB || true
command build-arm64/tests/lab/{ASLEEP}; lab-guest run g2 {ASLEEP}; vperf lend --vm g1 -e instructions:u -q -- lab-guest run g1 {ASLEEP_LENT}
command vperf lend --vm g1 -e instructions:u -q -- sh -c "sleep 0.2; kill -9 \\$PPID"; \
vperf lend --vm g1 -e instructions:u -q -- {LENT} --exact 1
command vperf lend --vm g1 -e instructions:u -q -- sh -c '{{ tests/lab/await g1 busy count-loops; lab-guest run g1 sh -c "killall -9 vperf-agent"; }} & \
{LENT} --reads 100000000; wait'; lab-guest run g1 count-loops; true
""".replace("\\\n", "")


def check_asleep(claims, what, lines, is_lent=False):
    """Its signal is there when it runs again, and nothing of what ran meanwhile. With a lent counter it may be pending meanwhile, or be
    sent only then."""
    found = {key: int(value) for key, value in lines[0].items()}
    due = found["at"] // 1000000 if is_lent else 1
    claims.check([found[key] for key in ("before", "asleep", "after", "strangers")] == [due - 1, due - 1, due, 0] and found["switches"] > 0 and
                 due > 0 and (is_lent or found["pending"] == 1),
                 f"{what}: a thread that sleeps when its signal is due gets it when it runs again: {found}")
    own = found["at"] + 6 * 165000 // 8 if is_lent else 6 * 165000 * 9 // 8
    claims.check(own < found["value"] < own + 100000, f"{what}: of what another thread executes meanwhile, as much again, "
                 f"nothing is in its count of {found['value']}")


def lasting(run, claims):
    jobs = [lines for lines in said(run, "g1").values() if lines]
    reads = [line for lines in jobs for line in lines if "reads" in line]
    for what, line in zip(("", ", by vperf_view_read()"), reads):
        claims.check(int(line["reads"]) == READS and line["backwards"] == "0" and line["status"] == "0",
                     f"{READS} reads of a thread that is preempted and moved{what}: {line}")
    again = next(lines for lines in jobs if "way" in lines[0])
    check_rounds(claims, "lent again, after the recorder was killed", again, 10)
    claims.check(len(reads) == 3 and reads[2]["status"] == "-8" and reads[2]["backwards"] == "0",
                 f"after {reads[2]['reads']} reads, none of them backwards, the agent's death is told")
    claims.check("the agent of guest CID 3 has ended" in run.command_output(4, "err"), "and so it is to the host")
    claims.check(jobs[-1][0].get("error") == "-5", "a client then gets none")
    check_asleep(claims, "on the host", lines_of(run.command_output(2)))
    check_asleep(claims, "a guest with a PMU", said(run, "g2")[1])
    check_asleep(claims, "lent", next(lines for lines in jobs if "asleep" in lines[0]), is_lent=True)


# Mistakes and attacks by clients, administrators and a guest's root.
NOBODY = 65534
LONG_READS = "count-loops --way lent --event instructions:u --reads 1000000000"
BAD = SETUP + f"""
file g1 build-arm64/tests/lab/bad-lender /bin/bad-lender
command echo 3 > /proc/sys/kernel/perf_event_paranoid; {CLIENT} --user {NOBODY}; {CLIENT} {' --event instructions:u' * 8}; \
{CLIENT} --event nonsense; true
command vperf lend --vm g1 -e instructions:u -q --json -- sh -c "lab-guest run g1 sh -c 'echo 3 > /proc/sys/kernel/perf_event_paranoid'; \
{LENT} --exact 1 --user {NOBODY}; lab-guest run g1 count-loops --way lent --event branches:u; \
lab-guest spawn g1 {LONG_READS} > /dev/null; tests/lab/await g1 busy count-loops; lab-guest run g1 sh -c 'killall -9 count-loops'; {LENT} --exact 1; \
lab-guest spawn g1 {LONG_READS} > /dev/null; tests/lab/await g1 busy count-loops; lab-guest run g1 bad-lender overwrite; tests/lab/await g1 gone count-loops; {LENT} --exact 1"
command lab-guest run g1 sh -c 'killall -9 vperf-agent; rm -f /run/vperf-lent.sock; bad-lender version & until grep -q "00010000 .*vperf-lent" /proc/net/unix; do usleep 10000; done; count-loops --way lent'; true
command vperf lend --vm g1 -e instructions:u -- true; vperf lend --vm nobody -e cycles -- true; vperf lend --vm g1 -e cycles:h -- true; \
vperf lend --vm g1 -e {','.join(9 * ['cycles'])} -- true; setpriv --reuid {NOBODY} --clear-groups $(command -v vperf) lend --vm g1 -e cycles -- true; true
""".replace("\\\n", "")


def bad_input(run, claims):
    host = [line.get("error") for line in said(run)]
    claims.check(host == ["-4", "-3", "-2"], f"no rights, too many events, an unknown one: {host}")
    texts = [line for lines in outputs(run, "g1").values() for line in lines if "error=" in line]
    jobs = [lines for _, lines in sorted(said(run, "g1").items()) if lines]
    rounds = [lines for lines in jobs if "way" in lines[0]]
    for what, lines in zip(("for a user without rights", "after a client was killed", "after the cells were overwritten"), rounds):
        check_rounds(claims, f"lent, {what}", lines, 10)
    claims.check(len(rounds) == 3, f"{len(rounds)} clients of 3 counted")
    errors = [line["error"] for lines in jobs for line in lines if "error" in line]
    claims.check(errors == ["-6", "-7"], f"an event that is not lent, and an agent of another version: {texts}")
    reads = [line for lines in jobs for line in lines if "reads" in line]
    claims.check(len(reads) == 1 and reads[0]["status"] == "-8" and reads[0]["backwards"] == "0",
                 f"when a guest's root overwrites the cells, its client is told: {reads}")
    claims.check(any("overwritten" in lines[0] for lines in jobs), "they were overwritten")
    summary = json.loads(run.command_output(2))
    claims.check(summary["published"] > 100 and not summary["unread"] and not summary["unwritten"], f"the host goes on: {summary}")
    told = [line for line in run.command_output(4, "err").splitlines() if line.startswith("vperf lend: ")]
    claims.check(len(told) == 5, f"what 'vperf lend' refuses, a sentence each: {told}")


# vCPUs that are moved from pCPU to pCPU. A counter of this emulator's counts what all pCPUs execute (docs/lab.md): so all vCPUs are
# on the same one, whichever that is, or one thread at a time is busy.
MOVER = "build-arm64/tests/lab/move-vcpus"
MOVE_MS = 200
LONG = "--threads 3 --loops 5000000"  # each its number times 30 million instructions, in 5 rounds
TURNS = f"{LONG} --turns 1 --move 50"
OVERFLOWS = f"--threads 3 {UNEVEN} --period 1000000"
READING = f"count-loops --way lent --event instructions:u --reads {READS}"
PLACEMENTS = ("VMs on pCPUs of their own", "vCPUs moved together", "vCPUs and threads moved, each apart", "vCPUs moved together, beside a busy VM")
# The other pCPU's instructions are only added: KVM's at switches of threads that use a guest's PMU, ticks of its
# vCPU, and now and then a turn of a tick or more, of 4 million instructions. Most threads have no such turn.
CLOSE, MOST_ADDED = 0.5, 3  # percent
MOVED = f"""
host arch=arm64 pcpus=2 icount=yes memory=1536
guest g1 vcpus=2 memory=256 truth=no agent=yes cpu=host,pmu=off pin=0
guest g2 vcpus=2 memory=256 truth=no pin=1
file g1 {CLIENT} /bin/count-loops
file g2 {CLIENT} /bin/count-loops
file g1 build-arm64/tests/lab/run-moved /bin/run-moved
command vperf lend --vm g1 -e instructions:u -q --json -- sh -c '{LENT} {LONG}; \
{MOVER} together {MOVE_MS} {LENT} {LONG}; {MOVER} apart {MOVE_MS} {LENT} {TURNS}; {MOVER} apart 5 lab-guest run g1 run-moved {READING}; \
JOB=$(lab-guest spawn g2 {BUSY}); {MOVER} together {MOVE_MS} sh -c "{LENT} {LONG}; {LENT} {OVERFLOWS} --late 1"; lab-guest end g2 $JOB || true'
command lab-guest run g2 count-loops {LONG}; \
{MOVER} together {MOVE_MS} lab-guest run g2 count-loops {LONG}; {MOVER} apart {MOVE_MS} lab-guest run g2 count-loops {TURNS}
command JOB=$(lab-guest spawn g1 {BUSY}); {MOVER} together {MOVE_MS} sh -c "lab-guest run g2 count-loops {LONG}; \
lab-guest run g2 count-loops --event cycles:u {OVERFLOWS}"; lab-guest end g1 $JOB || true
command echo 0 > /sys/devices/system/cpu/cpu0/online; lab-guest run g2 count-loops {LONG}
""".replace("\\\n", "")


def moves_of(run):
    """Number of vCPUs moved by each command."""
    return [int(n) for number in range(1, 4) for n in re.findall(r"^moved=(\d+)", run.command_output(number, "err"), re.MULTILINE)]


def check_moved(claims, way, jobs, close=CLOSE, most=MOST_ADDED):
    """Nothing is lost, and no more is added than the emulator does, in percent."""
    added = {placement: [100 * (int(line["values"]) / int(line["expected"]) - 1) for line in lines if "thread" in line]
             for placement, lines in zip(PLACEMENTS, jobs)}
    for placement, found in added.items():
        claims.check(len(found) == 3 and all(0 <= percent < most for percent in found),
                     f"{way}, {placement}: threads have {[f'{percent:.4f}' for percent in found]} % more than they did, none less")
    near = [percent < close for found in added.values() for percent in found]
    claims.check(len(near) == 12 and sum(near) >= 9, f"{way}: {sum(near)} of {len(near)} have less than {close} % more")


def jobs_of_moved(run, guest):
    """The lines of each job that counted loops."""
    return [lines for _, lines in sorted(said(run, guest).items()) if lines and not any("backwards" in line for line in lines)]


def check_moves(run, claims):
    """Reads never go back, and all were moved."""
    reads = [line for lines in said(run, "g1").values() for line in lines if "backwards" in line or "moves" in line and len(lines) == 2]
    read = {key: int(value) for line in reads for key, value in line.items() if value.isdigit()}
    claims.check(read.get("reads") == READS and read.get("backwards") == read.get("status") == 0 and read.get("moves", 0) > 0,
                 f"{READS} reads of a thread that is moved between vCPUs, which are moved between pCPUs: {reads}")
    counts = moves_of(run)
    claims.check(len(counts) == 7 and min(counts) > 1, f"threads of vCPUs were moved {counts} times")


def moved(run, claims):
    pmu, of_host = (jobs_of_moved(run, guest) for guest in ("g2", "g1"))
    check_moved(claims, "PMU", pmu)
    check_moved(claims, "lent", of_host)
    check_signals(claims, "PMU, vCPUs moved beside a busy VM", pmu[4], late=True)
    check_threads(claims, "PMU, a VM on a pCPU of its own, the other one offline", pmu[5], 3, 0.1)
    check_signals(claims, "lent, vCPUs moved beside a busy VM", of_host[4])
    check_moves(run, claims)


# Without a PMU: time that a thread had. A busy VM takes half of it away, of which the guest's kernel knows nothing.
CLOCK = "lab-guest run g1 count-loops --event task-clock"
SDE_CLOCK = "sde:::vperf::task-clock"


def run_x86(directory):
    papi = debian_programs.get(AMD64, ("libpapi7.0",)) / "usr/lib/x86_64-linux-gnu/libpapi.so.7.0"
    inside = f"""export LD_PRELOAD=/lib/libvperf-papi.so; papi-loops {SDE_CLOCK}; papi-loops --overflow 1000000 {SDE_CLOCK}; \
papi-loops --profile {SDE_CLOCK}; export {SHIM}; papi-loops perf::TASK-CLOCK; papi-loops perf::INSTRUCTIONS; true"""
    scenario = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 truth=no agent=yes
guest g2 vcpus=1 memory=256 truth=no
file g1 build/tests/lab/count-loops /bin/count-loops
file g2 build/tests/lab/count-loops /bin/count-loops
file g1 tests/lab/stop-lender /bin/stop-lender
file g1 build/tests/lab/papi-loops /bin/papi-loops
file g1 {papi} /usr/lib/x86_64-linux-gnu/libpapi.so.7.0
file g1 build/src/preload/libvperf-papi.so /lib/libvperf-papi.so
file g1 build/src/preload/vperf-perf-shim.so /lib/vperf-perf-shim.so
command JOB=$(lab-guest spawn g2 count-loops --event page-faults --threads 2 --rounds 10000); \
vperf lend --vm g1 -e task-clock -q --json -- sh -c "{CLOCK} --way lent --exact 1 --loops 5000000; \
{CLOCK} --way call --loops 5000000; {CLOCK} --way lent --threads 3 --rounds 20; \
{CLOCK} --way lent --threads 3 --rounds 20 --period 1000000 --late 1"; lab-guest end g2 $JOB || true
command vperf lend --vm g1 -e task-clock -q -- lab-guest run g1 sh -c "{inside}"
command vperf lend --vm g1 -e instructions -- true; true
command vperf lend --vm g1 -e task-clock -q -- lab-guest run g1 stop-lender; {{ sleep 0.5; lab-guest run g1 sh -c 'killall -CONT vperf-agent'; }} & \
vperf lend --vm g1 -e task-clock -q -- {CLOCK} --way lent --exact 1 --loops 5000000; wait
command vperf lend --vm g1 -e task-clock -q -- sh -c "vperf lend --vm g1 -e task-clock -- true; true"
"""
    return run_scenario(scenario.replace("\\\n", ""), directory)


def x86_papi(claims, text):
    """A guest's kernel has its own task-clock, and that is what PAPI counts; a nanosecond is an instruction here."""
    threads = [line for line in lines_of(text) if "thread" in line]
    for what, lines in (("software-defined events", threads[:3]), ("with overflow", threads[3:])):
        check_threads(claims, f"PAPI, x86, task-clock, {what}", lines, 3, 5)
    found = [(int(line["signals"]), int(line["values"]) // 1000000) for line in threads[3:]]
    claims.check(len(found) == 3 and all(abs(due - signals) <= 2 for signals, due in found),
                 f"PAPI_overflow of the kernel's task-clock: calls of the handler and whole ms {found}")
    check_in_loop(claims, "PAPI_overflow of the kernel's task-clock", threads[3:])
    claims.check("profil=-4 sprofil=-4" in text,
                 "PAPI_profil and PAPI_sprofil of a software-defined event, which PAPI cannot fill, say PAPI_ECMP")
    claims.check("perf::TASK-CLOCK: PAPI says" in text and "perf::INSTRUCTIONS: PAPI says" in text,
                 "with the shim, PAPI's component for perf has no events: it finds no PMU, and the host lends none")


def x86(run, claims):
    jobs = said(run, "g1")
    lent, own, threads, signals = (jobs.get(number, []) for number in (1, 2, 3, 4))
    x86_papi(claims, "\n".join(outputs(run, "g1")[5]))
    for what, lines, least, most in (("lent", lent, 0.99, 1.04), ("the guest's own", own, 1.5, 3)):
        whole = sum(rounds_of(lines)) / (5 * 30e6)
        claims.check(least < whole < most, f"{what} task-clock of loops of 30 ms beside a busy VM is {whole:.3f} of that")
    check_threads(claims, "lent task-clock", threads, 3, 4)
    # The timer is the guest's, which does not know when its vCPU does not run: how late it is, depends on the busy VM.
    check_lent_signals(claims, "lent task-clock", signals, 8, 1000000)
    times = next(line for line in lent if "on_cpu" in line)
    share = int(times["stolen_most"]) / int(times["on_cpu"])
    claims.check(0.3 < share < 0.7 and times["stolen_least"] == times["stolen_most"],
                 f"{100 * share:.1f} % of the thread's time is stolen, as the host says it")
    times = next(line for line in own if "on_cpu" in line)
    claims.check(times["known"] == "3" and int(times["stolen_least"]) == 0 and
                 int(times["stolen_most"]) >= share * int(times["on_cpu"]) - 60e6,
                 f"the guest alone knows that at most {int(times['stolen_most']) / 1e6:.0f} ms of "
                 f"{int(times['on_cpu']) / 1e6:.0f} ms are")
    summary = json.loads(run.command_output(1))
    claims.check(summary["published"] > 100 and not summary["unwritten"], f"the host: {summary}")
    rounds = sum(rounds_of(jobs[max(jobs)])) / (5 * 30e6)
    claims.check(0.99 < rounds < 1.04, f"lent again while the agent has not noticed the first one's end: loops of 30 ms are {rounds:.3f} of that")
    told = run.command_output(5, "err")
    claims.check("another host program lends to this guest" in told, f"a second one beside the first is told: {told}")
    told = run.command_output(3, "err")
    claims.check("this host cannot count 'instructions' of a guest" in told, f"what a host without a PMU cannot lend is told: {told}")


# PAPI and perf, as Debian has them, in a guest without a PMU. The processor is one that this PAPI has presets for.
SHIM = "LD_PRELOAD=/lib/vperf-perf-shim.so"
PRESETS = "PAPI_TOT_INS PAPI_TOT_CYC"
SDE = "sde:::vperf::instructions:u"
# Rounds whose length has no small multiple in common with the period: the overflows are due at all places of a round.
OVERFLOWING = "--loops 255000 --overflow 1000000"
FORKS = "sh -c 'count-loops --event page-faults & count-loops --event page-faults --threads 2 --loops 500000 --rounds 1 & wait'"
IN_FORKS = 30000000 + 9000000  # instructions of their loops


def shim_scenario(host, guest, root, libraries, build):
    """Hosts with a PMU lend to a guest without one. `root` has Debian's programs, `build` vperf's."""
    files = {f"{root}/usr/bin/{name}": name for name in ("papi_command_line", "papi_avail", "papi_native_avail", "perf")}
    files |= {f"{build}/tests/lab/{name}": name for name in ("papi-loops", "count-loops")}
    listed = "".join(f"file g1 {source} /bin/{name}\n" for source, name in files.items())
    inside = f"""echo 1 > /proc/sys/kernel/perf_event_paranoid; papi_command_line PAPI_TOT_INS; export {SHIM}; \
papi_command_line {PRESETS} PAPI_BR_MSP; papi-loops {PRESETS}; papi-loops {OVERFLOWING} {PRESETS}; papi_avail | grep PAPI_TOT_"""
    sde = f"""echo 3 > /proc/sys/kernel/perf_event_paranoid; export LD_PRELOAD=/lib/libvperf-papi.so; papi-loops {SDE} sde:::vperf::page-faults; \
papi-loops {OVERFLOWING} {SDE}; \
papi_command_line {SDE} sde:::vperf::branches:u; papi_native_avail | grep vperf::"""
    perf = f"""export {SHIM}; perf stat -x, -e instructions:u,cycles:u count-loops --event page-faults; \
perf stat -x, -e instructions:u,instructions,page-faults,branches:u true; \
perf stat -x, -e instructions:u,page-faults -- true; \
perf stat -x, -e '{{page-faults,instructions:u}}' true; perf stat -i -x, -e '{{instructions:u,page-faults,cycles:u}}' true; \
perf stat -x, -e instructions:u -- {FORKS}; perf stat -i -x, -e instructions:u -- {FORKS}"""
    scenario = f"""
host {host}
guest g1 vcpus=1 memory=512 truth=no agent=yes {guest}
{listed}file g1 {build}/src/preload/vperf-perf-shim.so /lib/vperf-perf-shim.so
file g1 {build}/src/preload/libvperf-papi.so /lib/libvperf-papi.so
file g1 {root}{libraries}/libpapi.so.7.0 {libraries}/libpapi.so.7.0
command echo 1 > /proc/sys/kernel/perf_event_paranoid; papi_command_line {PRESETS}
command vperf lend --vm g1 -e instructions:u,cycles:u -q -- lab-guest run g1 sh -c "{inside}"
command vperf lend --vm g1 -e instructions:u,cycles:u -q -- lab-guest run g1 sh -c "{sde}"
command vperf lend --vm g1 -e instructions:u,cycles:u -q -- lab-guest run g1 sh -c "{perf}"
command lab-guest run g1 sh -c "{SHIM} perf stat -x, -e instructions:u true"
"""
    return scenario.replace("\\\n", "")


# PAPI knows the A64FX. Its cache lines (CTR_EL0.CWG: 256 bytes) are longer than the kernel's ARCH_DMA_MINALIGN (128): each kernel
# warns at boot, before vperf runs.
LONG_LINES = r"# kernels may say: WARNING: .* arch_setup_dma_ops"


def run_shim(directory):
    """Needs the path of the lab host's root, which has the programs."""
    return run_scenario(LONG_LINES + shim_scenario("arch=arm64 pcpus=1 icount=yes memory=2048 cpu=a64fx", "cpu=host,pmu=off", roots.get(ARM64),
                                      "/usr/lib/aarch64-linux-gnu", "build-arm64"), directory)


class Processor(typing.NamedTuple):
    """An emulated one, by its PMU."""

    penalty: float  # the share of cycles in which no instruction ends, at most
    handlers: float  # percent that the handlers of overflows may add to a thread's instructions


ARM = Processor(0, 1)
IN_LOOP, LATEST = 0.9, 100000
ROUND = 255000 * 6  # instructions: OVERFLOWING


def check_in_loop(claims, what, threads):
    """Addresses reported by PAPI: all except those at its start and end are in the loop."""
    found = [(int(line["signals"]), int(line["in_loop"])) for line in threads]
    claims.check(len(found) == 3 and all(in_loop > IN_LOOP * signals for signals, in_loop in found),
                 f"{what}: so many of them were in the loop: {found}")


def check_outside(claims, what, threads):
    """A signal is late, so those of overflows right before a round's end come after it: while the thread gives up its CPU. The place
    where one was due is that of the loop's instructions; the counts have up to 0.1% more, by the handlers."""
    found = [(int(line["signals"]) - int(line["in_loop"]), 1000 * int(line["signals"]), [int(n) for n in line.get("outside", "").split(",") if n])
             for line in threads]
    claims.check(len(found) == 3 and all(len(left) == outside and all(n < LATEST or n > ROUND - more for n in left) for outside, more, left in found),
                 f"{what}: those outside of the loop were due when so many of a round's {ROUND} instructions were left: "
                 f"{[left for *_, left in found]}, less than {LATEST}")


def check_cycles(claims, what, counts, processor):
    """Pairs of instructions and cycles."""
    claims.check(all(-0.001 * instructions < cycles - instructions < (processor.penalty + 0.001) * instructions for instructions, cycles in counts),
                 f"{what}: instructions and cycles, which are at most {100 * processor.penalty:.1f} % more: {counts}")


def check_period(claims, what, threads):
    """PAPI stops the counter while it handles an overflow: a signal each million of what it counts then."""
    found = [(int(line["signals"]), int(line["values"].split(",")[0]) // 1000000) for line in threads]
    claims.check(len(found) == 3 and all(abs(due - signals) <= 1 for signals, due in found),
                 f"{what}: signals and whole millions of PAPI_TOT_INS {found}")


def check_papi_overflow(claims, threads, processor):
    check_period(claims, "PAPI_overflow", threads)
    check_cycles(claims, "PAPI_overflow", [[int(value) for value in line["values"].split(",")] for line in threads], processor)
    check_in_loop(claims, "PAPI_overflow", threads)
    check_outside(claims, "PAPI_overflow", threads)


def shim_papi(claims, host, guest, processor):
    """PAPI on a host with a PMU, and in a guest without one."""
    own = [int(value) for value in re.findall(r"PAPI_TOT_\w+ :\s*(\d+)", host)]
    _, without, rest = guest.split("This utility", 2)
    lent = [int(value) for value in re.findall(r"PAPI_TOT_\w+ :\s*(\d+)", rest)]
    claims.check("Failed adding: PAPI_TOT_INS" in without, "PAPI has no counter in a guest without a PMU")
    off = [value - expected for value, expected in zip(lent, own)]
    claims.check(len(own) == len(lent) == 2 and abs(off[0]) < 5000 and abs(off[1]) < 5000 + processor.penalty * own[1],
                 f"papi_command_line counts {lent} with lent counters, {off} off from the host's own PMU, instructions by less than 5000")
    claims.check("Failed adding: PAPI_BR_MSP" in rest, "what the host does not lend is not added")
    threads = [line for line in lines_of(rest) if "thread" in line]
    check_threads(claims, "PAPI's clients", threads[:3], 3, 0.1)
    check_threads(claims, "PAPI's clients with overflow", threads[3:], 3, processor.handlers)
    check_papi_overflow(claims, threads[3:], processor)
    claims.check(len(re.findall(r"PAPI_TOT_(?:INS|CYC)\s+\w+\s+Yes", rest)) == 2, "papi_avail has the presets")


def check_sde_overflow(claims, threads):
    """Overflows right before PAPI_stop() are no longer reported."""
    found = [(int(line["signals"]), int(line["values"].split(",")[0]) // 1000000) for line in threads]
    claims.check(len(found) == 3 and all(0 <= due - signals <= 1 for signals, due in found),
                 f"PAPI_overflow of a software-defined event: calls of the handler and whole millions {found}")
    check_in_loop(claims, "PAPI_overflow of a software-defined event", threads)
    check_outside(claims, "PAPI_overflow of a software-defined event", threads)


def papi_events(claims, own, text, processor):
    """vperf's counters as software-defined events of PAPI's, which may not use perf here."""
    threads = [line for line in lines_of(text) if "thread" in line]
    check_threads(claims, "software-defined events", threads[:3], 3, 0.1)
    check_threads(claims, "software-defined events with overflow", threads[3:], 3, processor.handlers)
    check_sde_overflow(claims, threads[3:])
    value = re.search(re.escape(SDE) + r" :\s*(\d+)", text)
    claims.check(value and abs(int(value[1]) - own) < 5000,
                 f"papi_command_line says the same by a software-defined event: {value and value[1]}")
    claims.check("Failed adding: sde:::vperf::branches:u" in text, "one that is not lent is not added")
    listed = re.findall(r"^\| sde:::vperf::([\w:-]+) ", text, re.MULTILINE)
    claims.check({"instructions:u", "cycles:u", "page-faults"} <= set(listed) and
                 not {"instructions", "branches:u"} & set(listed), f"papi_native_avail lists {len(listed)} events, those that there are")


def of_perf(text):
    """Output of perf stat, run by run: event -> the text in the column of its count."""
    return [(event, value) for value, event in re.findall(r"^(<not \w+>|\d+),,([\w-]+(?::u)?),", text, re.MULTILINE)]


def shim(run, claims, processor=ARM):
    papi, sde, perf, ended = ("\n".join(lines) for _, lines in sorted(outputs(run, "g1").items()))
    host = run.command_output(1)
    shim_papi(claims, host, papi, processor)
    papi_events(claims, int(re.search(r"PAPI_TOT_INS :\s*(\d+)", host)[1]), sde, processor)
    found = of_perf(perf)
    counted = [value for event, value in found]
    off = int(counted[0]) - 30000000
    claims.check(0 < off < 150000, f"perf stat counts {counted[0]} instructions of a program whose loops have 30000000, with what it starts and ends with")
    check_cycles(claims, "perf stat", [[int(counted[0]), int(counted[1])]], processor)
    names = [event for event, _ in found]
    claims.check(names[2:6] == ["instructions:u", "instructions", "page-faults", "branches:u"] and
                 all(value.isdigit() for value in (counted[2], counted[4])) and
                 counted[3] == counted[5] == "<not supported>",
                 f"what the host does not lend is not supported: {found[2:6]}")
    claims.check(counted[6] == counted[2] and int(counted[7]) > 0,
                 f"twice the same program has the same count: {counted[6]}, {counted[2]}")
    claims.check([event for event, _ in found[8:13]] == ["page-faults", "instructions:u", "instructions:u", "page-faults", "cycles:u"] and
                 abs(int(counted[9]) - int(counted[2])) < 1000 and abs(int(counted[10]) - int(counted[2])) < 1000 and
                 0 < int(counted[8]) < 1000 and abs(int(counted[11]) - int(counted[8])) < 10 and int(counted[12]) >= int(counted[10]),
                 f"in a group with an event of the kernel's, whichever leads, all are counted: {found[8:13]}")
    inherited, own = int(counted[13]), int(counted[14])
    claims.check(IN_FORKS < inherited < 1.03 * IN_FORKS and own < 0.03 * IN_FORKS,
                 f"what a program makes is counted with it: {inherited}, of which loops have {IN_FORKS}; and is not, with -i: {own}")
    claims.check(of_perf(ended) == [("instructions:u", "<not supported>")], "nothing is lent any more: not supported")


def run_papi_tests(directory):
    """PAPI's own tests, on a host with a PMU and in a guest with lent counters."""
    place = papi_tests.get()
    listed = "".join(f"file g1 {place}/{name} /papi/{name}\n" for name in papi_tests.NAMES)
    scenario = f"""{LONG_LINES}
host arch=arm64 pcpus=1 icount=yes memory=2048 cpu=a64fx
guest g1 vcpus=1 memory=768 truth=no agent=yes cpu=host,pmu=off
{listed}file g1 {roots.get(ARM64)}/{papi_tests.LIBRARY} /{papi_tests.LIBRARY}
file g1 build-arm64/src/preload/vperf-perf-shim.so /lib/vperf-perf-shim.so
file g1 tests/lab/each-test /bin/each-test
command echo 1 > /proc/sys/kernel/perf_event_paranoid; cp -r {place} /run/papi; tests/lab/each-test /run/papi TESTS_QUIET
command vperf lend --vm g1 -e instructions:u,cycles:u -q -- lab-guest run g1 \
sh -c "echo 1 > /proc/sys/kernel/perf_event_paranoid; export {SHIM}; each-test /papi TESTS_QUIET"
"""
    return run_scenario(scenario.replace("\\\n", ""), directory)


def outcomes(text):
    """Test -> what it said of itself."""
    parts = re.split(r"^== ", text, flags=re.MULTILINE)[1:]
    return {part.split()[0]: (re.findall(r"PASSED|SKIPPED|FAILED", part) or ["nothing"])[-1] for part in parts}


def papis_own(run, claims):
    for where, text in (("on a host with a PMU", run.command_output(1)),
                        ("with lent counters", "\n".join(outputs(run, "g1")[1]))):
        found = outcomes(text)
        for name in papi_tests.NAMES:
            claims.check(found.get(name) == "PASSED", f"{where}, PAPI's own test '{name}': {found.get(name)}")


TESTS = []
QUICK = ()
FULL = [("64-bit Arm, counters", COUNTERS, counters), ("64-bit Arm, counters beside a busy VM", BESIDE, beside_a_busy_vm), ("64-bit Arm, counters that end", LASTING, lasting),
        ("64-bit Arm, counters of vCPUs that are moved", MOVED, moved), ("64-bit Arm, counters and bad input", BAD, bad_input), ("lent counters, x86", run_x86, x86),
        ("64-bit Arm, PAPI and perf without a PMU", run_shim, shim), ("64-bit Arm, PAPI's own tests", run_papi_tests, papis_own)]
