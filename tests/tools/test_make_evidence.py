#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/make-evidence: which figures it finds in a document, and what it complains of."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "make-evidence"
loader = importlib.machinery.SourceFileLoader("make_evidence", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_evidence", loader))
loader.exec_module(tool)

README = """# vperf

A guest runs 0.3 % longer; of `perf stat -F 97 Hz` nothing is counted.

    vperf record -F 1000 Hz

## Speed

With Linux 6.1 it takes 4,400
instructions, 0.85 times as many, in 2 to 4 ms.

| | ms | of perf |
|---|---:|---:|
| `record` | **778** | 0.47 |
| 10 | 3 of 4 | see above |
"""
BENCH = "# Benchmarks\n\n`record` takes 778 ms.\n"
PAGE = """.TH VPERF 1
.SH OPTIONS
.TP
\\fB\\-m\\fR \\fI64 KiB\\fR
Room, 4 MiB unless given.
.EX
vperf takes 9 s
.EE
"""


class Figures(unittest.TestCase):
    def found(self, text, read=tool.markdown):
        return {heading: tool.stated(figures) for heading, figures in read(text).items()}

    def test_markdown(self):
        self.assertEqual(self.found(README), {"vperf": "0.3%", "Speed": "4400 instructions; 0.85 times; 2 to 4 ms; 778 ms; 0.47; 3 of 4"})

    def test_figure_over_two_lines_of_a_list(self):
        self.assertEqual(self.found("# Head\n\n- every interval of 250\n  exits has 250\n"), {"Head": "250 exits"})

    def test_lines(self):
        self.assertEqual([number for _, number in tool.markdown(README)["Speed"]], [9, 10, 10, 14, 14, 15])

    def test_man_page(self):
        self.assertEqual(self.found(PAGE, tool.man_page), {"OPTIONS": "4 MiB"})

    def test_spelling(self):
        for text, figure in (("1.6 %", "1.6%"), ("70,608 bytes", "70608 bytes"), ("-1.1 % or less", "-1.1%"), ("30, 61 and 91 signals", "30, 61 and 91 signals"),
                             ("1.3 × 10⁹ instructions a second", "1.3 × 10⁹ instructions"), ("4636 of 4636 samples", "4636 of 4636 samples")):
            self.assertEqual(self.found(f"# A\n\n{text}\n"), {"A": figure})
        for text in ("Linux 6.1 and 6.12", "in 2026, of 3 guests", "x86-64 sees it", "#12 s", "perf_5 ms"):
            self.assertEqual(self.found(f"# A\n\n{text}\n"), {})


class Check(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "bench").mkdir()
        (self.root / "docs/man").mkdir(parents=True)
        for name, text in (("README.md", README), ("bench/README.md", BENCH), ("docs/man/vperf.1", PAGE)):
            (self.root / name).write_text(text)
        for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]):
            subprocess.run(["git", "-C", self.root, *words], check=True)
        self.commit = subprocess.run(["git", "-C", self.root, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:10]
        self.assertEqual(self.call("--state", "README.md: vperf", "README.md: Speed", "--kind", "simulated", "--commands", "bench/overhead"), (0, ""))
        self.assertEqual(self.call("--state", "bench/README.md: Benchmarks", "--kind", "measured", "--commands", "not known: why", "--measured", "2026-01-02"), (0, ""))
        self.assertEqual(self.call("--state", "docs/man/vperf.1: OPTIONS", "--kind", "defined"), (0, ""))

    def call(self, *words):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = tool.main(list(words), self.root)
        return status, printed.getvalue()

    def complaints(self):
        status, text = self.call("--check")
        self.assertEqual(status, int(bool(text)))
        return text.splitlines()

    def replace(self, name, before, after):
        path = self.root / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after))

    def same(self, *rows):
        (self.root / "docs/evidence/same.tsv").write_text("".join("\t".join(row) + "\n" for row in (tool.SAME_COLUMNS, *rows)))

    def test_complete(self):
        self.assertEqual(self.complaints(), [])
        text = (self.root / "docs/evidence.md").read_text()
        self.assertIn("- `bench/README.md`, \"Benchmarks\": why", text)
        self.assertIn(f"| Benchmarks | 778 ms | measured | not known: why | {self.commit} | 2026-01-02 |", text)
        self.assertIn("| account: known exits | not recorded yet |", text)

    def test_mutations(self):
        def take(kind, command, scores, commit="0123456789"):
            run = {"kind": kind, "date": "2026-01-03", "commit": commit, "command": command,
                   "scores": {name: dict(zip(("killed", "survived", "lab", "equivalent"), numbers)) for name, numbers in scores.items()}}
            (self.root / "run.json").write_text(json.dumps(run))
            self.assertEqual(self.call("--mutations", str(self.root / "run.json")), (0, ""))
            return (self.root / "docs/evidence.md").read_text()
        text = take("list", "tests/mutate", {"stats": (5, 2, 1, 4), "guest": (0, 0, 0, 3), "all": (5, 2, 1, 7)})
        self.assertIn("| stats | list | 5 of 8 | 2026-01-03 | 0123456789 | `tests/mutate` |\n| all | list | 5 of 8 | | | |", text)
        self.assertNotIn("| guest |", text)
        # A list has one score; each sample of generated ones has its own.
        take("list", "tests/mutate --folder stats", {"stats": (8, 0, 0, 4)})
        take("generated", "tests/mutate --generate 3 --seed 1", {"stats": (2, 1, 0, 0)})
        text = take("generated", "tests/mutate --generate 3 --seed 2", {"stats": (3, 0, 0, 0)})
        self.assertIn("| all | list | 8 of 8 | | | |", text)
        self.assertIn("| all | generated | 5 of 6 | | | |", text)
        self.assertEqual(self.complaints(), [])
        for kind, commit in (("part", "0123456789"), ("list", "0123456789-dirty")):
            with self.assertRaises(SystemExit):
                take(kind, "tests/mutate", {}, commit)

    def test_changed_figure(self):
        self.replace("README.md", "0.3 %", "0.4 %")
        first, second = self.complaints()
        self.assertTrue(first.startswith('README.md: "vperf" states 0.4%, which its entry has not'), first)
        self.assertTrue(second.startswith('README.md: "vperf": its entry has 0.3%, which it no longer states'), second)
        self.call("--state", "README.md: vperf")
        self.assertEqual(self.complaints(), [])

    def test_new_section(self):
        self.replace("README.md", "## Speed", "## Size\n\nIt has 3 MiB.\n\n## Speed")
        self.assertEqual(self.complaints(), ['README.md: "Size" has figures (3 MiB) and no entry in docs/evidence/figures.tsv'])

    def test_evidence_documents(self):
        (self.root / "docs/evidence/start.md").write_text("# Start\n\n## Measured\n\nA start takes 603 ms.\n")
        self.assertEqual(self.complaints(), ['docs/evidence/start.md: "Measured" has figures (603 ms) and no entry in docs/evidence/figures.tsv'])

    def test_section_that_is_gone(self):
        self.replace("bench/README.md", "778 ms", "long")
        self.assertEqual(self.complaints(), ['docs/evidence/figures.tsv: bench/README.md has no section "Benchmarks" with figures'])
        self.call("--state", "bench/README.md: Benchmarks")
        self.assertEqual(self.complaints(), [])

    def test_commands(self):
        for commands, said in (("bench/none --fast", "there is no bench/none"), ('tests/lab/run --only "nonsense"', 'there is no lab test with "nonsense" in its name'),
                               ("lab/reproduce nonsense", "lab/reproduce has no nonsense"), ("", "has measured figures and no command")):
            self.call("--state", "README.md: vperf", "--commands", commands)
            self.assertIn(said, " ".join(self.complaints()))
        self.call("--state", "README.md: vperf", "--kind", "guessed", "--commands", "bench/overhead")
        self.assertIn("kind 'guessed'", " ".join(self.complaints()))

    def test_contradiction(self):
        self.same(("start", "778", "README.md", "| **778** |"), ("start", "778", "bench/README.md", "takes 778 ms"))
        self.assertEqual(self.complaints(), [])
        self.same(("start", "778", "README.md", "| **778** |"), ("start", "779", "bench/README.md", "takes 779 ms"))
        self.assertEqual(self.complaints(), ['docs/evidence/same.tsv: start: bench/README.md does not say "takes 779 ms"',
                                             "start is stated as 778 (README.md) and as 779 (bench/README.md)"])

    def test_rounding(self):
        rows = [("a", "0.85", "README.md", "0.85 times"), ("a", "0.9", "README.md", "0.9")]
        self.replace("README.md", "0.85 times", "0.85 times, about 0.9")
        self.same(*rows)
        self.assertEqual([line for line in self.complaints() if line.startswith("a is stated")], [])
        self.replace("README.md", "about 0.9", "about 0.7")
        self.same(rows[0], ("a", "0.7", "README.md", "about 0.7"))
        self.assertEqual([line for line in self.complaints() if line.startswith("a is stated")], ["a is stated as 0.85 (README.md) and as 0.7 (README.md)"])

    def test_document(self):
        (self.root / "docs/evidence.md").write_text("# Evidence\n")
        self.assertEqual(self.complaints(), ["docs/evidence.md is not what tools/make-evidence writes"])

    def test_rebased(self):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--amend", "-m", "other"], check=True)
        self.assertTrue(all("is not in this history" in line for line in self.complaints()) and self.complaints())
        self.call("--commits")
        self.assertEqual(self.complaints(), [])

    def dates(self, section):
        rows = tool.read_table(self.root / "docs/evidence/figures.tsv", tool.COLUMNS)
        return {figure: (row["commit"], row["date"]) for row in rows if row["section"] == section for figure in row["figures"].split("; ")}

    def test_figures_keep_their_dates(self):
        before = self.dates("Speed")
        self.replace("README.md", "0.85 times", "0.90 times")
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "second"], check=True)
        self.call("--state", "README.md: Speed", "--measured", "2026-03-03")
        after = self.dates("Speed")
        commit, date = after.pop("0.90 times")
        self.assertNotEqual(commit, self.commit)
        self.assertEqual(date, "2026-03-03")
        self.assertEqual(after, {figure: when for figure, when in before.items() if figure != "0.85 times"})
        self.assertEqual(self.complaints(), [])
        self.call("--state", "README.md: Speed", "--measured", "2026-04-04")
        self.assertEqual({date for _, date in self.dates("Speed").values()}, {"2026-04-04"})

    def results(self, date, commit, failed="0"):
        path = self.root / "results"
        tool.slices.write_results({"account: known exits": dict(zip(tool.slices.COLUMNS, ("account: known exits", date, commit, "7", failed, "61")))}, path)
        return str(path)

    def test_results(self):
        self.call("--take", self.results("2026-02-02", "0123456789", "1"))
        text = (self.root / "docs/evidence.md").read_text()
        self.assertIn("| account: known exits | 2026-02-02 | 0123456789 | 7 held, **1 failed** | 61 |", text)
        self.assertIn("Failed when they last ran: account: known exits.", text)
        self.call("--take", self.results("2026-02-01", "aaaaaaaaaa"))
        self.assertIn("0123456789", (self.root / "docs/evidence.md").read_text())
        self.call("--take", self.results("2026-02-02", "bbbbbbbbbb"))
        self.assertIn("bbbbbbbbbb | 7 held |", (self.root / "docs/evidence.md").read_text())
        # The commit of a result is one of the history.
        self.assertEqual(self.complaints(), ["docs/evidence/lab-tests.tsv: account: known exits: bbbbbbbbbb is not in this history: run it again, and --take its result"])
        head = subprocess.run(["git", "-C", self.root, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        self.call("--take", self.results("2026-02-02", head))
        self.assertEqual(self.complaints(), [])
        with self.assertRaisesRegex(SystemExit, "not committed"):
            self.call("--take", self.results("2026-02-03", "cccccccccc-dirty"))
        self.assertNotIn("cccccccccc", (self.root / "docs/evidence/lab-tests.tsv").read_text())


if __name__ == "__main__":
    unittest.main()
