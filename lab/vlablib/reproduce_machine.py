"""The emulated machines of a reproduction, from what its lab runs left."""

import json
from pathlib import Path


def _machine(lab: Path) -> str:
    host, emulator = json.loads((lab / "plan.json").read_text(encoding="utf-8"))["host"], json.loads((lab / "machine.json").read_text(encoding="utf-8"))
    kernel = json.loads((lab.parent / "result.json").read_text(encoding="utf-8"))["kernel"]
    counts = ", a nanosecond for each instruction" if host["icount"] else ""
    return (f"{emulator['emulator']} ({emulator['accel']}{counts}), {host['pcpus']} pCPU of model {emulator['cpu']}, {host['memory']} MiB, "
            f"{'Xen' if host['hypervisor'] == 'xen' else 'KVM'}, Linux {kernel}")


def machines_of(out: Path) -> list[str]:
    """A line for each kind of machine in the lab runs below a directory."""
    return sorted({_machine(path.parent) for path in out.rglob("vlab/machine.json") if (path.parent.parent / "result.json").exists()})
