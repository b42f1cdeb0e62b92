# SPDX-License-Identifier: GPL-2.0-or-later
"""vperfd: a known thief leads to a finding and to recordings that name thief and victim; kills cost no more than the
gap that is stated; the store stays within its limit."""
import collections
import datetime
import json

from lab import page_with, vperf
from test_metrics import growth, series

# g1 has pCPU 0 to itself until g2's program starts. The store is on a file system of the lab host.
ALWAYS = r"""
host pcpus=2 icount=yes
guest g1 vcpus=1 memory=256 pin=0
guest g2 vcpus=1 memory=256 pin=0
guest g3 vcpus=1 memory=256 pin=1
workload g1 shares a=100
command mkdir /run/d; printf '[store]\ndirectory = /run/d/store\nkeep-free = off\n[flight]\nsize = 16M\nevents = sched,kvm\n\
[rules]\nevery = 3s\nleast = 20\nsamples = 3s\n[http]\nlisten = 127.0.0.1:9757\n' > /run/d/conf; vperfd --check -c /run/d/conf || exit 1; \
setsid nohup vperfd -c /run/d/conf 2>> /out/said & \
until ls /run/d/store/2*Z/recording /run/d/store/flight/control > /dev/null 2>&1; do sleep 0.2; done; sleep 4; \
python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9757/metrics').read().decode(), end='')" > /out/earlier
command date +%s.%N > /out/thief; lab-guest spawn g2 shares a=100 > /run/d/job; \
for i in $(seq 40); do grep -q overcommit.g1 /run/d/store/findings 2> /dev/null && break; sleep 0.5; done; date +%s.%N >> /out/thief
command until ! pgrep -f 'sample[s] -z' > /dev/null; do sleep 0.5; done; sleep 1; \
python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9757/metrics').read().decode(), end='')" > /out/served; sleep 6; \
python3 -c "import urllib.request as u; [open('/out/' + name, 'wb').write(u.urlopen('http://127.0.0.1:9757/' + path).read()) \
for path, name in (('', 'page.html'), ('hour.json', 'page.json'))]"; lab-guest end g2 $(cat /run/d/job)
command kill -9 $(pgrep -f 'store/2[0-9T]*Z -z'); sleep 5
command kill -9 $(pgrep -x vperfd); sleep 3
command setsid nohup vperfd -c /run/d/conf 2>> /out/said & \
d=$!; until [ $(ls -d /run/d/store/2*Z | wc -l) -ge 3 ]; do sleep 0.2; done; sleep 3; kill -TERM $d; wait $d; echo "status $?"
command vperf store --json /run/d/store > /out/store.json; vperf store /run/d/store; cp -r /run/d/store /out/store
""".replace("\\\n", "")


def seconds_of(text):
    return datetime.datetime.fromisoformat(text[:26] + text[-6:]).timestamp()


def thief_is_found(run, claims, listed):
    """The finding: when, who, whom; and what was kept names both."""
    began, seen = map(float, (run.out / "thief").read_text().split())
    found = [finding for finding in listed["findings"] if finding["rule"] == "overcommit" and finding["vm"] == "g1"]
    claims.check(len(found) >= 1, f"daemon: a finding that g2 takes time of g1: {listed['findings']}"[:500])
    time = seconds_of(found[0]["time"])
    claims.check(began < time <= began + 10, f"daemon: found {time - began:.1f} s after the thief had begun (asked after {seen - began:.1f} s)")
    claims.check(found[0]["top_cause"] == "vCPU 0 of VM g2", f"daemon: the thief's name: {found[0]['top_cause']}")
    names = [kept["name"] for kept in listed["recordings"] if not kept["problem"]]
    for key in ("recording", "snapshot", "samples"):
        name = found[0][key]
        claims.check(name in names, f"daemon: the finding's {key} is in the store: {name}")
        if name not in names:
            continue
        rows = json.loads(vperf("steal", "--json", str(run.out / "store" / name)).stdout)["thieves"]
        mine = [row for row in rows if row["vm"] == "g1" and "g2" in str(row)]
        claims.check(bool(mine), f"daemon: vperf steal on the {key} names thief and victim: {rows[:2]}")


def kills_cost_a_gap(claims, listed):
    """Data recorded before each kill is readable; exactly the expected gaps exist."""
    recordings = [kept for kept in listed["recordings"] if kept["kind"] == "recording"]
    claims.check(all(not kept["problem"] for kept in recordings) and len(recordings) >= 3, f"daemon: all recordings can be read: {recordings}"[:900])
    interrupted = [kept for kept in recordings if kept["interrupted"]]
    claims.check(len(interrupted) == 1, f"daemon: one was cut off by kill -9: {interrupted}"[:500])
    gaps = [kept["gap_ns"] / 1e9 for kept in recordings]
    claims.check(gaps[0] == 0 and sum(gap > 0 for gap in gaps) == 2, f"daemon: a gap after each kill, and no others: {gaps}")
    # The killed recorder's last flush is up to a second old; the next one starts within seconds.
    claims.check(all(gap < 12 for gap in gaps), f"daemon: gaps, s: {gaps}")
    whole = seconds_of(recordings[-1]["end"]) - seconds_of(recordings[0]["start"])
    lengths = sum(seconds_of(kept["end"]) - seconds_of(kept["start"]) for kept in recordings)
    claims.check(lengths + sum(gaps) >= whole - 0.01, f"daemon: {lengths:.1f} s recorded and {sum(gaps):.1f} s of gaps are all of {whole:.1f} s")


def all_at_once(run, claims, listed):
    """The recordings as one: as long as all of them, with thief and victim."""
    store = run.out / "store"
    lengths = 0
    for kept in (kept for kept in listed["recordings"] if kept["kind"] == "recording"):
        length, accounted = (seconds_of(kept["end"]) - seconds_of(kept["start"]), json.loads(vperf("account", "--json", str(store / kept["name"])).stdout)["duration_s"])
        # A killed recorder's last samples may be up to a second after its last accounting.
        claims.check(abs(length - accounted) < 0.01 or (kept["interrupted"] and 0 < length - accounted < 1.2), f"daemon: {accounted:.2f} s of {length:.2f} s are accounted for")
        lengths += accounted
    whole = json.loads(vperf("steal", "--json", "--store", str(store), "--time", ",").stdout)
    claims.near("daemon: vperf steal of all recordings, s", whole["duration_s"], lengths, 0.01)
    claims.check(any("recordings; nothing was recorded in" in note for note in whole["notes"]), f"daemon: it says what is missing: {whole['notes']}")
    claims.check(any(row["vm"] == "g1" and row["thief"] == "vCPU 0 of VM g2" for row in whole["thieves"]), "daemon: and names thief and victim")


def samples_of(*arguments):
    """Samples in total and of each VM, and the report."""
    report = json.loads(vperf("report", "--json", *map(str, arguments)).stdout)
    samples = collections.Counter(total=report["samples"])
    for row in report["rows"]:
        if row["vm"]:
            samples[row["vm"]] += row["samples"]
    return samples, report


def samples_add_up(run, claims, listed):
    """The report of all recordings, and those of each."""
    store = run.out / "store"
    whole, report = samples_of("--store", store, "--time", ",")
    recordings = [store / kept["name"] for kept in listed["recordings"] if kept["kind"] == "recording"]
    parts = [samples_of(recording) for recording in recordings]
    claims.check(whole == sum((samples for samples, _ in parts), collections.Counter()) and {"g1", "g2"} <= set(whole),
                 f"daemon: samples of all recordings {dict(whole)} are the sum of {[dict(samples) for samples, _ in parts]}")
    claims.near("daemon: vperf report of all recordings, s", report["duration_s"], sum(part["duration_s"] for _, part in parts), 0.01)


def one_page(run, claims):
    """The page of all recordings, and the commands."""
    reads = ("--store", str(run.out / "store"), "--time", ",")
    page = page_with(run.out / "all.html", *reads)
    if page is None:
        claims.skip("daemon: the page: this vperf was built without it (esbuild)")
        return
    account, found = (json.loads(vperf(command, "--json", *reads).stdout) for command in ("account", "diagnose"))
    claims.check(page["profile"]["samples"] == json.loads(vperf("report", "--json", *reads).stdout)["samples"], "daemon: the page of all recordings has their samples")
    states = [[row[key] for key in ("vm", "vcpu", "state", "ns")] for row in account["states"]]
    claims.check(len(states) > 5 and [row[:4] for row in page["tables"]["states"]["rows"]] == states, f"daemon: its {len(states)} states are those of vperf account")
    findings = [(row["id"], row["vm"], row["ns"], row["evidence"]) for row in found["findings"]]
    claims.check(findings and [(row["id"], row["vm"], row["ns"], row["evidence"]) for row in page["findings"]] == findings, f"daemon: its findings, with their commands: {findings[:2]}")
    claims.check(any("the recording was interrupted" in note and note.startswith("'20") for note in page["notes"]), "daemon: it names the recording that was cut off")


def counters_are_the_account(run, claims, vms):
    """The counters' growth between two scrapes, and what is recorded of the same time."""
    before, after = (series((run.out / name).read_text()) for name in ("earlier", "served"))
    begin, end = (found["vperf_account_time_seconds", ()] for found in (before, after))
    # The window is widened to the steps of the accounting that it touches: those from `begin` to `end`.
    window = ",".join(datetime.datetime.fromtimestamp(time, datetime.timezone.utc).isoformat() for time in (begin + 0.1, end - 0.1))
    account = json.loads(vperf("account", "--json", "--store", str(run.out / "store"), "--time", window).stdout)
    claims.near("daemon: the account of the counters' time, s", account["duration_s"], end - begin, 0.001)
    for vm in vms:
        wakes, woken = (growth(before, after, name, vm=vm) for name in ("vperf_vm_wakeup_latency_seconds_count", "vperf_vcpu_wakeups_total"))
        waited, waking = (growth(before, after, "vperf_vm_wakeup_latency_seconds_sum", vm=vm), growth(before, after, "vperf_vcpu_state_seconds_total", vm=vm, state="waking"))
        longest = growth(before, after, "vperf_vm_wakeup_latency_seconds_bucket", vm=vm, le="+Inf")
        claims.near(f"daemon: {vm}: wake-ups by latency, and all", wakes, woken, 1)
        claims.check(wakes == longest and (vm != "g3" or wakes > 20), f"daemon: {vm}: {wakes:.0f} wake-ups, {longest:.0f} in buckets")
        claims.near(f"daemon: {vm}: sum of the latencies, and time in waking, ms", 1000 * waited, 1000 * waking, 0.1)
    states = {(row["vm"], str(row["vcpu"]), row["state"]): row["ns"] / 1e9 for row in account["states"]}
    claims.check(vms <= {vm for vm, _, _ in states} and len(states) >= 3 * len(vms) and end - begin > 5, f"daemon: {len(states)} states in {end - begin:.1f} s")
    for (vm, vcpu, state), seconds in states.items():
        grown = growth(before, after, "vperf_vcpu_state_seconds_total", vm=vm, vcpu=vcpu, state=state)
        claims.near(f"daemon: {vm} vCPU {vcpu} {state}: rate by the counters, of 1000", 1000 * grown / (end - begin), 1000 * seconds / (end - begin), 0.001)


def counted_samples_are_the_report(run, claims, vms):
    """The growth of the counters of samples by mode, and the samples that are recorded of the same time."""
    before, after = (series((run.out / name).read_text()) for name in ("earlier", "served"))
    window = ",".join(datetime.datetime.fromtimestamp(found["vperf_account_time_seconds", ()], datetime.timezone.utc).isoformat() for found in (before, after))
    report = json.loads(vperf("report", "--json", "--store", str(run.out / "store"), "--time", window).stdout)
    recorded, in_host = collections.Counter(), sum(row["samples"] for row in report["rows"] if not row["vm"] and row["kind"] == "kernel")
    for row in (row for row in report["rows"] if row["vm"]):
        recorded[row["vm"], row["kind"]] += row["samples"]
    for vm in vms:
        for kind in ("user", "kernel"):
            # At each end, a sample may be counted one step after its time.
            claims.near(f"daemon: {vm}: samples in the guest's {kind}", growth(before, after, "vperf_vm_samples_total", vm=vm, mode=f"guest_{kind}"), recorded[vm, kind], 2)
    counted = sum(growth(before, after, "vperf_vm_samples_total", vm=vm, mode="host") for vm in vms)
    claims.check(sum(recorded.values()) > 50 and 0 <= counted <= in_host + 2, f"daemon: {dict(recorded)}, {counted:.0f} samples in the host for vCPUs, {in_host} in the host kernel")


def last_hour(run, claims, listed):
    """The page some seconds after the counters were read: their time, and the finding with its command."""
    counters, page = series((run.out / "served").read_text()), (run.out / "page.html").read_text()
    hour = json.loads((run.out / "page.json").read_text())
    vms = {vm["vm"]: {key: sum(vm[key]) / 1e9 for key in ("used_ns", "steal_ns", "idle_ns")} for vm in hour["vms"]}
    claims.check(set(vms) == {"g1", "g2", "g3"}, f"daemon: the VMs of the last hour: {vms}")
    for vm, times in vms.items():
        whole = growth({}, counters, "vperf_vcpu_state_seconds_total", vm=vm)
        steal = growth({}, counters, "vperf_vcpu_stolen_seconds_total", vm=vm)
        later = sum(times.values()) - whole
        claims.check(0 <= later <= 15, f"daemon: {vm}: {later:.3f} s more than the counters some seconds before")
        claims.check(0 <= times["steal_ns"] - steal <= later + 1e-6, f"daemon: {vm}: {times['steal_ns']:.3f} s of steal, {steal:.3f} s by the counters")
    sentence = next(finding["text"] for finding in listed["findings"] if finding["vm"] == "g1")
    claims.check(sentence in [finding["sentence"] for finding in hour["findings"]] and all(part in page for part in ("vperf diagnose --store", "/run/d/store")),
                 f"daemon: the page has the finding and its command: {page[-600:]}")
    claims.check(page.index(">g1</th>") < page.index(">g3</th>"), "daemon: VMs with more steal come first")


def always(run, claims):
    listed = json.loads((run.out / "store.json").read_text())
    said = (run.out / "said").read_text()
    claims.check("status 0" in run.command_output(6), f"daemon: SIGTERM ends it with status 0: {said}"[:600])
    thief_is_found(run, claims, listed)
    kills_cost_a_gap(claims, listed)
    all_at_once(run, claims, listed)
    samples_add_up(run, claims, listed)
    one_page(run, claims)
    counters_are_the_account(run, claims, {"g1", "g2", "g3"})
    counted_samples_are_the_report(run, claims, {"g1", "g2", "g3"})
    last_hour(run, claims, listed)
    served = (run.out / "served").read_text()
    findings = [line for line in served.splitlines() if line.startswith('vperf_vm_finding_ratio{vm="g1"')]
    claims.check(any('rule="overcommit"' in line for line in findings), f"daemon: the finding is a gauge: {findings}")
    claims.check('vperf_recording_info{recording="2' in served, "daemon: the metrics name the recording")


# Recordings of 10 s in a store for four or five of them, for 100 s.
LIMIT = r"""
host pcpus=2 icount=yes
guest g1 vcpus=1 memory=256 pin=0
workload g1 shares a=60
command mkdir /run/d; printf '[store]\ndirectory = /run/d/store\nrotate-every = 10s\nrotate-size = 20M\nkeep-size = 60M\nkeep-free = off\n\
[rules]\nevery = off\n[http]\nlisten = off\n' > /run/d/conf; vperfd -c /run/d/conf 2> /out/said & d=$!; \
for i in $(seq 500); do du -s --block-size=1 /run/d/store 2> /dev/null | cut -f 1 >> /out/sizes; sleep 0.2; done; kill -TERM $d; wait $d; \
vperf store --json /run/d/store > /out/store.json
""".replace("\\\n", "")


def limit(run, claims):
    most, said = 60 << 20, (run.out / "said").read_text()
    sizes = [int(line) for line in (run.out / "sizes").read_text().split()]
    listed = json.loads((run.out / "store.json").read_text())
    removed = said.count("the store is at keep-size")
    claims.check(removed >= 2, f"daemon: {removed} recordings were removed")
    claims.check(max(sizes) <= most, f"daemon: the store had at most {max(sizes)} of {most} bytes")
    claims.check(max(sizes) >= most / 3, f"daemon: and was used: {max(sizes)} bytes")
    claims.check(all(kept["gap_ns"] == 0 for kept in listed["recordings"]) and len(listed["recordings"]) >= 2,
                 f"daemon: the newest are there, without a gap: {[kept['name'] for kept in listed['recordings']]}")


TESTS = [("daemon: a thief, two kills", ALWAYS, always)]
QUICK = ()
FULL = [("daemon: a store at its limit", LIMIT, limit)]
