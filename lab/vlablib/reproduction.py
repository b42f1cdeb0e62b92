"""Common code of the reproductions of published results: rows, and a run of the lab."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .arch import AMD64
from .common import LAB, LabError, build_dir

DONE = "done"  # a file
NOT_AT_HAND = "no figure at hand; "


@dataclass(frozen=True)
class Row:
    """One figure. `holds`: whether the shape does; None: it is only shown, or differs, and `why`. `bound`: set before the run; what
    `holds` depends on."""

    what: str
    published: str
    ours: str
    holds: bool | None
    why: str = ""
    numbers: tuple[float, float] | None = None  # the published figure and ours, for bars and the ratio
    bound: str = ""
    more: tuple[tuple[float, float], ...] = ()  # further pairs of a row with several figures


@dataclass(frozen=True)
class Reproduction:
    """A reproduction: its source, substitutes for what is not available here, and how to run it."""

    title: str
    source: str
    instead: str
    run: Callable[[Path], None]
    read: Callable[[Path], list[Row]]
    parts: tuple[str, ...] = ()  # a lab run each, in a directory of its own; what there is can be read
    run_part: Callable[[Path, str], None] | None = None
    text: Callable[[Path], str] | None = None  # printed after the table


def call(*command: str, fine: tuple[int, ...] = (0,)) -> str:
    """A program's output; `fine`: statuses with which there is one."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    sys.stderr.write(done.stderr)
    if done.returncode not in fine:
        raise LabError(f"{Path(command[0]).name} ended with status {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def vperf(*arguments: str) -> str:
    """Output of this host's vperf for a recording."""
    return call(str(build_dir(AMD64) / "vperf"), *arguments)


def missing_parts(out: Path, parts: tuple[str, ...]) -> list[str]:
    """Those that have not ended well."""
    return [part for part in parts if not (out / part / DONE).exists()]


def run_parts(out: Path, parts: tuple[str, ...], run: Callable[[Path, str], None], most: int | None = None) -> None:
    """Runs the missing parts, at most `most` of them, after removing what an interrupted run left of each."""
    for part in missing_parts(out, parts)[:most]:
        shutil.rmtree(out / part, ignore_errors=True)
        (out / part).mkdir(parents=True)
        run(out, part)
        (out / part / DONE).touch()


def run_lab(text: str, out: Path) -> None:
    """A scenario; its results go to `out`/lab."""
    with tempfile.NamedTemporaryFile("w", suffix=".scn") as scenario:
        scenario.write(text)
        scenario.flush()
        done = subprocess.run([str(LAB / "vlab"), "run", scenario.name, "--out", str(out / "lab"), "--timeout", "3000"],
                              check=False, stdout=sys.stderr)
    if done.returncode:
        raise LabError(f"the lab run ended with status {done.returncode}")
