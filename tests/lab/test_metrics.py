# SPDX-License-Identifier: GPL-2.0-or-later
"""vperf metrics: counters for Prometheus against those of the kernel, of the same threads."""
import re


# Counters for Prometheus against the kernel's own, over the same seconds.
METRICS = r"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
guest g2 vcpus=1 memory=256
workload g1 shares a=80 b=20
workload g2 shares a=60 b=40
command snap() { cp /run/m.prom /out/$1.prom; for c in $(grep -ls '^CPU 0/KVM' /proc/[0-9]*/task/[0-9]*/comm); do d=${c%/comm}; \
echo $d $(cat $d/schedstat) $(date +%s.%N); done > /out/$1.books; }; vperf metrics --textfile /run/m.prom --listen 127.0.0.1:9757 2>/out/said & p=$!; \
until [ -e /run/m.prom ]; do sleep 0.1; done; sleep 1; snap before; sleep 8; snap after; \
python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9757/metrics').read().decode(), end='')" > /out/served; kill -INT $p; wait $p; echo "status $?"
""".replace("\\\n", "")


def series(text):
    """Value by name and labels."""
    found = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        found[name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))] = float(value)
    return found


def growth(before, after, name, **labels):
    """By how much the series with these labels grew, together."""
    return sum(value - before.get(key, 0) for key, value in after.items() if key[0] == name and set(labels.items()) <= set(key[1]))


def metrics(run, claims):
    before, after = (series((run.out / f"{name}.prom").read_text()) for name in ("before", "after"))
    seconds = growth(before, after, "vperf_update_time_seconds")
    books = {}
    for name in ("before", "after"):
        for line in (run.out / f"{name}.books").read_text().splitlines():
            task, ran, delay, _, now = line.split()
            books.setdefault(task.split("/")[2], []).append((float(now), float(ran) / 1e9, float(delay) / 1e9))
    claims.check(len(books) == 2 and all(len(rows) == 2 for rows in books.values()) and seconds > 6, f"{seconds:.3f} s of two VMs: {books}")
    pids = {dict(key[1])["vm"]: dict(key[1])["pid"] for key in after if key[0] == "vperf_vm_info"}
    claims.check(set(pids) == {"g1", "g2"} and set(pids.values()) == set(books), f"the VMs by name and number: {pids}")
    for vm, other in (("g1", "g2"), ("g2", "g1")):
        (began, _, delayed), (ended, _, delay) = books[pids[vm]]
        states = growth(before, after, "vperf_vcpu_state_seconds_total", vm=vm)
        claims.near(f"{vm}: states of its vCPU, % of elapsed time", 100 * states / seconds, 100, 0.1)
        waited = sum(growth(before, after, "vperf_vcpu_state_seconds_total", vm=vm, state=state) for state in ("preempted", "waking"))
        claims.near(f"{vm}: waited for its pCPU, % of the time; the kernel's run_delay", 100 * waited / seconds, 100 * (delay - delayed) / (ended - began), 1)
        stolen = growth(before, after, "vperf_vcpu_stolen_seconds_total", vm=vm)
        by_other = growth(before, after, "vperf_vm_stolen_by_seconds_total", vm=vm, kind="vm", thief=other)
        by_all = growth(before, after, "vperf_vm_stolen_by_seconds_total", vm=vm)
        claims.near(f"{vm}: % of stolen time that {other} had, of half the pCPU each", 100 * by_other / stolen, 100 * 50 / 51, 4)
        claims.near(f"{vm}: time by who had the pCPU, % of stolen time", 100 * by_all / stolen, 100, 1)
        exits = growth(before, after, "vperf_vm_exits_total", vm=vm)
        claims.check(exits / seconds > 100, f"{vm}: {exits:.0f} VM exits")
    served = series((run.out / "served").read_text())
    claims.check(set(after) <= set(served) and "metrics at http://127.0.0.1:9757/metrics" in (run.out / "said").read_text() and
                 "status 0" in run.command_output(1), "the same series are served, and Ctrl-C ends it with status 0")


TESTS = QUICK = ()
FULL = [("metrics: counters against the kernel's", METRICS, metrics)]
