# SPDX-License-Identifier: GPL-2.0-or-later
"""Event counts of ordinary programs, natively and in guests, by the guest's PMU and by lent counters: how
far the counts are from the native ones in each placement of the VM, and a profile by overflow signals compared with
perf's (docs/evidence/counters.md has the tables)."""
import math
import re
import subprocess
import sys
from collections import Counter

from lab import REPOSITORY, SIGMAS, run_scenario
from test_counters import BUSY, CLIENT, outputs, said

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs, roots  # noqa: E402
from vlablib.arch import ARM64  # noqa: E402

PROGRAMS = ("gzip", "openssl", "sqlite3", "shor")
EVENTS = ("instructions:u", "cycles:u", "instructions")
NATIVE_RUNS, RUNS = 3, 1
# In percent, of what is counted in user space. The kernel's part is another kernel's in a guest: it is no claim.
MOST_OFF = {"PMU": 0.1, "lent": 0.5}
PERIOD = 200000
LEAST_SHARE = 0.02
# Threads that take turns, each 600,000 instructions of the first one, with the kernel's instructions.
THREADS = "count-loops --event instructions --threads 3 --loops 25000 --rounds 100"
# A PMU counts the part of a switch that is before the kernel stops it, which calibration subtracts: 0.25% of the
# first one's 15 million in 25 switches. A clock tick more or less is 0.07% of them.
MOST_CALIBRATED = 0.5
PRELOAD = "/lib/count-preload.so"
PLACEMENTS = ("alone", "both at once", "beside a busy VM", "moved")


def files_of(guest, pairs):
    return "".join(f"file {guest} {source} {path}\n" for source, path in pairs)


def inside(guest, command):
    return f"lab-guest run {guest} sh -c '{command}'"


def run_programs(directory):
    roots.get(ARM64)
    fetched = debian_programs.get(ARM64, ("gzip", "openssl", "sqlite3"))
    # shor is a workload, and where those are.
    pairs = [(f"{fetched}/bin/gzip", "/programs/gzip"), (f"{fetched}/usr/bin/openssl", "/programs/openssl"),
             (f"{fetched}/usr/bin/sqlite3", "/programs/sqlite3"), ("tests/lab/count-programs", "/bin/count-programs"),
             (CLIENT, "/bin/count-loops"), ("build-arm64/tests/lab/run-moved", "/bin/run-moved"),
             ("build-arm64/tests/lab/count-preload.so", PRELOAD)]
    files = files_of("g1", pairs) + files_of("g2", pairs)
    copies = "; ".join(f"cp {source} {path}" for source, path in pairs)
    there = "cd /programs; ln -sf $(command -v shor) .;"
    events = ",".join(EVENTS)

    def count(runs, launcher=""):
        return f"{there} count-programs {PRELOAD} {events} {runs} {launcher}"

    def busy(guest, command):
        return f"JOB=$(lab-guest spawn {guest} {BUSY}); {command}; lab-guest end {guest} $JOB || true"
    lend = f"vperf lend --vm g1 -e {events} -q --"
    scenario = f"""
host arch=arm64 pcpus=1 icount=yes memory=2048
guest g1 vcpus=2 memory=384 truth=no agent=yes cpu=host,pmu=off
guest g2 vcpus=2 memory=384 truth=no
{files}command mkdir -p /programs; {copies}; {count(NATIVE_RUNS)}
command {inside("g2", count(RUNS))}
command {lend} {inside("g1", count(RUNS))}
command JOB=$(lab-guest spawn g2 sh -c '{count(RUNS)}'); {lend} {inside("g1", count(RUNS))}; lab-guest wait g2
command {busy("g2", f"{lend} {inside('g1', count(RUNS))}")}
command {busy("g1", inside("g2", count(RUNS)))}
command {inside("g2", count(RUNS, "run-moved"))}
command {lend} {inside("g1", count(RUNS, "run-moved"))}
"""
    return run_scenario(scenario, directory, timeout=1800, silence=900)


def runs_of(lines):
    """Program -> of each of its runs, event -> count."""
    found = {}
    for line in lines:
        words = dict(re.findall(r"(\S+)=(\S+)", line))
        if "program" in words:
            found.setdefault(words.pop("program"), []).append({event: int(value) for event, value in words.items()
                                                               if value.isdigit()})
    return found


def counted(run, guest):
    """Placement -> program -> runs. Jobs that count no programs are left out."""
    jobs = [runs_of(lines) for _, lines in sorted(outputs(run, guest).items())]
    return dict(zip(PLACEMENTS, [job for job in jobs if job]))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0


def off(runs, native, event):
    """Maximum deviation of a run from the native mean, in percent."""
    expected = mean(run[event] for run in native)
    return max((100 * (run[event] / expected - 1) for run in runs), key=abs)


def print_table(claims, native, guests):
    claims.note(f"{'program':8} {'placement':18} {'way':5} " + " ".join(f"{event:>15}" for event in EVENTS) + "   % off")
    for program in PROGRAMS:
        figures = [mean(one[event] for one in native[program]) / 1e6 for event in EVENTS]
        claims.note(f"{program:8} {'native, millions':24} " + " ".join(f"{figure:15.3f}" for figure in figures))
        for placement in PLACEMENTS:
            for way, found in guests.items():
                errors = [off(found[placement][program], native[program], event) for event in EVENTS]
                claims.note(f"{program:8} {placement:18} {way:5} " + " ".join(f"{error:15.4f}" for error in errors))


def programs(run, claims):
    native = runs_of(run.command_output(1).splitlines())
    guests = {"PMU": counted(run, "g2"), "lent": counted(run, "g1")}
    print_table(claims, native, guests)
    for way, found in guests.items():
        claims.check({one["way"] for runs in found["alone"].values() for one in runs} == {3 if way == "lent" else 2},
                     f"{way}: the programs are counted in that way")
        for placement in PLACEMENTS:
            worst = max((off(found[placement][program], native[program], event) for program in PROGRAMS
                         for event in EVENTS[:2]), key=abs)
            claims.check(abs(worst) < MOST_OFF[way], f"{way}, {placement}: instructions and cycles of {', '.join(PROGRAMS)} are at "
                         f"most {worst:.4f} % off the native ones, less than {MOST_OFF[way]}")
    busy = [how for guest in ("g1", "g2") for how in re.findall(
        rf"job=(\d+) copy=1 pid=\d+ start cmd={BUSY}\n(?:.*\n)*?t=\S+ job=\1 copy=1 pid=\d+ exit (\S+)",
        (run.out / f"guest-{guest}" / "workloads.log").read_text())]
    claims.check([how for _, how in busy] == 2 * ["signal=15"], f"the busy neighbours worked until they were told to end: {busy}")
    moves = [int(n) for guest in ("g1", "g2") for lines in outputs(run, guest).values()
             for n in re.findall(r"^moves=(\d+)", "\n".join(lines), re.MULTILINE)]
    claims.check(len(moves) == 2 * len(PROGRAMS) * RUNS and min(moves) > 3, f"'moved' are {moves} moves from vCPU to vCPU")


def run_profile(directory):
    def profile(of):
        return (f"env LD_PRELOAD={PRELOAD} COUNT_EVENTS=cycles:u COUNT_PERIOD={PERIOD} COUNT_FILE={of} "
                "$(command -v shor) 33 5 > /dev/null")
    pairs = [(CLIENT, "/bin/count-loops"), ("build-arm64/tests/lab/count-preload.so", PRELOAD)]
    scenario = f"""
host arch=arm64 pcpus=1 icount=yes memory=1536
guest g1 vcpus=1 memory=256 truth=no agent=yes cpu=host,pmu=off
guest g2 vcpus=1 memory=256 truth=no
{files_of("g1", pairs)}{files_of("g2", pairs)}command cp $(command -v shor) /out/shor; cp {pairs[1][0]} {PRELOAD}; \
perf record -q -e cycles:u -c {PERIOD} -o /run/perf.data -- shor 33 5 > /dev/null; \
perf script -i /run/perf.data -F ip,sym; rm /run/perf.data; {profile("/out/profile")}
command {inside("g2", profile("/out/profile"))}
command vperf lend --vm g1 -e cycles:u,instructions -q -- sh -c "{inside("g1", profile("/out/profile")).replace("$", chr(92) + "$")}; \
{inside("g1", f"{THREADS} --way lent")}; {inside("g1", f"{THREADS} --way lent --calibrate 1")}"
command {inside("g2", f"{THREADS} --way call")}
"""
    return run_scenario(scenario.replace("\\\n", ""), directory)


def functions_of(program):
    """Start, end and name of each function of a program, by its symbols."""
    done = subprocess.run(["readelf", "-sW", str(program)], capture_output=True, text=True, check=True)
    rows = re.findall(r"^\s*\d+: ([0-9a-f]+)\s+(\d+) FUNC\s+\w+\s+\w+\s+\d+ (\S+)", done.stdout, re.MULTILINE)
    return sorted({(int(start, 16), int(start, 16) + int(size), name) for start, size, name in rows if int(size)})


def profile_of(path, functions):
    """Function -> samples of what count-preload.so wrote; its first line."""
    first, *places = path.read_text().splitlines()
    found = Counter()
    for place in places:
        at = int(place, 16) if place != "-" else -1
        found[next((name for start, end, name in functions if start <= at < end), "(libraries)")] += 1
    return found, dict(re.findall(r"(\S+)=(\S+)", first))


def check_profile(run, claims):
    functions = functions_of(run.out / "shor")
    own_names = {name for _, _, name in functions}
    recorded = Counter(name if name in own_names else "(libraries)"
                       for name in re.findall(r"^\s*[0-9a-f]+ (\S+)", run.command_output(1), re.MULTILINE))
    others = {"native": "profile", "PMU": "guest-g2/profile", "lent": "guest-g1/profile"}
    found = {way: profile_of(run.out / path, functions) for way, path in others.items()}
    native = found["native"][0]
    claims.note(f"{'function':32} {'perf record, %':>15} {'native, %':>10} {'PMU/native':>11} {'lent/native':>12}")
    for name, samples in native.most_common(8):
        share = samples / native.total()
        ratios = [found[way][0][name] / max(found[way][0].total(), 1) / share for way in ("PMU", "lent")]
        claims.note(f"{name:32} {100 * recorded[name] / recorded.total():15.2f} {100 * share:10.2f} {ratios[0]:11.3f} {ratios[1]:12.3f}")
    cycles = int(found["native"][1]["cycles:u"])
    for way, (profile, said_of) in found.items():
        check_shares(claims, way, *(("perf record", recorded) if way == "native" else ("native", native)), profile)
        due = int(said_of["cycles:u"]) // PERIOD
        claims.check(profile.total() == int(said_of["samples"]) and abs(due - profile.total()) <= 0.01 * due,
                     f"{way}: {profile.total()} signals, one each {PERIOD} of {said_of['cycles:u']} cycles")
        off_native = 100 * (int(said_of["cycles:u"]) / cycles - 1)
        claims.check(abs(off_native) < 1, f"{way}: with signals, the program has {off_native:.3f} % cycles more than natively, less than 1")


def check_shares(claims, way, beside, native, profile):
    """Each function that has a share to speak of has the other's, but for chance."""
    worst, total, of_profile = (0, "", 0), native.total(), max(profile.total(), 1)
    for name, samples in native.items():
        share, other = samples / total, profile[name] / of_profile
        chance = math.sqrt(share * (1 - share) * (1 / total + 1 / of_profile))
        if share > LEAST_SHARE:
            worst = max(worst, (abs(other - share) / chance, name, 100 * (other - share)))
    claims.check(profile.total() > 500 and worst[0] < SIGMAS,
                 f"{way}: the share of {worst[1]} is farthest from that of the {beside} one, {worst[2]:.2f} points or {worst[0]:.1f} "
                 f"standard errors, less than {SIGMAS}")


def threads_of(lines):
    """By their numbers: they end in any order."""
    return [int(line["values"]) for line in sorted(lines, key=lambda line: line.get("thread", "")) if "thread" in line]


def check_calibrated(run, claims):
    """With the kernel's instructions: counts of alternating threads, compared with those of a guest's PMU."""
    pmu = next(threads_of(lines) for lines in said(run, "g2").values() if threads_of(lines))
    raw, taken_off = (lines for _, lines in sorted(said(run, "g1").items()) if threads_of(lines))
    for what, lines, most in (("as they are", raw, None), ("calibrated", taken_off, MOST_CALIBRATED)):
        found = [100 * (value / expected - 1) for value, expected in zip(threads_of(lines), pmu)]
        text = (f"threads' instructions with the kernel's, lent, {what}: {[f'{n:.3f}' for n in found]} % off a guest's PMU, in "
                f"{[line['switches'] for line in lines if 'thread' in line]} switches")
        if most is None:
            claims.note(text)
        else:
            claims.check(len(found) == 3 and all(abs(n) < most for n in found), f"{text}, less than {most}")


def profile_and_switches(run, claims):
    check_profile(run, claims)
    check_calibrated(run, claims)


TESTS = []
QUICK = ()
FULL = [("64-bit Arm, counters of programs", run_programs, programs),
        ("64-bit Arm, profile by overflow, and switches", run_profile, profile_and_switches)]
