"""Unified profiling: hot functions of a guest, and what profiling costs by its rate."""

import json
import re
from pathlib import Path

from .common import REPO, LabError
from .reproduction import NOT_AT_HAND, Reproduction, Row, call, run_lab, vperf

SOURCE = "Yamamoto, Ono, Nakashima, Hirai 2016, unified performance profiling"
# Recorded once its registers are prepared, as when the published profile was taken of its whole run.
SHOR = """host pcpus=1 icount=yes
guest g1 vcpus=1 memory=320 agent=yes
workload g1 shor 1397 8
command lab-guest busy g1 40
command vperf record --no-guest-memory -o /out/rec -- lab-guest busy g1 15
"""
# Two guests that want the same pCPU, with functions of known shares.
SHARES = {"g1": (80, 20), "g2": (60, 40)}
GUESTS = """host pcpus=1 icount=yes
guest g1 vcpus=1 memory=256 agent=yes
guest g2 vcpus=1 memory=256 agent=yes
workload g1 shares a=80 b=20
workload g2 shares a=60 b=40
command lab-guest busy g1 1
command vperf record -o /out/rec -- sleep 12
"""
CLOSE = 2.0  # points of 100
# The same work in a guest, in turns: alone, sampled from the host, and sampled in the guest, whose timer KVM then injects at each sample.
# The first run warms up.
WORK = "shares a=80 b=20 --iterations 4000"
TURNS = 5
INJECTED = f"""host pcpus=1 icount=yes memory=3072
guest g1 vcpus=1 memory=512 truth=no
file g1 /usr/bin/perf /bin/perf
command lab-guest run g1 {WORK}
""" + TURNS * f"""command lab-guest run g1 {WORK}
command vperf record -q --no-agent --no-account --no-guest-memory -F 400 -o /run/rec -- lab-guest run g1 {WORK}; rm -r /run/rec
command lab-guest run g1 perf record -q -e cpu-clock -F 400 -a -o /perf.data {WORK}
"""
SHOR_ORDER = ("quantum_toffoli", "quantum_sigma_x", "quantum_cnot")
# Figure 16: percent that the work takes longer, by samples in a second.
PUBLISHED_RATES = {400: 0.133, 1000: 0.302, 10000: 3.084}
PUBLISHED_INJECTED = 0.441  # at 400 Hz, with interrupts delegated into the guest
PROPORTIONAL = 10.0  # percent by which the cost of a sample may differ between rates


def shor_rows(counts: dict[str, int]) -> list[Row]:
    """Rows from the samples of each function of the program."""
    total = sum(counts.values())
    if not total:
        raise LabError("there are no samples of the program 'shor' in the guest")
    shares = {name: 100 * sum(count for function, count in counts.items() if function.split(".")[0] == name) / total
              for name in SHOR_ORDER}
    hottest = sorted(shares, key=lambda name: -shares[name])
    others = max([100 * count / total for function, count in counts.items() if function.split(".")[0] not in shares], default=0)
    return [Row("quantum_toffoli, % of the program's samples", "more than 50", f"{shares['quantum_toffoli']:.1f}",
                shares["quantum_toffoli"] > 50, bound="more than 50"),
            Row("the hottest, in order", ", ".join(SHOR_ORDER),
                ", ".join(f"{name} {shares[name]:.1f}" for name in hottest), tuple(hottest) == SHOR_ORDER, bound="this order"),
            Row("no other function is hotter than these", "", f"the next has {others:.1f}", others < min(shares.values()), bound="less than each of these")]


def _read_shor(out: Path) -> list[Row]:
    counts: dict[str, int] = {}
    for row in json.loads(vperf("report", str(out / "lab/rec"), "--view", "guest", "--format", "json"))["rows"]:
        if row["process"] == "shor" and row["kind"] == "user":
            counts[row["function"]] = counts.get(row["function"], 0) + row["samples"]
    return shor_rows(counts)


def guest_rows(counts: dict[str, dict[str, int]], unnamed: dict[str, float], stolen: dict[str, tuple[float, str]]) -> list[Row]:
    """Rows from each guest's samples by function, share of unresolved samples in %, and steal in % by thief."""
    rows = []
    for guest, wanted in SHARES.items():
        total = sum(counts[guest].values())
        if not total:
            raise LabError(f"there are no samples of the program 'shares' in {guest}")
        found = [100 * counts[guest].get(name, 0) / total for name in ("share_a", "share_b")]
        rows.append(Row(f"{guest}: its two functions, % of the program's samples; known to be {wanted[0]} and {wanted[1]}",
                        NOT_AT_HAND + "accurate for all guests, sampled from the host alone (its abstract)",
                        ", ".join(f"{share:.1f}" for share in found), all(abs(a - b) < CLOSE for a, b in zip(found, wanted)),
                        bound=f"within {CLOSE:.0f} points"))
        share, thief = stolen[guest]
        other = next(name for name in SHARES if name != guest)
        rows.append(Row(f"{guest}: % of its time in which it had to wait, and for whom", NOT_AT_HAND + "on the host's time axis",
                        f"{share:.1f}, {thief}", abs(share - 50) < 5 and other in thief, bound=f"50 within 5, for {other}"))
    return rows + [Row("samples of guests without a function, %", "-", ", ".join(f"{guest} {share:.2f}" for guest, share in unnamed.items()), None)]


def unnamed_share(rows: list[dict]) -> float:
    """Share of unresolved samples of user space and kernel, in %, from the rows of view guest."""
    code = [row for row in rows if row["kind"] in ("kernel", "user")]
    without = sum(row["samples"] for row in code if not row["function"] or row["function"].startswith("0x"))
    return 100 * without / max(sum(row["samples"] for row in code), 1)


def _read_guests(out: Path) -> list[Row]:
    recording, counts, unnamed, stolen = str(out / "lab/rec"), {}, {}, {}
    for guest in SHARES:
        counts[guest] = {}
        rows = json.loads(vperf("report", recording, "--view", "guest", "--vm", guest, "--format", "json"))["rows"]
        for row in rows:
            if row["process"] == "shares" and row["kind"] == "user":
                counts[guest][row["function"]] = counts[guest].get(row["function"], 0) + row["samples"]
        unnamed[guest] = unnamed_share(rows)
        wall = sum(row["wall_ns"] for row in json.loads(vperf("account", recording, "--vm", guest, "--json"))["vcpus"])
        thieves = sorted(json.loads(vperf("steal", recording, "--vm", guest, "--json"))["thieves"], key=lambda row: -row["ns"])
        stolen[guest] = (100 * sum(row["ns"] for row in thieves) / wall, thieves[0]["thief"] if thieves else "nobody")
    return guest_rows(counts, unnamed, stolen)


def injected_rows(seconds: list[float]) -> list[Row]:
    """Rows made of the times of the work: to warm up, then in turns alone, sampled from the host, sampled in the guest. The shortest of
    each counts, as other work on the host only adds."""
    if len(seconds) != 1 + 3 * TURNS:
        raise LabError(f"the guest's program said {len(seconds)} times how long it took, not {1 + 3 * TURNS} times")
    alone, *sampled = (min(seconds[1 + way::3]) for way in range(3))
    host, guest = (100 * (took / alone - 1) for took in sampled)
    what = "% that a guest's work takes longer, sampled at 400 Hz"
    return [Row(f"{what} from the host alone", f"{PUBLISHED_RATES[400]:.3f}", f"{host:.3f}", None, numbers=(PUBLISHED_RATES[400], host)),
            Row(f"{what} with interrupts injected into the guest (an earlier study)", f"{PUBLISHED_INJECTED:.3f}", f"{guest:.3f}", None,
                numbers=(PUBLISHED_INJECTED, guest)),
            Row("the first of the second", f"{PUBLISHED_RATES[400] / PUBLISHED_INJECTED:.2f} times", f"{host / guest:.2f} times",
                0 < host / guest <= PUBLISHED_RATES[400] / PUBLISHED_INJECTED, numbers=(PUBLISHED_RATES[400] / PUBLISHED_INJECTED, host / guest),
                bound="at most the published one")]


def _read_injected(out: Path) -> list[Row]:
    log = (out / "lab/guest-g1/workloads.log").read_text(encoding="utf-8")
    return injected_rows([float(word) for word in re.findall(r"elapsed_s=([0-9.]+)", log)])


def _run_rates(out: Path) -> None:
    for rate in PUBLISHED_RATES:  # status 1: vperf costs more than perf, which is not asked here
        text = call(str(REPO / "bench/overhead"), "--nmi", "-F", str(rate), "--only", "vperf,perf-kvm", "--rounds", "1", "--iterations", "8000",
                    "--out", str(out / f"rate-{rate}"), fine=(0, 1))
        (out / f"rate-{rate}.txt").write_text(text, encoding="utf-8")


def rate_rows(printed: dict[int, str]) -> list[Row]:
    """Rows from the output of bench/overhead, by rate."""
    rows, each = [], []
    for rate, text in printed.items():
        match = {tool: re.search(rf"^{tool}.*? {{2,}}\s*(-?\d+) +(-?[\d.]+) ", text, re.MULTILINE) for tool in ("vperf record", "perf kvm")}
        if not all(match.values()):
            raise LabError(f"bench/overhead printed no figures for {rate} Hz: {text[-300:]}")
        ours, peer = (float(hit[2]) for hit in match.values() if hit)
        published = PUBLISHED_RATES[rate]
        rows.append(Row(f"% that the guest's work takes longer, sampled every {1000 / rate:g} ms", f"{published:.3f}",
                        f"{ours:.3f}; perf kvm record {peer:.3f}", None, numbers=(published, ours)))
        each.append(ours / rate)
    published_each = [percent / rate for rate, percent in PUBLISHED_RATES.items()]
    differ, published_differ = (100 * (max(costs) / max(min(costs), 1e-9) - 1) for costs in (each, published_each))
    return rows + [Row("% that the cost of one sample differs between the rates: the cost is in proportion to them", f"{published_differ:.0f}",
                       f"{differ:.1f}", differ <= PROPORTIONAL, numbers=(published_differ, differ), bound=f"at most {PROPORTIONAL:.0f}")]


NAMES = {
    "profile-shor": Reproduction(
        "the hot functions of libquantum's Shor in a guest, seen from the host", SOURCE,
        "libquantum of Debian, linked statically, on an emulated host that counts instructions", lambda out: run_lab(SHOR, out), _read_shor),
    "profile-guests": Reproduction(
        "two guests at once: functions of each, and who waits for whom", SOURCE + ", tables 3 to 16",
        "programs whose functions have known shares for the published ones, on one pCPU of an emulated host", lambda out: run_lab(GUESTS, out),
        _read_guests),
    "profile-injection": Reproduction(
        "sampling from the host against sampling in the guest", SOURCE + ", figure 16a",
        "perf record in the guest for the earlier study, which injected the PMU's interrupts: here KVM injects the timer's", lambda out: run_lab(INJECTED, out),
        _read_injected),
    "profile-overhead": Reproduction(
        "the cost of sampling from the host for a guest, by rate", SOURCE + ", figure 16",
        "the published workload, two functions of 80 and 20%, sampled by NMIs as published, on an emulated host that counts instructions", _run_rates,
        lambda out: rate_rows({rate: (out / f"rate-{rate}.txt").read_text(encoding="utf-8") for rate in PUBLISHED_RATES}))}
