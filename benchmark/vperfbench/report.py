"""The results as text, CSV and JSON."""

import csv
import io
import json

from .results import Cell, Results

STATEMENT = {
    "welch": "Welch's t test (means; variances may differ)",
    "mann-whitney": "Mann-Whitney (ranks; exact without ties)"}


def statement(results: Results) -> str:
    """What is meant by "real"."""
    alpha = 1 - results.confidence
    return (f"A difference is called real if {STATEMENT[results.compare]} gives p < {alpha:.4g} after Holm's correction for "
            f"{results.comparisons} comparison{'s' * (results.comparisons != 1)} with '{results.baseline}': among all of "
            f"them, the chance that any is called real by mistake is at most {100 * alpha:.3g} %. Intervals are of the mean, "
            f"{100 * results.confidence:.4g} %, by Student, and, in percent, of the difference from the baseline, by Welch; each for itself.")


def number(value: float | None, digits: int = 4) -> str:
    """As many digits as are worth printing."""
    return "-" if value is None else f"{value:.{digits}g}" if abs(value) < 10 ** digits else f"{value:.0f}"


def saw(cell: Cell) -> str:
    """What vperf saw, in a few words."""
    if not cell.seen:
        return ""
    if "why" in cell.seen:
        return cell.seen["why"][:60]
    reasons = sorted(cell.seen["reasons"].items(), key=lambda item: -item[1])[:2]
    text = f"steal {cell.seen['steal']:.1f} %, {cell.seen['exits']:.0f} exits"
    if reasons:
        text += f" ({', '.join(f'{name} {count:.0f}' for name, count in reasons)})"
    return text + (f", thief {cell.seen['thief']}" if cell.seen["steal"] >= 1 and cell.seen["thief"] else "")


def overview(results: Results) -> list[list[str]]:
    """All tests in one table: each configuration's mean in percent of the baseline's, with a star where that is real."""
    groups = results.groups()
    rows = [[f"% of '{results.baseline}'", *(cell.configuration for cell in groups[0])]]
    for group in groups:
        rows.append([f"{group[0].test} ({group[0].cache})", *(
            "-" if cell.percent is None else f"{cell.percent:.2f}{'*' if cell.verdict.startswith('really') else ' '}" for cell in group)])
    return rows


def _columns(rows: list[list[str]], left: set[int]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


def failed_steps(results: Results) -> list[str]:
    """A line for all steps that have no figure for the same reason."""
    steps = {}
    for failure in results.failures:
        alike = failure["status"], failure["configuration"], failure["test"], failure["cache"], failure["why"]
        steps.setdefault(alike, []).append(str(failure["step"]))
    return [f"{status}: step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {configuration}, {test} ({cache}): {why}"
            for (status, configuration, test, cache, why), numbers in steps.items()]


def text(results: Results) -> str:
    """Tables for a terminal."""
    lines = [f"{results.name}: " + ", ".join(f"{count} {status}" for status, count in results.steps.items()), ""]
    if len(results.groups()) > 1:
        lines += [*_columns(overview(results), {0}), "* really different, as said below", ""]
    for group in results.groups():
        first = group[0]
        unit = f", {first.unit}" if first.unit else ""
        lines.append(f"{first.test} ({first.cache} cache{unit}; {first.better} is better)")
        rows = [["configuration", "n", "mean", "+-", "% of baseline", "+-", "p", "", "what vperf saw"]]
        for cell in group:
            rows.append([cell.configuration, str(len(cell.values)), number(cell.mean), number(cell.half_width, 2),
                         "-" if cell.percent is None else f"{cell.percent:.2f}", number(cell.percent_half_width, 2),
                         number(cell.corrected_p, 2), cell.verdict,
                         saw(cell)])
        lines += ["  " + line for line in _columns(rows, {0, 7, 8})] + [""]
    lines.append(statement(results))
    lines += failed_steps(results)
    lines += [f"note: {note}" for note in results.notes]
    return "\n".join(lines) + "\n"


CSV = ("test", "cache", "configuration", "unit", "better", "repeat", "figure", "n", "mean", "half_width", "percent_of_baseline",
       "percent_half_width", "p", "corrected_p", "verdict", "steal_percent", "exits", "tracer_bytes")


def to_csv(results: Results) -> str:
    """A row for each figure that was measured, with what holds for all of its cell; one without for a cell that has
    none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV)
    for cell in results.cells:
        seen = cell.seen if cell.seen and "why" not in cell.seen else {}
        for repeat, value in enumerate(cell.values or [None]):
            writer.writerow([cell.test, cell.cache, cell.configuration, cell.unit, cell.better,
                             "" if value is None else repeat + 1, value, len(cell.values), cell.mean, cell.half_width,
                             cell.percent, cell.percent_half_width, cell.p, cell.corrected_p, cell.verdict, seen.get("steal"), seen.get("exits"),
                             cell.tracer_bytes])
    return out.getvalue()


def to_json(results: Results) -> str:
    """Everything."""
    return json.dumps({**results.as_dict(), "statement": statement(results)}, indent=1) + "\n"
