# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about pCPUs and schedulers of a Xen host: overcommit, affinity, caps. See docs/method-xen.md."""
import re
import shlex

from lab import vperf
from test_account import check_closing, read

RECORD = "vperf record --no-samples --no-symbols"
KINDS = {"g1": "pvh", "g2": "pv"}
BUSY = "shares a=100"


def during(jobs, command):
    """The command while each guest runs its program."""
    names = [(guest, f"JOB_{guest}") for guest in jobs]
    return ("; ".join(f"{name}=$(lab-guest spawn {guest} {jobs[guest]})" for guest, name in names) + f"; {command}; "
            + "; ".join(f"lab-guest end {guest} ${name} || true" for guest, name in names))


def pinned(where, jobs, name):
    """Both guests on these pCPUs; Xen's own list of affinities goes to a file."""
    pins = "; ".join(f"xl vcpu-pin {guest} 0 {pcpus}" for guest, pcpus in where.items())
    return f"command {pins}; {during(jobs, f'{RECORD} -d 2 -o /out/{name}')}; xl vcpu-list >/out/{name}.list\n"


# In 'collisions' both are busy for a part of the time, and now and then both.
PLACES = f"""
host hypervisor=xen pcpus=2 icount=yes memory=4096
guest g1 memory=192 type=pvh
guest g2 memory=192 type=pv
{pinned({"g1": "0", "g2": "1"}, {"g1": BUSY, "g2": BUSY}, "room")}\
{pinned({"g1": "1", "g2": "1"}, {"g1": BUSY, "g2": BUSY}, "pinned")}\
{pinned({"g1": "1", "g2": "1"}, {"g1": "idler 0.03 0.1", "g2": "idler 0.03 0.073"}, "collisions")}\
command xl vcpu-pin g1 0 all; xl vcpu-pin g2 0 all; xl vcpu-list >&2; {RECORD} -d 1 -o /out/anywhere; xl vcpu-list >/out/anywhere.list
"""
OTHERS = {"g1": "vCPU 0 of VM g2", "g2": "vCPU 0 of VM g1"}


def affinities(text):
    """{(domain, vCPU): pCPUs} of 'xl vcpu-list'; its name for all pCPUs is 'all'."""
    rows = (re.split(r" +", line.strip()) for line in text.splitlines()[1:])
    return {(int(row[1]), int(row[2])): row[6].replace("all", "0-1") for row in rows}


def lost_to_each_other(run, name):
    rows = read("steal", run, recording=name)["thieves"]
    return {vm: sum(row["ns"] for row in rows if row["vm"] == vm and row["thief"] == other) for vm, other in OTHERS.items()}


def found_in(run, claims, name):
    """{(VM, rule): finding} of the two guests."""
    rows = read("diagnose", run, recording=name)["findings"]
    for row in rows:
        shown = vperf(*shlex.split(row["evidence"])[1:], check=False)
        claims.check(shown.returncode == 0, f"{name}: the evidence of {row['id']} is shown")
    return {(row["vm"], row["id"]): row for row in rows if row["vm"] in KINDS}


def places(run, claims):
    for name in ("room", "pinned", "collisions", "anywhere"):
        info, account = run.info(name), read("account", run, recording=name)
        check_closing(claims, account)
        claims.check(info["hypervisor_pcpus"] == 2, f"{name}: Xen has {info['hypervisor_pcpus']} pCPUs")
        told = {(vm["domain"], vcpu["vcpu"]): vcpu["pcpus"] for vm in info["vms"] for vcpu in vm["vcpus"]}
        listed = affinities((run.out / f"{name}.list").read_text())
        claims.check(told == listed and len(told) == 4, f"{name}: vCPUs may use {told}, by xl {listed}")
        claims.check({vm["scheduler"] for vm in info["vms"]} == {"credit2"}, f"{name}: schedulers of the VMs")
    found, lost = found_in(run, claims, "pinned"), lost_to_each_other(run, "pinned")
    for vm in KINDS:
        row = found.get((vm, "overcommit"), {"percent": 0, "ns": 0, "detail": "", "most": "", "commands": ""})
        claims.near(f"pinned: {vm}, % of its busy vCPU's time that overcommit took", row["percent"], 50, 4)
        claims.check("2." in row["detail"] and row["detail"].endswith(" 1 pCPU"), f"pinned: {row['detail']}")
        claims.check(row["most"] == OTHERS[vm] and row["ns"] >= 0.98 * lost[vm], f"pinned: {vm} lost {row['ns']} ns, {lost[vm]} of them to {row['most']}")
    claims.check(not {key for key in found if key[1] == "steal-vm"}, f"pinned: no theft could be avoided: {sorted(found)}")
    found, lost = found_in(run, claims, "collisions"), lost_to_each_other(run, "collisions")
    claims.check(not {key for key in found if key[1] == "overcommit"} and {(vm, "steal-vm") for vm in KINDS} <= set(found),
                 f"collisions: the pCPU has time for both, so what they lost is no overcommit: {sorted(found)}")
    claims.check(sum(found[vm, "steal-vm"]["ns"] for vm in KINDS if (vm, "steal-vm") in found) >= sum(lost.values()) > 20000000,
                 f"collisions: all of {lost} ns")
    for vm, domain in ((vm["name"], vm["domain"]) for vm in run.info("collisions")["vms"] if vm["name"] in KINDS):
        row = found.get((vm, "steal-vm"), {"commands": []})
        claims.check(f"xl vcpu-pin {domain} 0 0" in str(row["commands"]), f"collisions: {vm} may use the other pCPU: {row['commands']}")
    found, lost = found_in(run, claims, "room"), lost_to_each_other(run, "room")
    # dom0 has a vCPU on each of the two, which may take some of it.
    thieves = {row["most"] for row in found.values()}
    claims.check(not sum(lost.values()) and thieves <= {"vCPU 0 of VM Domain-0", "vCPU 1 of VM Domain-0"},
                 f"room: each has a pCPU: lost to each other {lost} ns; found is {sorted(found)}, by {sorted(thieves)}")


# Xen's older scheduler has caps of its own.
CREDIT = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096 xen="sched=credit"
guest capped memory=128 type=pvh
guest free memory=128 type=pv
command xl sched-credit -d capped -c 20; {during({"capped": BUSY, "free": BUSY}, f"{RECORD} -d 4 -o /out/rec")}
"""


def credit(run, claims):
    account, info = read("account", run), run.info()
    check_closing(claims, account)
    claims.check({vm["scheduler"] for vm in info["vms"]} == {"credit"}, "the scheduler's name")
    states = {row["state"]: row["percent"] for row in account["states"] if row["vm"] == "capped"}
    claims.near("under a cap of 20 %: % in guest and hypervisor", states.get("guest", 0) + states.get("kernel", 0), 20, 2)
    claims.check(states.get("throttled", 0) > 50, f"its vCPU is throttled: {states}")
    free = {row["state"] for row in account["states"] if row["vm"] == "free"}
    claims.check("throttled" not in free, f"a domain without a cap is not: {sorted(free)}")
    found = {row["id"]: row for row in read("diagnose", run)["findings"] if row["vm"] == "capped"}
    domain = next(vm["domain"] for vm in info["vms"] if vm["name"] == "capped")
    quota = found.get("quota", {})
    claims.check(f"xl sched-credit -d {domain} -c 0" in str(quota.get("commands")), f"what to try: {quota}")
    claims.check("xl sched-credit -d NAME" in quota.get("advice", "") and "credit2" not in quota["advice"] + quota["source"],
                 f"the advice names this scheduler: {quota.get('advice')} ({quota.get('source')})")


TESTS = []
FULL = [("Xen: pCPUs that are shared and not", PLACES, places), ("Xen: another scheduler's cap", CREDIT, credit)]
QUICK = ()
