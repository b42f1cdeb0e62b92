# SPDX-License-Identifier: GPL-2.0-or-later
"""Call chains of code without frame pointers: a program whose call trees are known, and Debian's openssl."""
import json
import re
import subprocess
import sys
from pathlib import Path

from lab import REPOSITORY, run_scenario, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs, roots  # noqa: E402
from vlablib.arch import AMD64, ARM64  # noqa: E402

# Percent of the chains. Those in the first milliseconds of a program come before its tables are read.
LEAST = 95
SOURCE = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
#define OWN extern "C" __attribute__((noipa))
#else
#define OWN __attribute__((noipa))
#endif

static volatile unsigned sink;

#define BURN(name) OWN void name() { for (unsigned i = 0; i < 300000; i++) sink = sink + i; sink = 0; }
BURN(burn_plain)
BURN(burn_compare)
BURN(burn_signal)

#define LEVEL(n, below) OWN unsigned tree_##n(unsigned x) \
    { volatile unsigned room[n * 20]; room[x % n] = x; below; sink = sink + room[x % n]; return x + sink; }
LEVEL(5, burn_plain())
LEVEL(4, tree_5(x + 1))
LEVEL(3, tree_4(x + 1))
LEVEL(2, tree_3(x + 1))
LEVEL(1, tree_2(x + 1))

static unsigned compared;
OWN int compare(const void *left, const void *right)
{
    if (compared++ == 3)
        burn_compare();
    return memcmp(left, right, sizeof(int));
}
OWN void sorts()
{
    int numbers[8] = {4, 1, 3, 2, 8, 6, 5, 7};
    compared = 0;
    qsort(numbers, 8, sizeof(int), compare);
    sink = sink + numbers[2];
}

OWN void on_signal(int number) { burn_signal(); sink = sink + (number > 0); }
OWN void interrupted() { raise(SIGUSR1); sink = sink + 1; }

#ifdef __cplusplus
BURN(burn_destructor)
struct Guard { unsigned x; ~Guard(); };
__attribute__((noipa)) Guard::~Guard() { burn_destructor(); sink = sink + x; }
OWN void throws(unsigned x) { if (x) throw x; }
OWN void guarded(unsigned x) { Guard guard = {x}; throws(x); sink = sink + guard.x; }
OWN void catches() { try { guarded(sink | 1); } catch (unsigned x) { sink = sink + x; } }
#else
#define catches()
#endif

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : 3;
    signal(SIGUSR1, on_signal);
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (clock_gettime(CLOCK_MONOTONIC, &now), now.tv_sec - start.tv_sec < seconds) {
        tree_1(1);
        sorts();
        interrupted();
        catches();
    }
    return 0;
}
"""
# Functions that burn time → their callers in the program, outermost first.
TREES = {"burn_plain": ["main", "tree_1", "tree_2", "tree_3", "tree_4", "tree_5"],
         "burn_compare": ["main", "sorts", "compare"],
         "burn_signal": ["main", "interrupted", "on_signal"],
         # The part of guarded() that runs for exceptions is elsewhere.
         "burn_destructor": ["main", "catches", "guarded.cold", "Guard::~Guard"]}
SPEED = "for what in \"-evp aes-256-gcm\" sha512 rsa2048 ecdsap256; do openssl speed -elapsed -seconds 1 -bytes 16384 $what; done"


def run_recordings(arch, files, commands, directory):
    """Records each command in a guest without an agent."""
    lines = "".join(f"file g1 {source} {path}\n" for path, source in files.items())
    records = "".join(f"command nice -n -15 vperf record -g -e cpu-clock --no-agent --vm g1 -o /out/{name} -- lab-guest run g1 {command}\n"
                      for name, command in commands)
    guest = "guest g1 vcpus=1 memory=512 truth=no kernel=bookworm flavour=cloud"
    return run_scenario(f"host arch={arch} pcpus=1 icount=yes memory=2048\n{guest}\n{lines}{records}", directory, timeout=1800, silence=900)


def run_unwind(directory):
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    (work / "trees.cc").write_text(SOURCE)
    subprocess.run(["g++", "-O2", "-fomit-frame-pointer", "-o", work / "trees", work / "trees.cc"], check=True, timeout=300)
    fetched = debian_programs.get(AMD64, ("openssl",))
    (work / "speed").write_text(f"{SPEED}\n")
    files = {"/bin/trees": work / "trees", "/bin/openssl": fetched / "usr/bin/openssl", "/speed": work / "speed"}
    return run_recordings("amd64", files, (("trees", "trees"), ("openssl", "sh /speed")), directory)


def run_unwind_on_arm(directory):
    """The program in C: its functions have no frame records."""
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    (work / "trees.c").write_text(SOURCE)
    subprocess.run([f"{ARM64.triplet}-gcc", f"--sysroot={roots.get(ARM64)}", "-O2", "-fomit-frame-pointer", "-o", work / "trees", work / "trees.c"], check=True, timeout=300)
    return run_recordings("arm64", {"/bin/trees": work / "trees"}, (("trees", "trees"),), directory)


def stacks_of(run, name, process, *options):
    report = json.loads(vperf("report", str(run.recording(name)), "--view", "guest", "--vm", "g1", "--format", "json", "--no-host-files", *options).stdout)
    return report, [stack for stack in report["stacks"] if stack["process"] == process]


def samples(stacks):
    return sum(stack["samples"] for stack in stacks)


def judge(claims, text, stacks, is_good):
    bad = [stack for stack in stacks if not is_good(stack["frames"])]
    total, right = samples(stacks), samples(stacks) - samples(bad)
    worst = max(bad, key=lambda stack: stack["samples"], default=None)
    claims.check(total > 200 and 100 * right >= LEAST * total, f"{right} of {total} {text}; not so: {worst and worst['frames']}")


def check_trees(run, claims, trees):
    report, stacks = stacks_of(run, "trees", "trees")
    claims.note(f"trees: {report['walks']['guest_user']}")
    own = {name for tree in trees.values() for name in tree} | {*trees}
    for burning, callers in trees.items():
        judge(claims, f"chains of {burning} are those of its known tree", [stack for stack in stacks if stack["frames"][-1] == burning],
              lambda frames, callers=callers, burning=burning: [name for name in frames if name in own] == callers + [burning])


def entry_of(program):
    header = subprocess.run(["readelf", "-hW", program], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"Entry point.*: +0x(\w+)", header)[1], 16)


def check_openssl(run, claims, *options):
    """Its main() has no name: it is the frame after those of the C library, which is called by the entry point."""
    report, stacks = stacks_of(run, "openssl", "openssl", *options)
    claims.note(f"openssl: {report['walks']['guest_user']}")
    start = f"openssl:0x{entry_of(debian_programs.get(AMD64, ('openssl',)) / 'usr/bin/openssl'):x}"
    user = [stack for stack in stacks if not any("[k]" in frame or frame.startswith("entry_") for frame in stack["frames"])]

    def reaches_main(frames):
        return frames[0] == start and any(frame.startswith("openssl:") for frame in frames[1:])
    judge(claims, f"chains of openssl begin at its entry point ({start}) and go through its main()", user, reaches_main)


def check(run, claims):
    check_trees(run, claims, TREES)
    check_openssl(run, claims)


def check_on_arm(run, claims):
    check_trees(run, claims, {burning: callers for burning, callers in TREES.items() if burning != "burn_destructor"})


run_unwind.is_virtual = True
run_unwind_on_arm.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("unwinding: code without frame pointers", run_unwind, check),
        ("64-bit Arm, code without frame pointers", run_unwind_on_arm, check_on_arm)]
