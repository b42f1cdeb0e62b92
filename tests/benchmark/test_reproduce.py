#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/reproduce: the shape of known figures, from results of the lab."""
import base64
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict
from unittest import mock

import bench

sys.path.insert(0, str(bench.SOURCE.parent / "lab"))

from vlablib import benching  # noqa: E402
from vlablib import reproduce_counts as counts  # noqa: E402
from vlablib import reproduce_cpi as cpi  # noqa: E402
from vlablib import published  # noqa: E402
from vlablib import reproduce  # noqa: E402
from vlablib import reproduction  # noqa: E402
from vlablib import reproduce_heap as heap  # noqa: E402
from vlablib import reproduce_mysql as mysql  # noqa: E402
from vlablib import reproduce_profile as profile  # noqa: E402
from vlablib import reproduce_report as report  # noqa: E402
from vlablib import reproduce_tables as tables  # noqa: E402
from vlablib import reproduce_trace as trace  # noqa: E402
from vlablib import reproduce_xen as xen  # noqa: E402
from vlablib.common import REPO, LabError  # noqa: E402
from vlablib.reproduce import NAMES  # noqa: E402
from vlablib.reproduce_machine import machines_of, run_of  # noqa: E402
from vlablib.reproduction import Reproduction, Row  # noqa: E402
from vperfbench import plan as plans  # noqa: E402

SIZES = """simulated (icount, 1 instruction = 1 ns), alone: an exit takes 3000, a round trip 12000
instructions that are added    exit+entry  switch+wakeup  bytes per event: kvm  sched
vperf record --trace                  990            944                  29.8   24.2
vperf record --trace -z               1100           1050                   4.1    3.6
trace-cmd record                     1247           2007                  {}   {}
trace-cmd record, not compressed     1246           2006                  75.2   65.9
vperf/trace-cmd: 0.794 0.470
"""
RATE = """guest's work alone: 1.500000 s, runs differ by 2 us (2 runs; simulated: icount, 1 instruction = 1 ns)
                                                      extra   extra  spread   per sample     profiler  samples  lost
                                                         us       %      us instructions   process us
vperf record --no-account --no-guest-memory             4500   {}       0         2986          385     1500     0
perf kvm --guest record -a                              4875   0.325       0         3235            7     1500     0
vperf/perf-kvm: 0.923
"""


def holds(rows):
    return [row.holds for row in rows]


class Tables(unittest.TestCase):
    """Tables 3 to 15: rows of a view are summed by function, thief and VM."""

    ROWS = [{"kind": "user", "process": "shares", "pid": 7, "function": function, "vm": "g1", "percent": percent}
            for function, percent in (("share_a", 30.5), ("share_b", 9.7), ("share_c", 7.7), ("share_d", 2.0))]
    STOLEN = [{"kind": "steal", "process": None, "pid": None, "function": f"[steal] ({who})", "vm": "g1", "percent": percent}
              for who, percent in (("g2", 30.0), ("g3", 17.0), ("host", 3.0))]

    def view(self, rows, **shares):
        return tables.view_of({"rows": rows, "shares": {"kernel": 0.1, "user": 49.9, "idle": 0, "steal": 50, **shares}, "samples": 1000})

    def test_view(self):
        view = self.view(self.ROWS + self.ROWS[:1] + self.STOLEN + [{"kind": "vm", "process": None, "pid": 1, "function": "[g1]", "vm": "g1", "percent": 49}])
        self.assertEqual(view.functions["7", "share_a"], 61)
        self.assertEqual(view.stolen, {"g2": 30, "g3": 17, "host": 3})
        self.assertEqual(view.vms, {"g1": 49})
        self.assertEqual(tables.left(view), 97)
        with self.assertRaises(LabError):
            tables.view_of({"rows": [], "shares": {}, "samples": 0})

    def test_functions(self):
        self.assertEqual(holds(tables.functions_rows("x", self.view(self.ROWS), (56, 22, 11))), [True] * 6)
        self.assertEqual(holds(tables.functions_rows("x", self.view(self.ROWS), (56, 22, 11), 2))[0], False)
        swapped = [dict(row, percent=40 if row["function"] == "share_b" else row["percent"]) for row in self.ROWS]
        self.assertEqual(holds(tables.functions_rows("x", self.view(swapped), (56, 22, 11))), [True, False, False, False, False, True])

    def test_bounds(self):
        self.assertTrue(tables.near("x", 50, 50.9, 50).holds)
        self.assertFalse(tables.near("x", 50, 51.1, 50).holds)
        self.assertTrue(tables.same("x", "", 69.39, 69.45).holds)
        self.assertFalse(tables.same("x", "", 69.39, 69.5).holds)
        row = tables.outside_row("x", 5.04, self.view(self.STOLEN))
        self.assertEqual((row.holds, row.ours), (None, "3.00"))
        self.assertIn("APIC", row.why)


class Report(unittest.TestCase):
    ROWS = [asdict(Row("share | of <b>, %", "49.98", "50.40", True, numbers=(49.98, 50.4), bound="50 within 1")), asdict(Row("host", "5.04", "0.20", None, "another kernel")),
            asdict(Row("plain", "", "7", None)), asdict(Row("order", "a, b", "b, a", False))]

    def test_verdicts(self):
        self.assertEqual([report.mark(row) for row in self.ROWS], ["holds", "differs: another kernel", "shown only", "does not hold"])

    def test_keep(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(report, "KEPT", pathlib.Path(directory) / "kept.json"):
            self.assertEqual(report.changes("profile-one", self.ROWS), [])
            report.keep("profile-one", self.ROWS, ("2026-11-27", "c0ffee"), ["m"])
            self.assertEqual(report.changes("profile-one", self.ROWS), [])
            new = [{**self.ROWS[0], "holds": False}, *self.ROWS[1:3]]
            self.assertEqual(report.changes("profile-one", new), ["share | of <b>, %: holds before, does not hold now",
                                                                  "order: does not hold before, missing now"])
            report.keep("profile-one", new, ("2026-11-28", "c0ffee"), ["m"], "tree")
            kept = report.kept()["profile-one"]
            self.assertEqual((kept["rows"][0]["holds"], kept["date"], kept["commit"], kept["machine"], kept["text"]), (False, "2026-11-28", "c0ffee", ["m"], "tree"))

    def test_kept(self):
        """Each figure with a verdict has a bound, and no two of a result have one name, by which verdicts are compared."""
        for name, result in report.kept().items():
            names = [row["what"] for row in result["rows"]]
            self.assertEqual(len(names), len(set(names)), name)
            self.assertEqual([row["what"] for row in result["rows"] if row["holds"] is not None and not row["bound"]], [], name)

    def test_ratio(self):
        self.assertEqual(report.ratio({"numbers": (2, 3), "more": [(0, 1), (4, 1)]}), "1.50, -, 0.25")
        self.assertEqual(report.ratio({"numbers": None}), "-")

    def test_tally(self):
        entry = published.Published("A 9", "t", published.DIFFERS, ("x", "y"), "w")
        self.assertEqual(report.tally(entry, {"x": {"rows": self.ROWS}, "z": {"rows": self.ROWS}}),
                         "1 holds, 1 does not hold, 1 differs, 1 shown only")
        self.assertEqual(report.tally(entry, {}), "")

    def test_texts(self):
        results = {"profile-one": {"date": "2026-01-02", "commit": "abc", "machine": ["QEMU 7"], "rows": self.ROWS, "text": "a <= 1\nLM01"}}
        text = report.markdown(NAMES, results)
        self.assertIn("| share \\| of <b>, % | 49.98 | 50.40 | 1.01 | 50 within 1 | holds |", text)
        self.assertIn("\nMachine: QEMU 7.\n", text)
        self.assertIn("\n\n    a <= 1\n    LM01\n", text)
        self.assertIn("Run on 2026-01-02, commit abc, simulated.", text)
        page = report.page(NAMES, results)
        self.assertIn("share | of &lt;b&gt;, %", page)
        self.assertIn("<td>1.01<td>", page.replace("</td>", ""))
        self.assertIn("<pre>a &lt;= 1\nLM01</pre>", page)
        self.assertEqual(re.findall(r'class="bar (\w+)" style="width:([\d.]+)%"', page), [("published", "99.2"), ("ours", "100.0")])
        for entry in published.ENTRIES:
            self.assertIn(entry.place, text)
            self.assertIn(f"<td>{entry.place}", page)

    def test_document(self):
        """docs/reproduce.md has the figures that were kept."""
        self.assertTrue(report.document(NAMES, check=True), "run lab/reproduce --document")


class Profile(unittest.TestCase):
    def shor(self, **functions):
        return holds(profile.shor_rows(functions))

    def test_shor(self):
        self.assertEqual(self.shor(**{"quantum_toffoli._omp_fn.0": 60, "quantum_sigma_x": 25, "quantum_cnot": 10, "main": 5}), [True] * 3)
        self.assertEqual(self.shor(quantum_toffoli=45, quantum_sigma_x=30, quantum_cnot=25), [False, True, True])
        self.assertEqual(self.shor(quantum_toffoli=60, quantum_sigma_x=10, quantum_cnot=20, main=15), [True, False, False])
        with self.assertRaises(LabError):
            profile.shor_rows({})

    def test_guests(self):
        counts = {"g1": {"share_a": 810, "share_b": 190}, "g2": {"share_a": 600, "share_b": 400}}
        stolen = {"g1": (49.0, "VM g2"), "g2": (51.0, "VM g1")}
        rows = profile.guest_rows(counts, {"g1": 0.1, "g2": 0}, stolen)
        self.assertEqual(holds(rows), [True] * 4 + [None])
        counts["g1"]["share_a"], stolen["g2"] = 600, (51.0, "VM g2")
        self.assertEqual(holds(profile.guest_rows(counts, {}, stolen)), [False, True, True, False, None])
        with self.assertRaises(LabError):
            profile.guest_rows({"g1": {}, "g2": {}}, {}, stolen)

    def test_unnamed(self):
        rows = [{"kind": kind, "function": function, "samples": samples} for kind, function, samples in (
            ("user", "share_a", 80), ("kernel", "native_write_msr", 10), ("kernel", "0xffffffff81000000", 6), ("user", "", 4), ("idle", "", 1000))]
        self.assertEqual(profile.unnamed_share(rows), 10)

    def test_injected(self):
        def rows_of(alone, host, guest):
            turns = [[alone + late, host + late, guest + late] for late in (0.01, 0.02, 0, 0.03, 0.01)]
            return profile.injected_rows([0.5, *sum(turns, [])])

        rows = rows_of(1.0, 1.003, 1.02)
        self.assertEqual(holds(rows), [None, None, True])
        self.assertEqual([round(ours, 6) for _, ours in (row.numbers for row in rows[:2])], [0.3, 2.0])
        self.assertEqual(holds(rows_of(1.0, 1.008, 1.02)), [None, None, False])
        self.assertEqual(holds(rows_of(1.0, 0.99, 1.02)), [None, None, False])
        with self.assertRaises(LabError):
            profile.injected_rows([1.0])

    def rates(self, *percents):
        return profile.rate_rows({rate: RATE.format(percent) for rate, percent in zip((400, 1000, 10000), percents)})

    def test_rates(self):
        rows = self.rates("0.120", "0.312", "3.120")
        self.assertEqual(holds(rows), [None, None, None, True])
        self.assertEqual([row.published for row in rows], ["0.133", "0.302", "3.084", "10"])
        self.assertEqual(rows[0].numbers, (0.133, 0.12))
        self.assertEqual(holds(self.rates("0.110", "0.312", "3.120"))[-1], False)
        self.assertEqual(holds(self.rates("0.120", "0.329", "3.000"))[-1], True)
        self.assertEqual(holds(self.rates("0.120", "0.331", "3.000"))[-1], False)
        with self.assertRaises(LabError):
            profile.rate_rows({400: "bench: the lab run failed\n"})

    FUNCTIONS = {"small": [("GC Thread#0", "ParMarkBitMap::live_words_in_range(HeapWord*) const", 40.0), ("Thread-0", "Heap.transaction", 25.0),
                           ("GC Thread#1", "MoveAndUpdateClosure::do_addr", 9.5), ("C2 CompilerThre", "PhaseChaitin::Split", 1.0)],
                 "large": [("Thread-0", "Heap.transaction", 90.0), ("C2 CompilerThre", "PhaseChaitin::Split", 3.0), ("GC Thread#0", "memcpy", 0.5)]}

    def database(self, *costs, busy=50.0, spread=0.01):
        """Rows of a database: each turn alone, and with these costs in percent; the first turn warms up."""
        turn = [100.0, *(100 / (1 + cost / 100) for cost in costs)]
        rates = [3.0] * len(turn) + [rate + spread * (number % 3) for number in range(mysql.TURNS) for rate in turn]
        return mysql.database_rows(rates, [99.0] * len(turn) + [busy] * (len(rates) - len(turn)))

    def test_database(self):
        self.assertEqual(holds(self.database(0.2, 2.5, 4)), [None, True, True, None, True])
        self.assertEqual(holds(self.database(0.4, 3.5, 4, busy=94)), [None, False, False, None, False])
        undecided = self.database(0.3, 3.1, 4, spread=1)
        self.assertEqual(holds(undecided), [None, None, None, None, True])
        self.assertIn("within the interval", undecided[1].why)
        self.assertAlmostEqual(undecided[2].numbers[0], 3.084)
        with self.assertRaises(LabError):
            mysql.database_rows([1.0] * 24, [1.0] * 23)
        self.assertAlmostEqual(mysql.busy_of([0] * 10, [20, 0, 20, 50, 5, 0, 0, 5, 7, 0]), 45)

    def test_heap(self):
        rows = heap.heap_rows(self.FUNCTIONS, [100, 200])
        self.assertEqual(holds(rows), [True] * 4)
        self.assertEqual([row.ours.split(":")[0].split(";")[0] for row in rows], ["49.50", "2", "0.50", "2.000 times"])
        self.assertIn("ParMarkBitMap::live_words_in_range(HeapWord*) const", rows[1].ours)
        for done in ([100, 220], [100, 175], [200, 100]):  # 1.97 by the samples
            self.assertEqual(holds(heap.heap_rows(self.FUNCTIONS, done))[-1], False)
        swapped = {"small": self.FUNCTIONS["large"], "large": self.FUNCTIONS["small"]}
        self.assertEqual(holds(heap.heap_rows(swapped, [100, 200]))[::2], [False, False])
        for functions, done in (({"small": [], "large": []}, [1, 2]), (self.FUNCTIONS, [1])):
            with self.assertRaises(LabError):
                heap.heap_rows(functions, done)


class Trace(unittest.TestCase):
    def test_tasks(self):
        first = [9.0] * 5 + [2.0, 8.0, 8.1, 8.2, 8.3] + [2.0, 8.0, 8.0, 8.0, 8.3] + [2.0, 8.3, 8.1, 8.2, 8.0]
        others = [[9.0, 8.3, 8.0, 8.0], [9.0, 8.0, 8.3, 8.0], [9.0, 8.0, 8.0, 8.3]]
        rows = trace.task_rows(first, others)
        self.assertEqual(holds(rows), [None, None, True])
        self.assertEqual([(round(row.numbers[0], 3), row.numbers[1]) for row in rows[:2]], [(1.048, 1.0), (1.167, 1.0)])
        self.assertEqual(holds(trace.task_rows(first[:-1] + [8.5], others))[-1], False)
        with self.assertRaises(LabError):
            trace.task_rows(first[1:], others)

    def test_sizes_on_kvm(self):
        rows = trace.size_rows(SIZES.format("5.5", "3.1"))
        self.assertEqual(holds(rows), [True, True, True, False])
        self.assertEqual([(row.published, row.ours) for row in rows[::2]], [("0.55 to 0.75", "29.8 / 75.2 = 0.40"), ("0.55 to 0.75", "4.1 / 5.5 = 0.75")])
        with self.assertRaises(LabError):
            trace.size_rows("\n".join(line for line in SIZES.format("5.5", "3.1").splitlines() if "not compressed" not in line))
        with self.assertRaises(LabError):
            trace.size_rows("bench: the lab run failed\n")

    def test_records_of_xentrace(self):
        def record(event, words, cycles):
            return struct.pack("<I", event | words << 28 | cycles << 31) + bytes(8 * cycles) + bytes(4 * words)

        data = record(0x21021, 1, 1) + record(0x1f003, 2, 0) + record(0x21123, 2, 1)
        self.assertEqual(trace.records_of(data + b"\0"), (2, len(data) + 1))
        self.assertEqual(trace.records_of(b""), (0, 0))

    def test_sizes_on_xen(self):
        rows = trace.xen_rows(900, 300, 1600, 400, 100, 100)
        self.assertEqual(holds(rows), [True, True, None, None])
        self.assertEqual([row.ours[-4:] for row in rows[::2]], ["0.56", "0.75"])
        self.assertEqual(holds(trace.xen_rows(900, 300, 1600, 400, 50, 100)), [False, True, None, None])
        self.assertEqual(holds(trace.xen_rows(4000, 300, 1600, 400, 300, 100)), [True, False, None, None])
        with self.assertRaises(LabError):
            trace.xen_rows(4000, 300, 0, 0, 100, 0)

    def test_plain_size(self):
        def packet(plain, compressed):
            head = struct.pack("<I16sIQQQQ", 0xc1fc1fc1, b"", 0, 1, 2, 8 * plain, 8 * plain).ljust(80, b"\0")
            return struct.pack("<IIIII", 0x184d2a5e, 92, compressed, 0, 0) + head + bytes(compressed)

        self.assertEqual(trace.plain_size(packet(1000, 100) + packet(500, 7)), 1500)
        self.assertEqual(trace.plain_size(b""), 0)

    def test_guests(self):
        seconds = {name: ([9, 1.0, 1.01] if name == "g1" else [9]) + [4.0, 4.1] for name in trace.GUESTS}
        sent = {name: [(10, 0)] * 4 for name in ("one", "four")}
        self.assertEqual(holds(trace.guest_rows(seconds, sent)), [True, True])
        sent["four"][2] = (10, 1)
        seconds["g1"][2] = 1.2
        self.assertEqual(holds(trace.guest_rows(seconds, sent)), [False, False])
        with self.assertRaises(LabError):
            trace.guest_rows(seconds | {"g4": [1.0]}, sent)
        self.assertEqual(trace.SENT.findall('"agent":"ok: it sent 12 events, 3 lost; …", "VM g1: it sent 12 events, 3 lost"'), [("12", "3")])

    def modes(self, better="less", **more):
        cells = [{"test": test, "configuration": mode, "percent": 100 + more.get(mode, 0) * (1 if better == "less" else -1), "better": better,
                  "percent_half_width": None if mode == "none" else 0.1} for test in (*trace.WORK, *trace.SWITCHING) for mode in trace.MODES_OF]
        return holds(trace.mode_rows({"cells": cells, "failures": []}))

    def test_modes(self):
        self.assertEqual(self.modes(flight=1, disk=2, **{"trace-cmd": 9}), [True] * 3 + [None] * 5)
        self.assertEqual(self.modes(flight=6, disk=2), [True, False, True] + [None] * 5)
        self.assertEqual(self.modes("more", flight=1, disk=7), [True, True, False] + [None] * 5)
        self.assertAlmostEqual(trace.cost_of({"percent": 80, "better": "more"}), 25)
        with self.assertRaises(LabError):
            trace.mode_rows({"cells": [{"test": "compress", "configuration": "disk", "percent": None}], "failures": ["why"]})


class Counts(unittest.TestCase):
    def test_threads(self):
        said = "".join(f"thread={number} expected={1000 * number} signals=0 switches=3 values={1000 * number + 1},7\n" for number in (1, 2))
        native = counts.counts_of("ways=1\n" + said)
        self.assertEqual(native, {1: 1.001, 2: 1.0005})
        self.assertEqual(holds(counts.thread_rows(native, native, native)), [True, True])
        self.assertEqual(holds(counts.thread_rows(native, native, {1: 1.003, 2: 1.0005})), [True, False])
        with self.assertRaises(LabError):
            counts.thread_rows(native, {1: 1.0}, native)

    def test_inflation(self):
        comparison = {"inflation": 1.125, "groups": [{"name": "cpuid", "native": 0, "virtualized": 429395}]}
        self.assertEqual(holds(counts.inflation_rows(comparison, {"cpuid": 450000})), [True, None])
        self.assertEqual(holds(counts.inflation_rows(comparison, {"cpuid": 600000})), [False, None])

    def tree(self, correlation):
        leaf = {"rule": 1, "coefficients": [{"input": "exits:io", "value": 3}]}
        return {"cross_validation": {"correlation": correlation},
                "tree": {"rules": 2, "root": {"input": "exits:cpuid", "cut": 1, "below": leaf, "above": {"rule": 2, "coefficients": []}}}}

    READS = """instructions of a read of one counter, simulated (icount, 1 instruction = 1 ns)

                                        read  / read(2)  / PAPI_read
host: bare instructions                 36.1      0.021        0.014
host: libvperf, user space           {:7}      0.029        0.019
host: read(2) of one event            1706.6      1.000        0.656
host: PAPI_read                      {:7}      1.524        1.000
guest without PMU: lent              {:7}      0.027        0.018

four counters, as a set                 read      / one
host: libvperf, user space             999.0      2.740
guest without PMU: lent                999.0      1.652
"""

    def test_tools(self):
        rows = counts.tool_rows(self.READS.format(50.0, 2601.4, 46.0))
        self.assertEqual(holds(rows), [True, None, True])
        self.assertEqual([row.ours.split(":")[0] for row in rows], ["yes", "no", "yes"])
        self.assertTrue(rows[1].why)
        self.assertIn("50 instructions a read, 1707 by read(2)", rows[0].ours)
        rows = counts.tool_rows(self.READS.format(200.0, 60.0, 1700.0))
        self.assertEqual(holds(rows), [False, None, False])
        self.assertEqual((rows[1].ours.split(":")[0], rows[1].why), ("yes", ""))
        with self.assertRaises(LabError):
            counts.tool_rows("counter-read: the lab run failed\n")

    def test_programs(self):
        line = "   {:8} {:18} {:5} {:15.4f} {:15.4f} {:15.4f}\n"
        def text(off):
            return "   gzip     native, millions   1.0 2.0\n" + "".join(
                line.format(program, placement, way, off if (way, program) == ("lent", "shor") else -0.01, 0.02, 5)
                for program in ("gzip", "openssl", "sqlite3", "shor") for placement in ("alone", "both at once", "beside a busy VM", "moved")
                for way in ("PMU", "lent"))
        rows = counts.program_rows(text(0.1))
        self.assertEqual((holds(rows), rows[0].ours.split(", ")[0]), ([True] * 8, "gzip 0.99990 1.00020"))
        self.assertEqual(holds(counts.program_rows(text(-0.9))).count(False), 4)
        with self.assertRaises(LabError):
            counts.program_rows("NOT OK: the lab died\n")

    def test_trees(self):
        rows = counts.tree_rows("virtualized", self.tree(0.95))
        self.assertEqual((holds(rows), rows[1].ours), ([True, True], "exits:cpuid, exits:io"))
        self.assertEqual(holds(counts.tree_rows("virtualized", self.tree(0.8))), [False, True])
        leaf = {"cross_validation": {"correlation": 1.0}, "tree": {"rules": 1, "root": {"rule": 1, "coefficients": [{"input": "time:guest", "value": 1}]}}}
        self.assertEqual(holds(counts.tree_rows("native", leaf)), [True, False])


class Cpi(unittest.TestCase):
    def compared(self, exits):
        groups = [{"name": name, "native": 0, "virtualized": exits if name == "VT transitions" else 0.1} for name in cpi.TABLE_5]
        return {"groups": groups, "native": {"mean": 1}, "virtualized": {"mean": 2}}

    def test_table_5(self):
        rows = cpi.table_5_rows(self.compared(0.5))
        self.assertEqual((holds(rows), rows[-1].ours), ([None] * 7 + [True], "0.70 of 1.00"))
        self.assertEqual([row.ours for row in rows if "VT transitions" in row.what], ["0.0, 25.0"])
        self.assertFalse(holds(cpi.table_5_rows(self.compared(0.2)))[-1])

    def test_models(self):
        def linear(correlation, miss):
            predictors = [{"name": "rc860", "coefficient": miss / 1000}, {"name": "cache-misses", "coefficient": 0.06}]
            return {"cross_validation": {"correlation": correlation}, "linear": {"predictors": predictors}}
        self.assertEqual(holds(cpi.model_rows("native", linear(0.9, 10.5), 0.83)), [True] * 3)
        self.assertEqual(holds(cpi.model_rows("native", linear(0.82, 11.5), 0.83)), [False, False, True])

    def test_tree(self):
        leaf = {"rule": 1, "coefficients": []}
        split = {"input": "virtualized", "cut": 0.5, "below": leaf, "above": leaf}
        rows = cpi.tree_rows({"root": split, "correlation": 0.9})
        self.assertEqual((holds(rows), rows[0].ours, rows[1].ours), ([None, True], "virtualized 0.5", "0.9000; 2"))
        self.assertEqual(holds(cpi.tree_rows({"root": leaf, "correlation": 0.8})), [None, False])


    def test_tree_text(self):
        """As figures 4 and 5: means of both sides of a split, and virtualization first in each equation."""
        leaves = [{"rule": number, "rows": 10 * number, "mean": number, "constant": 0.5, "coefficients": [
            {"input": "a", "value": 2}, {"input": "virtualized", "value": 0.25}]} for number in (1, 2, 3)]
        inner = {"input": "a", "cut": 7, "mean": 2.5, "below": leaves[1], "above": leaves[2]}
        lines = cpi.tree_text({"input": "virtualized", "cut": 0.5, "mean": 2, "below": leaves[0], "above": inner}).splitlines()
        self.assertEqual(lines[:4], ["virtualized <= 0.5: mean CPI 1.000", "|   LM01, 10 intervals, mean CPI 1.000", "virtualized > 0.5: mean CPI 2.500",
                                     "|   a <= 7: mean CPI 2.000"])
        self.assertEqual(lines[-1], "LM03: CPI = 0.25 * virtualized + 2 * a + 0.5")
        self.assertEqual(len(lines), 10)


class Xen(unittest.TestCase):
    """Tables of LTTng for Xen by place and tracer."""

    def text(self, factor):
        timed = "".join(f"timed: {part} elapsed_ns={int(1e9 / factor)} cpu_ns={int(5e8 / factor)}\n" for part in ("compile", "tar-create", "tar-extract", "bzip2"))
        return f"{timed} ReadX 5072\nThroughput {100 * factor:.3f} MB/sec\nPipe bandwidth: {1000 * factor:.2f} MB/sec\n1.05 {500 * factor:.2f}\n"

    def figures(self, places, repeats=3, disk=0.98):
        figures = xen.Figures()
        for place in places:
            for tracer in xen.PLACES[place]:
                for cache in xen.AGAIN:
                    for repeat in range(repeats):
                        figures.add(place, tracer, cache, self.text((disk if tracer == "disk" else 1) * (1 if place == "machine" else 0.9) + repeat / 1e4))
        return figures

    def test_rows(self):
        figures = self.figures(("machine", "dom0"))
        rows = xen.place_rows(figures, "compile")
        self.assertEqual([row.what.split(", ")[2] for row in rows], ["machine"] * 4 + ["dom0"] * 4)
        self.assertEqual(holds(rows), [None, True, None, None] * 2)
        self.assertRegex(rows[4].ours, r"^90\.00 ± 0\.\d\d, 90\.00 ± 0\.\d\d, 90\.00 ± 0\.\d\d, 88\.20 ± 0\.\d\d$")
        self.assertEqual([round(ours, 1) for _, ours in (rows[4].numbers, *rows[4].more)], [90, 90, 90, 88.2])
        self.assertEqual(len(xen.place_rows(figures, "dbench")), 6)
        self.assertRegex(xen.place_rows(figures, "dbench")[3].ours, r", 88\.20 ± 0\.\d\d$")
        self.assertEqual(holds(xen.hypervisor_rows(figures)), [True] * 5 + [None])
        # More than 5 points, and than was published.
        self.assertEqual(holds(xen.place_rows(self.figures(("machine", "dom0"), disk=0.94), "compile")), [None, False, None, None] * 2)
        self.assertEqual(holds(xen.place_rows(self.figures(("machine", "dom0"), disk=0.94), "tar-create"))[5], True)

    def test_parts_that_are_missing(self):
        self.assertEqual(xen.hypervisor_rows(self.figures(("machine",))), [])
        self.assertEqual(xen.place_rows(self.figures(("dom0",)), "compile"), [])
        self.assertNotIn("±", xen.place_rows(self.figures(("machine",), repeats=1), "compile")[0].ours)
        with self.assertRaises(LabError):
            xen.parts_of(self.text(1).replace("bzip2", "gzip"))

    def test_runs_of_parts(self):
        """Those that ended well are not done again, and what is left of another is removed."""
        done = []

        def run(out, part):
            self.assertEqual(list((out / part).iterdir()), [])
            (out / part / "x").touch()
            if part == "b" and not done.count("b"):
                done.append("b")
                raise LabError("died")
            done.append(part)

        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            with self.assertRaises(LabError):
                reproduction.run_parts(out, ("a", "b", "c"), run)
            self.assertEqual(reproduction.missing_parts(out, ("a", "b", "c")), ["b", "c"])
            reproduction.run_parts(out, ("a", "b", "c"), run, 1)
            self.assertEqual((done, reproduction.missing_parts(out, ("a", "b", "c"))), (["a", "b", "b"], ["c"]))

    def test_plans(self):
        for run, places in xen.RUNS.items():
            with mock.patch.object(xen.kernels, "get", lambda *_: mock.Mock(image="/boot/vmlinuz")):
                plan = plans.parse(xen.plan(places, ["tar"], 1), "plan.toml")
            self.assertEqual(list(plan.configurations), [f"{place}-{tracer}" for place in places for tracer in xen.PLACES[place]], run)
            self.assertEqual(list(plan.tests), list(xen.AGAIN))


class Machine(unittest.TestCase):
    def test_lines(self):
        """A line for each kind of machine, without paths of this one."""
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory)
            for name, memory in (("a", 1024), ("b", 1024), ("c", 2048)):
                lab = out / name / "lab/vlab"
                lab.mkdir(parents=True)
                (lab / "plan.json").write_text(json.dumps({"host": {"hypervisor": "xen", "icount": True, "pcpus": 1, "memory": memory}}))
                (lab / "machine.json").write_text(json.dumps({"emulator": "QEMU 7.2.22", "cpu": "max", "accel": "tcg", "date": f"2026-11-{20 + int(name, 16)}",
                                                               "commit": "c0ffee" if name == "a" else "decade"}))
                (lab.parent / "result.json").write_text('{"kernel": "6.1"}')
            self.assertEqual(machines_of(out), [f"QEMU 7.2.22 (tcg, a nanosecond for each instruction), 1 pCPU of model max, {memory} MiB, Xen, Linux 6.1"
                                                for memory in (1024, 2048)])
            # Date and commits are those of the runs, not of the day on which results are read.
            self.assertEqual(run_of(out), ("2026-11-32", "c0ffee, decade"))


class Full(unittest.TestCase):
    def run_full(self, out, *options, holds=True):
        ran = []
        entry = Reproduction("t", "s", "i", lambda out: ran.append(out.name), lambda _: [Row("w", "1", "1", holds, bound="1")])
        said = io.StringIO()
        with mock.patch.object(reproduce, "NAMES", {"x": entry, "y": entry}), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            return reproduce.main(["--full", "--out", str(out), *options]), ran, said.getvalue()

    def test_each_once(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(report, "KEPT", pathlib.Path(directory) / "kept.json"):
            out = pathlib.Path(directory) / "out"
            status, ran, said = self.run_full(out, "--keep")
            self.assertEqual((status, ran), (0, ["x", "y"]))
            self.assertIn("left out: D table 7: the lab has no graphics", said)
            self.assertIn("check.sh --full: B figures 7, 8: tests/lab/run", said)
            (out / "y/result.json").unlink()
            (out / "y/left").touch()
            status, ran, said = self.run_full(out, holds=False)  # another verdict than the kept one
            self.assertEqual((status, ran, (out / "y/left").exists()), (1, ["y"], False))
            self.assertIn("x: another verdict than the one that was kept: w: holds before, does not hold now", said)


class Bench(unittest.TestCase):
    def test_plan_is_passed_on(self):
        text = benching.scenario(trace.PLAN, "pcpus=1")
        held = re.search(r"^command echo (\S+) \| base64 -d > /tmp/plan.toml$", text, re.MULTILINE)
        plan = plans.parse(base64.b64decode(held[1]).decode(), "plan.toml")
        self.assertEqual(list(plan.configurations), list(trace.MODES_OF))
        self.assertEqual(list(plan.tests), [*trace.WORK, *trace.SWITCHING])
        with self.assertRaisesRegex(LabError, "at most 65536"):
            benching.run("x" * 70000, "", None)


class Options(unittest.TestCase):
    def call(self, *arguments):
        return subprocess.run([REPO / "lab" / arguments[0], *arguments[1:]], capture_output=True, text=True)

    def test_refused(self):
        for arguments, sentence in ((("reproduce",), "expected a NAME"), (("reproduce", "no-such"), "invalid choice"),
                                    (("reproduce", "trace-sizes", "--read"), "and --out with --read"),
                                    (("reproduce", "trace-sizes", "--out", "/"), "expected a new or an empty directory"),
                                    (("reproduce", "trace-sizes", "--out", "/nonexistent", "--read"), "there are no figures to read"),
                                    (("reproduce", "trace-sizes", "--out", "/nonexistent", "--parts", "1"), "--parts is for a NAME"),
                                    (("reproduce", "trace-xen", "--parts", "1"), "--parts is for a NAME"),
                                    (("reproduce", "trace-xen", "--out", "/nonexistent", "--parts", "0"), "no number from 1 to 1000"),
                                    (("reproduce", "trace-sizes", "--full"), "--full is without NAME"),
                                    (("bench", "/nonexistent", "--out", "/nonexistent/x"), "No such file"),
                                    (("bench", "/nonexistent", "--out", "/"), "expected a new or an empty directory")):
            done = self.call(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(sentence, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_reader_that_has_gone(self):
        """A pipe that is closed early, such as that to head, causes no message."""
        near, far = os.pipe()
        os.close(near)
        for command, status in ((["lab/reproduce", "--list"], 1), (["benchmark/vperf-bench", "kinds"], 1),
                                (["tools/house-figures"], -signal.SIGPIPE), (["tools/shared-names"], -signal.SIGPIPE)):
            done = subprocess.run([REPO / command[0], *command[1:]], stdout=far, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (status, ""), command)
        os.close(far)

    def test_published(self):
        """Each entry has its state, a reason unless it is reproduced, and names that exist."""
        places = [entry.place for entry in published.ENTRIES]
        self.assertEqual(len(places), len(set(places)))
        for entry in published.ENTRIES:
            self.assertIn(entry.place[0], published.SYSTEMS)
            self.assertEqual(bool(entry.why), entry.state != published.REPRODUCED, entry.place)
            for name in entry.by:
                self.assertTrue(name in NAMES or name.startswith("tests/lab/run "), name)
        # Numbered tables and figures, by system.
        for letter, tables_of in (("A", range(3, 18)), ("C", (5, 6)), ("D", range(1, 16))):
            found = set()
            for entry in published.ENTRIES:
                words = re.sub(r"figures? [\d, to]+", "", entry.place)
                if words.startswith(letter):
                    for low, high in re.findall(r"(\d+)(?: to (\d+))?", words):
                        found |= set(range(int(low), int(high or low) + 1))
            self.assertEqual(found & set(tables_of), set(tables_of), letter)

    def test_list(self):
        done = self.call("reproduce", "--list")
        self.assertEqual(done.returncode, 0)
        document = (REPO / "docs/reproduce.md").read_text()
        for name in re.findall(r"^([a-z]+-[a-z-]+) ", done.stdout, re.MULTILINE):
            self.assertIn(f"## {name}\n", document)


if __name__ == "__main__":
    unittest.main()
