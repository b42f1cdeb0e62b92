#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A Xen guest, as far as testable without Xen: its initramfs, its xl.cfg, its console output."""
import base64
import json
import os
import pty
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import bench
from vperfbench import xendisk, xenguest
from vperfbench.common import BenchError

GUEST = "[configuration.g]\nwhere = 'xen-guest'\nmemory = '256M'\nvcpus = 2\ncpus = '1-2'\nguest-config = 'a = 1'\n[test.t]\ncommand = 'true'\n"


class Packed(unittest.TestCase):
    def test_measure_runs_with_no_more_than_that(self):
        """In a root that has nothing else."""
        if os.geteuid() != 0 or not Path("/bin/busybox").exists():
            self.skipTest("only root can change its root, and needs busybox there")
        python = os.path.realpath(sys.executable)
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            files = xenguest.packed([*xenguest._python(python), Path("/usr/bin/gzip")])
            files["/bin/sh"] = Path("/bin/busybox").read_bytes()
            files["/measure.py"] = (bench.SOURCE / "vperfbench/measure.py").read_bytes()
            spec = {"command": "/usr/bin/gzip --version", "directory": "/", "limit": 20, "scale": 1, "stdout": "/out", "stderr": "/err",
                    "result": "/result"}
            files["/spec.json"] = json.dumps(spec).encode()
            subprocess.run(["busybox", "cpio", "-idm"], cwd=root, input=xenguest.initramfs(files), check=True)
            (root / "dev").mkdir(exist_ok=True)
            (root / "dev/null").touch()
            done = subprocess.run(["chroot", name, python, *xenguest.PYTHON, "/measure.py", "/spec.json"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads((root / "result").read_text())["status"], 0)
            self.assertIn("gzip", (root / "out").read_text())

    def test_settings(self):
        own = bench.plan_of(GUEST).configurations["g"]
        text = xenguest.XenGuest(own, [], Path('/a "b"'), Path("/image")).settings()
        for line in ('type = "pvh"', "memory = 256", "vcpus = 2", 'cpus = "1-2"', "a = 1", 'ramdisk = "/a \\"b\\"/initramfs"'):
            self.assertIn(line + "\n", text)

    def test_xl_that_fails(self):
        """The message has the cause first, then the consequence."""
        with tempfile.TemporaryDirectory() as name:
            xl = Path(name) / "xl"
            xl.write_text("#!/bin/sh\nfor what in no-memory b c d e f; do echo $what >&2; done\nexit 3\n")
            xl.chmod(0o755)
            guest = xenguest.XenGuest(bench.plan_of(GUEST).configurations["g"], [], Path(name), Path("/image"))
            with mock.patch.object(xenguest, "program", lambda _: str(xl)), \
                    self.assertRaisesRegex(BenchError, r"^xl create ended with status 3: no-memory \| b \| c$"):
                guest._xl("create")

    def test_faults(self):
        own = bench.plan_of(GUEST + "[configuration.h]\nwhere = 'xen-guest'\nprograms = ['no-such']\n"
                            "[configuration.m]\nwhere = 'xen-guest'\nguest-type = 'hvm'\n").configurations
        with mock.patch.object(xenguest, "program", lambda name: None if name in ("xl", "no-such") else name):
            self.assertEqual(xenguest.fault(own["g"], [])[0], "where")
        with mock.patch.object(xenguest, "program", lambda name: None if name == "no-such" else name), \
                mock.patch.object(xenguest.os, "access", lambda path, mode: True):
            self.assertEqual(xenguest.fault(own["g"], ["tar"]), ("", ""))
            self.assertEqual(xenguest.fault(own["h"], []), ("programs", "'no-such' is not installed"))
            for models, key in (([], "guest-type"), ([Path("/m")], "")):
                with mock.patch.object(xenguest, "_device_models", lambda found=models: found):
                    self.assertEqual(xenguest.fault(own["m"], [])[0], key)

    def test_kernel_of_another_boot(self):
        """The guest's is the one that the machine will have been booted with."""
        own = bench.plan_of(GUEST.replace("vcpus = 2", "kernel = '6.1-x'")).configurations["g"]
        self.assertEqual(xenguest.kernel_of(own), Path("/boot/vmlinuz-6.1-x"))


class Disk(unittest.TestCase):
    """With programs that only note how they were called."""

    def setUp(self):
        place = tempfile.TemporaryDirectory(dir=bench.MEMORY)
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        for name in ("mke2fs", "losetup"):
            (self.place / name).write_text(f'#!/bin/sh\n[ ! -e {self.place}/broken ] || {{ echo full >&2; exit 1; }}\n'
                                           f'echo "{name} $*" >> {self.place}/calls\n[ "$1" != --find ] || echo /dev/loop7\n')
            (self.place / name).chmod(0o755)
        held = mock.patch.object(xendisk, "program", lambda name: str(self.place / name))
        held.start()
        self.addCleanup(held.stop)

    def disk(self, key):
        own = bench.plan_of(GUEST.replace("vcpus = 2", f"disk-size = '3M'\n{key}")).configurations["g"]
        return own, xendisk.Disk(own, self.place / "image")

    def calls(self):
        return (self.place / "calls").read_text().splitlines() if (self.place / "calls").exists() else []

    def test_memory(self):
        """The default: no disk at all."""
        own, disk = self.disk("")
        disk.attach()
        disk.detach()
        self.assertEqual((own.disk, disk.modules, disk.settings(), self.calls(), xendisk.fault(own)), ("memory", (), {}, [], ("", "")))

    def test_file(self):
        own, disk = self.disk("disk = 'virtual'")
        self.assertEqual((xendisk.fault(own), disk.settings(), disk.modules), (("", ""), {}, ("xen-blkfront", "ext4")))
        disk.attach()
        image = self.place / "image"
        self.assertEqual(image.stat().st_size, 3 << 20)
        self.assertEqual(disk.settings(), {"disk": ["phy:/dev/loop7,xvda,w"]})
        guest = xenguest.XenGuest(own, [], self.place, image)
        guest.disk = disk
        self.assertIn('disk = ["phy:/dev/loop7,xvda,w"]\n', guest.settings())
        disk.detach()
        disk.detach()
        self.assertFalse(image.exists())
        self.assertEqual(self.calls(), [f"mke2fs -q -F -t ext4 {image}", f"losetup --find --show {image}", "losetup -d /dev/loop7"])

    def test_block_device(self):
        own, disk = self.disk("disk = '/dev/sda'")
        disk.attach()
        self.assertEqual(disk.settings(), {"disk": ["phy:/dev/sda,xvda,w"]})
        disk.detach()
        self.assertEqual(self.calls(), ["mke2fs -q -F -t ext4 /dev/sda"])
        with mock.patch.object(Path, "is_block_device", lambda path: str(path) == "/dev/sda"):
            self.assertEqual(xendisk.fault(own), ("", ""))
            self.assertEqual(xendisk.fault(self.disk("disk = '/etc'")[0]), ("disk", "'/etc' is neither memory, virtual, nor a block device"))

    def test_faults(self):
        for missing, disk, reason in (("losetup", "virtual", "losetup is not installed (Debian package mount)"), ("losetup", "memory", ""),
                                      ("mke2fs", "virtual", "mke2fs is not installed (Debian package e2fsprogs)")):
            with mock.patch.object(xendisk, "program", lambda name: None if name == missing else name):
                self.assertEqual(xendisk.fault(self.disk(f"disk = '{disk}'")[0])[1], reason)

    def test_no_file_system(self):
        """The image is removed again."""
        (self.place / "broken").touch()
        _, disk = self.disk("disk = 'virtual'")
        with self.assertRaisesRegex(BenchError, "^mke2fs ended with status 1: full$"):
            disk.attach()
        disk.detach()
        self.assertFalse((self.place / "image").exists())


class Console(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(dir=bench.MEMORY)
        self.addCleanup(place.cleanup)
        self.share = Path(place.name)
        self.guest, near = pty.openpty()
        self.console = xenguest.Console(os.ttyname(near), self.share)
        self.console.start()

    def tearDown(self):
        self.console.ended = True
        self.console.join()

    def wait(self, name):
        for _ in range(1000):
            if (self.share / name).exists():
                return (self.share / name).read_bytes()
            time.sleep(0.01)
        self.fail(f"there is no {name}")

    def test_a_step(self):
        os.write(self.guest, b"a kernel's words\n@re")
        os.write(self.guest, b"ady\r\n")
        self.wait("ready")
        self.assertEqual(self.wait("console"), b"a kernel's words\n")
        (self.share / "go").touch()
        self.assertEqual(os.read(self.guest, 3), b"go\n")
        for name, data in (("stdout", b"\0\xff" * 2000), ("measured.json", b"{}")):
            os.write(self.guest, b"@" + name.encode() + b" " + base64.b64encode(data) + b"\n")
            self.assertEqual(self.wait(name), data)
        self.assertEqual(os.read(self.guest, 4), b"end\n")

    def test_lies(self):
        """Names that it has no business with, and what is no base64."""
        os.write(self.guest, b"@../x aaaa\n@stdout a\xff*\n")
        self.assertEqual(self.wait("failed"), b"what the guest sent as 'stdout' was damaged")
        self.assertFalse((self.share.parent / "x").exists())


if __name__ == "__main__":
    unittest.main()
