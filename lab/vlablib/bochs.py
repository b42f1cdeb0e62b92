"""The lab host in Bochs: the one emulator with Intel's VMX (docs/lab.md, "Intel").

Its time is the number of instructions, independent of icount=; a virtual second has a fixed number.
No 9p: root and results are disks; progress comes over the second serial port.
"""

import os
import select
import subprocess
import sys
import termios
import tty

from . import bochs_build, disks
from .common import UsageError, need_program, prefer_session, priority, say

INSTRUCTIONS_PER_SECOND = 50000000
# Others are worse: by corei7_skylake_x's CPUID the kernel gets the timer's rate wrong and is in a storm of timer
# interrupts (docs/lab.md), and corei7_icelake_u does not finish booting.
CPU = "corei7_sandy_bridge_2600k"
MOST_BACKED = 2048  # MiB of the memory that Bochs keeps in its own; what is used beyond them goes to a file
PCPUS = 1  # the host boots with two; guests in it do not come up in a reasonable time
# cryptomgr.notests: the kernel tests its ciphers for 750 million instructions otherwise, a quarter of its boot.
APPEND = "nosmp tsc=reliable mitigations=off cryptomgr.notests"

CONFIGURATION = """\
display_library: nogui
memory: guest={memory}, host={backed}
romimage: file={firmware}/BIOS-bochs-latest
vgaromimage: file={firmware}/vgabios.bin
boot: cdrom
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={work}/boot.iso, status=inserted
ata0-slave: type=disk, mode=flat, path={work}/root.img
ata1: enabled=1, ioaddr1=0x170, ioaddr2=0x370, irq=15
ata1-master: type=disk, mode=flat, path={work}/run.img
ata1-slave: type=disk, mode=flat, path={work}/results.img
cpu: model={cpu}, count={pcpus}, ips={ips}, reset_on_triple_fault=0
clock: sync=none, time0=utc
com1: enabled=1, mode={console_mode}, dev={console}
com2: enabled=1, mode=file, dev={progress}
log: {work}/bochs.log
panic: action=report
error: action=ignore
info: action=ignore
debug: action=ignore
"""

BOOT = """\
default lab
prompt 0
timeout 0
label lab
  kernel /vmlinuz
  append initrd=/initrd {append}
"""


class Bochs:
    """An emulator as emulator.py defines it."""

    modules = ("ata_piix", "sd_mod", "isofs", "overlay")
    root = "disks"
    slow = 3
    guest_cpu = "host"
    companions = []
    python = "/usr/bin/python3"

    def __init__(self, lab):
        self.lab = lab
        self.place = None
        self.terminal = None
        host = lab.scenario.host
        if host.qemu:
            raise UsageError("a lab host with vendor=intel is no QEMU: it cannot have qemu=")
        if host.accel == "tcg" or lab.args.accel == "tcg":
            raise UsageError("vendor=intel needs Bochs: the accelerator tcg emulates AMD's SVM only")
        if host.pcpus > PCPUS:
            say(f"a lab host with vendor=intel has {PCPUS} pCPU: pcpus={host.pcpus} and what is pinned to others are "
                f"taken for that")
            host.pcpus = PCPUS
            for guest in lab.scenario.guests:
                guest.pin = [min(pcpu, PCPUS - 1) for pcpu in guest.pin]

    @property
    def name(self):
        """Name printed when the lab host starts."""
        return f"Bochs {(self.place / 'version').read_text(encoding='ascii').strip()} (Intel)"

    def prepare(self, plan):
        """Bochs, a disc to boot from, disks, configuration."""
        self.place = bochs_build.get()
        os.link(disks.root(), self.lab.work / "root.img")
        disks.write_run(self.lab, plan, self.lab.work / "run.img")
        disks.write_empty(self.lab.work / "results.img")
        self._write_disc()

    def _write_disc(self):
        lab = self.lab
        tree = lab.work / "disc"
        tree.mkdir()
        append = f"console={lab.arch.console},115200 panic=-1 rdinit=/init quiet {APPEND} {lab.scenario.host.append}"
        (tree / "isolinux.cfg").write_text(BOOT.format(append=append.strip()), encoding="utf-8")
        for source, name in ((self.place / "isolinux.bin", "isolinux.bin"), (self.place / "ldlinux.c32", "ldlinux.c32"),
                             (lab.kernel.image, "vmlinuz"), (lab.work / "host.cpio", "initrd")):
            (tree / name).write_bytes(source.read_bytes())
        disks.write_disc(tree, lab.work / "boot.iso", "-b", "isolinux.bin", "-c", "boot.cat", "-no-emul-boot",
                         "-boot-load-size", "4", "-boot-info-table")

    def _write_configuration(self):
        lab, host = self.lab, self.lab.scenario.host
        console = os.ttyname(self.terminal[1]) if self.terminal else lab.console
        text = CONFIGURATION.format(memory=host.memory, backed=min(host.memory, MOST_BACKED), firmware=self.place, work=lab.work, cpu=host.cpu or CPU,
                                    pcpus=host.pcpus, ips=INSTRUCTIONS_PER_SECOND, console=console,
                                    console_mode="term" if self.terminal else "file",
                                    progress=lab.out / "vlab" / "progress")
        path = lab.work / "bochsrc"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self):
        """The process."""
        if self.lab.mode == "shell":
            self.terminal = os.openpty()
        # Its time is virtual: it may wait for a core, unlike QEMU.
        command = [need_program("setpriv", "util-linux"), "--pdeathsig", "KILL", str(self.place / "bochs"), "-q",
                   "-f", str(self._write_configuration())]
        with open(self.lab.work / "bochs.out", "wb") as log:
            process = subprocess.Popen([*priority(), *command], cwd=self.lab.work, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True)
        prefer_session(process, True)
        return process

    def attend(self, process):
        """The user's terminal is the lab host's first serial port, until that is off."""
        master, user = self.terminal[0], sys.stdin.fileno()
        kept = termios.tcgetattr(user) if os.isatty(user) else None
        try:
            if kept:
                tty.setraw(user)
            sources = [master, user]
            while process.poll() is None:
                for source in select.select(sources, [], [], 0.2)[0]:
                    data = os.read(source, 4096)
                    if not data:
                        sources.remove(source)
                    os.write(sys.stdout.fileno() if source == master else master, data)
        finally:
            if kept:
                termios.tcsetattr(user, termios.TCSADRAIN, kept)

    def heard(self):
        """There was progress."""

    def died(self):
        """A kernel that panics starts Bochs's computer anew; it has not the run's results any more."""
        try:
            text = self.lab.console.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return "the lab host's kernel panicked" if "Kernel panic - not syncing" in text else None

    def show_hang(self, process):
        """Not available: Bochs cannot be interrupted."""

    def collect(self):
        """Results are a tar archive on their disk."""
        image = self.lab.work / "results.img"
        with open(image, "rb") as disk:
            written = disk.read(512).strip(b"\0")
        if not written:
            return
        done = subprocess.run(["tar", "-x", "-m", "--no-same-owner", "-f", str(image), "-C", str(self.lab.out)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"warning: the results came incomplete: {done.stderr.strip()[-300:]}")

    def complaint(self, process):
        """Output of Bochs if it did not start. Its exit status is a failure also when the lab host
        powers itself off."""
        if (self.lab.work / "results.img").stat().st_blocks:
            return None
        text = (self.lab.work / "bochs.out").read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if "PANIC" in line or "error" in line.lower()]
        return f"Bochs ended: {' '.join(lines)[-400:]}" if lines else None
