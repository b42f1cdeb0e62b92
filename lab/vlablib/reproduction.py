"""Common code of the reproductions of published results: rows, and a run of the lab."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .arch import AMD64
from .common import LAB, LabError, build_dir

NOT_AT_HAND = "no figure at hand; "


@dataclass(frozen=True)
class Row:
    """One figure. `holds`: whether the shape does; None: it is only shown, or differs, and `why`."""

    what: str
    published: str
    ours: str
    holds: bool | None
    why: str = ""
    numbers: tuple[float, float] | None = None  # the published figure and ours, for bars


@dataclass(frozen=True)
class Reproduction:
    """A reproduction: its source, substitutes for what is not available here, and how to run it."""

    title: str
    source: str
    instead: str
    run: Callable[[Path], None]
    read: Callable[[Path], list[Row]]


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


def run_lab(text: str, out: Path) -> None:
    """A scenario; its results go to `out`/lab."""
    with tempfile.NamedTemporaryFile("w", suffix=".scn") as scenario:
        scenario.write(text)
        scenario.flush()
        done = subprocess.run([str(LAB / "vlab"), "run", scenario.name, "--out", str(out / "lab"), "--timeout", "3000"],
                              check=False, stdout=sys.stderr)
    if done.returncode:
        raise LabError(f"the lab run ended with status {done.returncode}")
