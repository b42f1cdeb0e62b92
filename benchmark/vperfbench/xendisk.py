"""The disk of a guest of Xen: a block device of dom0, or an image in a file, which a loop device makes one."""

import subprocess
from pathlib import Path

from .common import BenchError, program
from .plan import Configuration

NAME = "xvda"
MODULES = ("xen-blkfront", "ext4")  # of the guest


def fault(configuration: Configuration) -> tuple[str, str]:
    """(key, why) if the guest cannot have that disk, else ("", "")."""
    disk = configuration.disk
    if disk == "memory":
        return "", ""
    if disk != "virtual" and not Path(disk).is_block_device():
        return "disk", f"'{disk}' is neither memory, virtual, nor a block device"
    for name, package in (("mke2fs", "e2fsprogs"), *((("losetup", "mount"),) if disk == "virtual" else ())):
        if not program(name):
            return "disk", f"{name} is not installed (Debian package {package})"
    return "", ""


def _call(*command: str) -> str:
    done = subprocess.run([program(command[0]) or command[0], *command[1:]], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError(f"{command[0]} ended with status {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout.strip()


class Disk:
    """What one guest has: nothing, or a device with a new file system on it, as long as the guest exists."""

    def __init__(self, configuration: Configuration, image: Path) -> None:
        self.configuration, self.image, self.loop = configuration, image, ""
        self.device = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """The guest's kernel needs these."""
        return MODULES if self.configuration.disk != "memory" else ()

    def attach(self) -> None:
        """`device` is ready for the guest, or "": its files are in memory."""
        disk = self.configuration.disk
        if disk == "memory":
            return
        if disk == "virtual":
            with open(self.image, "wb") as handle:
                handle.truncate(self.configuration.disk_size)
        _call("mke2fs", "-q", "-F", "-t", "ext4", str(self.image) if disk == "virtual" else disk)
        if disk == "virtual":
            self.loop = _call("losetup", "--find", "--show", str(self.image))
        self.device = self.loop or disk

    def settings(self) -> dict[str, list[str]]:
        """For xl.cfg(5)."""
        return {"disk": [f"phy:{self.device},{NAME},w"]} if self.device else {}

    def detach(self) -> None:
        """Nothing of it is left, but a block device."""
        if self.loop:
            _call("losetup", "-d", self.loop)
            self.loop = ""
        if self.configuration.disk == "virtual":
            self.image.unlink(missing_ok=True)
