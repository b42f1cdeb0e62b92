#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans: what is understood, what is refused and in which words, and in which order steps are done."""
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from unittest import mock

import bench
from vperfbench import boot, environment, feasible, order
from vperfbench.common import PlanError
from vperfbench.plan import load

SMALL = "[configuration.a]\n[test.t]\ncommand = 'true'\n"


class Refused(unittest.TestCase):
    def refused(self, text, sentence):
        with self.assertRaises(PlanError) as caught:
            bench.plan_of(text)
        self.assertIn(sentence, str(caught.exception))
        self.assertTrue(str(caught.exception).startswith("p.toml: "))
        self.assertNotIn("\n", str(caught.exception))

    def test_sentences(self):
        for text, sentence in (
                ("", "configuration: there is none"),
                ("[configuration.a]", "test: there is none"),
                ("a = ", "this is no TOML"),
                (SMALL + "[extra]", "p.toml: extra: is unknown"),
                ("colour = 1\n" + SMALL, "p.toml: colour: is unknown: expected one of name, "),
                ("repeat = 1\n" + SMALL, "p.toml: repeat: is unknown: did you mean 'repeats'?"),
                ("repeats = 0\n" + SMALL, "repeats: expected a number from 1 to 1000, not 0"),
                ("repeats = 2.5\n" + SMALL, "repeats: expected a whole number"),
                ("repeats = true\n" + SMALL, "repeats: expected a number"),
                ("repeats = 5\nrounds = 2\n" + SMALL, "rounds: 5 repeats do not divide into 2 rounds"),
                ("baseline = 'b'\n" + SMALL, "baseline: 'b' is unknown: expected one of a"),
                ("compare = 'anova'\n" + SMALL, "compare: 'anova' is unknown"),
                ("on-failure = 'panic'\n" + SMALL, "on-failure: 'panic' is unknown: expected one of go-on, again, stop"),
                ("least-free = 'much'\n" + SMALL, "least-free: expected a size"),
                ("[configuration.x]\nwhere = 'xen-dom0'\ndisk = '/dev/sda'\n" + SMALL, "x.disk: is for where = kvm-guest or xen-guest, and this is xen-dom0"),
                ("[configuration.x]\nwhere = 'xen-guest'\nguest-cpu = 'max'\n" + SMALL, "x.guest-cpu: is for where = kvm-guest, and this is xen-guest"),
                ("[configuration.x]\nwhere = 'xen-guest'\nguest-type = 'qemu'\n" + SMALL, "x.guest-type: 'qemu' is unknown: expected one of pv, pvh, hvm"),
                ("[configuration.x]\nwhere = 'kvm-guest'\nprograms = ['tar']\n" + SMALL, "x.programs: is for where = xen-guest, and this is"),
                ("configuration = 3\n[test.t]\ncommand = 'x'", "configuration: expected a table"),
                (SMALL + "[configuration.'a b']", "configuration.a b: a name has"),
                (SMALL + "[configuration.b]\nwhere = 'moon'", "configuration.b.where: 'moon' is unknown"),
                (SMALL + "[configuration.b]\ntracer = 'strace'", "configuration.b.tracer: 'strace' is unknown"),
                (SMALL + "[configuration.b]\nvcpus = 2", "configuration.b.vcpus: is for where = kvm-guest or xen-guest"),
                (SMALL + "[configuration.b]\ncpus = 'all'", "configuration.b.cpus: expected a list such as 0-3,8"),
                (SMALL + "[configuration.b]\nboot-entry = 'x'", "configuration.b.boot-entry: needs the kernel"),
                (SMALL + "[configuration.b]\ntracer-options = '-e x'", "tracer-options: there is no tracer"),
                (SMALL + "[configuration.b]\nwhere = 'kvm-guest'\nmemory = '1M'", "no guest boots"),
                (SMALL + "[test.u]", "test.u.command: is missing"),
                (SMALL + "[test.u]\nuse = 'quake'", "test.u.use: 'quake' is unknown"),
                (SMALL + "[test.u]\ncommand = 'x'\ncache = ['warm']", "test.u.cache: 'warm' is unknown"),
                (SMALL + "[test.u]\ncommand = 'x'\ncache = []", "test.u.cache: expected hot, cold or both"),
                (SMALL + "[test.u]\ncommand = 'x'\nfigure = { pattern = '(' }", "test.u.figure.pattern: is no regular"),
                (SMALL + "[test.u]\ncommand = 'x'\nfigure = { pattern = 'x' }", "test.u.figure.pattern: expected one group"),
                (SMALL + "[test.u]\ncommand = 'x'\nfigure = 'fps'", "test.u.figure: 'fps' is unknown"),
                (SMALL + "[test.u]\ncommand = 'x'\ntime-limit = -1", "test.u.time-limit: expected a number")):
            with self.subTest(sentence):
                self.refused(text, sentence)

    def test_too_many_steps(self):
        many = "".join(f"[configuration.c{i}]\n" for i in range(200)) + "[test.t]\ncommand = 'x'"
        self.refused("repeats = 1000\n" + many, "this would be 200000 steps")

    def test_figure_of_a_ready_made_test(self):
        """It has one, and may be given another."""
        for more, figure in (("", "elapsed"), ("figure = 'cpu'", "cpu")):
            self.assertEqual(bench.plan_of("[configuration.a]\n[test.t]\nuse = 'compile'\n" + more).tests["t"].figure.kind, figure)

    def test_no_file(self):
        with self.assertRaisesRegex(PlanError, "cannot be read: No such file"):
            load(Path("/nonexistent/plan.toml"))


class Feasible(unittest.TestCase):
    """Checks that depend on the machine."""

    def refused(self, text, sentence, programs=("sh",), may_reboot=False, root=True):
        with mock.patch.object(feasible, "program", lambda name: name if name in programs else None), \
                mock.patch("os.geteuid", return_value=0 if root else 1000):
            with self.assertRaises(PlanError) as caught:
                feasible.check(bench.plan_of("least-free = 0\n" + text), may_reboot)
        self.assertIn(sentence, str(caught.exception))

    def test_sentences(self):
        self.refused(SMALL + "[test.d]\nuse = 'dbench'", "test.d.use: 'dbench' is not installed (Debian package dbench)")
        self.refused(SMALL + "[configuration.b]\ntracer = 'lttng'", "configuration.b.tracer: 'lttng' is not installed")
        self.refused(SMALL + "[configuration.b]\ntracer = 'perf-kvm'", "only root can use perf-kvm", ("perf",), root=False)
        self.refused(SMALL + "[configuration.b]\ncpus = '4095'", "configuration.b.cpus: there are", ("taskset",))
        self.refused(SMALL + "[configuration.b]\ndirectory = '/proc/nowhere'", "configuration.b.directory:")
        self.refused(SMALL + "[configuration.b]\nkernel = '1.2.3'", "configuration.a.kernel: is missing, where")
        self.refused("[configuration.b]\nkernel = '1.2.3'\n[test.t]\ncommand = 'x'", "say --may-reboot if it may")
        self.refused("governor = 'loud'\n" + SMALL, "governor: 'loud' is none of this machine's")
        self.refused(SMALL + "[configuration.g]\nwhere = 'kvm-guest'\nguest-kernel = '/nonexistent'", "configuration.g.")

    def test_module_of_a_tracer(self):
        """LTTng's programs are of no use where its modules are not: for the kernel that runs, or that is to be booted."""
        traced = "[configuration.b]\ntracer = 'lttng'"
        with mock.patch.object(feasible.subprocess, "run", return_value=mock.Mock(returncode=1)) as run:
            with mock.patch("platform.release", return_value="6.1-x"):
                self.refused(SMALL + traced, "configuration.b.tracer: kernel 6.1-x has no module lttng-tracer (package lttng-modules-dkms", ("lttng", "modinfo"))
                self.assertEqual(run.call_args.args[0], ["modinfo", "-k", "6.1-x", "-n", "lttng-tracer"])
                self.refused(SMALL + traced, "kernel 6.1-x has no module", ("lttng",))
            with mock.patch("os.path.exists", return_value=True):  # loaded modules are those of the running kernel only
                self.refused(traced + "\nkernel = '6.12-y'\n[test.t]\ncommand = 'x'", "kernel 6.12-y has no module", ("lttng", "modinfo"), True)
                with mock.patch.object(feasible, "program", lambda name: name), mock.patch("os.geteuid", return_value=0):
                    feasible.check(bench.plan_of("least-free = 0\n" + SMALL + traced), False)

    def test_kernels_that_are_not_there(self):
        """An entry that the boot loader lacks is rejected with a list of its entries; Xen with a kernel is a separate entry."""
        entries = [boot.Entry("a", "Debian", "6.1", False, "quiet"), boot.Entry("b", "with Xen", "6.1", True, "panic=5")]
        loader = mock.Mock(entries=lambda: entries, fault=lambda: "")
        loader.name = "grub"
        one, test = "[configuration.a]\nkernel = '{}'\n{}\n", "[test.t]\ncommand = 'x'"
        there = ("sh", "systemctl")
        with mock.patch.object(boot, "find", lambda: loader), mock.patch.object(Path, "is_dir", lambda path: True):
            known = "; its kernels are: 6.1, 6.1 under Xen"
            self.refused(one.format("5.0", "") + test, "configuration.a.kernel: grub has no entry with kernel 5.0" + known, there, True)
            self.refused(one.format("6.1", "boot-entry = 'c'") + test, "configuration.a.boot-entry: grub has no entry 'c'" + known, there, True)
            self.refused(one.format("5.0", "where = 'xen-dom0'") + test, "grub has no entry with kernel 5.0 under Xen" + known, there, True)
            self.refused(one.format("6.1", "where = 'xen-dom0'") + test, "only root can reboot", (), True)
            with mock.patch.object(feasible, "program", lambda name: name), mock.patch("os.geteuid", return_value=0):
                for where, count in (("machine", 1), ("xen-dom0", 0)):  # a note about the entry that would wait for a key
                    notes = feasible.check(bench.plan_of("least-free = 0\n" + one.format("6.1", f"where = '{where}'") + test), True)
                    self.assertEqual(sum("has no panic=SECONDS" in note for note in notes), count)
            loader.fault = lambda: "GRUB cannot write to /boot/grub"
            self.refused(one.format("6.1", "") + test, "configuration.a.kernel: GRUB cannot write", there, True)
        with mock.patch.object(boot, "find", lambda: None), mock.patch.object(Path, "is_dir", lambda path: True):
            self.refused(one.format("6.1", "") + test, "no boot loader was found", there, True)

    def test_xen(self):
        for kind, features, dom0 in (("xen", "00002f05", True), ("xen", "00002705", False), ("xen", "what", False), ("", "", False)):
            with self.subTest(features), tempfile.TemporaryDirectory() as name, mock.patch.object(environment, "HYPERVISOR", Path(name)):
                (Path(name) / "properties").mkdir()
                (Path(name) / "type").write_text(kind)
                (Path(name) / "properties/features").write_text(features)
                self.assertEqual(environment.under_xen(), dom0)
        for here, where, sentence in ((True, "machine", "this machine is the dom0 of a Xen: expected xen-dom0"),
                                      (True, "kvm-guest", "this machine is the dom0"), (False, "xen-dom0", "this machine is not the dom0 of a Xen")):
            with self.subTest(where), mock.patch.object(feasible, "under_xen", lambda here=here: here):
                self.refused(f"[configuration.a]\nwhere = '{where}'\n[test.t]\ncommand = 'x'", f"configuration.a.where: {sentence}")


class Order(unittest.TestCase):
    def test_everything_once(self):
        plan = bench.plan_of("repeats = 6\nrounds = 3\n" + bench.KERNELS + "cache = ['hot', 'cold']")
        steps = order.make(plan)
        self.assertEqual([step.number for step in steps], list(range(36)))
        counts = Counter((step.configuration, step.cache, step.repeat) for step in steps)
        self.assertEqual(set(counts.values()), {1})

    def test_few_boots(self):
        steps = order.make(bench.plan_of("repeats = 6\nrounds = 3\n" + bench.KERNELS))
        boots = [(step.round, step.kernel) for step in steps]
        changes = sum(one != other for one, other in zip(boots, boots[1:]))
        self.assertEqual(changes + 1, 6)

    def test_seed(self):
        def titles(seed):
            return [(s.configuration, s.repeat) for s in order.make(bench.plan_of(f"seed = {seed}\n" + bench.KERNELS))]
        self.assertEqual(titles(1), titles(1))
        self.assertNotEqual(titles(1), titles(2))
        self.assertNotEqual(titles(1), sorted(titles(1)))


if __name__ == "__main__":
    unittest.main()
