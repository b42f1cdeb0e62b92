#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/readme: what it finds in a document, and what it complains of in the output of the demonstration."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent.parent / "readme"
loader = importlib.machinery.SourceFileLoader("readme", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("readme", loader))
loader.exec_module(tool)

README = """# vperf

    vperf record -o DIR -- sleep 30   # or until Ctrl-C
                                      # a second line of that
    vperf report DIR --folded | flamegraph.pl > all.svg

<!-- tests/readme: demo -->

    $ vperf steal DIR
    # vperf steal of 'DIR': host vlab, 1 pCPUs, 4.5 s

    g1     0  task  backup/155   /  151 ms
"""
DEMO = "show steal \"$out/rec\" --limit 12\nshow account \"$out/rec\"\n"
PRINTED = """
$ vperf steal /tmp/x/rec --limit 12
# vperf steal of '/tmp/x/rec': host vlab, 2 pCPUs, 4.61 s

g1     0  task  backup/99    /  1.51 s
g1     0  vcpu  vCPU 0 of VM g2  /  0.9 s

$ vperf account /tmp/x/rec
Check: states sum to wall time within 0.0000% (limit 0.1%): ok
"""


class Readme(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(list(tool.commands(README)), ["vperf record -o DIR -- sleep 30", "vperf report DIR --folded", "vperf steal DIR"])

    def test_blocks(self):
        self.assertEqual([(source, len(lines)) for source, lines in tool.blocks(README)], [(None, 3), ("demo", 4)])

    def test_demo(self):
        self.assertEqual(tool.check_demo(README, DEMO, PRINTED), [])

    def complains(self, before, after, said):
        self.assertIn(before, PRINTED)
        self.assertIn(said, " ".join(tool.check_demo(README, DEMO, PRINTED.replace(before, after))))

    def test_complaints(self):
        self.complains("$ vperf account /tmp/x/rec\n", "", "there are outputs of steal")
        self.complains("Check: states sum to wall time within 0.0000% (limit 0.1%): ok\n", "", "'account /tmp/x/rec' printed nothing".replace("'account", "'vperf account"))
        self.complains("0.1%): ok", "0.1%): NOT OK", "has no check of the account that ends with ok")
        self.complains("backup/99 ", "other/99  ", "has no thief of g1")
        self.complains("VM g2", "VM g3", "has no thief of g1")
        self.complains("/  1.51 s", "/  1.51 s  more", "what it does not print: g1     0  task  backup/155")


if __name__ == "__main__":
    unittest.main()
