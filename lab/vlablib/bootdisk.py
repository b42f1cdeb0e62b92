"""A disk with two boot loaders: Debian 12 with systemd, GRUB for a BIOS, systemd-boot for UEFI, three kernels, Xen, and a
kernel that cannot come up.

The root is made by mmdebstrap, the loaders install themselves in a first boot that QEMU loads; then it is kept in the cache.
"""

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from . import debian_programs, kernels, xen
from .arch import AMD64
from .common import LabError, cache_dir, locked, need_program, priority, publish, say
from .debian import PrivateApt

OFFSET, SIZE, ESP = 1 << 20, 1700 << 20, 160 << 20
INCLUDE = ("systemd-sysv,udev,kmod,initramfs-tools,grub-pc,python3,procps,util-linux,e2fsprogs,"
           "systemd-boot,dosfstools,xen-system-amd64,busybox-static")
SUITES = ("bookworm", "trixie")
BROKEN = "5.0-broken"  # Its file is a kernel; without an initramfs it finds no root, and panics.
MODULES = ("virtio_pci", "virtio_blk", "ext4")
# Modules of the kernel that can be a dom0, unlike the cloud kernel: all of them would be large.
GENERIC_MODULES = (*MODULES, "kvm-amd", "xen-gntdev", "xen-gntalloc", "xen-evtchn", "xen-privcmd", "xenfs", "xen-netback", "xen-blkback",
                   "vfat", "nls_cp437", "nls_ascii", "nls_iso8859-1", "efivarfs")
MEMORY, DOM0_MEMORY = 2048, 1024  # MiB
FILES = {
    "etc/fstab": "/dev/vda1 / ext4 errors=remount-ro 0 1\n/dev/vda2 /efi vfat umask=0077 0 0\n",
    "etc/hostname": "bench\n",
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/default/grub": "GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX=\"console=ttyS0 panic=5\"\n"
                        "GRUB_CMDLINE_LINUX_DEFAULT=\nGRUB_TERMINAL=console\nGRUB_DISABLE_OS_PROBER=true\nXEN_OVERRIDE_GRUB_DEFAULT=0\n"
                        "GRUB_CMDLINE_LINUX_XEN_REPLACE=\"console=hvc0 panic=5\"\n"
                        "GRUB_CMDLINE_XEN=\"console=com1 com1=115200 loglvl=warning spec-ctrl=eager-fpu no-xsave dom0_max_vcpus=1 "
                        f"dom0_mem={DOM0_MEMORY}M,max:{DOM0_MEMORY}M\"\n",
    "etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=auto\nKEYMAP=n\nCOMPRESS=gzip\nDEVICE=\nNFSROOT=auto\nRUNSIZE=10%\n",
    "etc/initramfs-tools/modules": "".join(f"{name}\n" for name in MODULES),
    "setup": """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mountpoint -q /dev || mount -t devtmpfs dev /dev
mkfs.vfat -n ESP /dev/vda2 && mount /efi && SYSTEMD_RELAX_ESP_CHECKS=1 bootctl install --esp-path=/efi --no-variables || exit 1
mkdir -p /efi/debian /efi/loader/entries; printf 'default usual.conf\ntimeout 0\n' > /efi/loader/loader.conf
entry() { # NAME VERSION: as kernel-install's
	cp /boot/vmlinuz-$2 /efi/debian || exit 1
	{ printf 'title Debian %s\nversion %s\nlinux /debian/vmlinuz-%s\noptions root=/dev/vda1 ro console=ttyS0 panic=5\n' $1 $2 $2
	[ ! -e /boot/initrd.img-$2 ] || { cp /boot/initrd.img-$2 /efi/debian && echo "initrd /debian/initrd.img-$2"; }; } > /efi/loader/entries/$1.conf
}
entry older @OLDER@; entry usual @USUAL@; entry broken @BROKEN@
umount /efi; grub-install --target=i386-pc /dev/vda && update-grub && echo SETUP DONE
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
    """Name of the file system in an image for debugfs and mke2fs."""
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
    older, usual, _ = versions()
    for name, text in FILES.items():
        text = text.replace("@OLDER@", older).replace("@USUAL@", usual).replace("@BROKEN@", BROKEN)
        (root / name).write_text(text, encoding="ascii")
    (root / "setup").chmod(0o755)
    (root / "efi").mkdir(exist_ok=True)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for suite in SUITES:
        kernel = kernels.get(suite, "cloud")
        shutil.copytree(kernel.modules.resolve(), root / "usr/lib/modules" / kernel.version, symlinks=True)
        _add_kernel(root, kernel)
    shutil.copy2(kernel.image, root / f"boot/vmlinuz-{BROKEN}")
    generic = kernels.get(SUITES[0], "generic")
    source, target = generic.modules.resolve(), root / "usr/lib/modules" / generic.version
    for path in [*kernels.module_files(generic, GENERIC_MODULES), *source.glob("modules.*")]:
        place = target / path.resolve().relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
    _add_kernel(root, generic)


def _add_kernel(root: Path, kernel: kernels.Kernel) -> None:
    """Installs a kernel whose modules are installed already."""
    shutil.copy2(kernel.image, root / f"boot/vmlinuz-{kernel.version}")
    config = kernel.root / f"boot/config-{kernel.version}"
    if config.exists():
        shutil.copy2(config, root / "boot")
    _run("chroot", str(root), "depmod", kernel.version)
    _run("chroot", str(root), "mkinitramfs", "-o", f"/boot/initrd.img-{kernel.version}", kernel.version,
         env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def versions() -> tuple[str, str, str]:
    """The kernels on the disk, as uname -r prints them: one that is booted by name, the usual one, and one that Xen can boot, too."""
    older, newer = (kernels.get(suite, "cloud").version for suite in SUITES)
    return older, newer, kernels.get(SUITES[0], "generic").version


def _partition(kind: int, active: int, begin: int, size: int) -> bytes:
    """An entry of a master boot record; begin and size in bytes."""
    return struct.pack("<B3sB3sII", active, b"\xff" * 3, kind, b"\xff" * 3, begin // 512, size // 512)


def _format(root: Path, image: Path) -> None:
    table = _partition(0x83, 0x80, OFFSET, SIZE - OFFSET) + _partition(0xef, 0, SIZE, ESP)
    with open(image, "wb") as handle:
        handle.write(b"\0" * 446 + table + b"\0" * 32 + b"\x55\xaa")
        handle.truncate(SIZE + ESP)
    _run(need_program("mke2fs", "e2fsprogs"), "-q", "-t", "ext4", "-O", "^metadata_csum_seed,^orphan_file", "-d", str(root), "-E",
         f"offset={OFFSET}", str(image), f"{(SIZE - OFFSET) >> 10}k")


def firmware(work: Path) -> list[str]:
    """Options of QEMU's for UEFI, whose variables are in a file of their own."""
    place = debian_programs.get(AMD64, ("ovmf",)) / "usr/share/OVMF"
    shutil.copyfile(place / "OVMF_VARS_4M.fd", work / "variables")
    return ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={place}/OVMF_CODE_4M.fd",
            "-drive", f"if=pflash,format=raw,unit=1,file={work}/variables"]


def qemu(image: Path, console: Path, more: tuple[str, ...] | list[str] = ()) -> list[str]:
    """The emulated machine, as it is switched on. It can have a KVM or a Xen."""
    return [need_program("setpriv", "util-linux"), "--pdeathsig", "KILL", need_program("qemu-system-x86_64", "qemu-system-x86"),
            "-name", "vlab-reboot", "-accel", "tcg,thread=multi", "-cpu", f"{xen.CPU},-la57", "-smp", "1", "-m", str(MEMORY), "-display", "none",
            "-no-user-config", "-nic", "none", "-serial", f"file:{console}", "-drive", f"file={image},format=raw,if=virtio", *more]


def _install_loader(root: Path, image: Path, work: Path) -> None:
    usual = versions()[1]
    console = work / "console"
    try:
        subprocess.run([*priority(), *qemu(image, console), "-no-reboot", "-kernel", str(root / f"boot/vmlinuz-{usual}"), "-initrd",
                        str(root / f"boot/initrd.img-{usual}"), "-append", "root=/dev/vda1 rw init=/setup console=ttyS0 panic=-1"],
                       timeout=600, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise LabError(f"the first boot of the disk failed: {error}") from error
    text = console.read_text(errors="replace")
    if "SETUP DONE" not in text:
        raise LabError(f"the boot loaders did not install themselves: {text[-600:]}")
    if "needs_recovery" in _run(need_program("debugfs", "e2fsprogs"), "-R", "features", file_system(image)):
        raise LabError("the disk's file system was not clean after the first boot")


def get() -> Path:
    """The image, from the cache if available. Creating it takes some minutes."""
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
        say("the boot loaders install themselves")
        _install_loader(root, image, Path(name))
        for old in cache_dir("disks").glob("boot-*.img"):
            old.unlink()
        image.rename(path)
    return path
