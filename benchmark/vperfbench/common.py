"""What every part of vperf-bench needs: its errors, and files that are there whole or not at all."""

import json
import os
import shutil
import sys
import time
from pathlib import Path


class PlanError(Exception):
    """A plan, or an option, that cannot work: exit status 2. The sentence names the file and the key."""


class BenchError(Exception):
    """What went wrong while it ran: exit status 1."""


def say(text: str) -> None:
    """One line of progress on stderr; the journal has it when the machine resumes by itself."""
    print(f"vperf-bench: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def sync_directory(path: Path) -> None:
    """What was renamed in a directory stays so after a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """A file with this text, or the one from before: never a part of it, whenever the power fails."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json(path: Path, value: object) -> None:
    """The same for a value."""
    write_whole(path, json.dumps(value, indent=1) + "\n")


def read_text(path: Path | str, missing: str = "") -> str:
    """A small file of the kernel, stripped; `missing` where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return missing


def program(name: str) -> str | None:
    """Where a program is, also for those without /usr/sbin in their path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def boot_id() -> str:
    """Which boot of the machine this is."""
    return read_text("/proc/sys/kernel/random/boot_id")
