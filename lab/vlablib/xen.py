"""A lab host whose hypervisor is Xen: what is booted, and with what arguments."""

import gzip

from .common import LabError

# Without SMAP and SMEP: dom0 crashes with them under TCG (QEMU 7.2). The rest is as for KVM.
CPU = "max,+svm,+npt,-smap,-smep,-vgif,-v-vmsave-vmload"
# With a PMU: Xen's idle loop executes MWAIT with ECX=1 on family 17h, which faults in QEMU.
PMU_FLAGS = ",-monitor"
OVERHEAD, GUEST_OVERHEAD = 160, 16  # MiB that Xen keeps for itself, and for each guest


def write_image(root, path):
    """Xen of a root, unpacked as QEMU loads it."""
    found = sorted((root / "boot").glob("xen-*-amd64.gz"))
    if len(found) != 1:
        raise LabError(f"the root '{root}' has {len(found)} images of Xen, not one")
    path.write_bytes(gzip.decompress(found[0].read_bytes()))


def arguments(scenario):
    """Xen's own. dom0 gets the memory that the guests leave, and one vCPU for each pCPU, on it. A vCPU's
    vector registers are switched with it: with lazy switching they had another domain's values. XSAVE is off:
    XSETBV of an emulated guest does not exit to Xen (docs/lab.md)."""
    host = scenario.host
    memory = host.memory - OVERHEAD - sum(g.memory + GUEST_OVERHEAD for g in scenario.guests)
    vpmu = " vpmu=1" if host.pmu else ""
    return (f"console=com1 com1=115200 loglvl=warning spec-ctrl=eager-fpu no-xsave dom0_mem={memory}M,max:{memory}M "
            f"dom0_max_vcpus={host.pcpus} dom0_vcpus_pin{vpmu} {host.xen}").strip()
