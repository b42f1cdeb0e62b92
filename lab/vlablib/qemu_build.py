"""QEMU with a PMU for TCG's x86 (lab/qemu): built once, from Debian's source package, into the cache."""

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
from .common import LAB, LabError, cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"  # QEMU 7.2, which lab/qemu/hooks is written for
CODE = LAB / "qemu"
CONFIGURE = ("--target-list=x86_64-softmmu", "--without-default-features", "--enable-tcg", "--disable-kvm", "--enable-system", "--disable-user",
             "--without-default-devices", "--with-devices-x86_64=lab", "--enable-virtfs", "--enable-attr", "--enable-cap-ng", "--disable-tools",
             "--disable-docs", "--disable-guest-agent", "--disable-werror", "--disable-debug-info", "--with-git-submodules=ignore", "--prefix=/usr",
             "--disable-install-blobs")
PROGRAM = "qemu-system-x86_64"
# Debian's directories of firmware; packages that qemu-system-x86 depends on have them.
FIRMWARE = ("/usr/share/qemu", "/usr/share/seabios", "/usr/lib/ipxe/qemu")
HEADERS = {"attr/attributes.h": "libattr1-dev", "cap-ng.h": "libcap-ng-dev", "glib-2.0/glib.h": "libglib2.0-dev", "libfdt.h": "libfdt-dev",
           "pixman-1/pixman.h": "libpixman-1-dev", "zlib.h": "zlib1g-dev"}


def _check_tools():
    for program, package in (("gcc", "gcc"), ("dpkg-source", "dpkg-dev"), ("meson", "meson"), ("ninja", "ninja-build"), ("pkg-config", "pkg-config")):
        need_program(program, package)
    missing = [package for header, package in HEADERS.items()
               if subprocess.run(["gcc", "-E", "-x", "c", "-"], input=f"#if !__has_include(<{header}>)\n#error\n#endif\n", text=True,
                                 capture_output=True, check=False).returncode]
    if missing:
        raise LabError(f"headers are missing: install {', '.join(missing)} (lab/packages-pmu.txt has all that is needed)")


def _show(done, total, began):
    """One line, overwritten, on a terminal; elsewhere one every 20 s or so."""
    text = f"building QEMU: {done * 100 // total}%, {time.monotonic() - began:.0f} s"
    if sys.stderr.isatty():
        print(f"\rvlab: {text} ", end="", file=sys.stderr, flush=True)
    elif done % 200 == 0:
        say(text)


def _run(command, directory, log, began=None):
    """Returns the exit status. Output goes to the log; with `began`, ninja's progress is shown."""
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env={**os.environ, "LC_ALL": "C"}) as process:
        for line in process.stdout:
            log.write(line)
            step = re.match(r"\[(\d+)/(\d+)\] ", line)
            if began and step:
                _show(int(step[1]), int(step[2]), began)
        if began and sys.stderr.isatty():
            print(file=sys.stderr)
        return process.wait()


def _compile(source, log_path):
    began = time.monotonic()
    build = source / "build"
    build.mkdir()
    with open(log_path, "w", encoding="utf-8") as log:
        steps = (([str(CODE / "hooks"), str(source)], source, None), (["../configure", *CONFIGURE], build, None),
                 (["ninja", PROGRAM], build, began))
        for command, directory, progress in steps:
            if _run(command, directory, log, progress):
                raise LabError(f"QEMU does not build ('{Path(command[0]).name}' failed): see {log_path}")
    say(f"built QEMU in {time.monotonic() - began:.0f} s")
    return build / PROGRAM


def _fill(place):
    _check_tools()
    say(f"a lab host with pmu=yes needs a QEMU of its own: fetching the source of {SUITE}'s; the build takes about 4 minutes, once")
    apt = PrivateApt(SUITE, AMD64, sources=True)
    apt.update()
    with tempfile.TemporaryDirectory(dir=cache_dir("qemu"), prefix=".build") as name:
        temporary = Path(name)
        description = apt.source_package("qemu", temporary)
        source = temporary / "source"
        done = subprocess.run(["dpkg-source", "--no-check", "-x", str(description), str(source)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"{description.name} cannot be unpacked: {done.stderr.strip()[-300:]}")
        program = _compile(source, cache_dir("qemu") / "build.log")
        shutil.copy(program, place / PROGRAM)
        subprocess.run(["strip", str(place / PROGRAM)], check=False)
        (place / "version").write_text(description.name.removeprefix("qemu_").removesuffix(".dsc") + "\n", encoding="ascii")


def _place():
    digest = hashlib.sha256(" ".join((SUITE, *CONFIGURE)).encode())
    for path in sorted(CODE.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return cache_dir("qemu") / digest.hexdigest()[:16]


def is_built():
    """Whether it is in the cache."""
    return (_place() / "version").exists()


def get(refresh=False):
    """The directory with the program and its version."""
    place = _place()
    try:
        publish(place, "qemu", "version", refresh, _fill)
    except LabError as error:
        raise LabError(f"a lab host with pmu=yes needs a QEMU with a PMU, which is neither in the cache nor can be built: {error}") from error
    return place


def command():
    """The program with its first arguments."""
    return [str(get() / PROGRAM), *(word for path in FIRMWARE for word in ("-L", path))]
