"""Published results, regenerated in the lab: what was published, what comes out here, and whether the shape is the same."""

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import published, reproduce_counts, reproduce_cpi, reproduce_heap, reproduce_mysql, reproduce_profile, reproduce_report, reproduce_tables, reproduce_trace
from . import reproduce_xen
from .common import LabError
from .reproduce_machine import machines_of, run_of
from .reproduction import Reproduction, missing_parts, run_parts

RESULT = "result.json"
NAMES: dict[str, Reproduction] = {**reproduce_profile.NAMES, **reproduce_tables.NAMES, **reproduce_heap.NAMES, **reproduce_mysql.NAMES, **reproduce_trace.NAMES,
                                 **reproduce_xen.NAMES, **reproduce_counts.NAMES, **reproduce_cpi.NAMES}


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


def _show(name: str, entry: Reproduction, rows: list[dict], text: str) -> None:
    print(f"{name}: {entry.title}\n  published: {entry.source}\n  here: {entry.instead}; simulated")
    for row in rows:
        what, *cells = reproduce_report.cells_of(row)
        verdict = reproduce_report.mark(row)
        print(f"  {what}")
        for title, cell in zip(("published", "ours", "ratio", "bound"), cells):
            print(f"      {title + ':':10} {cell or '-'}")
        print(f"      {'verdict:':10} {verdict.upper() if row['holds'] is False else verdict}")
    if text:
        print(text, end="")


def _number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 to 1000")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("reproduce", description=__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", choices=NAMES, help=f"one of {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="what there is; each published table and figure, with its state")
    parser.add_argument("--full", action="store_true", help="each NAME; those that an earlier --full left in the --out DIR are only read; status 1 if a "
                        "verdict is not the kept one")
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep the lab's results here")
    parser.add_argument("--read", action="store_true", help="no lab: read what an earlier run left in DIR")
    parser.add_argument("--parts", metavar="N", type=_number, help="of a NAME with several lab runs: at most N of those that DIR does not have yet; "
                        "what there is, is read")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the figures in docs/evidence/reproduced.json; status 1 if a verdict changed")
    parser.add_argument("--document", action="store_true", help="write the generated part of docs/reproduce.md from the kept figures")
    parser.add_argument("--report", metavar="FILE", type=Path, help="write a page with published and kept figures side by side")
    return parser


def _checked(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The options, which fit together."""
    args = parser.parse_args(argv)
    if args.list or args.document or args.report:
        return args
    if args.full and (args.name or args.read or args.parts):
        parser.error("--full is without NAME, --read and --parts")
    if not (args.name or args.full) or (args.read and not args.out):
        parser.error("expected a NAME (see --list), and --out with --read")
    if args.parts is not None and (not NAMES[args.name].parts or not args.out or args.read):
        parser.error("--parts is for a NAME whose lab runs can be done one at a time, with --out and without --read")
    new = not (args.read or args.parts or args.full)
    if args.out and args.out.exists() and (not args.out.is_dir() or (new and any(args.out.iterdir()))):
        parser.error(f"--out {args.out}: expected a new or an empty directory")
    return args


def _run(entry: Reproduction, out: Path, parts: int | None) -> None:
    """Its lab runs, or some."""
    out.mkdir(parents=True, exist_ok=True)
    if parts is None:
        entry.run(out)
    else:
        run_parts(out, entry.parts, entry.run_part, parts)


def _one(name: str, out: Path, args: argparse.Namespace, read: bool) -> int:
    """Runs or reads one, and shows it; the exit status."""
    entry = NAMES[name]
    try:
        if not read:
            _run(entry, out, args.parts)
    except (LabError, OSError) as error:
        print(f"reproduce: {name}: lab failed: {error}", file=sys.stderr)
        return 2
    try:
        if missing := missing_parts(out, entry.parts):
            print(f"reproduce: {name}: {len(missing)} of {len(entry.parts)} lab runs are missing: {', '.join(missing)}", file=sys.stderr)
        rows = [asdict(row) for row in entry.read(out)]
        text = entry.text(out) if entry.text else ""
        machine = machines_of(out)
        result = json.dumps({"name": name, "simulated": True, "machine": machine, "rows": rows, "text": text}, indent=1) + "\n"
        if not read:
            (out / RESULT).write_text(result, encoding="utf-8")
    except (LabError, OSError, ValueError, KeyError) as error:
        print(f"reproduce: {out}: there are no figures to read: {error!r}", file=sys.stderr)
        return 2
    if args.json:
        print(result, end="")
    else:
        _show(name, entry, rows, text)
    changed = reproduce_report.changes(name, rows) if args.keep or args.full else []
    for line in changed:
        print(f"reproduce: {name}: another verdict than the one that was kept: {line}", file=sys.stderr)
    if args.keep:
        reproduce_report.keep(name, rows, run_of(out), machine, text)
    failed = any(row["holds"] is False for row in rows) and not args.full  # a kept verdict can be that one does not hold
    return int(failed or bool(changed))


def _full(out: Path, args: argparse.Namespace) -> int:
    """Each of them once, and what is left out; the worst status."""
    worst = 0
    for name in NAMES:
        done = (out / name / RESULT).exists()
        if not done and not NAMES[name].parts:
            shutil.rmtree(out / name, ignore_errors=True)  # of a run that was interrupted
        worst = max(worst, _one(name, out / name, args, done))
        if name not in reproduce_report.kept():
            print(f"reproduce: {name}: no verdict was kept that could be compared with", file=sys.stderr)
    for entry in published.ENTRIES:
        for command in (by for by in entry.by if by not in NAMES):
            print(f"reproduce: left out, as it is a test of ./check.sh --full: {entry.place}: {command}", file=sys.stderr)
        if not entry.by:
            print(f"reproduce: left out: {entry.place}: {entry.why}", file=sys.stderr)
    return worst


def main(argv: list[str]) -> int:
    """Its options; returns the exit status: 1 if a shape does not hold."""
    args = _checked(_parser(), argv)
    if args.list:
        return _list()
    if args.document or args.report:
        return _publish(args)
    out = (args.out or Path(tempfile.mkdtemp(prefix="vperf-reproduce-"))).absolute()
    return _full(out, args) if args.full else _one(args.name, out, args, args.read)
