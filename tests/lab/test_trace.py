# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about recorded events. Some recordings are made on lab hosts that other tests boot (test_account.py)."""
import bisect
import collections
import csv
import io
import json
import pathlib
import re
import subprocess

from lab import LATE, vperf
from test_identity import truth_of

# Account and events together, no samples, compressed; the rings are large enough for all.
KNOWN = """command vperf record -z --no-samples --trace -m 4096 --no-guest-memory --no-agent -o /out/trace -- \
tinyvm --cpuid 20000 --out 10000 --mmio 5000 --hlt 3000 --wait 1
command vperf record --no-samples --no-account --no-guest-memory --no-agent -o /out/tracepoints -e kvm:kvm_cpuid \
-e kvm:kvm_pio --filter "rw == 1 && port == 0x80" -e 'kprobe:kvm_emulate_cpuid vcpu->vcpu_id' \
-e 'kretprobe:kvm_emulate_cpuid $retval' -e 'uprobe:tinyvm:main $arg1:s32 words=+0(+8($arg2)):string' -- tinyvm --cpuid 2000 --out 1000 --wait 1
""".replace("\\\n", "")


def events(run, *options, recording="trace"):
    text = vperf("script", str(run.recording(recording)), "--format", "csv", *options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def counted_by_reason(run, claims, done):
    exits = events(run, "--event", "kvm_exit")
    places = collections.Counter((row["reason"], int(row["guest_rip"], 16)) for row in exits)
    for reason, (count, place) in done.items():
        claims.check(places[reason, place] == count,
                     f"trace: {reason} at {place:#x}: {places[reason, place]} kvm_exit, {count} were done")
    ours = collections.Counter(row["reason"] for row in exits)
    books = json.loads(vperf("exits", str(run.recording("trace")), "--json").stdout)["exits"]
    # The account counts an exit when the next entry ends it: a VM's last exit is not counted.
    off = {row["reason"]: (ours[row["reason"]], row["count"]) for row in books
           if not 0 <= ours[row["reason"]] - row["count"] <= 1}
    claims.check(books and not off, f"trace: {len(exits)} kvm_exit, by reason as in the account beside it {off}")
    return exits


def entries_and_exits(run, claims):
    """An entry, an exit, an entry: of each vCPU."""
    last, twice = {}, 0
    rows = events(run, "--event", "kvm:kvm_entry,kvm:kvm_exit")
    for row in rows:
        who = row["vm"], row["vcpu"], row["tid"]
        twice += last.get(who) == row["event"]
        last[who] = row["event"]
    claims.check(len(last) == 1 and not twice,
                 f"trace: {len(rows)} entries and exits of {len(last)} vCPU take turns but {twice}")


def sizes_decompressed(recording, into):
    """Makes the recording without compression; bytes of its host's streams before and after."""
    streams = sorted((recording / "host").glob("*.zst"))
    vperf("export", "babeltrace", "-o", str(into), str(recording))
    return [sum(path.stat().st_size for path in files) for files in (streams, [into / "host" / path.stem for path in streams])]


def counted_by_others(run, claims):
    """vperf info, what the recorder said, and other readers of the format."""
    streams = run.info("trace")["streams"]
    told, lost = (sum(row[key] for row in streams) for key in ("events", "events_lost"))
    said = re.findall(r"(\d+) events, (\d+) lost", run.command_output(3, "err"))
    claims.check(said == [(str(told), "0")] and not lost, f"trace: {told} events, {lost} lost; it was said: {said}")
    compressed, plain = sizes_decompressed(run.recording("trace"), run.out / "decompressed")
    claims.check(told and compressed < plain / 2, f"trace: {plain} bytes are {compressed} compressed")
    text = subprocess.run(["babeltrace2", str(run.out / "decompressed/host")], capture_output=True, text=True,
                          check=True).stdout
    found = len(re.findall(r"^\[[^\]]*\].* (?:sched|kvm|irq|irq_vectors):\w+: \{", text, re.M))
    claims.check(found == told, f"trace: babeltrace2 has {found} events")
    sets = collections.Counter(row["event"].split(":")[0] for row in events(run) if ":" in row["event"])
    claims.check(sum(sets.values()) == told and all(sets[name] for name in ("sched", "kvm", "irq")),
                 f"trace: vperf script has {dict(sets)}")


def switches(run, claims):
    """On each pCPU, the thread that is switched out is the one that was switched in last."""
    rows = events(run, "--event", "sched_switch")
    wrong = sum(before["next_tid"] != after["prev_tid"] for before, after in zip(rows, rows[1:]))
    claims.check(len(rows) > 50 and not wrong, f"trace: {len(rows)} switches of one pCPU, {wrong} out of a thread "
                 "that did not have it")


def any_tracepoints(run, claims):
    """KVM's own, by perf's buffers: each by its vCPU's thread, and one let by a filter only."""
    rows = events(run, recording="tracepoints")
    found = collections.Counter(row["event"] for row in rows)
    threads = {(row["comm"], row["tid"]) for row in rows}
    known = {"kvm:kvm_cpuid": 2000, "kvm:kvm_pio": 1000, "probe:kvm_emulate_cpuid": 2000,
             "probe:kvm_emulate_cpuid__return": 2000, "probe_tinyvm:main": 1}
    claims.check(found == known and len(threads) == 1,
                 f"tracepoints: {dict(found)} of 2000 CPUIDs, 1000 writes to a port, and a program's start, by {threads}")
    said = collections.Counter((row["event"], *(row[key] for key in ("vcpu_id", "retval", "arg1", "words") if row[key]))
                               for row in rows if row["event"].startswith("probe"))
    claims.check(set(said) == {("probe:kvm_emulate_cpuid", "0"), ("probe:kvm_emulate_cpuid__return", "1"),
                               ("probe_tinyvm:main", "7", "--cpuid")}, f"tracepoints: arguments of probes: {said}")
    wrong = [row for row in rows if row["event"] == "kvm:kvm_pio" and (row["rw"], row["port"]) != ("1", "128")]
    claims.check(not wrong, "tracepoints: fields are those of the filter")
    lost = sum(row["events_lost"] for row in run.info("tracepoints")["streams"])
    claims.check(not lost, f"tracepoints: {lost} lost")


def known_exits(run, claims, done):
    any_tracepoints(run, claims)
    counted_by_reason(run, claims, {**done, "NPF": (5000, 0x31)})
    entries_and_exits(run, claims)
    counted_by_others(run, claims)
    switches(run, claims)


# A guest with a ping-pong pair and threads that print their tid, which often reads its own count of switches.
SWITCHES = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus={vcpus} memory=256 agent=yes kernel={guest} qemu="-serial unix:/run/vlab/g1.stat,server=on,wait=off"
workload g1 sh -c 'stty -F /dev/ttyS1 raw -echo; exec 3<>/dev/ttyS1; while read word <&3; do case $word in \
work) pingpong --rounds 3000; forkstorm --count 20 --rate 20 > /dev/null; sleep 0.5;; esac; \
{{ echo done; grep ctxt /proc/stat; echo end; }} >&3; done'
workload g1 who --procs 1 --threads 2
command vperf record --trace -m 4096 -o /out/switches --vm g1 -- \
sh -c 'for i in 1 2 3 4 5 6 7 8; do tests/lab/ask-guest g1 nothing; done; tests/lab/ask-guest g1 work'
command vperf record --trace --no-account --no-samples --no-guest-memory --no-agent -o /out/without -d 1
command vperf record --trace=sched,kvm --trace-guests=sched,irq,syscalls --no-account --no-samples --no-guest-memory --no-symbols \
-m 16M -o /out/guests -- lab-guest run g1 pingpong --rounds {rounds}
""".replace("\\\n", "")


def scenario(vcpus, host="bookworm", guest="bookworm", rounds=500):
    return SWITCHES.format(vcpus=vcpus, host=host, guest=guest, rounds=rounds)


class Steps:
    """A sum over events, as of any time."""

    def __init__(self, rows):
        self.times, self.sums, total = [], [0], 0
        for time, count in rows:
            total += count
            self.times.append(time)
            self.sums.append(total)

    def at(self, time):
        return self.sums[bisect.bisect_right(self.times, time)]


def switches_of_guest(run, claims):
    """The guest's count before the recording is the same number, from whichever of its answers it is computed."""
    rows = [(int(row["time_ns"]), int(row["switches"])) for row in events_of(run, "switches", "guest_switch")]
    made, least, most = Steps(rows), 0, float("inf")
    asked = [json.loads(line) for line in run.command_output(1).splitlines()]
    answers = [(ask["books"]["ctxt"], ask["first"]) for ask in asked]
    answers += [(ask["books"]["ctxt"] + ask["counts"]["ctxt"], ask["second"]) for ask in asked]
    for count, (begin, end) in answers:
        least, most = max(least, count - made.at(end)), min(most, count - made.at(begin))
    claims.check(least <= most and most - least <= 8,
                 f"switches: seen and missed ones from {least} to {most} on are the guest's own count in each of its "
                 f"{len(answers)} answers; {made.sums[-1]} in all")
    claims.check(asked[-1]["counts"]["ctxt"] > 6000, f"switches: {asked[-1]['counts']['ctxt']} for 3000 round trips")


def events_of(run, name, event):
    text = vperf("script", str(run.recording(name)), "--format", "csv", "--event", event).stdout
    return list(csv.DictReader(io.StringIO(text)))


def periods_of(run, *options):
    text = vperf("timeline", str(run.recording("switches")), "--format", "csv", *options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def exact_threads(run, claims):
    """In an exact stretch no sample is in the function of another thread than the stretch's."""
    truth = truth_of(run)
    stretches, begins = {}, {}
    for row in periods_of(run):
        if row["state"] == "guest":
            stretches.setdefault(row["vcpu"], []).append(row)
            begins.setdefault(row["vcpu"], []).append(int(row["begin_ns"]))
    # The recorder's own record of its clocks raises the times of samples that are read after it.
    raised = {row["time_ns"] for row in events_of(run, "switches", "clock_sync")}
    right = wrong = 0
    for sample in events_of(run, "switches", "guest_sample"):
        # A late sample was taken at the tick after the one that it represents, of the thread that ran then.
        if sample["time_ns"] in raised or int(sample["flags"], 16) & LATE:
            continue
        who = [who for (start, end), who in truth if start <= int(sample["ip"], 16) < end]
        # Its interrupt may be handled before or after KVM reports the exit.
        at = bisect.bisect_right(begins[sample["vcpu"]], int(sample["time_ns"])) - 1
        stretch = stretches[sample["vcpu"]][at]
        if not who or at < 0 or stretch["certainty"] != "exact":
            continue
        same = (int(stretch["guest_pid"]), int(stretch["guest_tid"]), stretch["guest_comm"]) == who[0]
        right, wrong = right + same, wrong + (not same)
    claims.check(right > 300 and not wrong, f"switches: {right} samples in exact stretches are in the function of the "
                 f"stretch's thread, {wrong} are not")


def sums_of_periods(run, claims):
    """A vCPU's periods leave no gap; in guest mode it is as long as by the account."""
    rows = periods_of(run)
    lanes = [[row for row in rows if row["vcpu"] == vcpu] for vcpu in {row["vcpu"] for row in rows}]
    gaps = sum(before["end_ns"] != after["begin_ns"] for lane in lanes for before, after in zip(lane, lane[1:]))
    claims.check(len(rows) > 5000 and not gaps, f"switches: {len(rows)} periods of {len(lanes)} vCPUs, {gaps} gaps")
    vcpus = json.loads(vperf("sched", str(run.recording("switches")), "--format", "json").stdout)["vcpus"]
    total = {key: sum(row[key] for row in vcpus) for key in vcpus[0] if key.endswith("_ns") or "switches" in key}
    length = {state: sum(int(row["end_ns"]) - int(row["begin_ns"]) for row in rows if row["state"] == state)
              for state in ("guest", "work", "preempted", "waking", "halted", "waiting")}
    total["preempted_ns"] = total["steal_ns"] - total["waking_ns"]
    claims.check(all(total[f"{state}_ns"] == ns for state, ns in length.items()),
                 f"switches: vperf sched sums the periods: {length}")
    account = json.loads(vperf("account", str(run.recording("switches")), "--json").stdout)
    guest_ns = sum(row["ns"] for row in account["states"] if row["state"] == "guest")
    claims.near("switches: guest mode, ms, by entries and exits and by the account",
                total["guest_ns"] / 1e6, guest_ns / 1e6, 0.03 * guest_ns / 1e6)
    share = 100 * total["exact_ns"] / total["guest_ns"]
    claims.check(share > 50 and total["switches_observed"] < total["switches_total"],
                 f"switches: {share:.1f} % of guest mode in exact stretches, {total['switches_observed']} switches seen "
                 f"of {total['switches_total']}")


def without_memory(run, claims):
    rows = events_of(run, "without", "guest_switch")
    claims.check(not rows, f"switches: {len(rows)} with --no-guest-memory")


def stretches_of(rows):
    """When each vCPU, of a VM, was in guest mode: begins and ends, in order."""
    stretches, entered = collections.defaultdict(lambda: ([], [])), {}
    for row in rows:
        who = row["vm"], row["vcpu"]
        if row["event"] == "kvm:kvm_entry":
            entered[who] = int(row["time_ns"])
        elif row["event"] == "kvm:kvm_exit" and who in entered:
            stretches[who][0].append(entered.pop(who))
            stretches[who][1].append(int(row["time_ns"]))
    return stretches


def in_guest_mode(run, claims, name, least):
    """Each of the agents' events lies where its vCPU was in guest mode; returns them."""
    rows = events(run, recording=name)
    mine = [row for row in rows if row["machine"] == "guest"]
    said = re.findall(r"^ *agent: ok: it sent (\d+) events, 0 lost; their times are accurate to (\d+) ns",
                      vperf("info", str(run.recording(name))).stdout, re.M)
    guests = {row["vm"] for row in mine}
    claims.check(len(said) == len(guests) and sum(int(count) for count, _ in said) == len(mine),
                 f"{name}: {len(mine)} events of guests {guests}; their agents sent {said} (events, ns)")
    bound = max(int(ns) for _, ns in said)
    inside, outside = outside_of_guest_mode(rows, mine, bound)
    claims.check(inside > 0.98 * len(mine) > least and not outside,
                 f"{name}: {inside} events, {len(outside)} of them more than {bound} ns outside of guest mode {outside[:5]}")
    return mine


def outside_of_guest_mode(rows, mine, bound):
    """Number of these events, and for those outside guest mode the time since guest mode ended, ns."""
    stretches, outside, inside = stretches_of(rows), [], 0
    for row in mine:
        begins, ends = stretches[row["vm"], row["vcpu"]]
        time = int(row["time_ns"])
        at = bisect.bisect_right(begins, time + bound) - 1
        if begins[0] <= time <= ends[-1]:
            inside += 1
            outside += [] if time <= ends[at] + bound else [time - ends[at]]
    return inside, outside


# Two guests whose vCPUs are on their own pCPUs, and wherever the scheduler puts them: 100,000 events and more.
CLOCKS = """
host pcpus=2 icount=yes
guest pinned vcpus=2 memory=256 agent=yes pin=0,1
guest free vcpus=2 memory=256 agent=yes
command vperf record --trace=sched,kvm --trace-guests=sched,irq,syscalls --no-account --no-samples --no-guest-memory --no-symbols \
-m 64M -o /out/clocks -- sh -c 'lab-guest run pinned pingpong --rounds 7000 & lab-guest run free pingpong --rounds 7000; wait'
""".replace("\\\n", "")


def clocks(run, claims):
    """All events of all four vCPUs, each by the offset of its own counter."""
    mine = in_guest_mode(run, claims, "clocks", 100000)
    counts = collections.Counter((row["vm"], row["vcpu"]) for row in mine)
    claims.check(len(counts) == 4 and min(counts.values()) > 1000, f"clocks: events of each vCPU {dict(counts)}")
    offsets = re.findall(r"^tsc ([0-9a-f]+) ", (run.recording("clocks") / "vms").read_text(), re.M)
    claims.check(len(offsets) == 4 and "0" not in offsets, f"clocks: offsets of their counters {offsets}")


def guests_own_events(run, claims, least=3000):
    """All of the switches that the guest counted were recorded."""
    mine = in_guest_mode(run, claims, "guests", least)
    found = re.search(r"pingpong: pid=(\d+) child=(\d+) rounds=\d+ switches=(\d+)\s*$",
                      (run.out / "guest-g1" / "workloads.log").read_text(), re.M)
    players, counted = found.groups()[:2], int(found.group(3))
    # The count was read before the last switch of each, but a child's may be over by then. The reader may be preempted
    # after it, before its own end: in user space, or (R+, TASK_REPORT_MAX) in the kernel. Nor is counted what it was preempted
    # for while it was being started: all but the last of its switches before the first one of its child.
    made = [row for row in mine if row["event"] == "sched:sched_switch" and row["prev_pid"] in players]
    of_child = [number for number, row in enumerate(made) if row["prev_pid"] == players[1]]
    early, over = of_child[0] - 1, of_child[-1]
    late = sum(row["prev_state"] in ("0", "256") for row in made[over:])
    claims.check(counted - 1 <= len(made) - 2 <= counted + early + late,
                 f"guests: {len(made)} switches of pingpong with its ends, of them preemptions before its beginning {early} and at its end {late}, "
                 f"{counted} by its own count")
    text = subprocess.run(["babeltrace2", str(run.recording("guests") / "guest-g1")], capture_output=True, text=True,
                          check=True).stdout
    found = len(re.findall(r"^\[[^\]]*\].* (?:sched|irq|irq_vectors|ipi|raw_syscalls):\w+: \{", text, re.M))
    claims.check(found == len(mine), f"guests: babeltrace2 has {found} of its events")


def guest_switches(run, claims):
    guests_own_events(run, claims)
    switches_of_guest(run, claims)
    exact_threads(run, claims)
    sums_of_periods(run, claims)
    without_memory(run, claims)


# How much is exact depends on what a guest does between two exits.
SHARES = """
host pcpus=1 icount=yes
guest busy vcpus=1 memory=256
guest pingpong vcpus=1 memory=256
guest halting vcpus=1 memory=256
workload busy who --procs 2 --threads 1
workload pingpong pingpong --rounds 100000000
workload halting idler 0.002 0.01
command vperf record --trace -m 4096 -o /out/switches -d 4
"""


def shares(run, claims):
    """vperf sched of guests that keep two threads busy, that switch all the time, and that sleep."""
    rows = json.loads(vperf("sched", str(run.recording("switches")), "--format", "json").stdout)
    share = {row["vm"]: row["exact_percent"] for row in rows["vcpus"]}
    seen = {row["vm"]: f"{row['switches_observed']} of {row['switches_total']}" for row in rows["vcpus"]}
    claims.check(share.keys() == {"busy", "pingpong", "halting"} and share["busy"] > 75 and
                 share["pingpong"] < share["halting"] < share["busy"],
                 f"shares: guest mode in exact stretches, percent: {share}; switches seen of made: {seen}")
    halting = [row for row in rows["vcpus"] if row["vm"] == "halting"][0]
    claims.check(halting["halted_ns"] > halting["guest_ns"] and not halting["waiting_ns"] > halting["halted_ns"],
                 f"shares: the halting guest was halted for {halting['halted_ns'] / 1e6:.0f} ms, in the guest for "
                 f"{halting['guest_ns'] / 1e6:.0f} ms")
    wakeups, tids = sum(row["wakeups"] for row in rows["waits"]), {str(row["tid"]) for row in rows["vcpus"]}
    told = sum(row["woken_tid"] in tids for row in events_of(run, "switches", "sched_wakeup"))
    claims.near("shares: waits after a wake-up, and wake-ups of the vCPUs' threads", wakeups, told, 3 + 0.02 * told)
    for row in json.loads(vperf("account", str(run.recording("switches")), "--json").stdout)["vcpus"]:
        ours = [vcpu for vcpu in rows["vcpus"] if vcpu["vm"] == row["vm"]][0]
        for ours_ns, state in ((ours["halted_ns"], "halted"), (ours["waking_ns"], "waking"),
                               (ours["steal_ns"] - ours["waking_ns"], "preempted")):
            claims.near(f"shares: {row['vm']} {state}, percent, by events and by the account",
                        100 * ours_ns / row["wall_ns"], row[state], 1.5)
    idle = [row for row in rows["threads"] if row["vm"] == "halting" and row["tid"] == 0]
    claims.check(len(idle) == 1, f"shares: {len(idle)} idle task of the halting guest")
    worst = rows["worst"][0]
    until = float(worst["at_s"]) + worst["ns"] / 1e9
    events = vperf("script", str(run.recording("switches")), "--vm", worst["vm"], "--event",
                   "sched_switch,sched_wakeup", "--time", f"{worst['at_s']},{until:.9f}").stdout.splitlines()
    claims.check(len(events) >= 2, f"shares: vperf script has the longest wait of {worst['ns'] / 1e6:.1f} ms: "
                 f"{len(events)} events of {worst['vm']}")


# A thread waits for a pipe from one that reads a disk, which QEMU serves; a task of the host takes the pCPU once for 30 ms.
CHAIN = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes qemu="-drive if=none,id=d1,file=/run/d1.img,format=raw -device virtio-blk-pci,drive=d1" \
autostart=no
command truncate -s 64M /run/d1.img; lab-guest start g1
command vperf record --no-samples --no-account --no-symbols --no-guest-memory --trace=sched,kvm,irq \
--trace-guests=sched,irq -m 32M -o /out/chain -- \
sh -c 'lab-guest run g1 chain /dev/vda --rounds 8000 & tests/lab/hold 30 > /out/held; wait'
""".replace("\\\n", "")


def critical_path(run, claims):
    """Its links leave no gap; the thief's time and the reader's are in it as they measured themselves."""
    path = json.loads(vperf("critical", str(run.recording("chain")), "--vm", "g1", "--thread", "chain-waiter",
                            "--format", "json").stdout)
    whole = path["to_ns"] - path["from_ns"]
    sums = [sum(row["ns"] for row in path[table]) for table in ("blame", "chain")]
    claims.check(sums == [whole, whole], f"critical: causes and links add up to {sums} of {whole} ns")
    thief, begin, end = map(int, (run.out / "held").read_text().split())
    claims.check(path["from_ns"] < begin and end < path["to_ns"], "critical: the thief came while the thread waited")
    taken = 0  # what it did before and after it measured itself is not meant
    for row in path["chain"]:
        first = int(row["at_s"].replace(".", ""))
        if row["detail"] == f"thief/{thief}":
            taken += max(0, min(first + row["ns"], end) - max(first, begin))
    claims.near("critical: ms that the thief is blamed for", taken / 1e6, (end - begin) / 1e6, 0.05 * (end - begin) / 1e6)
    said = re.search(r"chain: waiter=(\d+) reader=\d+ rounds=\d+ waited_ns=(\d+) read_ns=(\d+)",
                     (run.out / "guest-g1" / "workloads.log").read_text())
    waiter, (waited, read) = said.group(1), map(int, said.groups()[1:])
    others = sum(row["ns"] for row in path["blame"] if row["thread"] != f"chain-waiter/{waiter}")
    waits = sum(row["ns"] for row in path["blame"] if row["thread"] == f"chain-waiter/{waiter}"
                and row["cause"] != "guest")
    claims.check(0.95 * read <= others + waits and others <= 1.05 * waited,
                 f"critical: {others / 1e6:.1f} ms for others and {waits / 1e6:.1f} ms for its vCPU, by its own clock "
                 f"{waited / 1e6:.1f} ms waited, {read / 1e6:.1f} ms of that read")
    unknown = sum(row["ns"] for row in path["blame"] if row["cause"] == "unknown")
    claims.check(unknown <= 0.05 * whole, f"critical: {unknown / 1e6:.2f} ms of {whole / 1e6:.1f} ms are not known")


# A guest's thread waits for datagrams from another VM's guest, which computes before it answers: tap devices with vhost, and a bridge.
def _on_bridge(name, number):
    return (f'guest {name} vcpus=1 memory=192 agent=yes autostart=no qemu="-netdev tap,id=n,ifname=tap{name},script=no,downscript=no,vhost=on '
            f'-device virtio-net-pci,netdev=n,mac=52:54:00:09:00:0{number}"\n')


POST = f"""
host pcpus=1 icount=yes memory=3072
{_on_bridge("a", 1)}{_on_bridge("b", 2)}\
command modprobe -a tun vhost_net bridge; ip link add br0 type bridge; ip link set br0 up; \
for tap in tapa tapb; do ip tuntap add $tap mode tap; ip link set $tap master br0 up; done; lab-guest start a; lab-guest start b
command vperf record --no-samples --no-account --no-symbols --no-guest-memory --trace=sched,kvm,irq --trace-guests=sched,irq -m 32M -o /out/post -- \
sh -c 'lab-guest run b courier 2 1 & sleep 0.3; lab-guest run a courier 1 2 --rounds 100; wait'
""".replace("\\\n", "")


def through_network(run, claims):
    """The path leads through vhost's threads into the other VM's guest; each part is what the programs measured."""
    path = json.loads(vperf("critical", str(run.recording("post")), "--vm", "a", "--thread", "courier-caller",
                            "--format", "json").stdout)
    whole = path["to_ns"] - path["from_ns"]
    sums = [sum(row["ns"] for row in path[table]) for table in ("blame", "chain")]
    claims.check(sums == [whole, whole], f"network: causes and links add up to {sums} of {whole} ns")
    pids, rounds, times = zip(*(map(int, re.search(r"courier: pid=(\d+) rounds=(\d+) ns=(\d+)", (
        run.out / f"guest-{name}/workloads.log").read_text()).groups()) for name in "ab"))
    claims.check(rounds == (100, 100), f"network: {rounds} rounds of both")
    by = collections.Counter()
    for row in path["blame"]:
        by["unknown" if row["cause"] == "unknown" else "caller" if row["thread"] == f"courier-caller/{pids[0]}" and row["cause"] == "guest"
           else "server" if (row["machine"], row["thread"]) == ("b", f"courier-server/{pids[1]}") else "between"] += row["ns"]
    claims.near("network: ms of the other guest's thread", by["server"] / 1e6, times[1] / 1e6, 0.05 * times[1] / 1e6)
    waited = by["server"] + by["between"]
    claims.near("network: ms that are not the caller's", waited / 1e6, times[0] / 1e6, 0.05 * times[0] / 1e6)
    vhost = {row["thread"].split("/")[0] for row in path["blame"] if row["machine"] == "host"}
    claims.check(any(name.startswith("vhost-") for name in vhost), f"network: on the path are the host's {sorted(vhost)}")
    claims.check(by["unknown"] <= 0.05 * whole, f"network: {by['unknown'] / 1e6:.2f} ms of {whole / 1e6:.1f} ms are not known")


def wakeups_made(rows):
    """sched_waking begins one; of one that was under way when the trace began, there is sched_wakeup only."""
    made, waking = 0, set()
    for row in rows:
        ends = row["event"] == "sched:sched_wakeup"
        made += not ends or row["pid"] not in waking
        waking.discard(row["pid"]) if ends else waking.add(row["pid"])
    return made


def sched_of_guests(run, claims):
    """vperf sched: a thread's time is complete, and the delay is one of the longest wakeup latencies."""
    tables = json.loads(vperf("sched", str(run.recording("chain")), "--format", "json").stdout)
    times = {row["comm"]: row for row in tables["guests"]}
    claims.check({"chain-waiter", "chain-reader"} <= times.keys(), f"sched: threads of the guest: {sorted(times)}")
    count = sum(row["wakeups"] for row in tables["wakeups"])
    made = wakeups_made(row for row in events(run, "--event", "sched_waking,sched_wakeup,sched:sched_wakeup_new",
                                              recording="chain") if row["machine"] == "guest")
    claims.check(0.9 * made <= count <= made, f"sched: {count} wake-ups with a latency, {made} by the guest's events")
    odd = [row for row in tables["worst-wakeups"]
           if row["ns"] != row["vcpu_ns"] + row["injection_ns"] + row["scheduling_ns"]]
    claims.check(tables["worst-wakeups"] and not odd, f"sched: parts of latencies add up {odd}")


def as_lttng(run, claims):
    """The export for Trace Compass has every event that LTTng's tracer also has."""
    out = run.out / "ctf"
    vperf("export", "ctf", str(run.recording("chain")), "-o", str(out))
    counts = collections.Counter((row["machine"], row["event"]) for row in events(run, recording="chain"))
    for folder, machine, names in (("host", "host", {"sched:sched_switch": "sched_switch", "kvm:kvm_entry": "kvm_x86_entry",
                                                     "kvm:kvm_exit": "kvm_x86_exit"}),
                                   ("guest-g1", "guest", {"sched:sched_switch": "sched_switch", "sched:sched_waking": "sched_waking"})):
        text = subprocess.run(["babeltrace2", str(out / folder)], capture_output=True, text=True, check=True).stdout
        marks = {"sched_switch": 2, "kvm_x86_entry": 1, "kvm_x86_exit": 1} if folder == "host" else {}
        for name, lttng in names.items():
            found = len(re.findall(rf" {lttng}: \{{", text)) - marks.get(lttng, 0)
            claims.check(found == counts[machine, name] > 0, f"ctf: {found} of {counts[machine, name]} {name} of the {machine}")


def as_trace_cmd(run, claims):
    """trace-cmd reads host and guest as one: every event with its CPU and time, and whose threads the guest's CPUs are."""
    out = run.out / "dat"
    vperf("export", "trace.dat", str(run.recording("chain")), "-o", str(out))
    files = [str(out / name) for name in ("host.dat", "guest-g1.dat")]
    text = subprocess.run(["trace-cmd", "report", "-R", "-t", "-i", files[0], "-i", files[1]],
                          capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *(host|guest)\S*\.dat: .*?-\d+ +\[(\d+)\] +(\d+)\.(\d{9}): (\w+):", text, re.M)
    found = [(machine, int(cpu), int(s) * 10**9 + int(ns), name) for machine, cpu, s, ns, name in found]
    rows = [row for row in events(run, recording="chain") if ":" in row["event"]]
    expected = [(row["machine"], int(row["pcpu" if row["machine"] == "host" else "vcpu"]), int(row["time_ns"]),
                 row["event"].split(":")[1]) for row in rows]
    claims.check(collections.Counter(found) == collections.Counter(expected) and len({row[0] for row in found}) == 2,
                 f"trace-cmd: {len(found)} events of {len(expected)}, each with its machine, CPU and time")
    times = [row[2] for row in found]
    claims.check(times == sorted(times), "trace-cmd: host and guest in one order")
    known = subprocess.run(["trace-cmd", "dump", "--options", "-i", files[0]], capture_output=True, text=True, check=True).stdout
    vcpus = re.findall(r"^ +(\d+) (\d+)\s+\[guest cpu, host pid\]", known, re.M)
    own = re.findall(r"^vcpu (\d+) (\d+)", (run.recording("chain") / "vms").read_text(), re.M)
    claims.check(own and vcpus == own, f"trace-cmd: the guest's CPUs are the threads {vcpus}")


def as_kernelshark(run, claims):
    """KernelShark's own library finds the same events in both files, and that one is the other's guest."""
    files = [str(run.out / "dat" / name) for name in ("host.dat", "guest-g1.dat")]
    reader = pathlib.Path(__file__).resolve().parent.parent / "export" / "kernelshark"
    done = subprocess.run([str(reader), *files], capture_output=True, text=True)
    if done.returncode == 77:
        claims.skip(f"KernelShark's library is not installed: {done.stdout.strip()}")
        return
    found = json.loads(done.stdout)
    expected = collections.Counter((row["machine"] != "host", row["event"].replace(":", "/"))
                                   for row in events(run, recording="chain") if ":" in row["event"])
    found_events = {(bool(stream), name): count for stream, counts in enumerate(found["events"]) for name, count in counts.items()}
    claims.check(found_events == dict(expected) and found["sorted"],
                 f"KernelShark: {sum(found_events.values())} events of {sum(expected.values())}, in one order")
    own = [int(tid) for tid in re.findall(r"^vcpu \d+ (\d+)", (run.recording("chain") / "vms").read_text(), re.M)]
    claims.check(found["guests"] == [{"guest": 1, "host": 0, "name": "g1", "threads": own}], f"KernelShark: guests {found['guests']}")


def imported(run, claims, name, files):
    """An import of an export has the same contents as the original recording."""
    again = run.out / f"imported-{name}"
    vperf("import", *(str(run.out / name / file) for file in files), "-o", str(again))
    for verb, options, key in (("timeline", ("--format", "jsonl"), None), ("sched", ("--format", "json"), "vcpus"),
                               ("sched", ("--format", "json"), "guests"), ("sched", ("--format", "json"), "wakeups")):
        both = [vperf(verb, str(path), *options).stdout for path in (run.recording("chain"), again)]
        both = [json.loads(text)[key] for text in both] if key else [[json.loads(line) for line in text.splitlines()] for text in both]
        same = sum(one == other for one, other in zip(*both))
        first = next((f", first {one} and {other}" for one, other in zip(*both) if one != other), "")
        claims.check(same == len(both[0]) == len(both[1]) > 0,
                     f"import of {name}: {verb} {key or ''}: {same} of {len(both[0])} rows are the same, of {len(both[1])}{first}")


def chain(run, claims):
    in_guest_mode(run, claims, "chain", 50000)
    critical_path(run, claims)
    sched_of_guests(run, claims)
    as_lttng(run, claims)
    as_trace_cmd(run, claims)
    as_kernelshark(run, claims)
    imported(run, claims, "dat", ("host.dat", "guest-g1.dat"))
    imported(run, claims, "ctf", ("host", "guest-g1"))


# Malicious agents, and a recorder that also has work of a known size. The recorder itself
# reports its memory use.
LYING = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes
workload g1 falseagent garbage 7001
workload g1 falseagent flood 7002
workload g1 falseagent cut 7003
""" + "".join(f"""command vperf record --no-samples --no-account --no-symbols --no-guest-memory --trace=sched,kvm --trace-guests \
--agent-port {port} --agent-limit 1 --agent-timeout 5 -m 16M -o /out/{name} -- \
sh -c 'sleep 1.5; tinyvm --cpuid 2000; {also}; sleep 0.5; grep VmHWM /proc/$PPID/status > /out/{name}.memory'; echo status $?
""" for name, port, also in (("honest", 733, "lab-guest run g1 pingpong --rounds 100"), ("garbage", 7001, "true"), ("flood", 7002, "true"),
                              ("cut", 7003, "true"))).replace("\\\n", "")


def lying_agents(run, claims):
    """Whatever they do, the host's part is complete, valid guest data stays, and the problem is reported."""
    memory = {}
    for number, (name, sentence, few) in enumerate((
            ("honest", None, None), ("garbage", "invalid entries", 10), ("flood", "later ones are counted as lost", None),
            ("cut", "guest events are missing from now on: the agent of guest CID 3 has ended", 10)), 1):
        said = run.command_output(number, "err")
        claims.check("status 0" in run.command_output(number) and (not sentence or sentence in said),
                     f"lying agents: {name}: {[line for line in said.splitlines() if 'events' in line]}")
        rows = events(run, recording=name)
        done = sum(row["event"] == "kvm:kvm_exit" and row["reason"] == "CPUID" and row["comm"] == "tinyvm" for row in rows)
        lost = sum(row["events_lost"] for row in run.info(name)["streams"])
        claims.check(done == 2000 and not lost, f"lying agents: {name}: {done} of 2000 exits of the host's own VM, {lost} lost")
        mine = sum(row["machine"] == "guest" for row in rows)
        # The request is repeated after 3 s, with the same reply.
        claims.check(mine > 0 and mine % few == 0 if few else mine > 10, f"lying agents: {name}: {mine} events of the guest stay")
        memory[name] = int((run.out / f"{name}.memory").read_text().split()[1])
    claims.check(all(kib < memory["honest"] + 16384 for kib in memory.values()),
                 f"lying agents: none makes the recorder take 16 MiB more: {memory} KiB")


# A vCPU that is plugged in, an agent that is killed, and one that comes after it.
GUESTS_EVENTS = "vperf record --no-samples --no-account --no-symbols --no-guest-memory --trace=sched,kvm --trace-guests -m 16M"
CHANGES = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes qemu="-smp 1,maxcpus=2,sockets=2,cores=1,threads=1"
command {GUESTS_EVENTS} -o /out/plugged -- sh -c 'lab-guest run g1 pingpong --rounds 200; \
tests/lab/qmp /run/vlab/g1.qmp device_add driver=host-x86_64-cpu id=new socket-id=1 core-id=0 thread-id=0; \
lab-guest run g1 sh -c "until [ -e /sys/devices/system/cpu/cpu1/online ]; do sleep 0.1; done; \
echo 1 > /sys/devices/system/cpu/cpu1/online; exec taskset 2 pingpong --rounds 200"'
command {GUESTS_EVENTS} -o /out/killed -- sh -c 'lab-guest run g1 pingpong --rounds 2000; lab-guest run g1 sh -c "killall -9 vperf-agent"; \
tinyvm --cpuid 2000'; echo status $?
command lab-guest spawn g1 vperf-agent serve; {GUESTS_EVENTS} -o /out/after -- lab-guest run g1 pingpong --rounds 2000; \
lab-guest run g1 ls /sys/kernel/tracing/instances
""".replace("\\\n", "")


def changes_in_guests(run, claims):
    mine = in_guest_mode(run, claims, "plugged", 800)
    counts = collections.Counter(row["vcpu"] for row in mine if row["event"] == "sched:sched_switch")
    claims.check(len(counts) == 2 and min(counts.values()) >= 400,
                 f"a vCPU that is plugged in: switches by vCPU {dict(counts)}, 400 and more of each were made")
    claims.check("'g1' gained vCPU 1" in run.command_output(1, "err"), "and it is said")
    said = run.command_output(2, "err")
    claims.check("status 0" in run.command_output(2) and "guest events are missing from now on" in said,
                 f"an agent that is killed: {[line for line in said.splitlines() if 'agent' in line]}")
    rows = events(run, recording="killed")
    done = sum(row["event"] == "kvm:kvm_exit" and row["reason"] == "CPUID" and row["comm"] == "tinyvm" for row in rows)
    kept = sum(row["machine"] == "guest" for row in rows)
    claims.check(done == 2000 and kept > 1000, f"it has sent {kept} events; after it {done} of 2000 exits of another VM")
    in_guest_mode(run, claims, "after", 8000)
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    job = re.search(r"job=(\d+) .* cmd=ls /sys/kernel/tracing/instances\n.*job=\1 .*exit status=0", log)
    left = job and re.findall(rf"^out job={job[1]} .*", log, re.M)
    claims.check(left == [], f"no tracefs instance is left in the guest: {left}")


TESTS = [("trace: critical path", CHAIN, chain)]
QUICK = ()
FULL = [("trace: switches of a guest's threads, 1 vCPU", scenario(1), guest_switches),
        ("trace: switches of a guest's threads, 2 vCPU", scenario(2, rounds=7000), guest_switches),
        ("trace: shares of exact stretches", SHARES, shares),
        ("trace: critical path through another VM", POST, through_network),
        ("trace: clocks of guests, 2 pCPUs", CLOCKS, clocks),
        ("trace: agents that lie", LYING, lying_agents),
        ("trace: vCPUs and agents that come and go", CHANGES, changes_in_guests)]
FULL += [(f"trace: switches, host {host}, guest {guest}", scenario(1, host, guest), guest_switches)
         for host, guest in (("bullseye", "bookworm"), ("trixie", "bullseye"), ("sid", "sid"), ("bookworm", "trixie"))]
