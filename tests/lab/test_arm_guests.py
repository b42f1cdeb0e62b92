# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of 64-bit Arm hosts: switches of their threads, exits by process and function, critical paths, findings."""
import csv
import io
import json
import lzma
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import test_counters
import test_trace
from lab import REPOSITORY, run_scenario, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import kernels  # noqa: E402
from vlablib.arch import ARM64  # noqa: E402

HOST = "host arch=arm64 pcpus=1 icount=yes memory=1280"

# The guest's own count of switches, before, between and after work. The first answer brings its programs into memory.
NOW = 'python3 -c "import time; print(time.monotonic_ns())"'
ASK = f"{NOW}; lab-guest run g1 grep ctxt /proc/stat; {NOW}"
SWITCHES = HOST + f"""
guest g1 vcpus=1 memory=256 truth=no
workload g1 who --procs 1 --threads 2
command vperf record --trace -m 4096 -e cpu-clock --no-agent -o /out/switches --vm g1 -- sh -c '{ASK}; sleep 2; {ASK}; \
lab-guest run g1 pingpong --rounds 3000; {ASK}; lab-guest run g1 forkstorm --count 20 --rate 20; {ASK}'
command vperf record --trace --no-account --no-samples --no-guest-memory --no-agent -o /out/without -d 1
""".replace("\\\n", "")


def switches(run, claims):
    """The guest's count before the recording is the same number, from whichever of its answers it is computed."""
    rows = [(int(row["time_ns"]), int(row["switches"])) for row in test_trace.events_of(run, "switches", "guest_switch")]
    made, least, most = test_trace.Steps(rows), 0, float("inf")
    times = [int(ns) for ns in re.findall(r"^\d+$", run.command_output(1), re.M)][2:]
    lines = [line for lines in test_counters.outputs(run, "g1").values() for line in lines]
    counts = [int(line.split()[1]) for line in lines if line.startswith("ctxt ")][1:]
    claims.check(len(counts) == 3 and len(times) == 6 and counts[1] - counts[0] > 6000, f"3000 round trips, by the guest's own count: {counts}")
    for count, begin, end in zip(counts, times[::2], times[1::2]):
        least, most = max(least, count - made.at(end)), min(most, count - made.at(begin))
    # Each answer has the start and end of a program of the guest's between its times.
    claims.check(least <= most and most - least <= 100,
                 f"switches seen and missed ones from {least} to {most} on are the guest's own count in each of its answers; {made.sums[-1]} in all")
    test_trace.exact_threads(run, claims)
    test_trace.sums_of_periods(run, claims)
    test_trace.without_memory(run, claims)


# A process of the guest reads a device through /dev/mem. Another one shares the vCPU, and a task of the host the pCPU.
EXITS = HOST + """
guest g1 vcpus=1 memory=256 truth=no
workload g1 shares fast=100
command vperf record --account-events -e cpu-clock --no-agent -o /out/rec --vm g1 -- sh -c 'sleep 2; lab-guest run g1 exits --mmio 5000; \
nice -n -15 timeout 2 sh -c "while :; do :; done"; true'
""".replace("\\\n", "")


def exits(run, claims):
    done = int(re.search(r"exits: .*mmio=(\d+)", (run.out / "guest-g1" / "workloads.log").read_text())[1])
    rows = json.loads(vperf("exits", str(run.recording()), "--by", "function", "--vm", "g1", "--format", "json").stdout)["exits"]
    own = sum(row["count"] for row in rows if (row["reason"], row["function"], row["process"]) == ("DABT_LOW", "exits_mmio", "exits"))
    claims.check(own == done == 5000, f"exits_mmio of 'exits' did {own} of {done} reads of a device")
    strange = [row for row in rows if row["function"] == "exits_mmio" and row["process"] != "exits"]
    claims.check(not strange, f"no other process did: {strange}")
    found = json.loads(vperf("diagnose", str(run.recording()), "--format", "json").stdout)["findings"]
    first = found[0] if found else {}
    claims.check(first.get("vm") == "g1" and first.get("id") == "steal-task" and 1.4e9 < first["ns"] < 2.1e9,
                 f"the host's task, which had the pCPU for 2 s, is the first finding: {first}")


# Its kernel's symbol table has functions only, so that the list of modules has no symbol.
MODULES = HOST + """ kernel={host}
guest g1 vcpus=1 memory=256 truth=no {guest}
command lab-guest run g1 grep ] /proc/kallsyms; lab-guest run g1 cat /proc/modules
command vperf record -e cpu-clock --no-agent -o /out/rec --vm g1 -- sleep 3
"""


def listed_modules(run):
    """Modules in the guest's /proc/modules, and functions of modules in its /proc/kallsyms."""
    lines = [line for of in test_counters.outputs(run, "g1").values() for line in of]
    return ({line.split()[0] for line in lines if re.match(r"\S+ \d+ \d+ ", line)},
            {(int(address, 16), name, module) for address, name, module in
             (found for line in lines for found in re.findall(r"^([0-9a-f]{16}) [tTwW] (\S+)\t\[(\S+)\]$", line))})


def modules(run, claims):
    loaded, own = listed_modules(run)
    claims.check(len(loaded) > 3 and loaded <= {module for _, _, module in own}, f"the guest's /proc/kallsyms has functions of its modules: {loaded}")
    words = [line.split(" ") for line in (run.recording() / "guest-g1.maps").read_text().splitlines()]
    found = {(int(line[1], 16), unquote(line[4]), unquote(line[5])) for line in words
             if line[0] == "k" and len(line) == 6 and line[3] in "tTwW" and unquote(line[5]) in loaded}
    claims.check(found == own, f"{len(found & own)} of {len(own)} functions of modules are in the recording, and {len(found - own)} others: "
                 f"{sorted(own ^ found)[:4]}")


# A module that comes while the guest is recorded. It is packed: the lab takes an ELF file for a program.
LATE = HOST + """ kernel={suite}
guest g1 vcpus=1 memory=256 truth=no kernel={suite}
workload g1 shares fast=100
file g1 {packed} /dummy.ko.xz
command vperf record -e cpu-clock --no-agent -o /out/rec --vm g1 -- sh -c 'lab-guest busy g1 3; \
lab-guest run g1 sh -c "busybox unxz -c /dummy.ko.xz >/dummy.ko && busybox insmod /dummy.ko"; lab-guest busy g1 2'
command lab-guest run g1 grep ] /proc/kallsyms; lab-guest run g1 cat /proc/modules
""".replace("\\\n", "")


def run_late(directory, suite):
    packed = Path(f"{directory}.programs") / "dummy.ko.xz"
    packed.parent.mkdir(parents=True, exist_ok=True)
    module, = kernels.module_files(kernels.get(suite, "cloud", arch=ARM64), ("dummy",))
    packed.write_bytes(module.read_bytes() if module.suffix == ".xz" else lzma.compress(module.read_bytes()))
    return run_scenario(LATE.format(suite=suite, packed=packed), directory)


def run_late_bookworm(directory):
    return run_late(directory, "bookworm")


def run_late_trixie(directory):
    return run_late(directory, "trixie")


def late_module(run, claims):
    loaded, own = listed_modules(run)
    claims.check("dummy" in loaded and sum(module == "dummy" for _, _, module in own) > 5, f"the guest has loaded the module: {loaded}")
    modules(run, claims)


# Processes that end, one after the other, after the kernel was found: two programs, then 40 that live for 20 ms each. They are recorded in
# the host's memory: a write to a file of the machine can take longer than they live, and the recorder waits for it.
STORM = 40
LIVES = HOST + """ kernel={host}
guest g1 vcpus=1 memory=256 truth=no {guest}
command nice -n -15 vperf record -e cpu-clock --no-agent -o /run/lives --vm g1 -- sh -c 'lab-guest run g1 jit --seconds 3; \
lab-guest run g1 shares fast=80 slow=20 --seconds 2; lab-guest run g1 calls --seconds 2; \
lab-guest run g1 forkstorm --rate 20 --work-us 20000 --count {count}; lab-guest run g1 sleep 1'
command cp -r /run/lives /out
""".replace("\\\n", "")
OWNERS = {"share_a": "shares", "share_b": "shares", "level_6": "calls", "storm_work": "storm_child"}


def lives(run, claims):
    report = json.loads(vperf("report", "--view", "guest", "--vm", "g1", "--format", "json", str(run.recording("lives"))).stdout)
    rows = [row for row in report["rows"] if row["kind"] == "user"]
    by_function = {name: {row["process"]: row["samples"] for row in rows if row["function"] == name} for name in OWNERS}
    claims.check(all(set(by_function[name]) == {owner} for name, owner in OWNERS.items()),
                 f"functions of processes that have ended are theirs: {by_function}")
    fast, slow = (sum(by_function[name].values()) for name in ("share_a", "share_b"))
    claims.share("the first of two functions of a process that has ended", fast, (fast + slow, report), 80)
    of_child = sum(row["samples"] for row in rows if row["process"] == "storm_child")
    work = sum(by_function["storm_work"].values())
    # The child also starts and ends: the dynamic linker.
    claims.check(work >= 0.9 * of_child, f"{work} of {of_child} samples of short processes are of their work, at least 90%")
    # The 20 ms are all of its CPU time.
    of_all = of_child + sum(row["samples"] for row in report["rows"] if (row["kind"], row["process"]) == ("kernel", "storm_child"))
    claims.near(f"samples of 1 ms, of {STORM} processes of 20 ms", of_all, STORM * 20, STORM)
    samples = [json.loads(line) for line in vperf("export", "jsonl", "--vm", "g1", str(run.recording("lives"))).stdout.splitlines()]
    pids = {sample["pid"] for sample in samples if sample["type"] == "sample" and sample["frames"] and sample["frames"][-1]["function"] == "storm_work"}
    claims.check(len(pids) == STORM, f"they are of {len(pids)} processes, of {STORM}")


CRITICAL = test_trace.CHAIN.replace("host pcpus=1 icount=yes", HOST).replace("vperf record ", "vperf record -e cpu-clock ")

run_of = test_trace.critical_path

run_late_bookworm.is_virtual = True
run_late_trixie.is_virtual = True
# A vCPU that comes online during the recording, and is the only busy one.
ONLINE = HOST + """ kernel=trixie
guest g1 vcpus=2 memory=256 truth=no kernel=trixie append="maxcpus=1"
command vperf record -e cpu-clock --no-agent -o /out/rec --vm g1 -- sh -c 'sleep 1; lab-guest run g1 sh -c \
"echo 1 >/sys/devices/system/cpu/cpu1/online; busybox taskset 2 shares fast=100 --iterations 20000"'
""".replace("\\\n", "")


def online(run, claims):
    said = run.command_output(1, "err")
    claims.check(said.count("guest memory is not read for now: a vCPU came online") == 1, "that a vCPU came online is said once")
    claims.check(said.count("the kernel was found again after") == 1, "that the kernel was found again is said once")
    # The symbol map so far is written, and the first search may fail: the next one is 3 s later. 6 s after the vCPU's first sample.
    text = vperf("script", str(run.recording()), "--event", "guest_sample", "--vm", "g1", "--format", "csv").stdout
    samples = [(int(row["time_ns"]), int(row["guest_pid"] or 0)) for row in csv.DictReader(io.StringIO(text)) if row["vcpu"] == "1"]
    first = samples[0][0]
    later = [pid for time, pid in samples if time > first + 6e9]
    unknown = [(time - first) / 1e9 for time, pid in samples if not pid]
    claims.check(len(later) > 3000 and all(later), f"{len(later)} samples of the new vCPU after 6 s have a process; the last without one came "
                 f"after {max(unknown):.2f} s")
    rows = json.loads(vperf("report", "--view", "unified", "--format", "json", str(run.recording())).stdout)["rows"]
    own = sum(row["samples"] for row in rows if row["vm"] == "g1" and row["function"] == "share_a" and row["process"] == "shares")
    claims.check(own >= len(later), f"{own} samples are in the function of the process on it")


TESTS = []
QUICK = ()
FULL = [("64-bit Arm, switches of a guest's threads", SWITCHES, switches),
        ("64-bit Arm, exits of a guest's functions", EXITS, exits),
        ("64-bit Arm, critical path", CRITICAL, run_of),
        ("64-bit Arm, a module that comes", run_late_bookworm, late_module),
        ("64-bit Arm, a module that comes, host and guest trixie", run_late_trixie, late_module),
        ("64-bit Arm, a vCPU that comes online", ONLINE, online),
        ("64-bit Arm, processes that end", LIVES.format(host="bookworm", guest="", count=STORM), lives),
        ("64-bit Arm, processes that end, host and guest trixie", LIVES.format(host="trixie", guest="kernel=trixie", count=STORM), lives),
        ("64-bit Arm, functions of modules", MODULES.format(host="bookworm", guest=""), modules),
        ("64-bit Arm, functions of modules, host and guest sid", MODULES.format(host="sid", guest="kernel=sid"), modules)]
