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
SHOR_ORDER = ("quantum_toffoli", "quantum_sigma_x", "quantum_cnot")
RATES = (100, 1000, 4000)


def shor_rows(counts: dict[str, int]) -> list[Row]:
    """Of the samples of each function of the program."""
    total = sum(counts.values())
    if not total:
        raise LabError("there are no samples of the program 'shor' in the guest")
    shares = {name: 100 * sum(count for function, count in counts.items() if function.split(".")[0] == name) / total
              for name in SHOR_ORDER}
    hottest = sorted(shares, key=lambda name: -shares[name])
    others = max([100 * count / total for function, count in counts.items() if function.split(".")[0] not in shares], default=0)
    return [Row("quantum_toffoli, % of the program's samples", "more than 50", f"{shares['quantum_toffoli']:.1f}",
                shares["quantum_toffoli"] > 50),
            Row("the hottest, in order", ", ".join(SHOR_ORDER),
                ", ".join(f"{name} {shares[name]:.1f}" for name in hottest), tuple(hottest) == SHOR_ORDER),
            Row("no other function is hotter than these", "", f"the next has {others:.1f}", others < min(shares.values()))]


def _read_shor(out: Path) -> list[Row]:
    counts: dict[str, int] = {}
    for row in json.loads(vperf("report", str(out / "lab/rec"), "--view", "guest", "--format", "json"))["rows"]:
        if row["process"] == "shor" and row["kind"] == "user":
            counts[row["function"]] = counts.get(row["function"], 0) + row["samples"]
    return shor_rows(counts)


def _run_rates(out: Path) -> None:
    for rate in RATES:  # status 1: vperf costs more than perf, which is not asked here
        text = call(str(REPO / "bench/overhead"), "-F", str(rate), "--only", "vperf,perf-kvm", "--rounds", "1", "--iterations", "3000",
                    "--out", str(out / f"rate-{rate}"), fine=(0, 1))
        (out / f"rate-{rate}.txt").write_text(text, encoding="utf-8")


def rate_rows(printed: dict[int, str]) -> list[Row]:
    """Of what bench/overhead printed, by rate."""
    found = {}
    for rate, text in printed.items():
        match = {tool: re.search(rf"^{tool}.*? {{2,}}\s*(-?\d+) +(-?[\d.]+) ", text, re.MULTILINE) for tool in ("vperf record", "perf kvm")}
        if not all(match.values()):
            raise LabError(f"bench/overhead printed no figures for {rate} Hz: {text[-300:]}")
        found[rate] = {tool: float(hit[2]) for tool, hit in match.items() if hit}
    ours = [found[rate]["vperf record"] for rate in found]
    each = [percent / rate for rate, percent in zip(found, ours)]
    return [Row(f"% that the guest's work takes longer, samples at {', '.join(map(str, found))} Hz",
                NOT_AT_HAND + "it grows with the rate (figure 16)", ", ".join(f"{percent:.3f}" for percent in ours),
                all(low < high for low, high in zip(ours, ours[1:]))),
            Row("cost of a sample at the least and the most of these rates, % at 1000 Hz", NOT_AT_HAND + "in proportion to the rate",
                f"{1000 * min(each):.3f} to {1000 * max(each):.3f}", max(each) < 2 * min(each)),
            Row("the same under perf kvm record", "-", ", ".join(f"{entry['perf kvm']:.3f}" for entry in found.values()), None)]


NAMES = {
    "profile-shor": Reproduction(
        "the hot functions of libquantum's Shor in a guest, seen from the host", SOURCE,
        "libquantum of Debian, linked statically, on an emulated host that counts instructions", lambda out: run_lab(SHOR, out), _read_shor),
    "profile-overhead": Reproduction(
        "what sampling from the host costs a guest, by its rate", SOURCE + ", figure 16",
        "two functions that compute, on an emulated host that counts instructions; cpu-clock for hardware counters", _run_rates,
        lambda out: rate_rows({rate: (out / f"rate-{rate}.txt").read_text(encoding="utf-8") for rate in RATES}))}
