# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold on a host of Intel (VMX, emulated by Bochs): see docs/lab.md."""
import os
import subprocess

from lab import REPOSITORY, sample_times
from test_account import check_closing, check_parts, read
from test_profile import end, start

RATE = 997  # samples per second and pCPU
# What tinyvm's guest does, by the names of VMX's exits; and where in it (lab/workloads/amd64/tinyvm.c).
DONE = {"CPUID": (2000, 0xe), "IO_INSTRUCTION": (1000, 0x20), "HLT": (300, 0x43)}

# An emulated second is 50 million instructions only: everything is shorter than on other hosts.
PROFILE = f"""
host vendor=intel pcpus=1
guest g1 vcpus=1 memory=128
{start("g1", "shares fast=80 slow=20")}
command vperf record --no-agent -o /out/rec -- lab-guest busy g1 3
{end("g1")}
command vperf record --no-samples --no-agent --no-guest-memory -o /out/known -- tinyvm --cpuid 2000 --out 1000 --mmio 500 --hlt 300
""".replace("\\\n", "")


def missing():
    """Why there is no lab host of Intel, or None. Its emulator is built here if it is not there yet."""
    if os.environ.get("VPERF_SKIP_INTEL"):
        return "by --skip, or there is no Bochs"
    done = subprocess.run([REPOSITORY / "lab/vlab", "fetch", "--vendor", "intel"], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def seconds_since_first_sample(run):
    """To the recording's end. After its start the recorder may lose the only pCPU for a slice of the scheduler's
    before it has enabled its trigger: on so slow a CPU that happens."""
    first = min(time for times in sample_times(run).values() for time in times)
    return (int(run.facts()["end"]) - first) / 1e9


def profile(run, claims):
    """The workload's two functions by their addresses: at 50 million instructions a second the guest's kernel is
    not found in its memory before the recording ends."""
    report = run.report("guest", "--vm", "g1")
    slow, fast = sorted(row["samples"] for row in report["rows"] if row["kind"] == "user")[-2:]
    claims.share("samples of the first of two user functions", fast, (fast + slow, report), 80)
    claims.check(slow + fast > 2000, f"{slow + fast} samples of user code")
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
    for reason, (count, place) in DONE.items():
        found = exits.get(reason, {"count": 0})["count"]
        here = [row["count"] for row in places if (row["reason"], row["function"]) == (reason, hex(place))]
        claims.check(found == count and here == [count],
                     f"{reason}: {found} exits, at {place:#x} {here}, {count} were done")
    check_closing(claims, read("account", run, recording="known"))


def intel(run, claims):
    profile(run, claims)
    account_of_profile(run, claims)
    known_exits(run, claims)


TESTS = [("Intel: profile and account", PROFILE, intel)]
QUICK = ()
FULL = []
