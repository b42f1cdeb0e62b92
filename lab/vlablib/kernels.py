"""Kernels of Debian suites: fetched and unpacked once into the cache."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .arch import AMD64, Arch
from .common import LabError, cache_dir, need_program, publish, say, UsageError
from .debian import PrivateApt, place_name

FLAVOURS = ("generic", "cloud")  # of every suite and architecture
ALL_FLAVOURS = (*FLAVOURS, "16k")  # its pages: 64-bit Arm, from trixie on


@dataclass
class Kernel:
    """An unpacked kernel: boot image, module tree and version string."""

    suite: str
    flavour: str
    version: str
    root: Path
    arch: Arch

    @property
    def image(self):
        """Image for QEMU: in /boot, or next to the modules as in newer packages."""
        classic = self.root / "boot" / f"vmlinuz-{self.version}"
        return classic if classic.exists() else self.modules / "vmlinuz"

    @property
    def unpacked(self):
        """The ELF file in an x86 boot image, which boots by PVH's entry: without the seconds that unpacking takes
        under emulation, and without KASLR, which the unpacking program does. Made once, into the cache."""
        path = self.root.parent / "vmlinux"
        if not path.exists():
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(_payload(self.image.read_bytes(), self.image))
            partial.rename(path)
        return path

    @property
    def modules(self):
        """The directory that belongs at /lib/modules/VERSION."""
        return self.root / "lib" / "modules" / self.version


UNPACKERS = {b"\xfd7zX": ("xz", "xz-utils"), b"\x28\xb5\x2f\xfd": ("zstd", "zstd")}  # program and package, by first bytes


def _payload(image, name):
    """The compressed kernel in an x86 boot image. The header has sectors of setup code, offset and length after them; the
    last four bytes are the size unpacked (Documentation/arch/x86/boot.rst)."""
    start = (image[0x1f1] + 1) * 512 + int.from_bytes(image[0x248:0x24c], "little")
    packed = image[start:start + int.from_bytes(image[0x24c:0x250], "little")]
    if packed[:4] not in UNPACKERS:
        raise LabError(f"'{name}' is packed by neither xz nor zstd: a lab host boots it with kaslr=yes only")
    program = need_program(*UNPACKERS[packed[:4]])
    elf = subprocess.run([program, "-dcq"], input=packed[:-4], stdout=subprocess.PIPE, check=True).stdout
    if len(elf) != int.from_bytes(packed[-4:], "little"):
        raise LabError(f"'{name}' cannot be unpacked: {len(elf)} bytes, expected {int.from_bytes(packed[-4:], 'little')}")
    return elf


def _load(suite, flavour, place, arch):
    version = (place / "version").read_text(encoding="ascii").strip()
    return Kernel(suite, flavour, version, place / "root", arch)


def _merge_lib(root):
    """/lib is /usr/lib, whichever of them the packages have."""
    lib = root / "lib"
    if lib.is_dir() and not lib.is_symlink():
        for child in lib.iterdir():
            if not (root / "usr" / "lib" / child.name).exists():
                child.rename(root / "usr" / "lib" / child.name)
        lib.rmdir()
    if not lib.exists():
        lib.symlink_to("usr/lib")


def _unpack(debs, place, arch):
    root = place / "root"
    names = [deb.name for deb in debs]
    (root / "usr" / "lib").mkdir(parents=True)
    dpkg = need_program("dpkg", "dpkg")
    for deb in debs:
        subprocess.run([dpkg, "-x", str(deb), str(root)], check=True)
        deb.unlink()
    _merge_lib(root)
    versions = [path.name for path in (root / "lib" / "modules").iterdir()]
    if len(versions) != 1 or not Kernel("", "", versions[0], root, arch).image.exists():
        raise LabError(f"the packages {', '.join(names)} do not hold one kernel with its modules")
    subprocess.run([need_program("depmod", "kmod"), "-b", str(root), versions[0]],
                   stderr=subprocess.DEVNULL, check=True)
    return versions[0]


def _download(apt, meta, work):
    """The packages of a kernel. The security archive of an old suite can list files that it no longer has: then the
    archive's own kernel is taken."""
    errors = []
    for with_security in (True, False):
        apt.update(with_security)
        names = apt.kernel_packages(meta)
        say(f"downloading {' '.join(names)}")
        try:
            return apt.download(names, work)
        except LabError as error:
            errors.append(str(error))
    raise LabError("; ".join(errors))


def get(suite, flavour, refresh=False, arch=AMD64):
    """The kernel of a suite; from the cache when it is there and no refresh is asked for."""
    place = cache_dir("kernels") / place_name(f"{suite}-{flavour}", arch)

    if flavour not in arch.kernels:
        raise UsageError(f"there is no kernel of flavour '{flavour}' for {arch.name}")

    def fill(work):
        say(f"fetching the {flavour} kernel of {suite} for {arch.name}")
        apt = PrivateApt(suite, arch)
        version = _unpack(_download(apt, arch.kernels[flavour], work), work, arch)
        (work / "version").write_text(version + "\n", encoding="ascii")
        say(f"unpacked kernel {version}")

    publish(place, f"kernel-{place_name(suite, arch)}", "version", refresh, fill)
    return _load(suite, flavour, place, arch)


def module_files(kernel, names):
    """Files of modules with all they depend on, in load order; built-in ones are left out."""
    files = []
    modprobe = need_program("modprobe", "kmod")
    for name in names:
        done = subprocess.run([modprobe, "--show-depends", "-d", str(kernel.root), "-S",
                               kernel.version, name], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            words = line.split()
            if words[0] == "insmod" and words[1] not in files:
                files.append(words[1])
    return [Path(f) for f in files]
