"""Disk images for a lab host that mounts nothing over 9p: its root, what one run adds to it, its results.

The root is the machine's own, but only the files of the packages that a lab host needs; it is made
once and kept in the cache. A run's own files are overlaid: the repository, vperf, workloads, guests, plan.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from . import initramfs
from .common import REPO, LabError, build_dir, cache_dir, locked, need_program, say
from .kernels import module_files

PACKAGES = ("base-files", "base-passwd", "bash", "bpftool", "busybox-static", "coreutils", "diffutils", "findutils",
            "gawk", "mawk", "grep", "hostname", "iproute2", "kmod", "libc-bin", "libelf1", "libgomp1", "libjson-c5", "liblzma5",
            "libxxhash0", "libzstd1", "linux-perf", "procps", "python3", "qemu-system-x86", "seabios", "sed", "tar", "trace-cmd",
            "util-linux", "zlib1g")
NEEDED = ("bash", "busybox-static", "coreutils", "kmod", "python3", "qemu-system-x86", "tar", "util-linux")
LEFT_OUT = re.compile(r"/usr/share/(doc|man|info|locale|icons|lintian|bash-completion|perl|zoneinfo)/|"
                      r"/usr/lib/(python3/dist-packages|llvm)|/usr/lib/x86_64-linux-gnu/(dri|libLLVM)")
ETC = ("alternatives", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "passwd")
MERGED = ("bin", "lib", "lib64", "sbin")
BLOCK = 516096  # a cylinder of 16 heads and 63 sectors: Bochs wants whole ones
MODULES = ("kvm-intel", "vhost_vsock", "tun", "loop", "vmw_vsock_virtio_transport")
RESULTS = 1 << 30


def _installed():
    """Packages of this machine: name -> (version, what it depends on)."""
    form = "${db:Status-Status}\t${Package}\t${Version}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    text = subprocess.run([need_program("dpkg-query", "dpkg"), "-W", "-f", form], capture_output=True, text=True,
                          check=True).stdout
    packages, provided = {}, {}
    for line in text.splitlines():
        status, name, version, depends, provides = line.split("\t")
        if status == "installed":
            names = [re.sub(r"[\s:(].*", "", item.strip()) for item in re.split(r"[,|]", depends)]
            packages[name] = (version, [n for n in names if n])
            for item in provides.split(","):
                provided.setdefault(re.sub(r"[\s:(].*", "", item.strip()), name)
    return packages, provided


def _closure(packages, provided):
    found, queue = {}, list(PACKAGES)
    missing = [name for name in NEEDED if name not in packages]
    if missing:
        raise LabError(f"the root of a host of Intel needs the package {missing[0]} on this machine "
                       f"(see lab/packages.txt and lab/packages-intel.txt)")
    while queue:
        name = queue.pop()
        name = name if name in packages else provided.get(name)
        if name and name not in found:
            found[name] = packages[name][0]
            queue += packages[name][1]
    return found


def _files(names):
    text = subprocess.run([need_program("dpkg-query", "dpkg"), "-L", *sorted(names)], capture_output=True, text=True,
                          check=False).stdout
    paths = set()
    for line in text.splitlines():
        if line.startswith("/") and not LEFT_OUT.search(line + "/") and os.path.lexists(line):
            path = os.path.join(os.path.realpath(os.path.dirname(line)), os.path.basename(line))
            if os.path.islink(path) or not os.path.isdir(path):
                paths.add(path)
    return paths


def _with_targets(paths):
    """Links lead somewhere."""
    queue = [path for path in paths if os.path.islink(path)]
    while queue:
        link = queue.pop()
        target = os.path.join(os.path.dirname(link), os.readlink(link))
        target = os.path.join(os.path.realpath(os.path.dirname(target)), os.path.basename(target))
        if os.path.isfile(target) and target not in paths:
            paths.add(target)
            if os.path.islink(target):
                queue.append(target)
    return paths


def add(source, stage, name=None):
    """A file or link of this machine, at its own path or another one, into a tree."""
    target = stage / str(name or source).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(target) and (os.path.islink(source) or stat.S_ISREG(os.stat(source).st_mode)):
        shutil.copy2(source, target, follow_symlinks=False)


def _add_root(stage, names):
    for name in MERGED:
        if os.path.islink(f"/{name}"):
            (stage / "usr" / name).mkdir(parents=True)
            (stage / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "out", "var/tmp"):
        (stage / name).mkdir(parents=True)
    for path in sorted(_with_targets(_files(names))):
        try:
            add(path, stage)
        except PermissionError:
            pass  # what only root may read, no lab host needs
    for name in ETC:
        path = Path("/etc", name)
        for entry in path.iterdir() if path.is_dir() else [path]:
            if os.path.lexists(entry):
                add(entry, stage)


def write_disc(tree, path, *options):
    """An ISO 9660 file system with what is in a tree, as large as a disk can be. (Its module loads much faster
    than ext4's in the emulated computer.)"""
    done = subprocess.run([need_program("xorriso", "xorriso"), "-as", "mkisofs", "-quiet", "-R", "-D", "-iso-level", "3",
                           "-o", str(path), *options, str(tree)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"no disk image of {tree}: {done.stderr.strip()[-300:]}")
    with open(path, "r+b") as image:
        image.truncate(-(-path.stat().st_size // BLOCK) * BLOCK)


def root():
    """The image of the lab host's root, from the cache if the packages are the same."""
    names = _closure(*_installed())
    text = "".join(f"{name} {version}\n" for name, version in sorted(names.items()))
    key = hashlib.sha256((text + Path(__file__).read_text(encoding="utf-8")).encode()).hexdigest()[:16]
    path = cache_dir("disks") / f"root-{key}.img"
    if path.exists():
        return path
    with locked("disks"), tempfile.TemporaryDirectory(dir=cache_dir("disks"), prefix=".root") as name:
        if path.exists():
            return path
        say(f"making the lab host's root of {len(names)} packages of this machine")
        stage = Path(name) / "tree"
        stage.mkdir(mode=0o755)
        _add_root(stage, names)
        write_disc(stage, Path(name) / "image")
        for old in cache_dir("disks").glob("root-*.img"):
            old.unlink()  # a lab that runs keeps it open
        (Path(name) / "image").rename(path)
    return path


def _repository():
    """Its files, without what is built in it."""
    done = subprocess.run(["git", "-C", str(REPO), "ls-files", "-z", "-co", "--exclude-standard"],
                          capture_output=True, check=False)
    if done.returncode == 0:
        return [REPO / os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    return [path for path in REPO.rglob("*") if not path.relative_to(REPO).parts[0].startswith((".", "build", "vlab-out"))]


def _programs(directory):
    return [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK)
            and path.suffix not in (".so", ".exe")]


def _add_programs(stage, arch, programs):
    libraries = {}
    for program in programs:
        add(program, stage)
        if program.read_bytes()[:4] == b"\x7fELF":
            libraries.update(initramfs.shared_libraries(program, arch))
    for name, path in libraries.items():
        real = Path(os.path.realpath(name))
        add(os.path.realpath(path), stage, os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name)))
        add(real, stage)


def _add_modules(stage, kernel):
    base = kernel.modules.resolve()
    for path in module_files(kernel, MODULES):
        add(path.resolve(), stage, f"/usr/lib/modules/{kernel.version}/{path.resolve().relative_to(base)}")
    for path in base.glob("modules.*"):
        add(path, stage, f"/usr/lib/modules/{kernel.version}/{path.name}")


def write_run(lab, plan, path):
    """The image of what one run adds to the root."""
    with tempfile.TemporaryDirectory(dir=lab.work, prefix="tree") as name:
        stage = Path(name) / "tree"
        stage.mkdir(mode=0o755)
        for entry in _repository():
            if entry.is_file():
                add(entry, stage)
        build = build_dir(lab.arch)
        built = [build / program for program in ("vperf", "vperf-agent", "src/vperf", "src/vperf-agent")]
        built = [program for program in built if program.is_file()]
        if (build / "tests" / "lab").is_dir():
            built += _programs(build / "tests" / "lab")
        _add_programs(stage, lab.arch, built + _programs(lab.programs))
        _add_modules(stage, lab.kernel)
        for guest in plan["guests"]:
            add(os.path.realpath(guest["image"]), stage, guest["image"])
            add(guest["initrd"], stage)
        for entry in ("plan.json", "settings"):
            add(lab.out / "vlab" / entry, stage, f"/lab-out/vlab/{entry}")
        write_disc(stage, path)


def write_empty(path):
    """A disk for the results."""
    with open(path, "wb") as image:
        image.truncate(RESULTS // BLOCK * BLOCK)
