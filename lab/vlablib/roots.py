"""The root of a lab host that is not the machine's: Debian packages, unpacked.

It is for architectures that are not the machine's, and for Xen's dom0, so that nothing of Xen is installed on the
machine. No package is configured, so nothing of that architecture has to run here. It is the system root of
the cross compiler too.
"""

import hashlib
import os
import subprocess

from .arch import AMD64
from .common import cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"
MERGED = ("bin", "lib", "lib64", "sbin")
# Packages of a dom0: those that vperf and the lab use, and Xen with its tools.
DOM0 = ("bash", "busybox-static", "coreutils", "diffutils", "e2fsprogs", "grep", "hostname", "iproute2", "kmod", "libbpf-dev",
        "libc-bin", "libelf-dev", "libgomp1", "libiberty-dev", "libjson-c-dev", "libmicrohttpd-dev", "libxxhash-dev", "libyaml-dev", "libzstd-dev", "linux-perf",
        "mount", "procps", "python3", "sed", "tar", "util-linux", "xen-system-amd64", "zlib1g-dev")
# The device model of its HVM guests, with what that loads.
HVM = ("qemu-system-xen", "qemu-system-data", "seabios")
# Version of what _fill() makes of the packages.
LAYOUT = "relative links"
# Links that the packages' configuration would create.
LINKS = {"usr/bin/awk": "mawk", "bin/sh": "bash"}


def _unpack(deb, work):
    """Into the links of MERGED, which dpkg -x would replace by directories."""
    content = subprocess.run([need_program("dpkg-deb", "dpkg"), "--fsys-tarfile", str(deb)],
                             capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(work)],
                   input=content, check=True)


def _make_links_relative(work):
    """The libraries' links: the cross linker does not look for an absolute one below the root, and takes the static library instead."""
    for link in (work / "usr/lib").rglob("*.so"):
        target = os.readlink(link) if link.is_symlink() else ""
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(work / target[1:], link.parent))


def _fill(suite, arch, packages, work):
    say(f"fetching a root for {arch.name}")
    apt = PrivateApt(suite, arch)
    apt.update()
    debs = apt.with_dependencies(packages)
    for name in MERGED:
        (work / "usr" / name).mkdir(parents=True)
        (work / name).symlink_to(f"usr/{name}")
    for deb in debs:
        _unpack(deb, work)
        deb.unlink()
    _make_links_relative(work)
    for name, target in LINKS.items():
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(target)
    (work / "out").mkdir()
    (work / "packages").write_text("".join(f"{deb.name}\n" for deb in debs), encoding="ascii")
    say(f"unpacked {len(debs)} packages")


def _get(suite, arch, packages, refresh):
    key = hashlib.sha256(" ".join((LAYOUT, *packages)).encode()).hexdigest()[:16]
    place = cache_dir("roots") / f"{suite}-{arch.name}-{key}"
    publish(place, f"root-{arch.name}", "packages", refresh, lambda work: _fill(suite, arch, packages, work))
    return place


def get(arch, refresh=False):
    """The directory for an architecture; from the cache when it is there and no refresh is asked for."""
    return _get(SUITE, arch, arch.root, refresh)


def get_dom0(suite, refresh=False, hvm=False):
    """The same for a dom0, with the suite's Xen in /boot; with `hvm` also for guests with a device model."""
    return _get(suite, AMD64, DOM0 + HVM if hvm else DOM0, refresh)


def get_programs(suite, packages):
    """The same with programs for a guest."""
    return _get(suite, AMD64, packages, False)
