"""The emulated machines of a reproduction, from what its lab runs left."""

import datetime
import json
from pathlib import Path

from .common import LabError, commit


def _machine(lab: Path) -> str:
    host, emulator = json.loads((lab / "plan.json").read_text(encoding="utf-8"))["host"], json.loads((lab / "machine.json").read_text(encoding="utf-8"))
    kernel = json.loads((lab.parent / "result.json").read_text(encoding="utf-8"))["kernel"]
    counts = ", a nanosecond for each instruction" if host["icount"] else ""
    return (f"{emulator['emulator']} ({emulator['accel']}{counts}), {host['pcpus']} pCPU of model {emulator['cpu']}, {host['memory']} MiB, "
            f"{'Xen' if host['hypervisor'] == 'xen' else 'KVM'}, Linux {kernel}")


def _labs_of(out: Path) -> list[Path]:
    return [path.parent for path in out.rglob("vlab/machine.json") if (path.parent.parent / "result.json").exists()]


def machines_of(out: Path) -> list[str]:
    """A line for each kind of machine in the lab runs below a directory."""
    return sorted({_machine(lab) for lab in _labs_of(out)})


def run_of(out: Path) -> tuple[str, str]:
    """The last date of these lab runs, and the commits of their sources; today's without lab runs."""
    runs = [json.loads((lab / "machine.json").read_text(encoding="utf-8")) for lab in _labs_of(out)]
    if not runs:
        return datetime.date.today().isoformat(), commit()
    if not all("commit" in run for run in runs):
        raise LabError(f"{out}: a lab run is older than the commits that results are kept with: run it again")
    return max(run["date"] for run in runs), ", ".join(sorted({run["commit"] for run in runs}))
