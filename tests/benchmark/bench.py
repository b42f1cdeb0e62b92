# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the tests of vperf-bench: its modules, and a simulated machine."""
import pathlib
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "benchmark"
sys.path.insert(0, str(SOURCE))

from vperfbench import plan as plans  # noqa: E402
from vperfbench import step as steps  # noqa: E402

# For what syncs a lot.
MEMORY = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
HEAD = "[settle]\nseconds = 0\n"
KERNELS = """
[configuration.old]
kernel = "6.1"
[configuration.new]
kernel = "6.12"
[configuration.traced]
kernel = "6.12"
[test.t]
command = "true"
"""


class PowerCut(BaseException):
    """The machine is off: nothing in the program may catch this."""


class FakeMachine:
    """Boots at once, into the kernel that `boots` maps the chosen one to; runs steps by `work(job)`."""

    def __init__(self, kernel="6.1", boots=None, work=None):
        self.usual = self.here = kernel
        self.boots, self.work = boots or {}, work or (lambda job: {"figure": 1.0})
        self.boot, self.once, self.log, self.xen = 1, None, [], False
        self.usual_xen, self.no_xen = False, False
        self.left, self.unit, self.down = 1 << 40, False, False

    def kernel(self):
        return self.here

    def boot_id(self):
        return f"boot-{self.boot}"

    def under_xen(self):
        return self.xen

    def free(self, path):
        return self.left

    def boot_once(self, kernel, named, xen):
        self.once = (kernel, xen)

    def reboot(self):
        self.restart()

    def going_down(self):
        return self.down

    def restart(self):
        """By a power cut, too: the boot loader forgets what it boots once."""
        wanted, self.once = self.once or (self.usual, self.usual_xen), None
        self.boot += 1
        self.here, self.xen = self.boots.get(wanted[0], wanted[0]), wanted[1] and not self.no_xen
        self.log.append(("booted", self.here))

    def prepare(self, plan, original, directory):
        self.unit = original["reboots"]

    def unprepare(self, original):
        self.unit, self.once = False, None
        self.log.append(("unprepared",))

    def describe(self, plan, reboots):
        return {"kernel": self.here, "xen": self.xen, "reboots": reboots, "services": [], "governors": {}}

    def run(self, job):
        job.directory.mkdir(parents=True)
        self.log.append((job.configuration.name, self.here))
        return self.work(job)


def plan_of(text, file="p.toml"):
    return plans.parse(text, file)


StepFailed = steps.StepFailed
