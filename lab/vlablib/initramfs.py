"""Initial RAM file systems for the lab host and its guests, written without any outside tool."""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import roots
from .common import LAB, LabError, build_dir, cache_dir, locked, need_program, say
from .kernels import module_files

GUEST_MODULES = ("virtio_pci", "virtio_blk", "vmw_vsock_virtio_transport")
XEN_AGENT_MODULES = ("xen-gntalloc", "xen-evtchn")  # a guest of Xen needs none but for its agent's vchan
CONTROL_PORT = 7000
COMPILE = ("-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-fno-omit-frame-pointer")

# How workloads are linked that are not simply dynamic.
LINK = {
    # Its static library: the shared one has no symbols for the functions where the time goes.
    "shor": ["-Wl,-Bstatic", "-lquantum", "-Wl,-Bdynamic", "-lgomp", "-lm"],
    # Under emulation, dynamic linking takes several times the work that the child is there for.
    "storm_child": ["-static"],
}


OWN_PROGRAMS = {"init": ("init.c", "line.c", "schedule.c"), "labrun": ("labrun.c", "schedule.c")}


class Archive:
    """A cpio archive in the "newc" format, in memory."""

    def __init__(self):
        self.entries = {}

    def _parents(self, name):
        parent = os.path.dirname(name)
        if parent and parent not in self.entries:
            self.add(parent, b"", 0o040755)

    def add(self, name, data, mode):
        """Add an entry; name as in the guest, with or without the leading slash."""
        name = name.strip("/")
        self._parents(name)
        self.entries[name] = (mode, data)

    def add_file(self, source, name):
        """Add a regular file of the machine."""
        source = Path(source)
        mode = 0o100755 if os.access(source, os.X_OK) else 0o100644
        self.add(name, source.read_bytes(), mode)

    def add_program(self, source, name, arch):
        """Add a program with the shared libraries it needs, these at their own paths."""
        self.add_file(source, name)
        for library, path in shared_libraries(source, arch).items():
            self.add_file(os.path.realpath(path), library)

    def add_text(self, name, text):
        """Add a small text file."""
        self.add(name, text.encode(), 0o100644)

    def bytes(self):
        """The archive; it can be followed by another one."""
        out = []
        for inode, (name, (mode, data)) in enumerate([*self.entries.items(),
                                                      ("TRAILER!!!", (0, b""))], 1):
            raw = name.encode() + b"\0"
            fields = (inode, mode, 0, 0, 2 if mode & 0o040000 else 1, 0, len(data),
                      0, 0, 0, 0, len(raw), 0)
            head = b"070701" + b"".join(b"%08X" % f for f in fields) + raw
            out += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
        body = b"".join(out)
        return body + b"\0" * (-len(body) % 512)


def _own_libraries(program):
    done = subprocess.run([need_program("ldd", "libc-bin"), str(program)], capture_output=True,
                          text=True, check=False)
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)
    if missing:
        raise LabError(f"'{program}' needs {missing[0]}, which this machine does not have")
    return {path: path for path in re.findall(r"(/\S+) \(0x", done.stdout)}


def _foreign_libraries(program, arch):
    root = roots.get(arch)
    found, queue = {}, [program]
    while queue:
        done = subprocess.run([need_program("readelf", "binutils"), "-Wld", str(queue.pop())],
                              capture_output=True, text=True, check=True)
        names = re.findall(r"interpreter: (\S+?)\]", done.stdout)
        names += [f"/usr/lib/{arch.triplet}/{name}"
                  for name in re.findall(r"\(NEEDED\).*\[(\S+?)\]", done.stdout)]
        for name in names:
            path = root / name.lstrip("/")
            if not path.exists():
                raise LabError(f"'{program}' needs {name}, which the root for {arch.name} lacks")
            if name not in found:
                found[name] = path
                queue.append(path)
    return found


def shared_libraries(program, arch):
    """The shared libraries and the loader that a program needs: path in a guest -> path here. A script has none."""
    with open(program, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return {}
    return _foreign_libraries(program, arch) if arch.foreign else _own_libraries(program)


def _module_data(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run([need_program("zstd", "zstd"), "-dcq", str(path)],
                              capture_output=True, check=True).stdout
    return data


def add_modules(archive, kernel, names):
    listing = []
    for path in module_files(kernel, names):
        name = "/lab/ko/" + path.name.removesuffix(".xz").removesuffix(".zst")
        archive.add(name, _module_data(path), 0o100644)
        listing.append(name)
    archive.add_text("/lab/modules", "".join(f"{n}\n" for n in listing))


def _digest(*parts):
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = part.read_bytes()
        total.update(part if isinstance(part, bytes) else str(part).encode())
        total.update(b"\0")
    return total.hexdigest()[:16]


def _compiler(arch):
    if not arch.foreign:
        return [need_program("gcc", "gcc")]
    return [need_program(f"{arch.triplet}-gcc", f"gcc-{arch.triplet}"), f"--sysroot={roots.get(arch)}"]


def _compile(place, name, sources, extra, arch):
    command = [*_compiler(arch), *COMPILE, "-o", str(place / name), *map(str, sources), *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"'{name}' does not compile: {done.stderr.strip()}")


def build_programs(arch):
    """Compile guest init, labrun, workloads and the lab host's own programs into the cache; the directory that has them."""
    guest = LAB / "guest"
    work = LAB / "workloads"
    sources = [*work.glob("*.[ch]"), *(work / arch.name).glob("*.c")]
    helpers = [*(LAB / "host" / arch.name).glob("*.c")]
    inputs = sorted([*guest.glob("*.[ch]"), *sources, *helpers])
    place = cache_dir("programs") / _digest(arch.name, *COMPILE, Path(__file__), *inputs)
    if place.is_dir():
        return place
    with locked("programs"):
        if place.is_dir():
            return place
        say(f"compiling the workloads for {arch.name}")
        with tempfile.TemporaryDirectory(dir=cache_dir("programs"), prefix=".new") as temporary:
            new = Path(temporary) / "bin"
            new.mkdir()
            for name, sources_of in OWN_PROGRAMS.items():
                _compile(new, "lab-init" if name == "init" else name,
                         [guest / source for source in sources_of], ["-static"], arch)
            for source in helpers:
                _compile(new, f"lab-{source.stem}", [source], [], arch)
            for source in sorted(sources):
                if source.suffix == ".h" or source.stem == "common":
                    continue
                _compile(new, source.stem, [source, work / "common.c"],
                         [f"-I{work}", "-pthread", *LINK.get(source.stem, [])], arch)
            new.rename(place)
    return place


def _cached(key, make):
    """The file of a cached archive, made when it is missing."""
    path = cache_dir("initramfs") / f"{key}.cpio"
    if not path.exists():
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(make().bytes())
        temporary.rename(path)
    return path


def busybox_of(arch):
    if arch.foreign:
        return roots.get(arch) / "bin" / "busybox"
    path = Path(need_program("busybox", "busybox-static"))
    if shared_libraries(path, arch):
        raise LabError(f"'{path}' is not static: install the package busybox-static")
    return path


APPLETS = ("sh", "ls", "cat", "sleep", "ps", "mount", "tar", "dmesg", "taskset", "head", "tail",
           "grep", "kill", "uname", "date", "dd", "true", "false", "echo", "mkdir", "ln", "cp")


def guest_modules(scenario, guest):
    """The kernel modules that a guest loads: also that for a network, if its command line gives it one, KVM, and the devices of
    its agent's vchan."""
    network = ("virtio_net",) if "virtio-net" in guest.qemu else ()
    kvm = (f"kvm-{scenario.host.vendor}",) if guest.kvm and scenario.host.arch == "amd64" else ()
    agent = XEN_AGENT_MODULES if guest.agent and scenario.host.hypervisor == "xen" else ()
    return (*GUEST_MODULES, *network, *kvm, *agent)


def guest_base(kernel, programs, modules):
    """The part of a guest's initramfs that depends on its kernel and modules only."""
    busybox = busybox_of(kernel.arch)

    def make():
        archive = Archive()
        archive.add_file(busybox, "/bin/busybox")
        for applet in APPLETS:
            archive.add(f"/bin/{applet}", b"busybox", 0o120777)
        archive.add_file(programs / "lab-init", "/init")
        for program in sorted(programs.iterdir()):
            if program.name not in ("lab-init", "labrun"):
                archive.add_program(program, f"/lab/bin/{program.name}", kernel.arch)
        add_modules(archive, kernel, modules)
        return archive

    return _cached(_digest("guest", kernel.suite, kernel.flavour, kernel.version, kernel.arch.name, programs.name, busybox,
                           *modules, Path(__file__)), make)


def job_lines(scenario, where):
    """The jobs of one place, as schedule_add_job() of lab/guest reads them."""
    return "".join("\t".join(["job", f"{w.start:.3f}", f"{w.length:.3f}", str(w.copies), *w.argv]) + "\n"
                   for w in scenario.workloads if w.where == where)


def _agent(arch):
    build = build_dir(arch)
    for path in (build / "vperf-agent", build / "src" / "vperf-agent"):
        if path.is_file():
            return path
    raise LabError(f"a guest has agent=yes, but '{build}/vperf-agent' does not exist: build "
                   f"vperf first, or say where it is with VLAB_VPERF_BUILD")


def write_guest(scenario, guest, kernel, programs, path, console):
    """Write the complete initramfs of one guest; console: it talks to the driver over that instead of vsock."""
    own = Archive()
    conf = [("name", guest.name), ("port", CONTROL_PORT), ("console", console), ("agent", guest.agent),
            ("kallsyms", guest.kallsyms), ("truth", guest.truth)]
    text = "".join(f"{k}\t{('yes' if v else 'no') if isinstance(v, bool) else v}\n" for k, v in conf)
    own.add_text("/lab/conf", text + job_lines(scenario, guest.name))
    if guest.agent:
        own.add_program(_agent(kernel.arch), "/usr/bin/vperf-agent", kernel.arch)
    for source, target in guest.files:
        own.add_program(source, target, kernel.arch)
    with open(path, "wb") as out, open(guest_base(kernel, programs, guest_modules(scenario, guest)), "rb") as base:
        shutil.copyfileobj(base, out)
        out.write(own.bytes())


def write_host(kernel, modules, settings, path):
    """Write the initramfs of the lab host, with modules; settings: shell variables for its init."""
    busybox = busybox_of(kernel.arch)

    def make():
        archive = Archive()
        archive.add_file(busybox, "/bin/busybox")
        archive.add("/init", (LAB / "host" / "init").read_bytes(), 0o100755)
        add_modules(archive, kernel, modules)
        return archive

    base = _cached(_digest("host", kernel.suite, kernel.version, kernel.arch.name, *modules, LAB / "host" / "init", busybox, Path(__file__)), make)
    own = Archive()
    own.add_text("/lab/settings", "".join(f"{k}='{v}'\n" for k, v in settings.items()))
    with open(path, "wb") as out, open(base, "rb") as handle:
        shutil.copyfileobj(handle, out)
        out.write(own.bytes())
