"""A disk with a boot loader: Debian 12 with systemd, GRUB, two kernels, and a third that cannot come up.

The root is made by mmdebstrap, GRUB installs itself in a first boot that QEMU loads; then it is kept in the cache.
"""

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from . import kernels
from .common import LabError, cache_dir, locked, need_program, priority, publish, say
from .debian import PrivateApt

OFFSET, SIZE = 1 << 20, 1400 << 20
INCLUDE = "systemd-sysv,udev,kmod,initramfs-tools,grub-pc,python3,procps,util-linux,e2fsprogs"
SUITES = ("bookworm", "trixie")
BROKEN = "5.0-broken"  # Its file is a kernel; without an initramfs it finds no root, and panics.
MODULES = ("virtio_pci", "virtio_blk", "ext4")
FILES = {
    "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n",
    "etc/hostname": "bench\n",
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/default/grub": "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX=\"console=ttyS0 panic=5\"\n"
                        "GRUB_CMDLINE_LINUX_DEFAULT=\nGRUB_TERMINAL=console\nGRUB_DISABLE_OS_PROBER=true\n",
    "etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=auto\nKEYMAP=n\nCOMPRESS=gzip\nDEVICE=\nNFSROOT=auto\nRUNSIZE=10%\n",
    "etc/initramfs-tools/modules": "".join(f"{name}\n" for name in MODULES),
    "setup": """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mountpoint -q /dev || mount -t devtmpfs dev /dev
grub-install --target=i386-pc /dev/vda && update-grub && echo SETUP DONE
# What is put on the disk later must not be undone by its journal; this file is open, and has to stay.
sync; mount -o remount,ro /; echo o > /proc/sysrq-trigger; sleep 60
"""}
LINKS = {f"etc/systemd/system/{name}": "/dev/null" for name in (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer", "getty@tty1.service")}


def _run(*command: str, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise LabError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def file_system(image: Path) -> str:
    """What debugfs and mke2fs call the file system in an image."""
    return f"{image}?offset={OFFSET}"


def _debian() -> Path:
    """The root's packages, as a tar archive from the cache."""
    key = hashlib.sha256(INCLUDE.encode()).hexdigest()[:16]
    place = cache_dir("roots") / f"boot-{key}"

    def fill(work: Path) -> None:
        say("fetching the packages of a root with a boot loader")
        apt = PrivateApt("bookworm", kernels.AMD64)
        apt.update()
        _run(*priority(), need_program("mmdebstrap", "mmdebstrap"), "--quiet", "--variant=minbase", "--mode=root",
             f"--include={INCLUDE}", "bookworm", str(work / "root.tar"), *map(str, sorted((apt.dir / "sources").glob("*.sources"))))

    publish(place, "root-boot", "root.tar", False, fill)
    return place / "root.tar"


def _fill(root: Path) -> None:
    root.mkdir()
    _run("tar", "-x", "--numeric-owner", "--exclude=./dev/*", "-C", str(root), "-f", str(_debian()))
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="ascii")
    (root / "setup").chmod(0o755)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for suite in SUITES:
        kernel = kernels.get(suite, "cloud")
        shutil.copytree(kernel.modules.resolve(), root / "usr/lib/modules" / kernel.version, symlinks=True)
        shutil.copy2(kernel.image, root / f"boot/vmlinuz-{kernel.version}")
        config = kernel.root / f"boot/config-{kernel.version}"
        if config.exists():
            shutil.copy2(config, root / "boot")
        _run("chroot", str(root), "depmod", kernel.version)
        _run("chroot", str(root), "mkinitramfs", "-o", f"/boot/initrd.img-{kernel.version}", kernel.version,
             env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    shutil.copy2(kernel.image, root / f"boot/vmlinuz-{BROKEN}")


def versions() -> tuple[str, str]:
    """The kernels on the disk, as uname -r prints them: one that is booted by name, and the usual one."""
    older, newer = (kernels.get(suite, "cloud").version for suite in SUITES)
    return older, newer


def _format(root: Path, image: Path) -> None:
    entry = struct.pack("<B3sB3sII", 0x80, b"\xff" * 3, 0x83, b"\xff" * 3, OFFSET // 512, (SIZE - OFFSET) // 512)
    with open(image, "wb") as handle:
        handle.write(b"\0" * 446 + entry + b"\0" * 48 + b"\x55\xaa")
        handle.truncate(SIZE)
    _run(need_program("mke2fs", "e2fsprogs"), "-q", "-t", "ext4", "-O", "^metadata_csum_seed,^orphan_file", "-d", str(root), "-E",
         f"offset={OFFSET}", str(image), f"{(SIZE - OFFSET) >> 10}k")


def qemu(image: Path, console: Path) -> list[str]:
    """The emulated machine, as it is switched on."""
    return [need_program("setpriv", "util-linux"), "--pdeathsig", "KILL", need_program("qemu-system-x86_64", "qemu-system-x86"),
            "-name", "vlab-reboot", "-accel", "tcg,thread=multi", "-cpu", "max,-la57,-svm", "-smp", "1", "-m", "1024", "-display", "none",
            "-no-user-config", "-nic", "none", "-serial", f"file:{console}", "-drive", f"file={image},format=raw,if=virtio"]


def _install_loader(root: Path, image: Path, work: Path) -> None:
    newer = versions()[1]
    console = work / "console"
    try:
        subprocess.run([*priority(), *qemu(image, console), "-no-reboot", "-kernel", str(root / f"boot/vmlinuz-{newer}"), "-initrd",
                        str(root / f"boot/initrd.img-{newer}"), "-append", "root=/dev/vda1 rw init=/setup console=ttyS0 panic=-1"],
                       timeout=600, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise LabError(f"the first boot of the disk failed: {error}") from error
    text = console.read_text(errors="replace")
    if "SETUP DONE" not in text:
        raise LabError(f"GRUB did not install itself: {text[-600:]}")
    if "needs_recovery" in _run(need_program("debugfs", "e2fsprogs"), "-R", "features", file_system(image)):
        raise LabError("the disk's file system was not clean after the first boot")


def get() -> Path:
    """The image, from the cache if it is there. It takes some minutes to make."""
    key = hashlib.sha256((" ".join(versions()) + Path(__file__).read_text(encoding="utf-8")).encode()).hexdigest()[:16]
    path = cache_dir("disks") / f"boot-{key}.img"
    if path.exists():
        return path
    if os.geteuid() != 0:
        raise LabError("the disk with a boot loader has to be made by root (mmdebstrap, chroot)")
    with locked("boot-disk"), tempfile.TemporaryDirectory(dir=cache_dir("disks"), prefix=".boot") as name:
        if path.exists():
            return path
        say("making a disk with a boot loader")
        root, image = Path(name) / "root", Path(name) / "image"
        _fill(root)
        _format(root, image)
        say("GRUB installs itself")
        _install_loader(root, image, Path(name))
        for old in cache_dir("disks").glob("boot-*.img"):
            old.unlink()
        image.rename(path)
    return path
