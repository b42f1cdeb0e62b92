# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration, as README.md has it: ./demo.sh runs, and prints what README.md shows of it."""
import shutil
import subprocess

from lab import REPOSITORY, Run


def demonstration(directory):
    """Runs it as a new user would; it is a lab in virtual time."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with open(directory / "printed", "w", encoding="utf-8") as out:
        done = subprocess.run([str(REPOSITORY / "demo.sh"), str(directory)], stdout=out, stderr=subprocess.PIPE, text=True)
    return Run(directory, done.returncode, done.stderr)


demonstration.is_virtual = True


def as_in_readme(run, claims):
    done = subprocess.run([str(REPOSITORY / "tests/readme"), "--demo", str(run.out / "printed")], capture_output=True, text=True)
    claims.check(done.returncode == 0, f"demo.sh prints what README.md shows: {done.stdout.strip()[-500:]}{done.stderr.strip()[-500:]}")
    claims.check((run.out / "report.html").stat().st_size > 100_000, "its page is there")


TESTS = [("demo.sh", demonstration, as_in_readme)]
QUICK, FULL = (), []
