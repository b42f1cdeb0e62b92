"""Emulators that run the lab host: QEMU under TCG or KVM (qemu.py), or Bochs for an Intel host (bochs.py).

Attributes of an emulator, which runs one Machine (machine.py):
  name          printed when it starts
  modules       of the lab host's kernel, for its initramfs
  root          where the initramfs finds its root: "9p" or "disks" (lab/host/init)
  slow          factor of its boot time relative to other emulators
  python        path of Python on the lab host
  guest_cpu     default CPU model of guests
  companions    programs that run on the lab host to work around emulation errors
  prepare(plan) the last of the preparations, after plan and initramfs were written
  start()       the process; attend(process) is its shell's terminal
  heard()       there was progress;  died() describes an emulation error, called without progress
  show_hang(process)  makes a hanging kernel print its state, if possible
  collect()     moves the results to their directory after the lab host's end
  complaint(process)  the emulator's error output if it failed, else None
"""

from .bochs import Bochs
from .qemu import Qemu, pick_accel


def pick(lab, wanted):
    """The emulator of a Machine; wanted: the accelerator that the user named, if any."""
    host = lab.scenario.host
    if host.vendor == "intel" and "kvm" not in (wanted, host.accel):
        return Bochs(lab)
    return Qemu(lab, pick_accel(host, wanted))
