#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bootable entries in files of boot loaders, and the words of the systemd unit."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench  # noqa: F401 - the way to the modules
from vperfbench import boot

GRUB = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
fi
function load_video {
  insmod all_video
}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-1234' {
	load_video
	linux	/boot/vmlinuz-6.12.1-amd64 root=UUID=1234 ro quiet panic=5
	initrd	/boot/initrd.img-6.12.1-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1234' {
	menuentry 'Debian GNU/Linux, with Linux 6.12.1-amd64' --class debian $menuentry_id_option 'gnulinux-6.12.1-amd64-advanced-1234' {
		linux	/boot/vmlinuz-6.12.1-amd64 root=UUID=1234 ro quiet panic=5
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64 (recovery mode)' --class debian $menuentry_id_option 'gnulinux-6.1.0-9-amd64-recovery-1234' {
		linux	/boot/vmlinuz-6.1.0-9-amd64 root=UUID=1234 ro single
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64' --class debian $menuentry_id_option 'gnulinux-6.1.0-9-amd64-advanced-1234' {
		if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
		linux	/boot/vmlinuz-6.1.0-9-amd64 root=UUID=1234 ro quiet
	}
}
submenu 'Advanced options for Debian GNU/Linux (with Xen hypervisor)' $menuentry_id_option 'gnulinux-advanced-1234' {
submenu 'Xen hypervisor, version 4.17-amd64' $menuentry_id_option 'xen-hypervisor-4.17-amd64-1234' {
	menuentry 'Debian GNU/Linux, with Xen 4.17-amd64 and Linux 6.1.0-9-amd64' $menuentry_id_option 'xen-gnulinux-4.17-amd64-6.1.0-9-amd64-advanced-1234' {
		multiboot2	/boot/xen-4.17-amd64.gz placeholder
		module2	/boot/vmlinuz-6.1.0-9-amd64 placeholder root=UUID=1234 ro
		module2	--nounzip /boot/initrd.img-6.1.0-9-amd64
	}
}
}
"""


class Grub(unittest.TestCase):
    def test_entries(self):
        entries = boot.grub_entries(GRUB)
        self.assertEqual([(entry.kernel, entry.xen) for entry in entries],
                         [("6.12.1-amd64", False), ("6.12.1-amd64", False), ("6.1.0-9-amd64", False), ("6.1.0-9-amd64", True)])
        self.assertEqual(entries[0].id, "gnulinux-simple-1234")
        self.assertEqual(entries[2].id, "gnulinux-advanced-1234>gnulinux-6.1.0-9-amd64-advanced-1234")
        self.assertEqual(entries[3].id.count(">"), 2)
        self.assertIn("panic=5", entries[0].arguments)
        self.assertNotIn("panic=", entries[2].arguments)

    def test_pick(self):
        entries = boot.grub_entries(GRUB)
        self.assertIs(boot.pick(entries, "6.1.0-9-amd64", "", True), entries[3])
        self.assertIs(boot.pick(entries, "6.1.0-9-amd64", "", False), entries[2])
        self.assertIs(boot.pick(entries, "6.12.1-amd64", "Debian GNU/Linux, with Linux 6.12.1-amd64", False), entries[1])
        self.assertIs(boot.pick(entries, "6.12.1-amd64", "gnulinux-6.12.1-amd64-advanced-1234", False), entries[1])
        self.assertIsNone(boot.pick(entries, "5.10", "", False))

    def test_rubbish(self):
        for text in ("", "}\n}\n", "menuentry 'x' {\n", "menuentry 'x' {\nlinux /x\n}\n", "submenu 'a' {\n}\n"):
            self.assertEqual(boot.grub_entries(text), [])

    def test_cannot_write(self):
        """If GRUB cannot write its environment, it would boot a hanging kernel again and again."""
        with tempfile.TemporaryDirectory() as name, mock.patch.object(boot, "program", lambda program: program):
            (Path(name) / "grub.cfg").write_text(GRUB)
            for told, fault in (("ext4 /dev/vda1", ""), ("btrfs /dev/vda1", "cannot write"), ("ext4 /dev/mapper/vg-root", "cannot write"),
                                ("", "cannot write")):
                with mock.patch("subprocess.run", return_value=mock.Mock(stdout=told + "\n")):
                    self.assertIn(fault, boot.Grub(Path(name)).fault())
                    self.assertEqual(bool(fault), bool(boot.Grub(Path(name)).fault()))
            (Path(name) / "grub.cfg").write_text("menuentry 'x' {\n}\n")
            self.assertIn("does not heed", boot.Grub(Path(name)).fault())


class Loader(unittest.TestCase):
    def test_entries(self):
        entries = boot.loader_entries({
            "b.conf": "title Debian\nversion 6.12.1-amd64\nlinux /x/linux\noptions root=/dev/vda1 panic=5\n",
            "a.conf": "title Old\nlinux /vmlinuz-6.1.0-9-amd64\n", "efi.conf": "title Shell\nefi /shell.efi\n"})
        self.assertEqual([(entry.id, entry.kernel) for entry in entries], [("a.conf", "6.1.0-9-amd64"), ("b.conf", "6.12.1-amd64")])


class Machine(unittest.TestCase):
    """The loader that is used on a machine with files of both."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.variables = self.root / "efivars"
        self.variables.mkdir()
        for name, value in (("EFI_VARIABLES", self.variables), ("program", lambda program: program)):
            patch = mock.patch.object(boot, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def add(self, *files):
        for name in files:
            (self.root / name).parent.mkdir(parents=True)
            (self.root / name).write_text("title Debian\nversion 6.1\nlinux /vmlinuz\n")

    def say(self, text):
        (self.variables / f"LoaderInfo-{boot.VENDOR}").write_bytes(b"\6\0\0\0" + (text + "\0").encode("utf-16-le"))

    def test_none(self):
        self.assertIsNone(boot.find(self.root))

    def test_both(self):
        self.add("boot/grub/grub.cfg", "efi/loader/entries/a.conf")
        self.assertEqual(boot.find(self.root).name, "grub")
        self.say("rEFInd 0.13")
        self.assertEqual(boot.find(self.root).name, "grub")
        self.say("systemd-boot 252.39-1~deb12u2")
        loader = boot.find(self.root)
        self.assertEqual((loader.name, loader.fault(), [entry.kernel for entry in loader.entries()]), ("systemd-boot", "", ["6.1"]))

    def test_another_booted(self):
        self.add("boot/efi/loader/entries/a.conf")
        self.assertIn("another loader booted this machine", boot.find(self.root).fault())
        self.say("systemd-boot 252")
        with mock.patch.object(boot, "program", lambda program: None):
            self.assertIn("bootctl is missing", boot.find(self.root).fault())

    def test_once(self):
        self.add("efi/loader/entries/a.conf")
        self.say("systemd-boot 252")
        loader = boot.find(self.root)
        with mock.patch.object(boot, "_run") as run:
            loader.once(loader.entries()[0])
            self.assertEqual(run.call_args.args, ("bootctl", "set-oneshot", "a.conf"))
            loader.forget()  # nothing is to be forgotten, and bootctl would fail
            self.assertEqual(run.call_count, 1)
            (self.variables / f"LoaderEntryOneShot-{boot.VENDOR}").touch()
            loader.forget()
            self.assertEqual(run.call_args.args, ("bootctl", "set-oneshot", ""))


class Unit(unittest.TestCase):
    def test_words(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(boot, "UNITS", Path(name)), \
                mock.patch.object(boot, "_run") as run:
            (Path(name) / "multi-user.target.wants").mkdir()
            boot.install_unit(["/usr/bin/python3", "/usr/bin/vperf-bench", "resume"], Path('/a 100 %/"b"$c'))
            text = (Path(name) / boot.UNIT).read_text()
            self.assertIn('ExecStart="/usr/bin/python3" "/usr/bin/vperf-bench" "resume"\n', text)
            self.assertIn('RequiresMountsFor="/a 100 %%/\\"b\\"$$c"\n', text)
            boot.remove_unit()
            self.assertEqual(list(Path(name).iterdir()), [Path(name) / "multi-user.target.wants"])
            self.assertEqual(run.call_args_list[-2].args, ("systemctl", "disable", "--quiet", boot.UNIT))


if __name__ == "__main__":
    unittest.main()
