# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about the vCPU accounting, compared with the kernels' own statistics (see docs/lab.md)."""
import collections
import csv
import json
import re
import statistics

import test_trace
from lab import page_of, vperf

# Names of VM exits as perf prints them (AMD), and ours.
PERF_NAMES = {"cpuid": "CPUID", "io": "IOIO", "npf": "NPF", "interrupt": "INTR", "hlt": "HLT",
              "msr": "MSR", "vintr": "VINTR", "nmi": "NMI", "pause": "PAUSE"}
PARTS = ("kernel_ns", "poll_ns", "vmm_ns", "steal_ns", "asleep_ns")


def read(verb, run, *options, recording="rec"):
    return json.loads(vperf(verb, str(run.recording(recording)), "--json", *options).stdout)


def vcpu_of(account, vm, number=0):
    """(wall ns, {state: ns}) of a vCPU."""
    wall = [row["wall_ns"] for row in account["vcpus"] if (row["vm"], row["vcpu"]) == (vm, number)]
    states = {row["state"]: row["ns"] for row in account["states"]
              if (row["vm"], row["vcpu"]) == (vm, number)}
    return wall[0], states


def check_closing(claims, account):
    """Every vCPU's states sum to its time, here by adding what was printed."""
    for row in account["vcpus"]:
        wall, states = vcpu_of(account, row["vm"], row["vcpu"])
        total = sum(states.values())
        claims.check(abs(total - wall) <= 0.001 * wall,
                     f"{row['vm']} vCPU {row['vcpu']}: states sum to {total} of {wall} ns")
    checks = account["checks"]
    claims.check(checks["exits_agree"] and checks["parts_sum"],
                 f"exits by reason: {checks['exits_by_reason']} of {checks['exits']}")


def check_parts(claims, exits):
    off = [row["reason"] for row in exits if sum(row[part] for part in PARTS) != row["total_ns"]]
    claims.check(exits and not off, f"the parts of {len(exits)} exit reasons sum to their totals {off}")


def check_events(claims, account, events):
    """Each state's spans sum to it; what was polling is first told as the kernel's time."""
    sums = {}
    for event in events:
        sums[event["state"]] = sums.get(event["state"], 0) + event["ns"]
    sums["kernel"] -= sums.get("poll", 0)
    states = {row["state"]: row["ns"] for row in account["states"]}
    claims.check(len(events) > 1000 and sums == states,
                 f"{len(events)} events sum to the states: {sums}, {states}")


def states_between(run, recording, begin, end, *options):
    """ns of each state of g1's vCPUs between two times of the host's clock, by the single states."""
    began = int(run.facts(recording)["start"])  # events count from it
    found = collections.Counter()
    for event in read("account", run, "--events", *options, recording=recording)["events"]:
        if event["vm"] == "g1":
            found[event["state"]] += max(0, min(event["begin_ns"] + event["ns"], end - began) - max(event["begin_ns"], begin - began))
    found["kernel"] -= found["poll"]  # polling is at first reported as kernel time
    return found


# Two VMs, one after another, whose process has the same number. The pCPU is never idle: virtual time would skip ahead then, over seconds in
# which the recorder waits for the machine, and it checks once a second whether a process exists.
AGAIN = """command nice -n 19 shares a=100 & vperf record --no-agent -o /out/again -- sh -c 'for count in 1000 2000; do \
echo 4000 > /proc/sys/kernel/ns_last_pid; tinyvm --cpuid $count --wait 1; sleep 2; done'; kill $!
""".replace("\\\n", "")


# A vCPU in a state that the processor refuses to enter; most VMMs end then.
REFUSED_ENTRIES = 7
REFUSED = f"""command vperf record --no-samples --no-guest-memory --no-agent --trace=kvm -o /out/refused -- tinyvm --cpuid 100 --invalid {REFUSED_ENTRIES}
"""


def refused(run, claims, reason):
    """An exit has ended with the next entry: the last one has not."""
    exits = {row["reason"]: row["count"] for row in read("exits", run, recording="refused")["exits"]}
    claims.check((exits.get("CPUID"), exits.get(reason)) == (100, REFUSED_ENTRIES - 1), f"a vCPU that cannot be entered any more: exits {exits}")
    traced = exit_reasons(run, "refused")
    claims.check((traced["CPUID"], traced[reason]) == (100, REFUSED_ENTRIES), f"… by the trace: {dict(traced)}")
    check_closing(claims, read("account", run, recording="refused"))


# Time of the VMM between two KVM_RUN, by the entries and exits of its system calls. vperf does not run: perf's records of them, 1.6 us each,
# would be in the span that vperf measures.
VMM_TIME = """command perf record -q -a -m 4096 -e syscalls:sys_enter_ioctl,syscalls:sys_exit_ioctl -o /tmp/ioctls.data -- tinyvm --out 5000 --wait 1
command perf script -i /tmp/ioctls.data --ns -F comm,tid,time,event,trace >/out/ioctls
""".replace("\\\n", "")
KVM_RUN = 0xae80


def vmm_time(claims, run, ours):
    """The VMM's part of a port access (`ours`, ns), against perf's record of the system calls of the same program."""
    line = re.compile(r" *tinyvm +(\d+) +(\d+)\.(\d{9}): +syscalls:sys_(enter|exit)_ioctl: (?:.*cmd: (\w+))?")
    left, turns = {}, []
    for tid, seconds, ns, what, command in (match.groups() for match in map(line.match, (run.out / "ioctls").read_text().splitlines()) if match):
        time = int(seconds) * 10**9 + int(ns)
        if what == "exit":
            left[tid] = time
        elif int(command, 16) == KVM_RUN and tid in left:
            turns.append(time - left[tid])
    claims.check(len(turns) == 5001, f"{len(turns)} turns in the VMM by perf's record of ioctl(KVM_RUN), 5000 port accesses and a last halt were done")
    # The median: in some of them another task has the pCPU, which the account does not count as the VMM's.
    claims.near("a port access's time in the VMM, ns, by perf's record of system calls", ours, statistics.median(turns), 2 * HANDLERS_NS)


def exit_reasons(run, recording):
    """How many exits of each reason the trace has."""
    printed = vperf("script", str(run.recording(recording)), "--format", "csv", "--event", "kvm_exit").stdout
    return collections.Counter(row["reason"] for row in csv.DictReader(printed.splitlines()))


def number_again(run, claims):
    lines = [line.split() for line in (run.recording("again") / "vms").read_text().splitlines()]
    vms = [(int(words[1]), int(words[2])) for words in lines if words[0] == "vm"]
    claims.check(vms == [(4001, 4001), (4001 + (1 << 22), 4001)], f"two VMs of process 4001: {vms}")
    counts = [row["count"] for row in read("exits", run, recording="again")["exits"]
              if row["reason"] == "CPUID"]
    claims.check(sorted(counts) == [1000, 2000], f"CPUIDs of each: {sorted(counts)}")
    check_closing_of_all(claims, read("account", run, recording="again"))


def check_closing_of_all(claims, account):
    """As check_closing(), for VMs with equal names."""
    wall, states = (sum(row[key] for row in account[table])
                    for table, key in (("vcpus", "wall_ns"), ("states", "ns")))
    claims.check(len(account["vcpus"]) == 2 and abs(states - wall) <= 0.001 * wall,
                 f"{len(account['vcpus'])} vCPUs, states sum to {states} of {wall} ns")


def check_diagnosis(claims, run, recording, *expected, only=False):
    """The findings of 'vperf diagnose'."""
    rows = read("diagnose", run, recording=recording)["findings"]
    found = [row["id"] for row in rows]
    claims.check(set(expected) <= set(found) and (not only or set(found) == set(expected)),
                 f"{recording}: diagnosed {[(row['vm'], row['id'], round(row['percent'], 1), row['most']) for row in rows]}, "
                 f"{'only' if only else 'at least'} {list(expected)} expected")
    losses = [row["ns"] for row in rows]
    claims.check(losses == sorted(losses, reverse=True) and all(row["evidence"] and row["source"] for row in rows),
                 f"{recording}: {len(rows)} findings by time, each with its evidence and source")
    return rows


def same_on_the_page(run, claims):
    """The page of 'vperf html' has the numbers of the verbs."""
    page = page_of(run)
    if page is None:
        claims.skip("the page: this vperf was built without it (esbuild)")
        return
    states = [[row[key] for key in ("vm", "vcpu", "state", "ns")] for row in read("account", run)["states"]]
    shown = [row[:4] for row in page["tables"]["states"]["rows"]]
    claims.check(states and shown == states, f"the page has the account's {len(states)} states")
    exits = [[row["vm"], row["reason"], row["count"]] for row in read("exits", run)["exits"]]
    shown = [row[:3] for row in page["tables"]["exits"]["rows"]]
    claims.check(exits and shown == exits, f"the page has the {len(exits)} exit reasons and their counts")
    found = [(row["id"], row["ns"]) for row in read("diagnose", run)["findings"]]
    claims.check([(row["id"], row["ns"]) for row in page["findings"]] == found, f"the page has the findings {found}")
    samples = run.report("unified")["samples"]
    claims.check(page["profile"]["samples"] == samples, f"the page has the report's {samples} samples")


# No other guest runs: perf's counts over all VMs are those of the one whose exits are known.
KNOWN = """
host pcpus=1 icount=yes
command vperf record --account-events --no-guest-memory --no-agent -o /out/rec -- perf kvm stat record -a -m 4096 -o /tmp/kvm.data \
tinyvm --cpuid 20000 --out 10000 --mmio 5000 --hlt 3000 --wait 1
command perf kvm -i /tmp/kvm.data stat report --force; perf kvm -i /tmp/kvm.data stat report --event=mmio --force
""".replace("\\\n", "") + test_trace.KNOWN + AGAIN + REFUSED + VMM_TIME
DONE = {"CPUID": (20000, 0xe), "IOIO": (10000, 0x20), "HLT": (3000, 0x43)}


def perf_counts(run, command):
    """Reason → count, and address and R or W → count of MMIO, as that command ('perf kvm stat report') printed them."""
    books = dict(re.findall(r"^ +(\S+) +(\d+) +[\d.]+% +[\d.]+%", run.command_output(command, "err"), re.M))
    reasons = {PERF_NAMES.get(name, name): int(count) for name, count in books.items() if ":" not in name}
    return reasons, {name: int(count) for name, count in books.items() if ":" in name}


def known_addresses(run, claims, *reasons, books, recording="rec", reads=5000):
    """tinyvm's device by its address; all else is the memory that its code is in."""
    rows = read("exits", run, "--by", "address", recording=recording)["exits"]
    found = [(row["address"], row["what"], row["access"], row["reason"], row["count"]) for row in rows]
    device = sum(row["count"] for row in rows if row["what"] == "device")
    here = sum(row["count"] for row in rows if (row["address"], row["access"]) == ("0x20000", "read"))
    claims.check(here == device == reads, f"by address: {reads} reads at 0x20000 were done, {found}")
    claims.check({row["reason"] for row in rows} <= set(reasons) and sum(row["count"] for row in rows) == books,
                 f"… and sum to {books} exits of {' and '.join(reasons)}")
    claims.check(all(row["address"] == "0x0-0x1fffff" for row in rows if row["what"] != "device"),
                 "… the others are to its memory")


# Maximum time of both tools' handlers at the ends of a span that both measure, ns: each tool's own may or may not be in the other's span.
HANDLERS_NS = 300
# Most that a host interrupt's handler takes, ns, the tick or a sample; 2600 to 2800 were seen, whatever the exits' own times were.
INTERRUPT_NS = 4000


def perf_times(run, command):
    """Reason → mean ns from exit to entry, as 'perf kvm stat report' printed it."""
    rows = re.findall(r"^ +(\S+) +\d+ +[\d.]+% +[\d.]+% +[\d.]+us +[\d.]+us +([\d.]+)us", run.command_output(command, "err"), re.M)
    return {PERF_NAMES.get(name, name): 1000 * float(mean) for name, mean in rows if ":" not in name}


def same_times(claims, exits, theirs):
    """The time of each reason's exits is perf's, of all reasons."""
    claims.check(theirs.keys() == exits.keys(), f"perf kvm stat has times of {sorted(theirs)}")
    for reason, row in exits.items():
        # An exit for an interrupt begins with the interrupt (count_exit() from hit_at), perf's with KVM's event, after the handler.
        handler = INTERRUPT_NS / 2 if reason == "INTR" else 0
        claims.near(f"{reason}: mean time of an exit, ns, by perf kvm stat", row["total_ns"] / row["count"], theirs[reason] + handler, HANDLERS_NS + handler)
    # An exit that KVM answers by itself has nothing but KVM's time, and what was stolen of it: it is measured here, not what is left.
    cpuid = exits["CPUID"]
    claims.near("CPUID: KVM's own time of an exit, ns, by perf kvm stat", (cpuid["kernel_ns"] + cpuid["steal_ns"]) / cpuid["count"], theirs["CPUID"], HANDLERS_NS)


STORMS = {"exits-cpuid": ("CPUID", "0xe"), "exits-port": ("IOIO", "0x20")}
LEAST = 3.0  # percent of the vCPU's time, from which these rules speak (src/analyze/report/diagnose_rules.c)


def storms_are_found(run, claims, exits):
    """Each from its least share on. How long the program waited before it began is the emulator's affair: when all pCPUs are
    idle, virtual time goes on with the machine's."""
    wall = sum(row["ns"] for row in read("account", run)["states"])
    shares = {name: 100 * sum(exits[reason][part] for part in ("kernel_ns", "poll_ns", "vmm_ns")) / wall
              for name, (reason, _) in STORMS.items()}
    rows = {row["id"]: row for row in check_diagnosis(claims, run, "rec", *(name for name in STORMS if shares[name] > LEAST + 0.1))}
    claims.check(all(shares[name] >= LEAST - 0.1 for name in rows if name in STORMS), f"storms have these shares: {shares}")
    named = {name: row["most"] for name, row in rows.items() if name in STORMS}
    claims.check(all(STORMS[name][1] == place for name, place in named.items()),
                 f"storms of exits are those of the places that made them: {named}")


def known_exits(run, claims):
    exits = {row["reason"]: row for row in read("exits", run)["exits"]}
    storms_are_found(run, claims, exits)
    for reason, (count, _) in DONE.items():
        claims.check(exits[reason]["count"] == count,
                     f"{reason}: {exits[reason]['count']} exits, {count} were done")
    places = read("exits", run, "--by", "function")["exits"]
    for reason, (count, place) in {**DONE, "NPF": (5000, 0x31)}.items():
        here = [row["count"] for row in places
                if (row["reason"], row["function"]) == (reason, hex(place))]
        claims.check(here == [count], f"{reason} at {place:#x}: {here} exits, {count} were done")
    details = {row["reason"]: row["detail"] for row in places if row["function"] in ("0x20", "0x31")}
    claims.check(details == {"IOIO": "port 0x80 out", "NPF": "MMIO read 0x20000"}, f"they were to {details}")
    known_addresses(run, claims, "NPF", books=exits["NPF"]["count"])
    for reason, row in exits.items():
        placed = [place for place in places if place["reason"] == reason]
        claims.check((sum(p["count"] for p in placed), sum(p["total_ns"] for p in placed)) ==
                     (row["count"], row["total_ns"]), f"{reason}: functions sum to the reason")
    ours = {name: row["count"] for name, row in exits.items()}
    theirs, mmio = perf_counts(run, 2)
    claims.check(mmio == {"0x20000:R": 5000}, f"MMIO by perf kvm stat: {mmio}, 5000 were done")
    claims.check(theirs and ours == theirs, f"exits {ours}, by perf kvm stat {theirs}")
    same_times(claims, exits, perf_times(run, 2))
    vmm_time(claims, run, exits["IOIO"]["vmm_ns"] / exits["IOIO"]["count"])
    check_parts(claims, list(exits.values()))
    account = read("account", run)
    check_closing(claims, account)
    check_events(claims, account, read("account", run, "--events")["events"])
    test_trace.known_exits(run, claims, DONE)
    number_again(run, claims)
    refused(run, claims, "INVALID")
    same_on_the_page(run, claims)


# A Linux guest. The second of two rounds of exits is recorded, when all of it is in memory; then
# halts, polls, wakeups and the live view.
EXITS = "lab-guest run g1 exits --cpuid 100 --out 100 --mmio 10 --hlt 5 --rate 10 --seconds"
IDLING = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes
command sleep 1; vperf record --no-guest-memory --no-agent -o /out/quiet -- sleep 2; \
{exits} 1; vperf record --no-guest-memory -o /out/rec -- {exits} 3
command lab-guest spawn g1 idler 0.002 0.01; vperf top -n 3 -d 1 --json >/out/top.json
command vperf top -n 1; echo "status $?"
command lab-guest spawn g1 idler 0.0001 0.0003; vperf record --account-events --no-samples --no-agent -o /out/live -- \
sh -c 'lab-guest busy g1 0.1; tests/lab/halt-books g1; lab-guest busy g1 0.4; tests/lab/halt-books g1'
command vperf account /out/live --vm nobody; echo "status $?"
command vperf top -n 2 --csv >/out/top.csv & tests/lab/keys /out/crash 'by steal=!SEGV' -- vperf top & \
tests/lab/keys /out/ctrl-c 'by steal=\\x03' -- vperf top & \
tests/lab/keys /out/keys 'by steal=x' 'by exits=h' 'Keys:=h' 'by exits=v' 'VM g1=f' 'FROZEN=q' -- vperf top; wait
""".replace("\\\n", "").format(exits=EXITS)


def causes_of_exits(run, claims):
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    rounds = re.findall(r"exits: .*cpuid=.*", log)
    done = {name: int(count) for name, count in re.findall(r"(cpuid|out|mmio|hlt)=(\d+)", rounds[-1])}
    rows = read("exits", run, "--by", "function", "--vm", "g1")["exits"]

    def count(reason, *functions):
        return sum(row["count"] for row in rows if row["reason"] == reason
                   and row["function"] in functions and row["process"] == "exits")

    claims.check(count("CPUID", "exits_cpuid") == done["cpuid"],
                 f"exits_cpuid of 'exits' did {count('CPUID', 'exits_cpuid')} CPUIDs of {done['cpuid']}")
    claims.check(count("NPF", "exits_mmio") == done["mmio"],
                 f"exits_mmio did {count('NPF', 'exits_mmio')} MMIOs of {done['mmio']}")
    device = [(row["count"], row["access"]) for row in read("exits", run, "--by", "address", "--vm", "g1")["exits"]
              if row["address"] == "0xfed40000"]
    claims.check(device == [(done["mmio"], "read")], f"the address that was read has {device} of {done['mmio']}")
    claims.check(count("IOIO", "pci_conf1_read") == done["out"],
                 f"pci_conf1_read did {count('IOIO', 'pci_conf1_read')} port accesses of {done['out']}")
    halts = sum(row["count"] for row in rows if row["reason"] == "HLT")
    claims.check(halts >= done["hlt"], f"{halts} HLTs for {done['hlt']} sleeps")
    check_parts(claims, read("exits", run)["exits"])
    check_closing(claims, read("account", run))


# Three burners on one pCPU: a guest, another guest, a task of the host. Then the cgroup of g1's VMM may use
# 30 of every 100 ms, first alone, then with the burner of the host.
STOLEN = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 qemu="-serial unix:/run/vlab/g1.stat,server=on,wait=off"
guest g2 vcpus=1 memory=256
workload g1 shares a=100
workload g1 sh -c 'stty -F /dev/ttyS1 raw -echo; exec 3<>/dev/ttyS1; while read go <&3; do head -n 1 /proc/stat >&3; done'
workload g2 shares a=100
command mkfifo /run/go; shares a=100 & burner=$!; tests/lab/books /out/books g1 /run/go & \
vperf record --no-guest-memory --no-agent -o /out/rec -- sh -c 'echo > /run/go; lab-guest busy g1 2; echo > /run/go'; \
kill $burner; wait
command lab-guest stop g2; mkdir /sys/fs/cgroup/q; echo +cpu > /sys/fs/cgroup/cgroup.subtree_control; \
echo 30000 100000 > /sys/fs/cgroup/q/cpu.max; echo $(pgrep -f -o 'name g1,') > /sys/fs/cgroup/q/cgroup.procs; \
vperf record --no-guest-memory --no-agent -o /out/alone -- \
sh -c 'cat /sys/fs/cgroup/q/cpu.stat; lab-guest busy g1 1.5; cat /sys/fs/cgroup/q/cpu.stat'
command shares a=100 & vperf record --no-guest-memory --no-agent -o /out/contended -- lab-guest busy g1 1; kill $!
""".replace("\\\n", "")


ON_PCPU = ("guest", "kernel", "poll", "vmm", "interrupted")
WAITS = ("waking", "preempted", "throttled")

# The same work under each grade of the account, next to a burner of the host. The kernel's book of the vCPU's thread: time on a pCPU, time in
# a run queue.
GRADES = ("""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
workload g1 shares a=100
command shares a=100 & burner=$!; book=$(grep -l 'CPU 0/KVM' /proc/[0-9]*/task/*/comm | sed 's/comm$/schedstat/'); \
for grade in exact sampled states; do vperf record --no-guest-memory --no-agent --account=$grade -o /out/$grade -- \
sh -c "echo book $grade; cat $book; lab-guest run g1 exits --cpuid 400 --out 20 --hlt 3 --rate 10 --seconds 3; cat $book"; \
done; kill $burner
""".replace("\\\n", ""))
# BPF programs at exits that run in one grade only count as part of the exit.
PROGRAMS_NS = 400


def grades(run, claims):
    output = run.command_output(1)
    shares = {}
    for grade in ("exact", "sampled", "states"):
        account = read("account", run, recording=grade)
        wall, states = vcpu_of(account, "g1")
        check_closing(claims, account)
        claims.check(account["checks"]["samples_agree"], f"{grade}: samples are off by {account['checks']['samples_off_points']:.2f} points")
        book = output.split(f"book {grade}\n")[1].split("book ")[0]
        ran, waited = (after - before for before, after in zip(*(map(int, line) for line in re.findall(r"^(\d+) (\d+) \d+$", book, re.M))))
        # The thread never sleeps: the statistics cover what they sum to. The recording starts before they were read, and ends after that.
        apart = wall - ran - waited
        claims.check(0 <= apart < 0.03 * wall, f"{grade}: {wall / 1e6:.2f} ms, of which {apart / 1e6:.2f} ms are before and after the kernel's book")
        for name, names, theirs in (("on a pCPU", ON_PCPU, ran), ("waiting for it", WAITS, waited)):
            claims.near(f"{grade}: {name}, ms, by the kernel's book", sum(states.get(state, 0) for state in names) / 1e6, theirs / 1e6,
                        (0.01 * theirs + apart) / 1e6 + 1)
        row = next(row for row in account["vcpus"] if row["vm"] == "g1")
        shares[grade] = (row, {state: share(states.get(state, 0), sum(states.get(name, 0) for name in ON_PCPU)) for state in ON_PCPU})
        info = json.loads(vperf("info", "--json", str(run.recording(grade))).stdout)
        claims.check(info["account_grade"] == grade, f"info says the grade: {info['account_grade']}")
    claims.check("guest_error" not in shares["exact"][0] and all(0 < shares[grade][0]["guest_error"] < 10 for grade in ("sampled", "states")),
                 f"errors of guest time, %: {[shares[grade][0].get('guest_error') for grade in shares]}")
    exact, sampled = ({row["reason"]: row for row in read("exits", run, recording=grade)["exits"]} for grade in ("exact", "sampled"))
    done = [int(count) for count in re.findall(r"exits: .*cpuid=(\d+)", (run.out / "guest-g1" / "workloads.log").read_text())]
    for count, exits, grade in zip(done, (exact, sampled), ("exact", "sampled")):
        claims.check(count > 5000 and count <= exits["CPUID"]["count"] <= count + 300, f"{grade}: {exits['CPUID']['count']} CPUIDs, 'exits' did {count}")
        check_parts(claims, list(exits.values()))
    for reason in ("CPUID", "IOIO"):
        mine, theirs = sampled[reason], exact[reason]
        claims.near(f"{reason}: work for an exit, ns, by the exact account", mine["work_ns"] / mine["count"], theirs["work_ns"] / theirs["count"],
                    mine["work_error_ns"] / mine["count"] + PROGRAMS_NS + 0.05 * theirs["work_ns"] / theirs["count"])
    # Those that go to the VMM are not.
    claims.check(sampled["CPUID"]["work_error_ns"] > 0 and sampled["IOIO"]["work_error_ns"] < 0.01 * sampled["IOIO"]["work_ns"],
                 f"errors of sampled exits: {[(reason, row['work_error_ns'], row['work_ns']) for reason, row in sampled.items()]} ns")
    # Samples show interrupts, and what runs with interrupts off, as the guest's.
    guest, masked = shares["exact"][1]["guest"], shares["exact"][1]["interrupted"] + shares["exact"][1]["kernel"]
    row = shares["states"][0]
    error = row["guest_error"] / (row["guest"] + row["kernel"] + row["vmm"]) * 100
    claims.near("states: share of guest in the time on a pCPU, %, by the exact account", shares["states"][1]["guest"], guest, error + masked)
    refused = vperf("exits", str(run.recording("states")), check=False)
    claims.check(refused.returncode == 1 and "--account=states" in refused.stderr, f"no exits with --account=states: {refused.stderr.strip()}")


def share(part, whole):
    return 100 * part / whole


def thieves(run, claims, recording="rec"):
    books = json.loads((run.out / "books").read_text())
    account = read("account", run, recording=recording)
    rows = read("steal", run, "--vm", "g1", recording=recording)["thieves"]
    wall, states = vcpu_of(account, "g1")
    check_closing(claims, account)
    vms = (run.recording(recording) / "vms").read_text()
    g2 = int(re.search(r"^vm .* g2\n(?:(?!vm ).*\n)*?vcpu 0 (\d+)", vms, re.M).group(1))
    # The recording and the interval of the kernel's statistics start and end some ms apart.
    apart = share(abs(wall - books["ns"]), books["ns"])
    burner = max((t for t in books["threads"] if t["comm"] == "shares"), key=lambda t: t["run_ns"])
    for name, tid, thief in (("g2", g2, "vCPU 0 of VM g2"),
                             ("the host's burner", burner["tid"], f"shares/{burner['tid']}")):
        ran = next(t["run_ns"] for t in books["threads"] if t["tid"] == tid)
        expected = share(ran, books["ns"])
        claims.near(f"time taken by {name}, %",
                    share(sum(r["ns"] for r in rows if r["thief"] == thief), wall), expected,
                    0.02 * expected + apart)
    stolen = states["preempted"] + states.get("waking", 0) + states.get("throttled", 0)
    steal = share(books["steal_ns"], books["steal_of_ns"])
    claims.near("stolen, % (the guest's /proc/stat)", share(stolen, wall), steal,
                0.02 * steal + share(10e6, books["steal_of_ns"]) + apart)
    named = sum(row["ns"] for row in rows if row["kind"] not in ("throttled", "unfinished", "unknown"))
    claims.near("stolen time with a thief's name, %",
                share(named, stolen + states["interrupted"]), 100, 1)


def quota(run, claims):
    wall, states = vcpu_of(read("account", run, recording="alone"), "g1")
    found = [int(n) for n in re.findall(r"(?:nr_periods|throttled_usec) (\d+)", run.command_output(2))]
    periods, throttled = found[2] - found[0], found[3] - found[1]
    expected = share(throttled * 1000, periods * 100_000_000)
    # The recording and the readings of cpu.stat may each cut a period of 100 ms.
    claims.near("throttled, % (cpu.stat)", share(states.get("throttled", 0), wall), expected,
                share(200_000_000, wall))
    alone = share(states.get("preempted", 0), wall)
    wall, states = vcpu_of(read("account", run, recording="contended"), "g1")
    # It has 30 of each 100 ms, as the competitor has meanwhile, and is throttled for the other 40; what begins and ends cuts off a period.
    for state, percent in (("preempted", 30), ("throttled", 40)):
        claims.near(f"with a competitor: {state}, %", share(states.get(state, 0), wall), percent, 3 + share(100_000_000, wall))
    # The reader of the guest's CPU time runs nevertheless.
    claims.near("without a competitor: preempted, %", alone, 1, 1)
    rows = read("steal", run, recording="contended")["thieves"]
    tasks = [row for row in rows if row["kind"] in ("task", "kthread")]
    first = max(tasks, key=lambda row: row["preempted_ns"])
    part = share(first["preempted_ns"], states.get("preempted", 1))
    claims.check(first["thief"].startswith("shares/") and 80 <= part <= 100,
                 f"of the competition {part:.1f} % is the burner's: {first['thief']}")


STATES = ("guest", "kernel", "poll", "vmm", "halted", "waiting", "waking", "preempted", "throttled", "interrupted")


def live_lines(run, claims):
    with open(run.out / "top.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    claims.check(len(rows) == 2 and int(rows[0]["time_ns"]) < int(rows[1]["time_ns"]) and
                 {row["vm"] for row in rows} == {"g1"}, f"{len(rows)} lines of CSV, a second of g1 each")
    for row in rows:
        claims.near("states of a line, %", sum(float(row[state]) for state in STATES), 100, 0.1)


def live_screen(run, claims):
    """On a terminal: what the keys do, and that it is as before at the end."""
    keys, crash, ctrl_c = (json.loads((run.out / name).read_text()) for name in ("keys", "crash", "ctrl-c"))
    claims.check(keys["seen"] == [True] * keys["steps"], f"the screen follows each of the {keys['steps']} keys: {keys['seen']}")
    widest = max(len(line) for screen in keys["screens"] for line in screen)
    most = max(len(screen) for screen in keys["screens"])
    claims.check(widest <= 80 and most <= 24, f"{len(keys['screens'])} screens are at most {widest} wide, {most} high")
    rows = [line.split() for line in keys["screens"][-1] if line.startswith("g1 ")]
    claims.near("the vCPU's states on the screen, %", sum(float(number) for number in rows[0][2:6]), 100, 0.05)
    for name, facts, status in (("q", keys, 0), ("a crash", crash, -11), ("Ctrl-C", ctrl_c, 0)):
        claims.check(facts["status"] == status and facts["seen"][-1] and facts["same_terminal"] and facts["left_screen"] and
                     facts["cursor"], f"after {name} the terminal is as it was; status {facts['status']}")


def top_seconds(run, claims, seconds):
    """The rows of 'vperf top --json' about the only vCPU, one per second."""
    text = (run.out / "top.json").read_text()
    screens = [json.loads(screen + "}") for screen in text.split("\n}\n") if screen]
    claims.check([len(screen["vcpus"]) for screen in screens] == [1] * seconds, f"{len(screens)} screens of {seconds}, one vCPU in each")
    rows = [screen["vcpus"][0] for screen in screens]
    for row in rows:
        claims.near("states of a second, %", sum(row[state] for state in STATES), 100, 0.1)
    return rows


def books_of_halts(run, claims):
    """States of the account against what KVM and the scheduler have of the same vCPU, between two readings of theirs."""
    before, after = map(json.loads, run.command_output(4).splitlines()[-2:])
    unsure = before["end"] - before["begin"] + after["end"] - after["begin"]
    found = states_between(run, "live", before["begin"], after["end"])
    on_pcpu = sum(found[state] for state in ("guest", "kernel", "poll", "vmm", "interrupted"))
    grown = {name: after[name] - before[name] for name in before}
    polled = grown["halt_poll_success_ns"] + grown["halt_poll_fail_ns"]
    # KVM's time of a wait has the way to the scheduler and back, 3 us each, which are the kernel's in the account.
    for what, ours, theirs, most in (("polling, by KVM's statistics", found["poll"], polled, 0.02),
                                     ("halted and waking, by KVM's statistics", found["halted"] + found["waking"], grown["halt_wait_ns"], 0.05),
                                     ("on a pCPU, by the scheduler's book", on_pcpu, grown["ran_ns"], 0.02)):
        claims.check(theirs > 20_000_000, f"{what}: there are {theirs / 1e6:.2f} ms of it")
        claims.near(f"{what}, ms", ours / 1e6, theirs / 1e6, (most * theirs + unsure) / 1e6)


def live(run, claims):
    books_of_halts(run, claims)
    top_seconds(run, claims, 3)
    claims.check("status 0" in run.command_output(3) and "Exits/s" in run.command_output(3),
                 "vperf top works without a terminal")
    live_lines(run, claims)
    live_screen(run, claims)
    account = read("account", run, recording="live")
    check_closing(claims, account)
    claims.check("samples_agree" not in account["checks"], "no samples, nothing to compare")
    claims.check("status 1" in run.command_output(5) and
                 "no VM 'nobody'" in run.command_output(5, "err"), "an unknown VM: one sentence")


def quiet_host(run, claims):
    check_diagnosis(claims, run, "quiet", only=True)
    said = vperf("diagnose", str(run.recording("quiet"))).stdout
    claims.check("Nothing stands out." in said, "a quiet host: nothing stands out")


def idling_guest(run, claims):
    quiet_host(run, claims)
    causes_of_exits(run, claims)
    live(run, claims)


def stolen_time(run, claims):
    thieves(run, claims)
    quota(run, claims)
    rows = check_diagnosis(claims, run, "rec", "overcommit", "steal-task")
    most = {row["id"]: row["most"] for row in rows if row["vm"] == "g1"}
    claims.check(most.get("overcommit") == "vCPU 0 of VM g2" and most.get("steal-task", "").startswith("shares/"),
                 f"the thieves of g1 by name: {most}")
    check_diagnosis(claims, run, "alone", "quota")
    check_diagnosis(claims, run, "contended", "quota", "steal-task")


# A host under a storm of interrupts: perf's clock, 100,000 a second, while a guest executes a known number of instructions.
STORM_LOOPS = 200_000_000
STORM = f"""
host pcpus=1 icount=yes
command sysctl -q kernel.perf_cpu_time_max_percent=0 kernel.perf_event_max_sample_rate=1000000; \
perf record -q -e cpu-clock -c 10000 -a -o /tmp/perf.data -- vperf record --no-guest-memory --no-agent -o /out/rec -- \
bash -c 'grep LOC /proc/interrupts; tinyvm --loops {STORM_LOOPS}; grep LOC /proc/interrupts'
command rm -f /tmp/perf.data
""".replace("\\\n", "")


def timer_interrupts(run):
    """By the kernel's own count, between the two times that the first command printed it."""
    before, after = (int(count) for count in re.findall(r"LOC: +(\d+)", run.command_output()))
    return after - before


def seconds_on_pcpu(account):
    """Statistics of its only vCPU thread."""
    vcpu, = account["vcpus"]
    return sum(vcpu[state] for state in ON_PCPU) / 100 * vcpu["wall_ns"] / 1e9


def storm_is_told(run, claims, account, timers):
    """By all who show the account or the profile, with its rate, and what the samples are worth."""
    on_pcpu, exactly = seconds_on_pcpu(account), account["vcpus"][0]["guest"]
    told = {verb: " ".join(read(verb, run)["notes"]) for verb in ("account", "steal", "exits", "diagnose", "info")}
    told["report"] = " ".join(run.report("unified")["notes"])
    found = {verb: re.findall(r"interrupt storm on vCPU 0: (\d+) per second \(local_timer\) while it had a pCPU, .* accounting says ([\d.]+)%", text)
             for verb, text in told.items()}
    claims.check(all(len(rates) == 1 for rates in found.values()) and len({*map(tuple, found.values())}) == 1,
                 f"all say that there was a storm: {found}")
    rate, guest = [float(number) for number in (found["account"] or [(0, 0)])[0]]
    claims.check(abs(rate * on_pcpu - timers) <= 1 + on_pcpu, f"it is of {rate} a second for {on_pcpu:.3f} s: {timers} interrupts")
    claims.near("guest time that it calls exact, %", guest, exactly, 0.06)
    claims.note(told["account"])


def right_in_a_storm(run, claims, instructions, per_ns, most_ns):
    """The account, against the kernel's count of interrupts, and what the guest executed. `most_ns`: maximum cost of an iteration of the guest's
    loop that is not the guest's own but is after kvm_entry or before kvm_exit."""
    account, counted = read("account", run), timer_interrupts(run)
    check_closing(claims, account)
    check_parts(claims, read("exits", run)["exits"])
    timers = sum(row["count"] for row in read("steal", run)["thieves"] if row["thief"].startswith("local_timer/"))
    # The kernel counted from before the program's start until after its end, of which the vCPU had the pCPU most of the time.
    claims.check(0.75 * counted <= timers <= counted, f"{timers} timer interrupts while the vCPU had its pCPU, of {counted} by the kernel's count")
    guest = sum(row["ns"] for row in account["states"] if row["state"] == "guest")
    own, turns = instructions / per_ns, account["checks"]["exits"] + 1
    claims.check(own <= guest <= own + most_ns * turns, f"guest time: {guest} ns in {turns} turns, {own:.0f} for its instructions: "
                 f"{(guest - own) / turns:.0f} ns more for each turn")
    storm_is_told(run, claims, account, timers)


# A VM with known exits in the guest g1, which has KVM itself, recorded together with perf.
NESTED = """command vperf record --no-samples --no-guest-memory --no-agent -o /out/nested -- perf kvm stat record -a -m 2048 -o /tmp/nested.data \
lab-guest run g1 tinyvm --cpuid 300 --out 200 --mmio 100 --hlt 50
command perf kvm -i /tmp/nested.data stat report --force
""".replace("\\\n", "")


# Exits of an idle guest's ticks and threads: vperf's recording has more of them, because it starts before perf's and ends after it.
OF_IDLE = {"HLT", "MSR", "MSR_READ", "MSR_WRITE", "INTR", "VINTR", "EXTERNAL_INTERRUPT", "PREEMPTION_TIMER", "INTERRUPT_WINDOW",
           "NPF", "EPT_VIOLATION", "EPT_MISCONFIG"}


def nested_exits(run, claims, command, known, entries):
    """Exits of the guest's guest, and of the guest's KVM for them. `command`: that of perf's report; `known`: reason to count and
    place in the guest's guest; `entries`: the reasons for which the guest's KVM enters its guest."""
    theirs = {name.upper(): count for name, count in perf_counts(run, command)[0].items()}
    ours = {row["reason"]: row["count"] for row in read("exits", run, recording="nested")["exits"]}
    off = {reason: (ours.get(reason, 0), theirs.get(reason, 0)) for reason in {*ours, *theirs} - OF_IDLE
           if ours.get(reason, 0) != theirs.get(reason, 0)}
    less = {reason for reason in OF_IDLE if ours.get(reason, 0) < theirs.get(reason, 0)}
    claims.check(len({*ours} - OF_IDLE) > 5 and not off and not less,
                 f"exits with a guest of the guest {ours}, by perf kvm stat {theirs}: apart {off}, less {less}")
    entered, done = (sum(counts) for counts in ((ours.get(reason, 0) for reason in entries), (count for count, _ in known.values())))
    claims.check(entered > done, f"the guest entered its guest {entered} times, for at least {done} exits")
    places = read("exits", run, "--by", "function", recording="nested")["exits"]
    for reason, (count, place) in known.items():
        here = sum(row["count"] for row in places if (row["reason"], row["function"]) == (reason, hex(place)))
        claims.check(here == count, f"{reason} of the guest's guest at {place:#x}: {here}, {count} were done")
    check_parts(claims, read("exits", run, recording="nested")["exits"])
    check_closing(claims, read("account", run, recording="nested"))


NESTED_AMD = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 kvm=yes
{NESTED}"""


def nested(run, claims):
    nested_exits(run, claims, 2, {"CPUID": (300, 0xe), "IOIO": (200, 0x20), "HLT": (50, 0x43)}, ("VMRUN",))


def storm(run, claims):
    right_in_a_storm(run, claims, 2 * STORM_LOOPS, 1, 2000)


TESTS = [
    ("account: known exits", KNOWN, known_exits),
    ("account: stolen time", STOLEN, stolen_time),
]
QUICK = ("account: known exits",)


def matrix_scenario(host):
    return f"""
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=2 memory=512 kernel={host}
workload g1 shares a=100
command vperf record --no-guest-memory --no-agent -o /out/rec -- sh -c 'lab-guest run g1 exits --cpuid 100 --rate 10 --seconds 3; \
lab-guest busy g1 3'
""".replace("\\\n", "")


def matrix_claims(run, claims):
    account = read("account", run)
    check_closing(claims, account)
    claims.check(len(account["vcpus"]) == 2, f"{len(account['vcpus'])} vCPUs of 2")
    claims.check(account["checks"]["samples_agree"],
                 f"samples are off by {account['checks']['samples_off_points']:.2f} points")
    exits = {row["reason"]: row["count"] for row in read("exits", run)["exits"]}
    done = int(re.findall(r"exits: .*cpuid=(\d+)", (run.out / "guest-g1" / "workloads.log").read_text())[-1])
    claims.check(done >= 2500 and done <= exits.get("CPUID", 0) <= done + 300, f"{exits.get('CPUID', 0)} CPUIDs, {done} were done by 'exits', some by the start of programs")
    check_parts(claims, read("exits", run)["exits"])


FULL = [("account: an idling guest", IDLING, idling_guest)]
FULL += [(f"account: host {host}", matrix_scenario(host), matrix_claims)
         for host in ("bullseye", "bookworm", "trixie", "sid")]
# VMs of one process that lives on: the first closed before the next is opened, and both open at once. Between them more
# time passes than from one look for new VMs to the next.
VMS_APART_S = 12
VMS_OF_ONE = f"""
host pcpus=1 icount=yes
command vperf record --no-guest-memory --no-agent -o /out/closed -- tinyvm --cpuid 1000 --wait {VMS_APART_S} --vms 2 --close 1
command vperf record --no-guest-memory --no-agent -o /out/open -- tinyvm --cpuid 1000 --wait {VMS_APART_S} --vms 2
"""


def vms_of_one(run, claims):
    for number, (name, ends) in enumerate((("closed", 2), ("open", 1)), 1):
        text = (run.recording(name) / "vms").read_text()
        vms = [line.split() for line in text.splitlines() if line.startswith("vm ")]
        said = run.command_output(number, "err").count("stopped during the recording")
        claims.check(len(vms) == 2 and vms[0][2] == vms[1][2], f"{name}: two VMs of one process: {vms}")
        counts = [row["count"] for row in read("exits", run, recording=name)["exits"] if row["reason"] == "CPUID"]
        claims.check(counts == [1000, 1000], f"{name}: CPUIDs of each: {counts}")
        claims.check(said >= ends, f"{name}: {said} ends of VMs are said, at least {ends}")
        check_closing_of_all(claims, read("account", run, recording=name))


FULL += [("account: a storm of interrupts", STORM, storm), ("account: a guest in a guest", NESTED_AMD, nested),
         ("account: VMs of one process", VMS_OF_ONE, vms_of_one), ("account: grades", GRADES, grades)]


# The account and the events of a trace of the same second, in which a task of the host wants the pCPU, too. Then functions live.
BY_EVENTS = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=no
workload g1 shares fast=80 slow=20
command cp "$(command -v shares)" /run/backup; vperf record --account-events --no-samples --no-agent -o /out/account -- \
vperf record --trace --no-account --no-samples --no-agent -o /out/traced -- sh -c 'lab-guest busy g1 1; timeout 1 /run/backup x=100 >/dev/null; true'
command mkdir /run/tops; timeout 3 /run/backup x=100 >/dev/null & TMPDIR=/run/tops vperf top --by function -n 3 -d 1 --json >/out/top.json; wait; \
ls /run/tops | wc -l
""".replace("\\\n", "")


def functions_live(run, claims):
    updates = [json.loads(update + "}") for update in (run.out / "top.json").read_text().split("\n}\n") if update]
    claims.check(len(updates) == 3, f"{len(updates)} updates of 3")
    counts, host = collections.Counter(), 0
    for update in updates:
        claims.check(not update["lost"] and sum(row["samples"] for row in update["functions"]) == update["samples"],
                     f"an update of {update['seconds']:.2f} s: rows sum to {update['samples']} samples, {update['lost']} lost")
        for row in update["functions"]:
            if row["vm"] == "g1" and row["process"] == "shares":
                counts[row["function"]] += row["samples"]
            host += row["samples"] if row["vm"] == "host" and row["process"] == "backup" else 0
    (first, most), (second, fewer) = (counts.most_common(2) + [("none", 0)] * 2)[:2]
    both = most + fewer
    claims.check(first and second and first.startswith("share_") and second.startswith("share_"), f"functions of the guest's program: {counts.most_common(3)}")
    # Three standard deviations of the number of samples.
    claims.near("its first function's part, %", 100 * most / max(both, 1), 80, 300 * (0.8 * 0.2 / max(both, 1)) ** 0.5)
    claims.check(host > 100, f"the host's task has {host} samples, too")
    claims.check(run.command_output(2).strip().splitlines()[-1] == "0", "no directory is left")


def by_events(run, claims):
    facts = run.facts("traced")
    states = states_between(run, "account", int(facts["start"]), int(facts["end"]))
    wall = sum(states.values())
    exact = collections.Counter({state: 100 * ns / max(wall, 1) for state, ns in states.items()})
    traced = read("account", run, recording="traced")["vcpus"]
    claims.check(wall and len(traced) == 1, "one vCPU in each")
    traced = traced[0]
    known = {"guest": exact["guest"], "kernel": exact["kernel"] + exact["poll"] + exact["vmm"], "halted": exact["halted"], "waiting": exact["waiting"],
             "waking": exact["waking"], "preempted": exact["preempted"] + exact["throttled"]}
    # Interrupts are a part of the states that they hit; before its first event the vCPU's state is not known.
    most = exact["interrupted"] + 100 * (1 - traced["wall_ns"] / max(wall, 1)) + 0.1
    claims.check(most < 3, f"states may differ by {most:.2f} points: {exact['interrupted']:.2f}% of interrupts")
    for state, percent in known.items():
        claims.near(f"{state} by the events of the trace, %", traced[state], percent, most)
    claims.check(exact["preempted"] > 20, f"the task took {exact['preempted']:.2f}%")
    thieves = read("steal", run, recording="traced")["thieves"]
    first = max(thieves, key=lambda row: row["ns"])
    claims.check(first["thief"].startswith("backup/"), f"the trace's first thief: {first['thief']}")
    functions_live(run, claims)


FULL += [("account: by events, and functions live", BY_EVENTS, by_events)]
