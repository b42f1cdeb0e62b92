# SPDX-License-Identifier: GPL-2.0-or-later
"""One host of a fleet, from a thief to the people: finding, recordings, alert, dashboard, profile; two kills; the store at its limit."""
import datetime
import json
import re
import sys

from lab import REPOSITORY, run_scenario, vperf
from test_daemon import kills_cost_a_gap, seconds_of, thief_is_found

sys.path.insert(0, str(REPOSITORY / "tests/metrics"))
import engines  # noqa: E402

SERVERS = "tests/lab/fleet-servers"
LIMIT = 96 << 20  # for two open recordings with the names of all servers
# g1 has pCPU 0 to itself until g2's program starts; the servers are on pCPU 1.
CHAIN = fr"""
host pcpus=2 icount=yes memory=4608
guest g1 vcpus=1 memory=256 pin=0
guest g2 vcpus=1 memory=256 pin=0
guest g3 vcpus=1 memory=256 pin=1
workload g1 shares a=100
command {SERVERS} start COLLECTOR
command mkdir /run/d; printf '[store]\ndirectory = /run/d/store\nkeep-free = off\n[flight]\nsize = 16M\nevents = sched,kvm\n\
[rules]\nevery = 3s\nsamples = 3s\n[http]\nlisten = 127.0.0.1:9757\n[profiles]\nurl = http://127.0.0.1:4318/v1development/profiles\nwindow = 1m\n' \
> /run/d/conf; setsid nohup vperfd -c /run/d/conf 2>> /out/said & \
until ls /run/d/store/2*Z/recording /run/d/store/flight/control > /dev/null 2>&1; do sleep 0.2; done; {SERVERS} until vperf_recording_info; sleep 4
command date +%s.%N > /out/thief; lab-guest spawn g2 shares a=100 > /run/d/job; \
for i in $(seq 40); do grep -q overcommit.g1 /run/d/store/findings 2> /dev/null && break; sleep 0.5; done; date +%s.%N >> /out/thief; \
for i in $(seq 60); do grep -q VMFindingBegins /out/notified 2> /dev/null && break; sleep 0.5; done
command until ! pgrep -f 'sample[s] -z' > /dev/null; do sleep 0.5; done; {SERVERS} panels > /out/panels.json; \
vperf fleet --json --range 30s --url http://127.0.0.1:9090 > /out/fleet.json; \
kill -HUP $(pgrep -x vperfd); for i in $(seq 60); do grep -q 'vm: Str(g2)' /out/collector.log && break; sleep 0.5; done; sleep 2; \
lab-guest end g2 $(cat /run/d/job)
command kill -9 $(pgrep -f 'store/2[0-9T]*Z -z'); sleep 5
command kill -9 $(pgrep -x vperfd); sleep 3
command setsid nohup vperfd -c /run/d/conf 2>> /out/said & \
d=$!; n=$(ls -d /run/d/store/2*Z | wc -l); until [ $(ls -d /run/d/store/2*Z | wc -l) -gt $n ]; do sleep 0.2; done; sleep 3; kill -TERM $d; wait $d; echo "status $?"
command vperf store --json /run/d/store > /out/store.json; vperf store /run/d/store; cp -r /run/d/store /out/store
command sed -i 's/^keep-free.*/&\nrotate-every = 10s\nrotate-size = 8M\nkeep-size = {LIMIT >> 20}M/; s/^every = .*/every = off/; s/^size = .*/size = off/; s/^url = .*/url = off/' /run/d/conf; \
vperfd -c /run/d/conf 2> /out/limited & d=$!; until [ $(du -s --block-size=1 /run/d/store | cut -f 1) -le {LIMIT} ]; do sleep 0.2; done; \
for i in $(seq 200); do du -s --block-size=1 /run/d/store 2> /dev/null | cut -f 1 >> /out/sizes; sleep 0.2; done; kill -TERM $d; wait $d; \
vperf store --json /run/d/store > /out/store-limited.json
""".replace("\\\n", "")


def run_chain(directory):
    return run_scenario(CHAIN.replace("COLLECTOR", str(engines.collector())), directory)


run_chain.is_virtual = True


def alert_came(run, claims, finding):
    """Within the interval of scraping, that of evaluation and 5 s, with the recording that has the moment. Rule and alert have the same
    threshold: the alert cannot be earlier."""
    notified = [json.loads(line) for line in (run.out / "notified").read_text().splitlines()]
    found = [(entry["time"], alert) for entry in notified for alert in entry["alerts"] if alert["labels"]["alertname"] == "VMFindingBegins" and (alert["labels"]["vm"], alert["labels"]["rule"]) == ("g1", "overcommit")]
    claims.check(bool(found), f"chain: Alertmanager has told of g1: {notified}"[:600])
    time, alert = found[0]
    after = time - seconds_of(finding["time"])
    claims.check(0 < after <= 2 + 2 + 5, f"chain: {after:.1f} s after the finding")
    claims.check(alert["labels"]["recording"] == finding["recording"], f"chain: with the recording: {alert['labels']}")


def panels_show(run, claims, finding):
    panels = json.loads((run.out / "panels.json").read_text())

    def most(title, **labels):
        return max((float(value) for row in panels[title] if set(labels.items()) <= set(row["metric"].items()) for _, value in row["values"]), default=0)

    stolen = most("Stolen time by thief", vm="g1", kind="vm", thief="g2")
    claims.check(stolen > 0.3, f"chain: the panel of thieves: g2 has taken {stolen:.3f} s a second of g1")
    share = most("Findings", vm="g1", rule="overcommit")
    claims.check(share > 0.2, f"chain: the panel of findings: {share:.3f}")
    claims.check(finding["recording"] in {row["metric"]["recording"] for row in panels["Recording of this moment"]}, f"chain: and that of recordings: {panels['Recording of this moment']}"[:300])


def fleet_names(run, claims, finding):
    text = (run.out / "fleet.json").read_text()
    tables = json.loads(text)
    pairs = [row for row in tables["pairs"] if "g1" in str(row) and "g2" in str(row)]
    claims.check(bool(pairs) and finding["recording"] in text, f"chain: 'vperf fleet' has the pair and the recording: {text}"[:900])


def profile_came(run, claims):
    """The Collector has CPU time of thief and victim, of a profile that covers the time at which the thief was found."""
    began = float((run.out / "thief").read_text().split()[0])
    log = (run.out / "collector.log").read_text()
    for vm in ("g1", "g2"):
        covering = []
        for part in log.split("ResourceProfiles #")[1:]:
            found = re.search(r"Start time\s*: (\S+ \S+) \+0000 UTC\s+DurationNano\s*: (\d+)", part)
            start = datetime.datetime.fromisoformat(found[1][:26] + "+00:00").timestamp()
            if f"-> vm: Str({vm})" in part and start <= began + 3 and began + 5 <= start + int(found[2]) / 1e9:
                covering.append(sum(int(value) for values in re.findall(r"Values: \[([\d ]+)\]", part) for value in values.split()) / 1e9)
        claims.check(len(covering) == 1 and covering[0] > 1, f"chain: the Collector has one profile of {vm} that covers the thief's begin, with CPU time of {covering} s")


def store_is_limited(run, claims):
    sizes = [int(line) for line in (run.out / "sizes").read_text().split()]
    listed = json.loads((run.out / "store-limited.json").read_text())
    claims.check(len(sizes) > 100 and max(sizes) <= LIMIT, f"chain: the store had at most {max(sizes)} of {LIMIT} bytes in {len(sizes)} looks")
    removed = (run.out / "limited").read_text().count("the store is at keep-size")
    claims.check(removed >= 3 and len(listed["recordings"]) >= 2, f"chain: {removed} were removed, {len(listed['recordings'])} are left")


def chain(run, claims):
    listed, said = json.loads((run.out / "store.json").read_text()), (run.out / "said").read_text()
    claims.check("status 0" in run.command_output(7), f"chain: SIGTERM ends it with status 0: {said}"[:600])
    thief_is_found(run, claims, listed)
    finding = next(finding for finding in listed["findings"] if finding["rule"] == "overcommit" and finding["vm"] == "g1")
    alert_came(run, claims, finding)
    panels_show(run, claims, finding)
    fleet_names(run, claims, finding)
    profile_came(run, claims)
    kills_cost_a_gap(claims, listed)
    store_is_limited(run, claims)


TESTS = []
QUICK = ()
FULL = [("fleet: a thief, from the host to the alert", run_chain, chain)]
