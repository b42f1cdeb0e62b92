# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about a profile, on a real KVM host with real guests (see docs/lab.md)."""
import csv
import io
import json
import math
import re
import statistics
import subprocess

from lab import late_share, rows_named, sample_times, samples_of, share_of, steal_rows, vperf
from test_account import states_between

RATE = 997  # samples per second and pCPU, as usual


def start(guest, *programs):
    """Starts programs in a guest, one process each; ended by `end(guest)`."""
    return "command " + "; ".join(f"lab-guest spawn {guest} {program} >>/run/{guest}.jobs" for program in programs)


def end(guest):
    return (f"command while read -r job; do lab-guest end {guest} $job || true; done </run/{guest}.jobs; "
            f": >/run/{guest}.jobs")


def workload_share(claims, report, what, expected):
    """The first two functions of `shares`; the given percentage is in one of them."""
    fast, slow = samples_of(report, "share_a"), samples_of(report, "share_b")
    claims.share(what, fast, (fast + slow, report), expected)


# One guest on one pCPU in virtual time, with 4 levels of page tables on host and guest, and KPTI.
STAT = "perf stat -x, -a -e kvm:kvm_inj_virq -o /out/{file} --append sleep 1"
BUSY = f"""
host pcpus=1 icount=yes kaslr=yes cpu=max,+svm,+npt,-vgif,-v-vmsave-vmload,-la57
guest g1 vcpus=1 memory=320 agent=yes append="pti=on"
{start("g1", "shares fast=80 slow=20")}
command for i in 1 2 3 4 5 6; do {STAT.format(file='virq-without')}; done; vperf record --no-agent --no-symbols -q -o /tmp/rec -- \
sh -c "for i in 1 2 3 4 5 6; do {STAT.format(file='virq-with')}; done"
command nice -n -15 vperf record -o /out/rec -- lab-guest busy g1 2
{end("g1")}
{start("g1", "shares fast=50 slow=50", "shares fast=50 slow=50")}
command nice -n -15 vperf record --no-guest-memory -o /out/twins -- lab-guest busy g1 2
{end("g1")}
command nice -n -15 vperf record --no-guest-memory -o /out/idle -- lab-guest run g1 idler 1 3 --repeat 2
command nice -n -15 vperf record --no-guest-memory -o /out/storm -- lab-guest run g1 forkstorm --rate 20 --work-us 5000 --count 40
command nice -n -15 vperf record --no-guest-memory -o /out/modes -- lab-guest run g1 modes 10 3 --seconds 1
command nice -n -15 vperf record --no-guest-memory -o /out/timers -- lab-guest run g1 modes 10 3 --timer 100 --seconds 1
command nice -n -15 vperf record --no-guest-memory --vm g1 -o /out/shor -- lab-guest run g1 shor 77 2
command nice -n -15 vperf record --no-guest-memory -o /out/native -- shor 77 2
""".replace("\\\n", "")


def interrupts_per_second(text):
    """Counts and running times from `perf stat -a -x,` output, run by run."""
    rates = []
    for row in csv.reader(io.StringIO(text)):
        if len(row) > 3 and row[0].isdigit():
            rates.append(int(row[0]) / (int(row[3]) / 1e9))
    return rates


def no_interrupts_injected(run, claims):
    """If samples made interrupts for the guest, each sample would add one. The runs' own scatter, in which
    some ten interrupts of one run may be a device's, limits the difference that they can show: less than
    one injection for 100 samples."""
    without, with_it = (interrupts_per_second((run.out / name).read_text())
                        for name in ("virq-without", "virq-with"))
    error = math.sqrt(statistics.variance(without) / len(without) + statistics.variance(with_it) / len(with_it))
    student = 4.59  # of t with 10 degrees of freedom, one chance in a thousand
    difference = statistics.mean(with_it) - statistics.mean(without)
    claims.check(len(without) == len(with_it) == 6 and abs(difference) + student * error < RATE / 100,
                 f"recording adds {difference:.2f} +- {student * error:.2f} interrupts per second to "
                 f"{statistics.mean(without):.1f}: less than one for 100 samples")


def shares(run, claims):
    report = run.report("guest", "--vm", "g1")
    workload_share(claims, report, "share_a of the workload", 80)
    claims.near("OS + USER + idle + steal, %",
                sum(report["shares"][kind] for kind in ("kernel", "user", "idle", "steal")), 100, 0.1)
    samples = run.report("unified")["samples"]
    ticks = run.duration_s() * RATE
    claims.near("samples of rate x time x pCPUs", samples, ticks, 2 + 1e-3 * ticks)
    claims.check(int(run.facts()["lost"]) == 0, "nothing was lost")
    named = report["routes"].get("memory", 0) + report["routes"].get("cr3", 0)
    total = sum(report["routes"].values())
    claims.check(total > 1500 and named >= 0.999 * total, f"{named} of {total} guest samples have a process")
    claims.check(rows_named(report, "share_a")[0]["process"] == "shares",
                 "the process of share_a is 'shares'")
    printed = subprocess.run(["babeltrace2", str(run.recording() / "host")], capture_output=True,
                             text=True)
    claims.check(printed.returncode == 0 and printed.stdout.count("_sample: {") == samples,
                 f"babeltrace2 prints the {samples} samples")


def twins(run, claims):
    report = run.report("guest", "--vm", "g1", "--per-process", recording="twins")
    counts = {function: [row["samples"] for row in rows_named(report, function)]
              for function in ("share_a", "share_b")}
    total = sum(map(sum, counts.values()))
    claims.check(total >= 1700, f"{total} samples of two processes under KPTI")
    for function, each in counts.items():
        # The guest's scheduler gives both the same time, but for a slice of some ms at each end.
        claims.check(len(each) == 2, f"{function} is of two processes")
        claims.share(f"the first process's part of {function}", each[0], (sum(each), report), 50, 0.5)


def busy_two_of_six(run, claims):
    """The workload prints the CPU time that it used: the vCPU was idle for the rest, except for the guest's own
    work of starting it."""
    guest = run.report("guest", "--vm", "g1", recording="idle")
    host = run.report("host", recording="idle")
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    busy = [float(user) + float(system) for user, system in
            re.findall(r"idler: pid=\d+ user_s=([\d.]+) system_s=([\d.]+)", log)][0]
    duration = run.duration_s("idle")
    claims.share("idle in the guest view", guest["shares"]["idle"] / 100 * guest["samples"], guest,
                 100 * (1 - busy / duration), 1.5)
    claims.near("idle in the guest view against the host's own, points",
                guest["shares"]["idle"] - host["shares"]["idle"], 0, 1.5)


def modes_of_guest(run, claims):
    """User space and kernel of a guest, against a program that knows what it spent in each: what is left of the exact guest time is
    interrupts, and the start of the program. A signal makes a piece of work longer by guest time, and by the time of its exits."""
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    known = [[int(n) for n in words]
             for words in re.findall(r"modes: user_ns=(\d+) kernel_ns=(\d+) .*signals=(\d+) signal_ns=(\d+)", log)]
    others = []
    for (user, kernel, _, _), recording in zip(known, ("modes", "timers")):
        report = run.report("guest", "--vm", "g1", recording=recording)
        account = json.loads(vperf("account", str(run.recording(recording)), "--json").stdout)
        guest, = (row["ns"] for row in account["states"] if (row["vm"], row["state"]) == ("g1", "guest"))
        sampled = {kind: sum(row["samples"] for row in report["rows"] if row["kind"] == kind) for kind in ("user", "kernel")}
        others.append((guest - user - kernel, guest))
        claims.share(f"{recording}: user space of the guest's time, by the program and the account", sampled["user"],
                     (sum(sampled.values()), report), 100 * user / guest)
    (plain, guest), (with_signals, _) = others
    claims.check(0 <= plain < 0.1 * guest, f"neither user space nor system calls are {plain / 1e6} of {guest / 1e6} ms")
    _, _, signals, signal_ns = known[1]
    claims.check(9000 < signals < 10500 and 0.2 * signal_ns < with_signals / signals < 1.2 * signal_ns,
                 f"with {signals} signals they are {with_signals / signals:.0f} ns of guest time for each; "
                 f"a signal takes {signal_ns} ns with its exits")


def fork_storm(run, claims):
    report = run.report("guest", "--vm", "g1", recording="storm")
    user = [row for row in report["rows"] if row["kind"] == "user"]
    total = sum(row["samples"] for row in user)
    named = sum(row["samples"] for row in user
                if row["process"] and row["function"] and not row["function"].startswith("0x")
                and "+0x" not in row["function"])
    claims.check(total > 0 and named >= 0.95 * total,
                 f"{100 * named / max(total, 1):.1f} % of them have process and function")
    work = [row for row in rows_named(report, "storm_work")]
    claims.check(work and all(row["process"] == "storm_child" for row in work),
                 "storm_work belongs to storm_child")
    checks = json.loads(vperf("account", str(run.recording("storm")), "--json").stdout)["checks"]
    claims.check(total > 100 and checks["samples_agree"], f"{total} user samples; sampled guest time is the account's: {checks}")


def functions_of_shor(report, in_guest):
    """Function -> samples of the program, and their sum."""
    counts = {}
    for row in report["rows"]:
        if row["process"] == "shor" and row["kind"] == "user" and bool(row["vm"]) == in_guest:
            counts[row["function"]] = counts.get(row["function"], 0) + row["samples"]
    return counts, sum(counts.values())


def libquantum(run, claims):
    """The same work in a guest and natively. One point is allowed for the cost of the guest's page tables, which differs between functions."""
    reports = [run.report("unified", recording=name) for name in ("shor", "native")]
    guest, guest_total = functions_of_shor(reports[0], True)
    native, total = functions_of_shor(reports[1], False)
    hottest = sorted(native, key=native.get, reverse=True)[:5]
    for name in hottest:
        expected = 100 * native[name] / total
        chance = 100 * 4 * math.sqrt(expected / 100 * (1 - expected / 100) / total)
        claims.share(f"{name} of shor in the guest, natively {expected:.1f}", guest.get(name, 0),
                     (guest_total, reports[0]), expected, chance + 100 * late_share(reports[1]) + 1.0)
    claims.check(any("quantum" in name for name in hottest), f"the hottest are {hottest}")


def busy_guest(run, claims):
    no_interrupts_injected(run, claims)
    shares(run, claims)
    twins(run, claims)
    busy_two_of_six(run, claims)
    modes_of_guest(run, claims)
    fork_storm(run, claims)
    libquantum(run, claims)


# The published evaluation's own workload: as many seconds of CPU time from its start natively as in the guest, one after the other, since
# the whole takes minutes. Its parts follow each other by instructions executed, and here an instruction takes as long in the guest.
SHOR = """
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=320
command nice -n -15 vperf record --no-agent --vm g1 -o /out/shor -- sh -c 'job=$(lab-guest spawn g1 shor 1397 8); lab-guest busy g1 20; lab-guest end g1 $job'
command nice -n -15 vperf record --no-agent --no-guest-memory -o /out/native -- sh -c 'timeout 20 shor 1397 8; [ $? = 124 ]'
"""


def published_libquantum(run, claims):
    libquantum(run, claims)


# Guests of one vCPU each that share a pCPU.
SHARED = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256
guest g2 vcpus=1 memory=256
guest g3 vcpus=1 memory=256
{start("g1", "shares a=100")}
{start("g2", "shares a=100")}
{start("g3", "shares a=100")}
command nice -n -15 vperf record --no-agent -o /out/three -- lab-guest busy g1 1
command nice -n -15 vperf record --no-agent --no-guest-memory --vm g1 -o /out/one -- lab-guest busy g2 0.5
"""

# Two vCPUs of one guest do.
TWO_ON_ONE = f"""
host pcpus=1 icount=yes
guest g4 vcpus=2 memory=256
{start("g4", "shares fast=80 slow=20", "shares fast=80 slow=20")}
command nice -n -15 vperf record --no-agent -o /out/two-vcpus -- lab-guest busy g4 2
"""


def stolen_by(report, account_rows, thief, who):
    """Steal of a vCPU in percent, by samples and by the accounting."""
    stolen = sum(row["samples"] for row in steal_rows(report) if thief in row["function"])
    exact = sum(row["ns"] for row in account_rows if who in row["thief"])
    return stolen, exact


def account_of(run, recording, vm):
    """(wall ns of each vCPU, {(vCPU, state): ns}, thieves) of a VM, as the account has it."""
    account = json.loads(vperf("account", str(run.recording(recording)), "--json").stdout)
    thieves = json.loads(vperf("steal", str(run.recording(recording)), "--json", "--vm", vm).stdout)["thieves"]
    wall = {row["vcpu"]: row["wall_ns"] for row in account["vcpus"] if row["vm"] == vm}
    return wall, thieves


def three_guests_on_one_pcpu(run, claims):
    guest = run.report("guest", "--vm", "g1", recording="three")
    host = run.report("host", "--cpu", "0", recording="three")
    # Both count the same ticks of the same pCPU.
    claims.near("g1's steal in its own view against 100 % minus its share in the host's, points",
                guest["shares"]["steal"] + guest["shares"]["idle"] - (100 - share_of(host, "[g1]")), 0, 0.5)
    wall, thieves = account_of(run, "three", "g1")
    for name in ("g2", "g3"):
        stolen, exact = stolen_by(guest, thieves, f"({name})", f"VM {name}")
        # The account knows which exits of the thief's guest were its host's work; both are its time.
        claims.share(f"g1's time taken by {name}, by samples; by the account", stolen, guest,
                     100 * exact / wall[0], 3)
    one = run.report("guest", "--vm", "g1", recording="one")
    thieves = " ".join(row["function"] for row in steal_rows(one))
    claims.check("(g2)" in thieves and "(g3)" in thieves,
                 f"with --vm g1 the thieves are named too: {thieves}")
    other = run.report("guest", "--vm", "g2", recording="one")
    claims.check(samples_of(other, "share_a") == 0 and samples_of(other, "[not recorded]") > 300,
                 "with --vm g1, what g2's guest did is not recorded")


def two_vcpus_on_one_pcpu(run, claims):
    report = run.report("guest", "--vm", "g4", "--per-vcpu", recording="two-vcpus")
    workload_share(claims, report, "share_a of the workload on two vCPUs", 80)
    wall, thieves = account_of(run, "two-vcpus", "g4")
    for vcpu in report["vcpus"]:
        other = 1 - vcpu["vcpu"]
        rows = [row for row in thieves if row["vcpu"] == vcpu["vcpu"]]
        stolen, exact = stolen_by(vcpu, rows, f"on vcpu{other}", f"vCPU {other}")
        claims.share(f"vCPU {vcpu['vcpu']}'s time taken by vCPU {other}, by samples; by the account", stolen,
                     (vcpu["samples"], report), 100 * exact / wall[vcpu["vcpu"]], 3)


# In virtual time the kernel's remote tick of a pCPU without one comes late, while the guest boots.
TWO_PCPUS = f"""
# kernels may say: WARNING: .* sched_tick_remote
host pcpus=2 icount=yes append="nohz_full=1"
guest g1 vcpus=2 memory=256 pin=0,1 agent=yes
{start("g1", "shares fast=80 slow=20", "shares fast=80 slow=20")}
command nice -n -15 vperf record --account-events --no-guest-memory -o /out/rec -- \
sh -c 'tests/lab/guest-time /out/guest-time; lab-guest busy g1 20; tests/lab/guest-time /out/guest-time'
""".replace("\\\n", "")


def time_in_guest_mode(run, claims):
    """Against the kernel's own, which it measures where there is no tick (nohz_full): from before the entry, with programs at its
    tracepoint, to after the host's interrupts."""
    tid = re.search(r"^vcpu 1 (\d+)", (run.recording() / "vms").read_text(), re.M).group(1)
    before, after = [json.loads(line)[tid] for line in (run.out / "guest-time").read_text().splitlines()]
    kernels, passed = after["guest_ns"] - before["guest_ns"], after["time_ns"] - before["time_ns"]
    # The recording is longer: in its first second, the recorder takes the vCPU's time.
    ns = states_between(run, "rec", before["time_ns"], after["time_ns"], "--vcpu", "1")
    # Either reading of the kernel's is cut to 10 ms.
    least, most = (100 * (kernels + cut) / passed for cut in (-10e6, 10e6))
    guest, others = 100 * ns["guest"] / passed, 100 * (ns["interrupted"] + ns["kernel"]) / passed
    claims.check(least - others <= guest <= most,
                 f"vCPU 1 in guest mode: {guest:.2f} % of the time, in the kernel and interrupted {others:.2f} %; by the kernel "
                 f"{least:.2f} to {most:.2f} % with parts of these")
    claims.check(others <= 5, f"vCPU 1: those parts are {others:.2f} %, at most 5")


def two_vcpus_on_two_pcpus(run, claims):
    time_in_guest_mode(run, claims)
    report = run.report("guest", "--vm", "g1")
    workload_share(claims, report, "share_a of the workload", 80)
    # No share of steal: here pCPUs take turns, and a handler that is cut by a turn's end takes as long as the other pCPU's turn, which
    # the account has as the interrupt's, and samples, which are interrupts, never see.
    # Not the recording's end, and each pCPU's own: between the last sample and that, or the last one of another pCPU, the recorder had no
    # pCPU for 66 and 53 ms.
    times = sample_times(run)
    for vcpu in run.report("guest", "--vm", "g1", "--per-vcpu")["vcpus"]:
        own = times[vcpu["vcpu"]]  # pinned
        ticks = (max(own) - min(own)) / 1e9 * RATE
        claims.near(f"vCPU {vcpu['vcpu']}: samples of rate x time", vcpu["samples"], ticks, 2 + 1e-3 * ticks)


# The recorder prints what it has noticed; the next step waits for that.
SAID = "until grep -q {what} /out/said; do sleep 0.1; done"
COMINGS = f"""
host pcpus=2 icount=yes
guest g1 vcpus=1 memory=256 agent=yes qemu="-smp 1,maxcpus=2,sockets=2,cores=1,threads=1"
guest g2 vcpus=1 memory=256 autostart=no
guest g3 vcpus=1 memory=256
workload g1 shares fast=80 slow=20
workload g2 shares fast=80 slow=20
workload g3 shares fast=80 slow=20
command nice -n -15 vperf record --no-guest-memory -F 10000 -o /out/rec -- bash -c "lab-guest busy g3 0.5; lab-guest start g2; \
{SAID.format(what='g2..*started')}; tests/lab/qmp /run/vlab/g1.qmp device_add driver=host-x86_64-cpu id=new \
socket-id=1 core-id=0 thread-id=0; {SAID.format(what='g1..gained')}; lab-guest kill g3; \
{SAID.format(what='g3..*stopped')}; lab-guest busy g1 0.5; lab-guest busy g2 0.1" 2>/out/said
""".replace("\\\n", "")
COMINGS_PERIOD_NS = 100_000


def guests_come_and_go(run, claims):
    said = (run.out / "said").read_text()
    claims.check(re.search(r"'g2'.*started", said) is not None, "the start of g2 is reported")
    claims.check(re.search(r"'g3'.*stopped", said) is not None, "the end of g3 is reported")
    claims.check(re.search(r"'g1' gained vCPU 1", said) is not None, "the new vCPU is reported")
    vms = (run.recording() / "vms").read_text()
    ended = [line for line in vms.splitlines() if line.startswith("vm ") and line.endswith(" g3")]
    claims.check(len(ended) == 1 and int(ended[0].split()[5]) > 0, "the end of g3 is recorded")
    checks = json.loads(vperf("account", str(run.recording()), "--json").stdout)["checks"]
    claims.check(checks["samples_agree"] and abs(checks["samples_off_points"]) <= 1, f"sampled guest time is the account's: {checks}")
    for name in ("g1", "g2", "g3"):
        report = run.report("guest", "--vm", name)
        user = sum(row["samples"] for row in report["rows"] if row["kind"] == "user")
        code = sum(row["samples"] for row in report["rows"] if row["kind"] in ("user", "kernel"))
        claims.check(code > 2000 and 0.25 * code <= user <= code, f"{name}: {user} of {code} samples in user space")
    report = run.report("guest", "--vm", "g1")
    workload = samples_of(report, "share_a") + samples_of(report, "share_b")
    claims.check(workload > 2000 and workload <= report["samples"], f"g1, which has an agent: {workload} samples of its workload by name")


# Generated code, and a program in a namespace of its own.
ODD = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes append="nokaslr"
file g1 tests/lab/contained /bin/contained
{start("g1", "jit")}
command nice -n -15 vperf record --no-guest-memory --vm g1 -o /out/jit -- lab-guest busy g1 1
command nice -n -15 vperf record --no-agent --vm g1 -o /out/jit-by-memory -- lab-guest busy g1 1
command nice -n -15 vperf record --agent-port 9733 --vm g1 -o /out/jit-refused -- lab-guest busy g1 0.5
{end("g1")}
{start("g1", "sh /bin/contained")}
command nice -n -15 vperf record --no-guest-memory --vm g1 -o /out/plain -- lab-guest busy g1 1
command lab-guest run g1 vperf-agent dump /out/agent.dump
{end("g1")}
"""

# Failures.
FAULTS = f"""
host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes append="nokaslr"
{start("g1", "shares fast=80 slow=20")}
command vperf record -o /tmp/killed -- sleep 10000 & recorder=$!; \\
        until vperf info /tmp/killed --json >/out/before-kill.json 2>/dev/null && \\
        [ "$(sed -n '/guest_samples/{{s/[^0-9]//gp;q}}' /out/before-kill.json)" -ge 1000 ]; do sleep 0.5; done; \\
        kill -9 $recorder; wait $recorder; cp -r /tmp/killed /out/killed
command mkdir /tmp/small; mount -t tmpfs -o size=150k none /tmp/small; \\
        vperf record -o /tmp/small/rec -- lab-guest busy g1 2; echo "status $?"; cp -r /tmp/small/rec /out/full
command vperf record --vm nobody -o /out/none; echo "status $?"
command vperf record -o /proc/nowhere; echo "status $?"
command vperf record -F 10 -c 10; echo "status $?"
command setpriv --reuid 65534 --clear-groups vperf record -o /tmp/user; echo "status $?"
command vperf record -e nonsense -o /out/event; echo "status $?"
""".replace("\\\n        ", "")
FIRST_FAULT = 2  # the number of its command


def generated_code(run, claims):
    jit = run.report("guest", "--vm", "g1", recording="jit")
    hot, cold = samples_of(jit, "jit_hot"), samples_of(jit, "jit_cold")
    claims.check(hot + cold > 500, f"{hot + cold} samples of generated code have names, without KASLR")
    claims.share("jit_hot of generated code", hot, (hot + cold, jit), 75)
    by_memory = run.report("guest", "--vm", "g1", recording="jit-by-memory")
    hot, cold = samples_of(by_memory, "jit_hot"), samples_of(by_memory, "jit_cold")
    claims.check(hot + cold > 500,
                 f"{hot + cold} samples of generated code have names by the guest's memory, without an agent")
    claims.share("jit_hot of generated code, by memory", hot, (hot + cold, by_memory), 75)
    vms = {vm["name"]: vm for vm in run.info(recording="jit-refused")["vms"]}
    claims.check("vsock port 9733" in vms["g1"]["agent"] and not vms["g1"]["agent"].startswith("ok"),
                 f"no agent at another port: {vms['g1']['agent']}")
    refused = run.report("guest", "--vm", "g1", recording="jit-refused")
    claims.check(samples_of(refused, "jit_hot") > 100,
                 "an agent that is not there takes no names away")


def contained_program(run, claims):
    plain = run.report("guest", "--vm", "g1", recording="plain")
    claims.check(samples_of(plain, "share_a") > 200 and
                 rows_named(plain, "share_a")[0]["process"] == "contained",
                 "a program in a mount namespace of its own has names")
    dump = run.out / "guest-g1" / "agent.dump"
    (run.recording("plain") / "agent-g1.maps").unlink()
    bare = run.report("guest", "--vm", "g1", recording="plain")
    claims.check(samples_of(bare, "share_a") == 0 and bare["samples"] == plain["samples"],
                 "without an agent's word the samples stay, without names")
    given = run.report("guest", "--vm", "g1", "--guest", f"g1={dump}", recording="plain")
    claims.check(samples_of(given, "share_a") == samples_of(plain, "share_a"),
                 "a dump that was written in the guest names the same samples")


def faults(run, claims):
    info = vperf("info", str(run.recording("killed")))
    claims.check("interrupted" in info.stdout + info.stderr, "kill -9: info says interrupted")
    killed = run.report("guest", "--vm", "g1", recording="killed")
    before = json.loads((run.out / "before-kill.json").read_text())["streams"][0]["guest_samples"]
    kept = run.info(recording="killed")["streams"][0]["guest_samples"]
    claims.check(kept >= before >= 1000 and killed["samples"] >= before,
                 f"kill -9: of {before} samples of the guest that had been written, {kept} are kept")
    full = vperf("info", str(run.recording("full")), check=False)
    claims.check(full.returncode == 0, f"full disk: the recording opens ({full.stderr.strip()})")
    claims.check("No space left" in run.command_output(FIRST_FAULT + 1, "err"), "full disk: said so")
    kept = run.report("unified", recording="full")
    claims.check(kept["samples"] > 1000, f"full disk: {kept['samples']} samples are kept")
    for number, (status, words) in enumerate(((1, "no VM named 'nobody'"), (1, "/proc/nowhere"),
                                              (2, "mutually exclusive"), (1, "requires root"),
                                              (2, "unknown event 'nonsense'")), FIRST_FAULT + 2):
        output, error = run.command_output(number), run.command_output(number, "err")
        claims.check(f"status {status}" in output and words in error,
                     f"bad input: {error.strip().splitlines()[-1] if error else output}")


def odd_guest(run, claims):
    generated_code(run, claims)
    contained_program(run, claims)


SHADOW = f"""
host pcpus=1 icount=yes append="kvm_amd.npt=0"
guest g1 vcpus=1 memory=256 agent=yes
{start("g1", "shares fast=80 slow=20")}
command nice -n -15 vperf record --no-guest-memory -o /out/rec -- lab-guest busy g1 4
"""


def shadow_paging(run, claims):
    workload_share(claims, run.report("guest", "--vm", "g1"), "share_a of the workload", 80)


TESTS = [
    ("profile: a busy guest", BUSY, busy_guest),
]
QUICK = ()

SUITES = ("bullseye", "bookworm", "trixie", "sid")


def matrix_scenario(host, guest):
    return f"""
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=1 memory=512 agent=yes kernel={guest}
{start("g1", "shares fast=80 slow=20")}
command nice -n -15 vperf record --no-guest-memory -o /out/rec -- lab-guest busy g1 4
"""


def matrix_claims(run, claims):
    report = run.report("guest", "--vm", "g1")
    workload_share(claims, report, "share_a of the workload", 80)
    named, total = report["routes"].get("cr3", 0), sum(report["routes"].values())
    claims.check(total > 1500 and named >= 0.99 * total, f"{named} of {total} guest samples are named through CR3")


FULL = [("profile: faults", FAULTS, faults),
        ("profile: a shared pCPU", SHARED, three_guests_on_one_pcpu),
        ("profile: guests come and go", COMINGS, guests_come_and_go),
        ("profile: two vCPUs on two pCPUs", TWO_PCPUS, two_vcpus_on_two_pcpus),
        ("profile: odd programs", ODD, odd_guest),
        ("profile: two vCPUs on one pCPU", TWO_ON_ONE, two_vcpus_on_one_pcpu),
        ("profile: shadow paging", SHADOW, shadow_paging),
        ("profile: libquantum as published", SHOR, published_libquantum)]
FULL += [(f"profile: host {host}, guest {guest}", matrix_scenario(host, guest), matrix_claims)
        for host in SUITES for guest in SUITES]
