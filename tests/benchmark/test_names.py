#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/names: figures from samples of known functions, and what binutils find in a known file."""
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import bench

sys.path.insert(0, str(bench.SOURCE.parent / "lab"))

from vlablib import names_matrix as matrix  # noqa: E402
from vlablib import names_programs as programs  # noqa: E402
from vlablib import names_truth as truth  # noqa: E402


def status_of(*arguments):
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            status = matrix.main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, printed.getvalue(), errors.getvalue()


class Options(unittest.TestCase):
    def test_bad_input(self):
        for arguments, sentence in ((["bogus"], "'bogus' is no run"), (["--read"], "expected --out with --read"),
                                    (["bookworm", "--only", "nothing"], "no program of 'bookworm'")):
            status, _, errors = status_of(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(sentence, errors)

    def test_list(self):
        status, printed, _ = status_of("--list", "sid-jit")
        self.assertEqual((status, printed), (0, "sid-jit: java 8, java -Xint 8, java 11, java 26, node 24\n"))

    def test_without_results(self):
        with tempfile.TemporaryDirectory() as name:
            status, _, errors = status_of("--read", "--out", name, "sid")
        self.assertEqual(status, 1)
        self.assertIn("names: sid: ", errors)


class Figures(unittest.TestCase):
    def test_kinds_of_functions(self):
        for name, unnamed, nameless in (("main", False, False), ("libc.so.6+0x1234", True, False), ("libc.so.6:0x1230", False, True), ("0x7f00", True, False),
                                        ("[JIT code]", False, False), ("a.so+0x10-0x90", True, False), (None, True, False), ("py::f:/x.py", False, False)):
            self.assertEqual((matrix.is_unnamed(name), matrix.is_nameless(name)), (unnamed, nameless), name)
        self.assertEqual([name for name in ("[JIT code]", "JIT code", None) if matrix.is_jit(name)], ["[JIT code]"])

    def test_known_split(self):
        java = next(program for program in programs.RUNS["trixie-jit"][1] if program.name == "java 21")
        counts = {"Known.often": 70, "Known.seldom": 30, "Known.oftener": 900, "KnownXoften": 900}
        self.assertEqual(matrix.right_of_known(java, counts), (95.0, 100))
        self.assertEqual(matrix.right_of_known(java, {"Known.often": 100})[0], 75.0)
        node = next(program for program in programs.RUNS["sid-jit"][1] if program.name == "node 24")
        self.assertEqual(matrix.right_of_known(node, {"JS:often /known.js": 3, "JS:seldom /known.js": 1, "JS:often": 9}), (100.0, 4))


class Binutils(unittest.TestCase):
    """A program of two functions, with symbols and without."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        root = pathlib.Path(self.place.name)
        (root / "known.c").write_text(programs.KNOWN_C, encoding="ascii")
        subprocess.run(["gcc", "-O1", "-o", root / "full", root / "known.c"], check=True)
        subprocess.run(["strip", "-o", root / "bare", root / "full"], check=True)
        text = subprocess.run(["nm", root / "full"], check=True, capture_output=True, text=True).stdout
        self.often = int(re.search(r"^([0-9a-f]+) t often$", text, re.MULTILINE)[1], 16)  # as its offset in the file
        self.truth = truth.Truth(root / "missing", root)

    def test_symbols(self):
        self.assertTrue(self.truth.judge("/full", self.often + 5, 5, "often"))
        self.assertFalse(self.truth.judge("/full", self.often + 5, 5, "seldom"))
        self.assertFalse(self.truth.judge("/full", self.often + 5, 4, "often"))
        self.assertIsNone(self.truth.judge("/other", self.often + 5, 5, "often"))

    def test_unwind_tables(self):
        self.assertTrue(self.truth.judge("/bare", self.often + 5, 5, f"bare:0x{self.often:x}"))
        self.assertFalse(self.truth.judge("/bare", self.often + 5, 4, f"bare:0x{self.often + 1:x}"))

    def test_samples(self):
        maps = pathlib.Path(self.place.name, "maps")
        maps.write_text(f"vperf-maps 1\na 1 80 5000 0 0 sh\na 2 81 6000 0 0 full\nf 2 1\nm 1 400000 500000 0 0 - /full\n", encoding="ascii")

        def sample(comm, second, back, name):
            return f"g1/{comm}    81 [000]   {second}.5:    1000 cpu-clock: \n\t      {0x400000 + self.often + 5:x} {name}+0x{back:x} (/full)\n\n"
        script = (sample("full", 1, 5, "early") + sample("full", 3, 5, "often") + sample("full", 4, 5, "wrong") + sample("other", 5, 5, "often") +
                  sample("full", 6, 5, "free@plt"))
        self.assertEqual(truth.judged(self.truth, maps, script, ("full",), 2.0)[:2], (2, 1))


if __name__ == "__main__":
    unittest.main()
