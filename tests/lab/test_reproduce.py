# SPDX-License-Identifier: GPL-2.0-or-later
"""Published results again, the short ones whose shape holds (docs/reproduce.md has the others): lab/reproduce finds it."""
import json
import shutil
import subprocess

from lab import REPOSITORY, Run

ON_ARM = ("reproduce: counters-threads",)  # needs a vperf for 64-bit Arm
SHORT = ["counters-threads", "trace-sizes-kvm", "profile-guests", "profile-injection"]


def reproduce(name):
    """A test that runs it: lab/reproduce boots its own labs."""
    def run(directory):
        shutil.rmtree(directory, ignore_errors=True)
        done = subprocess.run([str(REPOSITORY / "lab/reproduce"), name, "--out", str(directory)], capture_output=True, text=True)
        return Run(directory, 0 if done.returncode == 1 else done.returncode, done.stderr)

    return run


def shape(run, claims):
    """Each figure that was published."""
    result = json.loads((run.out / "result.json").read_text())
    compared = [row for row in result["rows"] if row["holds"] is not None]
    claims.check(bool(compared), f"{len(compared)} figures of {result['name']} are compared")
    for row in compared:
        claims.check(row["holds"], f"{row['what']}: published: {row['published']}, ours: {row['ours']}")


TESTS = QUICK = ()
FULL = [(f"reproduce: {name}", reproduce(name), shape) for name in SHORT]
