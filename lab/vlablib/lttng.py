"""LTTng's kernel tracer for a lab host: Debian's packages, and its modules, built for the lab's kernel into the cache.

Nothing of it is installed on the machine. The probes of VM exits need the kernel's whole source, that of timers does not compile for 6.1: the
scheduler's and the interrupts' are built.
"""

import re
import subprocess
from pathlib import Path

from . import kernels
from .arch import AMD64
from .common import LabError, cache_dir, need_program, publish, say
from .debian import PrivateApt

SUITE = "bookworm"
TOOLS = ("lttng-tools", "liblttng-ctl0", "liblttng-ust1", "liblttng-ust-common1", "liblttng-ust-ctl5", "liburcu8")
SOURCE = "lttng-modules-dkms"
PROBES = ("sched", "irq", "statedump")


def _headers(version: str) -> list[str]:
    """Debian's packages with what modules are built with."""
    base = re.sub(r"-amd64$", "", version)
    return [f"linux-headers-{version}", f"linux-headers-{base}-common", f"linux-kbuild-{re.match(r'[0-9]+[.][0-9]+', version)[0]}"]


def _build(work: Path, tree: Path, version: str) -> None:
    """The modules, into work/modules; `tree`: packages, unpacked."""
    headers = tree / f"usr/src/linux-headers-{version}"
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text(encoding="ascii").replace("/usr/src", f"{tree}/usr/src"), encoding="ascii")
    sources = next((tree / "usr/src").glob("lttng-modules-*"))
    probes = sources / "src/probes/Kbuild"
    probes.write_text(re.sub(rf"\blttng-probe-(?!(?:{'|'.join(PROBES)})\.o)[\w-]+\.o", "", probes.read_text(encoding="ascii")), encoding="ascii")
    done = subprocess.run([need_program("make", "make"), "-s", "-j2", "-C", str(headers), f"M={sources}", "CONFIG_LTTNG=m", "CC=gcc", "modules"],
                          cwd=sources, capture_output=True, text=True, check=False)
    found = sorted(sources.rglob("*.ko"))
    if done.returncode or not found:
        raise LabError(f"LTTng's modules cannot be built for {version}: {done.stderr.strip()[-400:]}")
    # In an order in which each finds what it needs.
    needs = {path.stem: re.findall(r"lttng[\w-]+|lib-ring[\w-]+", subprocess.run(
        [need_program("modinfo", "kmod"), "-F", "depends", str(path)], capture_output=True, text=True, check=True).stdout.replace("_", "-")) for path in found}
    order: list[str] = []
    while len(order) < len(found):
        ready = [name for name in needs if name not in order and all(need in order for need in needs[name] if need in needs)]
        if not ready:
            raise LabError(f"LTTng's modules need each other: {needs}")
        order += ready
    (work / "modules").mkdir()
    for number, name in enumerate(order):
        next(path for path in found if path.stem == name).rename(work / f"modules/{number:02d}-{name}.ko")


def get() -> Path:
    """The directory with Debian's programs of LTTng, and in modules/ what lab hosts load, in the order of the names."""
    kernel = kernels.get(SUITE, "generic")
    place = cache_dir("lttng") / kernel.version

    def fill(work: Path) -> None:
        say(f"fetching LTTng, and building its modules for {kernel.version}")
        apt = PrivateApt(SUITE, AMD64)
        apt.update()
        tree = work / "build"
        tree.mkdir()
        for names, root in ((TOOLS, work), ([SOURCE, *_headers(kernel.version)], tree)):
            for deb in apt.download(list(names), root):
                subprocess.run([need_program("dpkg-deb", "dpkg"), "-x", str(deb), str(root)], check=True)
                deb.unlink()
        _build(work, tree, kernel.version)
        subprocess.run(["rm", "-rf", str(tree)], check=True)
        (work / "packages").write_text("".join(f"{name}\n" for name in (*TOOLS, SOURCE)), encoding="ascii")

    publish(place, "lttng", "packages", False, fill)
    return place


def commands(root: Path, more: str = "") -> str:
    """For a lab host's shell: its modules are loaded, its programs found, and its session daemon runs; `more`: directories of libraries
    that the host lacks."""
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    return (f"for module in {root}/modules/*.ko; do insmod $module; done; export PATH=$PATH:{root}/usr/bin LD_LIBRARY_PATH={libraries}{more} "
            f"LTTNG_HOME=/run LTTNG_CONSUMERD64_LIBDIR={libraries} LTTNG_CONSUMERD64_BIN={libraries}/lttng/libexec/lttng-consumerd "
            f"LTTNG_SESSION_CONFIG_XSD_PATH={root}/usr/share/xml/lttng; lttng-sessiond --daemonize")
