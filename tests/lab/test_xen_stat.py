# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims about 'vperf stat' in dom0: see docs/method-xen-intervals.md."""
import collections
import json
import re

from lab import REPOSITORY
from test_stat import check_chain, rows_of, stat, total
from test_xen import named_by_domain, of_trixie

CLASSES = ("interrupt", "page-fault", "mmio", "io", "msr", "halt", "hypercall", "cpuid", "pause", "window", "other")
RECIPE = "\n".join(("interval time 10ms", "per vcpu", "count " + " ".join(f"exits:{name}" for name in CLASSES),
                    "count " + " ".join(f"time:exits:{name}" for name in CLASSES),
                    "count exits entries time time:running time:waiting time:blocked time:guest time:exits",
                    "count sched:in sched:out sched:preempted wakeups inject:interrupt inject:page-fault guest:page-faults"))
WIDTH = 10000000  # ns
CPUIDS, PORTS, PAGES = 8000, 400, 2000
STAT, RECIPES = "vperf stat -q", REPOSITORY / "recipes"
# Two guests with exits of known numbers, and one that has none, next to dom0; Xen's own statistics meanwhile.
SCENARIO = f"""
host hypervisor=xen pcpus=1 icount=yes memory=4096
guest pv memory=192 type=pv
guest pvh memory=192 type=pvh
guest hvm memory=192 type=hvm
command-before printf '%s' '{RECIPE}' >/tmp/all.recipe
command {STAT} -r /tmp/all.recipe -o /run/all -- sh -c '{REPOSITORY}/tests/lab/xen-cpu-time 1 >/out/books.json & \
lab-guest run pv exits --pages {PAGES} & lab-guest run pvh exits --cpuid {CPUIDS} & \
lab-guest run hvm exits --cpuid {CPUIDS} --out {PORTS} & wait' && cp -r /run/all /out
command {STAT} -r {RECIPES}/exits.recipe --vm pvh -o /run/exits -- lab-guest run pvh exits --cpuid {CPUIDS} && cp -r /run/exits /out
command {STAT} -r {RECIPES}/software.recipe -d 1 -o /run/software && cp -r /run/software /out
command {STAT} -e exits,exits:hypercall,exits:page-fault,time:exits -I 10 --per vcpu --paravirtual --vm pv -o /run/pv -- \
lab-guest run pv exits --pages {PAGES} && cp -r /run/pv /out
command {STAT} -r {RECIPES}/cpi.recipe -d 1 -o /out/no; echo "status $?"; vperf record --stat {RECIPES}/exits.recipe -d 1 -o /out/no; echo "status $?"; ls /out/no || true
""".replace("\\\n", "").replace(RECIPE, RECIPE.replace("\n", "\\n")).replace("'%s' ", "")


def value(row, event):
    return row["events"][event]["counted"]


def sums_of(claims, report, kinds):
    """In each interval the parts are the whole: of the time, of the time on a pCPU, of the exits."""
    wrong = collections.Counter()
    for row in report["intervals"]:
        parts = [value(row, f"time:{state}") for state in ("running", "waiting", "blocked")]
        wrong["length"] += value(row, "time") != row["end"] - row["begin"]
        wrong["time"] += sum(parts) != value(row, "time")
        if row["subject"].partition("/")[0] in kinds:
            wrong["running"] += value(row, "time:guest") + value(row, "time:exits") != parts[0]
            wrong["classes"] += sum(value(row, f"exits:{name}") for name in CLASSES) != value(row, "exits")
            wrong["times"] += sum(value(row, f"time:exits:{name}") for name in CLASSES) != value(row, "time:exits")
            wrong["dead"] += any(cell["live"] < 1 for event, cell in row["events"].items() if not event.startswith("guest:"))
    claims.check(not sum(wrong.values()), f"{len(report['intervals'])} intervals, parts that do not sum: {dict(wrong)}")


def borders_of(claims, report):
    """Intervals end at multiples of the width after the start: to the nanosecond."""
    origin = min(row["begin"] for row in report["intervals"])
    off = [row for row in report["intervals"] if not row["partial"] and (row["end"] - origin) % WIDTH]
    whole = sum(row["end"] - row["begin"] == WIDTH for row in report["intervals"])
    claims.check(not off and whole > 50, f"{whole} intervals of {WIDTH} ns; {len(off)} do not end at a border {off[:1]}")


def against_the_books(run, claims, report):
    """Time on a pCPU, and Xen's own CPU time between two looks: intervals within and around."""
    names = named_by_domain(run, "all")
    first, last = json.loads((run.out / "books.json").read_text())
    later = {(look[2], look[3]): look for look in last}
    for begin, begun, domain, vcpu, before in first:
        look = later[domain, vcpu]
        rows = rows_of(report, f"{names[domain]}/{vcpu}")
        inside = sum(value(row, "time:running") for row in rows if row["begin"] >= begun and row["end"] <= look[0])
        around = sum(value(row, "time:running") for row in rows if row["end"] > begin and row["begin"] < look[1])
        # Xen's statistics have the switch to a vCPU, some 0.4 us each (docs/evidence/xen.md), and the trace does not.
        slack = 20000 + 0.0005 * (look[4] - before) + 500 * total(rows, "sched:in")
        claims.check(inside - slack <= look[4] - before <= around + slack,
                     f"{names[domain]}: {look[4] - before} ns by Xen's statistics, intervals have {inside} to {around}")


def known_work(claims, report):
    """Counts are those of the programs, and a few of the kernel's own."""
    for kind, counts in {"pvh": {"cpuid": CPUIDS}, "hvm": {"cpuid": CPUIDS, "io": PORTS}}.items():
        rows = rows_of(report, f"{kind}/")
        for name, count in counts.items():
            found = total(rows, f"exits:{name}")
            claims.check(count <= found <= 1.02 * count + 60, f"{kind}: exits:{name}: {found} counted, {count} were done")
        claims.check(min(total(rows, event) for event in ("inject:interrupt", "exits:interrupt")) > 0,
                     f"{kind}: {total(rows, 'exits:interrupt')} exits for interrupts, {total(rows, 'inject:interrupt')} are injected")
        least = {name: min((value(row, f"time:exits:{name}") for row in rows if value(row, f"exits:{name}")), default=0) for name in counts}
        claims.check(all(least.values()), f"{kind}: exits take time: {least} ns at least in an interval")


def missing_of(claims, report):
    """Events that Xen's trace does not have are missing, and never 0."""
    live = {event: {row["events"][event]["live"] for row in rows_of(report, "pv/")} for event in report["intervals"][0]["events"]}
    none = {event for event, found in live.items() if found == {0}}
    always = {event for event, found in live.items() if found == {1}}
    claims.check(none == {event for event in live if re.match("exits|entries|inject|guest:|time:(guest|exits)", event)} and none | always == set(live),
                 f"of a PV domain there are {sorted(always)}, and never {sorted(none)}")


def intervals(run, claims):
    report = stat(run, "all")
    check_chain(claims, report, "by time")
    subjects = {row["subject"] for row in report["intervals"]}
    claims.check({"Domain-0/0", "pv/0", "pvh/0", "hvm/0"} <= subjects, f"subjects: {sorted(subjects)}")
    sums_of(claims, report, ("pvh", "hvm"))
    borders_of(claims, report)
    against_the_books(run, claims, report)
    known_work(claims, report)
    missing_of(claims, report)


def recipes(run, claims):
    report = stat(run, "exits")
    check_chain(claims, report, "recipe exits")
    whole = [row for row in report["intervals"] if not row["partial"]]
    wrong = [row for row in whole if sum(value(row, f"exits:{name}") for name in CLASSES if f"exits:{name}" in row["events"]) > 1000]
    claims.check(len(whole) >= CPUIDS // 1000 and not wrong and {row["subject"] for row in whole} == {"pvh/0"},
                 f"recipe exits: {len(whole)} whole intervals of 1000 exits, of {len({row['subject'] for row in whole})} vCPU")
    found = total(report["intervals"], "exits:cpuid")
    claims.check(CPUIDS <= found <= 1.02 * CPUIDS + 60, f"recipe exits: {found} CPUIDs of {CPUIDS}")
    report = stat(run, "software")
    check_chain(claims, report, "recipe software")
    claims.check(total(rows_of(report, "pvh/"), "exits") > 20 and "guest:page-faults" in run.command_output(4, "err"),
                 f"recipe software: what is missing is told: {run.command_output(3, 'err')}")
    report = stat(run, "pv")
    counts = {event: total(report["intervals"], event) for event in ("exits", "exits:hypercall", "exits:page-fault")}
    claims.check(counts["exits:page-fault"] + counts["exits:hypercall"] > PAGES and counts["exits"] >= sum(counts.values()) - counts["exits"] and
                 all(row["events"]["time:exits"]["live"] == 0 for row in report["intervals"]), f"--paravirtual: {PAGES} new pages: {counts}")
    out, err = run.command_output(6), run.command_output(6, "err")
    claims.check(out.count("status 1") == 2 and "are not available on Xen" in err and "has one reader" in err, f"refused: {out} {err}")


def stats(run, claims):
    intervals(run, claims)
    recipes(run, claims)


TESTS = []
FULL = [("Xen: intervals", SCENARIO, stats), ("Xen of trixie: intervals", of_trixie(SCENARIO), stats)]
QUICK = ()
