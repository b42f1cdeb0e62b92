"""Scenario files: one statement per line, '#' starts a comment. The grammar is in docs/lab.md."""

import re
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .arch import ARCHES
from .common import REPO, UsageError
from .debian import SUITES
from .kernels import ALL_FLAVOURS

VENDORS = ("amd", "intel")
HYPERVISORS = ("kvm", "xen")
TYPES = ("pv", "pvh", "hvm")
NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,30}$")


@dataclass
class Host:
    """The lab host."""

    arch: str = "amd64"
    vendor: str = "amd"
    hypervisor: str = "kvm"
    kernel: str = "bookworm"
    flavour: str = "generic"
    pcpus: int = 2
    memory: int = 3072
    icount: bool = False
    pmu: str = ""  # "yes", or "v2": with PerfMonV2
    caches: str = ""  # L1 and L2, in KiB
    append: str = ""
    kaslr: bool = False
    cpu: str = ""
    accel: str = ""
    qemu: str = ""
    xen: str = ""


@dataclass
class Guest:
    """One guest; times are in seconds after T0."""

    name: str
    vcpus: int = 1
    memory: int = 256
    pin: list = field(default_factory=list)
    kernel: str = "bookworm"
    flavour: str = "cloud"
    agent: bool = False
    truth: bool = True
    kallsyms: bool = False
    kvm: bool = False
    autostart: bool = True
    start: float = 0.0
    stop: float = 0.0
    kill: float = 0.0
    append: str = ""
    cpu: str = ""
    qemu: str = ""
    type: str = ""  # of a guest of Xen
    weight: int = 0
    cap: int = 0
    cid: int = 0
    files: list = field(default_factory=list)


@dataclass
class Workload:
    """A program in a guest, or natively on the lab host (where='host')."""

    where: str
    argv: list
    start: float = 0.0
    length: float = 0.0
    copies: int = 1


@dataclass
class Scenario:
    """Contents of a scenario file."""

    name: str
    host: Host = field(default_factory=Host)
    guests: list = field(default_factory=list)
    workloads: list = field(default_factory=list)
    before: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    after: list = field(default_factory=list)
    lines: dict = field(default_factory=dict)  # line number of "host" and of each guest

    def guest(self, name):
        """The guest of that name, or None."""
        return next((g for g in self.guests if g.name == name), None)

    def as_dict(self):
        """Plain data, for the driver on the lab host."""
        return asdict(self)


def _yes_no(text):
    if text not in ("yes", "no"):
        raise ValueError("expected yes or no")
    return text == "yes"


def _count(text):
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise ValueError("expected a whole number from 1")
    return int(text)


def _seconds(text):
    if not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", text):
        raise ValueError("expected a number of seconds")
    return float(text)


def _cpu_list(text):
    if not re.fullmatch(r"[0-9]+(,[0-9]+)*", text):
        raise ValueError("expected pCPU numbers separated by commas")
    return [int(n) for n in text.split(",")]


def _one_of(*names):
    def check(text):
        if text not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return text
    return check


def _pmu(text):
    return "" if _one_of("no", "yes", "v2")(text) == "no" else text


def _caches(text):
    sizes = [_count(size) for size in text.split(",")]
    if len(sizes) != 2 or not all(1 <= size <= 1 << 16 and size & (size - 1) == 0 for size in sizes):
        raise ValueError("expected the sizes of an L1 and an L2 cache in KiB, powers of two: caches=32,512")
    return text


HOST_KEYS = {"arch": _one_of(*ARCHES), "vendor": _one_of(*VENDORS), "hypervisor": _one_of(*HYPERVISORS), "kernel": _one_of(*SUITES),
             "flavour": _one_of(*ALL_FLAVOURS), "pcpus": _count, "memory": _count, "icount": _yes_no, "pmu": _pmu, "caches": _caches, "kaslr": _yes_no, "append": str, "cpu": str,
             "accel": _one_of("tcg", "kvm"), "qemu": str, "xen": str}
GUEST_KEYS = {"vcpus": _count, "memory": _count, "pin": _cpu_list, "kernel": _one_of(*SUITES),
              "flavour": _one_of(*ALL_FLAVOURS), "agent": _yes_no, "truth": _yes_no,
              "kallsyms": _yes_no, "kvm": _yes_no, "autostart": _yes_no, "start": _seconds, "stop": _seconds,
              "kill": _seconds, "append": str, "cpu": str, "qemu": str,
              "type": _one_of(*TYPES), "weight": _count, "cap": _count}
XEN_ONLY = ("type", "weight", "cap")
KVM_ONLY = ("cpu", "kvm", "qemu")
WORKLOAD_KEYS = {"start": _seconds, "length": _seconds, "copies": _count}
VERBATIM = {"command-before": "before", "command": "commands", "command-after": "after"}


def _set(target, keys, word):
    """Apply one KEY=VALUE."""
    key, equals, value = word.partition("=")
    if not equals or key not in keys:
        raise ValueError(f"'{word}' is not an option here: expected one of {', '.join(keys)} as KEY=VALUE")
    try:
        setattr(target, key, keys[key](value))
    except ValueError as error:
        raise ValueError(f"'{word}': {error}") from error


class _Parser:
    def __init__(self, path):
        self.path = path
        self.line = 0
        self.scenario = Scenario(Path(path).stem)

    def parse(self, text):
        """Parse the whole file."""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                self.line = number
                self._statement(line.strip())
            except ValueError as error:
                raise UsageError(f"{self.path}:{number}: {error}") from error
        return self.scenario

    def _statement(self, line):
        verb = line.split(None, 1)[0] if line else "#"
        if verb.startswith("#"):
            return
        if verb in VERBATIM:
            rest = line[len(verb):].strip()
            if not rest:
                raise ValueError(f"'{verb}' needs a shell command")
            getattr(self.scenario, VERBATIM[verb]).append(rest)
            return
        parse = {"host": self._host, "guest": self._guest, "workload": self._workload,
                 "file": self._file}.get(verb)
        if not parse:
            raise ValueError(f"unknown statement '{verb}': expected host, guest, workload, file, "
                             f"command, command-before or command-after")
        parse(shlex.split(line, comments=True)[1:])

    def _host(self, words):
        self.scenario.lines["host"] = self.line
        for word in words:
            _set(self.scenario.host, HOST_KEYS, word)

    def _guest(self, words):
        if not words or not NAME.match(words[0]) or words[0] == "host":
            raise ValueError("a guest needs a name of letters, digits, '-' and '_', other than 'host'")
        if self.scenario.guest(words[0]):
            raise ValueError(f"guest '{words[0]}' is defined twice")
        self.scenario.lines[words[0]] = self.line
        guest = Guest(words[0], cid=3 + len(self.scenario.guests))
        for word in words[1:]:
            _set(guest, GUEST_KEYS, word)
        self.scenario.guests.append(guest)

    def _where(self, words, what):
        if not words:
            raise ValueError(f"'{what}' needs the name of a guest")
        if not self.scenario.guest(words[0]) and not (what == "workload" and words[0] == "host"):
            raise ValueError(f"no guest '{words[0]}' is defined above")
        return words[0]

    def _workload(self, words):
        workload = Workload(self._where(words, "workload"), [])
        words = words[1:]
        while words and "=" in words[0]:
            _set(workload, WORKLOAD_KEYS, words.pop(0))
        if not words:
            raise ValueError("'workload' needs a program")
        if any("\t" in w or "\n" in w for w in words):
            raise ValueError("the arguments of a workload cannot hold tabs or line ends")
        workload.argv = words
        self.scenario.workloads.append(workload)

    def _file(self, words):
        guest = self.scenario.guest(self._where(words, "file"))
        if len(words) not in (2, 3):
            raise ValueError("'file' needs GUEST SOURCE [PATH-IN-GUEST]")
        source = Path(words[1])
        if not source.is_absolute():
            source = REPO / source
        if not source.is_file():
            raise ValueError(f"there is no file '{source}'")
        target = words[2] if len(words) == 3 else str(source)
        if not target.startswith("/"):
            raise ValueError(f"the path in the guest must be absolute, not '{target}'")
        guest.files.append([str(source), target])


def _check(scenario, path):
    """Checks across sections of the file."""
    host = scenario.host

    def wrong(name, text):
        raise UsageError(f"{path}:{scenario.lines.get(name, 1)}: {text}")

    if host.vendor == "intel" and host.arch != "amd64":
        wrong("host", f"vendor=intel needs arch=amd64, not {host.arch}")
    if host.pmu:
        if (host.arch, host.vendor, host.accel) not in (("amd64", "amd", ""), ("amd64", "amd", "tcg")):
            wrong("host", "pmu=yes needs arch=amd64, vendor=amd and the accelerator tcg")
        host.icount = True
    if host.caches and not host.pmu:
        wrong("host", "caches= needs pmu=yes")
    xen = host.hypervisor == "xen"
    if xen and (host.arch, host.vendor, host.accel) not in (("amd64", "amd", ""), ("amd64", "amd", "tcg")):
        wrong("host", "hypervisor=xen needs arch=amd64, vendor=amd and the accelerator tcg")
    if host.xen and not xen:
        wrong("host", "xen= needs hypervisor=xen")
    for guest in scenario.guests:
        for key in KVM_ONLY if xen else XEN_ONLY:
            if getattr(guest, key):
                wrong(guest.name, f"{key}= is for guests of {'KVM' if xen else 'Xen'} only")
        if len(guest.pin) not in (0, 1, guest.vcpus):
            wrong(guest.name, f"pin= needs one pCPU, or one for each of the {guest.vcpus} vCPUs")
        if any(cpu >= host.pcpus for cpu in guest.pin):
            wrong(guest.name, f"pin={','.join(map(str, guest.pin))}: the lab host has pCPUs "
                              f"0 to {host.pcpus - 1}")
        for key in ("stop", "kill"):
            if 0 < getattr(guest, key) <= guest.start:
                wrong(guest.name, f"{key}= must come after start=")
    total = sum(g.memory for g in scenario.guests)
    if total + 512 > host.memory:
        wrong("host", f"the lab host has {host.memory} MiB: it needs at least 512 more than the "
                      f"{total} of its guests")


def _override(scenario, text):
    """One --set TARGET.KEY=VALUE; TARGET is host, guest (all guests) or the name of a guest."""
    target, dot, word = text.partition(".")
    if target == "host":
        targets, keys = [scenario.host], HOST_KEYS
    else:
        targets = [g for g in scenario.guests if target in ("guest", g.name)]
        keys = GUEST_KEYS
    if not dot or (not targets and target != "guest"):
        raise UsageError(f"--set {text}: expected host.KEY=VALUE, guest.KEY=VALUE or "
                         f"NAME-OF-A-GUEST.KEY=VALUE")
    for item in targets:
        try:
            _set(item, keys, word)
        except ValueError as error:
            raise UsageError(f"--set {text}: {error}") from error


def load(path, overrides=()):
    """Read, override and check a scenario."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the scenario '{path}' cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the scenario '{path}' is not UTF-8 text") from error
    scenario = _Parser(path).parse(text)
    for item in overrides:
        _override(scenario, item)
    _check(scenario, path)
    return scenario
