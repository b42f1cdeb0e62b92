"""The state on disk: what is done, what runs, what the machine is to boot. Written after each step, so that a
power cut loses no more than the step during which it came."""

import errno
import fcntl
import json
import os
import stat
import time
from pathlib import Path

from .common import BenchError, read_text, write_json

VERSION = 1
RESERVE = 1 << 20  # bytes kept, so that a full disk can be told
LOCK = Path(os.environ.get("VPERF_BENCH_LOCK", ("/run/lock" if os.path.isdir("/run/lock") else "/run") + "/vperf-bench.lock"))
DONE, FAILED, LEFT_OUT, PENDING, RUNNING = "done", "failed", "left-out", "pending", "running"


class State:
    """Of one directory. `phase`: running, booting, stopped, done."""

    def __init__(self, directory: Path, values: dict) -> None:
        self.directory, self.values = directory, values

    @classmethod
    def create(cls, directory: Path, steps: list, original: dict) -> "State":
        """A new one."""
        values = {"version": VERSION, "phase": "running", "why": "", "original": original, "boot": None, "events": [],
                  "failed-boots": {}, "steps": [{**step.as_dict(), "status": PENDING, "attempts": 0} for step in steps]}
        state = cls(directory, values)
        state.save()
        state.keep_reserve()
        return state

    @classmethod
    def load(cls, directory: Path) -> "State":
        """The one of a directory."""
        file = directory / "state.json"
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            version = values["version"]
            steps = values["steps"]
        except FileNotFoundError as error:
            raise BenchError(f"{directory}: there is no benchmark: no file state.json") from error
        except OSError as error:
            raise BenchError(f"{file}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{file}: this is no state of a benchmark: {error}") from error
        if version != VERSION or not isinstance(steps, list):
            raise BenchError(f"{file}: is of version {version}, this program knows version {VERSION}")
        return cls(directory, values)

    def keep_reserve(self) -> None:
        """Room for another state, should the disk fill up."""
        file = self.directory / "reserve"
        size = max(RESERVE, 2 * (self.directory / "state.json").stat().st_size)
        try:
            file.write_bytes(b"\0" * size)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise BenchError(f"{file}: {size >> 10} KiB cannot be kept in reserve: {error.strerror}") from error

    def save(self) -> None:
        """On disk, whole."""
        file = self.directory / "state.json"
        try:
            try:
                write_json(file, self.values)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                (self.directory / "reserve").unlink(missing_ok=True)
                write_json(file, self.values)
        except OSError as error:
            raise BenchError(f"{file}: cannot be written, and says what it said before: {error.strerror}") from error

    def note(self, text: str) -> None:
        """Something that who reads the report should know."""
        self.values["events"].append({"time": time.strftime("%Y-%m-%d %H:%M:%S"), "text": text})

    @property
    def steps(self) -> list[dict]:
        """All, in order."""
        return self.values["steps"]

    @property
    def phase(self) -> str:
        """Where it is."""
        return self.values["phase"]

    def enter(self, phase: str, why: str = "") -> None:
        """Another phase, on disk."""
        self.values.update(phase=phase, why=why)
        self.save()

    def next(self) -> dict | None:
        """The first step that is to do."""
        return next((step for step in self.steps if step["status"] in (PENDING, RUNNING)), None)

    def counts(self) -> dict[str, int]:
        """Steps by status."""
        found: dict[str, int] = {}
        for step in self.steps:
            found[step["status"]] = found.get(step["status"], 0) + 1
        return found

    def step_directory(self, step: dict) -> Path:
        """Where an attempt of a step keeps what it brought."""
        return self.directory / "steps" / f"{step['number']:05d}.{step['attempts']}"


def _open_lock(path: Path, flags: int) -> int:
    """The lock file, if it is a regular file of root's or this user's: in a folder that all may write to, anybody
    could have put a link there, or a file that says whom to signal."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid not in (0, os.geteuid()):
        os.close(handle)
        raise OSError(errno.EPERM, "it is not a regular file of root's or this user's")
    return handle


def _owner(handle: int) -> tuple:
    """The process that holds the lock, by the kernel, and the directory that the file names."""
    text = os.pread(handle, 65536, 0).decode(errors="replace").strip()
    process, _, where = text.partition(" ")
    status = os.fstat(handle)
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    holders = [line.split()[4] for line in read_text(Path("/proc/locks")).splitlines()
               if line.split()[1:2] == ["FLOCK"] and line.split()[5] == inode]
    return (process, where) if process in holders else ("", "")


class Lock:
    """One benchmark on a machine, and in a directory, at a time. Held as long as the process lives."""

    def __init__(self, path: Path, directory: Path) -> None:
        try:
            try:
                self.handle = _open_lock(path, os.O_RDWR | os.O_CREAT)
            except PermissionError:
                self.handle = _open_lock(path, os.O_RDONLY)  # root's: to be waited for, not written
        except OSError as error:
            raise BenchError(f"{path}: the lock cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = " ".join(_owner(self.handle)).strip() or "unknown"
            os.close(self.handle)
            raise BenchError(f"another vperf-bench runs on this machine (process and directory: {owner}): two would "
                             "disturb each other") from None
        try:
            os.ftruncate(self.handle, 0)
            os.pwrite(self.handle, f"{os.getpid()} {directory}\n".encode(), 0)
        except OSError:
            pass  # read-only: held all the same

    def close(self) -> None:
        """Give it back."""
        os.close(self.handle)


def holder(directory: Path) -> int | None:
    """The process that runs the benchmark of a directory, if one does."""
    try:
        handle = _open_lock(LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        process, where = _owner(handle)
        return int(process) if process.isdigit() and where == str(directory) else None
    finally:
        os.close(handle)
    return None
