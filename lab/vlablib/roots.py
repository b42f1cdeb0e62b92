"""The root of a lab host that is not of the machine's architecture: Debian packages, unpacked.

No package is configured, so nothing of that architecture has to run here. It is the system root of
the cross compiler too.
"""

import hashlib
import subprocess

from .common import cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"
MERGED = ("bin", "lib", "sbin")
# What a package's configuration would have made.
LINKS = {"usr/bin/awk": "mawk", "bin/sh": "bash"}


def _unpack(deb, work):
    """Into the links of MERGED, which dpkg -x would replace by directories."""
    content = subprocess.run([need_program("dpkg-deb", "dpkg"), "--fsys-tarfile", str(deb)],
                             capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(work)],
                   input=content, check=True)


def _fill(arch, work):
    say(f"fetching a root for {arch.name}")
    apt = PrivateApt(SUITE, arch)
    apt.update()
    debs = apt.with_dependencies(arch.root)
    for name in MERGED:
        (work / "usr" / name).mkdir(parents=True)
        (work / name).symlink_to(f"usr/{name}")
    for deb in debs:
        _unpack(deb, work)
        deb.unlink()
    for name, target in LINKS.items():
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(target)
    (work / "out").mkdir()
    (work / "packages").write_text("".join(f"{deb.name}\n" for deb in debs), encoding="ascii")
    say(f"unpacked {len(debs)} packages")


def get(arch, refresh=False):
    """The directory; from the cache when it is there and no refresh is asked for."""
    key = hashlib.sha256(" ".join(arch.root).encode()).hexdigest()[:16]
    place = cache_dir("roots") / f"{SUITE}-{arch.name}-{key}"
    publish(place, f"root-{arch.name}", "packages", refresh, lambda work: _fill(arch, work))
    return place
