"""What else happened while a step ran: steal of the machine itself, other load, changes of frequency."""

import os
import resource
import time
from dataclasses import dataclass

from .common import read_text, say
from .environment import frequencies, governors
from .plan import Settle

TICK = os.sysconf("SC_CLK_TCK")
STEAL, OTHER, FREQUENCY = 0.5, 3.0, 5.0  # percent from which a warning is worth its line


@dataclass(frozen=True)
class Sample:
    """The machine's books at one moment, seconds."""

    time: float
    busy: float
    steal: float
    own: float
    khz: dict


def _own() -> float:
    """CPU time of this process and of what it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def look() -> Sample:
    """Now."""
    fields = [int(value) for value in (read_text("/proc/stat").splitlines() or ["cpu"])[0].split()[1:]] + [0] * 8
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    return Sample(time.monotonic(), (user + nice + system + irq + softirq) / TICK, steal / TICK, _own(), frequencies())


def between(before: Sample, after: Sample) -> dict:
    """What happened, in percent of all CPUs' time; with warnings."""
    whole = max((after.time - before.time) * (os.cpu_count() or 1), 1e-9)
    steal = 100 * (after.steal - before.steal) / whole
    other = max(0.0, 100 * (after.busy - before.busy - (after.own - before.own)) / whole)
    moved = [100 * abs(after.khz[cpu] - khz) / khz for cpu, khz in before.khz.items() if khz and after.khz.get(cpu)]
    warnings = []
    if steal > STEAL:
        warnings.append({"what": "the hypervisor below this machine took CPU time", "percent": steal})
    # The books count in ticks: what a few of them make is no load.
    if other > OTHER and other * whole / 100 > 4 / TICK * (os.cpu_count() or 1):
        warnings.append({"what": "other processes used CPU time", "percent": other})
    if moved and max(moved) > FREQUENCY:
        warnings.append({"what": "a CPU's frequency changed", "percent": max(moved)})
    if any(name != "performance" for name in governors().values()):
        warnings.append({"what": f"the frequency governor is {', '.join(sorted(set(governors().values())))}, not performance"})
    return {"steal": steal, "other": other, "frequency-change": max(moved, default=None), "warnings": warnings}


def settle(wanted: Settle) -> dict:
    """Waits until the machine is quiet, or no longer; says which."""
    began, quiet, busy = time.monotonic(), 0.0, 0.0
    before = look()
    while quiet < wanted.seconds:
        if time.monotonic() - began > wanted.limit:
            say(f"the machine did not settle within {wanted.limit:g} s: {busy:.0f} % busy")
            return {"settled": False, "busy": busy, "seconds": time.monotonic() - began}
        time.sleep(min(1.0, wanted.seconds))
        after = look()
        span = after.time - before.time
        busy = 100 * (after.busy - before.busy) / (span * (os.cpu_count() or 1))
        quiet = quiet + span if busy <= wanted.busy else 0.0
        before = after
    return {"settled": True, "busy": busy, "seconds": time.monotonic() - began}
