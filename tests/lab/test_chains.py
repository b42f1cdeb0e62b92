# SPDX-License-Identifier: GPL-2.0-or-later
"""Call chains: a known tree of calls in a guest, in user space and into system calls."""
import collections
import csv
import json
import sys

from lab import REPOSITORY, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib.arch import AMD64  # noqa: E402

SCENARIO = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=1 memory=256 kernel={guest} {how}
workload g1 calls --both
workload g1 calls --null
workload g1 exits --cpuid 1000 --rate 50
command vperf record -g --no-agent -o /out/rec -- lab-guest busy g1 3
"""
# Processes that end while another one of the same program runs, with its stack at the same addresses.
LEAVING = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=1 memory=384 kernel={guest} {how}
workload g1 leavers
command vperf record -g --no-agent -o /out/rec -- lab-guest busy g1 3
"""
# Two processes of a VM that are in user space and in the same system call by turns, and a third one in another VM.
TOGETHER = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=1 memory=256 kernel={guest}
guest g2 vcpus=1 memory=256 kernel={guest}
workload g1 calls --both
workload g1 modes 20 20
workload g2 modes 20 20
command vperf record -g --no-agent -o /out/rec -- lab-guest busy g1 2
"""

READ = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read", "vfs_read"]
LEVELS = ["main", *(f"level_{n}" for n in range(1, 7))]


def stacks_of(run):
    text = vperf("report", str(run.recording()), "--format", "json").stdout
    report = json.loads(text)
    return report, [stack for stack in report["stacks"] if stack["vm"] == "g1"]


def split_at_kernel(frames):
    """The frames of user space that the program itself has, and what follows them."""
    own = [n for n, frame in enumerate(frames) if frame in LEVELS]
    return (frames[own[0]:own[-1] + 1], frames[own[-1] + 1:]) if own else ([], frames)


def count(stacks, wanted):
    return sum(stack["samples"] for stack in stacks if wanted(stack))


def judge(stacks, hit, exact, least, claims, text):
    """99% of the stacks with the function are exact; prints the most frequent of the others."""
    hits = [stack for stack in stacks if hit(stack["frames"])]
    bad = [stack for stack in hits if not exact(stack["frames"])]
    total = sum(stack["samples"] for stack in hits)
    right = total - sum(stack["samples"] for stack in bad)
    worst = max(bad, key=lambda stack: stack["samples"], default=None)
    claims.check(total > least and right >= 0.99 * total,
                 f"{right} of {total} {text}; not so: {worst and worst['frames']}")


def check_user(stacks, claims):
    """Samples that hit the burning function itself: exactly its callers, in order."""
    judge(stacks, lambda frames: frames[-1] == "level_6",
          lambda frames: split_at_kernel(frames) == (LEVELS, []), 250, claims,
          "samples in the known tree have exactly its chain")


def check_kernel(stacks, claims, read=READ):
    """System calls: user space and kernel in one stack, and the kernel's chain is that of read(2)."""
    def exact(frames):
        own, rest = split_at_kernel(frames)
        calls = [frame for frame in rest if frame in read]
        return own == LEVELS and rest[0] == read[0] and calls[:len(read)] == read
    judge(stacks, lambda frames: "vfs_read" in frames, exact, 100, claims,
          "samples of read(2) have user space, system call and file system in one stack")


def check_entry(stacks, claims):
    """The first and last instructions of a system call, where the kernel has not saved all registers, or has no stack."""
    judge([stack for stack in stacks if stack["process"] == "calls"], lambda frames: frames[-1].startswith(("entry_SYSCALL_64", "entry_SYSRETQ")),
          lambda frames: split_at_kernel(frames)[0] == LEVELS, 20, claims, "samples in the entry code of system calls have their user space")


def check_walks(report, claims):
    """The guest's user space ends in the C library, which has no frame pointers. The host's kernel does not walk its own stack where KVM
    enables interrupts and attributes them to the guest: samples that were pending during an exit have only the function."""
    for kind, ends in report["walks"].items():
        claims.note(f"{kind}: {ends}")
    refused = report["walks"]["host"].get("not unwound", 0)
    alone = count(report["stacks"], lambda stack: stack["frames"][-2:-1] == ["[hypervisor]"])
    claims.check(refused <= alone, f"{refused} of the host's chains are not walked, {alone} samples at work for a guest have one function of the host's")
    for kind, least, without in (("guest_kernel", 95, 0), ("host", 95, refused)):
        ends = report["walks"][kind]
        total = sum(ends.values()) - without
        claims.check(total > 50 and 100 * ends.get("whole", 0) >= least * total,
                     f"of {total} walks of {kind}, at least {least} % are whole: {ends}")


def check_hypervisor(stacks, claims):
    def crosses(stack):
        frames = stack["frames"]
        return "[hypervisor]" in frames and "kvm_arch_vcpu_ioctl_run" in frames and \
            frames.index("[hypervisor]") > 0
    at_work = [stack for stack in stacks if "[hypervisor]" in stack["frames"] and "kvm_arch_vcpu_ioctl_run" in stack["frames"]]
    found, total = count(at_work, crosses), count(at_work, lambda stack: True)
    claims.check(total > 50 and 0.95 * total <= found <= total,
                 f"{found} of {total} samples of KVM at work are in the guest's stacks, after its own frames")


def check_folded(run, claims):
    lines = vperf("report", str(run.recording()), "--folded").stdout.splitlines()
    total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    samples = json.loads(vperf("report", str(run.recording()), "--json").stdout)["samples"]
    claims.check(total == samples and all(";" in line for line in lines),
                 f"folded stacks have all {samples} samples")


def check_children(report, claims):
    shares = {row["function"]: row["total"] for row in report["rows"]
              if row["process"] == "calls" and row["vm"] == "g1"}
    least = shares.get("level_6", 0)
    claims.check(all(shares.get(level, 0) >= 0.98 * least for level in LEVELS) and
                 shares.get("main", 0) <= report["samples"],
                 f"callers have what they called: {[shares.get(level) for level in LEVELS]}")


def check_hits(run, claims):
    """A guest with many exits: what waited for their end hit the host."""
    printed = vperf("script", str(run.recording()), "--format", "csv", "--event", "guest_sample").stdout
    reasons = collections.Counter(row["exit_reason"] for row in csv.DictReader(printed.splitlines()))
    claims.check(reasons and {*reasons} <= {"INTR", ""}, f"guest samples ended a turn of the guest: {dict(reasons)}")


def chains(run, claims):
    report, stacks = stacks_of(run)
    check_hits(run, claims)
    check_user(stacks, claims)
    check_kernel(stacks, claims)
    check_entry(stacks, claims)
    check_walks(report, claims)
    check_hypervisor(stacks, claims)
    check_children(report, claims)
    check_folded(run, claims)


# Process → the frames that only it has.
OWN = {"calls": {*LEVELS} - {"main"}, "modes": {"modes_user", "modes_kernel"}}


def chains_of_several(run, claims):
    """No chain has frames of another process or VM, in user space nor where a system call joins both."""
    stacks = json.loads(vperf("report", str(run.recording()), "--format", "json").stdout)["stacks"]
    for vm, process in (("g1", "calls"), ("g1", "modes"), ("g2", "modes")):
        of_it = [stack for stack in stacks if (stack["vm"], stack["process"]) == (vm, process)]
        others = set().union(*(frames for name, frames in OWN.items() if name != process))
        strange = [stack["frames"] for stack in of_it if others & {*stack["frames"]}]
        inside = [stack for stack in of_it if "vfs_read" in stack["frames"]]
        joined = count(inside, lambda stack, own=OWN[process]: stack["frames"][0] != "vfs_read" and bool(own & {*stack["frames"]}))
        total, reads = count(of_it, lambda stack: True), count(inside, lambda stack: True)
        claims.check(total > 400 and not strange, f"{vm}, {process}: {total} samples, none with a frame of the other process: {strange[:1]}")
        claims.check(reads > 100 and 0.98 * reads <= joined <= reads, f"{vm}, {process}: {joined} of {reads} samples in read(2) have its own frames below")
    vms = {stack["vm"] for stack in stacks if OWN["calls"] & {*stack["frames"]}}
    claims.check(vms == {"g1"}, f"the known tree is in the stacks of {vms}")


SUITES = ("bullseye", "bookworm", "trixie", "sid")
USUAL = (("bookworm", "trixie"),)


# Page table isolation; 4 levels of page tables in place of the processor's 5.
PAGING = (("isolated", 'append="pti=on nokaslr"'), ("4 levels", f"cpu={AMD64.guest_cpu},-la57"))


def chains_of_leaving(run, claims):
    """Frames of a process that has no memory any more are not those of another one, whose page tables it runs with."""
    report, stacks = stacks_of(run)
    of_it = [stack for stack in stacks if "leave_3" in stack["frames"] and "do_exit" in stack["frames"]]
    own = [frame for frame in (["main", "leave_1", "leave_2", "leave_3"], ["leave_3"])]
    strange = [stack["frames"] for stack in of_it if [frame for frame in stack["frames"] if frame == "main" or "leave_" in frame or "stay_" in frame] not in own]
    late = count(of_it, lambda stack: {"task_work_run", "exit_files"} & {*stack["frames"]})
    claims.check(late > 50 and not strange, f"of {count(of_it, lambda stack: True)} samples of processes that exit, {late} after their memory, "
                 f"{sum(stack['samples'] for stack in of_it if stack['frames'] in strange)} have frames of another one: {strange[:1]}")
    ends = report["walks"]["guest_user"]
    claims.check(ends.get("process had exited", 0) >= late, f"{late} samples came after the memory of their processes: {ends}")


def test(host, guest, name="", how=""):
    return (f"chains: host {host}, guest {guest}{name and ', '}{name}",
            SCENARIO.format(host=host, guest=guest, how=how), chains)


TESTS = [test(*pair) for pair in USUAL]
QUICK = [test(*pair)[0] for pair in USUAL]
FULL = [test(host, guest) for host in SUITES for guest in SUITES if (host, guest) not in USUAL] + \
    [test("bookworm", "bookworm", *paging) for paging in PAGING] + \
    [("chains: processes that exit", LEAVING.format(host="bookworm", guest="bookworm", how=""), chains_of_leaving),
     ("chains: processes that exit, isolated", LEAVING.format(host="bookworm", guest="bookworm", how='append="pti=on nokaslr"'), chains_of_leaving)] + \
    [("chains: two processes, two VMs", TOGETHER.format(host="bookworm", guest="bookworm"), chains_of_several)]
