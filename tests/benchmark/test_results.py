#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""From steps to tables: known figures give known rows, in every format."""
import csv
import io
import json
import re
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import bench
from vperfbench import page, report, results, runner
from vperfbench.common import BenchError, write_json
from vperfbench.state import State

PLAN = """
repeats = 5
name = "a <b> & c"
[configuration.plain]
[configuration.slow]
tracer = "vperf"
[configuration.same]
[configuration.broken]
[test.t]
command = "x"
figure = { pattern = '(x)', unit = "s<" }
"""
FIGURES = {"plain": [10.0, 10.1, 9.9, 10.05, 9.95], "slow": [12.0, 12.1, 11.9, 12.05, 11.95], "same": [10.02, 10.1, 9.92, 10.0, 9.96]}
SEEN = {"steal": 2.5, "exits": 100, "vcpu-seconds": 1.0, "reasons": {"HLT": 60, "CPUID": 40}, "thief": "<script>"}


class Known(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(dir=bench.MEMORY)
        self.addCleanup(place.cleanup)
        self.plan = bench.plan_of(PLAN)
        self.state = runner.start(self.plan, Path(place.name) / "out", bench.FakeMachine(), False)
        left = {name: list(values) for name, values in FIGURES.items()}
        for step in self.state.steps:
            name = step["configuration"]
            if name == "broken":
                step.update(status="failed", why="it <broke>")
                continue
            step.update(status="done", attempts=1)
            where = self.state.step_directory(step)
            where.mkdir()
            warnings = [{"what": "other processes used CPU time", "percent": 7.0}] if name == "same" else []
            result = {"figure": left[name].pop(), "tracer-bytes": 10, "noise": {"warnings": warnings}}
            write_json(where / "result.json", {**result, "seen": SEEN} if name == "slow" else result)
            write_json(where / "environment.json", {"kernel": "6.1" if step["repeat"] or name != "same" else "6.2"})
        self.state.save()
        self.results = results.collect(self.plan, State.load(self.state.directory))
        self.cells = {cell.configuration: cell for cell in self.results.cells}

    def test_verdicts(self):
        self.assertEqual({name: cell.verdict for name, cell in self.cells.items()},
                         {"plain": "baseline", "slow": "really larger", "same": "no difference shown", "broken": "no figure"})
        self.assertAlmostEqual(self.cells["slow"].percent, 120)
        # Both deviate by 0.0791, five of each: eight degrees of freedom, t 2.306.
        self.assertAlmostEqual(self.cells["slow"].percent_half_width, 10 * 2.306004 * (2 * 0.00625 / 5) ** .5, 4)
        self.assertIsNone(self.cells["plain"].percent_half_width)
        self.assertEqual(self.results.comparisons, 2)
        self.assertAlmostEqual(self.cells["slow"].corrected_p, 2 * self.cells["slow"].p)
        other = results.collect(self.plan, self.state, "slow", "mann-whitney")
        self.assertEqual({cell.configuration: cell.verdict for cell in other.cells}["plain"], "really smaller")
        self.assertAlmostEqual({cell.configuration: cell.p for cell in other.cells}["plain"], 2 / 252)

    def test_notes(self):
        self.assertEqual(len(self.results.failures), 5)
        self.assertIn("configuration same: not all steps had the same kernel", self.results.notes)
        self.assertIn("noise: configuration same: other processes used CPU time: in 5 of 5 steps, at most 7.0 %", self.results.notes)

    def test_text(self):
        text = report.text(self.results)
        self.assertRegex(text, r"slow +5 +12 +0\.098 +120\.00 +1\.2 .* really larger +steal 2\.5 %, 100 exits \(HLT 60, CPUID 40\), thief")
        self.assertIn("p < 0.05 after Holm's correction for 2 comparisons with 'plain'", text)
        failed = [line for line in text.splitlines() if line.startswith("failed: ")]
        self.assertEqual(len(failed), 1, failed)  # five steps, for one reason
        self.assertRegex(failed[0], r"^failed: steps \d+(, \d+){4}: broken, \S+ \(hot\): ")

    def test_overview(self):
        self.assertEqual(report.overview(self.results), [["% of 'plain'", "plain", "slow", "same", "broken"],
                                                         ["t (hot)", "100.00 ", "120.00*", "100.00 ", "-"]])
        self.assertIn("<td class=real>120.00</td><td>100.00</td><td>-</td>", page.to_html(self.results))
        self.assertNotIn("really different", report.text(self.results))  # one test: its own table has the same
        self.results.cells += [replace(cell, test="u") for cell in self.results.cells]
        self.assertRegex(report.text(self.results), r"t \(hot\) +100\.00 +120\.00\* +100\.00 +-\nu \(hot\)")

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(report.to_csv(self.results))))
        self.assertEqual(len(rows), 16)
        self.assertEqual(sorted(float(row["figure"]) for row in rows if row["configuration"] == "slow"), sorted(FIGURES["slow"]))
        self.assertEqual([row["figure"] for row in rows if row["configuration"] == "broken"], [""])

    def test_json(self):
        found = json.loads(report.to_json(self.results))
        self.assertEqual(found["cells"][1]["seen"]["reasons"], {"HLT": 60, "CPUID": 40})
        self.assertIn("Welch", found["statement"])

    def test_page(self):
        html = page.to_html(self.results)
        self.assertNotIn("<script", html)
        self.assertNotIn("http", html)
        for picture in re.findall(r"<svg.*?</svg>", html):
            root = ElementTree.fromstring(picture)
            widths = [float(item.get("width")) for item in root.iter("rect")]
            self.assertEqual(len(widths), 3)
            self.assertAlmostEqual(widths[1] / widths[0], 1.2, 2)
            self.assertEqual(len(list(root.iter("circle"))), 15)

    def test_a_file_is_gone(self):
        (self.state.step_directory(next(s for s in self.state.steps if s["status"] == "done")) / "result.json").unlink()
        with self.assertRaisesRegex(BenchError, "result.json: what a finished step left cannot be read"):
            results.collect(self.plan, self.state)


class Ticks(unittest.TestCase):
    def test_few_and_round(self):
        for top in (0.00003, 0.7, 1, 3, 9.9, 47, 12345, 8e8):
            ticks = page._ticks(top)
            self.assertTrue(4 <= len(ticks) <= 9, (top, ticks))
            self.assertLessEqual(ticks[-1], top)


if __name__ == "__main__":
    unittest.main()
