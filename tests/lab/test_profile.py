# SPDX-License-Identifier: GPL-2.0-or-later
"""What a profile must show, on a real KVM host with real guests (see docs/lab.md)."""
import re
import statistics
import subprocess

from lab import parse_perf_stat, rows_named, samples_of, share_of, steal_rows, vperf

STAT = "perf stat -x, -a -e kvm:kvm_inj_virq -o /out/{file} --append sleep 4"

# Counts of injected interrupts with and without recording, in turn; then the recording to look at.
SHARES = f"""
host pcpus=2
guest g1 vcpus=1 memory=256 pin=0 agent=yes
workload g1 length=120 shares fast=80 slow=20
command for i in 1 2 3 4; do {STAT.format(file='virq-without')}; \
vperf record --no-agent -q -o /tmp/rec -- {STAT.format(file='virq-with')}; done
command vperf record -o /out/rec -- sleep 15
""".replace("\\\n", "")


def shares(run, claims):
    report = run.report("guest", "--vm", "g1")
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.near("share_a of the workload, %", 100 * fast / (fast + slow), 80, 2)
    claims.near("OS + USER + idle + steal, %",
                sum(report["shares"][kind] for kind in ("os", "user", "idle", "steal")), 100, 0.1)
    info_samples = run.report("unified")["samples"]
    expected = run.duration_s() * 1000 * 2
    claims.near("samples of rate x time x pCPUs, %", 100 * info_samples / expected, 100, 1)
    claims.check(int(run.facts()["lost"]) == 0, "nothing was lost")
    named = report["routes"].get("memory", 0) + report["routes"].get("cr3", 0)
    claims.near("guest samples with a process, %",
                100 * named / sum(report["routes"].values()), 100, 1)
    claims.check(rows_named(report, "share_a")[0]["process"] == "shares",
                 "the process of share_a is 'shares'")
    printed = subprocess.run(["babeltrace2", str(run.recording() / "host")], capture_output=True,
                             text=True)
    claims.check(printed.returncode == 0 and printed.stdout.count("_sample: {") == info_samples,
                 f"babeltrace2 prints the {info_samples} samples")

    without = parse_perf_stat((run.out / "virq-without").read_text())
    with_it = parse_perf_stat((run.out / "virq-with").read_text())
    spread = max(max(rates) - min(rates) for rates in (without, with_it))
    difference = abs(statistics.mean(without) - statistics.mean(with_it))
    claims.check(len(without) == len(with_it) == 4 and difference <= max(spread, 1),
                 f"interrupts injected per second and pCPU: {statistics.mean(without):.1f} without, "
                 f"{statistics.mean(with_it):.1f} with recording; the runs differ by {spread:.1f}")


# A host and guest of 4 page-table levels; elsewhere there are 5.
TWINS = """
host pcpus=2 cpu=max,+svm,+npt,-la57
guest g1 vcpus=1 memory=256 pin=1 agent=yes
workload g1 copies=2 shares fast=50 slow=50
command vperf record -o /out/rec -- sleep 24
"""


def twins(run, claims):
    report = run.report("guest", "--vm", "g1", "--per-process")
    claims.check(report["samples"] >= 10000, f"{report['samples']} samples are at least 10000")
    for function in ("share_a", "share_b"):
        counts = [row["samples"] for row in rows_named(report, function)]
        claims.check(len(counts) == 2 and abs(counts[0] - counts[1]) <= 0.05 * max(counts),
                     f"{function} of the two processes: {counts}, within 5 %")


ONE_PCPU = """
host pcpus=2
guest g1 vcpus=2 memory=256 pin=1 agent=yes
workload g1 copies=2 shares fast=80 slow=20
command vperf record --no-guest-memory -o /out/rec -- sleep 20
"""


def two_vcpus_on_one_pcpu(run, claims):
    report = run.report("guest", "--vm", "g1", "--per-vcpu")
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.near("share_a of the workload, %", 100 * fast / (fast + slow), 80, 2)
    for vcpu in report["vcpus"]:
        other = 1 - vcpu["vcpu"]
        stolen = sum(row["samples"] for row in steal_rows(vcpu)
                     if f"on vcpu{other}" in row["function"])
        claims.near(f"vCPU {vcpu['vcpu']}'s time stolen by vCPU {other}, %",
                    100 * stolen / vcpu["samples"], 50, 4)


TWO_PCPUS = ONE_PCPU.replace("pin=1", "pin=0,1")


def two_vcpus_on_two_pcpus(run, claims):
    report = run.report("guest", "--vm", "g1")
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.near("share_a of the workload, %", 100 * fast / (fast + slow), 80, 2)
    claims.check(report["shares"]["steal"] < 15,
                 f"steal is {report['shares']['steal']:.1f} %, not the half that one pCPU costs")


STEAL3 = """
host pcpus=2
guest g1 vcpus=1 memory=256 pin=1 agent=yes
guest g2 vcpus=1 memory=256 pin=1
guest g3 vcpus=1 memory=256 pin=1
workload g1 shares a=100
workload g2 shares a=100
workload g3 shares a=100
command vperf record --no-guest-memory -o /out/rec -- sleep 20
command vperf record --no-guest-memory --vm g1 -o /out/one -- sleep 8
"""


def three_guests_on_one_pcpu(run, claims):
    guest = run.report("guest", "--vm", "g1")
    host = run.report("host", "--cpu", "1")
    share = share_of(host, "[g1]")
    claims.near("g1's steal in its own view against 100 % minus its share in the host's, points",
                guest["shares"]["steal"] + guest["shares"]["idle"] - (100 - share), 0, 1)
    thieves = " ".join(row["function"] for row in steal_rows(guest))
    claims.check("(g2)" in thieves and "(g3)" in thieves, f"the thieves are named: {thieves}")
    one = run.report("guest", "--vm", "g1", recording="one")
    thieves = " ".join(row["function"] for row in steal_rows(one))
    claims.check("(g2)" in thieves and "(g3)" in thieves,
                 f"with --vm g1 the thieves are named too: {thieves}")
    other = run.report("guest", "--vm", "g2", recording="one")
    claims.check(samples_of(other, "share_a") == 0 and samples_of(other, "[not recorded]") > 1000,
                 "with --vm g1, what g2's guest did is not recorded")


IDLE = """
host pcpus=2
guest g1 vcpus=1 memory=256 pin=1 agent=yes
workload g1 length=40 idler 10 30
command vperf record --no-guest-memory -o /out/rec -- sleep 30
"""


def busy_ten_of_thirty(run, claims):
    guest = run.report("guest", "--vm", "g1")
    host = run.report("host", "--cpu", "1")
    start, end = run.window_s()  # the recording's, in seconds since the workload began
    busy = sum(max(0, min(end, period + 10) - max(start, period)) for period in (0, 30))
    expected = 100 * (1 - busy / (end - start))
    claims.near("idle in the guest view, %", guest["shares"]["idle"], expected, 2)
    claims.near("idle in the guest view against the host's own, points",
                guest["shares"]["idle"] - host["shares"]["idle"], 0, 2)


STORM = """
host pcpus=2
guest g1 vcpus=1 memory=256 pin=1 agent=yes
workload g1 forkstorm --rate 20 --work-us 5000
command vperf record --no-guest-memory -o /out/rec -- sleep 20
"""


def fork_storm(run, claims):
    report = run.report("guest", "--vm", "g1")
    user = [row for row in report["rows"] if row["kind"] == "user"]
    total = sum(row["samples"] for row in user)
    named = sum(row["samples"] for row in user
                if row["process"] and row["function"] and not row["function"].startswith("0x")
                and "+0x" not in row["function"])
    claims.check(total >= 500, f"{total} user samples")
    claims.check(named >= 0.95 * total,
                 f"{100 * named / max(total, 1):.1f} % of them have process and function")
    work = [row for row in rows_named(report, "storm_work")]
    claims.check(work and all(row["process"] == "storm_child" for row in work),
                 "storm_work belongs to storm_child")


# Recorded once both are past the preparation of their registers: a run takes minutes, and the two
# do not reach its parts at the same time.
SHOR = """
host pcpus=2
guest g1 vcpus=1 memory=320 pin=0 agent=yes
workload g1 length=120 shor 1397 8
workload host length=120 taskset -c 1 shor 1397 8
command sleep 40
command vperf record --no-guest-memory -o /out/rec -- sleep 25
"""


def libquantum(run, claims):
    def shares_of(rows):
        rows = [row for row in rows if row["process"] == "shor"]
        total = sum(row["samples"] for row in rows)
        functions = {}
        for row in rows:
            functions[row["function"]] = functions.get(row["function"], 0) + row["samples"]
        return {name: 100 * count / total for name, count in functions.items()}

    def is_user(row):
        return row["kind"] in ("user", "host-user")

    unified = run.report("unified")
    guest = shares_of(row for row in unified["rows"] if row["vm"] == "g1" and is_user(row))
    native = shares_of(row for row in unified["rows"] if not row["vm"] and is_user(row))
    hottest = sorted(native, key=native.get, reverse=True)[:5]
    for name in hottest:
        claims.near(f"{name}: native against guest, points", guest.get(name, 0) - native[name], 0,
                    5)
    claims.check(any("quantum" in name for name in hottest), f"the hottest are {hottest}")


COMINGS = """
host pcpus=2
guest g1 vcpus=1 memory=256 agent=yes qemu="-smp 1,maxcpus=2,sockets=2,cores=1,threads=1"
guest g2 vcpus=1 memory=256 start=1
guest g3 vcpus=1 memory=256 kill=8
workload g1 shares fast=80 slow=20
workload g3 shares fast=80 slow=20
command (sleep 6; tests/lab/qmp /run/vlab/g1.qmp device_add driver=host-x86_64-cpu id=new \
socket-id=1 core-id=0 thread-id=0) & vperf record --no-guest-memory -F 10000 -o /out/rec -- sleep 18
""".replace("\\\n", "")


def guests_come_and_go(run, claims):
    said = run.command_output(1, "err")
    claims.check(re.search(r"'g2'.*started", said) is not None, "the start of g2 is reported")
    claims.check(re.search(r"'g3'.*stopped", said) is not None, "the end of g3 is reported")
    claims.check(re.search(r"'g1' gained vCPU 1", said) is not None, "the new vCPU is reported")
    vms = (run.recording() / "vms").read_text()
    ended = [line for line in vms.splitlines() if line.startswith("vm ") and line.endswith(" g3")]
    claims.check(len(ended) == 1 and int(ended[0].split()[3]) > 0, "the end of g3 is recorded")
    for name in ("g1", "g2", "g3"):
        shares = run.report("guest", "--vm", name)["shares"]
        claims.check(shares["os"] + shares["user"] > 0, f"{name} was sampled")
    expected = run.duration_s() * 10000 * 2
    claims.near("samples at 10 kHz of rate x time x pCPUs, %",
                100 * run.report("unified")["samples"] / expected, 100, 1)


# Guests that page differently, and processes that are not simply mapped files.
PAGING = """
host pcpus=2
guest kpti vcpus=1 memory=256 agent=yes append="pti=on"
guest jit vcpus=1 memory=256 agent=yes append="nokaslr"
guest plain vcpus=1 memory=256 agent=yes
workload kpti copies=2 shares a=50 b=50
workload jit jit
workload plain sh -c "mkdir /box; exec unshare -m sh -c 'mount -t tmpfs none /box && cp $(which shares) /box/contained && exec /box/contained a=50 b=50'"
workload plain start=22 length=60 vperf-agent dump /out/agent.dump
command vperf record --no-guest-memory --vm kpti --vm jit --vm plain -o /out/rec -- sleep 20
command sleep 15
"""


def paging_jit_and_containers(run, claims):
    kpti = run.report("guest", "--vm", "kpti", "--per-process")
    counts = [row["samples"] for row in rows_named(kpti, "share_a")]
    claims.check(len(counts) == 2 and min(counts) > 0.8 * max(counts),
                 f"KPTI: share_a of two processes: {counts}")
    jit = run.report("guest", "--vm", "jit")
    hot, cold = samples_of(jit, "jit_hot"), samples_of(jit, "jit_cold")
    claims.near("generated code, no KASLR: jit_hot's share, %",
                100 * hot / max(hot + cold, 1), 75, 3)
    plain = run.report("guest", "--vm", "plain")
    claims.check(samples_of(plain, "share_a") > 1000 and
                 rows_named(plain, "share_a")[0]["process"] == "contained",
                 "a program in a mount namespace of its own has names")
    dump = run.out / "guest-plain" / "agent.dump"
    (run.recording() / "guest-plain.maps").unlink()
    bare = run.report("guest", "--vm", "plain")
    claims.check(samples_of(bare, "share_a") == 0 and bare["samples"] == plain["samples"],
                 "without an agent's word the samples stay, without names")
    given = run.report("guest", "--vm", "plain", "--guest", f"plain={dump}")
    claims.check(samples_of(given, "share_a") == samples_of(plain, "share_a"),
                 "a dump that was written in the guest names the same samples")


SHADOW = """
host pcpus=2 append="kvm_amd.npt=0"
guest g1 vcpus=1 memory=256 pin=1 agent=yes
workload g1 length=60 shares fast=80 slow=20
command vperf record --no-guest-memory -o /out/rec -- sleep 10
"""


def shadow_paging(run, claims):
    report = run.report("guest", "--vm", "g1")
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.near("share_a of the workload, %", 100 * fast / max(fast + slow, 1), 80, 3)


FAULTS = """
host pcpus=2
guest g1 vcpus=1 memory=256 pin=1
workload g1 shares fast=80 slow=20
command vperf record -o /out/killed -- sleep 60 & sleep 8; pkill -9 -x vperf; sleep 1; true
command mkdir /tmp/small; mount -t tmpfs -o size=300k none /tmp/small; \\
        vperf record -o /tmp/small/rec -- sleep 10; echo "status $?"; cp -r /tmp/small/rec /out/full
command vperf record --vm nobody -o /out/none; echo "status $?"
command vperf record -o /proc/nowhere; echo "status $?"
command vperf record -F 10 -c 10; echo "status $?"
command setpriv --reuid 65534 --clear-groups vperf record -o /tmp/user; echo "status $?"
command vperf record -e nonsense -o /out/event; echo "status $?"
""".replace("\\\n        ", "")


def faults(run, claims):
    info = vperf("info", str(run.recording("killed")))
    claims.check("interrupted" in info.stdout + info.stderr, "kill -9: info says interrupted")
    killed = run.report("guest", "--vm", "g1", recording="killed")
    claims.check(killed["samples"] > 2000, f"kill -9: {killed['samples']} samples are kept")
    full = vperf("info", str(run.recording("full")), check=False)
    claims.check(full.returncode == 0, f"full disk: the recording opens ({full.stderr.strip()})")
    claims.check("No space left" in run.command_output(2, "err"), "full disk: said so")
    kept = run.report("unified", recording="full")
    claims.check(kept["samples"] > 1000, f"full disk: {kept['samples']} samples are kept")
    for number, status, words in ((3, 1, "no VM named 'nobody'"), (4, 1, "/proc/nowhere"),
                                  (5, 2, "exclude each other"), (6, 1, "root is needed"),
                                  (7, 2, "unknown event 'nonsense'")):
        output, error = run.command_output(number), run.command_output(number, "err")
        claims.check(f"status {status}" in output and words in error,
                     f"'{words}' in one sentence, status {status}")


# name, scenario, claims; those of FULL run with --full only.
TESTS = [
    ("shares", SHARES, shares),
    ("twins", TWINS, twins),
    ("two vCPUs on one pCPU", ONE_PCPU, two_vcpus_on_one_pcpu),
    ("three guests on one pCPU", STEAL3, three_guests_on_one_pcpu),
    ("busy 10 s of 30 s", IDLE, busy_ten_of_thirty),
    ("fork storm", STORM, fork_storm),
    ("libquantum", SHOR, libquantum),
    ("guests come and go", COMINGS, guests_come_and_go),
    ("paging, JIT and containers", PAGING, paging_jit_and_containers),
    ("faults", FAULTS, faults),
]

SUITES = ("bullseye", "bookworm", "trixie", "sid")


def matrix_scenario(host, guest):
    return f"""
host pcpus=2 kernel={host}
guest g1 vcpus=1 memory=512 pin=1 agent=yes kernel={guest}
workload g1 length=60 shares fast=80 slow=20
command vperf record --no-guest-memory -o /out/rec -- sleep 10
"""


def matrix_claims(run, claims):
    report = run.report("guest", "--vm", "g1")
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.near("share_a of the workload, %", 100 * fast / max(fast + slow, 1), 80, 3)
    named = report["routes"].get("cr3", 0)
    claims.near("guest samples named through CR3, %",
                100 * named / max(sum(report["routes"].values()), 1), 100, 1)


FULL = [("two vCPUs on two pCPUs", TWO_PCPUS, two_vcpus_on_two_pcpus),
        ("shadow paging", SHADOW, shadow_paging)]
FULL += [(f"host {host}, guest {guest}", matrix_scenario(host, guest), matrix_claims)
        for host in SUITES for guest in SUITES]
