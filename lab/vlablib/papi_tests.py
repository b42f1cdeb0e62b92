"""PAPI's own test programs for a lab host of 64-bit Arm: built once, from Debian's source package, into the cache."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

from . import roots
from .arch import AMD64, ARM64
from .common import LabError, cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"  # as the library that they are run with
# Each a file of src/ctests: those that count no more than a thread's own cycles and instructions, in user space.
NAMES = ("first", "overflow", "overflow_index", "overflow_one_and_read", "profile", "reset", "sprofile", "zero", "zero_pthreads")
WITH = ("ctests/prof_utils.c", "testlib/test_utils.c", "testlib/do_loops.c", "testlib/clockcore.c",
        "validation_tests/instructions_testcode.c")
FLAGS = ("-O1", "-w", "-D_GNU_SOURCE", "-I.", "-Itestlib", "-Ivalidation_tests", "-Wl,--allow-shlib-undefined")
LIBRARY = "usr/lib/aarch64-linux-gnu/libpapi.so.7.0"


def _compile(source, root, place):
    compiler = need_program("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    for name in NAMES:
        command = [compiler, f"--sysroot={root}", *FLAGS, "-o", str(place / name), f"ctests/{name}.c", *WITH,
                   str(root / LIBRARY), "-lpthread", "-lm", "-ldl"]
        done = subprocess.run(command, cwd=source / "src", capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"PAPI's test program {name} does not build: {done.stderr.strip()[-300:]}")


def get():
    """The directory that has them."""
    root = Path(roots.get(ARM64))
    key = hashlib.sha256(" ".join((SUITE, str(root), *NAMES, *WITH, *FLAGS)).encode()).hexdigest()[:16]

    def fill(place):
        say(f"fetching the source of PAPI's tests from {SUITE}; the build takes some seconds, once")
        apt = PrivateApt(SUITE, AMD64, sources=True)
        apt.update()
        with tempfile.TemporaryDirectory(dir=cache_dir("papi-tests"), prefix=".build") as name:
            source = Path(name) / "source"
            source.mkdir()
            subprocess.run(["tar", "-xf", str(apt.source_tarball("papi", name)), "-C", str(source), "--strip-components=1"],
                           check=True)
            _compile(source, root, place)

    place = cache_dir("papi-tests") / key
    publish(place, "papi-tests", NAMES[-1], False, fill)
    return place
