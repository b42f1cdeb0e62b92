"""LTTng for Xen by places and tracers: the machine, dom0, and domUs on a block device and on a file, by vperf-bench."""

import json
import math
import re
import statistics
from pathlib import Path

from . import benching, debian_programs, initramfs, kernels, lttng
from .arch import AMD64
from .common import LabError
from .reproduction import Reproduction, Row, missing_parts, run_parts

SOURCE = "Heidari, Desnoyers, Dagenais 2011, LTTng for Xen, tables 1, 3 to 6, 8 to 11, 13"
PACKAGES = ("tar", "bzip2", "tcc", "dbench", "libpopt0", "libacl1", "libselinux1", "libpcre2-8-0", "libbz2-1.0",
            "libxml2", "libicu72", "liblzma5", "zlib1g", "libstdc++6", "libgcc-s1", "libc6")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LMBENCH = "usr/lib/lmbench/bin/x86_64-linux-gnu"
TRACERS = {"none": "none", "off": "vperf-off", "flight": "vperf-flight", "disk": "vperf-disk", "lttng": "lttng", "xentrace": "xentrace"}
OF_VPERF = ("none", "off", "flight", "disk")  # not compiled in, compiled in and off, flight recorder, to disk
PLACES = {"machine": OF_VPERF, "dom0": (*OF_VPERF, "lttng", "xentrace"), "block": ("none", "disk"), "file": ("none", "disk")}
# Places by lab run: one machine cannot have and not have Xen.
RUNS = {"machine": ("machine",), "dom0": ("dom0",), "guests": ("block", "file")}
REPEATS = 3
LABS = tuple(f"{run}-{number}" for number in range(1, REPEATS + 1) for run in RUNS)  # each a lab run of its own
# Cache hot, in % of the untraced machine, by place; in each by OF_VPERF.
PUBLISHED = {
    "compile": ((100, 99.82, 98.20, 97.82), (90.67, 90.65, 88.84, 89.76), (86.52, 86.41, 84.25, 87.88), (86.83, 86.60, 84.49, 87.29)),
    "tar-create": ((100, 99.57, 100.05, 95.02), (96.75, 93.89, 92.32, 87.09), (101.82, 98.47, 98.29, 94.35), (115.05, 111.59, 110.89, 106.2)),
    "tar-extract": ((100, 100.12, 100.13, 91.79), (78.45, 78.01, 75.89, 72.43), (100.5, 98.22, 99.68, 95.45), (99.05, 97.16, 94.33, 89.8)),
    "bzip2": ((100, 97.33, 97.46, 96.77), (94.15, 93.89, 92.59, 92.42), (96.94, 96.26, 95.61, 95.12), (96.96, 96.49, 95.61, 95.37)),
    "dbench": ((100, 98.68, 92.11, 89.46), (97.65, 93.29, 88.37, 84.31), (105.36, 103.34, 104.32, 102.42), (106.92, 106.91, 104.77, 104.73)),
    "pipe": ((100, 98.46, 93.96, 91.33), (96.84, 96.96, 91.69, 61.54), (96.54, 96.66, 96.36, 95.88), (96.22, 96.60, 96.60, 96.48)),
    "reread": ((100, 99.30, 97.41, 98.50), (), (44.09, 44.02, 44.19, 44.37), (44.83, 44.72, 46.32, 46.46))}
TITLES = {"compile": "table 1, compile", "tar-create": "table 3, tar create", "tar-extract": "table 4, tar extract", "bzip2": "table 5, bzip2",
          "dbench": "table 6, dbench", "pipe": "tables 8 to 11, LMbench pipe", "reread": "tables 8 to 11, LMbench file reread"}
# Table 13, hypervisor traced: no tracer, LTTng-Xen, xentrace.
TABLE_13 = {"compile": (90.67, 90.87, 91.07), "tar-create": (96.75, 95.90, 90.21), "tar-extract": (78.45, 75.18, 73.73), "bzip2": (94.15, 94.01, 94.41),
            "dbench": (97.65, 95.71, 98.63)}
BY_RATE = ("dbench", "pipe", "reread")  # more is better; they run for a time
POINTS = 5.0  # of 100: tracing may cost so much, or what was published where that is more. Set before the first run.
T_95 = {2: 4.303, 3: 2.776}  # Student's t for the difference of two means, by number of repeats
EMULATED = "an emulated machine: files are on a RAM disk, there is one pCPU and no cache, and a fault or an exit costs its instructions only"
P, RUN = "/run/prog", "/run/prog/ld.so --library-path /run/prog /run/prog"
# One step has all seven, each timed by the place's own clock: a domU is booted for each step.
PREPARE = f"""mkdir tree; {P}/busybox awk 'BEGIN {{ for (f = 0; f < 150; f++) {{ name = "tree/" f; for (i = 0; i < 300; i++) print "line", f, i, f * i > name; close(name) }} }}'
{P}/busybox awk 'BEGIN {{ s = 42; for (i = 0; i < 25000; i++) {{ s = (s * 16807) % 2147483647; printf "word%d ", s % 997 }} }}' > text
n=0; while [ $n -lt 12 ]; do {P}/busybox awk -v n=$n 'BEGIN {{ for (f = 0; f < 60; f++) printf "int f%d_%d(int *a, int n) {{ int s = %d; while (n--) if (a[n] > s) s ^= a[n]; else s += n; return s; }}\\n", n, f, f }}' > $n.c; n=$((n + 1)); done
{P}/busybox dd if=/dev/zero of=zeros bs=65536 count=16 2>/dev/null"""
PARTS = f"""export ENOUGH=20000 TIMING_O=0 LOOP_O=0
again; {RUN}/timed compile {P}/sh -c 'for f in *.c; do {RUN}/tcc -nostdinc -c $f; done' || exit 1
again; {RUN}/timed tar-create {RUN}/tar -cf tree.tar tree || exit 1
mkdir out; again; {RUN}/timed tar-extract {RUN}/tar -xf tree.tar -C out || exit 1
again; {RUN}/timed bzip2 {RUN}/bzip2 -k text || exit 1
again; {RUN}/dbench -c {P}/client.txt -D . -t 2 1 || exit 1
{RUN}/bw_pipe -M 1m -N 1 -W 0 || exit 1
{RUN}/bw_file_rd -N 3 -W 0 1m io_only zeros || exit 1"""
AGAIN = {"hot": "again() { sync; }", "cold": "again() { sync; echo 3 > /proc/sys/vm/drop_caches; }"}
FIGURES = {"dbench": r"^Throughput ([\d.]+) MB/sec", "pipe": r"^Pipe bandwidth: ([\d.]+) MB/sec", "reread": r"^[\d.]+ ([\d.]+)$"}
WHERE = {
    "machine": 'directory = "/run/disk"',
    "dom0": 'where = "xen-dom0"\ndirectory = "/run/disk"',
    "block": 'where = "xen-guest"\ndisk = "/dev/ram1"\ndirectory = "/tmp"',
    "file": 'where = "xen-guest"\ndisk = "virtual"\ndisk-size = "64M"\ndirectory = "/run/disk"'}


def _programs() -> dict[str, Path]:
    """Files that the tests need, by name below P: programs, their libraries, and the loader."""
    packages = debian_programs.get(AMD64, PACKAGES)
    lmbench = debian_programs.get(AMD64, ("lmbench",), component="non-free")
    found = {**{name: Path("/bin/busybox") for name in ("busybox", "sh")}, "client.txt": packages / "usr/share/dbench/client.txt",
             "timed": initramfs.build_programs(AMD64) / "timed"}
    for path in ("bin/tar", "bin/bzip2", "usr/bin/tcc", "usr/bin/dbench"):
        found[Path(path).name] = packages / path
    for name in ("bw_pipe", "bw_file_rd"):
        found[name] = lmbench / LMBENCH / name
    for name in ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libacl.so.1", "libselinux.so.1", "libpcre2-8.so.0", "libbz2.so.1.0", "libpopt.so.0"):
        found[name] = next(path for folder in (LIBRARIES, "lib/x86_64-linux-gnu") if (path := packages / folder / name).exists())
    found["ld.so"] = next(path for folder in ("lib64", LIBRARIES, "lib/x86_64-linux-gnu") if (path := packages / folder / "ld-linux-x86-64.so.2").exists())
    return found


def plan(places: tuple[str, ...], programs: list[str], seed: int) -> str:
    """A plan of vperf-bench for the places of one lab run. The seed decides the order of the steps."""
    text = f"repeats = 1\nleast-free = 0\nseed = {seed}\n[settle]\nseconds = 0\n"
    guest = (f'memory = "256M"\nguest-kernel = "{kernels.get("bookworm", "generic").image}"\nguest-config = \'tsc_mode = "native"\'\n'
             f"programs = {json.dumps([f'{P}/{name}' for name in programs])}\n")
    for place in places:
        for tracer in PLACES[place]:
            text += f'[configuration.{place}-{tracer}]\n{WHERE[place]}\ntracer = "{TRACERS[tracer]}"\n' + guest * (place in RUNS["guests"])
            text += 'tracer-options = "--no-symbols"\n' * TRACERS[tracer].startswith("vperf")
    for cache, again in AGAIN.items():
        text += f"[test.{cache}]\ncache = [\"{cache}\"]\nprepare = '''{PREPARE}'''\ncommand = '''{again}\n{PARTS}'''\n"
    return text


def run_part(out: Path, part: str, icount: bool = True) -> None:
    """One of LABS, into out/PART."""
    run, number = part.split("-")
    programs = _programs()
    packages = debian_programs.get(AMD64, PACKAGES)
    copies = "; ".join(f"{'head -n 3000' if name == 'client.txt' else 'cat'} {path} > {P}/{name}" for name, path in programs.items())
    disk = ("modprobe brd rd_nr=2 rd_size=131072; modprobe loop; modprobe xen-blkback; mke2fs -q -F -t ext4 /dev/ram0; mkdir -p /run/disk; "
            "mount -t ext4 /dev/ram0 /run/disk")
    libraries = f"{packages}/{LIBRARIES}:{packages}/lib/x86_64-linux-gnu"
    before = (f"mkdir -p {P}; {copies}; chmod +x {P}/*; export LD_LIBRARY_PATH={libraries}; "
              f"export PATH=$PATH:{packages}/sbin:{packages}/usr/sbin; {disk}")
    if run == "dom0":
        before += f"; {lttng.commands(lttng.get(), f':{libraries}')}"
    before += f"; export PATH={P}:$PATH"
    host = "pcpus=1 memory=4096" + " icount=yes" * icount
    if run != "machine":
        host += " hypervisor=xen"
        before += "; xl mem-set 0 3300"
    benching.run(plan(RUNS[run], list(programs), int(number)), host, out / part, before)


def parts_of(text: str) -> dict[str, tuple[float, float | None]]:
    """Performance in each part of a step, by elapsed time and by CPU time, from what the test printed; of what runs for a time, the first
    only."""
    found: dict[str, tuple[float, float | None]] = {name: (1e9 / int(elapsed), 1e9 / max(int(cpu), 1)) for name, elapsed, cpu in
                                                    re.findall(r"^timed: (\S+) elapsed_ns=(\d+) cpu_ns=(\d+)$", text, re.MULTILINE)}
    for name, pattern in FIGURES.items():
        if match := re.search(pattern, text, re.MULTILINE):
            found[name] = float(match[1]), None
    if found.keys() != PUBLISHED.keys():
        raise LabError(f"a step has figures of {', '.join(found) or 'nothing'} only: {text[-300:]}")
    return found


class Figures:
    """Performance by (place, tracer, cache, part): the repeats."""

    def __init__(self) -> None:
        self.elapsed: dict[tuple[str, str, str, str], list[float]] = {}
        self.cpu: dict[tuple[str, str, str, str], list[float]] = {}

    def add(self, place: str, tracer: str, cache: str, text: str) -> None:
        """A step's output."""
        for part, (elapsed, cpu) in parts_of(text).items():
            self.elapsed.setdefault((place, tracer, cache, part), []).append(elapsed)
            if cpu is not None:
                self.cpu.setdefault((place, tracer, cache, part), []).append(cpu)

    def has(self, place: str) -> bool:
        """Whether it was measured, and the machine that it is compared with."""
        return {place, "machine"} <= {key[0] for key in self.elapsed}

    def percent(self, place: str, tracer: str, cache: str, part: str, by: str = "elapsed") -> tuple[float, float | None]:
        """Geometric mean in % of the untraced machine's, and half of its interval of 95%, which one repeat has not."""
        values = getattr(self, by)
        logs = [[math.log(value) for value in values[key]] for key in ((place, tracer, cache, part), ("machine", "none", cache, part))]
        percent = 100 * math.exp(statistics.mean(logs[0]) - statistics.mean(logs[1]))
        repeats = min(map(len, logs))
        return percent, percent * T_95[repeats] * sum(statistics.variance(each) / len(each) for each in logs) ** 0.5 if repeats > 1 else None


def _lost(figures: Figures, place: str, tracer: str, cache: str, part: str, by: str = "elapsed") -> float:
    """Points of 100 that a tracer takes, of the same place without one."""
    return figures.percent(place, "none", cache, part, by)[0] - figures.percent(place, tracer, cache, part, by)[0]


def _vperf(place: str) -> tuple[str, ...]:
    return tuple(tracer for tracer in OF_VPERF if tracer in PLACES[place])


def _all(figures: Figures, place: str, cache: str, part: str, by: str = "elapsed") -> str:
    found = [figures.percent(place, tracer, cache, part, by) for tracer in _vperf(place)]
    return ", ".join(f"{percent:.2f}" + ("" if width is None else f" ± {width:.2f}") for percent, width in found)


def place_rows(figures: Figures, part: str) -> list[Row]:
    """One part: each place that was measured, cache hot, by elapsed virtual time; what tracing costs there; the same by CPU time, and cold."""
    rows = []
    for place, published in zip(PLACES, PUBLISHED[part]):
        if not figures.has(place):
            continue
        published = tuple(value for tracer, value in zip(OF_VPERF, published) if tracer in PLACES[place])
        told = ", ".join(f"{value:g}" for value in published) or "in doubt as printed"
        pairs = [(value, figures.percent(place, tracer, "hot", part)[0]) for value, tracer in zip(published, _vperf(place))]
        rows.append(Row(f"{TITLES[part]}, {place}, hot, % of the untraced machine by elapsed virtual time: {', '.join(_vperf(place))}", told,
                        _all(figures, place, "hot", part), None, EMULATED if place != "machine" else "",
                        pairs[0] if pairs else None, more=tuple(pairs[1:])))
        most = max([POINTS, *(published[0] - value for value in published[1:])]) if published else POINTS
        lost = [_lost(figures, place, tracer, "hot", part) for tracer in _vperf(place)[1:]]
        rows.append(Row(f"{TITLES[part]}, {place}, hot: points that tracing costs, {', '.join(_vperf(place)[1:])}",
                        ", ".join(f"{published[0] - value:.2f}" for value in published[1:]) or "in doubt as printed",
                        ", ".join(f"{value:.2f}" for value in lost), max(lost) <= most, bound=f"at most {most:.2f}"))
        if part not in BY_RATE:
            rows.append(Row(f"{TITLES[part]}, {place}, hot, the same by CPU time, that is instructions", "-", _all(figures, place, "hot", part, "cpu"), None))
        rows.append(Row(f"{TITLES[part]}, {place}, cold, by elapsed virtual time", "its numbers are not at hand", _all(figures, place, "cold", part), None))
    return rows


def hypervisor_rows(figures: Figures) -> list[Row]:
    """Table 13: dom0 with nothing, the hypervisor traced by vperf, and by xentrace; then LTTng's own tracer of Linux."""
    rows: list[Row] = []
    if not figures.has("dom0"):
        return rows
    for part, (nothing, published, peer) in TABLE_13.items():
        ours, theirs = (_lost(figures, "dom0", tracer, "hot", part) for tracer in ("disk", "xentrace"))
        most = max(POINTS, *(nothing - published for nothing, published, _ in TABLE_13.values()))
        rows.append(Row(f"table 13, {part}, dom0, hot: points that tracing the hypervisor costs, vperf (with dom0's own events) and xentrace",
                        f"{nothing - published:.2f}, {nothing - peer:.2f}", f"{ours:.2f}, {theirs:.2f}", ours <= most,
                        numbers=(nothing - published, ours), bound=f"at most {most:.2f}, the first", more=((nothing - peer, theirs),)))
    rows.append(Row("LTTng 2.13 of Debian (the scheduler's events), dom0, hot: points that it costs, by part", "-",
                    ", ".join(f"{part} {_lost(figures, 'dom0', 'lttng', 'hot', part):.2f}" for part in PUBLISHED), None))
    return rows


def read_places(out: Path) -> Figures:
    """The figures in the steps of those lab runs that there are."""
    figures = Figures()
    missing = missing_parts(out, LABS)
    for part in LABS:
        if part in missing:
            continue
        bench = out / part / "lab/bench"
        state = json.loads((bench / "state.json").read_text(encoding="utf-8"))
        for step in state["steps"]:
            if step["status"] != "done":
                raise LabError(f"step {step['number']} ({step['configuration']}, {step['test']}) is {step['status']}: {step.get('why', '')}")
            place = bench / "steps" / f"{step['number']:05d}.{step['attempts']}"
            inside = place / "guest"
            figures.add(*step["configuration"].split("-"), step["test"], "".join(
                (inside if inside.is_dir() else place).joinpath(name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")))
    return figures


def _read(out: Path) -> list[Row]:
    figures = read_places(out)
    if not figures.has("machine"):
        raise LabError("there is no run of the machine without Xen, with which all others are compared")
    return [row for part in PUBLISHED for row in place_rows(figures, part)] + hypervisor_rows(figures)


def runs_text(out: Path) -> str:
    """The lab runs that the figures are from, and those that are missing."""
    missing = missing_parts(out, LABS)
    return f"lab runs: {', '.join(part for part in LABS if part not in missing)}\nmissing: {', '.join(missing) or 'none'}\n"


NAMES = {"trace-xen": Reproduction(
    "the cost of virtualization and of tracing by place and by mode, on Xen", SOURCE,
    "tcc for a kernel's build, GNU tar, bzip2 and dbench 4 of Debian with little work, LMbench 3; one pCPU, files on a RAM disk, dom0 and domU on the same pCPU, "
    "vperf in dom0 for LTTng; 'off' is vperf after it has ended; LTTng's tracer of Linux in dom0 only; domUs with nothing and vperf to disk only; three "
    "repeats, geometric means", lambda out: run_parts(out, LABS, run_part), _read, LABS, run_part, runs_text)}
