"""A guest of Xen for one step, started by xl in dom0. It has no file system of this machine's: the programs that tests
need are packed into its initramfs with their libraries, tests run in its memory or on a disk of its own, and it talks over its console."""

import base64
import json
import os
import re
import subprocess
import termios
import threading
import time
import tty
from pathlib import Path

from . import xendisk
from .common import BenchError, program, read_text
from .guest import READY_LIMIT, cpio, has_modules, kernel_of, modules_of
from .plan import Configuration

MODULES = "json, os, resource, select, signal, subprocess, sys, time"  # measure.py's
PYTHON = ("-S", "-E")
FEW_DEVICES = {"vga": "none", "vnc": 0, "usb": 0, "nographic": 1}  # of an HVM guest's device model
END_LIMIT = 30  # seconds to switch itself off in
# Its console has lines of its own, with a mark; kernels say other things there.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /applets
/bin/busybox --install -s /applets
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/applets HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
exec < /dev/hvc0 > /dev/hvc0 2>&1
stty raw -echo; dmesg -n 1
tell() { echo "@$1 $(base64 $2 | tr -d '\\n')"; }
stop() { echo "$1" > /tmp/why; tell failed /tmp/why; read -t 20 end; poweroff -f; }
mkdir -p /run/work
if [ -s /modules ]; then
	while read module; do insmod $module; done < /modules
	tries=0
	until [ -b /dev/@DISK@ ] || [ $tries = 300 ]; do sleep 0.1; tries=$((tries + 1)); done
	mount -t ext4 /dev/@DISK@ /run/work || stop "the disk of the test cannot be mounted"
fi
mkdir /run/work/test; cd /run/work
uname -r > /tmp/kernel; tell kernel /tmp/kernel
if [ -s /vperf-bench/warm ]; then
	mkdir warm; (cd warm && SCALE=@SCALE@ @SH@ /vperf-bench/warm) > /tmp/out 2>&1 || stop "the hot run failed: $(tail -n 1 /tmp/out)"
	rm -rf warm
fi
(cd test && SCALE=@SCALE@ @SH@ /vperf-bench/prepare) > /tmp/out 2>&1 || stop "the preparation failed: $(tail -n 1 /tmp/out)"
sync
[ ! -s /modules ] || [ @COLD@ = no ] || echo 3 > /proc/sys/vm/drop_caches
echo "@ready"
read go
@PYTHON@ /vperf-bench/measure.py /vperf-bench/spec.json 2> /tmp/err || stop "$(tail -n 1 /tmp/err)"
for name in stdout stderr measured.json; do
	tail -c 1000000 /vperf-bench/$name > /tmp/sent; tell $name /tmp/sent
done
read -t 20 end; poweroff -f
"""
FILES = ("kernel", "failed", "stdout", "stderr", "measured.json")


def _device_models() -> list[Path]:
    """Where Debian has it, and where Xen's own build puts it."""
    return [path for folder, name in (("/usr/libexec", "xen-qemu-system-i386"), ("/usr/lib", "xen*/bin/qemu-system-i386"),
                                      ("/usr/local/lib", "xen*/bin/qemu-system-i386")) for path in Path(folder).glob(name)]


def fault(configuration: Configuration, needs: list[str]) -> tuple[str, str]:
    """(key, why) if no such guest can be started here, else ("", "")."""
    for name, package in (("xl", "xen-utils"), ("xenstore-read", "xenstore-utils"), ("busybox", "busybox-static"), ("ldd", "libc-bin")):
        if not program(name):
            return "where", f"{name} is not installed (Debian package {package})"
    if configuration.guest_type == "hvm" and not _device_models():
        return "guest-type", "there is no device model for guests of this type (Debian package qemu-system-xen)"
    image = kernel_of(configuration)
    if not os.access(image, os.R_OK):
        return "guest-kernel" if configuration.guest_kernel else "where", f"the kernel '{image}' cannot be read"
    for name in (*configuration.programs, *needs):
        if not program(name):
            return "programs", f"'{name}' is not installed"
    if configuration.disk != "memory" and not has_modules(image):
        return "disk", f"the modules of the kernel '{image}' are neither beside it nor in /lib/modules"
    return xendisk.fault(configuration)


def _libraries(path: Path) -> list[Path]:
    """What a program or a library loads, as the dynamic linker says."""
    done = subprocess.run([program("ldd") or "ldd", str(path)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return [Path(word) for word in re.findall(r"(/\S+) \(0x", done.stdout)]


def _python(executable: str) -> list[Path]:
    """The interpreter, and what measure.py imports."""
    script = f"import {MODULES}; print(*(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)), sep='\\n')"
    done = subprocess.run([executable, *PYTHON, "-c", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError(f"{executable} does not import {MODULES}: {done.stderr.strip()[-200:]}")
    return [Path(executable), *map(Path, done.stdout.split("\n")[:-1])]


def packed(paths: list[Path]) -> dict[str, bytes]:
    """Files with all that they load: path -> content."""
    found: dict[str, bytes] = {}
    for path in paths:
        for own in [path] if path.suffix == ".py" else [path, *_libraries(path)]:
            if str(own) not in found:
                found[str(own)] = own.read_bytes()
    return found


def initramfs(files: dict[str, bytes]) -> bytes:
    """An archive of files, and of the directories that they are in."""
    directories = sorted({str(parent) for name in files for parent in Path(name).parents} - {"/"})
    entries = [(name.lstrip("/"), 0o040755, b"") for name in directories]
    return cpio(entries + [(name.lstrip("/"), 0o100755, data) for name, data in sorted(files.items())])


class Console(threading.Thread):
    """Between a domain's console and the directory `share`: the files that it sends, and the word to go."""

    def __init__(self, path: str, share: Path) -> None:
        super().__init__(daemon=True)
        self.handle = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        tty.setraw(self.handle, termios.TCSANOW)
        os.set_blocking(self.handle, False)
        self.share, self.rest, self.told, self.ended = share, b"", False, False

    def take(self, data: bytes) -> None:
        """What the console said."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            word, _, held = line.strip().decode("ascii", "replace").partition(" ")
            if word == "@ready":
                (self.share / "ready").touch()
            elif word[:1] == "@" and word[1:] in FILES:
                self._keep(word[1:], held)
            else:
                with open(self.share / "console", "ab") as log:
                    log.write(line + b"\n")

    def _keep(self, name: str, held: str) -> None:
        try:
            data = base64.b64decode(held, validate=True)
        except ValueError:
            name, data = "failed", f"what the guest sent as '{name}' was damaged".encode()
        beside = self.share / f".{name}"
        beside.write_bytes(data)
        beside.rename(self.share / name)  # whole, for who waits for it
        if name in ("failed", "measured.json"):
            os.write(self.handle, b"end\n")  # it waits for that, since what is on its way would be lost

    def run(self) -> None:
        """Until the domain is gone."""
        while not self.ended:
            try:
                self.take(os.read(self.handle, 65536))
            except BlockingIOError:
                if not self.told and (self.share / "go").exists():
                    os.write(self.handle, b"go\n")
                    self.told = True
                time.sleep(0.05)
            except OSError:
                break
        os.close(self.handle)


class XenGuest:
    """As guest.Guest: ready to run a step's test, in the directory `share`."""

    def __init__(self, configuration: Configuration, needs: list[str], share: Path, image: Path) -> None:
        self.configuration, self.needs, self.share = configuration, needs, share
        self.disk = xendisk.Disk(configuration, image)
        self.name = f"vperf-bench-{os.getpid()}"
        self.console: Console | None = None

    def start(self, files: dict[str, str], scale: int, cold: bool, python: str) -> None:
        """Boots it; files: prepare, warm, spec.json. Returns when it has prepared the test. Without a disk its files are in memory: none is
        cold."""
        self.share.mkdir()
        self.disk.attach()
        shell = program("sh") or "sh"  # the machine's: busybox's would prefer its own programs
        programs = [Path(shell), *(Path(program(name) or name) for name in (*self.configuration.programs, *self.needs))]
        content = packed([*_python(python), *programs])
        content["/bin/busybox"] = Path(program("busybox") or "").read_bytes()
        script = INIT.replace("@SCALE@", str(scale)).replace("@PYTHON@", " ".join([python, *PYTHON])).replace("@SH@", shell)
        script = script.replace("@DISK@", xendisk.NAME).replace("@COLD@", "yes" if cold else "no")
        content["/init"] = script.encode()
        content["/vperf-bench/measure.py"] = Path(__file__).with_name("measure.py").read_bytes()
        content |= {f"/vperf-bench/{name}": text.encode() for name, text in files.items()}
        modules = modules_of(kernel_of(self.configuration), self.disk.modules)
        content |= {f"/ko/{name}": data for name, data in modules.items()}
        content["/modules"] = "".join(f"/ko/{name}\n" for name in modules).encode()
        (self.share / "initramfs").write_bytes(initramfs(content))
        (self.share / "xl.cfg").write_text(self.settings(), encoding="utf-8")
        self._xl("create", "-q", str(self.share / "xl.cfg"))
        limit = time.monotonic() + READY_LIMIT
        while not (self.share / "ready").exists():
            if (self.share / "failed").exists():
                raise BenchError(f"in the guest: {read_text(self.share / 'failed')}")
            domain = self._domain()
            if not domain or time.monotonic() > limit:
                last = " | ".join(read_text(self.share / "console").splitlines()[-3:])
                raise BenchError(f"the guest {'was not ready after ' + str(READY_LIMIT) + ' s' if domain else 'ended before it was ready'} "
                                 f"(its console ends: {last})")
            if not self.console:
                self._listen(domain)
            time.sleep(0.1)

    def settings(self) -> str:
        """What xl is told."""
        own = self.configuration
        values = {"name": self.name, "type": own.guest_type, "kernel": str(kernel_of(own)), "ramdisk": str(self.share / "initramfs"),
                  "extra": f"console=hvc0 quiet panic=-1 rdinit=/init {own.guest_append}".strip(), "memory": own.memory >> 20,
                  "vcpus": own.vcpus, **self.disk.settings(), "on_crash": "destroy", "on_reboot": "destroy", **({"cpus": own.cpus} if own.cpus else {}),
                  **(FEW_DEVICES if own.guest_type == "hvm" else {})}
        return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()) + own.guest_config + "\n"

    def _xl(self, *arguments: str) -> str:
        done = subprocess.run([program("xl") or "xl", *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            first = " | ".join(done.stderr.strip().splitlines()[:3])  # the cause; then, at length, what it was taken back with
            raise BenchError(f"xl {arguments[0]} ended with status {done.returncode}: {first}")
        return done.stdout.strip()

    def _domain(self) -> str:
        try:
            return self._xl("domid", self.name)
        except BenchError:
            return ""

    def _listen(self, domain: str) -> None:
        done = subprocess.run([program("xenstore-read") or "", f"/local/domain/{domain}/console/tty"], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL)
        if done.returncode == 0 and done.stdout.strip():
            self.console = Console(done.stdout.strip(), self.share)
            self.console.start()

    def stop(self) -> None:
        """It ends by itself after the test; if not, it is destroyed."""
        limit = time.monotonic() + (END_LIMIT if (self.share / "measured.json").exists() else 0)
        while self._domain():
            if time.monotonic() > limit:
                subprocess.run([program("xl") or "xl", "destroy", self.name], check=False, stdin=subprocess.DEVNULL, capture_output=True)
                break
            time.sleep(0.1)
        if self.console:
            self.console.ended = True
            self.console.join(5)
        (self.share / "initramfs").unlink(missing_ok=True)
        self.disk.detach()
