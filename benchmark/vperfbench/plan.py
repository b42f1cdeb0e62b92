"""The plan: what is measured, in which configurations, how often, and what to do when something goes wrong.

TOML. Everything that can be refused by reading it alone is refused here, in one sentence that names file and key.
"""

import difflib
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from .common import PlanError
from .statistics import TESTS as COMPARISONS
from .tests import KINDS, Figure
from .tracers import TRACERS

PLACES = ("machine", "kvm-host", "kvm-guest", "xen-dom0", "xen-guest")
CACHES = ("hot", "cold")
# Keys that only some places know.
GUEST_KEYS = {**{key: ("kvm-guest", "xen-guest") for key in ("vcpus", "memory", "guest-kernel", "guest-append", "disk", "disk-size")},
              "guest-cpu": ("kvm-guest",),
              **{key: ("xen-guest",) for key in ("guest-type", "guest-config", "programs")}}
AFTER = ("go-on", "again", "stop")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
MOST_STEPS = 100000


@dataclass(frozen=True)
class Configuration:
    """Where and under what the tests run. kernel: a release as uname -r prints it, "" for the one that runs."""

    name: str
    kernel: str = ""
    boot_entry: str = ""
    where: str = "machine"
    tracer: str = "none"
    tracer_options: tuple = ()
    cpus: str = ""
    directory: str = "/var/tmp"
    vcpus: int = 1
    memory: int = 512 << 20
    disk: str = "virtual"
    disk_size: int = 1 << 30
    guest_kernel: str = ""
    guest_append: str = ""
    guest_cpu: str = "host"
    guest_type: str = "pvh"
    guest_config: str = ""
    programs: tuple = ()

    @property
    def boot(self) -> tuple[str, str, bool]:
        """What the machine has to be booted with: kernel, entry, whether under Xen."""
        return (self.kernel, self.boot_entry, self.on_xen)

    @property
    def on_xen(self) -> bool:
        """Whether the machine has to be a dom0."""
        return self.where.startswith("xen-")

    @property
    def in_guest(self) -> bool:
        """Whether each step has a guest of its own."""
        return self.where.endswith("-guest")


@dataclass(frozen=True)
class Test:
    """A command and how its figure is read."""

    name: str
    command: str
    prepare: str
    figure: Figure
    caches: tuple
    limit: float
    scale: int
    needs: dict


@dataclass(frozen=True)
class Settle:
    """When the machine is quiet enough to begin: less than `busy` percent for `seconds`, or after `limit`."""

    seconds: float = 3
    busy: float = 5
    limit: float = 120


@dataclass(frozen=True)
class Plan:
    """The whole, as it was read."""

    file: str
    text: str
    name: str
    configurations: dict
    tests: dict
    baseline: str
    seed: int = 1
    repeats: int = 5
    rounds: int = 1
    compare: str = "welch"
    confidence: float = 0.95
    governor: str = ""
    stop_services: tuple = ()
    least_free: int = 256 << 20
    on: dict = field(default_factory=dict)
    settle: Settle = Settle()


    def programs(self) -> list[str]:
        """All that take part, as far as the plan tells."""
        found = [name for test in self.tests.values() for name in test.needs]
        found += [name for own in self.configurations.values() for name in TRACERS[own.tracer].needs]
        guests = ["qemu-system-x86_64"] if any(own.where == "kvm-guest" for own in self.configurations.values()) else []
        return sorted({*found, *guests})


class Table:
    """A table of the file that knows where it is: every key is asked for once, what is left is unknown."""

    def __init__(self, file: str, where: str, values: object) -> None:
        self.file, self.where = file, where
        if not isinstance(values, dict):
            raise PlanError(f"{file}: {where}: expected a table" + (f", not a list of them ([[{where}]])" if isinstance(values, list) else ""))
        self.values, self.asked = dict(values), []

    def take(self, key: str, default: object) -> object:
        """What the key has."""
        self.asked.append(key)
        return self.values.pop(key, default)

    def wrong(self, key: str, text: str) -> PlanError:
        """The sentence."""
        return PlanError(f"{self.file}: {self.where + '.' if self.where else ''}{key}: {text}")

    def text(self, key: str, default: str | None = "") -> str:
        """A string; None as default: it has to be there."""
        value = self.take(key, default)
        if value is None:
            raise self.wrong(key, "is missing")
        if not isinstance(value, str):
            raise self.wrong(key, f"expected text, not {value!r}")
        return value

    def choice(self, key: str, words: tuple | dict, default: str) -> str:
        """One of some words."""
        value = self.text(key, default)
        if value not in words:
            raise self.wrong(key, f"'{value}' is unknown: expected one of {', '.join(words)}")
        return value

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """A number within limits."""
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise self.wrong(key, f"expected a number from {low:g} to {high:g}, not {value!r}")
        return value

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number within limits."""
        value = self.number(key, default, low, high)
        if value != int(value):
            raise self.wrong(key, f"expected a whole number, not {value!r}")
        return int(value)

    def size(self, key: str, default: int) -> int:
        """Bytes: a number, or text as 256M."""
        value = self.take(key, default)
        match = re.fullmatch(r"(\d{1,15})([KMG]?)", str(value))
        if isinstance(value, bool) or not match:
            raise self.wrong(key, f"expected a size such as 512M, not {value!r}")
        return int(value) if isinstance(value, int) else int(match[1]) * UNITS[match[2]]

    def words(self, key: str, allowed: tuple | None = None, default: tuple = ()) -> tuple:
        """A list of texts."""
        value = self.take(key, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, f"expected a list of texts, not {value!r}")
        for item in value:
            if allowed and item not in allowed:
                raise self.wrong(key, f"'{item}' is unknown: expected {', '.join(allowed)}")
        return tuple(value)

    def table(self, key: str) -> "Table":
        """A table in it."""
        where = f"{self.where}.{key}" if self.where else key
        return Table(self.file, where, self.take(key, {}))

    def end(self) -> None:
        """Nothing may be left."""
        for key in self.values:
            near = difflib.get_close_matches(key, self.asked, 1)
            raise self.wrong(key, f"is unknown: did you mean '{near[0]}'?" if near else f"is unknown: expected one of {', '.join(self.asked)}")


def _named(parent: Table, key: str) -> dict[str, Table]:
    tables = parent.table(key)
    if not tables.values:
        raise PlanError(f"{parent.file}: {key}: there is none: expected a table such as [{key}.NAME]")
    for name in tables.values:
        if not NAME.fullmatch(name):
            raise tables.wrong(name, "a name has letters, digits and . _ + - only, at most 40 of them")
    return {name: tables.table(name) for name in list(tables.values)}


def _figure(table: Table) -> Figure:
    value = table.values.get("figure", "elapsed")
    if isinstance(value, dict):
        own = table.table("figure")
        pattern = own.text("pattern", None)
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise own.wrong("pattern", f"is no regular expression: {error}") from error
        if groups != 1:
            raise own.wrong("pattern", f"expected one group for the figure, as in 'took ([0-9.]+) s', not {groups}")
        figure = Figure("pattern", own.text("unit", ""), own.choice("better", ("less", "more"), "less"), pattern)
        own.end()
        return figure
    value = table.text("figure", "elapsed")
    if value not in ("elapsed", "cpu"):
        raise table.wrong("figure", f"'{value}' is unknown: expected elapsed, cpu, or a pattern to look for in the output: "
                                    "{ pattern = 'took ([0-9.]+) s', unit = 's' }")
    return Figure(value)


def _test(name: str, table: Table, limit: float) -> Test:
    caches = table.words("cache", CACHES, ("hot",))
    if not caches or len(set(caches)) != len(caches):
        raise table.wrong("cache", "expected hot, cold or both")
    limit = table.number("time-limit", limit, 0.1, 1e6)
    scale = table.whole("scale", 1, 1, 10000)
    if "use" in table.values:
        kind = KINDS[table.choice("use", KINDS, "")]
        figure = _figure(table) if "figure" in table.values else kind.figure
        test = Test(name, kind.command, kind.prepare, figure, caches, limit, scale, kind.needs)
    else:
        if "command" not in table.values:
            raise table.wrong("command", f"is missing: expected a command, or use = one of {', '.join(KINDS)}")
        test = Test(name, table.text("command", None), table.text("prepare"), _figure(table), caches, limit, scale, {})
        if not test.command.strip():
            raise table.wrong("command", "is empty")
    table.end()
    return test


def _configuration(name: str, table: Table) -> Configuration:
    default = Configuration(name)
    options = table.text("tracer-options")
    try:
        words = tuple(shlex.split(options))
    except ValueError as error:
        raise table.wrong("tracer-options", f"are no words of a shell: {error}") from error
    where = table.choice("where", PLACES, "machine")
    made = Configuration(
        name, table.text("kernel"), table.text("boot-entry"), where,
        table.choice("tracer", TRACERS, "none"), words, table.text("cpus"), table.text("directory", default.directory),
        table.whole("vcpus", 1, 1, 512), table.size("memory", default.memory), table.text("disk", "memory" if where == "xen-guest" else default.disk),
        table.size("disk-size", default.disk_size), table.text("guest-kernel"), table.text("guest-append"), table.text("guest-cpu", "host"),
        table.choice("guest-type", ("pv", "pvh", "hvm"), default.guest_type), table.text("guest-config"), table.words("programs"))
    if made.cpus and not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", made.cpus):
        raise table.wrong("cpus", f"expected a list such as 0-3,8, not '{made.cpus}'")
    if made.boot_entry and not made.kernel:
        raise table.wrong("boot-entry", "needs the kernel that it boots (key kernel), to know whether it came up")
    for key, places in GUEST_KEYS.items():
        given = getattr(made, key.replace("-", "_")) != getattr(default, key.replace("-", "_"))
        if given and made.where not in places:
            raise table.wrong(key, f"is for where = {' or '.join(places)}, and this is {made.where}")
    if made.in_guest and made.memory < 64 << 20:
        raise table.wrong("memory", "no guest boots with less than 64M")
    if words and made.tracer == "none":
        raise table.wrong("tracer-options", "there is no tracer")
    table.end()
    return made


def _settle(table: Table) -> Settle:
    settle = Settle(table.number("seconds", Settle.seconds, 0, 3600), table.number("busy", Settle.busy, 0, 100),
                    table.number("limit", Settle.limit, 0, 36000))
    table.end()
    return settle


def parse(text: str, file: str) -> Plan:
    """The plan in a text."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{file}: this is no TOML: {error}") from error
    top = Table(file, "", values)
    name = top.text("name", Path(file).stem)
    configurations = {key: _configuration(key, table) for key, table in _named(top, "configuration").items()}
    limit = top.number("time-limit", 600, 0.1, 1e6)
    tests = {key: _test(key, table, limit) for key, table in _named(top, "test").items()}
    first = next(iter(configurations))
    repeats, rounds = top.whole("repeats", 5, 1, 1000), top.whole("rounds", 1, 1, 1000)
    if repeats % rounds:
        raise top.wrong("rounds", f"{repeats} repeats do not divide into {rounds} rounds")
    steps = len(configurations) * sum(len(test.caches) for test in tests.values()) * repeats
    if steps > MOST_STEPS:
        raise top.wrong("repeats", f"this would be {steps} steps, at most {MOST_STEPS} are possible")
    plan = Plan(
        file, text, name, configurations, tests, top.choice("baseline", configurations, first),
        top.whole("seed", 1, 0, 1 << 62), repeats, rounds, top.choice("compare", COMPARISONS, "welch"),
        top.number("confidence", 0.95, 0.5, 0.9999), top.text("governor"), top.words("stop-services"),
        top.size("least-free", 256 << 20),
        {"failure": top.choice("on-failure", AFTER, "go-on"), "wrong-kernel": top.choice("on-wrong-kernel", AFTER, "go-on"),
         "interruption": top.choice("on-interruption", AFTER, "again")}, _settle(top.table("settle")))
    top.end()
    return plan


def load(path: Path) -> Plan:
    """The plan in a file."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: is no text in UTF-8, at byte {error.start}") from error
