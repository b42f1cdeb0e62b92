"""What a step ran on: written down with each step, since it may change through reboots and upgrades."""

import functools
import os
import platform
import subprocess
from pathlib import Path

from .common import boot_id, program, read_text

CPU = Path("/sys/devices/system/cpu")
VERSIONS = {"vperf": ("vperf", "--version"), "perf": ("perf", "--version"), "trace-cmd": ("trace-cmd", "--version"),
            "qemu": ("qemu-system-x86_64", "--version"), "lttng": ("lttng", "--version"), "cc": ("cc", "--version")}


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


def _version(command: tuple) -> str | None:
    path = program(command[0])
    if not path:
        return None
    try:
        done = subprocess.run([path, *command[1:]], capture_output=True, text=True, timeout=20, check=False,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), None)


@functools.cache
def versions() -> dict[str, str]:
    """Of the programs that may take part; they stay as they are until the next boot, or so."""
    found = {name: _version(command) for name, command in VERSIONS.items()}
    return {name: text for name, text in found.items() if text}


def governors() -> dict[str, str]:
    """The frequency governor of each CPU that has one."""
    return {path.parent.parent.name: read_text(path) for path in sorted(CPU.glob("cpu[0-9]*/cpufreq/scaling_governor"))}


def frequencies() -> dict[str, int]:
    """The present frequency of each CPU that tells it, kHz."""
    found = {path.parent.parent.name: read_text(path) for path in sorted(CPU.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))}
    return {name: int(text) for name, text in found.items() if text.isdigit()}


def under_xen() -> bool:
    """Whether this is a domain of Xen."""
    return read_text("/sys/hypervisor/type") == "xen"


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
            "hypervisor": read_text("/sys/hypervisor/type") or ("yes" if " hypervisor" in read_text("/proc/cpuinfo") else ""),
            "load": read_text("/proc/loadavg")}
