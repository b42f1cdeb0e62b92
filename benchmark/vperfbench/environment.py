"""What a step ran on: written down with each step, since it may change through reboots and upgrades."""

import functools
import os
import platform
import subprocess
from pathlib import Path

from .common import boot_id, program, read_text

CPU = Path("/sys/devices/system/cpu")
HYPERVISOR = Path("/sys/hypervisor")
DOM0 = 11  # XENFEAT_dom0


def _cpuinfo() -> dict[str, str]:
    wanted = {"model name": "cpu", "microcode": "microcode", "vendor_id": "vendor"}
    found = {}
    for line in read_text("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted:
            found.setdefault(wanted[key.strip()], value.strip())
        if not line:
            break
    return found


@functools.cache
def version(name: str) -> str:
    """What a program says of itself, "" if nothing; it stays as it is until the next boot, or so."""
    path = program(name)
    if not path:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "")


def governors() -> dict[str, str]:
    """The frequency governor of each CPU that has one."""
    return {path.parent.parent.name: read_text(path) for path in sorted(CPU.glob("cpu[0-9]*/cpufreq/scaling_governor"))}


def frequencies() -> dict[str, int]:
    """The present frequency of each CPU that tells it, kHz."""
    found = {path.parent.parent.name: read_text(path) for path in sorted(CPU.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))}
    return {name: int(text) for name, text in found.items() if text.isdigit()}


def under_xen() -> bool:
    """Whether this is the dom0 of a Xen. Another domain is a machine as any other: it can boot only itself."""
    features = read_text(HYPERVISOR / "properties/features")
    try:
        return read_text(HYPERVISOR / "type") == "xen" and bool(int(features, 16) & 1 << DOM0)
    except ValueError:
        return False


def describe() -> dict:
    """All of it but the versions of programs."""
    mitigations = sorted((CPU / "vulnerabilities").glob("*")) if (CPU / "vulnerabilities").is_dir() else []
    turbo = read_text(CPU / "cpufreq/boost") or read_text(CPU / "intel_pstate/no_turbo")
    return {"kernel": platform.release(), "build": platform.version(), "command-line": read_text("/proc/cmdline"),
            "boot": boot_id(), "machine": platform.machine(), **_cpuinfo(), "cpus": os.cpu_count(),
            "memory-kib": int((read_text("/proc/meminfo").split() or ["0", "0"])[1]),
            "mitigations": {path.name: read_text(path) for path in mitigations}, "governors": governors(), "turbo": turbo,
            "smt": read_text(CPU / "smt/control"), "clock": read_text("/sys/devices/system/clocksource/clocksource0/"
                                                                      "current_clocksource"),
            "hypervisor": read_text(HYPERVISOR / "type") or ("yes" if " hypervisor" in read_text("/proc/cpuinfo") else ""),
            "load": read_text("/proc/loadavg")}
