"""Bochs, the emulator of Intel's VMX: built once, from Debian's source package, into the cache."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .arch import AMD64
from .common import LabError, cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "trixie"  # the first with Bochs 3.0: older ones lack much of what kvm_intel asks for
CONFIGURE = ("--enable-cpu-level=6", "--enable-x86-64", "--enable-smp", "--enable-vmx=2", "--enable-svm",
             "--enable-avx", "--enable-evex", "--enable-pci", "--enable-all-optimizations",
             "--enable-handlers-chaining", "--enable-long-phy-address", "--with-nogui", "--disable-docbook")
FLAGS = "-O2 -fno-strict-aliasing -pipe"
UNITS = 470  # files to compile, about; for the progress
# The machine's firmware and boot loader: package -> its files.
FIRMWARE = {"bochsbios": ["usr/share/bochs/BIOS-bochs-latest"], "vgabios": ["usr/share/vgabios/vgabios.bin"],
            "isolinux": ["usr/lib/ISOLINUX/isolinux.bin"],
            "syslinux-common": ["usr/lib/syslinux/modules/bios/ldlinux.c32"]}


def _show(done, began):
    """A line on a terminal that is written over; elsewhere one now and then."""
    text = f"building Bochs: {min(done * 100 // UNITS, 99)} %, {time.monotonic() - began:.0f} s"
    if sys.stderr.isatty():
        print(f"\rvlab: {text} ", end="", file=sys.stderr, flush=True)
    elif done % 94 == 0:
        say(text)


def _follow(process, log, began):
    """Pass make's output on to the log, and count what is compiled."""
    done = 0
    for line in process.stdout:
        log.write(line)
        if re.match(r"\S*g?(?:\+\+|cc) (?:.* )?-c ", line):
            done += 1
            _show(done, began)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return process.wait()


def _compile(source, log_path):
    # make would hand these on in place of configure's own, if it were given them.
    env = {**os.environ, "CFLAGS": FLAGS, "CXXFLAGS": FLAGS, "LC_ALL": "C"}
    began = time.monotonic()
    with open(log_path, "w", encoding="utf-8") as log:
        done = subprocess.run(["./configure", *CONFIGURE], cwd=source, env=env, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, check=False)
        if done.returncode == 0:
            with subprocess.Popen(["make", f"-j{len(os.sched_getaffinity(0))}"], cwd=source, env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace") as process:
                status = _follow(process, log, began)
        else:
            status = done.returncode
    if status or not (source / "bochs").exists():
        raise LabError(f"Bochs does not build: see {log_path}")
    say(f"built Bochs in {time.monotonic() - began:.0f} s")


def _firmware(apt, temporary, place):
    for deb in apt.download(FIRMWARE, temporary):
        subprocess.run([need_program("dpkg", "dpkg"), "-x", str(deb), str(temporary / "firmware")], check=True)
    for paths in FIRMWARE.values():
        for path in paths:
            shutil.copy(temporary / "firmware" / path, place / Path(path).name)


def _fill(place):
    for program, package in (("g++", "g++"), ("make", "make"), ("xz", "xz-utils")):
        need_program(program, package)
    say(f"a host of Intel needs Bochs: fetching its source from {SUITE}; the build takes 3 to 6 minutes, once")
    apt = PrivateApt(SUITE, AMD64, sources=True)
    apt.update()
    with tempfile.TemporaryDirectory(dir=cache_dir("bochs"), prefix=".build") as name:
        temporary = Path(name)
        tarball = apt.source_tarball("bochs", temporary)
        source = temporary / "source"
        source.mkdir()
        subprocess.run(["tar", "-xf", str(tarball), "-C", str(source), "--strip-components=1"], check=True)
        _firmware(apt, temporary, place)
        _compile(source, cache_dir("bochs") / "build.log")
        shutil.copy(source / "bochs", place / "bochs")
        subprocess.run(["strip", str(place / "bochs")], check=False)
        version = tarball.name.removeprefix("bochs_").partition(".orig")[0]
        (place / "version").write_text(version + "\n", encoding="ascii")


def get(refresh=False):
    """The directory that has Bochs, its firmware and its version."""
    key = hashlib.sha256(" ".join((SUITE, FLAGS, *CONFIGURE, *FIRMWARE)).encode()).hexdigest()[:16]
    place = cache_dir("bochs") / key
    try:
        publish(place, "bochs", "version", refresh, _fill)
    except LabError as error:
        raise LabError(f"a lab host with vendor=intel needs Bochs, which is neither in the cache nor can be "
                       f"built: {error}") from error
    return place
