# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims in a Xen dom0: see docs/method-xen.md."""
import collections
import csv
import json
import re

from lab import REPOSITORY, share_bound, vperf
from test_account import check_closing, check_parts, read
from test_counters import lines_of, said

HZ = 1000000000  # of the TSC in virtual time
RECORD = "vperf record --no-samples --no-symbols"

# Two busy guests on one pCPU. The same trace is read by Xen's own tool and by vperf; another time the same seconds are counted by
# vperf and by the hypervisor. Recorded into memory, as xentrace's is: time goes on in the emulated host while this machine writes.
ACCOUNT = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
guest pv memory=192 type=pv
guest pvh memory=192 type=pvh
workload pv shares fast=80 slow=20
workload pvh shares fast=80 slow=20
command xentrace -D -e 0x2a1000 -T 1 /tmp/trace 2>/dev/null && cp /tmp/trace /out && \\
xenalyze --svm-mode --cpu-hz {HZ} --summary /tmp/trace >/out/xenalyze.txt 2>/dev/null && \\
$VPERF_BUILD/tests/lab/trace-of-xen /tmp/trace {HZ} >/out/ours.json
command {RECORD} --account-events --paravirtual -o /run/rec -- {REPOSITORY}/tests/lab/xen-cpu-time 2 >/out/books.json && cp -r /run/rec /out
command xentrace -D /tmp/other 2>/dev/null & until [ -s /tmp/other ]; do sleep 0.1; done; \\
{RECORD} -d 1 -o /out/in-use; echo $? >&2; kill $!; wait
command vperf top -n 1 --json >/out/top.json
command {RECORD} -d 1 --paravirtual --account-events -e xentrace:sched -e xentrace:hvm -e 'xentrace:h*call*,xentrace:page_fault' \
-e sched:sched_switch -o /run/events && cp -r /run/events /out
command {RECORD} --trace -o /run/dom0 -- sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; read ran rest </proc/$$/schedstat; echo $$ $ran' && \\
cp -r /run/dom0 /out
command vperf check --json; vperf record --interrupts=pmu -d 1 -o /out/pmu; echo $? >&2; vperf record --interrupts=pmu -e cycles -d 1 -o /out/pmu; echo $? >&2
""".replace("\\\n", "")


def of_trixie(scenario):
    """The same with Debian 13's Xen and dom0."""
    return scenario.replace("icount=yes", "icount=yes kernel=trixie")


# Its xenalyze knows AMD's exits by their events.
ON_TRIXIE = of_trixie(ACCOUNT).replace("--svm-mode ", "")

WEIGHTS = {"light": 256, "middle": 512, "heavy": 1024}
GUESTS = "\n".join(f"guest {name} memory=128 type={kind} weight={weight}\nworkload {name} shares a=80 b=20"
                   for (name, weight), kind in zip(WEIGHTS.items(), ("pv", "pvh", "pvh")))
STEAL = f"""
host hypervisor=xen pcpus=1 icount=yes memory=5120
{GUESTS}
command {RECORD} -d 8 -o /out/rec
command xl sched-credit2 -d heavy -c 20; {RECORD} -d 4 -o /out/capped
"""

WAITING = 5  # enum of vcpu_span's states


def named_by_domain(run, recording="rec"):
    """VM's name by domain."""
    return {vm["domain"]: vm["name"] for vm in run.info(recording)["vms"]}


def sections(text):
    """Output of xenalyze per vCPU: {(domain, vcpu): lines}."""
    domain, vcpu, ret = None, None, {}
    for line in text.splitlines():
        if match := re.match(r"\|-- Domain (\d+) --\|", line):
            domain, vcpu = int(match[1]), None
        elif match := re.match(r"-- v(\d+) --", line):
            vcpu = int(match[1])
        elif domain is not None and vcpu is not None:
            ret.setdefault((domain, vcpu), []).append(line)
    return ret


def xenalyze_times(lines):
    """{state: (count, ns)}: what it prints are counts and means."""
    found = {}
    for line in lines:
        match = re.match(r" +(running|runnable|blocked|preempt|wake): +(\d+) +[\d.]+s +(\d+)", line)
        if match:
            found[match[1]] = int(match[2]), int(match[2]) * int(match[3])
    return found


PARAVIRTUAL, TRAP, WORK = 0x50000000, 0x1000, 0x2000  # of a reason's number (src/schema/records.h)


def xenalyze_work(lines):
    """{reason: count} of what a PV guest entered Xen for. Hypercalls and traps have their number in brackets."""
    numbers = {"page_fault": 4, "emulate privop": 6, "emulate 4g": 7, "math state restore": 8, "paging fixup": 9, "ptwr": 11}
    found = {}
    for line in lines:
        if match := re.match(r"  (\D+)  (\d+)$", line):
            if match[1] in numbers:
                found[str(PARAVIRTUAL + WORK + numbers[match[1]])] = int(match[2])
        elif match := re.match(r"    \S+ +\[ *(\d+)\]: +(\d+)$", line):
            found[str(PARAVIRTUAL + int(match[1]))] = int(match[2])
        elif match := re.match(r"    \[(\d+)\] (\d+)$", line):
            found[str(PARAVIRTUAL + TRAP + int(match[1]))] = int(match[2])
    return found


def against_xenalyze(run, claims):
    """The same trace, read by Xen's tool and by vperf's parser and states."""
    theirs = sections((run.out / "xenalyze.txt").read_text())
    ours = {(vcpu["domain"], vcpu["vcpu"]): vcpu for vcpu in json.loads((run.out / "ours.json").read_text())}
    claims.check(len(ours) == 3 and set(ours) == set(theirs), f"vCPUs in the trace: {sorted(ours)}, xenalyze {sorted(theirs)}")
    for key, vcpu in ours.items():
        guest, kernel, _, _, halted, _, waking, preempted, _, _ = vcpu["states"]
        times = xenalyze_times(theirs[key])
        for state, value in (("running", guest + kernel), ("preempt", preempted), ("wake", waking), ("blocked", halted)):
            count, expected = times.get(state, (0, 0))
            # A mean is cut to whole ns; what lasts at either end of the trace, xenalyze leaves out.
            claims.check(abs(value - expected) <= count + 0.012 * 1e9,
                         f"domain {key[0]}: {state} for {value} ns, xenalyze {expected} in {count} times")
        work = {reason: count for reason, count in vcpu["exits"].items() if int(reason) >= PARAVIRTUAL}
        claims.check(work == xenalyze_work(theirs[key]), f"domain {key[0]}: entered Xen {work}, xenalyze {xenalyze_work(theirs[key])}")
    claims.check(any(int(reason) >= PARAVIRTUAL for vcpu in ours.values() for reason in vcpu["exits"]), "PV guests enter Xen")
    exits = dict(re.findall(r" VMEXIT_(\w+) +(\d+) ", "\n".join(theirs.get((2, 0), []) + theirs.get((1, 0), []))))
    names = {"96": "INTR", "124": "MSR", "129": "VMMCALL", "120": "HLT"}
    pvh = next((vcpu for vcpu in ours.values() if vcpu["exits"].keys() & names.keys()), {"exits": {}})
    found = {names[code]: count for code, count in pvh["exits"].items() if code in names}
    # One may be open when the trace ends.
    claims.check(sum(found.values()) > 300 and
                 all(abs(count - int(exits.get(name, 0))) <= 1 for name, count in found.items()),
                 f"exits {found}, xenalyze {exits}")


def is_hypercall(reason):
    return not re.match(r"(trap|work) \d+$|page fault$|page-table write$|privileged instruction$|FPU's state$|emulat|.*fault$|invalid", reason)


def stretches(rows, domain):
    """(begin, end) of the turns of that domain's one vCPU, by Xen's own events."""
    turns, since = [], None
    for row in rows:
        if row["machine"] != "hypervisor" or row["domid"] != str(domain):
            continue
        if row["event"].endswith("_to_running"):
            since = int(row["time_ns"])
        elif row["event"].startswith("xentrace:running_to_"):
            turns.append((since or 0, int(row["time_ns"])))
            since = None
    return turns


def own_events(run, claims):
    """Xen's events one by one: as many as the account has counted, and on the clock of dom0's tracepoints."""
    rows = list(csv.DictReader(vperf("script", str(run.recording("events")), "--format", "csv").stdout.splitlines()))
    own = [row for row in rows if row["machine"] == "hypervisor"]
    counts = collections.Counter((row["vm"], row["event"].split(":")[1].replace("SVM_", "")) for row in own)
    exits = read("exits", run, recording="events")["exits"]
    sums = collections.Counter()
    for row in exits:
        pv = row["vm"] != "pvh"
        kind = "page_fault" if row["reason"] == "page fault" else "hypercall" if pv and is_hypercall(row["reason"]) else "VMEXIT"
        if kind != "VMEXIT" or not pv:
            sums[row["vm"], kind] += row["count"]
    for (vm, kind), count in sums.items():
        slack = kind == "VMEXIT"  # one is open at the end
        claims.check(abs(counts[vm, kind] - count) <= slack, f"{vm}: {counts[vm, kind]} events {kind}, the account has {count}")
    claims.check(len(sums) >= 3 and sum(sums.values()) > 1000, f"… {len(sums)} kinds, {sum(sums.values())} events in all")
    info = run.info("events")
    claims.check((info["hypervisor_events"], info["hypervisor_events_lost"]) == (len(own), 0), f"vperf info has the {len(own)} events, none lost")
    others = collections.Counter(row["number"] for row in own if row["event"] == "xentrace:other")
    claims.check(sum(others.values()) <= 0.02 * len(own), f"of {len(own)} events of Xen's these have no name: {dict(others)}")
    turns = stretches(rows, 0)
    switches = [int(row["time_ns"]) for row in rows if row["event"] == "sched:sched_switch"]
    inside = [time for time in switches if turns and turns[0][1] <= time <= turns[-1][1]]
    outside = [time for time in inside if not any(begin <= time <= end for begin, end in turns)]
    claims.check(len(inside) >= 20 and not outside,
                 f"{len(inside)} of dom0's own {len(switches)} switches are within the {len(turns)} turns that Xen gave it, but {outside}")


def spans(run):
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "vcpu_span").stdout
    return list(csv.DictReader(printed.splitlines()))


def running_ns(rows, vcpu, begin, end):
    """How long the vCPU ran within that time: states guest and kernel."""
    return sum(max(0, min(int(row["time_ns"]), end) - max(int(row["time_ns"]) - int(row["ns"]), begin))
               for row in rows if (row["vm"], int(row["vcpu"])) == vcpu and int(row["state"]) in (0, 1))


def against_the_books(run, claims):
    """The hypervisor's own CPU time of each vCPU, between two looks at it."""
    names, rows = named_by_domain(run), spans(run)
    first, last = json.loads((run.out / "books.json").read_text())
    later = {(look[2], look[3]): look for look in last}
    for begin, begun, domain, vcpu, before in first:
        look = later[domain, vcpu]
        # In its books a turn begins and ends with the decision, not with the record.
        slack = (begun - begin) + (look[1] - look[0]) + 20000 + 0.0005 * (look[4] - before)
        claims.near(f"{names[domain]}: ns on a pCPU between two looks", running_ns(rows, (names[domain], vcpu), begun, look[0]),
                    look[4] - before, slack)


def lanes(run, recording, lane):
    """Periods, each with its length."""
    printed = vperf("timeline", str(run.recording(recording)), "--lane", lane, "--format", "csv").stdout
    return [row | {"ns": int(row["end_ns"]) - int(row["begin_ns"])} for row in csv.DictReader(printed.splitlines())]


def sums_of(rows, *keys):
    sums = collections.Counter()
    for row in rows:
        sums[tuple(row[key] for key in keys)] += row["ns"]
    return +sums


def periods(run, claims, recording, ended=()):
    """'vperf timeline' and 'sched' work out again, from the states one by one, what the recorder has summed."""
    names = {"guest": "guest", "kernel": "work", "halted": "halted", "waiting": "waiting", "waking": "waking", "preempted": "preempted"}
    states = read("account", run, recording=recording)["states"]
    account = sums_of([row | {"period": names[row["state"]]} for row in states], "vm", "period")
    vcpus, pcpus = lanes(run, recording, "vcpu"), lanes(run, recording, "pcpu")
    # The accounting has the time for which a domain was paused before it ended, to a second.
    ends = {(vm, "waiting") for vm in ended}
    told = {key: ns for key, ns in sums_of(vcpus, "vm", "state").items() if key not in ends}
    account = {key: ns for key, ns in account.items() if key not in ends}
    claims.check(told == account and sum(state == "guest" for _, state in account) >= 3, f"{recording}: periods of vCPUs sum to the account's {account}")
    took = sums_of([row for row in vcpus if row["thief_comm"]], "vm", "thief_comm")
    thieves = read("steal", run, recording=recording)["thieves"]
    thefts = sums_of([row | {"thief": "nobody" if row["kind"] == "idle" else row["thief"]} for row in thieves if row["kind"] in ("vcpu", "idle")],
                     "vm", "thief")
    # Some hundred instructions for each switch from Xen's idle vCPU, which the states do not attribute to a vCPU.
    slack = 1000 * sum(row["state"] == "idle" for row in pcpus)
    claims.check(all(abs(took[key] - thefts[key]) <= slack for key in took | thefts) and len(took) >= 4, f"{recording}: thieves of periods {dict(took)}, of 'vperf steal' {thefts}")
    ran = sums_of([row for row in vcpus if row["state"] in ("guest", "work")], "vm")
    had = sums_of([row for row in pcpus if row["state"] == "running"], "vm")
    claims.check(had == ran, f"{recording}: VMs had the pCPU for {dict(had)} ns, their vCPUs ran for {dict(ran)}")
    # The rest is Xen's: some hundred instructions for each switch.
    whole = int(pcpus[-1]["end_ns"]) - int(pcpus[0]["begin_ns"])
    left = whole - sum(row["ns"] for row in pcpus)
    claims.check(0 <= left < 2000 * len(pcpus), f"{recording}: of {whole} ns of the pCPU {left} are between {len(pcpus)} periods")
    sched = json.loads(vperf("sched", str(run.recording(recording)), "--format", "json").stdout)
    summed = sums_of([{"vm": row["vm"], "state": state, "ns": row["steal_ns"] - row["waking_ns"] if state == "preempted" else row[f"{state}_ns"]}
                       for row in sched["vcpus"] for state in names.values()], "vm", "state")
    claims.check({key: ns for key, ns in summed.items() if key not in ends} == account, f"{recording}: 'vperf sched' sums to the same")
    return sched


def threads_of_dom0(run, claims):
    """With dom0's own scheduler events its threads are those of its vCPU."""
    sched = periods(run, claims, "dom0")
    pid, ran = map(int, run.command_output(6, "out").split())
    rows = [row for row in sched["threads"] if row["tid"] == pid]
    claims.check(len(rows) == 1 and rows[0]["vm"] == "Domain-0" and rows[0]["pid"] == pid, f"dom0's thread {pid}: {rows}")
    if rows:
        # dom0's own books take for the thread's what its vCPU was preempted for.
        claims.near(f"ns that dom0's thread had its vCPU ({rows[0]['exact_ns']}) or that was stolen then, and its time in dom0's books",
                    rows[0]["exact_ns"] + rows[0]["steal_ns"], ran, 0.01 * ran)
        claims.check(rows[0]["steal_ns"] > 0 and rows[0]["thief"].startswith("vCPU 0 of VM pv"), f"… and who took its vCPU: {rows[0]}")
    claims.check(not any(row["vm"] != "Domain-0" for row in sched["threads"]), "threads of guests are not known")
    failed = vperf("critical", "--vm", "pvh", "--thread", "1", str(run.recording("dom0")), check=False)
    claims.check(failed.returncode == 1 and "the recording has no events of" in failed.stderr and "'pvh'" in failed.stderr, f"'vperf critical' says why not: {failed.stderr}")


def no_counters(run, claims):
    """Here is no PMU that Xen could lend."""
    probe = next(probe for probe in json.loads(run.command_output(7, "out"))["features"] if probe["name"] == "Xen's PMU")
    claims.check(not probe["found"] and "Xen provides no counters" in probe["detail"], f"'vperf check': {probe}")
    first, status, second, *rest = run.command_output(7, "err").splitlines()
    claims.check(status == "1" and first == f"vperf record: {probe['detail']}", f"'vperf record --interrupts=pmu' says the same: {first}")
    claims.check(rest[-1] == "2" and "mutually exclusive" in second, f"… and with -e cycles: {second}")


def account_of_two(run, claims):
    against_xenalyze(run, claims)
    no_counters(run, claims)
    periods(run, claims, "rec")
    threads_of_dom0(run, claims)
    # All events again, without being asked for.
    claims.check("trace buffers are in use" in run.command_output(3, "err") and
                 run.command_output(3, "err").split()[-1] == "1", "beside xentrace nothing is recorded, and it is said")
    account = read("account", run)
    check_closing(claims, account)
    exits = read("exits", run)["exits"]
    check_parts(claims, [row for row in exits if row["vm"] == "pvh"])
    untimed = {row["reason"]: row["count"] for row in exits if row["vm"] == "pv"}
    claims.check(untimed and all(row["total_ns"] is None for row in exits if row["vm"] != "pvh"), f"the PV guest entered Xen without a time: {untimed}")
    claims.check(account["checks"]["exits_by_reason"] == sum(row["count"] for row in exits), "exits by reason are all of them")
    against_the_books(run, claims)
    own_events(run, claims)
    claims.check(run.info()["lost"] == 0 and run.info()["account_lost"] == 0, "no record is lost")
    thefts = read("steal", run)["thieves"]
    waits = {vm: sum(row["ns"] for row in account["states"] if row["vm"] == vm and row["state"] in ("waking", "preempted"))
             for vm in ("pv", "pvh")}
    for vm, other in (("pv", "pvh"), ("pvh", "pv")):
        named = {row["thief"]: row["ns"] for row in thefts if row["vm"] == vm}
        taken = named.get(f"vCPU 0 of VM {other}", 0)
        claims.check(waits[vm] > 0 and taken > 0.8 * waits[vm], f"who took {vm}'s {waits[vm]} ns: {named}")
        claims.check(sum(named.values()) == waits[vm], f"thieves of {vm} sum to {sum(named.values())} ns")
    live = json.loads((run.out / "top.json").read_text())
    claims.check({row["vm"] for row in live["vcpus"]} == {"Domain-0", "pv", "pvh"}, "'vperf top' has all domains")


def weights(run, claims):
    account = read("account", run)
    check_closing(claims, account)
    wall = {row["vm"]: row["wall_ns"] for row in account["vcpus"]}
    ran = {vm: sum(row["ns"] for row in account["states"] if row["vm"] == vm and row["state"] in ("guest", "kernel")) for vm in wall}
    total = sum(ran[vm] for vm in WEIGHTS)
    for vm, weight in WEIGHTS.items():
        claims.near(f"{vm}: % of what the guests got", 100 * ran[vm] / total, 100 * weight / sum(WEIGHTS.values()), 1)
    thefts = read("steal", run)["thieves"]
    for vm in WEIGHTS:
        named = {row["thief"]: row["ns"] for row in thefts if row["vm"] == vm}
        lost = wall[vm] - ran[vm]
        claims.near(f"{vm}: % of its waits whose thief is known", 100 * sum(named.values()) / lost, 100, 1)
        for other in set(WEIGHTS) - {vm}:
            claims.near(f"{vm}: % of the time taken by {other}", 100 * named.get(f"vCPU 0 of VM {other}", 0) / wall[vm],
                        100 * ran[other] / wall[other], 1)
    capped = read("account", run, recording="capped")
    check_closing(claims, capped)
    states = {row["state"]: row["percent"] for row in capped["states"] if row["vm"] == "heavy"}
    claims.near("under a cap of 20 %: % in guest and hypervisor", states.get("guest", 0) + states.get("kernel", 0), 20, 2)
    claims.check(states.get("throttled", 0) > 50, f"heavy is throttled: {states}")
    for recording, finding, words in (("rec", "overcommit", "xl vcpu-pin"), ("capped", "quota", "xl sched-credit2")):
        advice = {found["id"]: found["advice"] for found in read("diagnose", run, recording=recording)["findings"] if found["vm"] == "heavy"}
        claims.check(words in advice.get(finding, ""), f"heavy's finding in '{recording}', and what to try: {advice}")


# Both kinds of guests; one has two busy processes, which share its vCPU.
BUSY = """
host hypervisor=xen pcpus=1 icount=yes memory=4096
guest pv memory=192 type=pv
guest pvh memory=192 type=pvh
workload pv shares fast=80 slow=20
workload pvh shares fast=80 slow=20
workload pvh shares left=30 right=70
"""
# They are sampled and named from dom0 alone.
SAMPLES = BUSY + """
command vperf guests --json >/out/guests.json
command vperf record -d 6 -o /out/both
command vperf record -F 997 --no-guest-memory --vm pvh -d 4 -o /out/often
command vperf record -F 997 -d 18 -o /out/many
"""
MOST_POINTS = 3  # what chance may move a share by, of that many samples


def profile(run, vm, recording="rec"):
    return json.loads(vperf("report", "--view", "guest", "--vm", vm, "--per-process", "--json", str(run.recording(recording))).stdout)


def check_process(claims, what, report, rows, expected):
    """A process's samples by function; other activity of its vCPU is not included."""
    found = {row["function"]: row["samples"] for row in rows}
    total = sum(found.values())
    claims.check(total > 50, f"{what}: {total} samples")
    for name, percent in expected.items():
        claims.share(f"{what}: {name}", found.get(name, 0), (total, report), percent)


def samples_of_guests(run, claims):
    guests = json.loads((run.out / "guests.json").read_text())["vms"]
    listed = {guest["vm"]: [process["process"] for process in guest["processes"]] for guest in guests}
    claims.check(sorted(listed) == ["pv", "pvh"], f"'vperf guests' lists {sorted(listed)}, without dom0")
    for vm, processes in (("pvh", [{"share_a": 80, "share_b": 20}, {"share_a": 30, "share_b": 70}]), ("pv", [{"share_a": 80, "share_b": 20}])):
        claims.check(listed.get(vm, []).count("shares") == len(processes), f"{vm}: processes {listed.get(vm)}")
        report = profile(run, vm, "both")
        pids = sorted({row["pid"] for row in report["rows"] if row["process"] == "shares"})
        claims.check(len(pids) == len(processes), f"{vm}: 'shares' are {pids}")
        for pid, expected in zip(pids, processes):
            check_process(claims, f"{vm}, process {pid}", report, [row for row in report["rows"] if row["pid"] == pid], expected)
        named = sum(row["samples"] for row in report["rows"] if row["pid"] in pids)
        claims.check(named >= 0.98 * report["samples"], f"{vm}: {named} of {report['samples']} samples are of these processes")
        ran = sum(row["ns"] for row in read("account", run, recording="both")["states"] if row["vm"] == vm and row["state"] in ("guest", "kernel"))
        # A sample represents a period of CPU time, starting at half a period.
        claims.near(f"{vm}: CPU time of the samples, ms", report["samples"] * report["period_ns"] / 1e6, ran / 1e6,
                    3 * report["period_ns"] / 1e6)
    for vm, processes in (("pvh", [{"share_a": 80, "share_b": 20}, {"share_a": 30, "share_b": 70}]), ("pv", [{"share_a": 80, "share_b": 20}])):
        report = profile(run, vm, "many")
        pids = sorted({row["pid"] for row in report["rows"] if row["process"] == "shares"})
        for pid, expected in zip(pids, processes):
            rows = [row for row in report["rows"] if row["pid"] == pid and row["function"] in expected]
            total = sum(row["samples"] for row in rows)
            for name, percent in expected.items():
                found = 100 * sum(row["samples"] for row in rows if row["function"] == name) / total
                claims.check(share_bound(percent, total, 0) <= MOST_POINTS and abs(found - percent) <= MOST_POINTS,
                             f"{vm}, process {pid}: {name} has {found:.2f} % of {total} samples, expected {percent} +- {MOST_POINTS}")
    claims.check("each paused its vCPU for" in vperf("info", str(run.recording("both"))).stdout, "what the samples cost is said")
    often = profile(run, "pvh", "often")
    check_process(claims, "pvh at 997 Hz, two processes", often, [row for row in often["rows"] if row["kind"] == "user"], {})
    claims.check(often["period_ns"] == 1003009, f"period at 997 Hz: {often['period_ns']} ns")
    claims.check(all(row["module"] is None or "shares" not in row["module"] for row in often["rows"]),
                 "without guest memory there are addresses only")
    other = profile(run, "pv", "often")
    claims.check(other["samples"] > 0 and not any("0x" in str(row) for row in other["rows"]), f"what was not asked for is hidden: {other['rows']}")


# A PVH guest is sampled where it is left for interrupts, too; a PV guest has no exits.
INTERRUPTS = BUSY + """
command vperf record --interrupts -F 1009 -d 6 -o /out/rec
"""
AT_INTERRUPT = 512  # of a guest_sample's flags


def interrupts(run, claims):
    said = vperf("info", str(run.recording())).stdout
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "guest_sample").stdout
    samples = list(csv.DictReader(printed.splitlines()))
    exits = [row for row in samples if int(row["flags"], 16) & AT_INTERRUPT]
    found = re.search(r"(\d+) by the vCPU's context from Xen \(([\d.]+)% of the CPU time\) and (\d+) at exits for interrupts \(([\d.]+)%;", said)
    claims.check(found is not None, f"which sampler gave what is said: {said}")
    if found:
        claims.near("% of the samples that are of exits, as said", float(found[4]), 100 * len(exits) / len(samples), 0.06)
        claims.check(found[0] in vperf("report", "--view", "guest", "--vm", "pvh", str(run.recording())).stdout, "… in the report, too")
    claims.check({row["vm"] for row in exits} == {"pvh"}, "samples at exits are of the PVH guest")
    # Several may stand at one place: late ticks.
    placed = collections.Counter(row["vm"] for row in samples if not int(row["flags"], 16) & 16)
    places = placed["pvh"]
    seconds = (int(samples[-1]["time_ns"]) - int(samples[0]["time_ns"])) / 1e9
    claims.check(places > 3 * 97 * seconds / 2, f"{places} places in {seconds:.1f} s of half a pCPU: more than three times as many as at 97 Hz")
    claims.check([int(row["time_ns"]) for row in samples] == sorted(int(row["time_ns"]) for row in samples), "samples of both kinds are in order")
    for vm, processes in (("pvh", [{"share_a": 80, "share_b": 20}, {"share_a": 30, "share_b": 70}]), ("pv", [{"share_a": 80, "share_b": 20}])):
        report = profile(run, vm)
        pids = sorted({row["pid"] for row in report["rows"] if row["process"] == "shares"})
        claims.check(len(pids) == len(processes), f"{vm}: 'shares' are {pids}")
        for pid, expected in zip(pids, processes):
            found = {row["function"]: row["samples"] for row in report["rows"] if row["pid"] == pid}
            count = placed[vm] / len(processes)
            for name, percent in expected.items():
                claims.near(f"{vm}, process {pid}: {name}, % of about {count:.0f} places", 100 * found.get(name, 0) / sum(found.values()), percent,
                            share_bound(percent, count, 0))
        named = sum(row["samples"] for row in report["rows"] if row["pid"] in pids and row["function"] in ("share_a", "share_b"))
        claims.check(named >= 0.98 * report["samples"], f"{vm}: {named} of {report['samples']} samples are of these processes' functions")
        ran = sum(row["ns"] for row in read("account", run)["states"] if row["vm"] == vm and row["state"] in ("guest", "kernel"))
        claims.near(f"{vm}: CPU time of the samples, and what is said to have none, ms", report["samples"] * report["period_ns"] / 1e6, ran / 1e6,
                    (float(re.search(r"CPU time without samples: ([\d.]+) ms", said)[1]) if found else 0) + 3 * report["period_ns"] / 1e6)


# A guest with a device model, which is a process of dom0.
HVM = """
host hypervisor=xen pcpus=1 icount=yes memory=6144
guest hvm memory=192 type=hvm
workload hvm shares fast=80 slow=20
command vperf record -d 3 -o /out/hvm
"""


def hvm_guest(run, claims):
    report = profile(run, "hvm", "hvm")
    rows = [row for row in report["rows"] if row["process"] == "shares"]
    check_process(claims, "hvm", report, rows, {"share_a": 80, "share_b": 20})
    named = sum(row["samples"] for row in rows)
    claims.check(named >= 0.9 * report["samples"], f"hvm: {named} of {report['samples']} samples are of its process")
    account = read("account", run, recording="hvm")
    check_closing(claims, account)
    exits = read("exits", run, recording="hvm")["exits"]
    check_parts(claims, [row for row in exits if row["vm"] == "hvm"])


# Actions of an administrator on domains that are recorded and whose memory is read.
CHANGES = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4500
guest plugged memory=160 type=pvh vcpus=2
guest halted memory=128 type=pv
guest doomed memory=128 type=pvh
guest late memory=128 type=pv autostart=no
workload plugged copies=2 shares fast=80 slow=20
workload halted shares fast=80 slow=20
workload doomed shares fast=80 slow=20
workload late shares fast=80 slow=20
command vperf record --account-events -o /out/rec -- {REPOSITORY}/tests/lab/xen-changes >/out/steps.json
"""


def waiting_ns(rows, vcpu, begin, end):
    """Time in that interval in which Xen did not run the vCPU although its pCPU was free."""
    return sum(max(0, min(int(row["time_ns"]), end) - max(int(row["time_ns"]) - int(row["ns"]), begin))
               for row in rows if (row["vm"], int(row["vcpu"])) == vcpu and int(row["state"]) == WAITING)


def changes(run, claims):
    steps, rows, info, account = json.loads((run.out / "steps.json").read_text()), spans(run), run.info(), read("account", run)
    claims.check(info["lost"] == 0 and info["account_lost"] == 0, f"no record is lost: {info['lost']}, {info['account_lost']}")
    check_closing(claims, account)
    claims.check(account["checks"].get("samples_agree"), f"samples and account agree: {account['checks']}")
    for what, vcpu, begun, ended in (("an unplugged vCPU", ("plugged", 1), "unplug", "plug"), ("a paused domain", ("halted", 0), "pause", "unpause")):
        begin, end = steps[begun][1], steps[ended][0]
        claims.check(end - begin > 500000000 and waiting_ns(rows, vcpu, begin, end) == end - begin,
                     f"{what} waits for {waiting_ns(rows, vcpu, begin, end)} of {end - begin} ns")
        before, after = running_ns(rows, vcpu, int(info["start_ns"]), steps[begun][0]), running_ns(rows, vcpu, steps[ended][1], int(info["end_ns"]))
        claims.check(before > 0 and after > 0, f"… and ran for {before} ns before and for {after} ns after that")
    # A domain ends when it is destroyed, not when that is noticed.
    ends = {vm["domain"]: vm for vm in info["vms"] if vm["ended_during_recording"]}
    claims.check(len(ends) == 2 and {vm["name"] for vm in ends.values()} == {"doomed", "late"}, f"domains that ended: {ends}")
    for name, step in (("doomed", "destroy"), ("late", "destroy late")):
        last = max(int(row["time_ns"]) for row in rows if row["vm"] == name)
        claims.check(steps[step][0] <= last <= steps[step][1], f"{name}'s account ends {(last - steps[step][0]) / 1e6:.1f} ms after it is to be "
                     f"destroyed, which takes {(steps[step][1] - steps[step][0]) / 1e6:.1f} ms")
    periods(run, claims, "rec", ended=("doomed", "late"))
    late = profile(run, "late")
    ran = sum(row["ns"] for row in account["states"] if row["vm"] == "late" and row["state"] in ("guest", "kernel"))
    # It is looked for ten times a second.
    claims.near("late: CPU time of the samples of a domain that came, ms", late["samples"] * late["period_ns"] / 1e6, ran / 1e6,
                100 + 3 * late["period_ns"] / 1e6)
    said = run.command_output(1, "err")
    for name in ("doomed", "late"):
        claims.check(f"VM '{name}'" in said and "stopped" in said, f"that {name} stopped is said: {said}")


# libvperf in dom0 and in guests of each kind, which have no PMU here: counts of their kernels, and the steal reported by Xen.
NS, PAGES, ROUNDS = 30000000, 100, 5  # of the loop between two reads: an instruction is a nanosecond
COUNT = f"count-loops --event task-clock --event page-faults --loops {NS // 6} --pages {PAGES}"
KINDS = ("pv", "pvh", "hvm")


def beside(busy, command):
    return (f"JOB=$(lab-guest spawn {busy} count-loops --event page-faults --threads 2 --rounds 10000); {command}; "
            f"lab-guest end {busy} $JOB || true")


COUNTERS = "host hypervisor=xen pcpus=1 icount=yes memory=4096\n" + "".join(
    f"guest {kind} memory=160 type={kind} truth=no\nfile {kind} build/tests/lab/count-loops /bin/count-loops\n" for kind in KINDS) + f"""
command build/tests/lab/{COUNT}; build/tests/lab/count-loops; build/tests/lab/count-loops --way lent; true
command {'; '.join(f"lab-guest run {kind} {COUNT}; lab-guest run {kind} count-loops" for kind in KINDS)}; true
command {beside("pvh", f"build/tests/lab/{COUNT}; lab-guest run pv {COUNT}")}
command {beside("pv", f"lab-guest run pvh {COUNT}; lab-guest run hvm {COUNT}")}
command vperf check --json; true
"""


def check_counts(claims, where, lines):
    ways = [line["way"] for line in lines if "way" in line]
    claims.check(ways == ["2"], f"{where}: the way that is chosen is {ways}, a call")
    faults = [int(line["loop"].split(",")[1]) for line in lines if "loop" in line]
    claims.check(faults == ROUNDS * [PAGES], f"{where}: {PAGES} new pages are {faults} page faults")


def check_times(claims, where, lines, shared):
    """The thread's CPU time is its kernel's figure minus steal."""
    clock = sum(int(line["loop"].split(",")[0]) for line in lines if "loop" in line)
    times = next((line for line in lines if "on_cpu" in line), {})
    on_cpu, least, most = (int(times.get(key, 0)) for key in ("on_cpu", "stolen_least", "stolen_most"))
    had = ROUNDS * NS
    claims.check(times.get("known") == "3" and on_cpu - most <= 1.02 * had and had <= on_cpu - least,
                 f"{where}: of {on_cpu / 1e6:.1f} ms on its vCPU, {least / 1e6:.1f} to {most / 1e6:.1f} are stolen: "
                 f"loops of {had / 1e6:.0f} ms are within")
    share = clock / had
    claims.check(share > 1.4 if shared else 1 <= share < 1.05, f"{where}: task-clock of the loops is {share:.3f} of them")


def counters(run, claims):
    alone, shared = (lines_of(run.command_output(number)) for number in (1, 3))
    check_counts(claims, "dom0", alone[:-2])
    check_times(claims, "dom0", alone[:-2], False)
    check_times(claims, "dom0 beside a busy guest", shared, True)
    errors = [line.get("error") for line in alone[-2:]]
    claims.check(errors == ["-5", "-6"], f"dom0: without a PMU, and lent ones: {errors}")
    lending = next(probe for probe in json.loads(run.command_output(5))["features"] if probe["name"] == "lending counters")
    claims.check(not lending["found"] and "no KVM" in lending["detail"], f"'vperf check': {lending['detail']}")
    for kind in KINDS:
        jobs = [lines for lines in said(run, kind).values() if "way" in lines[0] or "error" in lines[0]]
        runs = [lines for lines in jobs if len(lines) > 1 and "loop" in lines[2]]
        check_counts(claims, kind, runs[0])
        check_times(claims, kind, runs[0], False)
        check_times(claims, f"{kind} beside a busy guest", runs[1], True)
        claims.check([lines[0]["error"] for lines in jobs if "error" in lines[0]] == ["-5"], f"{kind}: there is no PMU, and that is told")


TESTS = [("Xen: account", ACCOUNT, account_of_two)]
FULL = [("Xen: libvperf", COUNTERS, counters), ("Xen: weights and a cap", STEAL, weights), ("Xen: samples of guests", SAMPLES, samples_of_guests),
        ("Xen: samples at interrupts", INTERRUPTS, interrupts),
        ("Xen: a guest with a device model", HVM, hvm_guest), ("Xen: domains come, go, are paused and plugged", CHANGES, changes),
        ("Xen of trixie: account", ON_TRIXIE, account_of_two), ("Xen of trixie: weights and a cap", of_trixie(STEAL), weights),
        ("Xen of trixie: samples of guests", of_trixie(SAMPLES), samples_of_guests),
        ("Xen of trixie: a guest with a device model", of_trixie(HVM), hvm_guest),
        ("Xen of trixie: domains come, go, are paused and plugged", of_trixie(CHANGES), changes)]
QUICK = ()
