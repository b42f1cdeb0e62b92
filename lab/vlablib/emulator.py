"""What runs the lab host: QEMU under TCG or KVM (qemu.py), or Bochs for a host of Intel (bochs.py).

An emulator is made for one Machine (machine.py) and has:
  name          for the line that says what starts
  modules       of the lab host's kernel, for its initramfs
  root          where that finds its root: "9p" or "disks" (lab/host/init)
  slow          how many times longer than others it may take to boot
  python        where the lab host has Python
  guest_cpu     the CPU model of guests that name none
  companions    programs that run on the lab host beside KVM, against what goes wrong in emulation
  prepare(plan) the last of the preparations, when plan and initramfs are there
  start()       the process; attend(process) is its shell's terminal
  heard()       there was progress;  died() says how the emulation went wrong, asked when there is none
  show_hang(process)  makes a kernel that hangs print where, if it can
  collect()     the lab host is off: its results into the directory for them
  complaint(process)  what the emulator said if it failed, else None
"""

from .bochs import Bochs
from .qemu import Qemu, pick_accel


def pick(lab, wanted):
    """The emulator of a Machine; wanted: the accelerator that the user named, if any."""
    host = lab.scenario.host
    if host.vendor == "intel" and "kvm" not in (wanted, host.accel):
        return Bochs(lab)
    return Qemu(lab, pick_accel(host, wanted))
