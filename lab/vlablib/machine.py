"""The lab host: one QEMU process on this machine, watched until its work is done."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from . import initramfs, kernels, roots
from .arch import ARCHES
from .common import LAB, REPO, LabError, UsageError, build_dir, cache_dir, need_program, say

STUCK = 40  # seconds; shorter lockups are those of a busy machine
GUEST_LIMIT = 60  # seconds for each guest to boot; twice that in virtual time
NMI_WAIT = 5  # seconds for a kernel that hangs to print where
POLL = 0.1  # seconds between looks at what the lab host wrote
QUIET = 20  # seconds without progress, after which the pCPUs are looked at every SPIN_POLL seconds
SPIN_POLL, SPIN_LOOKS, SPIN_BYTES = 1, 15, 64  # so many looks in a row find a pCPU within so many bytes
OWNED = ("host", "vlab", "result.json", "scenario.scn")


def kvm_is_real():
    """A KVM that nests AMD guests and has its tracepoints (some machines have a paravirtual one)."""
    nested = Path("/sys/module/kvm_amd/parameters/nested")
    return (nested.exists() and nested.read_text().strip() in ("1", "Y")
            and os.access("/dev/kvm", os.R_OK | os.W_OK)
            and any(Path(t, "events/kvm/kvm_entry").exists()
                    for t in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")))


def priority():
    """Before other processes of the machine, where that is allowed: what waits for a core comes late in the lab."""
    return [need_program("nice", "coreutils"), "-n", "-15"] if os.geteuid() == 0 else []


def pick_accel(host, wanted):
    """tcg or kvm; kvm must be usable for guests of guests. Unasked, kvm only where it is as in TCG."""
    accel = wanted or os.environ.get("VLAB_ACCEL") or host.accel
    if ARCHES[host.arch].foreign:
        if wanted == "kvm" or host.accel == "kvm":
            raise UsageError(f"a lab host with arch={host.arch} needs the accelerator tcg")
        return "tcg"
    if not accel:
        return "kvm" if kvm_is_real() and not host.icount else "tcg"
    if accel not in ("tcg", "kvm"):
        raise UsageError(f"the accelerator '{accel}' is unknown: expected tcg or kvm")
    if accel == "kvm":
        if host.icount:
            raise UsageError("icount=yes needs the accelerator tcg")
        nested = [Path(f"/sys/module/{m}/parameters/nested") for m in ("kvm_intel", "kvm_amd")]
        if not any(p.exists() and p.read_text().strip() in ("1", "Y") for p in nested):
            raise LabError("the accelerator kvm needs a KVM that nests (module kvm_intel or kvm_amd "
                           "with nested=1), which this machine does not have: use tcg")
    return accel


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


class Monitor:
    """QEMU's machine protocol, as far as it is needed here. OSError and ValueError: it does not answer."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(NMI_WAIT)
        self.socket.connect(str(path))
        self.stream = self.socket.makefile("rw", encoding="utf-8")
        self.stream.readline()  # its greeting
        self.execute("qmp_capabilities")

    def execute(self, command, **arguments):
        """What the command returns."""
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "event" not in answer:
                return answer.get("return")

    def registers(self):
        """(program counter, whether it cannot be interrupted: in the kernel, interrupts masked, not halted)
        of each pCPU."""
        text = self.execute("human-monitor-command", **{"command-line": "info registers -a"})
        found = re.findall(r"RIP=([0-9a-f]+) RFL=([0-9a-f]+).*CPL=(\d).*HLT=(\d)", text)
        return [(int(rip, 16), not int(flags, 16) & 0x200 and level == "0" and halted == "0")
                for rip, flags, level, halted in found]


class SpinWatch:
    """Finds a pCPU, or the guest that it runs, in a spinlock that nobody will ever give back: with interrupts
    masked at the same few instructions whenever it is looked at."""

    def __init__(self):
        self.looks, self.last = [], 0

    def note(self, registers):
        """Whether a pCPU spins, by this look and those before."""
        self.looks = [*self.looks[1 - SPIN_LOOKS:], registers]
        if len(self.looks) < SPIN_LOOKS:
            return False
        for pcpu in zip(*self.looks):
            places = [place for place, masked in pcpu if masked]
            if len(places) == SPIN_LOOKS and max(places) - min(places) < SPIN_BYTES:
                return True
        return False


class Machine:
    """A lab host and everything that belongs to one run of it."""

    def __init__(self, scenario, args, mode):
        self.scenario = scenario
        self.args = args
        self.mode = mode
        self.arch = ARCHES[scenario.host.arch]
        self.accel = pick_accel(scenario.host, args.accel)
        self.slow = 2 if scenario.host.icount else 1
        self.out = Path(args.out).absolute()
        self.work = Path(tempfile.mkdtemp(prefix="run.", dir=cache_dir("run")))
        self.process = None
        self.tails = {}
        self.progress_offset = 0
        self.guests_late = None  # when guests that boot take too long
        self.heard = time.monotonic()  # when there was progress last
        self.monitor = None
        self.spin = SpinWatch()
        self.error = None

    @property
    def console(self):
        """Log of the lab host's console."""
        return self.out / "host" / "console.log"

    def prepare(self):
        """Kernels, programs, initial RAM file systems, plan."""
        host = self.scenario.host
        self.programs = initramfs.build_programs(self.arch)
        self.kernel = kernels.get(host.kernel, "generic", arch=self.arch)
        plan = self.scenario.as_dict()
        for guest, entry in zip(self.scenario.guests, plan["guests"]):
            kernel = kernels.get(guest.kernel, guest.flavour, arch=self.arch)
            path = self.work / f"{guest.name}.cpio"
            initramfs.write_guest(self.scenario, guest, kernel, self.programs, path)
            if not guest.cpu:
                entry["cpu"] = self.arch.guest_cpu if self.accel == "tcg" else "host"
            entry.update(image=str(kernel.image), initrd=str(path),
                         uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{guest.name}.vlab")))
        plan["vmm"] = [self.arch.qemu, *self.arch.guest_machine]
        plan["console"] = self.arch.console
        size = shutil.get_terminal_size()
        settings = {"MODE": self.mode, "LAB": LAB, "REPO": REPO,
                    "MODULES": self.kernel.modules.parent.resolve(),
                    "PROGRAMS": self.programs, "VPERF_BUILD": build_dir(self.arch),
                    "PYTHON": "/usr/bin/python3" if self.arch.foreign else os.path.realpath(sys.executable),
                    "CONSOLE": self.arch.console, "KVM_MODULE": self.arch.kvm_module,
                    "MACHINE": "/machine" if self.arch.foreign else "", "CACHE": cache_dir(), "ROWS": size.lines,
                    "COLUMNS_": size.columns}
        for key, value in settings.items():
            if "'" in str(value):
                raise LabError(f"the path {value} has a quote in it, which the lab cannot handle")
        initramfs.write_host(self.kernel, settings, self.work / "host.cpio")
        plan.update(mode=self.mode, port=initramfs.CONTROL_PORT, jobs=initramfs.job_lines(self.scenario, "host"),
                    start_all=getattr(self.args, "start", False))
        control = self.out / "vlab"
        (control / "plan.json").write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
        (control / "settings").write_text("".join(f"{k}='{v}'\n" for k, v in settings.items()),
                                          encoding="utf-8")
        (control / "progress").touch()
        shutil.copyfile(self.args.scenario, self.out / "scenario.scn")

    @staticmethod
    def _shared(path, tag):
        commas = str(path).replace(",", ",,")
        return ["-virtfs", f"local,path={commas},mount_tag={tag},security_model=none,readonly=on,"
                           f"multidevs=remap"]

    def command(self):
        """QEMU's command line."""
        host = self.scenario.host
        model = host.cpu or (self.arch.cpu if self.accel == "tcg" else "host")
        accel = "tcg,thread=multi" if self.accel == "tcg" else "kvm"
        if host.icount:
            accel = "tcg"
        serial = "mon:stdio" if self.mode == "shell" else f"file:{self.console}"
        # The driver starts the other pCPUs: see keep_preempt_notifiers() there.
        append = f"console={self.arch.console} panic=-1 rdinit=/init quiet maxcpus=1 {host.append}".strip()
        commas = str(self.out).replace(",", ",,")  # QEMU's own escape
        command = [*priority(), need_program("setpriv", "util-linux"), "--pdeathsig", "KILL",
                   need_program(self.arch.qemu, self.arch.qemu_package), "-name", "vlab-host",
                   *self.arch.machine,
                   "-accel", accel, "-cpu", model, "-smp", str(host.pcpus), "-m", str(host.memory),
                   "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                   "-serial", serial, "-kernel", str(self.kernel.image),
                   "-initrd", str(self.work / "host.cpio"), "-append", append,
                   *self._shared(roots.get(self.arch) if self.arch.foreign else Path("/"), "root"),
                   "-virtfs", f"local,path={commas},mount_tag=out,security_model=none"]
        if self.arch.foreign:
            command += self._shared(Path("/"), "machine")
        if host.icount:
            command += ["-icount", "shift=0,sleep=off"]
        command += ["-qmp", f"unix:{self.work}/qmp,server=on,wait=off"]
        return command + host.qemu.split()

    def start(self):
        """Start QEMU."""
        say(f"starting the lab host: kernel {self.kernel.version}, {self.accel}, "
            f"{self.scenario.host.pcpus} pCPUs, {self.scenario.host.memory} MiB")
        interactive = self.mode == "shell"
        self.process = subprocess.Popen(self.command(), stdin=None if interactive else subprocess.DEVNULL,
                                        stdout=None if interactive else subprocess.DEVNULL,
                                        stderr=subprocess.PIPE if not interactive else None,
                                        start_new_session=not interactive)

    def console_tail(self, lines=15):
        """The end of the console log, indented."""
        try:
            text = self.console.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            text = []
        shown = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|[^\t -~]", "", line) for line in text[-lines:]]
        return "".join(f"\n    {line}" for line in shown) or "\n    (empty)"

    def _monitor(self):
        self.monitor = self.monitor or Monitor(self.work / "qmp")
        return self.monitor

    def _show_hang(self):
        """Makes the kernel of a lab host that hangs print where its pCPUs are: a non-maskable interrupt,
        which host/main made it panic on."""
        try:
            self._monitor().execute("inject-nmi")
            self.process.wait(NMI_WAIT)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass

    def _hang(self, text):
        """The error of a lab host that does not go on, with what its console says of it."""
        self._show_hang()
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
            self.spin = SpinWatch()
        for line in whole.splitlines():
            if line.startswith("error: "):
                raise LabError(line[7:])
            if line.startswith("starting "):
                self.guests_late = time.monotonic() + GUEST_LIMIT * self.slow * int(line.split()[1])
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

    def wait(self):
        """Follow the run to its end; returns what result.json says."""
        limit = self.args.timeout
        boot_limit = min(limit, 120.0 * self.slow)
        begin = time.monotonic()
        console = Tail(self.console, sys.stderr.buffer)
        while True:
            ended = self.process.poll() is not None
            self._progress()
            self._output()
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
            self._check_spin()
            self._check_guests()
            time.sleep(POLL)
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

    def _check_spin(self):
        """The second of docs/lab.md's causes: seconds of the machine's time are none of the lab's then, and
        nothing else would tell before --timeout."""
        now = time.monotonic()
        if self.accel != "tcg" or self.arch.foreign or now - self.heard < QUIET or now - self.spin.last < SPIN_POLL:
            return
        self.spin.last = now
        try:
            if self.spin.note(self._monitor().registers()):
                raise self._hang("a pCPU of the lab host, or a guest on it, spins with interrupts masked")
        except (OSError, ValueError):
            pass  # it ends, or is very busy: the limits of time are for that

    def _check_guests(self):
        """Guests that do not come up: the driver is told, and says where they hang; if it does not, it hangs
        itself."""
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
        stderr = self.process.stderr.read().decode(errors="replace").strip()
        if self.process.returncode and stderr:
            raise LabError(f"QEMU ended with status {self.process.returncode}: {stderr}")
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
