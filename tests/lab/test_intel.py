# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims on an Intel host (VMX, emulated by Bochs): see docs/lab.md."""
import collections
import csv
import json
import os
import re
import subprocess

import test_selftest
from lab import REPOSITORY, sample_times, samples_of, vperf
from test_account import NESTED, REFUSED, check_closing, check_parts, known_addresses, nested_exits, perf_counts, read, refused, right_in_a_storm, thieves, top_seconds
from test_chains import LEVELS, check_folded, check_hypervisor, check_user, judge, split_at_kernel, stacks_of
from test_identity import check_kernel_symbols, check_samples, check_user_symbols
from test_profile import end, start, twins, workload_share
from test_stat import rows_of, stat, total

RATE = 997  # samples per second and pCPU
# Operations of tinyvm's guest, by VMX exit reason; their functions (lab/workloads/amd64/tinyvm.c); and their exit details.
DONE = {"CPUID": (2000, 0xe, None), "IO_INSTRUCTION": (1000, 0x20, "port 0x80 out"), "HLT": (300, 0x43, None),
        "MSR_READ": (200, 0x59, "MSR 0x1b read")}

MEMORY = "EPT_VIOLATION", "EPT_MISCONFIG"

# Flags of a guest_sample.
AS_ROOT, CPL, BY_MEMORY = 2, 4, 128
GUEST_USER = "5"
KERNEL_IMAGE = 0xffffffff80000000

# An emulated second is 50 million instructions only: everything is shorter than on other hosts, and the guest's
# kernel is found before anything is recorded.
HOST = """
host vendor=intel pcpus=1 {kernel}
guest g1 vcpus=1 memory=128
"""
PROFILE = HOST + f"""
command vperf check >/out/check.txt
command vperf guests --json >/out/guests.json
{start("g1", "shares fast=80 slow=20")}
command vperf record --no-agent -o /out/rec -- lab-guest busy g1 3
{end("g1")}
command lab-guest stop g1
command vperf record --no-samples --no-agent --no-guest-memory --trace=kvm -o /out/known -- tinyvm --cpuid 2000 --out 1000 --mmio 500 --hlt 300 --msr 200
""".replace("\\\n", "")

CHAINS = HOST + f"""
command vperf guests --json >/out/guests.json
{start("g1", "calls --both")}
command vperf record -g --no-agent -o /out/rec -- lab-guest busy g1 4
{end("g1")}
"""

INTERVALS = HOST + f"""
command vperf guests --json >/out/guests.json
{start("g1", "shares fast=80 slow=20")}
command vperf stat -r software --no-agent -o /out/time -- lab-guest busy g1 2
command vperf stat -r exits --no-agent -o /out/exits -- lab-guest busy g1 2
command vperf top -n 2 -d 1 --json >/out/top.json
{end("g1")}
command vperf stat -e exits,exits:cpuid,exits:io,exits:mmio,exits:halt,exits:page-fault -I 'exits 250' --no-agent \
-o /out/known -- tinyvm --cpuid 2000 --out 1000 --mmio 500 --hlt 300
""".replace("\\\n", "")


# Two processes of one program alternate; a nested guest; then a VM with known exits alone, recorded together with perf.
EXITS = HOST.rstrip() + f""" kvm=yes
command vperf guests --json >/out/guests.json
command vperf record --no-agent -o /out/rec -- bash -c 'job=$(lab-guest spawn g1 exits --cpuid 700 --out 100 --mmio 50 --rate 2 --seconds 60); \
lab-guest run g1 exits --cpuid 300 --out 60 --mmio 20 --rate 3 --seconds 4; lab-guest end g1 $job'
{NESTED}command lab-guest stop g1
command vperf record --no-samples --no-guest-memory --no-agent -o /out/beside -- perf kvm stat record -a -m 1024 -o /tmp/kvm.data \
tinyvm --cpuid 2000 --out 1000 --mmio 500 --hlt 300 --msr 200 --wait 1
command perf kvm -i /tmp/kvm.data stat report --force; perf kvm -i /tmp/kvm.data stat report --event=mmio --force
""".replace("\\\n", "") + REFUSED

# The guest boots anew while it is recorded, with its kernel in another place. Its memory is searched twice, once while it
# boots: with this emulator its kernel was found 46 to 58 s after the start, so the load lasts longer.
LATER = HOST + """
command vperf guests --json >/out/guests.json; lab-guest stop g1
command vperf record --no-agent -o /out/rec -- bash -c 'lab-guest start g1; job=$(lab-guest spawn g1 shares fast=80 slow=20); \
lab-guest busy g1 60; lab-guest end g1 $job'
""".replace("\\\n", "")


# As on AMD: who and what each sample was (test_identity.SCENARIO), two processes alike (test_profile.BUSY), and three that want
# the pCPU: a guest, another one, a task of the host (test_account.STOLEN).
IDENTITY = f"""
host vendor=intel pcpus=1 {{kernel}}
guest g1 vcpus=1 memory=128 kallsyms=yes qemu="-serial unix:/run/vlab/g1.stat,server=on,wait=off"
guest g2 vcpus=1 memory=128
workload g1 sh -c 'stty -F /dev/ttyS1 raw -echo; exec 3<>/dev/ttyS1; while read go <&3; do head -n 1 /proc/stat >&3; done'
command vperf guests --vm g1 --json >/out/guests.json
{start("g1", "who --procs 2 --threads 2", "exits --syscalls 2000 --rate 6", "shares fast=80 slow=20")}
command vperf record --no-agent -o /out/rec -- lab-guest busy g1 3
{end("g1")}
{start("g1", "shares fast=50 slow=50", "shares fast=50 slow=50")}
command vperf record --no-agent -o /out/twins -- lab-guest busy g1 3
{end("g1")}
{start("g1", "shares a=100")}
{start("g2", "shares a=100")}
command mkfifo /run/go; shares a=100 & burner=$!; tests/lab/books /out/books g1 /run/go & \\
vperf record --no-guest-memory --no-agent -o /out/steal -- bash -c 'echo > /run/go; lab-guest busy g1 2; echo > /run/go'; \\
kill $burner; wait
""".replace("\\\n", "")


# A model whose CPUID does not match its clocks: see docs/lab.md. A nanosecond by its TSC is 3.5 instructions.
STORM_LOOPS = 500_000_000
STORM = f"""
host vendor=intel pcpus=1 cpu=corei7_skylake_x {{kernel}}
command vperf record --no-guest-memory --no-agent -o /out/rec -- \\
bash -c 'grep LOC /proc/interrupts; tinyvm --loops {STORM_LOOPS}; grep LOC /proc/interrupts'
""".replace("\\\n", "")


def missing():
    """Why there is no lab host of Intel, or None. Builds its emulator if necessary."""
    if os.environ.get("VPERF_SKIP_INTEL"):
        return "by --skip, or there is no Bochs"
    done = subprocess.run([REPOSITORY / "lab/vlab", "fetch", "--vendor", "intel"], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def seconds_since_first_sample(run):
    """To the recording's end. After its start the recorder may lose the only pCPU for a slice of the scheduler's
    before it has enabled its trigger: on so slow a CPU that happens."""
    first = min(time for times in sample_times(run).values() for time in times)
    return (int(run.facts()["end"]) - first) / 1e9


def finding(run, claims):
    """Without registers, by a search of the guest's memory."""
    guest = json.loads((run.out / "guests.json").read_text())["vms"][0]
    kernel = guest["kernel"] or {}
    claims.check(kernel.get("found_by") == "scan" and kernel["cpus"],
                 f"the guest's kernel was found: {kernel.get('physical')}, {guest['problem']}")


def checked(run, claims):
    """The output of `vperf check` on this host."""
    lines = (run.out / "check.txt").read_text().splitlines()
    found = {line[5:30].strip(): line.split(maxsplit=1)[0] for line in lines if line[:4].strip() in ("yes", "no")}
    for name in ("sampling programs", "call chains", "KVM", "guest RIP", "guest CR3"):
        claims.check(found.get(name) == "yes", f"'vperf check' finds: {name}")
    claims.check("perf's buffers" not in "".join(lines), "samples do not go through perf's buffers")


def places(run, claims):
    """The guest RIP of each sample: as on AMD, by vperf itself."""
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "guest_sample").stdout
    samples = list(csv.DictReader(printed.splitlines()))
    flags = [int(sample["flags"], 16) for sample in samples]
    user = [sample for sample in samples if sample["mode"] == GUEST_USER]
    roots = collections.Counter(sample["as_root"] for sample in user)
    reasons = collections.Counter(sample["exit_reason"] for sample in samples)
    claims.check({*reasons} == {"EXTERNAL_INTERRUPT"}, f"each hit the guest, and not what waited for the end of another exit: {dict(reasons)}")
    claims.check(len(samples) > 2000 and all(flag & CPL for flag in flags),
                 f"{sum(flag & CPL > 0 for flag in flags)} of {len(samples)} guest samples have their place by vperf itself")
    known = sum(flag & (AS_ROOT | BY_MEMORY) == AS_ROOT | BY_MEMORY for flag, sample in zip(flags, samples)
                if sample["mode"] == GUEST_USER)
    claims.check(known >= 0.99 * len(user), f"{known} of {len(user)} user samples have process and root by memory")
    claims.check(roots and roots.most_common(1)[0][1] >= 0.95 * len(user) and "0x0" not in roots,
                 f"roots of the samples of one busy process: {roots.most_common(3)}")
    claims.check(all((int(sample["ip"], 16) >> 63 == 0) == (sample["mode"] == GUEST_USER) for sample in samples),
                 "user space is below the kernel")


def profile(run, claims):
    report = run.report("guest", "--vm", "g1")
    workload_share(claims, report, "samples of share_a among both", 80)
    both = samples_of(report, "share_a") + samples_of(report, "share_b")
    claims.check(both > 2000, f"{both} samples of the two functions by name")
    places(run, claims)
    samples, ticks = run.report("unified")["samples"], seconds_since_first_sample(run) * RATE
    claims.near("samples of rate x time since the first x pCPUs", samples, ticks, 2 + 1e-3 * ticks)
    claims.check(int(run.facts()["lost"]) == 0, "nothing was lost")


def account_of_profile(run, claims):
    account = read("account", run)
    check_closing(claims, account)
    check_parts(claims, read("exits", run)["exits"])
    checks = account["checks"]
    claims.check(checks["samples_agree"], f"sampled and exact guest time differ by {checks['samples_off_points']:.2f} "
                 f"points, at most {checks['samples_error_points']:.2f} by chance")


def known_exits(run, claims):
    exits = {row["reason"]: row for row in read("exits", run, recording="known")["exits"]}
    places = read("exits", run, "--by", "function", recording="known")["exits"]
    for reason, (count, place, detail) in DONE.items():
        found = exits.get(reason, {"count": 0})["count"]
        here = [(row["count"], row["detail"]) for row in places if (row["reason"], row["function"]) == (reason, hex(place))]
        claims.check(found == count and here == [(count, detail)],
                     f"{reason}: {found} exits, at {place:#x} {here}, {count} were done")
    to_device = sum(row["count"] for row in places
                    if (row["function"], row["detail"]) == ("0x31", "MMIO read 0x20000"))
    claims.check(to_device == 500, f"{to_device} reads at 0x20000 by the instruction that does them, 500 were done")
    of_memory = sum(exits[reason]["count"] for reason in MEMORY if reason in exits)
    known_addresses(run, claims, *MEMORY, books=of_memory, recording="known", reads=500)
    check_closing(claims, read("account", run, recording="known"))


def traced_exits(run, claims):
    """The same exits one by one: each where it was, also by the trace."""
    printed = vperf("script", str(run.recording("known")), "--format", "csv", "--event", "kvm_exit").stdout
    rows = collections.Counter((row["reason"], row["guest_rip"], row["detail"])
                               for row in csv.DictReader(printed.splitlines()))
    for reason, (count, place, detail) in DONE.items():
        found = rows[reason, hex(place), detail or ""]
        claims.check(found == count,
                     f"the trace has {found} {reason} at {place:#x}, {detail or 'to nothing'}, {count} were done")


def intel(run, claims):
    checked(run, claims)
    finding(run, claims)
    profile(run, claims)
    account_of_profile(run, claims)
    known_exits(run, claims)
    traced_exits(run, claims)


def of_guest(frames):
    """Without those of KVM, where it is at work for the guest."""
    return frames[:frames.index("[hypervisor]")] if "[hypervisor]" in frames else frames


def chains(run, claims):
    """User space by frame pointers; of the kernel, whose stack pointer is not known, the function that was hit and
    the user space that called it."""
    report, stacks = stacks_of(run)
    check_user(stacks, claims)
    judge(stacks, lambda frames: "vfs_read" in frames,
          lambda frames: split_at_kernel(of_guest(frames)) == (LEVELS, ["vfs_read"]),
          10, claims, "samples of read(2)'s kernel code have the user space that called it")
    for kind, ends in report["walks"].items():
        claims.note(f"{kind}: {ends}")
    ends = report["walks"]["guest_kernel"]
    claims.check(ends.get("unknown stack pointer", 0) >= 0.95 * sum(ends.values()) > 0,
                 f"of the guest's kernel it is said why there is no chain: {ends}")
    check_hypervisor(stacks, claims)
    check_folded(run, claims)


def intervals(run, claims):
    """By time, with the guest's own counters; by exits; and known exits."""
    rows = rows_of(stat(run, "time"), "g1")
    whole = [row for row in rows if not row["partial"]]
    ticks, injections = (total(rows, event) for event in ("guest:timer-interrupts", "inject:interrupt"))
    claims.check(len(whole) > 100 and abs(ticks - injections) <= 1 + 0.01 * injections,
                 f"{len(whole)} intervals of 10 ms: the guest counted {ticks} timer interrupts, {injections} were injected")
    mean = sum(row["end"] - row["begin"] for row in whole) / len(whole) / 1e6
    claims.near("length of an interval, ms", mean, 10, 0.1)
    rows = rows_of(stat(run, "exits"), "g1")
    classes = [event for event in rows[0]["events"] if event.startswith("exits:")]
    sums = [sum(row["events"][event]["counted"] for event in classes) for row in rows if not row["partial"]]
    claims.check(len(classes) == 11 and sums and all(found == 1000 for found in sums),
                 f"intervals of 1000 exits have {sums} exits of {len(classes)} classes")
    rows = [row for row in stat(run, "known")["intervals"] if not row["subject"].startswith("g1/")]
    for event, count in (("exits:cpuid", 2000), ("exits:io", 1000), ("exits:mmio", 500), ("exits:halt", 300)):
        claims.check(total(rows, event) == count, f"{event}: {total(rows, event)}, {count} were done")
    guest = [row["guest"] for row in top_seconds(run, claims, 2)]
    claims.check(all(share > 80 for share in guest), f"by vperf top, a busy guest executes in {guest} % of each second")


def exits_of_processes(run, claims):
    """The processes of exits, from the guest's memory, for each of two processes of the same name."""
    log = (run.out / "guest-g1" / "workloads.log").read_text()
    pids = re.findall(r"pid=(\d+) start cmd=exits --cpuid (\d+)", log)
    done = {int(counts["cpuid"]) // int(counts["rounds"]): {name: int(n) for name, n in counts.items()}
            for counts in (dict(re.findall(r"(\w+)=(\d+)", line))
                           for line in re.findall(r"exits: (rounds=.*)", log))}
    claims.check(len(pids) == len(done) == 2, f"two processes did {done}, {pids}")
    rows = read("exits", run, "--by", "function", "--vm", "g1")["exits"]
    # An interrupt may end the guest's run in such a function, too.
    causes = (("cpuid", "exits_cpuid", ("CPUID",)), ("out", "pci_conf1_read", ("IO_INSTRUCTION",)),
              ("mmio", "exits_mmio", ("EPT_MISCONFIG", "EPT_VIOLATION")))
    for pid, cpuids in pids:
        for name, function, reasons in causes:
            found = sum(row["count"] for row in rows
                        if (row["function"], row["process"], row["pid"]) == (function, "exits", int(pid)) and row["reason"] in reasons)
            claims.check(found == done[int(cpuids)][name],
                         f"{function} of process {pid} made {found} exits, {done[int(cpuids)][name]} were done")
    placed = [row for row in rows if row["function"]]
    named = sum(row["count"] for row in placed if row["process"] and row["process"][0] not in "[c")
    claims.note(f"{named} of {sum(row['count'] for row in placed)} exits with a place have a process")


def beside_perf(run, claims):
    """The same exits by perf kvm stat, which ran at the same time."""
    theirs, mmio = perf_counts(run, 7)
    ours = {row["reason"]: row["count"] for row in read("exits", run, recording="beside")["exits"]}
    off = {reason: (ours.get(reason, 0), theirs.get(reason, 0)) for reason in {*ours, *theirs}
           if abs(ours.get(reason, 0) - theirs.get(reason, 0)) > 1}
    claims.check(theirs and not off, f"exits {ours}, by perf kvm stat {theirs}: apart {off}")
    for reason, (count, _, _) in DONE.items():
        claims.check(ours.get(reason) == count, f"{reason}: {ours.get(reason)} exits, {count} were done")
    claims.check(mmio == {"0x20000:R": 500}, f"MMIO by perf kvm stat: {mmio}, 500 were done")
    of_memory = sum(ours.get(reason, 0) for reason in MEMORY)
    known_addresses(run, claims, *MEMORY, books=of_memory, recording="beside", reads=500)


def exits(run, claims):
    exits_of_processes(run, claims)
    check_parts(claims, read("exits", run)["exits"])
    check_closing(claims, read("account", run))
    nested_exits(run, claims, 4, {"CPUID": (300, 0xe), "IO_INSTRUCTION": (200, 0x20), "HLT": (50, 0x43)}, ("VMLAUNCH", "VMRESUME"))
    beside_perf(run, claims)
    refused(run, claims, "INVALID_STATE")


def guest_samples(run):
    """Those of vperf script, by their time."""
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "guest_sample").stdout
    return {int(sample["time_ns"]): sample for sample in csv.DictReader(printed.splitlines())}


def later(run, claims):
    """Names come while the guest is recorded, and those of its kernel's functions are for samples from before, too."""
    finding(run, claims)
    samples = guest_samples(run)
    found = min(time for time, sample in samples.items() if int(sample["flags"], 16) & BY_MEMORY)
    early = [time for time, sample in samples.items() if time < found and int(sample["ip"], 16) >= KERNEL_IMAGE]
    exported = run.out / "samples.jsonl"
    vperf("export", "jsonl", str(run.recording()), "-o", str(exported))
    functions = {sample["time_ns"]: sample["frames"][-1]["function"]
                 for sample in map(json.loads, exported.read_text().splitlines()) if sample["type"] == "sample"}
    named = [time for time in early if functions[time] and not functions[time].startswith("0x")]
    claims.check(len(early) > 100 and len(named) >= 0.98 * len(early),
                 f"of {len(early)} samples of its kernel from the {(found - min(samples)) / 1e9:.1f} s before it was found, {len(named)} have a function's name")
    workload_share(claims, run.report("guest", "--vm", "g1"), "samples of share_a among both", 80)


def identity(run, claims):
    finding(run, claims)
    check_samples(run, claims)
    check_kernel_symbols(run, claims)
    check_user_symbols(run, claims)
    twins(run, claims)
    thieves(run, claims, "steal")


def storm(run, claims):
    right_in_a_storm(run, claims, 2 * STORM_LOOPS, 3.5, 2000)


def on(kernel, scenario):
    return scenario.replace("{kernel}", f"kernel={kernel}")


TESTS = [("Intel: profile and account", on("bookworm", PROFILE), intel)]
QUICK = ()
FULL = [("Intel: call chains", on("bookworm", CHAINS), chains), ("Intel: intervals", on("bookworm", INTERVALS), intervals),
        ("Intel: a guest that comes", on("bookworm", LATER), later),
        ("Intel: exits of processes", on("bookworm", EXITS), exits), ("Intel: identity, twins and stolen time", on("bookworm", IDENTITY), identity),
        ("Intel: a storm of interrupts", on("bookworm", STORM), storm),
        ("Intel: selftest", test_selftest.INTEL, test_selftest.intel)] + \
    [(f"Intel: profile and account, host {host}", on(host, PROFILE), intel) for host in ("trixie", "sid")]
