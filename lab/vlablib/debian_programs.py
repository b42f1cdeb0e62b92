"""Programs of Debian's that no root of a lab host has: fetched once, without what they depend on, into the cache."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

from .common import cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"  # as the root whose libraries they are run with


def get(arch, packages, suite=SUITE, component="main"):
    """The directory with these packages unpacked, which are in one component of the archive."""
    named = () if component == "main" else (component,)
    key = hashlib.sha256(" ".join((suite, arch.name, *named, *packages)).encode()).hexdigest()[:16]
    place = cache_dir("debian-programs") / key

    def fill(work):
        say(f"fetching {', '.join(packages)} for {arch.name}")
        apt = PrivateApt(suite, arch, component=component)
        apt.update()
        with tempfile.TemporaryDirectory(dir=cache_dir("debian-programs"), prefix=".fetch") as name:
            for deb in apt.download(packages, Path(name)):
                subprocess.run([need_program("dpkg-deb", "dpkg"), "-x", str(deb), str(work)], check=True)
        (work / "packages").write_text("".join(f"{name}\n" for name in packages), encoding="ascii")

    publish(place, f"debian-programs-{arch.name}", "packages", False, fill)
    return place
