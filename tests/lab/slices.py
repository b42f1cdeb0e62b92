# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab tests of `--full` in slices, one of which each CI run adds to the default tests; and the results of lab tests, by test.

A slice follows from the number of commits: 20 commits in a row have all of them.
"""
import datetime
import os
import pathlib
import subprocess

import lab

SLICES = 20
LONGEST_S = 15 * 60  # of a slice, on two idle cores
USUAL_S = 120  # of a test that was never timed
RESULTS = lab.REPOSITORY / "docs" / "evidence" / "lab-tests.tsv"
COLUMNS = ("test", "date", "commit", "passed", "failed", "seconds")


def number_of_commits():
    """Of this tree's history."""
    return int(subprocess.run(["git", "-C", lab.REPOSITORY, "rev-list", "--count", "HEAD"], check=True, capture_output=True, text=True).stdout)


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
    """What is kept of a test that ran just now."""
    commit = subprocess.run(["git", "-C", lab.REPOSITORY, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"], check=False,
                            capture_output=True, text=True).stdout.strip()
    return dict(zip(COLUMNS, (test, f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", commit or "unknown", str(claims.passed), str(claims.failed),
                              f"{seconds:.0f}")))


def slice_of(tests, number, cores):
    """Those of `tests` (name, scenario, check) that are in a slice: longest first, each into the slice that has least so far. Tests
    in real time have the machine for themselves, so they count as much as `cores` of the others."""
    results = read_results()

    def seconds(test):
        known = float(results[test[0]]["seconds"]) if test[0] in results else USUAL_S
        return known if lab.is_virtual(test[1]) else known * cores

    filled = [[0.0, each, []] for each in range(SLICES)]
    for test in sorted(tests, key=lambda test: (-seconds(test), test[0])):
        least = min(filled, key=lambda each: each[:2])
        least[0] += seconds(test)
        least[2].append(test)
    chosen = filled[number % SLICES]
    return chosen[2], chosen[0] / cores
