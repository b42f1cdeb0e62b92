# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about agents in guests of Xen: see docs/method-xen-agents.md."""
import bisect
import collections
import csv
import io
import json
import re

from lab import vperf
from test_xen import named_by_domain, of_trixie

KINDS = ("pv", "pvh")
ROUNDS = 1000
RECORD = "vperf record --no-samples --no-symbols --no-guest-memory -m 32M"
# Xen's own client of a vchan connects in place of vperf.
PROXY = """d=$(xl domid NAME); vchan-socket-proxy --mode=client $d /local/domain/$d/data/vperf-agent/733 /run/proxy.sock & proxy=$!; \
until [ -S /run/proxy.sock ]; do sleep 0.1; done; \
printf 'vperf-request 1 dump no-symbols\\n' | python3 -c 'import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect("/run/proxy.sock"); \
s.sendall(sys.stdin.buffer.read()); out=open("/out/proxy.maps","wb"); [out.write(b) for b in iter(lambda: s.recv(65536), b"")]'; kill $proxy"""


def guests(kinds):
    return "".join(f"guest {kind} memory=192 type={kind} agent=yes\n" for kind in kinds)


def at_once(kinds, *command):
    """In all guests at the same time."""
    return "; ".join(f"lab-guest run {kind} {' '.join(command)} &" for kind in kinds).replace("&;", "&") + " wait"


def scenario(kinds):
    """The guests and dom0 share a pCPU; a thread of the guest waits for another one. `doomed` is destroyed."""
    return f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
{guests(kinds)}guest doomed memory=128 agent=yes autostart=no
command {PROXY.replace("NAME", kinds[0])}
command {RECORD} --trace --trace-guests=sched,irq,syscalls -e xentrace:sched -o /out/events -- sh -c '{at_once(kinds, "pingpong", "--rounds", str(ROUNDS))}'
command lab-guest start doomed; {RECORD} --trace-guests=sched --no-account -o /out/killed -- sh -c 'sleep 1; lab-guest kill doomed; sleep 4'; sleep 2; xl list >&2
""".replace("\\\n", "")


def events(run, recording):
    return list(csv.DictReader(io.StringIO(vperf("script", str(run.recording(recording)), "--format", "csv").stdout)))


def turns_of(rows, names):
    """When each guest's vCPU had a pCPU, by Xen's own events: begins and ends, in order."""
    turns, since = collections.defaultdict(lambda: ([], [])), {}
    for row in rows:
        if row["machine"] != "hypervisor" or int(row["domid"] or 0x7fff) not in names or not re.search("_to_|running_to", row["event"]):
            continue
        who = names[int(row["domid"])], row["vcpuid"]
        if row["event"].endswith("_to_running"):
            since[who] = int(row["time_ns"])
        elif row["event"].startswith("xentrace:running_to_") and who in since:
            turns[who][0].append(since.pop(who))
            turns[who][1].append(int(row["time_ns"]))
    return turns


def in_turns(run, claims, recording, kinds, least):
    """Each event of a guest lies where its vCPU ran by Xen's trace."""
    rows = events(run, recording)
    mine = [row for row in rows if row["machine"] == "guest"]
    said = re.findall(r"^ *agent: ok: it sent (\d+) events, 0 lost; their times are accurate to (\d+) ns",
                      vperf("info", str(run.recording(recording))).stdout, re.M)
    claims.check(len(said) == len(kinds) and sum(int(count) for count, _ in said) == len(mine),
                 f"{recording}: {len(mine)} events of guests; their agents sent {said} (events, ns)")
    turns, outside, inside = turns_of(rows, named_by_domain(run, recording)), [], collections.Counter()
    for row in mine:
        begins, ends = turns[row["vm"], row["vcpu"]]
        time = int(row["time_ns"])
        if not begins or not begins[0] <= time <= ends[-1]:
            continue
        inside[row["vm"]] += 1
        outside += [] if time <= ends[bisect.bisect_right(begins, time) - 1] else [(row["vm"], row["event"], time)]
    claims.check(inside.keys() == set(kinds) and sum(inside.values()) > 0.98 * len(mine) and min(inside.values()) > least and not outside,
                 f"{recording}: {dict(inside)} events, {len(outside)} of them where Xen says that the vCPU did not run {outside[:5]}")
    return rows


def players_of(run, kind):
    """The two processes, and how often they were switched by their own count."""
    found = re.search(r"pingpong: pid=(\d+) child=(\d+) rounds=\d+ switches=(\d+)\s*$",
                      (run.out / f"guest-{kind}" / "workloads.log").read_text(), re.M)
    return found.groups()[:2], int(found.group(3))


def counted(run, claims, mine, kind):
    """As many switches as the guest itself counted."""
    players, count = players_of(run, kind)
    made = sum(row["event"] == "sched:sched_switch" and row["prev_pid"] in players for row in mine)
    claims.check(count - 1 <= made - 2 <= count + 40, f"{kind}: {made} switches of pingpong, {count} by its own count")


def path_of(run, claims, recording, kind):
    """Both players are on the path of the first; nothing is unknown but for a part."""
    players, _ = players_of(run, kind)
    path = json.loads(vperf("critical", str(run.recording(recording)), "--vm", kind, "--thread", players[0], "--format", "json").stdout)
    whole = path["to_ns"] - path["from_ns"]
    sums = [sum(row["ns"] for row in path[table]) for table in ("blame", "chain")]
    claims.check(sums == [whole, whole], f"{kind}: causes and links of the path add up to {sums} of {whole} ns")
    unknown = sum(row["ns"] for row in path["blame"] if row["cause"] == "unknown")
    on_path = {row["thread"] for row in path["blame"] if row["machine"] == kind}
    claims.check({f"pingpong/{pid}" for pid in players} <= on_path and unknown <= 0.05 * whole,
                 f"{kind}: on the path are {sorted(on_path)}; {unknown / 1e6:.2f} ms of {whole / 1e6:.1f} ms are not known")
    stolen = collections.Counter()
    for row in path["blame"]:
        if row["cause"] == "stolen":
            stolen[re.sub(r"^.* of VM |/.*$", "", row["detail"])] += row["ns"]
    claims.check("Domain-0" in stolen, f"{kind}: its vCPU was taken by {dict(stolen)} (ns)")


def threads(run, claims, recording, kinds):
    """Guests' threads in 'vperf sched', whose time on their vCPU is what the vCPU had at most."""
    sched = json.loads(vperf("sched", str(run.recording(recording)), "--format", "json").stdout)
    found = collections.Counter((row["vm"], row["comm"]) for row in sched["guests"])
    claims.check(all(found[kind, "pingpong"] == 2 for kind in kinds) and found["Domain-0", "lab-guest"] >= len(kinds),
                 f"sched: threads of guests and dom0 are {sorted(found)[:20]}")
    had, ran = collections.Counter(), collections.Counter()
    for row in sched["vcpus"]:
        had[row["vm"]] += row["guest_ns"] + row["work_ns"]
    for row in sched["guests"]:
        ran[row["vm"]] += row["on_cpu_ns"] + row["work_ns"]
    claims.check(all(0.3 * had[kind] < ran[kind] <= 1.001 * had[kind] for kind in kinds),
                 f"sched: threads ran for {dict(ran)} ns, their vCPUs for {dict(had)}")
    timelines(run, claims, recording, kinds, sched["guests"])
    for kind in kinds:
        path_of(run, claims, recording, kind)


def timeline(run, recording, track, vm):
    text = vperf("timeline", str(run.recording(recording)), "--track", track, "--vm", vm, "--format", "csv").stdout
    return [{**row, "ns": int(row["end_ns"]) - int(row["begin_ns"])} for row in csv.DictReader(io.StringIO(text))]


def timelines(run, claims, recording, kinds, sched):
    """Threads in slices of the vCPU: no time is lost by them, each has the time that 'vperf sched' sums, and they change as often."""
    account = json.loads(vperf("account", str(run.recording(recording)), "--format", "json").stdout)
    for kind in kinds:
        slices = timeline(run, recording, "vcpu", kind)
        own = sum(row["ns"] for row in slices if row["state"] in ("guest", "work"))
        booked = sum(row["ns"] for row in account["states"] if row["vm"] == kind and row["state"] in ("guest", "kernel"))
        claims.check(own == booked, f"{kind}: the slices are {own} ns on a pCPU, accounting has {booked}")
        of_threads = [row for row in slices if row["guest_tid"]]
        claims.check([row for row in timeline(run, recording, "thread", kind)] == [{**row, "track": "thread", "lane": "thread"} for row in of_threads],
                     f"{kind}: --track thread has the same {len(of_threads)} slices")
        exact, least, most = (collections.Counter() for _ in range(3))
        for row in of_threads:
            if row["state"] == "guest":
                (exact if row["certainty"] == "exact" else most)[row["guest_tid"]] += row["ns"]
        for row in sched:
            if row["vm"] == kind:
                least[str(row["tid"])] += row["on_cpu_ns"]
        wrong = {tid: (exact[tid], ns, most[tid]) for tid, ns in least.items() if tid != "0" and not exact[tid] <= ns <= exact[tid] + most[tid]}
        players, _ = players_of(run, kind)
        claims.check(not wrong and all(exact[tid] > 0 for tid in players),
                     f"{kind}: 'sched' has the time of {len(least)} threads in the timeline; exact, sum, uncertain of others: {wrong}")
        claims.check(sum(most.values()) <= 0.02 * sum(exact.values()), f"{kind}: {sum(exact.values())} ns exact, {sum(most.values())} uncertain")
        runs = [row["guest_tid"] for row in of_threads if row["state"] == "guest"]
        made = sum(before != after and before in players for before, after in zip(runs, runs[1:]))
        _, count = players_of(run, kind)
        claims.check(count - 2 <= made <= count + 40, f"{kind}: in the timeline pingpong is left {made} times, it switched {count} times by its own count")


def by_proxy(run, claims):
    """Xen's own client of vchan has the whole answer."""
    text = (run.out / "proxy.maps").read_text()
    claims.check(text.startswith("vperf-maps ") and re.search(r"^end \d", text, re.M), f"Xen's vchan-socket-proxy read {len(text)} bytes of a symbol map")


def killed(run, claims, kinds):
    """The events of a guest that is destroyed are kept up to then; nothing of dom0's keeps its memory."""
    counts = collections.Counter(row["vm"] for row in events(run, "killed") if row["machine"] == "guest")
    claims.check(set(counts) == {*kinds, "doomed"} and 50 < counts["doomed"], f"of a domain that is destroyed and one that is not there are so many events: {dict(counts)}")
    left = [line.split()[0] for line in run.command_output(3, "err").splitlines() if re.match(r"\S+ +\d+ +\d+ +\d+ +\S+ +[\d.]+$", line)]
    claims.check(left == ["Domain-0", *kinds], f"domains that are left: {left}")


def agents(run, claims, kinds=KINDS, least=5000):
    by_proxy(run, claims)
    rows = in_turns(run, claims, "events", kinds, least)
    for kind in kinds:
        counted(run, claims, [row for row in rows if row["machine"] == "guest" and row["vm"] == kind], kind)
    host = collections.Counter(row["event"] for row in rows if row["machine"] == "host")
    claims.check(host["sched:sched_switch"] > 100, f"beside them are dom0's own events: {dict(host)}")
    threads(run, claims, "events", kinds)
    killed(run, claims, kinds)


def agent_of_hvm(run, claims):
    agents(run, claims, ("hvm",))


ALL, MANY_ROUNDS, MANY = ("pv", "pvh", "hvm"), 2600, 33400
MANY_EVENTS = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
{guests(ALL)}command {RECORD} --trace --trace-guests=sched,irq,syscalls -e xentrace:sched -o /run/events -- \\
sh -c '{at_once(ALL, "pingpong", "--rounds", str(MANY_ROUNDS))}'; cp -r /run/events /out
""".replace("\\\n", "")


def many_events(run, claims):
    """The same for 100,000 events of the three kinds of guests."""
    rows = in_turns(run, claims, "events", ALL, MANY)
    for kind in ALL:
        counted(run, claims, [row for row in rows if row["machine"] == "guest" and row["vm"] == kind], kind)


TESTS = []
FULL = [("Xen: agents in guests", scenario(KINDS), agents), ("Xen: an agent in a guest with a device model", scenario(("hvm",)), agent_of_hvm),
        ("Xen: 100,000 events of guests", MANY_EVENTS, many_events),
        ("Xen of trixie: 100,000 events of guests", of_trixie(MANY_EVENTS), many_events)]
QUICK = ()
