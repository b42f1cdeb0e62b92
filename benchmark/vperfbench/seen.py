"""What vperf saw in a step, of all VMs or of the one that the test ran in: where the vCPUs' time went, who stole of it, which VM exits there were."""

import json
import subprocess
from pathlib import Path

from .common import program, write_json


def _ask(verb: str, recording: Path, machine: list[str]) -> dict:
    done = subprocess.run([program("vperf") or "vperf", verb, *machine, str(recording), "--json"], capture_output=True, text=True,
                          check=False, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ValueError(done.stderr.strip()[-200:] or f"vperf {verb} ended with status {done.returncode}")
    return json.loads(done.stdout)


def summary(account: dict, exits: dict, steal: dict) -> dict:
    """Of three answers of vperf: percent of the vCPUs' time by state, exits a second, the largest of both kinds."""
    wall = sum(row["wall_ns"] for row in account["vcpus"])
    if not wall:
        return {"why": "no VM ran"}
    states: dict[str, float] = {}
    for row in account["states"]:
        states[row["state"]] = states.get(row["state"], 0) + 100 * row["ns"] / wall
    reasons: dict[str, int] = {}
    for row in exits["exits"]:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["count"]
    thieves = sorted(steal["thieves"], key=lambda row: -row["ns"])
    return {"vms": sorted({row["vm"] for row in account["vcpus"]}), "vcpu-seconds": wall / 1e9, "states": states,
            "steal": 100 * sum(row["ns"] for row in thieves) / wall, "exits": sum(reasons.values()),
            "reasons": dict(sorted(reasons.items(), key=lambda item: -item[1])),
            "thief": thieves[0]["thief"] if thieves and thieves[0]["ns"] else ""}


def look(recording: Path, keep: Path, vm: str = "") -> dict:
    """What there is to say of a recording, or of that VM in it; "why" if nothing. vperf's own answers are kept."""
    machine = ["--vm", vm] if vm else []
    try:
        answers = {verb: _ask(verb, recording, machine) for verb in ("account", "exits", "steal")}
        write_json(keep / "seen.json", answers)
        return summary(answers["account"], answers["exits"], answers["steal"])
    except (ValueError, KeyError, OSError, subprocess.TimeoutExpired) as error:
        if "has no vCPU accounting" in str(error):
            return {"why": "no VM ran, or no account was recorded"}
        return {"why": f"vperf says nothing of this recording: {error}"}
