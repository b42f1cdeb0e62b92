# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab tests of `--full` in slices, for CI to add one of them to the default tests; and the results of lab tests, by test.

A slice follows from the number of commits: 20 commits in a row have all of them. In a shallow clone it follows from the commit's name.
"""
import datetime
import os
import pathlib
import subprocess

import lab

SLICES = 20
USUAL_S = 100  # of a test, on an idle core
CORES = 2  # of the machine that the slices are made for
# Those that take much longer. This table, not the results, decides what is in a slice: so 20 commits in a row have everything.
LONG_S = {"bench: reboots": 924, "bench: reboots into Xen": 798, "bench: reboots by systemd-boot": 760, "64-bit Arm, PAPI's own tests": 400,
          "64-bit Arm, counters of programs": 400, "64-bit Arm, profile by overflow, and switches": 400}
RESULTS = lab.REPOSITORY / "docs" / "evidence" / "lab-tests.tsv"
COLUMNS = ("test", "date", "commit", "passed", "failed", "seconds")


def git(*arguments):
    return subprocess.run(["git", "-C", lab.REPOSITORY, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def number_of_this_commit():
    """The number of commits, or, in a shallow clone, which does not know that, the beginning of the commit's name."""
    if git("rev-parse", "--is-shallow-repository") == "true":
        return int(git("rev-parse", "HEAD")[:8], 16)
    return int(git("rev-list", "--count", "HEAD"))


def read_results(path=RESULTS):
    """Test → its last result, a dictionary of COLUMNS."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines()[1:]
    return {row[0]: dict(zip(COLUMNS, row)) for row in (line.split("\t") for line in lines)}


def write_results(results, path=RESULTS):
    """In the order of their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [COLUMNS, *(tuple(results[test][column] for column in COLUMNS) for test in sorted(results))]
    new = pathlib.Path(f"{path}.new")
    new.write_text("".join("\t".join(row) + "\n" for row in rows))
    os.replace(new, path)


def result_row(test, claims, seconds):
    """The data kept about a test that has just run."""
    commit = subprocess.run(["git", "-C", lab.REPOSITORY, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"], check=False,
                            capture_output=True, text=True).stdout.strip()
    return dict(zip(COLUMNS, (test, f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", commit or "unknown", str(claims.passed), str(claims.failed),
                              f"{seconds:.0f}")))


def slice_of(tests, number):
    """Those of `tests` (name, scenario, check) that are in a slice, and about how long they take: longest first, each into the slice
    that has least so far. A test in real time has the machine for itself, so it counts as much as CORES of the others."""
    def seconds(test):
        return LONG_S.get(test[0], USUAL_S) * (1 if lab.is_virtual(test[1]) else CORES)

    filled = [[0.0, each, []] for each in range(SLICES)]
    for test in sorted(tests, key=lambda test: -seconds(test)):
        least = min(filled, key=lambda each: each[:2])
        least[0] += seconds(test)
        least[2].append(test)
    chosen = filled[number % SLICES]
    return chosen[2], chosen[0] / CORES
