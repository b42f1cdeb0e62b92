# SPDX-License-Identifier: GPL-2.0-or-later
"""vperfd on a host whose clock is set and whose recorder is killed for its memory, and on Xen."""
import datetime
import json
import re

from lab import vperf
from test_daemon import counters_are_the_account, seconds_of
from test_metrics import growth, series

SERVED = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:9757/metrics').read().decode(), end='')\""
STARTED = "until ls /run/d/store/2*Z/recording > /dev/null 2>&1; do sleep 0.2; done"

# The clock is set forward by more than the host's uptime and than keep-for, back to before the start, and right again. Then the recorder
# is in a memory group that is full: the kernel kills it.
DAYS, BACK = 2 * 86400, 4 * 86400
CLOCKS = fr"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
workload g1 idler 0.2 1
command mkdir /run/d; printf '[store]\ndirectory = /run/d/store\nrotate-every = 1m\nkeep-for = 1d\nkeep-free = off\n[rules]\nevery = off\n\
[http]\nlisten = 127.0.0.1:9757\n' > /run/d/conf; setsid nohup vperfd -c /run/d/conf 2>> /out/said & {STARTED}; sleep 6; {SERVED} > /out/earlier
command date -s @$(($(date +%s) + {DAYS})) > /dev/null; sleep 8; date +%s > /out/forward; sleep 4
command date -s @$(($(date +%s) - {BACK})) > /dev/null; sleep 8; date +%s > /out/back; sleep 4
command date -s @$(($(date +%s) + {BACK - DAYS})) > /dev/null; sleep 8; {SERVED} > /out/served; sleep 4
command mkdir /run/groups; mount -t cgroup2 none /run/groups; echo +memory > /run/groups/cgroup.subtree_control; mkdir /run/groups/small; \
for p in $(pgrep -f 'store/2[0-9T]*Z -z'); do echo $p > /run/groups/small/cgroup.procs; done; cat /run/groups/small/cgroup.procs >&2; \
echo 0 > /run/groups/small/memory.max; \
for i in $(seq 50); do grep -q 'oom_kill [1-9]' /run/groups/small/memory.events && break; sleep 0.2; done; cat /run/groups/small/memory.events; sleep 8
command kill -TERM $(pgrep -x vperfd); while pgrep -x vperfd > /dev/null; do sleep 0.1; done; \
vperf store --json /run/d/store > /out/store.json; vperf store /run/d/store; cp -r /run/d/store /out/store
""".replace("\\\n", "")


def clock_is_set(run, claims, recordings, said):
    """Each setting starts a recording with the right dates; no time is lost, counted again or called a gap, and nothing is too old."""
    jumps = [kept["clock_set_ns"] / 1e9 for kept in recordings if kept["clock_set_ns"]]
    claims.check(len(jumps) == 3 and all(abs(jump - expected) <= 2 for jump, expected in zip(jumps, (DAYS, -BACK, BACK - DAYS))), f"daemon: the clock's steps, s: {jumps}")
    claims.check(said.count("the clock was set by") == 3, f"daemon: each is reported: {said}"[:600])
    claims.check("removed" not in said, f"daemon: nothing is removed as too old: {said}"[:600])
    first = int(run.facts(f"store/{recordings[0]['name']}")["start"])
    last = int(run.facts(f"store/{recordings[-1]['name']}")["end"])
    starts = [int(run.facts(f"store/{kept['name']}")["start"]) for kept in recordings]
    claims.check(starts == sorted(starts), f"daemon: recordings are in the order of their recording: {[kept['name'] for kept in recordings]}")
    gaps = sum(kept["gap_ns"] for kept in recordings) / 1e9
    whole = json.loads(vperf("account", "--json", "--store", str(run.out / "store"), "--time", ",").stdout)
    notes = "\n".join(whole["notes"])
    off = re.search(r"at most ([\d.]+) ms are", notes)
    claims.near("daemon: all of the account, s", whole["duration_s"], (last - first) / 1e9 - gaps, 0.01 + (len(recordings) - 1) * float(off[1]) / 1000 if off else 0.01)
    claims.check(re.search(r"5 recordings; nothing was recorded in [\d.]+ m?s between", notes) is not None, f"daemon: and the gap, without the clock's steps: {notes}")
    for name in ("forward", "back"):
        time = int((run.out / name).read_text())
        inside = [kept for kept in recordings if seconds_of(kept["start"]) <= time - 1 and time + 1 <= seconds_of(kept["end"])]
        claims.check(len(inside) == 1, f"daemon: {name}: one recording has that date: {[kept['name'] for kept in inside]}")
        window = f"{rfc3339(time - 2)},{rfc3339(time)}"
        part = json.loads(vperf("account", "--json", "--store", str(run.out / "store"), "--time", window).stdout)
        claims.check(1 < part["duration_s"] < 4 and {row["vm"] for row in part["states"]} == {"g1"}, f"daemon: {name}: {part['duration_s']} s of that date")


def rfc3339(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def memory_kill(run, claims, recordings, said):
    events = dict(line.split() for line in run.command_output(5).splitlines())
    claims.check(int(events["oom_kill"]) >= 1, f"daemon: the kernel killed the recorder for its memory: {events}")
    cut = [number for number, kept in enumerate(recordings) if kept["interrupted"]]
    claims.check(len(cut) == 1 and "exited unexpectedly" in said, f"daemon: one recording lacks its end: {cut} {said}"[:500])
    gaps = [kept["gap_ns"] / 1e9 for kept in recordings]
    # The last flush is up to a second old; the next recorder starts within seconds.
    claims.check([number for number, gap in enumerate(gaps) if gap] == [cut[0] + 1] and gaps[cut[0] + 1] < 12, f"daemon: and a gap is stated, the only one: {gaps}")


def clocks(run, claims):
    listed, said = json.loads((run.out / "store.json").read_text()), (run.out / "said").read_text()
    recordings = [kept for kept in listed["recordings"] if kept["kind"] == "recording"]
    claims.check(len(recordings) == 5 and not any(kept["problem"] for kept in recordings), f"daemon: five recordings: {recordings}"[:600])
    clock_is_set(run, claims, recordings, said)
    before, after = (series((run.out / name).read_text()) for name in ("earlier", "served"))
    grown = {state: growth(before, after, "vperf_vcpu_state_seconds_total", state=state) for state in ("guest", "halted")}
    claims.check(all(5 < seconds < 60 for seconds in grown.values()), f"daemon: counters went on meanwhile: {grown}")
    memory_kill(run, claims, recordings, said)


# Two busy guests on one pCPU take it from each other.
XEN = fr"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
guest pv memory=192 type=pv
guest pvh memory=192 type=pvh
workload pv shares fast=80 slow=20
workload pvh shares fast=80 slow=20
command mkdir /run/d; printf '[store]\ndirectory = /run/d/store\nkeep-free = off\n[rules]\nevery = 3s\nleast = 20\nsamples = 3s\n\
[http]\nlisten = 127.0.0.1:9757\n' > /run/d/conf; setsid nohup vperfd -c /run/d/conf 2>> /out/said & {STARTED}; sleep 5; {SERVED} > /out/earlier
command for i in $(seq 60); do grep -q pv /run/d/store/findings 2> /dev/null && break; sleep 0.5; done; sleep 8; {SERVED} > /out/served; sleep 3
command kill -TERM $(pgrep -x vperfd); while pgrep -x vperfd > /dev/null; do sleep 0.1; done; \
vperf store --json /run/d/store > /out/store.json; vperf store /run/d/store; cp -r /run/d/store /out/store
""".replace("\\\n", "")


def on_xen(run, claims):
    listed, said = json.loads((run.out / "store.json").read_text()), (run.out / "said").read_text()
    claims.check(listed["recordings"] and not any(kept["problem"] for kept in listed["recordings"]), f"Xen, daemon: recordings: {listed['recordings']} {said}"[:900])
    counters_are_the_account(run, claims, {"pv", "pvh"})
    served = series((run.out / "served").read_text())
    about = {dict(key[1])["vm"]: dict(key[1]) for key in served if key[0] == "vperf_vm_info"}
    claims.check({"pv", "pvh"} <= set(about) and len(about["pv"]["uuid"]) == 36, f"Xen, daemon: VMs by name and uuid: {about}")
    thieves = {(dict(key[1])["vm"], dict(key[1])["thief"]): value for key, value in served.items() if key[0] == "vperf_vm_stolen_by_seconds_total"}
    claims.check(thieves.get(("pv", "pvh"), 0) > 2 and thieves.get(("pvh", "pv"), 0) > 2, f"Xen, daemon: the thieves: {thieves}")
    found = [finding for finding in listed["findings"] if finding["vm"] in ("pv", "pvh")]
    claims.check(bool(found) and any(other in str(finding["top_cause"]) for finding in found for other in ("pv", "pvh")), f"Xen, daemon: findings name VMs: {found}"[:600])


TESTS = []
QUICK = ()
FULL = [("daemon: the clock is set, no memory", CLOCKS, clocks), ("Xen: daemon", XEN, on_xen)]
