#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps that really run: their figures, time limits and leftovers; and the whole program."""
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import bench
from vperfbench import seen, step, tracers

PROGRAM = bench.SOURCE / "vperf-bench"
SMALL = bench.HEAD + "[configuration.a]\ndirectory = '{0}'\n[test.t]\n"


class Case(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def job(self, test):
        plan = bench.plan_of(SMALL.format(self.place) + test)
        return step.Job(plan, plan.configurations["a"], plan.tests["t"], False, self.place / "step")

    def fails(self, test, sentence):
        with self.assertRaisesRegex(step.StepFailed, sentence):
            step.run(self.job(test))


class Runs(Case):
    def test_elapsed(self):
        result = step.run(self.job("command = 'sleep 0.3'"))
        self.assertGreaterEqual(result["figure"], 0.3)
        self.assertEqual((result["status"], result["late"]), (0, False))

    def test_cpu(self):
        result = step.run(self.job("command = 'sleep 0.5'\nfigure = 'cpu'"))
        self.assertLess(result["figure"], result["elapsed"])

    def test_pattern_takes_the_last(self):
        result = step.run(self.job("command = 'echo 1 ms; echo 1,234.5 ms'\nfigure = { pattern = '([0-9.,]+) ms' }"))
        self.assertEqual(result["figure"], 1234.5)

    def test_prepared_and_scaled(self):
        result = step.run(self.job("prepare = 'echo 7 > file; echo $SCALE >> file'\ncommand = 'cat file; ls | wc -l'\n"
                                   "scale = 5\nfigure = { pattern = '(?s)7\\n5\\n(1)' }"))
        self.assertEqual(result["figure"], 1)
        self.assertEqual([path.name for path in self.place.iterdir()], ["step"])

    def test_environment(self):
        step.run(self.job("command = 'true'"))
        found = json.loads((self.place / "step/environment.json").read_text())
        self.assertEqual(found["kernel"], os.uname().release)
        for key in ("mitigations", "governors", "command-line", "boot", "versions", "cpus"):
            self.assertIn(key, found)

    def test_failures(self):
        self.fails("command = 'echo oh no >&2; exit 3'", "the hot run ended with status 3: oh no")

    def test_measured_failure(self):
        self.fails("command = '''if [ -e ../once ]; then echo gone >&2; exit 4; fi; touch ../once'''",
                   "the test ended with status 4: gone")

    def test_preparation(self):
        self.fails("prepare = 'false'\ncommand = 'true'", "ended with status 1")

    def test_no_figure(self):
        self.fails("command = 'echo hello'\nfigure = { pattern = '([0-9]+) ms' }",
                   r"the figure cannot be read: nothing in the output fits '\(\[0-9\]\+\) ms'")

    def test_figure_that_is_no_number(self):
        self.fails("command = 'echo fast'\nfigure = { pattern = '(fast)' }", "'fast' is no number")

    # The first run must end within the limit, also on a busy machine.
    def test_time_limit(self):
        began = time.monotonic()
        self.fails("command = '''[ ! -e ../once ] || sleep 300; touch ../once'''\ntime-limit = 5",
                   "the test took longer than its time limit of 5 s")
        self.assertLess(time.monotonic() - began, 60)

    def test_preparation_that_hangs(self):
        self.fails("prepare = 'sleep 300'\ncommand = 'true'\ntime-limit = 0.5", "the hot run took longer than 0.5 s")
        (self.place / "step").rename(self.place / "first")
        self.fails("prepare = '[ ! -e ../once ] || sleep 300; touch ../once'\ncommand = 'true'\ntime-limit = 5",
                   "the preparation took longer than 5 s")

    def test_tracer_that_hangs(self):
        """It is ended, with all that it began."""
        step.adopt_orphans()
        mark = self.place / "pid"
        hangs = tracers.Tracer("it hangs", ("sh", "-c", f"echo $$ > {mark}; \"$@\"; sleep 300", "sh"))
        with mock.patch.dict(step.TRACERS, {"none": hangs}), mock.patch.object(step, "GRACE", -28):
            self.fails("command = 'true'\ntime-limit = 1", "the tracer did not end within")
        self.assertFalse(Path(f"/proc/{mark.read_text().strip()}").exists())

    def test_tracer_that_fails(self):
        for script, sentence in (("echo no such event >&2; exit 3", "nothing was measured, the tracer ended with status 3: no such event"),
                                 ("\"$@\"; echo lost >&2; exit 4", "the tracer it fails ended with status 4: lost")):
            fails = tracers.Tracer("it fails", ("sh", "-c", script, "sh"))
            with self.subTest(script), mock.patch.dict(step.TRACERS, {"none": fails}):
                self.fails("command = 'true'", sentence)
            (self.place / "step").rename(self.place / f"after {sentence[:20]}")

    def test_what_is_left_behind_is_ended(self):
        step.adopt_orphans()
        mark = self.place / "pid"
        result = step.run(self.job(f"command = '''setsid sh -c \"echo \\\\$\\\\$ > {mark}; exec sleep 300\" > /dev/null 2>&1 & "
                                   f"while [ ! -s {mark} ]; do sleep 0.01; done'''"))
        self.assertGreaterEqual(result["left-behind"], 1)
        self.assertFalse(Path(f"/proc/{mark.read_text().strip()}").exists())


class Seen(unittest.TestCase):
    def test_summary(self):
        found = seen.summary(
            {"vcpus": [{"vm": "a", "wall_ns": 100}, {"vm": "b", "wall_ns": 300}],
             "states": [{"state": "guest", "ns": 200}, {"state": "guest", "ns": 100}, {"state": "preempted", "ns": 100}]},
            {"exits": [{"reason": "HLT", "count": 3}, {"reason": "CPUID", "count": 5}, {"reason": "HLT", "count": 4}]},
            {"thieves": [{"thief": "x", "ns": 30}, {"thief": "y", "ns": 70}]})
        self.assertEqual((found["states"], found["steal"], found["exits"]), ({"guest": 75, "preempted": 25}, 25, 12))
        self.assertEqual((list(found["reasons"].items()), found["thief"]), ([("HLT", 7), ("CPUID", 5)], "y"))
        self.assertIn("why", seen.summary({"vcpus": [], "states": []}, {"exits": []}, {"thieves": []}))


class Program(Case):
    """The whole, as users have it."""

    def run_it(self, *arguments, status=0):
        done = subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "VPERF_BENCH_LOCK": str(self.place / "lock")})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def write_plan(self, text):
        file = self.place / "plan.toml"
        file.write_text(text)
        return file

    def test_from_plan_to_report(self):
        plan = self.write_plan("repeats = 2\nleast-free = 0\n" + bench.HEAD + f"[configuration.a]\ndirectory = '{self.place}'\n"
                               f"[configuration.b]\ndirectory = '{self.place}'\n[test.t]\ncommand = 'sleep 0.1'\n"
                               "[test.n]\ncommand = 'echo 5 x'\nfigure = { pattern = '(5) x', unit = 'x', better = 'more' }\n")
        self.assertIn("8 steps: 2 configurations, 2 tests, 2 repeats; 0 boots", self.run_it("check", plan).stdout)
        out = self.place / "out"
        self.run_it("run", plan, "-o", out)
        self.assertIn("done", self.run_it("status", out).stdout)
        self.assertEqual(json.loads(self.run_it("status", "--json", out).stdout)["steps"], {"done": 8})
        results = json.loads(self.run_it("report", "--format", "json", out).stdout)
        cells = {(cell["test"], cell["configuration"]): cell for cell in results["cells"]}
        self.assertEqual(cells["n", "b"]["values"], [5, 5])
        self.assertEqual(cells["n", "b"]["verdict"], "no difference shown")
        self.assertEqual(len(self.run_it("report", "--format", "csv", out).stdout.splitlines()), 9)
        self.assertIn("Welch's t test", self.run_it("report", out).stdout)
        self.assertIn("Mann-Whitney", self.run_it("report", "--compare", "mann-whitney", "--baseline", "b", out).stdout)
        self.assertIn("is no configuration", self.run_it("report", "--baseline", "z", out, status=2).stderr)
        self.assertIn("is not empty", self.run_it("run", plan, "-o", out, status=2).stderr)
        self.run_it("resume", out)

    def test_killed_and_resumed(self):
        plan = self.write_plan("repeats = 2\nleast-free = 0\n" + bench.HEAD + f"[configuration.a]\ndirectory = '{self.place}'\n"
                               f"[test.t]\nprepare = 'touch {self.place}/began'\n"
                               f"command = 'while [ ! -e {self.place}/free ]; do sleep 0.05; done'\n")
        out, lock = self.place / "out", {**os.environ, "VPERF_BENCH_LOCK": str(self.place / "lock")}
        process = subprocess.Popen([sys.executable, str(PROGRAM), "run", str(plan), "-o", str(out)], env=lock,
                                   stderr=subprocess.DEVNULL)
        while not (self.place / "began").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        self.assertIn(f"{process.pid} {out}", self.run_it("run", plan, "-o", self.place / "other", status=1).stderr)
        self.assertIn(f"process {process.pid}", self.run_it("status", out).stdout)
        process.kill()
        process.wait()
        (self.place / "free").touch()
        self.assertIn("interrupted", self.run_it("status", out).stdout)
        self.assertIn("vperf-bench was killed during it", self.run_it("resume", out).stderr)
        self.assertEqual(json.loads(self.run_it("status", "--json", out).stdout)["steps"], {"done": 2})

    def test_lock_of_others(self):
        """Neither followed nor believed: in /run/lock anybody can make files."""
        plan = self.write_plan("least-free = 0\n" + bench.HEAD + f"[configuration.a]\ndirectory = '{self.place}'\n[test.t]\ncommand = 'true'\n")
        victim, lock, out = self.place / "victim", self.place / "lock", self.place / "out"
        victim.write_text("root's")
        lock.symlink_to(victim)
        self.assertIn("the lock cannot be opened", self.run_it("run", plan, "-o", out, status=1).stderr)
        self.assertEqual(victim.read_text(), "root's")
        lock.unlink()
        os.link(victim, lock)
        self.assertIn("the lock cannot be opened", self.run_it("run", plan, "-o", out, status=1).stderr)
        self.assertEqual(victim.read_text(), "root's")
        lock.unlink()
        self.run_it("run", plan, "-o", out)
        with open(lock, "r+") as handle:  # held by this process, but it names another pid
            fcntl.flock(handle, fcntl.LOCK_EX)
            handle.write(f"1 {out}\n")
            handle.flush()
            self.assertNotIn("process 1", self.run_it("status", out).stdout)
            handle.seek(0)
            handle.truncate()
            handle.write(f"{os.getpid()} {out}\n")
            handle.flush()
            self.assertIn(f"process {os.getpid()}", self.run_it("status", out).stdout)

    def test_lock_of_another_user(self):
        if os.geteuid():
            self.skipTest("needs root to make another user's file")
        plan = self.write_plan("least-free = 0\n" + bench.HEAD + f"[configuration.a]\ndirectory = '{self.place}'\n[test.t]\ncommand = 'true'\n")
        (self.place / "lock").write_text("")
        os.chown(self.place / "lock", 65534, 65534)
        self.assertIn("not a regular file of root's", self.run_it("run", plan, "-o", self.place / "out", status=1).stderr)

    def test_wrong_usage(self):
        self.run_it(status=2)
        self.assertIn("there is no benchmark", self.run_it("status", self.place, status=1).stderr)
        self.assertIn("expected one of", self.run_it("check", self.write_plan("[configuration.a]\ntracer = 'x'"), status=2).stderr)
        self.assertIn("vperf-flight", self.run_it("kinds").stdout)


if __name__ == "__main__":
    unittest.main()
