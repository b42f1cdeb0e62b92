#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The state machine: boots, kernels that do not come up, power cuts at every moment, full disks, requests to stop."""
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench
from vperfbench import runner, state as states
from vperfbench.common import BenchError
from vperfbench.runner import Runner
from vperfbench.state import Lock, State


class Case(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(dir=bench.MEMORY)
        self.addCleanup(place.cleanup)
        self.directory = Path(place.name) / "out"
        silent = mock.patch.object(runner, "say", lambda text: None)
        silent.start()
        self.addCleanup(silent.stop)

    def start(self, text, machine):
        self.plan = bench.plan_of(text)
        runner.start(self.plan, self.directory, machine, any(c.kernel for c in self.plan.configurations.values()))

    def go(self, machine, boots=50):
        """As the unit does after each boot: from what is on disk, to the end."""
        for _ in range(boots):
            state = State.load(self.directory)
            if state.phase in ("done", "stopped"):
                return state
            if state.phase != "booting":
                state.enter("running")
            self.runner = Runner(self.plan, state, machine)
            self.runner.go()
        self.fail(f"no end: {machine.log}")


class Boots(Case):
    def test_each_step_on_its_kernel(self):
        machine = bench.FakeMachine("5.10")
        self.start("repeats = 4\nrounds = 2\n" + bench.KERNELS, machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts()), ("done", {"done": 12}))
        wanted = {"old": "6.1", "new": "6.12", "traced": "6.12"}
        ran = [entry for entry in machine.log if entry[0] in wanted]
        self.assertTrue(all(wanted[name] == kernel for name, kernel in ran))
        # Two kernels in each of two rounds, and back to what it was.
        self.assertEqual(sum(entry[0] == "booted" for entry in machine.log), 5)
        self.assertEqual((machine.here, machine.unit, machine.once), ("5.10", False, None))

    def test_no_boot_without_need(self):
        machine = bench.FakeMachine("6.1")
        self.start("[configuration.a]\n[test.t]\ncommand = 'x'", machine)
        self.assertEqual(self.go(machine).counts(), {"done": 5})
        self.assertNotIn("booted", [entry[0] for entry in machine.log])

    def test_wrong_kernel(self):
        for choice, phase, boots, done in (("go-on", "done", 1, 5), ("again", "done", 2, 5), ("stop", "stopped", 1, None)):
            with self.subTest(choice):
                machine = bench.FakeMachine("6.1", boots={"6.12": "6.1"})
                self.directory = self.directory.with_name(choice)
                self.start(f"on-wrong-kernel = '{choice}'\n" + bench.KERNELS, machine)
                state = self.go(machine)
                self.assertEqual(state.phase, phase)
                self.assertEqual(sum(entry[0] == "booted" for entry in machine.log) >= boots, True)
                self.assertNotIn("new", [entry[0] for entry in machine.log])
                if done:
                    self.assertEqual(state.counts(), {"done": done, "left-out": 10})
                    self.assertIn("the machine came back with 6.1", next(
                        step["why"] for step in state.steps if step["status"] == "left-out"))
                self.assertIn("asked for kernel 6.12, the machine came back with 6.1", state.values["events"][0]["text"])
                self.assertFalse(machine.unit)

    def test_xen_is_another_boot(self):
        machine = bench.FakeMachine("6.1")
        self.start("[configuration.bare]\nkernel = '6.1'\n[configuration.dom0]\nkernel = '6.1'\nwhere = 'xen-dom0'\n"
                   "[test.t]\ncommand = 'x'", machine)
        seen = []
        machine.work = lambda job: seen.append((job.configuration.name, machine.xen)) or {"figure": 1}
        self.assertEqual(self.go(machine).counts(), {"done": 10})
        self.assertEqual(set(seen), {("bare", False), ("dom0", True)})

    def test_back_from_xen(self):
        """The usual kernel, but under Xen, is not what the machine was found with."""
        for under in (False, True):
            machine = bench.FakeMachine("6.1")
            machine.usual_xen = machine.xen = under
            self.directory = self.directory.with_name(f"xen-{under}")
            self.start("[configuration.bare]\nkernel = '6.1'\n[configuration.dom0]\nkernel = '6.1'\nwhere = 'xen-dom0'\n"
                       "[test.t]\ncommand = 'x'", machine)
            self.assertEqual(self.go(machine).phase, "done")
            self.assertEqual((machine.here, machine.xen, machine.once), ("6.1", under, None))

    def test_xen_that_does_not_come_up(self):
        machine = bench.FakeMachine("6.1")
        machine.no_xen = True
        self.start("[configuration.bare]\nkernel = '6.1'\n[configuration.dom0]\nkernel = '6.1'\nwhere = 'xen-dom0'\n"
                   "[test.t]\ncommand = 'x'", machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts()), ("done", {"done": 5, "left-out": 5}))
        self.assertEqual({step["why"] for step in state.steps if step["status"] == "left-out"},
                         {"kernel 6.1 under Xen did not come up: the machine came back with 6.1"})

    def test_power_cuts(self):
        """In each step, one after another: nothing is lost but that step, which is done again."""
        for cut in range(1, 16):
            machine, runs = bench.FakeMachine("5.10"), []

            def work(job, machine=machine, runs=runs, cut=cut):
                runs.append(job.configuration.name)
                if len(runs) == cut:
                    raise bench.PowerCut
                return {"figure": 1}

            machine.work = work
            self.directory = self.directory.with_name(f"cut-{cut}")
            self.start(bench.KERNELS, machine)
            with self.assertRaises(bench.PowerCut):
                self.go(machine)
            self.assertTrue(machine.unit)
            machine.restart()
            state = self.go(machine)
            self.assertEqual((state.counts(), len(runs)), ({"done": 15}, 16))
            self.assertEqual(len(state.values["events"]), 1)
            self.assertIn("the machine went down during it", state.values["events"][0]["text"])

    def test_power_cut_while_the_state_is_written(self):
        """The file of the state is the old or the new one at any moment."""
        machine = bench.FakeMachine("6.1")
        self.start("[configuration.a]\n[test.t]\ncommand = 'x'", machine)
        before = (self.directory / "state.json").read_bytes()
        for call in ("os.fsync", "os.replace"):
            with mock.patch(f"vperfbench.common.{call}", side_effect=bench.PowerCut):
                with self.assertRaises(bench.PowerCut):
                    State.load(self.directory).enter("stopped", "x" * 100000)
            self.assertEqual((self.directory / "state.json").read_bytes(), before)
        self.assertEqual(self.go(machine).counts(), {"done": 5})

    def test_shutdown(self):
        """Rebooted by another user in the middle of a step: nothing is restored, and the step is repeated."""
        machine, jobs = bench.FakeMachine("5.10"), []

        def work(job):
            jobs.append(job.configuration.name)
            if len(jobs) == 3:
                machine.down = True
                self.runner.signalled()
            return {"figure": 1}

        machine.work = work
        self.start(bench.KERNELS, machine)
        with self.assertRaises(runner.GoingDown):
            self.go(machine)
        self.assertEqual((machine.unit, State.load(self.directory).counts()), (True, {"done": 2, "running": 1, "pending": 12}))
        machine.down = False
        machine.restart()
        self.assertEqual((self.go(machine).counts(), len(jobs)), ({"done": 15}, 16))

    def test_signals_of_its_own_reboot(self):
        """systemd ends the program that asked for a reboot: that is no request to stop."""
        machine = bench.FakeMachine("5.10")
        reboot = machine.reboot

        def slow():
            machine.down = True
            self.runner.signalled()
            machine.down = False
            reboot()

        machine.reboot = slow
        self.start(bench.KERNELS, machine)
        self.assertEqual(self.go(machine).counts(), {"done": 15})

    def test_step_that_always_kills_the_machine(self):
        machine = bench.FakeMachine("6.1")

        def work(job):
            if job.configuration.name == "b":
                raise bench.PowerCut
            return {"figure": 1}

        machine.work = work
        self.start("repeats = 1\n[configuration.a]\n[configuration.b]\n[test.t]\ncommand = 'x'", machine)
        for _ in range(3):
            with self.assertRaises(bench.PowerCut):
                self.go(machine)
            machine.restart()
        state = self.go(machine)
        self.assertEqual(state.counts(), {"done": 1, "failed": 1})


class Trouble(Case):
    SMALL = "repeats = 3\n[configuration.a]\n[test.t]\ncommand = 'x'"

    def test_failures(self):
        for choice, counts, runs in (("go-on", {"failed": 3}, 3), ("again", {"failed": 3}, 6),
                                     ("stop", {"failed": 1, "pending": 2}, 1)):
            with self.subTest(choice):
                machine = bench.FakeMachine()

                def work(job):
                    raise bench.StepFailed("the figure cannot be read")

                machine.work = work
                self.directory = self.directory.with_name(choice)
                self.start(f"on-failure = '{choice}'\n" + self.SMALL, machine)
                state = self.go(machine)
                self.assertEqual(state.counts(), counts)
                self.assertEqual(sum(entry[0] == "a" for entry in machine.log), runs)

    def test_full_disk(self):
        machine = bench.FakeMachine()

        def work(job):
            machine.left = 1 << 20
            return {"figure": 1}

        machine.work = work
        self.start(self.SMALL, machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts()), ("stopped", {"done": 1, "pending": 2}))
        self.assertIn("is full", state.values["why"])

    def test_disk_full_in_a_step(self):
        machine = bench.FakeMachine(work=mock.Mock(side_effect=OSError(28, "No space left on device")))
        self.start(self.SMALL, machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts(), state.values["why"]), ("stopped", {"pending": 3}, "the disk is full"))

    def test_step_that_fails_for_want_of_space(self):
        """The program reports a different error; its files are removed to free space for the state."""
        machine = bench.FakeMachine()

        def work(job):
            (job.directory / "stdout").write_text("x")
            machine.left = 1000
            raise bench.StepFailed("the test ended with status 1: Killed")

        machine.work = work
        self.start("least-free = 0\n" + self.SMALL, machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts(), state.values["why"]), ("stopped", {"pending": 3}, "the disk is full"))
        self.assertEqual(list((self.directory / "steps").iterdir()), [])
        self.assertIn("Killed", state.values["events"][0]["text"])

    def test_no_space_at_all(self):
        """Files on disk stay, and all settings are restored."""
        machine = bench.FakeMachine()
        self.start(self.SMALL, machine)
        before = (self.directory / "state.json").read_bytes()
        with mock.patch.object(states, "write_json", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(BenchError, "state.json: cannot be written"):
                Runner(self.plan, State.load(self.directory), machine).go()
        self.assertEqual((self.directory / "state.json").read_bytes(), before)
        self.assertIn(("unprepared",), machine.log)
        with mock.patch.object(Path, "write_bytes", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(BenchError, "reserve: 1024 KiB cannot be kept in reserve"):
                State.load(self.directory).keep_reserve()

    def test_no_space_for_the_state(self):
        """The reserve frees enough space."""
        machine = bench.FakeMachine()
        self.start(self.SMALL, machine)
        state, write, full = State.load(self.directory), states.write_json, [OSError(28, "No space left on device")]

        def once(path, values):
            if full:
                raise full.pop()
            write(path, values)

        with mock.patch.object(states, "write_json", once):
            state.enter("stopped", "the disk is full")
        self.assertEqual(State.load(self.directory).phase, "stopped")
        self.assertFalse((self.directory / "reserve").exists())

    def test_stop_and_resume(self):
        machine = bench.FakeMachine()

        def work(job):
            (self.directory / "stop").touch()
            return {"figure": 1}

        machine.work = work
        self.start(self.SMALL, machine)
        self.assertEqual(self.go(machine).counts(), {"done": 1, "pending": 2})
        (self.directory / "stop").unlink()
        State.load(self.directory).enter("running")
        machine.work = lambda job: {"figure": 1}
        self.assertEqual(self.go(machine).counts(), {"done": 3})
        self.assertEqual(sum(entry[0] == "unprepared" for entry in machine.log), 2)

    def test_interrupted_by_hand(self):
        machine = bench.FakeMachine(work=mock.Mock(side_effect=KeyboardInterrupt))
        self.start(self.SMALL, machine)
        state = self.go(machine)
        self.assertEqual((state.phase, state.counts()), ("stopped", {"pending": 3}))


class Disk(Case):
    def test_damaged_state(self):
        self.directory.mkdir()
        for text, sentence in (("", "no state of a benchmark"), ("[]", "no state of a benchmark"),
                               ('{"version": 99, "steps": []}', "is of version 99")):
            (self.directory / "state.json").write_text(text)
            with self.assertRaisesRegex(BenchError, sentence):
                State.load(self.directory)

    def test_two_at_once(self):
        self.directory.mkdir()
        first = Lock(self.directory / "lock", Path("/somewhere"))
        with self.assertRaisesRegex(BenchError, f"process and directory: {os.getpid()} /somewhere"):
            Lock(self.directory / "lock", Path("/elsewhere"))
        first.close()
        Lock(self.directory / "lock", Path("/elsewhere")).close()


if __name__ == "__main__":
    unittest.main()
