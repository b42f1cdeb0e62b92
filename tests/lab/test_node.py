# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of JavaScript functions in Node.js, without any option to it, and their frames in call chains, compiled and interpreted.

The program has a known call tree and runs each function for a known share of the time. A builtin of V8's, sort(), calls one of them."""
import json
import subprocess
import sys
from pathlib import Path

from lab import REPOSITORY, run_scenario, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs  # noqa: E402
from vlablib.arch import AMD64, ARM64  # noqa: E402

COMMON = ("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libbrotli1", "libnghttp2-14", "nodejs", "node-acorn", "node-cjs-module-lexer", "node-undici")
# Suite → version, packages: V8 and what it is linked with.
SUITES = {"bookworm": (18, (*COMMON, "libnode108", "libuv1", "libc-ares2", "libicu72", "libssl3")),
          "trixie": (20, (*COMMON, "libnode115", "node-minimatch", "libuv1t64", "libcares2", "libicu76", "libssl3t64", "libzstd1"))}
# Percent of the time in the two functions that spin.
SHARES = {"often": 80, "seldom": 20}
# Percent of the samples, and of the chains, from SETTLED seconds after the process's first sample: before that, vperf looks for V8, and in
# the first recording for the kernel, too.
LEAST_NAMED = 95.0
LEAST_CHAINS = 95.0
SETTLED = 5
# Percent of all samples: the start of Node.js itself is in C++.
LEAST_NAMED_OF_ALL = 70.0
# The process ends some time after its work: memory beyond the copy of a stack is read later. Functions are too large to be inlined by V8's
# compiler. A comparison is called by a builtin that is not inlined either.
STEPS = " ".join(["x = (x * 31 + 7) & 65535;"] * 60)
PROGRAM = f"""function often(until, x) {{ while (Date.now() < until) for (let i = 0; i < steps; i++) {{ {STEPS} }} return x; }}
function seldom(until, x) {{ while (Date.now() < until) for (let i = 0; i < steps; i++) {{ {STEPS} }} return x; }}
const steps = +process.argv[3];
class Work {{
    nested(x) {{ if (x < 0) {{ {STEPS} }} [2, 1].sort((a, b) => {{ x = often(Date.now() + 8, x); return 0; }}); return x; }}
    run(end) {{ let x = 1; while (Date.now() < end) {{ x = this.nested(x); x = seldom(Date.now() + 2, x); }} return x; }}
}}
function main() {{ return new Work().run(Date.now() + 1000 * process.argv[2]); }}
main();
setTimeout(() => {{}}, 1500);
"""
FILE = "/known.js"
# Frames of the program, outermost first; the builtin that calls the callback has a name, too, and no file.
TREES = {"often": ["main", "run", "nested", None, "(anonymous)", "often"], "seldom": ["main", "run", "seldom"]}
# Without a compiler all of it is interpreted, and slower.
RECORDINGS = [("names", "", "", 200), ("interpreted", "", "--no-opt --no-sparkplug ", 10),
              ("chains", "-g ", "", 200), ("interpreted-chains", "-g ", "--no-opt --no-sparkplug ", 10)]


def pack(work, fetched):
    """A root for Node.js, packed: the lab takes an ELF file for a program with this machine's libraries."""
    packed = work / "root.tar"
    root = work / "root"
    subprocess.run(["rm", "-rf", root], check=True)
    root.mkdir(parents=True)
    subprocess.run(["cp", "-a", fetched / "usr", root / "usr"], check=True)
    for name in ("lib", "lib64"):
        if (fetched / name).is_dir() and not (fetched / name).is_symlink():
            (root / "usr" / name).mkdir(exist_ok=True)
            subprocess.run(["cp", "-a", f"{fetched / name}/.", root / "usr" / name], check=True)
        (root / name).symlink_to(f"usr/{name}")
    (root / FILE[1:]).write_text(PROGRAM)
    for name in ("dev", "proc", "sys", "tmp"):
        (root / name).mkdir()
    subprocess.run(["tar", "-C", root, "--exclude=gconv", "--exclude=usr/share/doc", "--exclude=usr/share/man", "-cf", packed, "."], check=True)
    return packed


def run_node(directory, suite, event="", arch=AMD64):
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    fetched = debian_programs.get(arch, SUITES[suite][1], suite)
    (work / "start").write_text("mount --bind /proc /new/proc; mount --bind /dev /new/dev; exec busybox chroot /new /usr/bin/node $*\n")
    lines = f"file g1 {pack(work, fetched)} /root.tar\nfile g1 {work / 'start'} /start\n"
    before = "command lab-guest run g1 mkdir /new\ncommand lab-guest run g1 tar -C /new -xf /root.tar\n"
    records = "".join(f"command nice -n -15 vperf record {options}{event}--no-agent --vm g1 -o /out/{name} -- "
                      f"lab-guest run g1 sh /start {flags}{FILE} 12 {size}\n" for name, options, flags, size in RECORDINGS)
    guest = f"guest g1 vcpus=1 memory=1280 truth=no kernel={suite} flavour=cloud"
    return run_scenario(f"host arch={arch.name} pcpus=1 icount=yes memory=3072\n{guest}\n{lines}{before}{records}", directory, timeout=2400, silence=900)


def function_of(name):
    """The program's function, without its file; the builtins of V8 have none."""
    text = (name or "").removeprefix("JS:")
    return text.split(" ")[0] if text.split(":@")[0].endswith(f" {FILE}") else None


def named_of(report):
    """The rows of the program in user space, their samples, and those of JavaScript functions."""
    rows = [row for row in report["rows"] if row["kind"] == "user" and row["process"] == "node"]
    return rows, sum(row["samples"] for row in rows), sum(row["samples"] for row in rows if (row["function"] or "").startswith("JS:"))


def check_names(run_, claims, name):
    _, total, named = named_of(run_.report("guest", "--vm", "g1", "--no-host-files", recording=name))
    claims.check(100 * named >= LEAST_NAMED_OF_ALL * total,
                 f"{name}: {100 * named / max(total, 1):.2f} % of all {total} samples of node are of a JavaScript function, at least {LEAST_NAMED_OF_ALL}")
    report = run_.report("guest", "--vm", "g1", "--no-host-files", *run_.settled(name, "node", SETTLED), recording=name)
    rows, total, named = named_of(report)
    claims.check(total > 2000 and 100 * named >= LEAST_NAMED * total,
                 f"{name}: {100 * named / max(total, 1):.2f} % of {total} samples of node are of a JavaScript function, at least {LEAST_NAMED}: "
                 f"{[(row['function'], row['module'], row['samples']) for row in rows if not (row['function'] or '').startswith('JS:')][:5]}")
    known = {of: sum(row["samples"] for row in rows if function_of(row["function"]) == of) for of in SHARES}
    counted = sum(known.values())
    claims.check(counted > 0.9 * total, f"{name}: {counted} of {total} samples are of the known functions")
    for of, expected in SHARES.items():
        claims.share(f"{name}: function {of}()", known[of], (counted, report), expected)


def is_tree(frames, burning):
    """Whether the frames of the program are those of the tree, with V8's own ones in between where None is."""
    known = [function_of(frame) or (None if frame.startswith("JS:") else "") for frame in frames]
    own = [name for name in known if name != ""]
    start = next((i for i, name in enumerate(own) if name == "main"), len(own))
    tree = own[start:]
    expected = list(TREES[burning])
    return start < len(own) and [name for i, name in enumerate(tree) if name is not None or tree[i - 1] is not None] == expected


def check_chains(run_, claims, name):
    """Chains by tables, to the entry point, are those of the known tree."""
    report = json.loads(vperf("report", str(run_.recording(name)), "--view", "guest", "--vm", "g1", "--format", "json", "--no-host-files",
                              *run_.settled(name, "node", SETTLED)).stdout)
    stacks = [stack for stack in report["stacks"] if stack["process"] == "node" and not any("_[k]" in frame for frame in stack["frames"])]
    whole = [stack for stack in stacks if stack["frames"][0].startswith("node:0x") or stack["frames"][0] == "_start"]
    total, unwound = (sum(stack["samples"] for stack in of) for of in (stacks, whole))
    claims.check(total > 2000 and 100 * unwound >= LEAST_CHAINS * total,
                 f"{name}: {unwound} of {total} chains begin at the program's entry point, at least {LEAST_CHAINS} %; {report['walks']['guest_user']}")
    right = {of: 0 for of in SHARES}
    wrong = []
    for stack in whole:
        burning = next((of for of in SHARES if of in map(function_of, stack["frames"])), None)
        if burning and is_tree(stack["frames"], burning):
            right[burning] += stack["samples"]
        else:
            wrong.append(stack)
    worst = max(wrong, key=lambda stack: stack["samples"], default=None)
    counted = sum(right.values())
    claims.check(unwound > 2000 and 100 * counted >= LEAST_CHAINS * unwound,
                 f"{name}: {counted} of {unwound} chains from the entry point on ({100 * counted / max(unwound, 1):.2f} %) are exactly those of the "
                 f"known tree, at least {LEAST_CHAINS} %: {worst and (worst['samples'], worst['frames'])}")
    for of, expected in SHARES.items():
        claims.share(f"{name}: chains of {of}()", right[of], (counted, report), expected)


def check(run_, claims):
    for name, options, _, _ in RECORDINGS:
        if options:
            check_chains(run_, claims, name)
        else:
            check_names(run_, claims, name)


def run_bookworm(directory):
    return run_node(directory, "bookworm")


def run_trixie(directory):
    return run_node(directory, "trixie")


def run_on_arm(directory):
    """Sampled by time: the emulated processor has counters."""
    return run_node(directory, "bookworm", "-e cpu-clock ", ARM64)


def run_trixie_on_arm(directory):
    return run_node(directory, "trixie", "-e cpu-clock ", ARM64)


run_bookworm.is_virtual = True
run_on_arm.is_virtual = True
run_trixie.is_virtual = True
run_trixie_on_arm.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: node 18 without options", run_bookworm, check), ("names: node 20 without options", run_trixie, check),
        ("64-bit Arm, node 18", run_on_arm, check), ("64-bit Arm, node 20", run_trixie_on_arm, check)]
