"""Names and call chains of Debian's programs in guests: how many samples have functions and names, and how many chains are whole."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from . import debian_programs, roots
from .arch import AMD64
from .common import LabError
from .names_programs import BARE, KNOWN, KNOWN_C, KNOWN_GO, KNOWN_JAVA, RUNS, Program
from .names_truth import Truth, judged
from .reproduction import run_lab, vperf

SETTLED = 2  # seconds after the process's first sample: before that, vperf looks for the kernel and for runtimes
BASE = ("bash", "coreutils", "util-linux", "findutils", "grep")  # of each root
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/icons", "usr/share/zoneinfo", "gconv", "libLLVM*", "usr/share/perl/5*/unicore", "*.jmod",
            "usr/share/i18n", "boot", "var/cache", "usr/lib/x86_64-linux-gnu/dri", "libicudata.a")
RECORDINGS = {"names": "", "chains": "-g "}
LONGEST_PREPARE_S = 120
NOTHING = "nothing"  # a recording in which the guest does nothing: what vperf costs without samples
RESULT = "result.json"
WHOLE, GUESSED = "whole", "whole with guessed callers"  # ends of stacks in reports


@dataclass(frozen=True)
class Figures:
    """One program's. Shares are percent of its samples in user space, None where they are not known. `rows`: for each function."""

    program: str
    suite: str
    samples: int
    without_function: float
    of_jit: float
    without_name: float
    right: float | None
    judged: float
    rows: float
    chains: int
    whole: float
    guessed: float
    ends: dict[str, int]
    cost_us: float | None


def slug(text: str) -> str:
    """A name for files."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def _call(*command: object, **options: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise LabError(f"{command[0]} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")


def _build_c(work: Path, root: Path, program: Program) -> None:
    (work / "known.c").write_text(KNOWN_C, encoding="ascii")
    to = root / program.comms[0]
    if program is BARE:
        _call("gcc", "-O1", "-s", "-o", to, work / "known.c")
        return
    _call("gcc", "-O1", "-o", work / "full", work / "known.c")
    _call("objcopy", "--only-keep-debug", work / "full", work / "small")
    _call("objcopy", "-S", "--keep-symbol=often", "--keep-symbol=seldom", work / "small")
    _call("xz", "-f", work / "small")
    _call("strip", "-o", to, work / "full")
    _call("objcopy", "--add-section", f".gnu_debugdata={work / 'small.xz'}", to)


def _build_go(work: Path, root: Path, program: Program, suite: str) -> None:
    version = program.name.split()[1].rstrip(",")
    tools = debian_programs.get(AMD64, (f"golang-{version}-go", f"golang-{version}-src"), suite) / f"usr/lib/go-{version}"
    (work / "known.go").write_text(KNOWN_GO, encoding="ascii")
    _call(tools / "bin/go", "build", "-ldflags", "-s -w", "-o", root / program.comms[0], work / "known.go",
          env={"PATH": os.environ["PATH"], "GOROOT": str(tools), "GOCACHE": str(work / "cache"), "GO111MODULE": "off", "HOME": str(work), "GOTOOLCHAIN": "local",
               "GOFLAGS": "-p=2"})


def _build_java(work: Path, root: Path) -> None:
    (work / "Known.java").write_text(KNOWN_JAVA, encoding="ascii")
    _call("javac", "-Xlint:-options", "--release", "8", "-d", root, work / "Known.java")


def _build(work: Path, root: Path, program: Program, suite: str) -> None:
    if program.build == "go":
        _build_go(work, root, program, suite)
    elif program.build == "java":
        _build_java(work, root)
    elif program.build:
        _build_c(work, root, program)


def _scripts(root: Path, program: Program) -> None:
    # The lab ends what a script has left in the background with the script.
    ready = f"touch /ready-{slug(program.name)}\nsleep 3600\n"
    for kind, text in (("run", program.run), ("prepare", program.prepare + ready)):
        (root / f"{kind}-{slug(program.name)}").write_text(f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C\n{text}", encoding="ascii")
    for path, content in program.files.items():
        (root / path[1:]).write_text(content, encoding="ascii")


def base_of(suite: str, programs: tuple[Program, ...]) -> Path:
    """The suite's packages for these programs, unpacked."""
    wanted = sorted({package for program in programs for package in program.packages} | set(BASE))
    return roots.get_programs(suite, tuple(wanted))


def _pack(out: Path, suite: str, base: Path, programs: tuple[Program, ...]) -> Path:
    """A root for these programs, as an archive: the lab takes an ELF file for a program with this machine's libraries."""
    work = out / "programs"
    own = work / "root"
    own.mkdir(parents=True)
    for program in programs:
        _build(work, own, program, suite)
        _scripts(own, program)
    for name in ("dev", "proc", "sys", "tmp", "run", "my"):
        (own / name).mkdir(exist_ok=True)
    (own / "etc").mkdir()
    (own / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\npg:x:999:999:pg:/pg:/bin/sh\n", encoding="ascii")
    (own / "etc/group").write_text("root:x:0:\npg:x:999:\n", encoding="ascii")
    packed = work / "root.tar"
    _call("tar", "-C", base, *(f"--exclude={name}" for name in (*LEFT_OUT, "./etc/passwd", "./etc/group")), "-cf", packed, ".")
    _call("tar", "-C", own, "--append", "-f", packed, ".")
    return packed


def _scenario(out: Path, suite: str, programs: tuple[Program, ...], packed: Path) -> str:
    start = out / "programs/start"
    start.write_text("grep -q /new/proc /proc/mounts || { mount --bind /proc /new/proc; mount --bind /dev /new/dev; }\n"
                     "busybox ip link set lo up\nexec busybox chroot /new /bin/sh /$1\n", encoding="ascii")
    ready = out / "programs/ready"
    ready.write_text(f"i=0\nuntil [ -e /new/ready-$1 ] || [ $i = {LONGEST_PREPARE_S} ]; do i=$((i + 1)); sleep 1; done\n", encoding="ascii")
    lines = [f"host pcpus=1 icount=yes memory=5632\nguest g1 vcpus=1 memory=3584 truth=no kernel={suite} flavour=cloud",
             f"file g1 {packed} /root.tar\nfile g1 {start} /start\nfile g1 {ready} /ready",
             "command lab-guest run g1 mkdir /new && lab-guest run g1 busybox mount -t tmpfs -o size=90% none /new && "
             "lab-guest run g1 tar -C /new -xf /root.tar && lab-guest run g1 busybox rm /root.tar"]
    record = "TIMEFORMAT='cpu %3U %3S'; time nice -n -15 vperf record {options}--no-agent --vm g1 -o /out/{name} -- {command}; true"
    lines += [f"command {record.format(options='', name=f'{NOTHING}-first', command='lab-guest run g1 true')}"]
    lines += [f"command {record.format(options=options, name=f'{NOTHING}-{kind}', command='lab-guest run g1 true')}" for kind, options in RECORDINGS.items()]
    for program in programs:
        if program.prepare:
            lines += [f"command lab-guest spawn g1 sh /start prepare-{slug(program.name)}", f"command lab-guest run g1 sh /ready {slug(program.name)} || true"]
        for kind, options in RECORDINGS.items():
            name = f"{slug(program.name)}-{kind}"
            lines.append(f"command {record.format(options=options, name=name, command=f'lab-guest run g1 sh /start run-{slug(program.name)}')}")
    return "\n".join(lines) + "\n"


def _run(name: str, out: Path, only: list[str]) -> None:
    suite, programs = selected(name, only)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    packed = _pack(out, suite, base_of(suite, programs), programs)
    run_lab(_scenario(out, suite, programs, packed), out)
    packed.unlink()
    (out / "programs.json").write_text(json.dumps([program.name for program in programs]), encoding="ascii")


def selected(name: str, only: list[str]) -> tuple[str, tuple[Program, ...]]:
    """The suite, and the programs that are asked for."""
    suite, programs = RUNS[name]
    return suite, tuple(program for program in programs if not only or any(word in program.name for word in only))


def _report(recording: Path, *options: str) -> dict:
    return json.loads(vperf("report", str(recording), "--view", "guest", "--vm", "g1", "--no-host-files", *options, "--format", "json"))


def _samples(recording: Path, comms: tuple[str, ...]) -> list[dict]:
    """Single samples of the processes, from when they have settled."""
    text = vperf("report", str(recording), "--view", "guest", "--vm", "g1", "--no-host-files", "--format", "jsonl")
    samples = [record for record in map(json.loads, text.splitlines()) if record["type"] == "sample" and record["process"] in comms]
    start = min((sample["time_ns"] for sample in samples), default=0) + SETTLED * 1000000000
    return [sample for sample in samples if sample["time_ns"] >= start]


def is_unnamed(function: str | None) -> bool:
    """Whether a row is an address and not a function."""
    return function is None or function.startswith("0x") or "+0x" in function


def is_jit(function: str | None) -> bool:
    """Whether a row is all code of a process that a JIT compiler made, without its functions."""
    return function == "[JIT code]"


def is_nameless(function: str | None) -> bool:
    """Whether a row is a function of which only the extent is known."""
    return bool(re.search(r":0x[0-9a-f]+$", function or ""))


def _percent(part: float, whole: float) -> float:
    return round(100 * part / max(whole, 1), 2)


def right_of_known(program: Program, counts: dict[str, int]) -> tuple[float, int]:
    """Percent of the samples in the known functions that are in the right one, by their known split; and those samples."""
    found = {name: sum(count for function, count in counts.items() if re.fullmatch((program.known or "").format(name), function)) for name in ("often", "seldom")}
    total = sum(found.values())
    return round(100 - abs(100 * found["often"] / max(total, 1) - KNOWN), 2), total


def _cost(log: str) -> float:
    seconds = re.findall(r"^cpu ([\d.]+) ([\d.]+)$", log, re.MULTILINE)
    return sum(map(float, seconds[-1])) if seconds else 0.0


def _figures(out: Path, suite: str, program: Program, costs: dict[str, float], truth: Truth) -> tuple[Figures, dict]:
    names, chains = (out / "lab" / f"{slug(program.name)}-{kind}" for kind in RECORDINGS)
    samples = [sample for sample in _samples(names, program.comms) if sample["frames"] and sample["frames"][-1]["kind"] == "user"]
    counts: dict[str, int] = {}
    for sample in samples:
        function = sample["frames"][-1]["function"] or "(none)"
        counts[function] = counts.get(function, 0) + 1
    total = sum(counts.values())
    unnamed = {name: count for name, count in counts.items() if name == "(none)" or is_unnamed(name)}
    of_jit = sum(count for name, count in counts.items() if is_jit(name))
    nameless = {name: count for name, count in counts.items() if is_nameless(name)}
    script = vperf("report", str(names), "--view", "guest", "--vm", "g1", "--no-host-files", "--format", "script")
    judged_samples, right, wrong = judged(truth, names / "guest-g1.maps", script, program.comms, samples[0]["time_ns"] / 1e9 if samples else 0)
    share = _percent(right, judged_samples) if judged_samples else None
    if program.known:
        known, of_known = right_of_known(program, counts)
        share, judged_samples = known, of_known
    reports = [_report(chains, "--comm", comm) for comm in program.comms]
    walks = Counter()
    for report in reports:
        walks.update(report["walks"]["guest_user"])
    walked = sum(walks.values())
    name = f"{slug(program.name)}-names"
    cost = costs[name] - costs[f"{NOTHING}-names"]
    every = sum(1 for line in script.splitlines() if line and not line.startswith("\t"))
    figures = Figures(program.name, suite, total, _percent(sum(unnamed.values()), total), _percent(of_jit, total), _percent(sum(nameless.values()), total), share,
                      _percent(judged_samples, total), round(len(counts) / max(len(counts) - len(unnamed) + bool(unnamed), 1), 2), walked,
                      _percent(walks.get(WHOLE, 0), walked), _percent(walks.get(GUESSED, 0), walked),
                      {why: count for why, count in walks.items() if why not in (WHOLE, GUESSED)}, round(1e6 * cost / max(every, 1), 1))
    most = sorted(counts.items(), key=lambda item: -item[1])
    return figures, {"rows": most[:15], "unnamed": sorted(unnamed.items(), key=lambda item: -item[1])[:8], "wrong": wrong[:8],
                     "notes": reports[0]["notes"],
                     "stacks": sorted((stack for report in reports for stack in report["stacks"]), key=lambda stack: -stack["samples"])[:3]}


def _read(name: str, out: Path) -> list[tuple[Figures, dict]]:
    suite, programs = RUNS[name]
    ran = json.loads((out / "programs.json").read_text(encoding="ascii"))
    programs = tuple(program for program in programs if program.name in ran)
    commands = sorted((out / "lab/host").glob("command-*.err"), key=lambda path: int(path.stem.split("-")[1]))
    lines = [line.removeprefix("command ") for line in (out / "lab/scenario.scn").read_text(encoding="utf-8").splitlines() if line.startswith("command ")]
    costs = {match[1]: _cost(path.read_text(errors="replace")) for line, path in zip(lines, commands) if (match := re.search(r"-o /out/(\S+)", line))}
    truth = Truth(out / "programs/root", base_of(suite, programs))
    return [_figures(out, suite, program, costs, truth) for program in programs]


def table(figures: list[Figures]) -> list[str]:
    """The figures, a line for each program."""
    head = ("program", "suite", "samples", "no function", "JIT", "no name", "right", "judged", "rows", "chains", "whole", "guessed", "µs")
    rows = [(f.program, f.suite, str(f.samples), f"{f.without_function:.2f}", f"{f.of_jit:.2f}", f"{f.without_name:.1f}", "-" if f.right is None else f"{f.right:.1f}", f"{f.judged:.1f}",
             f"{f.rows:.2f}", str(f.chains), f"{f.whole:.2f}", f"{f.guessed:.2f}", f"{f.cost_us:.0f}") for f in figures]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return ["  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in (head, *rows)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("names", description=__doc__)
    parser.add_argument("name", metavar="RUN", nargs="*", help=f"lab runs, of {', '.join(RUNS)}; default: all")
    parser.add_argument("--only", metavar="WORD", action="append", default=[], help="only programs with this word in their names; can be repeated")
    parser.add_argument("--list", action="store_true", help="the programs of each run")
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep the lab's results here, a directory for each run")
    parser.add_argument("--read", action="store_true", help="no lab: read what an earlier run left in DIR")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="also the hottest functions, those without a name, and chains, as JSON")
    return parser


def _checked(argv: list[str]) -> argparse.Namespace:
    parser = _parser()
    args = parser.parse_args(argv)
    args.name = args.name or list(RUNS)
    for name in args.name:
        if name not in RUNS:
            parser.error(f"'{name}' is no run; expected {', '.join(RUNS)}")
        if args.only and not selected(name, args.only)[1]:
            parser.error(f"no program of '{name}' has one of {', '.join(args.only)} in its name")
    if args.read and not args.out:
        parser.error("expected --out with --read")
    return args


def main(argv: list[str]) -> int:
    """Its options; returns the exit status."""
    args = _checked(argv)
    if args.list:
        print(*(f"{name}: {', '.join(program.name for program in RUNS[name][1])}" for name in args.name), sep="\n")
        return 0
    out = (args.out or Path(tempfile.mkdtemp(prefix="vperf-names-"))).absolute()
    found = []
    for name in args.name:
        try:
            if not args.read:
                _run(name, out / name, args.only)
            found += _read(name, out / name)
        except (LabError, OSError, ValueError, KeyError) as error:
            print(f"names: {name}: {error!r}", file=sys.stderr)
            return 1
    if args.verbose:
        print(json.dumps([asdict(figures) | more for figures, more in found], indent=1))
    elif args.json:
        print(json.dumps([asdict(figures) for figures, _ in found], indent=1))
    else:
        print(*table([figures for figures, _ in found]), sep="\n")
    return 0
