# SPDX-License-Identifier: GPL-2.0-or-later
"""Each finding of 'vperf diagnose' from a cause that was made for it, against what others counted of it (tests/lab/causes)."""
import re
import shlex

from lab import vperf
from test_account import check_diagnosis, read

CAUSES = """
host pcpus=1 icount=yes
guest g1 vcpus=2 memory=512
command ip link set lo up; tests/lab/causes
"""


def counted(run, name):
    """{word: by how much the number grew}, by the kernels' own books."""
    numbers = {}
    for line in (run.out / f"{name}.truth").read_text().splitlines():
        word, number = line.split()
        numbers.setdefault(word, []).append(int(number))
    return {word: sum(of[len(of) // 2:]) - sum(of[:len(of) // 2]) for word, of in numbers.items()}


def check_evidence(claims, name, rows):
    """The commands that the findings name: each runs, and shows who took or caused most."""
    for row in rows:
        shown = vperf(*shlex.split(row["evidence"])[1:], check=False)
        named = row["most"] or row["vm"]
        if "vperf account" in row["evidence"]:
            named = row["vm"]  # its table has the vCPUs' numbers
        claims.check(shown.returncode == 0 and named in shown.stdout, f"{name}: the evidence of {row['id']} shows {named}")


def finding(run, claims, name, rule, behind=(), before=()):
    """That of the rule, of the only VM with findings: there may be those of `before` before it, and of `behind` behind it."""
    rows = check_diagnosis(claims, run, name, rule)
    check_evidence(claims, name, rows)
    found = [row["id"] for row in rows]
    at = found.index(rule) if rule in found else len(found)
    claims.check(len({row["vm"] for row in rows}) == 1 and set(found[:at]) <= set(before) and set(found[at + 1:]) <= {*before, *behind},
                 f"{name}: {rule} is among {found}, before it are at most {list(before)}, behind it also {list(behind)}")
    return rows[at] if at < len(found) else {"ns": 0, "most_ns": 0, "count": 0, "most": "", "percent": 0}


def is_part(claims, what, found, counted_ns, more_ns=0):
    """The finding has what was counted, and no more than that and what was before and after the counting."""
    claims.check(0.98 * counted_ns <= found <= 1.02 * counted_ns + more_ns,
                 f"{what}: {found} ns, counted {counted_ns} ns and at most {more_ns} more")


def outside(run, name, truth):
    """ns of all vCPUs in the recording, but not while it was counted."""
    walls = [row["wall_ns"] for row in read("account", run, recording=name)["vcpus"]]
    return sum(walls) - len(walls) * truth["clock"]


def stolen(run, claims):
    truth, found = counted(run, "self"), finding(run, claims, "self", "steal-self")
    rows = [row for row in read("steal", run, "--vm", "g1", recording="self")["thieves"]
            if row["kind"] in ("vcpu", "task", "kthread", "kworker")]
    is_part(claims, "all that was stolen (run delay)", sum(row["ns"] for row in rows), truth["delay"], outside(run, "self", truth))
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


def waits(run, claims):
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
    found = finding(run, claims, "storms", "exits-msr", behind=("exits-mmio", "faults"))
    claims.check((found["count"], found["most"]) == (30000, "0x59"), f"{found['count']} registers were read of 30000, at {found['most']}")
    rows = {row["id"]: row for row in check_diagnosis(claims, run, "storms", "exits-mmio")}
    exits = {row["reason"]: row for row in read("exits", run, recording="storms")["exits"]}
    claims.check(rows["exits-mmio"]["most"] == "0x31" and abs(rows["exits-mmio"]["ns"] - exits["NPF"]["vmm_ns"]) < 10,
                 f"the VMM served memory for {rows['exits-mmio']['ns']} ns of the exits' {exits['NPF']['vmm_ns']}")


def causes(run, claims):
    check_diagnosis(claims, run, "quiet", only=True)
    claims.check("Nothing stands out." in vperf("diagnose", str(run.recording("quiet"))).stdout, "quiet: nothing stands out")
    stolen(run, claims)
    waits(run, claims)
    storms(run, claims)


TESTS = []
QUICK = ()
FULL = [("diagnose: causes", CAUSES, causes)]
