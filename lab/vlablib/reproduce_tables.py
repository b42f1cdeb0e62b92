"""Tables 3 to 15 of the unified profile: views of hosts and guests, with a program of known shares for libquantum."""

import json
from dataclasses import dataclass
from pathlib import Path

from .common import LabError
from .reproduction import Reproduction, Row, run_lab, vperf

SOURCE = "Yamamoto, Ono, Nakashima, Hirai 2015, unified performance profiling"
# The shares of table 3, so that each view has a known answer.
FUNCTIONS = {"share_a": ("toffoli", 61.06), "share_b": ("sigma_x", 19.49), "share_c": ("cnot", 15.45), "share_d": ("the rest", 4.0)}
WORK = "shares " + " ".join(f"{name.replace(' ', '-')}={share}" for name, share in FUNCTIONS.values())
ONE, TWO, GUEST = "host pcpus=1 icount=yes\n", "host pcpus=2 icount=yes\n", "guest {} vcpus={} memory=256 agent=yes\n"
RECORD = "command vperf record -q -o /out/rec -- sleep {}\n"
POINT, CONSISTENT = 1.0, 0.1  # points of 100
OUTSIDE = "stolen by the host: its kernel is 2.6.32 with qemu-kvm 0.12, and 18% of that time followed accesses to the APIC"

TABLE_13 = (30.61, 30.49, 31.41)  # of guests 1, 2, 3

TURNS = "with two emulated pCPUs, one's turns count as time of the other's interrupts"


@dataclass(frozen=True)
class View:
    """A view: shares of its samples, in %."""

    shares: dict[str, float]  # kernel, user, idle, steal, vm
    functions: dict[tuple[str, str], float]  # of (process and pid, function): of the guest's programs, or the host's
    stolen: dict[str, float]  # by whom
    vms: dict[str, float]  # of the host's view
    samples: int


def view_of(report: dict) -> View:
    """The view in the output of 'vperf report --json'."""
    functions: dict[tuple[str, str], float] = {}
    stolen: dict[str, float] = {}
    vms: dict[str, float] = {}
    for row in report["rows"]:
        if row["kind"] == "steal":
            whose = row["function"].removeprefix("[steal] (").removesuffix(")")
            stolen[whose] = stolen.get(whose, 0) + row["percent"]
        elif row["kind"] == "vm":
            vms[row["vm"]] = vms.get(row["vm"], 0) + row["percent"]
        elif row["process"] == "shares" and row["kind"] == "user":
            key = str(row["pid"]), row["function"]
            functions[key] = functions.get(key, 0) + row["percent"]
    if not report["samples"]:
        raise LabError("the recording has no samples")
    return View(report["shares"], functions, stolen, vms, report["samples"])


def guest(out: Path, vm: str, *options: str) -> View:
    """A guest's own view."""
    return view_of(json.loads(vperf("report", str(out / "lab/rec"), "--view", "guest", "--vm", vm, "--per-process", "--json", *options)))


def host(out: Path) -> View:
    """The host's view."""
    return view_of(json.loads(vperf("report", str(out / "lab/rec"), "--view", "host", "--per-process", "--json")))


def chance(share: float, samples: float) -> float:
    """Three standard deviations, in percentage points, of a share measured with this number of samples."""
    return 3 * (share * (100 - share) / max(samples, 1)) ** 0.5


def near(what: str, published: float | None, ours: float, expected: float, bound: float = POINT) -> Row:
    """A share that arithmetic or the program's own shares decide."""
    return Row(f"{what}, %", f"{published:.2f}" if published is not None else "", f"{ours:.2f}", abs(ours - expected) <= bound,
               numbers=(published, ours) if published is not None else None, bound=f"{expected:.2f} within {bound:.1f}")


def functions_rows(where: str, view: View, published: tuple[float, float, float], processes: int = 1) -> list[Row]:
    """Each process's functions: their order, and their shares of its samples."""
    pids = sorted({pid for pid, _ in view.functions})
    rows = [Row(f"{where}: processes of the program", str(processes), str(len(pids)), len(pids) == processes, numbers=(processes, len(pids)), bound=str(processes))]
    for number, pid in enumerate(pids, 1):
        whose = f"{where}, process {number}" if processes > 1 else where
        mine = {function: share for (of, function), share in view.functions.items() if of == pid}
        total = sum(mine.values())
        shares = {name: 100 * mine.get(function, 0) / total for function, (name, _) in FUNCTIONS.items()}
        order = sorted(("toffoli", "sigma_x", "cnot"), key=lambda name: -shares[name])
        rows.append(Row(f"{whose}: order of the program's functions", "toffoli, sigma_x, cnot: {}, {}, {}% of all samples".format(*published),
                        ", ".join(f"{name} {shares[name]:.2f}" for name in order),
                        order == ["toffoli", "sigma_x", "cnot"] and shares["cnot"] > 0, bound="this order"))
        rows += [near(f"{whose}: {name} of the program's samples", None, shares[name], known, chance(known, view.samples * total / 100))
                 for name, known in FUNCTIONS.values()]
    return rows


def outside_row(where: str, published: float, view: View, why: str = f"published was {OUTSIDE}") -> Row:
    """Row of the vCPU's steal by the host itself."""
    return Row(f"{where}: stolen by the host itself, %", f"{published:.2f}", f"{view.stolen.get('host', 0):.2f}", None, why,
               (published, view.stolen.get("host", 0)))


def left(view: View) -> float:
    """Share of the vCPU without steal by the host itself, in %."""
    return 100 - view.stolen.get("host", 0)


def same(what: str, published: str, one: float, other: float) -> Row:
    """Two views of the same samples."""
    pairs = [(float(value), ours) for value, ours in zip(published.split("; "), (one, other)) if value]
    return Row(what, published, f"{one:.2f}, {other:.2f}", abs(one - other) <= CONSISTENT, numbers=pairs[0] if pairs else None,
               more=tuple(pairs[1:]), bound=f"equal within {CONSISTENT}")


def _one_vm(out: Path) -> list[Row]:
    inside, outside = guest(out, "g1"), host(out)
    return [*functions_rows("guest's view", inside, (56.62, 22.51, 11.10)), outside_row("guest's view", 5.04, inside),
            same("host's view: % of guest 1; guest's view: % that is not stolen", "94.95; 94.96", outside.vms["g1"], 100 - inside.shares["steal"])]


def _two_processes(out: Path) -> list[Row]:
    inside = guest(out, "g1")
    shares = [sum(share for (of, _), share in inside.functions.items() if of == pid) for pid in sorted({pid for pid, _ in inside.functions})]
    return [*functions_rows("guest's view", inside, (27.0, 12.2, 5.8), 2), outside_row("guest's view", 4.98, inside),
            Row("guest's view: % of each process", "nearly equal", ", ".join(f"{share:.2f}" for share in shares), max(shares) - min(shares) <= 2 * POINT,
                bound=f"equal within {2 * POINT:g}")]


def _shared_pcpu(out: Path) -> list[Row]:
    rows = []
    for vcpu, published in (("0", (49.98, 2.50)), ("1", (50.02, 2.70))):
        view = guest(out, "g1", "--vcpu", vcpu)
        other = sum(share for who, share in view.stolen.items() if who != "host")
        rows += [near(f"vCPU {vcpu}: stolen by the other vCPU, half of what the host leaves", published[0], other, left(view) / 2), outside_row(f"vCPU {vcpu}", published[1], view)]
    return rows


def _two_pcpus(out: Path) -> list[Row]:
    rows = []
    for vcpu, published in (("0", 5.23), ("1", 2.59)):
        view = guest(out, "g1", "--vcpu", vcpu)
        other = sum(share for who, share in view.stolen.items() if who != "host")
        rows += [near(f"vCPU {vcpu}: stolen by the other vCPU", 0, other, 0), outside_row(f"vCPU {vcpu}", published, view, TURNS)]
    return rows


def _three_vms(out: Path) -> list[Row]:
    inside, outside = guest(out, "g1"), host(out)
    vms = [outside.vms[vm] for vm in ("g1", "g2", "g3")]
    others = sum(share for who, share in inside.stolen.items() if who != "host")
    return [near("guest 1's view: stolen by the other two VMs, two thirds of what the host leaves", 61.90, others, left(inside) * 2 / 3),
            outside_row("guest 1's view", 69.39 - 61.90, inside),
            same("guest 1's view: % stolen; host's view: % of all but guest 1", "69.39; 69.39", inside.shares["steal"], 100 - outside.vms["g1"]),
            Row("host's view: % of each VM", ", ".join(f"{share:.2f}" for share in TABLE_13), ", ".join(f"{share:.2f}" for share in vms),
                max(vms) - min(vms) <= 2 * POINT, numbers=(TABLE_13[0], vms[0]), more=tuple(zip(TABLE_13[1:], vms[1:])),
                bound=f"equal within {2 * POINT:g}"), *functions_rows("guest 1's view", inside, (17.19, 7.62, 3.87))]


def _idle(out: Path) -> list[Row]:
    inside, outside = guest(out, "g1"), host(out)
    busy = inside.shares["kernel"] + inside.shares["user"]
    return [near("guest's view: idle, of a third busy", 67.40, inside.shares["idle"], 200 / 3, 2),
            same("guest's view: % not idle and not stolen; host's view: % of guest 1", "30.96; 30.93", busy, outside.vms["g1"]),
            outside_row("guest's view", 1.64, inside)]


def _native(out: Path) -> list[Row]:
    return functions_rows("native", host(out), (61.06, 19.49, 15.45), 2)


def _entry(tables: str, title: str, scenario: str, read) -> Reproduction:
    return Reproduction(title, f"{SOURCE}, {tables}", "a program whose functions have the shares of table 3, on an emulated host that counts instructions",
                        lambda out: run_lab(scenario, out), read)


def _guests(*names: str, vcpus: int = 1) -> str:
    return "".join(GUEST.format(name, vcpus) for name in names)


NAMES = {
    "profile-native": _entry("tables 3, 6", "two processes without a VM, seen from the host",
                             f"{ONE}command {WORK} --seconds 9 & {WORK} --seconds 9 & sleep 1; vperf record -q -o /out/rec -- sleep 6\n", _native),
    "profile-one": _entry("tables 4, 5", "one guest: its own view and the host's", f"{ONE}{_guests('g1')}workload g1 {WORK}\n{RECORD.format(6)}", _one_vm),
    "profile-processes": _entry("table 7", "two processes in one guest",
                                f"{ONE}{_guests('g1')}workload g1 {WORK} --procs 2\n{RECORD.format(8)}", _two_processes),
    "profile-shared-pcpu": _entry("tables 8, 9", "two vCPUs of a guest on one pCPU",
                                  f"{ONE}{_guests('g1', vcpus=2)}workload g1 copies=2 {WORK}\n{RECORD.format(8)}", _shared_pcpu),
    "profile-two-pcpus": _entry("tables 10, 11", "two vCPUs of a guest on a pCPU each",
                                f"{TWO}guest g1 vcpus=2 memory=256 pin=0,1 agent=yes\nworkload g1 copies=2 {WORK}\n{RECORD.format(5)}", _two_pcpus),
    "profile-three-vms": _entry("tables 12, 13", "three guests on one pCPU: one guest's view and the host's",
                                ONE + _guests("g1", "g2", "g3") + "".join(f"workload {vm} {WORK}\n" for vm in ("g1", "g2", "g3")) + RECORD.format(9), _three_vms),
    "profile-idle": _entry("tables 14, 15", "a guest that is busy for a third of the time",
                           f"{ONE}{_guests('g1')}workload g1 start=3 length=3 {WORK}\n{RECORD.format(9)}", _idle)}
