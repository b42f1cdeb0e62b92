"""Published results, regenerated in the lab: what was published, what comes out here, and whether the shape is the same."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import published, reproduce_counts, reproduce_cpi, reproduce_heap, reproduce_mysql, reproduce_profile, reproduce_report, reproduce_tables, reproduce_trace
from .common import LabError
from .reproduction import Reproduction, Row

NAMES: dict[str, Reproduction] = {**reproduce_profile.NAMES, **reproduce_tables.NAMES, **reproduce_heap.NAMES, **reproduce_mysql.NAMES, **reproduce_trace.NAMES,
                                 **reproduce_counts.NAMES, **reproduce_cpi.NAMES}


def _list() -> int:
    for name, entry in NAMES.items():
        print(f"{name:20} {entry.title} ({entry.source})")
    print(*published.lines(), sep="\n")
    return 0


def _publish(args: argparse.Namespace) -> int:
    try:
        if args.document:
            reproduce_report.document(NAMES)
        if args.report:
            reproduce_report.write_page(NAMES, args.report)
    except (LabError, OSError) as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 2
    return 0


def _show(name: str, entry: Reproduction, rows: list[Row]) -> None:
    print(f"{name}: {entry.title}\n  published: {entry.source}\n  here: {entry.instead}; simulated")
    for row in rows:
        verdict = reproduce_report.mark(asdict(row))
        print(f"  {row.what}\n      published: {row.published or '-'}\n      ours:      {row.ours}   [{verdict.upper() if row.holds is False else verdict}]")


def main(argv: list[str]) -> int:
    """Its options; returns the exit status: 1 if a shape does not hold."""
    parser = argparse.ArgumentParser("reproduce", description=__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", choices=NAMES, help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="what there is; each published table and figure, with its state")
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep the lab's results here")
    parser.add_argument("--read", action="store_true", help="no lab: read what an earlier run left in DIR")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the figures in docs/evidence/reproduced.json; status 1 if a verdict changed")
    parser.add_argument("--document", action="store_true", help="write the generated part of docs/reproduce.md from the kept figures")
    parser.add_argument("--report", metavar="FILE", type=Path, help="write a page with published and kept figures side by side")
    args = parser.parse_args(argv)
    if args.list:
        return _list()
    if args.document or args.report:
        return _publish(args)
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
    changed = reproduce_report.keep(args.name, [asdict(row) for row in rows]) if args.keep else []
    for line in changed:
        print(f"reproduce: another verdict than the one that was kept: {line}", file=sys.stderr)
    return int(any(row.holds is False for row in rows) or bool(changed))
