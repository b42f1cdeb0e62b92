# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about a flight recorder: one delay, found by its trigger, and the seconds before it."""
import bisect
import collections
import csv
import io
import json
import re

from lab import vperf
from test_trace import stretches_of

# The thief takes the only pCPU for 30 ms once. Records are kept on a file system of the lab host, which has sockets.
DELAYED = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes
workload g1 shares a=100
command mkdir /tmp/f; vperf record --flight 32M --snapshot-on 'steal>20ms' --snapshot-on 'exit>10s' --vm g1 --trace \
--trace-guests -o /tmp/f/rec -- sh -c 'lab-guest busy g1 0.3; tests/lab/hold 30 > /out/held; \
until ls /tmp/f/rec.*/guest-g1.maps > /dev/null 2>&1; do sleep 0.05; done; lab-guest busy g1 0.2; \
vperf snapshot --pid $(pgrep -o -x vperf) > /out/asked'; \
status=$?; rm $(ls /tmp/f/rec*/host.maps | grep -v "$(ls -d /tmp/f/rec.* | head -n 1)"); cp -r /tmp/f/rec* /out/; exit $status
command vperf record --flight 32M --snapshot-on 'steel>1ms' -o /tmp/f/no; echo "status $?"
command vperf snapshot /tmp/f/rec; echo "status $?"
""".replace("\\\n", "")


def events(run, recording, *options):
    text = vperf("script", str(run.recording(recording)), "--format", "csv", *options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def fired_once(run, claims):
    """The notice, the recording that it names, and the cause in that recording; returns its name."""
    said = re.findall(r"(steal>20ms: .*); snapshot in '/tmp/f/(rec\.\d{16})'", run.command_output(1, "err"))
    claims.check(len(said) == 1, f"flight: one notice: {said}")
    cause, name = said[0]
    thief, begin, end = map(int, (run.out / "held").read_text().split())
    vcpu = re.search(r"^vcpu 0 (\d+)", (run.recording(name) / "vms").read_text(), re.M).group(1)
    held = (end - begin) / 1e6
    waited, taken = (float(number) for number in re.search(r"for ([\d.]+) ms .* for ([\d.]+) ms$", cause).groups())
    claims.check(f"vCPU 0 of VM 'g1' (thread {vcpu})" in cause and f"'thief' (thread {thief}) had pCPU 0" in cause,
                 f"flight: who, whose: {cause}")
    claims.near("flight: the thief's time, ms", taken, held, 0.05 * held)
    claims.check(held - 0.05 <= waited <= held + 5, f"flight: waited {waited} ms, of which {held:.1f} ms for the thief")
    info = run.info(name)
    claims.check(info["mode"] == "flight" and info["cause"] == cause, f"flight: vperf info has the cause: {info['cause']}")
    facts = run.facts(name)
    claims.check(int(facts["start"]) <= begin - 200_000_000 and end <= int(facts["end"]) < end + 1_000_000_000,
                 f"flight: it reaches from {(begin - int(facts['start'])) / 1e6:.0f} ms before the delay to "
                 f"{(int(facts['end']) - end) / 1e6:.0f} ms after")
    return name, int(vcpu), thief, begin, end


def delay_is_there(run, claims, name, vcpu, thief, begin, end):
    """The thread left for the thief, and came back 30 ms later."""
    rows = [(int(row["time_ns"]), row) for row in events(run, name, "--event", "sched_switch")
            if row["machine"] == "host"]
    mine = [(time, row) for time, row in rows if begin - 5_000_000 <= time <= end + 5_000_000]
    thefts = [time for time, row in mine if int(row["next_tid"]) == thief and time <= begin]
    back = [time for time, row in mine if int(row["next_tid"]) == vcpu and time >= end]
    # A thread of the kernel (migration/0) may come in between, for microseconds.
    others = sum(after - time for (time, row), (after, _) in zip(mine, mine[1:])
                 if thefts and thefts[-1] <= time < end and int(row["next_tid"]) != thief)
    claims.check(bool(thefts) and bool(back) and others <= 0.01 * (end - begin),
                 f"flight: the thief came, others had the pCPU for {others} ns of {end - begin}, the vCPU came back")
    names = {row["next_comm"] for _, row in mine if int(row["next_tid"]) == thief}
    claims.check(names == {"thief"}, f"flight: the thief's name is {names}")
    unnamed = sum(not row["next_comm"] for _, row in rows)
    claims.check(len(rows) > 20 and not unnamed, f"flight: {unnamed} of {len(rows)} switches are to threads without a name")


def guests_events(run, claims, name, begin, end):
    """Those of the guest itself: from before the delay to after it, in guest mode only, and all of them at the end."""
    rows = events(run, name)
    mine = [(int(row["time_ns"]), (row["vm"], row["vcpu"])) for row in rows if row["machine"] == "guest"]
    stretches, outside = stretches_of(rows), []
    said = next(found for vm in run.info("rec")["vms"]
                if (found := re.match(r"ok: it sent (\d+) events, 0 lost; their times are accurate to (\d+) ns", vm["agent"])))
    bound = int(said.group(2))
    for time, who in mine:
        begins, ends = stretches[who]
        at = bisect.bisect_right(begins, time + bound) - 1
        outside += [time] if begins[0] <= time <= ends[-1] and time > ends[at] + bound else []
    claims.check(len(mine) > 100 and mine[0][0] < begin and mine[-1][0] > end and not outside,
                 f"flight: {len(mine)} events of the guest's own, from before the delay to after it, {len(outside)} outside of guest mode")
    held = [time for time, _ in mine if begin + bound < time < end - bound]
    claims.check(not held, f"flight: {len(held)} events of the guest while the thief had its pCPU")
    last = [row for row in events(run, "rec") if row["machine"] == "guest"]
    claims.check(len(last) == int(said.group(1)), f"flight: {len(last)} events of the guest at the end, it sent {said.group(1)}")


def every_verb(run, claims, name):
    """Each opens the snapshot, and finds what its instrument recorded."""
    account = json.loads(vperf("account", str(run.recording(name)), "--json").stdout)
    wall = sum(row["wall_ns"] for row in account["vcpus"])
    states = {row["state"]: row["ns"] for row in account["states"]}
    claims.check(wall and abs(sum(states.values()) - wall) <= 0.001 * wall,
                 f"flight: the account closes: {sum(states.values())} of {wall} ns")
    _, begin, end = map(int, (run.out / "held").read_text().split())
    steal = json.loads(vperf("steal", str(run.recording(name)), "--json").stdout)["thieves"]
    taken = sum(row["ns"] for row in steal if row["thief"].startswith("thief/"))
    # Its interpreter's start took some of the pCPU, too, before it held it.
    most = states.get("preempted", 0) + states.get("waking", 0)
    claims.check(end - begin - 1_000_000 <= taken <= most,
                 f"flight: vperf steal names the thief, with {taken / 1e6:.1f} ms: {(end - begin) / 1e6:.1f} at once, {most / 1e6:.1f} are stolen by all")
    report = run.report("guest", "--vm", "g1", recording=name)
    shares = sum(row["samples"] for row in report["rows"] if row.get("function") == "share_a")
    claims.check(shares > 100, f"flight: {shares} samples in the guest's share_a, by name")


def asked_for(run, claims, name):
    """By vperf snapshot, and the end."""
    asked = (run.out / "asked").read_text().split()
    names = sorted(path.name for path in run.out.glob("rec*") if path.is_dir())
    claims.check(len(asked) == 1 and names == sorted(["rec", name, *(path.rpartition("/")[2] for path in asked)]),
                 f"flight: one by its condition, one asked for, one at the end: {names}")
    causes = {each: run.info(each)["cause"] for each in names if each != name}
    claims.check(sorted(causes.values()) == ["end of the recording", "manual snapshot"], f"flight: why: {causes}")
    lost = {each: run.info(each)["lost"] for each in names}
    claims.check(not any(lost.values()), f"flight: lost: {lost}")
    claims.check("did you mean steal?" in run.command_output(2, "err") and "status 2" in run.command_output(2),
                 "flight: an unknown condition: one sentence with what may have been meant")
    claims.check("no 'vperf record --flight' records to" in run.command_output(3, "err") and
                 "status 1" in run.command_output(3), "flight: no recorder: one sentence")


def delayed_once(run, claims):
    name, *delay = fired_once(run, claims)
    delay_is_there(run, claims, name, *delay)
    guests_events(run, claims, name, *delay[-2:])
    every_verb(run, claims, name)
    asked_for(run, claims, name)


# The other conditions: a guest that sleeps and is woken while the thief has the pCPU; a VMM that is stopped for 50 ms, of a busy
# guest, since after a halt nothing is missed; a quota. If the expected trigger does not fire, -d ends the recording.
CONDITIONS = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
workload g1 idler 0.002 0.01
command mkdir /tmp/f; {record} --snapshot-on 'wakeup>15ms' --snapshot-after 100ms -o /tmp/f/woken -- \
sh -c 'tests/lab/hold 30; until ls /tmp/f/woken.*/vms > /dev/null 2>&1; do sleep 0.05; done'
command lab-guest spawn g1 shares a=100; {record} --snapshot-on 'exit>40ms' -o /tmp/f/left -- sh -c 'kill -STOP {vmm}; sleep 0.05; kill -CONT {vmm}; \
until ls /tmp/f/left.*/vms > /dev/null 2>&1; do sleep 0.05; done'
command mkdir /sys/fs/cgroup/q; echo +cpu > /sys/fs/cgroup/cgroup.subtree_control; \
echo 30000 100000 > /sys/fs/cgroup/q/cpu.max; {record} --snapshot-on throttled --snapshot-every 400ms --snapshot-max 2 \
-o /tmp/f/quota -- sh -c 'echo {vmm} > /sys/fs/cgroup/q/cgroup.procs; \
until [ $(ls -d /tmp/f/quota.*/vms 2>/dev/null | wc -l) = 2 ]; do sleep 0.05; done; sleep 0.3'; \
echo max > /sys/fs/cgroup/q/cpu.max; rm /tmp/f/*/host.maps; cp -r /tmp/f/* /out/
""".replace("\\\n", "").format(record="vperf record -d 20 --flight 8M --no-samples --trace=sched --no-guest-memory --no-agent",
                             vmm="$(pgrep -f -o \"name g1,\")")


def notices(run, number, condition):
    return re.findall(rf"({condition}: .*); snapshot in '/tmp/f/(\w+\.\d{{16}})'", run.command_output(number, "err"))


def other_conditions(run, claims):
    woken, left, quota = (notices(run, number, condition)
                          for number, condition in ((1, "wakeup>15ms"), (2, "exit>40ms"), (3, "throttled")))
    claims.check(len(woken) == 1 and "'thief'" in woken[0][0] and "got a pCPU" in woken[0][0], f"flight: woken: {woken}")
    claims.check(len(left) == 1 and "outside the guest for" in left[0][0], f"flight: outside the guest: {left}")
    claims.check(len(quota) == 2 and "no further triggered snapshots: 2 were taken" in run.command_output(3, "err"),
                 f"flight: throttled: {quota}")
    after = (int(run.facts(woken[0][1])["end"]) - int(run.command_output(1).split()[2])) / 1e6
    claims.check(100 <= after <= 300, f"flight: --snapshot-after: it ends {after:.0f} ms after the thief")
    apart = (int(run.facts(quota[1][1])["end"]) - int(run.facts(quota[0][1])["end"])) / 1e6 if len(quota) == 2 else 0
    claims.check(apart >= 300, f"flight: --snapshot-every: {apart:.0f} ms apart")


# pCPU 1 goes and comes, then one that was offline at the start comes: work on each of them is recorded.
HOTPLUG = """
host pcpus=3 icount=yes
command cd /sys/devices/system/cpu; echo 0 > cpu2/online; vperf record --trace=sched -e sched:sched_process_exec --no-account \
-o /out/rec -- sh -c 'shares a=100 --iterations 20; taskset -c 1 shares a=100 --iterations 100; echo 0 > cpu1/online; \
shares a=100 --iterations 20; echo 1 > cpu1/online; echo 1 > cpu2/online; \
until [ -e /out/rec/host/cpu2 ]; do sleep 0.05; done; \
taskset -c 1 shares a=100 --iterations 100; taskset -c 2 sh -c "shares a=100 --iterations 100; shares a=100 --iterations 100"; true'
""".replace("\\\n", "")


def turns_on(switches, tid):
    """(begin, end), ns: when the thread had the pCPU whose switches these are."""
    turns, since = [], None
    for row in switches:
        if since is not None and int(row["prev_tid"]) == tid:
            turns.append((since, int(row["time_ns"])))
        since = int(row["time_ns"]) if int(row["next_tid"]) == tid else None
    return turns


def sampled_as_long_as_running(run, claims, switches, threads):
    """In turns of some periods. A program that is being loaded waits for its file, and while all wait, virtual time leaps to the next
    timer: the sampler's, so that a turn of some microseconds begins with a sample."""
    lines = [json.loads(line) for line in vperf("export", "jsonl", str(run.recording("rec")), "-o", "-").stdout.splitlines()]
    period = next(line["period_ns"] for line in lines if line["type"] == "recording")
    samples = [(line["pcpu"], line["host_tid"], line["time_ns"]) for line in lines if line["type"] == "sample"]
    for pcpu in (1, 2):
        turns = {int(tid): [(begin, end) for begin, end in turns_on(switches[pcpu], int(tid)) if end - begin >= 4 * period]
                 for tid in threads[pcpu]}
        ran = {tid: sum(end - begin for begin, end in turns[tid]) / period for tid in sorted(turns)}
        claims.check(sum(wanted >= 20 for wanted in ran.values()) >= 2, f"hotplug: threads on pCPU {pcpu}, in periods: {ran}")
        for tid, wanted in ran.items():
            found = sum(at == pcpu and of == tid and any(begin <= time <= end for begin, end in turns[tid]) for at, of, time in samples)
            claims.near(f"hotplug: samples of thread {tid} on pCPU {pcpu}", found, wanted, 1 + len(turns[tid]))


def pcpus_come_and_go(run, claims):
    rows = events(run, "rec", "--event", "sched_switch")
    of = {pcpu: [row for row in rows if int(row["pcpu"]) == pcpu] for pcpu in range(3)}
    claims.check(all(of.values()), f"hotplug: switches of each pCPU: {[len(of[pcpu]) for pcpu in range(3)]}")
    ours = {pcpu: {row["next_tid"] for row in of[pcpu] if row["next_comm"] == "shares"} for pcpu in range(3)}
    claims.check(len(ours[1]) >= 2, f"hotplug: pCPU 1 before it went and after it came: threads {ours[1]}")
    claims.check(len(ours[2]) >= 1, f"hotplug: pCPU 2, which came: threads {ours[2]}")
    said = run.command_output(1, "err")
    claims.check(re.findall(r"pCPU \d (?:went|came) .*", said) ==
                 ["pCPU 1 went offline", "pCPU 1 came back online", "pCPU 2 came online during the recording"],
                 "hotplug: it is said")
    sampled_as_long_as_running(run, claims, of, ours)
    executed = {pcpu: sum(row["event"] == "sched:sched_process_exec" and int(row["pcpu"]) == pcpu for row in
                          events(run, "rec", "--event", "sched:sched_process_exec")) for pcpu in range(3)}
    claims.check(executed[1] >= 2 and executed[2] >= 3, f"hotplug: tracepoints of each pCPU: {executed} programs executed")
    streams = {row["pcpu"]: (row["events"], row["events_lost"]) for row in run.info()["streams"]}
    told, lost = (sum(pair[i] for pair in streams.values()) for i in range(2))
    events_said, tracepoints, lost_said = map(int, re.search(r"(\d+) events, (\d+) events of tracepoints, (\d+) lost", said).groups())
    claims.check((told, lost) == (events_said + tracepoints, lost_said), f"hotplug: events and losses by pCPU {streams}, as was said")


# The same condition on 64-bit Arm.
DELAYED_ON_ARM = """
host arch=arm64 pcpus=1 icount=yes memory=1280
guest g1 vcpus=1 memory=256 truth=no agent=yes
workload g1 shares a=100
command mkdir /tmp/f; vperf record --flight 16M --snapshot-on 'steal>20ms' --vm g1 --trace --trace-guests -o /tmp/f/rec -- \
sh -c 'sleep 0.5; tests/lab/hold 30 > /out/held; sleep 1'; status=$?; cp -r /tmp/f/rec* /out/; exit $status
""".replace("\\\n", "")


def delayed_on_arm(run, claims):
    name, *delay = fired_once(run, claims)
    delay_is_there(run, claims, name, *delay)
    guests_events(run, claims, name, *delay[2:])


TESTS = [
    ("flight: a delay of 30 ms", DELAYED, delayed_once),
]
QUICK = ()
FULL = [("flight: pCPUs off and on", HOTPLUG, pcpus_come_and_go),
        ("flight: other conditions", CONDITIONS, other_conditions),
        ("flight: a delay of 30 ms, 64-bit Arm", DELAYED_ON_ARM, delayed_on_arm)]
