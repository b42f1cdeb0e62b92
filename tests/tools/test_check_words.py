#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/check-words: which constructions it finds in documents, and how its list of known hits shrinks."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "check-words"
loader = importlib.machinery.SourceFileLoader("check_words", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_words", loader))
loader.exec_module(tool)

BAD = {
    "opens-relative": ["What is full loses records.", "Whose a sample is follows.", "Of a sample the host is known.", "Has the agent send it.",
                       "So many of the waits.", "First. Who takes them may change them.", "`vperf record`: what was lost is counted."],
    "is-said": ["How long is said at the end.", "It was not told."],
    "so-many": ["Stop after so many seconds."],
    "behind": ["The row behind it."],
    "beside": ["Beside other tools it is fast."],
    "has-be": ["It has what gathers elsewhere be sent.", "They had the pages be read."],
    "be-had": ["These cannot be had."],
    "not-there": ["The agent is not there.", "This was not tried."],
    "begin-noun": ["From the begin to the end."],
    "percent-space": ["It takes 0.3 % longer."],
    "is-none": ["NULL if there is none.", "Errors: it is none.", "Entries that are none.", "The stream is none's."],
    "as-ever": ["It is as ever.", "It tries ever less often.", "It stays for ever."],
    "wake-up": ["A wake-up of the thread.", "Wake-ups are counted."],
    "soft-interrupt": ["A soft interrupt ran."],
    "hand-over": ["It hands over the records.", "Records are handed out."],
    "all-the-same": ["It is counted all the same."],
}
IN_COMMENTS = {
    "tell-say": ["A note says why.", "It tells the host.", "One hears of it."],
    "at-hand": ["The record at hand."],
    "stands-for": ["A sample stands for a period."],
    "somebody": ["Somebody reads it.", "Time that nobody took.", "It is whoever asks."],
    "is-there": ["All that is there.", "The file is there already.", "They are there, and are read."],
    "room-for": ["Events that found no room.", "It has room for two."],
}
GOOD = ["What is a steal?", "Of course it runs.", "It is so far untested.", "The agent has to be asked.", "It has a name that may be long.",
        "So it is counted.", "There are no rooms.", "The kernel begins a slice.", "It takes 0.3% longer.", "Exit status 1, e.g. What it returns.", "Events are reported."]
PAGE = """.\\" What a comment has is no matter.
.TH VPERF 1
.SH SYNOPSIS
.B What it takes
.SH DESCRIPTION
.BR vperf (1)
reports samples. What
.B is lost
is counted.
.nf
What is code is left out.
.fi
.TP
.B What a tag has
The text \\fBbehind\\fR it.
"""


class Words(unittest.TestCase):
    def patterns(self, text, document="README.md"):
        return [hit.pattern for hit in tool.hits_of(document, text)]

    def test_header(self):
        text = "/* Memory of the\n * reader. What it has is freed. */\nint what; /* Of a vCPU: its number. */\n// behind\n/* Reads `n` bytes behind it. */\n"
        self.assertEqual([(hit.line, hit.pattern) for hit in tool.hits_of("src/base/what.h", text)],
                         [(2, "opens-relative"), (3, "opens-relative"), (4, "behind"), (5, "behind")])

    def test_comments(self):
        for pattern, sentences in {**BAD, **IN_COMMENTS}.items():
            for sentence in sentences:
                comment = f"int first; /* {sentence} */\nconst char *text = \"{sentence}\";\n"
                self.assertEqual(self.patterns(comment, "src/base/what.c"), [pattern], sentence)
        for sentence in GOOD:
            self.assertEqual(self.patterns(f"/* {sentence} */", "include/what.h"), [], sentence)
        self.assertEqual(set(IN_COMMENTS), set(tool.IN_COMMENTS))
        for sentences in IN_COMMENTS.values():
            self.assertEqual(self.patterns(sentences[0]), [])

    def test_typescript(self):
        for comment in ("// Of it.", "/** Of it. */", "const url = 'https://x'; // Of it.", "const text = `// ${a}`; // Of it."):
            self.assertEqual(self.patterns(f"{comment}\n", "web/src/what.ts"), ["opens-relative"], comment)
        self.assertEqual(self.patterns("// The first line\n// of two lines.\nconst text = 'Of it.'; // x\n// Of it.\n", "web/src/what.ts"), ["opens-relative"])
        for text in ('el("p", {}, "the kernel lets no program read it");', "el(`'${name}' is no file of perf`);"):
            self.assertEqual(len(self.patterns(text, "web/src/what.ts")), 1, text)

    def test_python(self):
        text = ('#!/usr/bin/env python3\n# SPDX-License-Identifier: what is said\n"""Of it.\n\nWhat is told.\n"""\n'
                'x = "is said"  # It is told.\n# First\n# of two lines.\ndef f():\n    """Whose it is."""\n    g("""Of text.""")\n')
        for document in ("tools/what", "lab/what.py"):
            self.assertEqual(sorted(self.patterns(text, document)), ["is-said"] * 2 + ["opens-relative"] * 3)

    def test_shell(self):
        text = "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-or-later\n# It runs\n# what is said.\necho '# Of it'\n\t# Of it.\n"
        self.assertEqual([(hit.line, hit.pattern) for hit in tool.hits_of("tools/what", text)], [(3, "is-said"), (6, "opens-relative")])

    def test_programs(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            files = {"tools/a": "#!/usr/bin/env python3\n", "tools/b": "#!/bin/sh\n", "tools/c": "text\n", "tools/d.txt": "#!/bin/sh\n", "lab/e.py": "", "src/f.py": ""}
            for name, text in files.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            self.assertEqual([name for name in tool.documents(root)], ["lab/e.py", "tools/a", "tools/b"])

    def test_messages(self):
        bad = {"is-no": "'%s' is no file of perf", "lets-no": "the kernel lets no program read it", "of-another": "the agent is of another version",
               "is-others": "the set is another thread's", "place-in-guest": "exits have no place in the guest"}
        for pattern, sentence in bad.items():
            head, rest = sentence[:9], sentence[9:]
            for text in (f'error("{sentence}");', f'error("{head}"\n      "{rest}");', f'error("%" PRIu64 " {head}" "{rest}");'):
                self.assertEqual(self.patterns(text, "src/base/what.c"), [pattern], text)
        self.assertEqual(set(bad), set(tool.IN_MESSAGES))
        self.assertEqual(self.patterns('error("\'%s\' is not a file"); /* no */ puts("the set belongs to another thread");', "src/base/what.c"), [])

    def test_bad(self):
        for pattern, sentences in BAD.items():
            for sentence in sentences:
                self.assertEqual(self.patterns(sentence), [pattern], sentence)
        self.assertEqual(set(BAD), set(tool.PATTERNS))

    def test_good(self):
        for sentence in GOOD:
            self.assertEqual(self.patterns(sentence), [], sentence)

    def test_lengths(self):
        self.assertEqual(self.patterns("x" * 100), [])
        self.assertEqual(self.patterns("x" * 101), ["long-line"])
        self.assertEqual(self.patterns(f"See https://example.org/{'x' * 100}"), [])
        self.assertEqual(self.patterns(f"| {'x' * 101} |"), [])
        self.assertEqual(self.patterns("\n".join(["a few words here"] * 8 + ["and three more."])), [])
        self.assertEqual(self.patterns("\n".join(["a few words here"] * 9)), ["long-sentence"])
        self.assertEqual(self.patterns("`one span of code`\n" * 35), [])
        self.assertEqual(self.patterns("\n".join(["- a few words here"] * 9)), [])

    def test_markdown(self):
        text = "# What a head says\n\nSome text.\nWhat follows\nis bad.\n\n    What is code\n\n```\nbehind\n```\n\n| a | What a cell has |\n\n<!-- What a comment has -->\n"
        self.assertEqual([(hit.line, hit.pattern) for hit in tool.hits_of("README.md", text)], [(1, "opens-relative"), (4, "opens-relative"), (13, "opens-relative")])

    def test_lists(self):
        text = "- one item\n\n    What continues it.\n\nText.\n\n    What is code.\n"
        self.assertEqual([hit.line for hit in tool.hits_of("README.md", text)], [3])

    def test_man_page(self):
        self.assertEqual([(hit.line, hit.pattern) for hit in tool.hits_of("docs/man/vperf.1", PAGE)], [(7, "opens-relative"), (15, "behind")])


class Known(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        (self.root / "tools").mkdir()
        (self.root / "docs").mkdir()
        (self.root / "src").mkdir()
        self.write("README.md", "It is behind.\n\nBehind it is one.\n")
        self.write("docs/evidence.md", "What is generated.\n")
        self.known("2\tbehind\tREADME.md\n")

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def known(self, text):
        self.write(tool.KNOWN, f"# a comment\n{text}")

    def run_tool(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = tool.main(arguments, self.root)
        return status, printed.getvalue()

    def test_known(self):
        self.assertEqual(self.run_tool(), (0, ""))
        self.assertEqual(self.run_tool("--all")[1].count("behind (after)"), 2)

    def test_new_hit(self):
        self.write("docs/new.md", "What is new.\n")
        status, printed = self.run_tool()
        self.assertEqual(status, 1)
        self.assertIn("docs/new.md:1: opens-relative", printed)
        self.known("1\tbehind\tREADME.md\n")
        self.assertIn("README.md: 2 times behind, 1 known:", self.run_tool()[1])

    def test_words_of_tables(self):
        self.write("docs/glossary.md", "# Glossary\n\n## Words that no table uses\n\n    taken wake-up\n\n## More\n\n    fine\n")
        self.write("src/table.c", 'vp_table_column_add(table, "taken_ns", "Taken", "ns", X);\n'
                   'static const struct c all[] = {{"waking_ns", "Wake-up"}, {"fine_ns", "Fine"}};\n'
                   'vp_table_column_add_old(table, "taken_ns", X);\n')
        self.write("src/other.c", 'const char *words[] = {"taken", "Taken"};\n')
        status, printed = self.run_tool()
        self.assertEqual((status, printed.count("src/table.c:")), (1, 3))
        self.assertIn("src/table.c:1: table-word", printed)
        self.assertIn("src/table.c:2: table-word", printed)
        self.assertNotIn("src/other.c", printed)

    def test_headings(self):
        self.write("docs/glossary.md", "# Glossary\n\n| word | definition | others |\n|---|---|---|\n| VM exit, VM entry | Leaving. | x |\n| work | Time. | – |\n\n"
                   "## JSON and CSV names before 0.3\n\n| output | then |\n|---|---|\n| old | new |\n")
        self.write(tool.PLAIN, "# Plain.\nns\nlongest\n")
        self.write("src/table.c", 'vp_table_column_add(table, "work_ns", "Work", "ns", X);\n'
                   'static const struct c all[] = {{"exits", "VM exits"}, {"work", "Longest"}};\n')
        self.assertEqual(self.run_tool(), (0, ""))
        bad = {"src/table.c": ('vp_table_column_add(table, "work_ns", "Toil", "ns", X);\n', "work_ns, 'Toil': toil"),
               "src/key.c": ('vp_table_column_add(table, "toil_ns", "Work", "ns", X);\n', "toil_ns, 'Work': toil"),
               "src/choice.c": ('vp_table_column_add(table, "work", is ? "Work" : "Toil", "ns", X);\n', "work, 'Toil': toil"),
               "src/other.c": ('vp_table_column_add(table, key, is ? "Toil" : "Work", "ns", X);\n', "'Toil': toil"),
               "src/top.c": ('put_heading(); vp_buffer_printf(out, "%s", "work%", "toil%");\n', ", 'toil': toil"),
               "web/src/page.ts": ('el("th", { scope: "col" }, "Toil");\n', ", 'Toil': toil"),
               "src/old.c": ('vp_table_column_add(table, "old", "Work", "ns", X);\n', "old, 'Work': old")}
        (self.root / "web/src").mkdir(parents=True)
        for name, (text, hit) in bad.items():
            before = (self.root / name).read_text() if (self.root / name).exists() else None
            self.write(name, text)
            status, printed = self.run_tool()
            self.assertEqual((status, f"{name}:1: heading-word" in printed, hit in printed), (1, True, True), printed)
            self.write(name, before) if before else (self.root / name).unlink()
        self.assertEqual(self.run_tool(), (0, ""))
        for line, problem in (("toil", "no heading has the word 'toil'"), ("exit", "the glossary has the word 'exit'")):
            self.write(tool.PLAIN, f"ns\nlongest\n{line}\n")
            status, printed = self.run_tool()
            self.assertEqual((status, problem in printed), (1, True), printed)

    def test_gone(self):
        self.write("README.md", "The one behind it.\n")
        status, printed = self.run_tool()
        self.assertEqual((status, "README.md has 1 times behind, not 2: run tools/check-words --lower" in printed), (1, True))
        self.assertEqual(self.run_tool("--lower"), (0, ""))
        self.assertIn("1\tbehind\tREADME.md\n", (self.root / tool.KNOWN).read_text(encoding="utf-8"))
        self.write("README.md", "Nothing.\n")
        self.run_tool("--lower")
        self.assertNotIn("README.md", (self.root / tool.KNOWN).read_text(encoding="utf-8"))

    def test_lower_never_raises(self):
        self.known("1\tbehind\tREADME.md\n")
        self.assertEqual(self.run_tool("--lower")[0], 1)
        self.assertIn("1\tbehind\tREADME.md\n", (self.root / tool.KNOWN).read_text(encoding="utf-8"))

    def test_document_gone(self):
        self.known("2\tbehind\tREADME.md\n3\tbeside\tdocs/old.md\n")
        self.assertIn("docs/old.md has 0 times beside, not 3", self.run_tool()[1])

    def test_wrong_list(self):
        for line in ("two\tbehind\tREADME.md\n", "0\tbehind\tREADME.md\n", "2\tbelow\tREADME.md\n", "2 behind README.md\n"):
            self.known(line)
            with self.assertRaises(SystemExit, msg=line):
                self.run_tool()


if __name__ == "__main__":
    unittest.main()
