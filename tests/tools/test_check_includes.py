#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/check-includes: each kind of violation is found in a small house, and none in one that is in order."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "check-includes"
loader = importlib.machinery.SourceFileLoader("check_includes", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_includes", loader))
loader.exec_module(tool)

HOUSE = {
    "base/text.h": "struct vp_text {\n\tint size;\n};\nint vp_text_size(const struct vp_text *text);\n",
    "base/text.c": '#include "base/text.h"\n\nint vp_text_size(const struct vp_text *text)\n{\n\treturn text->size;\n}\n',
    "base/meson.build": "base_uses = []\n",
    "store/packet.h": "int vp_packet_next(int at);\n",
    "store/packet.c": '#include "store/packet.h"\n#include "base/text.h"\n\nint vp_packet_next(int at)\n{\n'
                      "\tstruct vp_text text = {at};\n\treturn vp_text_size(&text);\n}\n",
    "store/meson.build": "store_uses = [base_dep]\n",
    "session/session.h": "int vp_session_open(void);\n",
    "session/session.c": '#include "session/session.h"\n#include "store/packet.h"\n\nint vp_session_open(void)\n{\n\treturn vp_packet_next(0);\n}\n',
    "session/meson.build": "session_uses = [store_dep]\n",
}


class CheckIncludes(unittest.TestCase):
    def complaints(self, changes=None, parts=None):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (HOUSE | (changes or {})).items():
                path = pathlib.Path(directory, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            tool.PARTS = parts or {}
            return tool.House(pathlib.Path(directory)).check()

    def expect(self, word, changes, parts=None):
        found = self.complaints(changes, parts)
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_order(self):
        self.assertEqual(self.complaints(), [])

    def test_folder_that_may_not_be_used(self):
        self.expect("session/ may not include from base/", {
            "session/session.c": HOUSE["session/session.c"].replace('"store/packet.h"\n', '"store/packet.h"\n#include "base/text.h"\n')})

    def test_folder_that_says_nothing(self):
        self.expect("store_uses is missing", {"store/meson.build": ""})

    def test_use_of_nothing(self):
        self.expect("includes nothing from base/", {"session/meson.build": "session_uses = [store_dep, base_dep]\n"})

    def test_reader_reaches_privileged(self):
        found = self.complaints({"store/meson.build": "store_uses = [base_dep, session_dep]\n",
                                 "store/flight.h": '#include "session/session.h"\n'})
        self.assertEqual([text for text in found if "circle" not in text],
                         ["what reads recordings reaches what makes them: src/store/flight.h -> src/session/session.h"])

    def test_reader_reaches_privileged_through_others(self):
        found = self.complaints({"store/meson.build": "store_uses = [base_dep, session_dep]\n",
                                 "store/flight.h": '#include "session/session.h"\n', "store/reader.h": '#include "store/flight.h"\n'})
        self.assertTrue(any("src/store/reader.h -> src/store/flight.h -> src/session/session.h" in text for text in found), found)

    def test_circle_of_functions(self):
        changes = {"base/text.c": HOUSE["base/text.c"].replace("return text->size", "return vp_other(text)").replace(
                       '"base/text.h"\n', '"base/text.h"\n#include "base/other.h"\n'),
                   "base/other.h": "struct vp_text;\nint vp_other(const struct vp_text *text);\n",
                   "base/other.c": '#include "base/other.h"\n#include "base/text.h"\n\nint vp_other(const struct vp_text *text)\n{\n'
                                   "\treturn vp_text_size(text);\n}\n"}
        self.expect("a circle of files", changes)
        self.assertEqual(self.complaints(changes, {"base/text": (["other"], "a test")}), [])

    def test_exception_for_nothing(self):
        self.expect("names nothing of its part packet: the exception excuses nothing", {}, {"store/reader": (["packet"], "a test")})
        self.expect("does not lead back", {"store/reader.c": '#include "store/packet.h"\n'}, {"store/reader": (["packet"], "a test")})

    def test_too_many_files(self):
        fifty = {f"store/file{number}.c": "" for number in range(48)}
        self.assertEqual(self.complaints(fifty), [])
        self.expect("has 51 files", fifty | {"store/file48.c": ""})

    def test_name_of_two_files(self):
        self.expect("several files have one name: src/base/text.c, src/session/text.c", {"session/text.c": ""})

    def test_name_without_its_header(self):
        self.expect('uses vp_text and does not include "base/text.h"', {
            "base/text.h": HOUSE["base/text.h"].replace("int vp_text_size(const struct vp_text *text);\n", ""),
            "base/text.c": "",
            "store/packet.h": '#include "base/text.h"\n' + HOUSE["store/packet.h"],
            "store/packet.c": HOUSE["store/packet.c"].replace("\treturn vp_text_size(&text);", "\treturn text.size;"),
            "store/reader.c": '#include "store/packet.h"\n\nstatic struct vp_text last;\n'})

    def test_private_header(self):
        changes = {"store/packet_private.h": "struct vp_packets {\n\tint count;\n};\n",
                   "session/packets.c": '#include "store/packet.h"\n\nvoid session_take(struct vp_packets *packets);\n'}
        self.assertEqual(self.complaints(changes), [])
        self.expect("store/packet_private.h is private to store/", changes | {
            "session/packets.c": '#include "store/packet_private.h"\n\nvoid session_take(struct vp_packets *packets);\n'})
        self.assertEqual(self.complaints(changes | {"store/reader.c": "void reader_take(struct vp_packets *packets);\n"}), [])
        self.expect('uses vp_packets and does not include "store/packet_private.h"', changes | {
            "session/packets.c": "", "store/reader.c": "static struct vp_packets packets;\n"})

    def test_header_of_its_own_header(self):
        self.assertEqual(self.complaints({"store/packet.h": '#include "base/text.h"\n' + HOUSE["store/packet.h"],
                                          "store/packet.c": HOUSE["store/packet.c"].replace('#include "base/text.h"\n', "")}), [])

    def test_comment_and_text(self):
        self.assertEqual(self.complaints({"session/notes.c": '/* vp_text_size() */\nconst char *const notes = "vp_text_size";\n'}), [])


if __name__ == "__main__":
    unittest.main()
