"""Errors, directories and progress lines of vlab."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPO = LAB.parent
START = time.monotonic()


def commit():
    """The commit of these sources; empty without git."""
    done = subprocess.run(["git", "-C", str(REPO), "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


class UsageError(Exception):
    """The user asked for something impossible: exit status 2."""


class LabError(Exception):
    """The lab itself failed, whatever the scenario: exit status 1."""


def say(text):
    """One line of progress on stderr, with the seconds since vlab started."""
    print(f"vlab: [{time.monotonic() - START:6.1f} s] {text}", file=sys.stderr, flush=True)


def cache_dir(*parts):
    """A directory under the cache of the lab, created when missing."""
    base = os.environ.get("VLAB_CACHE")
    root = Path(base) if base else Path.home() / ".cache" / "vperf-lab"
    path = root.joinpath(*parts).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"the cache directory '{path}' cannot be made: {error.strerror}") from error
    return path


def build_dir(arch):
    """Where the binaries of vperf are: VLAB_VPERF_BUILD, else the architecture's in the repository."""
    return Path(os.environ.get("VLAB_VPERF_BUILD") or REPO / arch.build).absolute()


def need_program(name, package):
    """Path of a program; the error names the Debian package that has it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not path:
        raise LabError(f"the program '{name}' is missing: install the package {package} "
                       f"(everything the lab needs is in lab/packages.txt and, for 64-bit Arm, "
                       f"lab/packages-arm64.txt, for a host of Intel lab/packages-intel.txt, for one with a PMU "
                       f"lab/packages-pmu.txt)")
    return path


def run_main(main, *arguments):
    """Ends the program with the status of its main. A reader of its output that has gone, such as head, is no fault of it: what main
    runs is ended as after any other exception."""
    try:
        status = main(*arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)


@contextmanager
def locked(name):
    """Keep other vlab processes out of one part of the cache."""
    with open(cache_dir() / f"{name}.lock", "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another vlab that holds '{name}'")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def publish(place, lock, mark, refresh, fill):
    """Have a directory of the cache: filled by fill(directory) under another name, and then there at
    once. Nothing is done when its file `mark` is there and no refresh is asked for."""
    if (place / mark).exists() and not refresh:
        return
    with locked(lock):
        if (place / mark).exists() and not refresh:
            return
        work = place.with_name(f".{place.name}.{os.getpid()}")
        old = place.with_name(f".old-{place.name}.{os.getpid()}")
        subprocess.run(["rm", "-rf", str(work)], check=True)
        work.mkdir(parents=True)
        try:
            fill(work)
            if place.exists():
                place.rename(old)
            work.rename(place)
        finally:
            subprocess.run(["rm", "-rf", str(work), str(old)], check=False)


def priority():
    """Before other processes of the machine, where that is allowed: what waits for a core comes late in the lab."""
    return [need_program("nice", "coreutils"), "-n", "-15"] if os.geteuid() == 0 else []


def prefer_session(process, virtual):
    """The same for the process's session, where the kernel divides the cores among sessions first (autogroup):
    three quarters of a core that another session wants, too; nearly all of it in real time."""
    try:
        Path(f"/proc/{process.pid}/autogroup").write_text("-5" if virtual else "-15", encoding="ascii")
    except OSError:
        pass  # not root, or a kernel without that
