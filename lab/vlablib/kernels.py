"""Kernels of Debian suites: fetched and unpacked once into the cache."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .arch import AMD64, Arch
from .common import LabError, cache_dir, need_program, publish, say
from .debian import PrivateApt, place_name

FLAVOURS = ("generic", "cloud")


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
        """What QEMU boots: in /boot, or beside the modules as in newer packages."""
        classic = self.root / "boot" / f"vmlinuz-{self.version}"
        return classic if classic.exists() else self.modules / "vmlinuz"

    @property
    def modules(self):
        """The directory that belongs at /lib/modules/VERSION."""
        return self.root / "lib" / "modules" / self.version


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


def get(suite, flavour, refresh=False, arch=AMD64):
    """The kernel of a suite; from the cache when it is there and no refresh is asked for."""
    place = cache_dir("kernels") / place_name(f"{suite}-{flavour}", arch)

    def fill(work):
        say(f"fetching the {flavour} kernel of {suite} for {arch.name}")
        apt = PrivateApt(suite, arch)
        apt.update()
        names = apt.kernel_packages(arch.kernels[flavour])
        say(f"downloading {' '.join(names)}")
        version = _unpack(apt.download(names, work), work, arch)
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
