# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about a flight recorder's triggers in dom0: see docs/method-flight.md and docs/method-xen.md."""
import re

from test_account import check_closing, read
from test_xen_agents import events

# dom0's vCPU takes the only pCPU, for 20 ms at a time: by its weight, Xen leaves it the pCPU for as long.
RECORD = "vperf record -d 20 --flight 8M --no-samples --no-symbols --no-guest-memory -e xentrace:sched --vm g1"
HELD = ("sh -c 'sleep 0.3; tests/lab/hold 100 >&2; until ls /tmp/f/{name}.*/vms >/dev/null 2>&1; do sleep 0.05; done'")


def recorded(name, conditions, job, command):
    return (f"command JOB=$(lab-guest spawn g1 {job}); {RECORD} {conditions} -o /tmp/f/{name} -- {command.format(name=name)}; status=$?; "
            f"lab-guest end g1 $JOB || true; cp -r /tmp/f/{name}.* /out/; exit $status\n")


TRIGGERS = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
guest g1 memory=192 type=pvh
command mkdir /tmp/f; xl sched-credit2 -d Domain-0 -w 65535
{recorded("stolen", "--snapshot-on 'steal>15ms'", "shares a=100", HELD)}\
{recorded("woken", "--snapshot-on 'wakeup>15ms' --snapshot-after 100ms", "idler 0.002 0.01", HELD)}\
{recorded("left", "--snapshot-on 'exit>15ms'", "shares a=100", HELD)}\
command xl sched-credit2 -d g1 -c 30
{recorded("capped", "--snapshot-on throttled --snapshot-every 400ms --snapshot-max 2", "shares a=100",
          "sh -c 'until [ $(ls -d /tmp/f/capped.*/vms 2>/dev/null | wc -l) = 2 ]; do sleep 0.05; done; sleep 0.3'")}\
command {RECORD.replace('--no-samples ', '')} --no-account --snapshot-on 'steal>15ms' -o /tmp/f/no; echo "status $?"
"""

LEAST = 15000000  # of a wait, ns
ROUNDED = 0.06  # ms: messages have tenths


def notices(run, number, condition):
    return re.findall(rf"({condition}: .*); snapshot in '/tmp/f/(\w+\.\d{{16}})'", run.command_output(number, "err"))


def waits_of(rows, domain, states, least):
    """(begin, end) of the times for which the domain's vCPU was runnable without a pCPU, after these states, by Xen's own events."""
    found, since = [], None
    for row in rows:
        time, change = int(row["time_ns"]), re.search("([a-z]+)_to_(running|runnable|blocked|offline)$", row["event"])
        if row["machine"] != "hypervisor" or row["domid"] != str(domain) or not change:
            continue
        if change[2] == "running" and since is not None and time - since > least:
            found.append((since, time))
        since = time if change[2] == "runnable" and change[1] in states else None
    return found


def check_delay(run, claims, number, condition, states, after=0):
    """One notice, about the first such wait in Xen's own events, 200 ms after its end at most."""
    said = notices(run, number, condition)
    claims.check(len(said) == 1, f"{condition}: one notice: {said or run.command_output(number, 'err')}")
    if len(said) != 1:
        return "", 0
    cause, name = said[0]
    info, facts = run.info(name), run.facts(name)
    domain = next(vm["domain"] for vm in info["vms"] if vm["name"] == "g1")
    claims.check(facts["start"] == facts["begun"], f"{condition}: the snapshot begins with the recorder")
    waits = waits_of(events(run, name), domain, states, LEAST)
    claims.check(len(waits) >= 1 and cause.startswith(f"{condition}: vCPU 0 of VM 'g1' "), f"{condition}: waits of that length {waits}; {cause}")
    begin, end = waits[0] if waits else (0, 0)
    late = (int(facts["end"]) - end) / 1e6
    claims.check(after <= late <= after + 200, f"{condition}: the snapshot ends {late:.0f} ms after that")
    claims.check(info["mode"] == "flight" and info["cause"] == cause and not info["lost"], f"{condition}: 'vperf info' has the cause: {info['cause']}")
    check_closing(claims, read("account", run, recording=name))
    return cause, end - begin


def milliseconds(cause, words):
    found = re.search(rf"{words} ([\d.]+) ms", cause)
    return float(found[1]) if found else 0


def triggers(run, claims):
    cause, ns = check_delay(run, claims, 2, "steal>15ms", ("running", "blocked", "offline"))
    claims.near("steal>15ms: ms in the message, and by Xen's events", milliseconds(cause, "was runnable for"), ns / 1e6, ROUNDED)
    taken = milliseconds(cause, "; of this, vCPU 0 of VM 'Domain-0' had pCPU 0 for")
    claims.check(0.95 * ns / 1e6 <= taken <= ns / 1e6 + ROUNDED, f"steal>15ms: dom0 had the pCPU for {taken} ms of {ns / 1e6:.2f}")
    cause, ns = check_delay(run, claims, 3, "wakeup>15ms", ("blocked", "offline"), 100)
    claims.near("wakeup>15ms: ms in the message, and by Xen's events", milliseconds(cause, "got a pCPU"), ns / 1e6, ROUNDED)
    cause, ns = check_delay(run, claims, 4, "exit>15ms", ("running",))
    claims.near("exit>15ms: ms outside the guest, and of the wait", milliseconds(cause, "was outside the guest for"), ns / 1e6, 0.5)
    claims.check(cause.endswith(" VM exit of reason INTR"), f"exit>15ms: why it left: {cause}")
    capped = notices(run, 6, "throttled")
    claims.check(len(capped) == 2 and all("was throttled: the cap of its domain was used up" in cause for cause, _ in capped), f"throttled: {capped}")
    claims.check("no further triggered snapshots: 2 were taken" in run.command_output(6, "err"), "throttled: the limit is told")
    if len(capped) == 2:
        apart = (int(run.facts(capped[1][1])["end"]) - int(run.facts(capped[0][1])["end"])) / 1e6
        claims.check(apart >= 300, f"throttled: --snapshot-every: {apart:.0f} ms apart")
    claims.check("status 2" in run.command_output(7) and "--snapshot-on needs vCPU accounting" in run.command_output(7, "err"),
                 f"without accounting: {run.command_output(7, 'err')}")


TESTS = []
FULL = [("Xen: triggers of a flight recorder", TRIGGERS, triggers)]
QUICK = ()
