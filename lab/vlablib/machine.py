"""The lab host: one process of an emulator on this machine, watched until its work is done."""

import json
import re
import shutil
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path

from . import emulator, initramfs, kernels, roots
from .arch import ARCHES
from .common import LAB, REPO, LabError, UsageError, build_dir, cache_dir, say

STUCK = 40  # seconds; shorter lockups are those of a busy machine
GUEST_LIMIT = 60  # seconds for each guest to boot; twice that in virtual time
POLL = 0.1  # seconds between looks at what the lab host wrote
QUIET = 20  # seconds without progress, after which the emulator is asked whether its lab host is dead
OWNED = ("host", "vlab", "result.json", "scenario.scn")


def prepare_out(out, force):
    """Make the output directory; refuse to mix two runs."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        entries = list(out.iterdir())
    except OSError as error:
        raise UsageError(f"the output directory '{out}' cannot be used: {error.strerror}") from error
    if entries and not force:
        raise UsageError(f"the output directory '{out}' is not empty: choose another, or say --force")
    for entry in entries:
        if entry.name in OWNED or entry.name.startswith("guest-"):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (out / "vlab").mkdir()
    (out / "host").mkdir()


class Tail:
    """Copies what is appended to a file to a stream, as it comes."""

    def __init__(self, path, stream):
        self.path = path
        self.stream = stream
        self.offset = 0

    def copy(self):
        """Copy what is new."""
        try:
            with open(self.path, "rb") as handle:
                handle.seek(self.offset)
                data = handle.read()
        except OSError:
            return
        self.offset += len(data)
        if data:
            self.stream.write(data)
            self.stream.flush()


class Machine:
    """A lab host and everything that belongs to one run of it."""

    def __init__(self, scenario, args, mode):
        self.scenario = scenario
        self.args = args
        self.mode = mode
        self.arch = ARCHES[scenario.host.arch]
        self.emulator = emulator.pick(self, args.accel)
        self.slow = self.emulator.slow
        self.out = Path(args.out).absolute()
        self.work = Path(tempfile.mkdtemp(prefix="run.", dir=cache_dir("run")))
        self.process = None
        self.tails = {}
        self.progress_offset = 0
        self.guests_late = None  # when guests that boot take too long
        self.heard = time.monotonic()  # when there was progress last
        self.newest = 0.0  # time of the file that was written last
        self.error = None

    @property
    def xen(self):
        """Whether its hypervisor is Xen, and the lab host its dom0."""
        return self.scenario.host.hypervisor == "xen"

    @property
    def firmware(self):
        """Whether a guest boots by firmware, of which an emulated processor takes a minute."""
        return any(guest.type == "hvm" for guest in self.scenario.guests)

    @property
    def console_device(self):
        """The lab host's console, by its name in /dev."""
        return "hvc0" if self.xen else self.arch.console

    def packages_root(self):
        """The lab host's root if that is not the machine's: of packages."""
        if self.xen:
            return roots.get_dom0(self.scenario.host.kernel, hvm=self.firmware)
        return roots.get(self.arch) if self.arch.foreign else None

    @property
    def console(self):
        """Log of the lab host's console."""
        return self.out / "host" / "console.log"

    def prepare(self):
        """Kernels, programs, initial RAM file systems, plan."""
        host = self.scenario.host
        self.programs = initramfs.build_programs(self.arch)
        self.kernel = kernels.get(host.kernel, host.flavour, arch=self.arch)
        plan = self.scenario.as_dict()
        for guest, entry in zip(self.scenario.guests, plan["guests"]):
            kernel = kernels.get(guest.kernel, guest.flavour, arch=self.arch)
            path = self.work / f"{guest.name}.cpio"
            initramfs.write_guest(self.scenario, guest, kernel, self.programs, path, self.xen)
            if not guest.cpu:
                entry["cpu"] = self.emulator.guest_cpu
            entry.update(image=str(kernel.image), initrd=str(path),
                         uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{guest.name}.vlab")))
        plan["vmm"] = [self.arch.qemu, *self.arch.guest_machine]
        plan["console"] = self.arch.console
        plan["companions"] = self.emulator.companions
        size = shutil.get_terminal_size()
        settings = {"MODE": self.mode, "LAB": LAB, "REPO": REPO,
                    "MODULES": self.kernel.modules.parent.resolve(),
                    "PROGRAMS": self.programs, "VPERF_BUILD": build_dir(self.arch),
                    "PYTHON": self.emulator.python,
                    "CONSOLE": self.console_device, "KVM_MODULE": self.arch.kvm_module,
                    "HYPERVISOR": host.hypervisor,
                    "MACHINE": "/machine" if self.packages_root() else "", "CACHE": cache_dir(),
                    "ROOT_KIND": self.emulator.root, "ROWS": size.lines,
                    "COLUMNS_": size.columns}
        for key, value in settings.items():
            if "'" in str(value):
                raise LabError(f"the path {value} has a quote in it, which the lab cannot handle")
        initramfs.write_host(self.kernel, self.emulator.modules, settings, self.work / "host.cpio")
        plan.update(mode=self.mode, port=initramfs.CONTROL_PORT, jobs=initramfs.job_lines(self.scenario, "host"),
                    start_all=getattr(self.args, "start", False))
        control = self.out / "vlab"
        (control / "plan.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
        (control / "settings").write_text("".join(f"{k}='{v}'\n" for k, v in settings.items()),
                                          encoding="utf-8")
        (control / "progress").touch()
        shutil.copyfile(self.args.scenario, self.out / "scenario.scn")
        self.emulator.prepare(plan)

    def start(self):
        """Start the emulator."""
        host = self.scenario.host
        say(f"starting the lab host: kernel {self.kernel.version}, {self.emulator.name}, "
            f"{host.pcpus} pCPU{'s' if host.pcpus > 1 else ''}, {host.memory} MiB")
        self.process = self.emulator.start()

    def attend(self):
        """A shell: the user's terminal is the lab host's until that is off."""
        self.emulator.attend(self.process)
        self.emulator.collect()

    def console_tail(self, lines=15):
        """The end of the console log, indented."""
        try:
            text = self.console.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            text = []
        shown = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|[^\t -~]", "", line) for line in text[-lines:]]
        return "".join(f"\n    {line}" for line in shown) or "\n    (empty)"

    def _hang(self, text):
        """The error for a lab host without progress, with the end of its console output."""
        self.emulator.show_hang(self.process)
        return LabError(f"{text}; the end of its console:{self.console_tail(40)}")

    def _progress(self):
        """Show new lines of progress; the first one means that the lab host is up."""
        with open(self.out / "vlab" / "progress", encoding="utf-8") as handle:
            handle.seek(self.progress_offset)
            text = handle.read()
        whole = text[:text.rfind("\n") + 1]
        self.progress_offset += len(whole.encode())
        if whole:
            self.heard = time.monotonic()
            self.emulator.heard()
        for line in whole.splitlines():
            if line.startswith("error: "):
                raise LabError(line[7:])
            if line.startswith("starting "):
                self.guests_late = time.monotonic() + GUEST_LIMIT * self.slow * (2 if self.firmware else 1) * int(line.split()[1])
            if line == "go" or line.startswith("command: "):
                self.guests_late = None
            say(line)

    def _output(self):
        """Pass on what the commands print."""
        for path in sorted((self.out / "host").glob("command-*.*")):
            if path not in self.tails:
                stream = sys.stdout.buffer if path.suffix == ".out" else sys.stderr.buffer
                self.tails[path] = Tail(path, stream)
        for item in self.tails.values():
            item.copy()

    def _written(self):
        """A long command without a line of progress has not hung while it writes: its output, or files in /out."""
        for folder in (self.out, self.out / "host"):
            for path in folder.glob("*"):
                if path.suffix == ".log":
                    continue  # the console: a host that hangs may report it there
                try:
                    written = path.stat().st_mtime
                except OSError:
                    continue  # it has been removed
                if written > self.newest:
                    self.newest, self.heard = written, time.monotonic()
                    self.emulator.heard()

    def wait(self):
        """Follow the run to its end; returns the contents of result.json."""
        limit = self.args.timeout
        boot_limit = min(limit, 120.0 * self.slow)
        begin = time.monotonic()
        console = Tail(self.console, sys.stderr.buffer)
        while True:
            ended = self.process.poll() is not None
            self._progress()
            self._output()
            self._written()
            if self.args.verbose:
                console.copy()
            if ended:
                break
            spent = time.monotonic() - begin
            if spent > limit:
                raise self._hang(f"the lab host did not finish within {limit:.0f} s (--timeout)")
            if not self.progress_offset and spent > boot_limit:
                raise self._hang(f"the lab host was not up after {boot_limit:.0f} s")
            if self.args.silence and time.monotonic() - self.heard > self.args.silence:
                raise self._hang(f"nothing was heard of the lab host for {self.args.silence:.0f} s")
            self._check_stuck()
            self._check_died()
            self._check_guests()
            time.sleep(POLL)
        self.emulator.collect()
        self._progress()
        self._output()
        return self._result()

    def _check_stuck(self):
        """A kernel of the lab host that hangs does not come back: seen with QEMU 7.2 when a guest
        switched itself off."""
        try:
            text = self.console.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for seconds in re.findall(r"soft lockup - CPU#\d+ stuck for (\d+)s", text):
            if int(seconds) >= STUCK:
                raise self._hang("the lab host's kernel hangs")

    def _check_died(self):
        """Checks for emulation errors that only the emulator detects."""
        death = self.emulator.died() if time.monotonic() - self.heard >= QUIET else None
        if death:
            raise self._hang(death)

    def _check_guests(self):
        """If guests do not boot, the driver is asked where they hang; if it does not reply, the lab host
        hangs."""
        late = self.guests_late and time.monotonic() - self.guests_late
        if late and late > 0:
            (self.out / "vlab" / "late").touch()
        if late and late > GUEST_LIMIT:
            raise self._hang("the lab host hangs while guests boot")

    def _result(self):
        try:
            return json.loads((self.out / "result.json").read_text(encoding="utf-8"))
        except OSError:
            pass
        complaint = self.emulator.complaint(self.process)
        if complaint:
            raise LabError(complaint)
        log = self.out / "vlab" / "driver.log"
        text = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""
        raise LabError(f"the lab host ended without a result; {text[-500:]} "
                       f"the end of its console:{self.console_tail()}")

    def close(self):
        """Kill what runs, remove what is temporary."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.args.keep:
            say(f"kept: {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)
