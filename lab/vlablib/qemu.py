"""The lab host as one QEMU process: under TCG, or under a KVM that nests."""

import datetime
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from . import qemu_build, xen
from .arch import ARCHES
from .common import LabError, UsageError, commit, need_program, prefer_session, priority

# AMD Rome: a processor with core counters that Linux's event names and Xen's vPMU support.
PMU_FAMILY = ",family=23,model=49,stepping=0"
PMU_V2 = ",xlevel=0x80000022"
NMI_WAIT = 5  # seconds for a kernel that hangs to print where
SPIN_POLL, SPIN_LOOKS, SPIN_BYTES = 1, 15, 64  # interval (s), number of successive samples, and bytes of code that contain them


def kvm_is_real():
    """A KVM that nests AMD guests and has its tracepoints (some machines have a paravirtual one)."""
    nested = Path("/sys/module/kvm_amd/parameters/nested")
    return (nested.exists() and nested.read_text().strip() in ("1", "Y")
            and os.access("/dev/kvm", os.R_OK | os.W_OK)
            and any(Path(t, "events/kvm/kvm_entry").exists()
                    for t in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")))


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
        modules = ("kvm_intel",) if host.vendor == "intel" else ("kvm_intel", "kvm_amd")
        nested = [Path(f"/sys/module/{m}/parameters/nested") for m in modules]
        if not any(p.exists() and p.read_text().strip() in ("1", "Y") for p in nested):
            raise LabError(f"the accelerator kvm needs a KVM that nests (module {' or '.join(modules)} "
                           f"with nested=1), which this machine does not have: use "
                           f"{'no accelerator' if host.vendor == 'intel' else 'tcg'}")
    return accel


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
        """The command's result."""
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "event" not in answer:
                return answer.get("return")

    def registers(self):
        """The registers of each pCPU, as text. The machine is stopped for it: of a pCPU that runs, QEMU knows only where it
        was when it last used a device, and that is an instruction which writes to the APIC with interrupts masked."""
        self.execute("stop")
        try:
            return self.execute("human-monitor-command", **{"command-line": "info registers -a"})
        finally:
            self.execute("cont")


class SpinWatch:
    """Detects a pCPU, or a guest on it, in a spinlock that will never be released: with interrupts masked at
    the same few instructions in all samples."""

    def __init__(self):
        self.looks, self.last = [], 0

    def note(self, registers):
        """Where a pCPU spins, by these registers and those before: the lowest address, or None."""
        found = re.findall(r"RIP=([0-9a-f]+) RFL=([0-9a-f]+).*CPL=(\d).*HLT=(\d)", registers)
        self.looks = [*self.looks[1 - SPIN_LOOKS:],
                      [(int(rip, 16), not int(flags, 16) & 0x200 and level == "0" and halted == "0")
                       for rip, flags, level, halted in found]]
        if len(self.looks) < SPIN_LOOKS:
            return None
        for pcpu in zip(*self.looks):
            places = [place for place, masked in pcpu if masked]
            if len(places) == SPIN_LOOKS and max(places) - min(places) < SPIN_BYTES:
                return min(places)
        return None


class Qemu:
    """An emulator as emulator.py defines it."""

    modules = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
    root = "9p"

    def __init__(self, lab, accel):
        self.lab = lab
        self.accel = accel
        self.monitor = None
        self.spin, self.last_look = SpinWatch(), 0

    @property
    def name(self):
        """As printed when the lab host starts."""
        return f"{self.accel}, with a PMU" if self.pmu else self.accel

    @property
    def pmu(self):
        """Whether the processor has counters: with the lab's own QEMU."""
        return self.lab.scenario.host.pmu

    @property
    def slow(self):
        """Virtual time takes longer."""
        return 2 if self.lab.scenario.host.icount else 1

    @property
    def guest_cpu(self):
        """The CPU model of guests that name none."""
        return self.lab.arch.guest_cpu if self.accel == "tcg" else "host"

    @property
    def companions(self):
        """TCG may inject an interrupt twice unless the guest leaves soon; the lab's own QEMU does not."""
        kvm = self.lab.arch.name == "amd64" and not self.lab.xen and not self.pmu
        return ["lab-leave"] if self.accel == "tcg" and kvm else []

    @property
    def python(self):
        """In the lab host's root."""
        return "/usr/bin/python3" if self.lab.packages_root() else os.path.realpath(sys.executable)

    def prepare(self, plan):
        """The host's root is the machine's, or of packages, over 9p: nothing is to be made but Xen's image."""
        if self.lab.xen:
            xen.write_image(self.lab.packages_root(), self.lab.work / "xen")

    def _shared(self, path, tag, access="readonly=on,multidevs=remap"):
        """A directory of the machine, over 9p. In a PV dom0, a device must use the kernel's addresses for DMA."""
        commas = str(path).replace(",", ",,")
        dma = ",iommu_platform=on,disable-legacy=on" if self.lab.xen else ""
        return ["-fsdev", f"local,id={tag},path={commas},security_model=none" + (f",{access}" if access else ""),
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}{dma}"]

    def _boot(self, append):
        """The kernel with its arguments; for a dom0, Xen with those as modules."""
        lab = self.lab
        unpacked = not (lab.arch.foreign or lab.xen or lab.scenario.host.kaslr)
        image = str(lab.kernel.unpacked if unpacked else lab.kernel.image)
        initrd = str(lab.work / "host.cpio")
        if not lab.xen:
            return ["-kernel", image, "-initrd", initrd, "-append", append]
        return ["-kernel", str(lab.work / "xen"), "-append", xen.arguments(lab.scenario),
                "-initrd", f"{image} {append},{initrd}".replace(",,", ",")]

    def command(self):
        """QEMU's command line."""
        lab, host, arch = self.lab, self.lab.scenario.host, self.lab.arch
        model = host.cpu or (xen.CPU if lab.xen else arch.cpu if self.accel == "tcg" else "host")
        if self.pmu and not host.cpu:
            model += PMU_FAMILY + (xen.PMU_FLAGS if lab.xen else "") + (PMU_V2 if host.pmu == "v2" else "")
        # The lab's own injects no interrupt twice. On KVM hosts a companion works around that, on Xen nothing does.
        own = self.pmu or lab.xen and self.accel == "tcg" and qemu_build.is_built()
        program = qemu_build.command() if own else [need_program(arch.qemu, arch.qemu_package)]
        accel = "tcg,thread=multi" if self.accel == "tcg" else "kvm"
        if host.icount:
            accel = "tcg,thread=single" if lab.xen else "tcg"
        serial = "mon:stdio" if lab.mode == "shell" else f"file:{lab.console}"
        # The driver starts the other pCPUs: see keep_preempt_notifiers() there.
        one = "" if lab.xen else "maxcpus=1 "
        append = (f"console={lab.console_device} panic=-1 rdinit=/init quiet {one}cryptomgr.notests "
                  f"{host.append}").strip()
        if host.icount and not arch.foreign and not lab.xen:
            append += " tsc=reliable"  # as all pCPUs count the same instructions: the TSC stays the clock
        self.described = program, model
        command = [*priority(), need_program("setpriv", "util-linux"), "--pdeathsig", "KILL",
                   *program, "-name", "vlab-host",
                   *arch.machine,
                   "-accel", accel, "-cpu", model, "-smp", str(host.pcpus), "-m", str(host.memory),
                   "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                   "-serial", serial, *self._boot(append),
                   *self._shared(lab.packages_root() or Path("/"), "root"), *self._shared(lab.out, "out", "")]
        if lab.packages_root():
            command += self._shared(Path("/"), "machine")
        if host.icount:
            command += ["-icount", "shift=0,sleep=off"]
        command += ["-qmp", f"unix:{lab.work}/qmp,server=on,wait=off"]
        return command + host.qemu.split()

    def _describe(self):
        """Writes the emulator, its CPU model and the commit of the sources next to the plan: results name them."""
        program, model = self.described
        version = subprocess.run([*program, "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
        text = json.dumps({"emulator": version.replace("emulator version ", ""), "cpu": model, "accel": self.accel,
                           "commit": commit(), "date": datetime.date.today().isoformat()}) + "\n"
        (self.lab.out / "vlab" / "machine.json").write_text(text, encoding="utf-8")

    def start(self):
        """The process."""
        caches = self.lab.scenario.host.caches
        env = {**os.environ, "X86_PMU_CACHES": caches} if caches else None
        if self.lab.mode == "shell":
            return subprocess.Popen(self.command(), env=env)
        command = self.command()
        self._describe()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, start_new_session=True, env=env)
        prefer_session(process, self.lab.scenario.host.icount)
        return process

    def attend(self, process):
        """A shell on QEMU's own console, until the lab host is off."""
        process.wait()

    def _monitor(self):
        self.monitor = self.monitor or Monitor(self.lab.work / "qmp")
        return self.monitor

    def show_hang(self, process):
        """Writes the registers of its pCPUs to vlab/registers. Then makes its kernel print where it is: a non-maskable interrupt,
        which host/main made it panic on."""
        try:
            (self.lab.out / "vlab" / "registers").write_text(self._monitor().registers(), encoding="utf-8")
            self._monitor().execute("inject-nmi")
            process.wait(NMI_WAIT)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass

    def heard(self):
        """There was progress: looks from before count no more."""
        self.spin = SpinWatch()

    def died(self):
        """Description of an emulation error, or None. This detects the second cause in docs/lab.md: the lab's
        time stops, and --timeout would be the only other sign."""
        now = time.monotonic()
        if self.accel != "tcg" or self.lab.arch.foreign or now - self.last_look < SPIN_POLL:
            return None
        self.last_look = now
        try:
            place = self.spin.note(self._monitor().registers())
            if place is not None:
                return f"a pCPU of the lab host, or a guest on it, spins with interrupts masked at {place:#x}"
        except (OSError, ValueError):
            pass  # it ends, or is very busy: the limits of time are for that
        return None

    def collect(self):
        """Nothing: /out is a share."""

    def complaint(self, process):
        """QEMU's error output if it failed, else None."""
        stderr = process.stderr.read().decode(errors="replace").strip()
        if process.returncode and stderr:
            return f"QEMU ended with status {process.returncode}: {stderr}"
        return None
