# SPDX-License-Identifier: GPL-2.0-or-later
"""Each finding of 'vperf diagnose' from a cause that was made for it, against what others counted of it (tests/lab/causes)."""
import re
import shlex

from lab import vperf
from test_account import check_diagnosis, read

CAUSES = """
host pcpus=1 icount=yes
guest g1 vcpus=2 memory=512
command tests/lab/causes quiet self vmm irq polling timers faults
"""
# Recordings of VMs of a few instructions, without other VMs.
ALONE = """
host pcpus=1 icount=yes
command tests/lab/causes storms wakeup
"""
# KVM intercepts PAUSE on processors with a filter for it, which this one has by the kernel's word only: so each of them exits.
SPINNING = """
host pcpus=1 icount=yes kernel=sid append="setcpuid=pausefilter,pfthreshold"
command tests/lab/causes pause lock
"""
IPI = """
host pcpus=1 icount=yes
command tests/lab/causes ipi
"""
TICK = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
command tests/lab/causes tick
"""
TICK = TICK.replace("tick", "tick storm")
TOOL = TICK.replace("tick storm", "tool lost")
GUEST_EVENTS = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes
command tests/lab/causes lost_guest
"""
# The same two guests, where they share the only pCPU, and where there are two.
CROWDED = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
guest g2 vcpus=1 memory=256
command tests/lab/causes quiet overcommit collisions
"""
ROOM = CROWDED.replace("pcpus=1", "pcpus=2").replace("quiet overcommit collisions", "room pinned")


# At most; in virtual time these are instructions.
EVENT_BY_PERF_NS = 1000


def counted(run, name):
    """{word: by how much the number grew}, by the kernels' own books."""
    numbers = {}
    for line in (run.out / f"{name}.truth").read_text().splitlines():
        word, number = line.split()
        numbers.setdefault(word, []).append(int(number))
    return {word: sum(of[len(of) // 2:]) - sum(of[:len(of) // 2]) for word, of in numbers.items()}


def said(run, name):
    """The activity of the VM of a few instructions, by its own output, and the scheduler's statistics of its vCPUs."""
    return {word: int(number) for word, number in re.findall(r"(\w+)=(\d+)\b(?!\.)", (run.out / f"{name}.said").read_text())}


def check_evidence(claims, name, rows):
    """The commands that the findings name: each runs, and shows who took or caused most, and where."""
    for row in rows:
        shown = vperf(*shlex.split(row["evidence"])[1:], check=False)
        named = row["most"] or row["vm"] or str(row["count"])
        if "vperf account" in row["evidence"]:
            named = row["vm"]  # its table has the vCPUs' numbers
        claims.check(shown.returncode == 0 and named in shown.stdout, f"{name}: the evidence of {row['id']} shows {named}")
        if row["address"]:
            shown = vperf(*shlex.split(row["address_evidence"])[1:], check=False)
            claims.check(row["address"] in shown.stdout, f"{name}: … and {row['address']}")


def finding(run, claims, name, rule, behind=(), before=()):
    """The rule's finding, of the only VM with findings; those of `before` may precede it, and those of `behind` may follow it."""
    rows = check_diagnosis(claims, run, name, rule)
    check_evidence(claims, name, rows)
    found = [row["id"] for row in rows]
    at = found.index(rule) if rule in found else len(found)
    claims.check(len({row["vm"] for row in rows if row["vm"]}) <= 1 and set(found[:at]) <= set(before) and set(found[at + 1:]) <= {*before, *behind},
                 f"{name}: {rule} is among {found}, before it are at most {list(before)}, behind it also {list(behind)}")
    return rows[at] if at < len(found) else {"ns": 0, "most_ns": 0, "count": 0, "most": "", "percent": 0, "address": "", "address_count": 0}


def is_part(claims, what, found, counted_ns, more_ns=0):
    """The finding has what was counted, and no more than that and what was before and after the counting."""
    claims.check(0.98 * counted_ns <= found <= 1.02 * counted_ns + more_ns,
                 f"{what}: {found} ns, counted {counted_ns} ns and at most {more_ns} more")


def outside(run, name, truth):
    """ns of all vCPUs in the recording, but not while it was counted."""
    walls = [row["wall_ns"] for row in read("account", run, recording=name)["vcpus"]]
    return sum(walls) - len(walls) * truth["clock"]


def stolen_by_tasks(run, name):
    """All that vCPUs waited for those who had their pCPU: what the scheduler calls run delay."""
    return sum(row["ns"] for row in read("steal", run, recording=name)["thieves"] if row["kind"] in ("vcpu", "task", "kthread", "kworker"))


def stolen(run, claims):
    truth, found = counted(run, "self"), finding(run, claims, "self", "steal-self")
    is_part(claims, "all that was stolen (run delay)", stolen_by_tasks(run, "self"), truth["delay"], outside(run, "self", truth))
    rows = read("steal", run, "--vm", "g1", recording="self")["thieves"]
    own = sum(row["ns"] for row in rows if row["thief"].startswith("vCPU ") and row["thief"].endswith(" of VM g1"))
    claims.check(found["ns"] == own, f"stolen by the VM itself {found['ns']} ns, by the table of thieves {own} ns")
    claims.near("stolen by the VM itself, % of two busy vCPUs on a pCPU", found["percent"], 50, 3)
    truth, found = counted(run, "vmm"), finding(run, claims, "vmm", "steal-vmm", behind=("steal-task",))
    claims.check(found["most"].startswith("qemu-system-x86/"), f"the VMM's thread is named: {found['most']}")
    is_part(claims, "stolen by the VMM's thread (its CPU time)", found["most_ns"], truth["run"])
    truth, found = counted(run, "irq"), finding(run, claims, "irq", "steal-irq")
    claims.check(found["most"] == "NET_RX/3", f"the soft interrupt is named: {found['most']}")
    received = [row for row in read("steal", run, recording="irq")["thieves"] if row["thief"] == "NET_RX/3"]
    claims.check(0.8 * truth["softirqs"] < sum(row["count"] for row in received) <= 1.2 * truth["softirqs"],
                 f"{sum(row['count'] for row in received)} of the pCPU's {truth['softirqs']} NET_RX interrupted the vCPU")


def polling(run, claims):
    truth, found = counted(run, "polling"), finding(run, claims, "polling", "halt-polling")
    is_part(claims, "polled in vain (KVM's halt_poll_fail_ns)", found["ns"], truth["failed"],
            0.2 * outside(run, "polling", truth))


def exits_by(run, name, reason, *details):
    """Their number, in the table that the finding is of."""
    rows = read("exits", run, "--by", "function", recording=name)["exits"]
    return sum(row["count"] for row in rows if row["reason"] == reason and (row["detail"] or "") in details)


def storms(run, claims):
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    done = {name: int(count) for name, count in re.findall(r"(timers|pages)=([1-9]\d*)", log)}
    found = finding(run, claims, "timers", "exits-timer", behind=("steal-self",))
    claims.check(0.85 * done["timers"] <= found["count"] <= 2.1 * done["timers"] and
                 found["count"] == exits_by(run, "timers", "MSR", "MSR 0x6e0 write"),
                 f"{found['count']} exits to program a timer, which was set {done['timers']} times, in {found['most']}")
    truth, found = counted(run, "faults"), finding(run, claims, "faults", "faults")
    claims.check(truth["kib"] // 4 <= found["count"] <= truth["kib"] // 4 + 100,
                 f"{found['count']} faults; the VMM has {truth['kib']} KiB more, the guest used {done['pages']} pages")
    claims.check(re.fullmatch(r"0x[0-9a-f]+00000-0x[0-9a-f]+fffff", found["address"] or "") and 256 <= found["address_count"] <= 600,
                 f"of most of it the block of 512 pages is named: {found['address']}, {found['address_count']} times")


def causes(run, claims):
    check_diagnosis(claims, run, "quiet", only=True)
    claims.check("Nothing stands out." in vperf("diagnose", str(run.recording("quiet"))).stdout, "quiet: nothing stands out")
    stolen(run, claims)
    polling(run, claims)
    storms(run, claims)


def accesses(run, claims):
    found = finding(run, claims, "storms", "exits-msr", before=("exits-mmio",))
    claims.check((found["count"], found["most"]) == (30000, "0x59"), f"{found['count']} registers were read of 30000, at {found['most']}")
    found = finding(run, claims, "storms", "exits-mmio", before=("exits-msr",))
    claims.check((found["count"], found["most"], found["address"], found["address_count"]) == (10000, "0x31", "0x20000", 10000),
                 f"{found['count']} reads of a device of 10000, at {found['most']}, {found['address_count']} of {found['address']}")
    books = next(row for row in read("exits", run, recording="storms")["exits"] if row["reason"] == "NPF")
    claims.check(books["vmm_ns"] < found["ns"] <= books["vmm_ns"] + books["kernel_ns"],
                 f"… which took the VMM {books['vmm_ns']} ns, and with the kernel's part {found['ns']} ns of at most "
                 f"{books['vmm_ns'] + books['kernel_ns']}")


def spinning(run, claims):
    for name, rule, also in (("pause", "exits-pause", ()), ("lock", "exits-lock", ("steal-self",))):
        done, found = said(run, name), finding(run, claims, name, rule, before=also)
        claims.check((found["count"], found["most"]) == (done["pause"], "0x6a"),
                     f"{name}: {found['count']} exits of {done['pause']} PAUSEs, at {found['most']}")
    is_part(claims, "lock: stolen of both vCPUs (run delay)", stolen_by_tasks(run, "lock"), done["delay"])


def wakeup(run, claims):
    done, found = said(run, "wakeup"), finding(run, claims, "wakeup", "wakeup", before=("exits-msr",))
    claims.check(done["waits"] > 0.99 * done["tick"] and abs(found["count"] - done["count"]) <= 0.01 * done["count"] and
                 done["count"] > 0.9 * done["tick"],
                 f"{found['count']} wake-ups of an idle pCPU, by perf {done['count']}, for {done['tick']} ticks")
    claims.check(0 <= done["ns"] - found["ns"] <= EVENT_BY_PERF_NS * done["count"],
                 f"they took {found['ns']} ns, by perf {done['ns']} ns with what it takes to write down each of them")


def alone(run, claims):
    accesses(run, claims)
    wakeup(run, claims)


def ipi(run, claims):
    done = said(run, "ipi")
    found = finding(run, claims, "ipi", "exits-ipi", before=("steal-self", "wakeup", "exits-msr"))
    claims.check((found["count"], found["most"]) == (done["ipi"], "0x8d") and
                 exits_by(run, "ipi", "MSR", "MSR 0x830 write") == done["ipi"],
                 f"{found['count']} exits of {done['ipi']} interrupts to the other vCPU, at {found['most']}")
    claims.check(0 < exits_by(run, "ipi", "MSR", "MSR 0x80b write") == done["handled"],
                 f"… which ended {exits_by(run, 'ipi', 'MSR', 'MSR 0x80b write')} of the {done['handled']} that it handled")


def tick(run, claims):
    for name, rule, others in (("tick", "steal-tick", ("steal-task",)), ("storm", "irq-storm", ("steal-task",))):
        truth, found = counted(run, name), finding(run, claims, name, rule, before=others)
        longer = 1 + outside(run, name, truth) / truth["clock"]
        times = sum(row["count"] for row in read("steal", run, recording=name)["thieves"] if row["thief"] == found["most"])
        claims.check(found["most"].startswith("local_timer/") and 0.95 * truth["ticks"] < times <= 1.02 * longer * truth["ticks"],
                     f"{name}: {times} times by {found['most']}, the pCPU had {truth['ticks']} of its timer's interrupts, and at most "
                     f"{longer:.3f} times as many in the whole recording")


def of_both(run, claims, name, rule, beside=()):
    """{VM: its finding}, which is the only one it has but for `beside` and what tasks of the host take; the scheduler counted as much."""
    truth, rows = counted(run, name), check_diagnosis(claims, run, name, rule)
    check_evidence(claims, name, rows)
    claims.check(sorted(row["vm"] for row in rows if row["id"] == rule) == ["g1", "g2"] and {row["id"] for row in rows} <= {rule, "steal-task", *beside},
                 f"{name}: {rule} is found of g1 and of g2, and of neither another one")
    is_part(claims, f"{name}: all that was stolen (run delay)", stolen_by_tasks(run, name), truth["delay"], outside(run, name, truth))
    for row in rows:
        if row["id"] == rule:
            claims.check(row["most"] == OTHERS[row["vm"]], f"{name}: {row['vm']} lost most to {row['most']}")
    return {row["vm"]: row for row in rows if row["id"] == rule}


OTHERS = {"g1": "vCPU 0 of VM g2", "g2": "vCPU 0 of VM g1"}


def by_each_other(run, name):
    rows = read("steal", run, recording=name)["thieves"]
    return sum(row["ns"] for row in rows if row["kind"] == "vcpu" and row["thief"] == OTHERS[row["vm"]])


def crowded(run, claims):
    check_diagnosis(claims, run, "quiet", only=True)
    rows = of_both(run, claims, "overcommit", "overcommit")
    claims.check(sum(row["ns"] for row in rows.values()) == by_each_other(run, "overcommit"),
                 f"overcommit: all of the {by_each_other(run, 'overcommit')} ns that both took from each other")
    for row in rows.values():
        claims.near(f"overcommit: {row['vm']}, % of its busy vCPU's time", row["percent"], 50, 4)
        claims.check("2.0 vCPUs" in row["detail"] and row["detail"].endswith(" 1 pCPU"), f"overcommit: {row['detail']}")
    rows = of_both(run, claims, "collisions", "steal-vm")
    claims.check(sum(row["ns"] for row in rows.values()) == by_each_other(run, "collisions"),
                 f"collisions: all of the {by_each_other(run, 'collisions')} ns that both took from each other, and no overcommit")


def room(run, claims):
    rows = check_diagnosis(claims, run, "room")
    # They may share a pCPU for a while, until the host's scheduler moves one: that is steal-vm.
    claims.check("overcommit" not in {row["id"] for row in rows}, "room: two busy vCPUs on two pCPUs are no overcommit")
    # Emulated pCPUs take turns: one may wait for its turn within an interrupt.
    rows = of_both(run, claims, "pinned", "overcommit", beside=("steal-tick", "steal-irq"))
    for row in rows.values():
        claims.near(f"pinned: {row['vm']}, % of its busy vCPU's time", row["percent"], 50, 4)
        claims.check(row["detail"].endswith(" 1 pCPU"), f"pinned: {row['detail']}")


def lost(run, claims):
    for kind in ("events", "samples", "account", "intervals"):
        rows = check_diagnosis(claims, run, f"lost_{kind}", f"lost-{kind}")
        check_evidence(claims, f"lost_{kind}", rows)
        found = [row for row in rows if row["vm"] is None]
        claims.check([row["id"] for row in found] == [f"lost-{kind}"], f"lost_{kind}: nothing else was lost: {[row['id'] for row in found]}")


def lost_in_guest(run, claims):
    """All system calls of a program, each of which is two events, were recorded or lost."""
    rows = check_diagnosis(claims, run, "lost_guest-events", "lost-guest-events")
    found = {row["id"]: row for row in rows}["lost-guest-events"]
    told, lost = map(int, re.search(r"^guest-events (\d+) (\d+)$", (run.recording("lost_guest-events") / "vms").read_text(), re.M).groups())
    claims.check(found["vm"] == "g1" and found["count"] == lost and not found["ns"], f"lost in the guest: {found['count']} of {found['vm']}")
    claims.near("lost in the guest, %", found["percent"], 100 * lost / (told + lost), 0.01)
    claims.check(told > 1000 and 400000 <= told + lost <= 430000,
                 f"lost in the guest: {lost}, and {told} recorded: 100,000 bytes were read and written one by one, by 400,000 events and a few")


def tool(run, claims):
    truth, found = counted(run, "tool"), finding(run, claims, "tool", "tool-cost", before=("steal-task",))
    claims.check(found["most"].startswith("vperf/"), f"vperf names itself: {found['most']}")
    clock = outside(run, "tool", truth)
    claims.check(clock < 2 * truth["clock"], f"vperf ends when its command has: {clock / 1e6:.0f} ms more than {truth['clock'] / 1e6:.0f} ms")
    is_part(claims, "taken by vperf (its CPU time)", found["ns"], truth["run"], outside(run, "tool", truth))
    lost(run, claims)


TESTS = []
QUICK = ()
FULL = [("diagnose: causes", CAUSES, causes), ("diagnose: VMs alone", ALONE, alone), ("diagnose: spinning", SPINNING, spinning),
        ("diagnose: interrupts between vCPUs", IPI, ipi), ("diagnose: timers", TICK, tick), ("diagnose: more vCPUs than pCPUs", CROWDED, crowded),
        ("diagnose: as many vCPUs as pCPUs", ROOM, room), ("diagnose: vperf itself", TOOL, tool), ("diagnose: losses in a guest", GUEST_EVENTS, lost_in_guest)]
