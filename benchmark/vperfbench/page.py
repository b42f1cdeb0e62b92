"""The results as one page for a browser: tables, and a picture for each test. No script, nothing from a network."""

import math
from html import escape

from .report import failed_steps, number, overview, saw, statement
from .results import Cell, Results

WIDTH, LABEL, ROW = 720, 170, 26
STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --faint: #8888; --bar: #4a7ebb; --base: #999; --real: #c2571a; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #1b1b1b; --bar: #6b9bd2; --real: #e5874f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1100px; margin: 2em auto;
padding: 0 1em; }
table { border-collapse: collapse; margin: .5em 0 1.5em; } td, th { padding: .15em .7em; text-align: right; border-bottom: 1px
solid var(--faint); } td.word, th.word { text-align: left; } .real { color: var(--real); font-weight: 600; }
svg text { fill: var(--ink); font-size: 13px; } svg .bar { fill: var(--bar); } svg .base { fill: var(--base); }
svg .differs { fill: var(--real); } svg line { stroke: var(--ink); } svg circle { fill: var(--ink); fill-opacity: .45; }
svg .axis { stroke: var(--faint); } h2 { margin-bottom: 0; }
"""


def _ticks(top: float) -> list[float]:
    """Round numbers up to a value, at most eight and zero."""
    power = 10.0 ** math.floor(math.log10(top / 8))
    step = next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= 8)
    return [index * step for index in range(int(top / step) + 1)]


def _kind(cell: Cell) -> str:
    if cell.verdict == "baseline":
        return "base"
    return "differs" if cell.verdict.startswith("really") else "bar"


def picture(group: list[Cell]) -> str:
    """Bars from zero, with the interval of the mean and every value that was measured."""
    top = max((max([*cell.values, (cell.mean or 0) + (cell.half_width or 0)]) for cell in group if cell.values), default=0)
    if top <= 0:
        return "<p>There is no figure.</p>"
    scale = (WIDTH - LABEL - 20) / (1.05 * top)
    height = ROW * len(group) + 24
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{escape(group[0].test)}">']
    for tick in _ticks(top):
        x = LABEL + tick * scale
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 20}"/>'
                     f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{number(tick)}</text>')
    for row, cell in enumerate(group):
        y = row * ROW + ROW / 2
        parts.append(f'<text x="{LABEL - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(cell.configuration)}</text>')
        if cell.mean is None:
            parts.append(f'<text x="{LABEL + 6}" y="{y + 4:.1f}">no figure</text>')
            continue
        end = LABEL + cell.mean * scale
        parts.append(f'<rect class="{_kind(cell)}" x="{LABEL}" y="{y - 8:.1f}" width="{max(end - LABEL, 0):.1f}" height="16">'
                     f"<title>{number(cell.mean, 6)} {escape(cell.unit)}</title></rect>")
        if cell.half_width is not None:
            half = cell.half_width * scale
            parts.append(f'<line x1="{max(end - half, LABEL):.1f}" x2="{end + half:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                         'stroke-width="2"/>')
        parts += [f'<circle cx="{LABEL + value * scale:.1f}" cy="{y + 5:.1f}" r="2.5"/>' for value in cell.values]
    return "".join(parts) + "</svg>"


def _table(group: list[Cell]) -> str:
    head = "".join(f'<th{" class=word" if word else ""}>{text}</th>' for text, word in (
        ("configuration", True), ("n", False), ("mean", False), ("±", False), ("% of baseline", False), ("±", False), ("p", False),
        ("", True), ("what vperf saw", True)))
    rows = []
    for cell in group:
        mark = ' class="word real"' if cell.verdict.startswith("really") else " class=word"
        rows.append(f"<tr><td class=word>{escape(cell.configuration)}</td><td>{len(cell.values)}</td>"
                    f"<td>{number(cell.mean)}</td><td>{number(cell.half_width, 2)}</td>"
                    f"<td>{'-' if cell.percent is None else f'{cell.percent:.2f}'}</td><td>{number(cell.percent_half_width, 2)}</td>"
                    f"<td>{number(cell.corrected_p, 2)}</td>"
                    f"<td{mark}>{escape(cell.verdict)}</td><td class=word>{escape(saw(cell))}</td></tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _overview(results: Results) -> str:
    """Each test's line: percent of the baseline, marked where the difference is real."""
    head, *lines = overview(results)
    rows = ["<tr>" + "".join(f"<th{' class=word' * (not i)}>{escape(text)}</th>" for i, text in enumerate(head)) + "</tr>"]
    for title, *texts in lines:
        cells = "".join(f"<td{' class=real' * text.endswith('*')}>{escape(text.rstrip(' *'))}</td>" for text in texts)
        rows.append(f"<tr><td class=word>{escape(title)}</td>{cells}</tr>")
    return f"<table>{''.join(rows)}</table><p>In colour: really different, as said below.</p>"


def _list(title: str, lines: list[str]) -> str:
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def to_html(results: Results) -> str:
    """The page."""
    parts = [_overview(results)]
    for group in results.groups():
        first = group[0]
        unit = f"{escape(first.unit)}; " if first.unit else ""
        parts.append(f"<h2>{escape(first.test)}</h2><p>{first.cache} cache; {unit}{first.better} is better</p>"
                     f"{picture(group)}{_table(group)}")
    steps = ", ".join(f"{count} {escape(status)}" for status, count in results.steps.items())
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(results.name)}</title>'
            f"<style>{STYLE}</style></head><body><h1>{escape(results.name)}</h1><p>Steps: {steps}.</p>{''.join(parts)}"
            f"<p>{escape(statement(results))}</p>{_list('Steps without a figure', failed_steps(results))}{_list('Notes', results.notes)}"
            "</body></html>\n")
