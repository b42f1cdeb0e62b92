"""Published results, regenerated in the lab: what was published, what comes out here, and whether the shape is the same."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import reproduce_counts, reproduce_profile, reproduce_trace
from .common import LabError
from .reproduction import Reproduction, Row

NAMES: dict[str, Reproduction] = {**reproduce_profile.NAMES, **reproduce_trace.NAMES, **reproduce_counts.NAMES}
LEFT_OUT = {
    "profile-figure-17": "what it shows, and its numbers, are not at hand",
    "counters-* with SPEC CPU2006 (figures 10 to 13)": "the programs cannot be had: counters-programs has others",
    "cpi-* by the PMU's events": "no emulated PMU counts what published trees are made of (cache and TLB misses): software events are",
    "trace-guests on Xen": "vperf has no agent in guests of Xen: on KVM"}


def _list() -> int:
    for name, entry in NAMES.items():
        print(f"{name:18} {entry.title} ({entry.source})")
    for name, why in LEFT_OUT.items():
        print(f"left out: {name}: {why}")
    return 0


def _show(name: str, entry: Reproduction, rows: list[Row]) -> None:
    print(f"{name}: {entry.title}\n  published: {entry.source}\n  here: {entry.instead}; simulated")
    for row in rows:
        mark = {True: "holds", False: "DOES NOT HOLD", None: "shown only"}[row.holds]
        print(f"  {row.what}\n      published: {row.published or '-'}\n      ours:      {row.ours}   [{mark}]")


def main(argv: list[str]) -> int:
    """Its options; returns the exit status: 1 if a shape does not hold."""
    parser = argparse.ArgumentParser("reproduce", description=__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", choices=NAMES, help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="what there is, and what is left out and why")
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep the lab's results here")
    parser.add_argument("--read", action="store_true", help="no lab: read what an earlier run left in DIR")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    args = parser.parse_args(argv)
    if args.list:
        return _list()
    if not args.name or (args.read and not args.out):
        parser.error("expected a NAME (see --list), and --out with --read")
    if args.out and not args.read and args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        parser.error(f"--out {args.out}: expected a new or an empty directory")
    out = (args.out or Path(tempfile.mkdtemp(prefix="vperf-reproduce-"))).absolute()
    entry = NAMES[args.name]
    try:
        if not args.read:
            out.mkdir(parents=True, exist_ok=True)
            entry.run(out)
    except (LabError, OSError) as error:
        print(f"reproduce: lab failed: {error}", file=sys.stderr)
        return 2
    try:
        rows = entry.read(out)
        result = json.dumps({"name": args.name, "simulated": True, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
        if not args.read:
            (out / "result.json").write_text(result, encoding="utf-8")
    except (LabError, OSError, ValueError, KeyError) as error:
        print(f"reproduce: {out}: there are no figures to read: {error!r}", file=sys.stderr)
        return 2
    if args.json:
        print(result, end="")
    else:
        _show(args.name, entry, rows)
    return int(any(row.holds is False for row in rows))
