#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/check-lab-texts: a text that vperf does not have is found, in each way that a test may ask for it."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "check-lab-texts"
loader = importlib.machinery.SourceFileLoader("check_lab_texts", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_lab_texts", loader))
loader.exec_module(tool)

SOURCE = """static void say(void)
{
\tprint("VM '%s': the guest lost %u of its "
\t      "pages while it ran, %.1f%% of all it had", name, n, share);
}
"""


class CheckLabTexts(unittest.TestCase):
    def complaints(self, test, others=""):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in (("src/say.c", SOURCE), ("tests/lab/test_it.py", test), ("tests/lab/other-texts", others)):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return list(tool.complaints(root))

    def test_known(self):
        for test in ('"the guest lost 7 of its pages while it ran" in said', '"% of all it had" not in said',
                     """re.search(r"VM '(.*)': the guest lost (\\d+) of its pages", said)""", '"a word" in said'):
            self.assertEqual(self.complaints(test), [], test)

    def test_unknown(self):
        for test in ('"the guest has lost 7 of its pages" in said', '"the guest has lost pages" not in said',
                     'said == "the guest has lost"', 're.findall(r"guest has lost (\\d+)", said)'):
            self.assertEqual(len(self.complaints(test)), 1, test)

    def test_others(self):
        test = '"the kernel says so" in said'
        self.assertEqual(self.complaints(test, "the kernel says so\n"), [])
        self.assertEqual(len(self.complaints('"a word" in said', "the kernel says so\n")), 1)


if __name__ == "__main__":
    unittest.main()
