"""What the steps of a directory brought, as numbers: mean, confidence interval, whether a difference is real."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

from . import statistics
from .common import BenchError
from .plan import Plan
from .state import DONE, FAILED, LEFT_OUT, State

SAME_PLACE = ("kernel", "microcode", "mitigations", "cpu", "command-line")


@dataclass
class Cell:
    """A test in a configuration."""

    test: str
    cache: str
    configuration: str
    unit: str
    better: str
    values: list = field(default_factory=list)
    failed: int = 0
    mean: float | None = None
    half_width: float | None = None
    percent: float | None = None
    percent_half_width: float | None = None
    p: float | None = None
    corrected_p: float | None = None
    verdict: str = ""
    seen: dict | None = None
    tracer_bytes: float | None = None


@dataclass
class Results:
    """All cells, in the plan's order, and what has to be said beside them."""

    name: str
    baseline: str
    compare: str
    confidence: float
    comparisons: int
    cells: list
    notes: list
    failures: list
    steps: dict

    def as_dict(self) -> dict:
        """For JSON."""
        return asdict(self)

    def groups(self) -> list[list[Cell]]:
        """The cells of each test and cache."""
        found: dict[tuple, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.test, cell.cache), []).append(cell)
        return list(found.values())


def _load(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: what a finished step left cannot be read: {error}") from error


def _seen(results: list[dict]) -> dict | None:
    """The means of what vperf saw in several steps."""
    seen = [result["seen"] for result in results if "seen" in result]
    useful = [entry for entry in seen if "why" not in entry]
    if not useful:
        return {"why": seen[0]["why"]} if seen else None
    reasons: dict[str, float] = {}
    for entry in useful:
        for reason, count in entry["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + count / len(useful)
    return {"steal": fmean(entry["steal"] for entry in useful), "exits": fmean(entry["exits"] for entry in useful),
            "vcpu-seconds": fmean(entry["vcpu-seconds"] for entry in useful), "reasons": reasons,
            "thief": useful[0]["thief"]}


def _verdict(cell: Cell, base: Cell, alpha: float) -> str:
    if cell.mean is None or base.mean is None:
        return "no figure"
    if cell is base:
        return "baseline"
    if cell.corrected_p is None:
        return "too few repeats"
    if cell.corrected_p >= alpha:
        return "no difference shown"
    return "really larger" if cell.mean > base.mean else "really smaller"


def _compare(plan: Plan, cells: dict[tuple, Cell], baseline: str, compare: str) -> int:
    """Fills in what needs the baseline; the number of comparisons made."""
    asked, values = [], []
    for (test, cache, configuration), cell in cells.items():
        base = cells[(test, cache, baseline)]
        if cell.mean is not None and base.mean:
            cell.percent = 100 * cell.mean / base.mean
            if cell is not base:
                half = statistics.difference_half_width(cell.values, base.values, plan.confidence)
                cell.percent_half_width = half and 100 * half / abs(base.mean)
        if configuration != baseline and cell.values and base.values:
            cell.p = statistics.TESTS[compare](cell.values, base.values).p
            asked.append(cell)
            values.append(cell.p)
    for cell, corrected in zip(asked, statistics.holm(values)):
        cell.corrected_p = corrected
    for (test, cache, _), cell in cells.items():
        cell.verdict = _verdict(cell, cells[(test, cache, baseline)], 1 - plan.confidence)
    return sum(value is not None for value in values)


def _environment_notes(state: State) -> list[str]:
    """What was not the same for all steps of a configuration."""
    seen: dict[tuple[str, str], set[str]] = {}
    for step in state.steps:
        if step["status"] == DONE:
            found = _load(state.step_directory(step) / "environment.json")
            for key in SAME_PLACE:
                seen.setdefault((step["configuration"], key), set()).add(json.dumps(found.get(key), sort_keys=True))
    return [f"configuration {name}: not all steps had the same {key}" for (name, key), values in seen.items() if len(values) > 1]


def _boot_note(plan: Plan) -> list[str]:
    boots = {configuration.boot for configuration in plan.configurations.values()}
    if len(boots) < 2 or plan.rounds > 1:
        return []
    return ["rounds = 1: each kernel was booted once, so what one boot differs from another by chance is part of a "
            "difference between kernels, and no test can tell"]


def collect(plan: Plan, state: State, baseline: str = "", compare: str = "") -> Results:
    """The results of a directory; baseline and compare: others than the plan's."""
    baseline, compare = baseline or plan.baseline, compare or plan.compare
    cells = {(test.name, cache, name): Cell(test.name, cache, name, test.figure.unit, test.figure.better)
             for test in plan.tests.values() for cache in test.caches for name in plan.configurations}
    found: dict[tuple, list[dict]] = {key: [] for key in cells}
    warnings: dict[tuple, list[float]] = {}
    failures = []
    for step in state.steps:
        key = (step["test"], step["cache"], step["configuration"])
        if step["status"] == DONE:
            result = _load(state.step_directory(step) / "result.json")
            found[key].append(result)
            for warning in result["noise"]["warnings"]:
                warnings.setdefault((step["configuration"], warning["what"]), []).append(warning.get("percent", 0))
        elif step["status"] in (FAILED, LEFT_OUT):
            cells[key].failed += 1
            failures.append({"step": step["number"] + 1, "configuration": step["configuration"], "test": step["test"],
                             "cache": step["cache"], "status": step["status"], "why": step.get("why", "")})
    for key, cell in cells.items():
        cell.values = [result["figure"] for result in found[key]]
        if cell.values:
            cell.mean = fmean(cell.values)
            cell.half_width = statistics.half_width(cell.values, plan.confidence)
            cell.tracer_bytes = fmean(result["tracer-bytes"] for result in found[key])
        cell.seen = _seen(found[key])
    comparisons = _compare(plan, cells, baseline, compare)
    notes = [f"{event['time']}: {event['text']}" for event in state.values["events"]]
    notes += _boot_note(plan) + _environment_notes(state)
    for (name, what), percents in warnings.items():
        worst = f", at most {max(percents):.1f} %" if max(percents) else ""
        notes.append(f"noise: configuration {name}: {what}: in {len(percents)} of "
                     f"{sum(step['configuration'] == name and step['status'] == DONE for step in state.steps)} steps{worst}")
    return Results(plan.name, baseline, compare, plan.confidence, comparisons, list(cells.values()), notes, failures,
                   state.counts())
