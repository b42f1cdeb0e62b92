"""The verbs of vperf-bench, their options and their exit status."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from . import feasible, page, plan as plans, report, results, runner
from .common import BenchError, PlanError, say, write_whole
from .state import LOCK, Lock, State, holder
from .statistics import TESTS
from .tests import KINDS
from .tracers import TRACERS

DESCRIPTION = """\
Measures by itself what virtualization and tracing cost: each test of a plan in each of its configurations,
repeatedly and in shuffled order, through reboots into other kernels if need be, and whether the differences are real.
"""
EPILOG = """\
Exit status: 0; 1 if it did not end well (a step failed, it was stopped, results cannot be read); 2 for a plan that cannot
work, and for wrong usage. The plan's format is in vperf-bench(1), the method in docs/method-bench.md.
"""
RENDER = {"text": report.text, "csv": report.to_csv, "json": report.to_json, "html": page.to_html}


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("vperf-bench", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=text, description=text, epilog=EPILOG, formatter_class=raw)
        return made

    check = verb("check", "say whether a plan can work here, and how many steps it has")
    check.add_argument("plan", metavar="PLAN", type=Path)
    check.add_argument("--list", action="store_true", help="print the steps in their order, too")
    run = verb("run", "carry out a plan")
    run.add_argument("plan", metavar="PLAN", type=Path)
    run.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="a new directory for the results")
    for made in (check, run):
        made.add_argument("--may-reboot", action="store_true", help="this machine may be rebooted into the plan's kernels")
    resume = verb("resume", "go on after an interruption")
    resume.add_argument("--from-boot", action="store_true", help="say so: the systemd unit does")
    status = verb("status", "say how far it is")
    status.add_argument("--json", action="store_true", help="as JSON")
    stop = verb("stop", "end it after the present step, and put everything back")
    stop.add_argument("--now", action="store_true", help="in the middle of the step; 'resume' repeats that")
    show = verb("report", "print the results, also of a benchmark that is under way")
    show.add_argument("--format", choices=RENDER, default="text", help="default: text")
    show.add_argument("-o", "--output", metavar="FILE", type=Path, help="into a file")
    show.add_argument("--baseline", metavar="NAME", default="", help="compare with this configuration, not the plan's")
    show.add_argument("--compare", choices=TESTS, default="", help="by this test, not the plan's")
    for made in (resume, status, stop, show):
        made.add_argument("directory", metavar="DIR", type=Path)
    verb("kinds", "list the tests and tracers that a plan may name")
    return parser


def _check(args: argparse.Namespace) -> int:
    plan = plans.load(args.plan)
    for note in feasible.check(plan, args.may_reboot):
        print(f"note: {note}")
    steps = runner.order.make(plan)
    boots = len({(step.round, step.kernel, step.boot_entry, step.xen) for step in steps}) if feasible.needs_reboots(plan) else 0
    print(f"{args.plan}: {len(steps)} steps: {len(plan.configurations)} configurations, {len(plan.tests)} tests, "
          f"{plan.repeats} repeats; {boots} boots")
    if args.list:
        for step in steps:
            print(f"{step.number + 1:6d}  {step.kernel or 'present kernel'}  {step.configuration}  {step.test}  {step.cache}")
    return 0


def _go(plan: plans.Plan, state: State, machine: runner.Machine) -> int:
    job = runner.Runner(plan, state, machine)
    job.begin()
    try:
        phase = job.go()
    except runner.GoingDown:
        say("the machine goes down; " + ("it goes on after the next boot" if state.values["original"]["reboots"] else
                                         f"'vperf-bench resume {state.directory}' goes on"))
        return 1
    counts = ", ".join(f"{count} {status}" for status, count in state.counts().items())
    say({"done": f"all steps are through ({counts})", "booting": "the machine reboots"}.get(
        phase, f"stopped: {state.values['why']} ({counts}); 'vperf-bench resume {state.directory}' goes on"))
    if phase == "booting":
        return 0
    return 0 if phase == "done" and set(state.counts()) == {"done"} else 1


def _run(args: argparse.Namespace, script: Path) -> int:
    if str(args.output) == "-":
        raise PlanError("--output -: the results are a directory, they cannot be written to standard output")
    plan = plans.load(args.plan)
    directory = args.output.absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise PlanError(f"--output {args.output}: is not empty: choose a new directory, or 'vperf-bench resume' it")
    for note in feasible.check(plan, args.may_reboot):
        say(note)
    lock = Lock(LOCK, directory)
    try:
        machine = runner.Machine(script)
        try:
            state = runner.start(plan, directory, machine, feasible.needs_reboots(plan))
        except OSError as error:
            raise BenchError(f"--output {args.output}: cannot be written: {error.strerror}") from error
        return _go(plan, state, machine)
    finally:
        lock.close()


def _opened(args: argparse.Namespace) -> tuple[plans.Plan, State]:
    directory = args.directory.absolute()
    state = State.load(directory)
    return plans.load(directory / "plan.toml"), state


def _resume(args: argparse.Namespace, script: Path) -> int:
    plan, state = _opened(args)
    lock = Lock(LOCK, state.directory)
    try:
        machine = runner.Machine(script)
        if args.from_boot and state.phase in ("stopped", "done"):
            machine.unprepare(state.values["original"])
            return 0
        if state.next() is None:
            say("all steps are through")
            return 0
        if not args.from_boot:
            (state.directory / "stop").unlink(missing_ok=True)
            feasible.check(plan, may_reboot=True)
        state.keep_reserve()
        if state.phase != "booting":
            state.enter("running")
        return _go(plan, state, machine)
    finally:
        lock.close()


def _status(args: argparse.Namespace) -> int:
    _, state = _opened(args)
    process = holder(state.directory)
    phase = state.phase
    if phase == "running" and not process:
        phase = "interrupted"
    present = next((step for step in state.steps if step["status"] == "running"), None)
    if args.json:
        print(json.dumps({"phase": phase, "why": state.values["why"], "process": process, "steps": state.counts(),
                          "present": present, "events": state.values["events"]}, indent=1))
        return 0
    why = f": {state.values['why']}" if state.values["why"] else ""
    print(f"{phase}{why}{f' (process {process})' if process else ''}")
    print(", ".join(f"{count} {status}" for status, count in state.counts().items()))
    if present:
        print(f"step {present['number'] + 1} of {len(state.steps)}: {present['configuration']}, {present['test']}")
    if phase == "booting":
        print(f"boots kernel {state.values['boot']['kernel']}")
    for event in state.values["events"]:
        print(f"{event['time']}: {event['text']}")
    return 0


def _stop(args: argparse.Namespace, script: Path) -> int:
    _, state = _opened(args)
    (state.directory / "stop").touch()
    process = holder(state.directory)
    if process:
        os.kill(process, signal.SIGTERM)
        if args.now:
            time.sleep(0.5)
            os.kill(process, signal.SIGTERM)
        say("asked to stop" if args.now else "asked to stop after the present step")
        return 0
    if state.next() is not None:
        state.enter("stopped", "as asked")
    runner.Machine(script).unprepare(state.values["original"])
    say("nothing ran; everything is put back")
    return 0


def _report(args: argparse.Namespace) -> int:
    plan, state = _opened(args)
    if args.baseline and args.baseline not in plan.configurations:
        raise PlanError(f"--baseline {args.baseline}: is no configuration: expected one of {', '.join(plan.configurations)}")
    text = RENDER[args.format](results.collect(plan, state, args.baseline, args.compare))
    if not args.output or str(args.output) == "-":
        sys.stdout.write(text)
        return 0
    try:
        write_whole(args.output, text)
    except OSError as error:
        raise BenchError(f"--output {args.output}: cannot be written: {error.strerror}") from error
    return 0


def _kinds() -> int:
    print("tests (use = …):")
    for name, kind in KINDS.items():
        needs = f"  (package {', '.join(kind.needs.values())})" if kind.needs else ""
        print(f"  {name:16} {kind.figure.unit}, {kind.figure.better} is better{needs}")
    print("tracers (tracer = …):")
    for name, tracer in TRACERS.items():
        print(f"  {name:16} {tracer.title}")
    return 0


def main(argv: list[str], script: Path, version: str) -> int:
    """Run one verb; returns the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.version:
        print(f"vperf-bench {version}")
        return 0
    verbs = {"check": lambda: _check(args), "run": lambda: _run(args, script), "resume": lambda: _resume(args, script),
             "status": lambda: _status(args), "stop": lambda: _stop(args, script), "report": lambda: _report(args),
             "kinds": _kinds}
    if not args.verb:
        parser.error(f"expected a verb: {', '.join(verbs)}")
    try:
        status = verbs[args.verb]()
        sys.stdout.flush()  # here, where a reader that has gone is no error
        return status
    except PlanError as error:
        print(f"vperf-bench: {error}", file=sys.stderr)
        return 2
    except BenchError as error:
        print(f"vperf-bench: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("vperf-bench: interrupted", file=sys.stderr)
        return 1
