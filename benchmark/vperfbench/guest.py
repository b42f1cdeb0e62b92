"""A KVM guest for one step: a Linux kernel that QEMU loads, whose root is this machine's, read-only over 9p under
an overlay in its memory, so that the same programs run there. Tests run on a disk of its own."""

import os
import platform
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .common import BenchError, program, read_text
from .plan import Configuration

MODULES = ("virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "overlay", "ext4")
READY_LIMIT = 300  # seconds to boot in
INIT = """#!/bin/busybox sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox mkdir -p /proc /sys /dev /root /upper /share
/bin/busybox mount -t proc proc /proc; /bin/busybox mount -t sysfs sys /sys; /bin/busybox mount -t devtmpfs dev /dev
while read module; do /bin/busybox insmod $module 2>/dev/null; done < /modules
stop() { echo "vperf-bench: $1" > /dev/console; /bin/busybox poweroff -f; }
nine() { /bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,$3 $1 $2; }
nine root /root ro,cache=loose || stop "no root over 9p"
nine share /share rw,cache=none || stop "no shared directory over 9p"
/bin/busybox mount -t tmpfs tmpfs /upper; /bin/busybox mkdir /upper/up /upper/work /upper/new
/bin/busybox mount -t overlay -o lowerdir=/root,upperdir=/upper/up,workdir=/upper/work overlay /upper/new || stop "no overlay"
cd /upper/new
for place in proc sys dev; do /bin/busybox mkdir -p $place; /bin/busybox mount --move /$place $place; done
/bin/busybox mkdir -p run tmp vperf-bench
/bin/busybox mount -t tmpfs tmpfs run; /bin/busybox mount -t tmpfs tmpfs tmp; /bin/busybox mount --move /share vperf-bench
exec /bin/busybox chroot . /bin/sh /vperf-bench/inside
"""
INSIDE = """export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
finish() {{ sync; echo o > /proc/sysrq-trigger; sleep 60; }}
stop() {{ echo "$1" > /vperf-bench/failed; finish; }}
mkdir -p /run/work
mke2fs -q -F -t ext4 /dev/vda > /run/mke2fs 2>&1 || stop "mke2fs: $(cat /run/mke2fs)"
mount -t ext4 /dev/vda /run/work || stop "the disk of the test cannot be mounted"
cd /run/work
uname -r > /vperf-bench/kernel
mkdir test
if [ -s /vperf-bench/warm ]; then
	mkdir warm; (cd warm && SCALE={scale} sh /vperf-bench/warm) > /vperf-bench/warm.out 2>&1 || stop "the hot run failed"
	rm -rf warm
fi
(cd test && SCALE={scale} sh /vperf-bench/prepare) > /vperf-bench/prepare.out 2>&1 || stop "the preparation failed"
sync
[ {cold} = no ] || echo 3 > /proc/sys/vm/drop_caches
touch /vperf-bench/ready
while [ ! -e /vperf-bench/go ]; do sleep 0.05; done
{python} /vperf-bench/measure.py /vperf-bench/spec.json 2> /vperf-bench/measure.err || stop "$(cat /vperf-bench/measure.err)"
finish
"""


def kernel_of(configuration: Configuration) -> Path:
    """The kernel's file: the one that the plan names, or the one that runs here when the guest does."""
    return Path(configuration.guest_kernel or f"/boot/vmlinuz-{configuration.kernel or platform.release()}")


def _release(image: Path) -> str:
    """As uname -r prints it there: by the boot protocol's header."""
    with open(image, "rb") as handle:
        head = handle.read(65536)
    if len(head) < 0x210 or head[0x202:0x206] != b"HdrS":
        return ""
    offset = int.from_bytes(head[0x20e:0x210], "little") + 0x200
    return head[offset:offset + 128].split(b"\0")[0].split(b" ")[0].decode("ascii", "replace")


def _module_root(image: Path, release: str) -> Path | None:
    for root in (image.parent.parent, Path("/"), image.parent.parent.parent):
        if release and (root / "lib/modules" / release / "modules.dep").is_file():
            return root
    return None


def fault(configuration: Configuration) -> tuple[str, str]:
    """(key, why) if no such guest can be started here, else ("", "")."""
    image = kernel_of(configuration)
    key = "guest-kernel" if configuration.guest_kernel else "where"
    if platform.machine() != "x86_64":
        return "where", f"guests are started on x86-64 only, this machine is {platform.machine()}"
    if not program("qemu-system-x86_64"):
        return "where", "qemu-system-x86_64 is not installed (Debian package qemu-system-x86)"
    if not program("busybox"):
        return "where", "busybox is not installed (Debian package busybox-static)"
    if not program("mke2fs"):
        return "where", "mke2fs is not installed (Debian package e2fsprogs)"
    if not configuration.kernel and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "where", "/dev/kvm cannot be opened: is this machine a KVM host, and this user allowed to?"
    if not os.access(image, os.R_OK):
        return key, f"the kernel '{image}' cannot be read"
    if not _release(image):
        return key, f"'{image}' is no kernel for x86 (no boot protocol's header)"
    if not has_modules(image):
        return key, f"the modules of kernel {_release(image)} are neither beside '{image}' nor in /lib/modules"
    if configuration.disk != "virtual" and not Path(configuration.disk).is_block_device():
        return "disk", f"'{configuration.disk}' is neither virtual nor a block device"
    return "", ""


def cpio(entries: list[tuple[str, int, bytes]]) -> bytes:
    """An archive in the format "newc"."""
    out = b""
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        raw = name.encode() + b"\0"
        head = b"070701" + b"".join(b"%08X" % field for field in (
            number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)) + raw
        out += head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
    return out


def _module(path: Path) -> bytes:
    if path.suffix == ".xz":
        import lzma
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout
    return path.read_bytes()


def modules_of(image: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Modules of a kernel with those that they need, in the order in which they can be loaded: file name -> content."""
    release = _release(image)
    root = _module_root(image, release)
    files: list[Path] = []
    for name in names:
        done = subprocess.run([program("modprobe") or "modprobe", "--show-depends", "-d", str(root), "-S", release, name],
                              capture_output=True, text=True, check=False)
        for words in map(str.split, done.stdout.splitlines()):
            if words[0] == "insmod" and Path(words[1]) not in files:
                files.append(Path(words[1]))
    return {path.name.removesuffix(".xz").removesuffix(".zst"): _module(path) for path in files}


def has_modules(image: Path) -> bool:
    """Whether the modules of that kernel are beside it, or this machine's."""
    return bool(_module_root(image, _release(image)))


def _initramfs(image: Path) -> bytes:
    modules = modules_of(image, MODULES)
    entries = [("bin", 0o040755, b""), ("dev", 0o040755, b""), ("ko", 0o040755, b""),
               ("init", 0o100755, INIT.encode()),
               ("bin/busybox", 0o100755, Path(program("busybox") or "").read_bytes()),
               ("modules", 0o100644, "".join(f"/ko/{name}\n" for name in modules).encode())]
    entries += [(f"ko/{name}", 0o100644, data) for name, data in modules.items()]
    return cpio(entries)


def _cache_mode(disk: str) -> str:
    """A guest's disk is not cached by this machine, too, where the file system can do without."""
    try:
        os.close(os.open(disk, os.O_RDONLY | os.O_DIRECT))
        return "none"
    except OSError:
        return "writeback"


class Guest:
    """A guest that is ready to run a step's test, in the directory `share`."""

    def __init__(self, configuration: Configuration, share: Path, disk: Path) -> None:
        self.configuration, self.share, self.disk = configuration, share, disk
        self.name = f"vperf-bench-{configuration.name}"
        self.process: subprocess.Popen | None = None

    def start(self, files: dict[str, str], scale: int, cold: bool, python: str) -> None:
        """Boots it; files: prepare, warm, spec.json. Returns when it has prepared the test."""
        self.share.mkdir()
        shutil.copy2(Path(__file__).with_name("measure.py"), self.share / "measure.py")
        for name, text in files.items():
            (self.share / name).write_text(text, encoding="utf-8")
        (self.share / "inside").write_text(INSIDE.format(scale=scale, cold="yes" if cold else "no", python=python),
                                           encoding="utf-8")
        image = kernel_of(self.configuration)
        initramfs = self.share / "initramfs"
        initramfs.write_bytes(_initramfs(image))
        if self.configuration.disk == "virtual":
            with open(self.disk, "wb") as handle:
                handle.truncate(self.configuration.disk_size)
        with open(self.share / "vmm.err", "wb") as err:
            self.process = subprocess.Popen(self._command(image, initramfs), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
        limit = time.monotonic() + READY_LIMIT
        while not (self.share / "ready").exists():
            if (self.share / "failed").exists():
                raise BenchError(f"in the guest: {read_text(self.share / 'failed')}")
            if self.process.poll() is not None:
                raise BenchError(f"the guest ended before it was ready: {read_text(self.share / 'vmm.err')[-300:]} "
                                 f"{self._last_words()}")
            if time.monotonic() > limit:
                raise BenchError(f"the guest was not ready after {READY_LIMIT} s {self._last_words()}")
            time.sleep(0.1)

    def _last_words(self) -> str:
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc", "", read_text(self.share / "console"))
        return f"(its console ends: {' | '.join(text.splitlines()[-3:])})"

    def _command(self, image: Path, initramfs: Path) -> list[str]:
        own = self.configuration
        pin = ["taskset", "-c", own.cpus] if own.cpus else []
        disk = str(self.disk if own.disk == "virtual" else own.disk)
        share = str(self.share).replace(",", ",,")
        return [*pin, "qemu-system-x86_64", "-name", self.name, "-accel", "kvm", "-cpu",
                own.guest_cpu, "-smp", str(own.vcpus), "-m", f"{own.memory >> 20}M",
                "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial",
                f"file:{share}/console", "-kernel", str(image), "-initrd", str(initramfs), "-append",
                f"console=ttyS0 panic=-1 rdinit=/init quiet {own.guest_append}".strip(),
                "-drive", "file=" + disk.replace(",", ",,") + f",format=raw,if=virtio,cache={_cache_mode(disk)}",
                "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
                "-virtfs", f"local,path={share},mount_tag=share,security_model=none"]

    def stop(self) -> None:
        """It ends by itself after the test; if not, it is killed."""
        if self.process:
            try:
                self.process.wait(30 if (self.share / "measured.json").exists() else 0.1)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        (self.share / "initramfs").unlink(missing_ok=True)
        if self.configuration.disk == "virtual":
            self.disk.unlink(missing_ok=True)
