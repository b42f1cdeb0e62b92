# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about intervals: exact sums, and costs of VM exits that a model recovers."""
import json

from lab import vperf
from test_account import check_closing

# Classes of exits, and what the account calls them (AMD); MMIO is a page fault to the processor.
CLASSES = {"cpuid": "CPUID", "io": "IOIO", "mmio": "NPF", "halt": "HLT"}


def stat(run, name):
    return json.loads(vperf("stat", "report", str(run.recording(name)), "--format", "json").stdout)


def rows_of(report, prefix):
    return [row for row in report["intervals"] if row["subject"].startswith(prefix)]


def total(rows, event):
    return sum(row["events"][event]["counted"] for row in rows)


def check_chain(claims, report, what):
    """Every subject's intervals follow each other without gaps, and none is missing."""
    subjects = {}
    for row in report["intervals"]:
        subjects.setdefault((row["tid"], row["vcpu"]), []).append(row)
    gaps = sum(before["end"] != after["begin"] or before["number"] + 1 != after["number"]
               for rows in subjects.values() for before, after in zip(rows, rows[1:]))
    claims.check(subjects and not gaps and not report["lost"],
                 f"{what}: {len(report['intervals'])} intervals of {len(subjects)} subjects, {gaps} gaps, "
                 f"{report['lost']} lost")


EXITS = """interval exits 250
per vcpu
count exits exits:cpuid exits:io exits:mmio exits:halt exits:page-fault exits:interrupt
count time time:running time:waiting time:blocked time:guest time:exits"""
TIME = """interval time 10ms
per vcpu
count exits exits:cpuid exits:io exits:mmio exits:halt exits:page-fault time guest:context-switches
count guest:page-faults guest:forks guest:timer-interrupts guest:interrupts guest:system-calls inject:interrupt"""
KNOWN = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes qemu="-serial unix:/run/vlab/g1.stat,server=on,wait=off"
workload g1 sh -c 'stty -F /dev/ttyS1 raw -echo; exec 3<>/dev/ttyS1; while read word <&3; do case $word in \
work) forkstorm --count 200 --rate 50 > /dev/null;; calls) exits --syscalls 100000 > /dev/null;; \
kill) killall -9 vperf-agent;; esac; { echo done; \
grep -e ctxt -e processes /proc/stat; grep pgfault /proc/vmstat; grep LOC: /proc/interrupts; echo end; } >&3; done'
command-before printf '%s' 'RECIPE_EXITS' > /tmp/exits.recipe; printf '%s' 'RECIPE_TIME' > /tmp/time.recipe
command vperf stat -r /tmp/exits.recipe -o /out/exits -- vperf record --no-samples --no-agent -o /out/rec -- \
tinyvm --cpuid 8000 --out 4000 --mmio 2000 --hlt 1000
command vperf stat -r /tmp/time.recipe -o /out/memory --vm g1 -- \
vperf stat -r /tmp/time.recipe -o /out/agent --no-guest-memory --vm g1 -- \
sh -c 'for work in work calls; do tests/lab/ask-guest g1 $work; done'
command vperf stat -r /tmp/time.recipe -o /out/killed --vm g1 -- bash -c "tests/lab/ask-guest g1 kill; \
until grep -q system-calls /out/said; do sleep 0.1; done; tests/lab/ask-guest g1 calls" 2>/out/said
command vperf stat -e msr/tsc/,sched:sched_switch,context-switches,time -I 10 --per pcpu -d 2 -o /out/named && \
vperf stat --list && { vperf stat -e sched:sched_swich -o /out/none || true; }
command vperf stat --native -e guest:system-calls,time -I 10 -o /out/native -- exits --syscalls 100000
command vperf stat -e exits:cpuid,exits:mmio,time -I 50 --per pcpu -o /out/shared -- \
sh -c 'tinyvm --cpuid 50000 & tinyvm --mmio 20000; wait'
""".replace("RECIPE_EXITS", EXITS.replace("\n", "\\n")).replace("RECIPE_TIME", TIME.replace("\n", "\\n"))
KNOWN = KNOWN.replace("'%s' '", "'").replace("\\\n", "")
CALLS = 100000  # of `exits`; its start, its end and the reading of the books make a few hundred more
DONE = {"cpuid": 8000, "io": 4000, "mmio": 2000, "halt": 1000}


def known_exits(run, claims):
    report = stat(run, "exits")
    check_chain(claims, report, "by exits")
    rows = rows_of(report, "vm-")
    for name, count in DONE.items():
        found = total(rows, f"exits:{name}")
        claims.check(found == count, f"exits:{name}: {found} counted, {count} were done")
    whole = [row for row in report["intervals"] if not row["partial"]]
    off = [row["events"]["exits"]["counted"] for row in whole
           if row["events"]["exits"]["counted"] != 250]
    claims.check(len(rows) >= 60 and not off, f"{len(whole)} whole intervals of 250 exits, {off} are not")
    wrong = [row for row in report["intervals"] if row["events"]["time"]["counted"] !=
             sum(row["events"][f"time:{state}"]["counted"]
                 for state in ("running", "waiting", "blocked"))]
    claims.check(not wrong, f"running, waiting and blocked sum to the time of all but {len(wrong)} intervals")


BOOKS = {"guest:context-switches": "ctxt", "guest:forks": "processes", "guest:page-faults": "pgfault",
         "guest:timer-interrupts": "LOC"}


def inside_and_around(report, asked):
    """The intervals between the guest's two readings of its books, and those that touch that time."""
    rows = report["intervals"]
    return ([r for r in rows if r["begin"] >= asked["first"][1] and r["end"] <= asked["second"][0]],
            [r for r in rows if r["end"] > asked["first"][0] and r["begin"] < asked["second"][1]])


def guest_counts(run, claims, name):
    """The guest read its own statistics twice, each within a known time; their difference is between the counts of the
    intervals inside these times and those around them. The same holds for its system calls."""
    report = stat(run, name)
    check_chain(claims, report, f"by time, {name}")
    work, calls = (json.loads(line) for line in run.command_output(3).splitlines())
    inside, around = inside_and_around(report, work)
    for event, book in BOOKS.items():
        least, most = total(inside, event), total(around, event)
        claims.check(0 < least <= work["counts"][book] <= most,
                     f"{event}: the guest's own books say {work['counts'][book]}, intervals {least} to {most}")
    inside, around = inside_and_around(report, calls)
    least, most = (total(rows, "guest:system-calls") for rows in (inside, around))
    # The first and the last interval with calls may each lie half outside.
    edges = 2 * max(row["events"]["guest:system-calls"]["counted"] for row in around)
    claims.check(CALLS - edges <= least and CALLS <= most <= CALLS * 1.02,
                 f"guest:system-calls: {CALLS} were done by a program, intervals say {least} to {most} by all, and "
                 f"{edges // 2} at most each")
    dead = [row for row in inside for event in [*BOOKS, "guest:interrupts", "guest:system-calls"]
            if row["events"][event]["live"] < 1]
    claims.check(not dead, f"{len(dead)} of {len(inside)} intervals without a counter of the guest's, {name}")
    return report, work


def both_sources(run, claims):
    """The kernel's own counters and the agent's, read at the same time by two recorders."""
    (memory, work), (agent, _) = (guest_counts(run, claims, name) for name in ("memory", "agent"))
    for event in [*BOOKS, "guest:interrupts"]:
        (low, high), (least, most) = ([total(rows, event) for rows in inside_and_around(report, work)]
                                      for report in (memory, agent))
        claims.check(low <= most and least <= high, f"{event}: {low} to {high} by the guest's memory, {least} to "
                     f"{most} by its agent")
    source = {name: run.info(name)["vms"][0]["agent"] for name in ("memory", "agent")}
    claims.check(source["memory"] == "ok: it counted guest:system-calls",
                 "its agent counts what the kernel does not, and nothing else")
    claims.check("guest:context-switches, guest:page-faults" in source["agent"],
                 "its agent counts all where the kernel is not looked for")


def killed_agent(run, claims):
    """Its counts are missing from then on, and never wrong; other counts continue."""
    said = (run.out / "said").read_text()
    claims.check("guest:system-calls is missing from now on" in said, f"it is said that the agent ended: {said!r}")
    report = stat(run, "killed")
    check_chain(claims, report, "the agent is killed")
    kernels, agents = ([row["events"][event]["live"] for row in report["intervals"][:-1]]
                       for event in ("guest:forks", "guest:system-calls"))
    begin = kernels.index(1)  # until its first VM entry nothing is known of the guest
    claims.check(begin < 10 and all(kernels[begin:]), f"the kernel's own counters are there from interval {begin} on")
    end = agents.index(0, begin)
    claims.check(agents[begin] == 1 and begin < end and not any(agents[end:]),
                 f"the agent's from {begin} to {end} of {len(agents)}")


def native_calls(run, claims):
    """Without a hypervisor the host's kernel is the one that counts."""
    counted = total(stat(run, "native")["intervals"], "guest:system-calls")
    claims.check(CALLS <= counted <= CALLS * 1.02, f"{CALLS} system calls natively: {counted} are counted")


def shared_pcpu(run, claims):
    """Two VMs and g1 take turns on one pCPU."""
    report = stat(run, "shared")
    check_chain(claims, report, "two VMs on a pCPU")
    found = [total(report["intervals"], event) for event in ("exits:cpuid", "exits:mmio")]
    claims.check(found == [50000, 20000], f"{found} CPUIDs and MMIO accesses of two VMs on a pCPU, 50000 and 20000 were done")


def machine_names(run, claims):
    """Events by the names that the kernel of the lab host has for them."""
    rows = stat(run, "named")["intervals"]
    ticks = [row["events"]["msr/tsc/"]["counted"] for row in rows if not row["partial"]]
    claims.check(len(ticks) > 50 and min(ticks) > 0,
                 f"msr/tsc/ has {min(ticks)} to {max(ticks)} ticks in {len(ticks)} intervals, "
                 f"{total(rows, 'msr/tsc/') / total(rows, 'time'):.3f} per ns")
    switches, counted = (total(rows, event) for event in ("sched:sched_switch", "context-switches"))
    claims.check(counted > 20 and abs(switches - counted) <= 4,
                 f"sched:sched_switch: {switches}, context switches: {counted}")
    claims.check("msr/tsc/ " in run.command_output(5), "msr/tsc/ is in the list of events")
    refused = run.command_output(5, "err")
    claims.check("'sched:sched_swich': no such tracepoint (did you mean sched:sched_switch" in refused,
                 "a tracepoint that is none is refused, with one that is")


def known(run, claims):
    known_exits(run, claims)
    both_sources(run, claims)
    killed_agent(run, claims)
    machine_names(run, claims)
    native_calls(run, claims)
    shared_pcpu(run, claims)


# One nanosecond is one instruction here: costs of exits are figures, not noise. These VMs end within a second: after an exit that
# the default account times come up to a thousand others.
MIX = """interval time 2ms
per vcpu
count exits:cpuid exits:io exits:mmio exits:halt exits:interrupt exits:page-fault time:exits"""
COSTS = """
host pcpus=1 icount=yes
command-before printf 'RECIPE' > /tmp/mix.recipe
command vperf stat -r /tmp/mix.recipe -o /out/mix -- vperf record --account=exact --no-samples --no-agent -o /out/rec -- \
bash -c 'VMS'
command vperf record --no-samples --no-agent -o /out/default -- bash -c 'VMS'
command vperf record --account=exact --no-samples --no-agent -o /out/exact -- bash -c 'VMS'
""".replace("RECIPE", MIX.replace("\n", "\\n")).replace("\\\n", "").replace(
    "VMS", "RANDOM=7; for i in 1 2 3 4 5 6 7 8; do tinyvm --cpuid $((RANDOM % 2000)) --out $((RANDOM % 1500)) "
    "--mmio $((RANDOM % 1200)) --hlt $((RANDOM % 1000)); done")


def exits_of(run, name):
    """Rows by VM of the four classes: reason -> rows."""
    rows = json.loads(vperf("exits", str(run.recording(name)), "--json").stdout)["exits"]
    return {reason: [row for row in rows if row["reason"] == reason] for reason in CLASSES.values()}


def mean_cost(rows):
    return sum(row[part] for row in rows for part in ("kernel_ns", "poll_ns", "vmm_ns")) / sum(row["count"] for row in rows)


def costs(run, claims):
    check_chain(claims, stat(run, "mix"), "by time")
    fit = json.loads(vperf("model", "linear", str(run.recording("mix")), "--target", "time:exits",
                           "--format", "json").stdout)["linear"]
    timed = exits_of(run, "rec")
    for name, reason in CLASSES.items():
        cost = mean_cost(timed[reason])
        found = [p["coefficient"] for p in fit["predictors"] if p["name"] == f"exits:{name}"]
        claims.near(f"cost of an exit for {name}, ns, by regression", found[0], cost, 0.1 * cost)
    default, exact = exits_of(run, "default"), exits_of(run, "exact")
    for name, reason in CLASSES.items():
        # The exact account's own programs take 60 ns more.
        cost = mean_cost(exact[reason])
        off = [(mean_cost([row]), row["work_error_ns"] / row["count"]) for row in default[reason]]
        claims.check(len(off) == 8 and all(abs(mean - cost) < error + 0.05 * cost for mean, error in off),
                     f"the default account has the exits of 8 VMs for {name} within its error and 5 % of {cost:.0f} ns: "
                     f"{[(round(mean), round(error)) for mean, error in off]}")


# The same work in a guest and natively. One row is 20 ms of a vCPU, or of a pCPU.
COMPARED = """interval time 20ms
per vcpu
count exits:cpuid exits:mmio exits:io exits:halt exits:interrupt exits:msr exits:page-fault
count guest:context-switches guest:page-faults time:guest time:running"""
INFLATION = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 pin=0
file g1 tests/lab/mixed-exits /bin/mixed-exits
workload g1 sh /bin/mixed-exits 100
command-before printf 'RECIPE' > /tmp/compared.recipe
command sleep 1; vperf stat -r /tmp/compared.recipe -d 5 -o /out/virt -- \
vperf record --no-samples --no-agent -o /out/rec -- sleep 4.5
command lab-guest stop g1; vperf stat -r /tmp/compared.recipe --native --per pcpu -o /out/native -- \
sh tests/lab/mixed-exits 3
""".replace("RECIPE", COMPARED.replace("\n", "\\n")).replace("\\\n", "")
GROUPS = """cpuid: exits:cpuid
mmio: exits:mmio
io: exits:io
rest of exits: exits:halt, exits:msr, exits:interrupt, exits:page-fault
guest: time:guest, guest:context-switches, guest:page-faults
"""


def inflation(run, claims):
    (run.out / "groups").write_text(GROUPS)
    compared = json.loads(vperf("model", "compare", str(run.recording("native")),
                                str(run.recording("virt")), "--target", "time:running", "--groups",
                                str(run.out / "groups"), "--format", "json").stdout)
    parts = {part["name"]: part for part in compared["comparison"]["groups"]}
    exits = json.loads(vperf("exits", str(run.recording()), "--json").stdout)["exits"]
    whole = [row for row in stat(run, "virt")["intervals"] if not row["partial"]]
    for name in ("cpuid", "mmio", "io"):
        row, = (row for row in exits if row["reason"] == CLASSES[name])
        cost = sum(row[part] for part in ("kernel_ns", "poll_ns", "vmm_ns")) / row["count"]
        expected = cost * total(whole, f"exits:{name}") / len(whole)
        claims.near(f"more by {name}, ns per 20 ms", parts[name]["virtualized"] - parts[name]["native"],
                    expected, 0.1 * expected)
        claims.check(parts[name]["native"] == 0, f"{name} explains nothing natively")


# Samples, accounting and intervals in one recording, compared with intervals alone over the same work.
BESIDE = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
workload g1 shares a=100
command-before printf 'RECIPE' > /tmp/exits.recipe
command vperf stat -r /tmp/exits.recipe -o /out/alone -- vperf record --no-agent --account-events \
--stat /tmp/exits.recipe -o /out/rec -- tinyvm --cpuid 8000 --out 4000 --mmio 2000 --hlt 1000
""".replace("RECIPE", EXITS.replace("\n", "\\n")).replace("\\\n", "")


def counts_of(report):
    """Counts of the short VM's intervals, in order; times differ by the cost of the other recorder."""
    return [[row["events"][f"exits{kind}"]["counted"] for kind in ("", ":cpuid", ":io", ":mmio", ":halt")]
            for row in rows_of(report, "vm-")]


def beside(run, claims):
    together, alone = stat(run, "rec"), stat(run, "alone")
    check_chain(claims, together, "beside samples and account")
    counts, counts_alone = counts_of(together), counts_of(alone)
    claims.check(counts == counts_alone and len(counts) >= 60,
                 f"{len(counts)} intervals beside samples and account, {len(counts_alone)} alone, with the same exits")
    found = {name: total(rows_of(together, "vm-"), f"exits:{name}") for name in DONE}
    claims.check(found == DONE, f"counted in intervals: {found}, done: {DONE}")
    check_closing(claims, json.loads(vperf("account", str(run.recording()), "--json").stdout))
    exits = json.loads(vperf("exits", str(run.recording()), "--json").stdout)["exits"]
    reasons = {name: sum(row["count"] for row in exits if row["vm"].startswith("vm-") and row["reason"] == reason)
               for name, reason in CLASSES.items() if name != "mmio"}  # NPF is more than MMIO
    claims.check(reasons == {name: DONE[name] for name in reasons}, f"by the account: {reasons}")
    report, info = run.report("unified"), run.info()
    due = run.duration_s() * 997
    claims.check(not report["lost"] and 0.95 * due <= report["ticks"] <= 1.05 * due,
                 f"{report['ticks']} ticks of {due:.0f}, {report['lost']} lost")
    claims.check(info["instruments"] == "profile account intervals" and
                 info["intervals"]["count"] == len(together["intervals"]) and not info["intervals"]["lost"],
                 f"vperf info knows of {info['instruments']}")


TESTS = [
    ("stat: known counts", KNOWN, known),
]
QUICK = ()


def matrix_scenario(host):
    return f"""
host pcpus=2 icount=yes kernel={host}
guest g1 vcpus=1 memory=256 pin=1 kernel={host}
workload g1 shares a=100
command vperf stat -r recipes/software.recipe -o /out/vcpu -- tinyvm --cpuid 20000 --out 3000 --wait 1
command vperf stat -e exits:cpuid,task-clock,time -I 'task-clock 5ms' --per pcpu -o /out/pcpu -- tinyvm --cpuid 20000
command vperf stat -r recipes/software.recipe --native -o /out/task -- forkstorm --count 20 --rate 20
"""


def matrix_claims(run, claims):
    report = stat(run, "vcpu")
    check_chain(claims, report, "vCPUs")
    rows = rows_of(report, "vm-")
    found = [total(rows, f"exits:{name}") for name in ("cpuid", "io")]
    claims.check(found == [20000, 3000], f"{found} CPUIDs and port accesses, 20000 and 3000 were done")
    dead = [row for row in rows_of(report, "g1/") if row["events"]["guest:context-switches"]["live"] < 1]
    claims.check(not dead, f"{len(dead)} intervals of g1 without its kernel's counters")
    report = stat(run, "pcpu")
    found = total(report["intervals"], "exits:cpuid")
    claims.check(found == 20000, f"{found} CPUIDs on all pCPUs, 20000 were done")
    clock, time = (total(report["intervals"], event) for event in ("task-clock", "time"))
    claims.near("task-clock of the pCPUs, % of the time", 100 * clock / time, 100, 0.5)
    report = stat(run, "task")
    tasks = {row["tid"] for row in report["intervals"]}
    claims.check(len(tasks) == 21, f"{len(tasks)} tasks of forkstorm and 20 children")
    check_chain(claims, report, "tasks")


# pCPU 1 goes and comes, then one that was offline at the start comes; each dd makes 40,000 system calls on its own pCPU.
WRITES = "dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null"
HOTPLUG = f"""
host pcpus=3 icount=yes
command cd /sys/devices/system/cpu; echo 0 > cpu2/online; vperf stat -e raw_syscalls:sys_enter,task-clock,time -I 50 --per pcpu -o /out/hotplug -- \
sh -c 'taskset -c 1 {WRITES}; echo 0 > cpu1/online; sleep 0.2; echo 1 > cpu1/online; echo 1 > cpu2/online; sleep 0.5; \
taskset -c 1 {WRITES}; taskset -c 2 {WRITES}'
""".replace("\\\n", "")


def pcpus_come_and_go(run, claims):
    report = stat(run, "hotplug")
    check_chain(claims, report, "hotplug")
    of = {}
    for row in report["intervals"]:
        of.setdefault(row["subject"], []).append(row)
    claims.check(len(of) == 3, f"hotplug: intervals of {sorted(of)}")
    done = dict(zip(sorted(of), (None, 80000, 40000)))
    for name, rows in sorted(of.items()):
        if done[name]:  # starts and ends of programs, and occasional other activity
            claims.near(f"hotplug: system calls on {name}", total(rows, "raw_syscalls:sys_enter"), done[name], 0.05 * done[name])
        claims.check(all(0 <= value["counted"] < 1 << 40 for row in rows for value in row["events"].values()),
                     f"hotplug: no count of {name} is absurd")
    late = rows_of(report, max(of))
    clock, time = (total(late[2:], event) for event in ("task-clock", "time"))
    claims.near("hotplug: task-clock of the pCPU that came, % of the time", 100 * clock / time, 100, 2)
    said = run.command_output(1, "err")
    claims.check("pCPU 1 came back online" in said and "pCPU 2 came online during the recording" in said and "is not recorded" not in said,
                 f"hotplug: it is said: {[line for line in said.splitlines() if 'pCPU' in line]}")


FULL = [("stat: beside samples and account", BESIDE, beside),
        ("stat: pCPUs that come and go", HOTPLUG, pcpus_come_and_go), ("stat: inflation", INFLATION, inflation), ("stat: costs of exits", COSTS, costs)] + [
    (f"stat: host {host}", matrix_scenario(host), matrix_claims)
    for host in ("bullseye", "bookworm", "trixie", "sid")]
