# SPDX-License-Identifier: GPL-2.0-or-later
"""`vperf import` of recordings that trace-cmd made on a host and, by its agent, in a guest (see docs/lab.md)."""
import bisect
import collections
import csv
import io
import json
import re
import subprocess

from lab import vperf

# Options after -A are the guest's. Both files are of version 7, compressed, which is trace-cmd's default.
AGENT = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
file g1 /usr/bin/trace-cmd /bin/trace-cmd
workload g1 trace-cmd agent
command sleep 1; mkdir /tmp/traced; cd /tmp/traced; trace-cmd record -C mono -m 8192 -e sched:sched_switch \
-e sched:sched_wakeup -e kvm -A 3 --name g1 -C mono -e sched:sched_switch -e sched:sched_wakeup lab-guest run g1 pingpong --rounds 500; \
mv trace-g1.dat guest.dat; mv trace.dat host.dat; cp host.dat guest.dat /out
""".replace("\\\n", "")

# The accuracy of an offset that trace-cmd measures by messages, at start and end, is their latency.
MOST_OFF_NS = 50000


def by_trace_cmd(files):
    """(whether it is the guest's, time, event) → how many, as trace-cmd reads the pair."""
    text = subprocess.run(["trace-cmd", "report", "-R", "-t", "-i", files[0], "-i", files[1]], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *(host|guest)\.dat: .*?-\d+ +\[\d+\] +(\d+)\.(\d{9}): (\w+):", text, re.M)
    return collections.Counter((machine == "guest", int(s) * 10**9 + int(ns), name) for machine, s, ns, name in found)


def outside(rows):
    """Guest events between the host's first entry and its last exit: their number, and for those outside the vCPU's
    time in guest mode the distance from it."""
    spans, entry, far = [], None, []
    for row in rows:
        if row["event"] == "kvm:kvm_entry":
            entry = int(row["time_ns"])
        elif row["event"] == "kvm:kvm_exit" and entry:
            spans.append((entry, int(row["time_ns"])))
            entry = None
    begins = [begin for begin, _ in spans]
    times = [time for time in (int(row["time_ns"]) for row in rows if row["machine"] == "guest") if begins[0] <= time <= spans[-1][1]]
    for time in times:
        at = bisect.bisect(begins, time) - 1
        if spans[at][1] < time:
            far.append(min(time - spans[at][1], begins[at + 1] - time))
    return len(times), far


def agent(run, claims):
    files, out = [str(run.out / name) for name in ("host.dat", "guest.dat")], run.out / "imported"
    done = vperf("import", "-o", str(out), files[0], f"g1:{files[1]}")
    claims.check("are assumed to be host times" not in done.stderr, f"the guest's clock was measured: {done.stderr.strip()}")
    rows = list(csv.DictReader(io.StringIO(vperf("script", str(out), "--format", "csv").stdout)))
    ours = collections.Counter((row["machine"] == "guest", int(row["time_ns"]), row["event"].split(":")[1]) for row in rows if ":" in row["event"])
    theirs = by_trace_cmd(files)
    claims.check(ours == theirs and len({guest for guest, _, _ in ours}) == 2,
                 f"{sum(ours.values())} events, of trace-cmd's {sum(theirs.values())} each with its time but {sum((theirs - ours).values())}")
    all_of_guest, far = outside(rows)
    claims.check(all_of_guest > 1000 and len(far) < 0.05 * all_of_guest and max(far, default=0) < MOST_OFF_NS,
                 f"of {all_of_guest} of the guest's events {len(far)} are not in the vCPU's time in the guest, by at most {max(far, default=0)} ns")
    switches = int(re.search(r"switches=(\d+)", (run.out / "guest-g1" / "workloads.log").read_text())[1])
    left = sum(row["machine"] == "guest" and row["event"] == "sched:sched_switch" and row["prev_comm"] == "pingpong" for row in rows)
    claims.check(0.99 * left <= switches <= left, f"pingpong was switched out {left} times, {switches} times since it began by its own count")
    tables = json.loads(vperf("sched", str(out), "--format", "json").stdout)
    named = {row["comm"] for row in tables["guests"] if row["vm"] == "g1"}
    claims.check("pingpong" in named, f"vperf sched has the threads of g1: {sorted(named)[:10]}")


TESTS = []
QUICK = ()
FULL = [("import: trace-cmd's agent", AGENT, agent)]
