"""The processors that a lab host can have, and what of the lab depends on them."""

import platform
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Arch:
    """One architecture, by Debian's name for it."""

    name: str
    triplet: str  # of its libraries and its compiler
    kernels: dict  # flavour -> package
    qemu: str
    qemu_package: str
    machine: tuple  # QEMU's arguments for the lab host under TCG, and for a guest in it
    guest_machine: tuple
    cpu: str
    guest_cpu: str  # under TCG
    console: str
    kvm_module: str = ""  # "" where KVM is in the kernel
    build: str = "build"  # the directory of the repository that has vperf for it
    root: tuple = field(default=())  # packages of the lab host's root where that is not the machine's

    @property
    def foreign(self):
        """Whether the machine cannot run its programs."""
        return self.name != NATIVE


AMD64 = Arch(
    "amd64", "x86_64-linux-gnu",
    {"generic": "linux-image-amd64", "cloud": "linux-image-cloud-amd64"},
    # With QEMU 7.2's virtual GIF, hosts of guests with several vCPUs lose interrupts and lock up.
    "qemu-system-x86_64", "qemu-system-x86", (), (), "max,+svm,+npt,-vgif,-v-vmsave-vmload",
    # Features that guests of the emulated KVM do not have, since TCG (QEMU 7.2) emulates them
    # incorrectly: XSETBV does not exit, so CPUID and XCR0 disagree, and most kernels turn
    # XSAVE off while 7.2 panics; CMPXCHG16B can leave garbage in EFLAGS, on which 6.12 dies early
    # in half of its boots. KVM's paravirtual end of interrupt: see "Labs that die" in docs/lab.md.
    "host,-xsave,-avx,-avx2,-f16c,-fma,-vaes,-vpclmulqdq,-pku,-cx16,-kvm-pv-eoi",
    "ttyS0", "kvm_amd")

# Here the emulator has a PMU: under icount, cycles and retired instructions that are exact.
# pauth-impdef: a hash that costs the emulator little in place of the architecture's.
ARM64 = Arch(
    "arm64", "aarch64-linux-gnu",
    {"generic": "linux-image-arm64", "cloud": "linux-image-cloud-arm64", "16k": "linux-image-arm64-16k"},
    "qemu-system-aarch64", "qemu-system-arm",
    ("-M", "virt,virtualization=on,gic-version=3"), ("-M", "virt,gic-version=host"),
    "max,pauth-impdef=on", "host", "ttyAMA0", build="build-arm64",
    root=("bash", "busybox-static", "coreutils", "diffutils", "grep", "hostname", "iproute2", "ipxe-qemu",
          "kmod", "libbpf-dev", "libc-bin", "libcmocka-dev", "libc6-dev", "libelf-dev", "libexpat1-dev", "libgomp1",
          "libiberty-dev", "libjson-c-dev", "liblzma-dev", "libquantum-dev", "libxxhash-dev", "libzstd-dev", "linux-perf",
          "papi-tools", "python3", "qemu-system-arm", "sed", "tar", "util-linux", "zlib1g-dev"))

ARCHES = {arch.name: arch for arch in (AMD64, ARM64)}
NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
