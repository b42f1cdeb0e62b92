# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of Python functions, without any option to the interpreter, and their frames in call chains, between those of C functions.

The program has a known call tree and runs each function for a known share of the time. A C function of the interpreter calls one of
them; in a second run a thread of its own does all the work."""
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from lab import REPOSITORY, run_scenario, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs  # noqa: E402
from vlablib.arch import AMD64, ARM64  # noqa: E402

# suite → version, and packages: the second guest's programs need a newer C library.
SUITES = {"bookworm": ("3.11", ("libpython3.11-minimal", "python3.11-minimal")),
          "trixie": ("3.13", ("libc6", "libexpat1", "libpython3.13-minimal", "python3.13-minimal", "zlib1g"))}
# The program's name is that of the dynamic linker then.
LOADERS = {"amd64": "/new/usr/lib64/ld-linux-x86-64.so.2", "arm64": "/new/usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"}
LIBRARIES = {"amd64": "usr/lib/x86_64-linux-gnu", "arm64": "usr/lib/aarch64-linux-gnu"}
# Percent of the time in the two functions that spin.
SHARES = {"often": 80, "seldom": 20}
# Percent of the samples, and of the chains, from SETTLED seconds after the process's first sample: before that, vperf looks for the
# interpreter, and in the first recording for the kernel, too.
LEAST_NAMED = 95.0
LEAST_CHAINS = 95.0
SETTLED = 3
# Percent of all samples.
LEAST_NAMED_OF_ALL = 80.0
# Modules of the standard library that the interpreter itself imports.
MODULES = ("encodings", "abc.py", "codecs.py", "genericpath.py", "io.py", "os.py", "posixpath.py", "site.py", "stat.py", "_collections_abc.py",
           "_sitebuiltins.py")
PROGRAM = """import _thread, sys, time
def often():
    x = 0
    for i in range(8000): x = (x * 31 + i) & 65535
    return x
def seldom():
    x = 0
    for i in range(4000): x = (x * 31 + i) & 65535
    return x
def key(x):
    often()
    return x
class Work:
    def nested(self):
        return max([1, 2], key=key)
    def run(self, end):
        while time.monotonic() < end:
            self.nested()
            seldom()
        done.release()
done = _thread.allocate_lock()
done.acquire()
end = time.monotonic() + float(sys.argv[1])
if sys.argv[2] == "thread":
    _thread.start_new_thread(Work().run, (end,))
    done.acquire()
else:
    Work().run(end)
"""
# Python's frames of the two functions, outermost first. The function `max`, in C, is between two of them.
OUTER = {"main": ["py::<module>:/known.py"], "thread": []}
TREES = {"often": ["py::Work.run:/known.py", "py::Work.nested:/known.py", None, "py::key:/known.py", "py::often:/known.py"],
         "seldom": ["py::Work.run:/known.py", "py::seldom:/known.py"]}
RECORDINGS = [("names", "", "main"), ("threads", "", "thread"), ("chains", "-g ", "main"), ("thread-chains", "-g ", "thread")]


def library_of(work, fetched, version):
    """The interpreter looks for its library in an archive, too."""
    archive, library = work / f"python{version.replace('.', '')}.zip", fetched / f"usr/lib/python{version}"
    with zipfile.ZipFile(archive, "w") as to:
        for name in MODULES:
            place = library / name
            for file in sorted(place.glob("*.py")) if place.is_dir() else [place]:
                to.write(file, file.relative_to(library))
    return archive


def pack(work, fetched, version, arch):
    """A root for the interpreter, packed: the lab takes an ELF file for a program with this machine's libraries."""
    packed = work / "root.tar"
    root = work / "root"
    subprocess.run(["rm", "-rf", root], check=True)
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/lib").mkdir()
    for name in (f"usr/bin/python{version}", "usr/lib64", LIBRARIES[arch.name]):
        if (fetched / name).exists():
            subprocess.run(["cp", "-a", fetched / name, root / name], check=True)
    library_of(root / "usr/lib", fetched, version)
    subprocess.run(["tar", "-C", root, "--exclude=gconv", "-cf", packed, "."], check=True)
    return packed


def run_python(directory, suite, event="", arch=AMD64):
    version, packages = SUITES[suite]
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    fetched = debian_programs.get(arch, packages, suite)
    (work / "known.py").write_text(PROGRAM)
    if suite == "bookworm":
        files = {f"/usr/bin/python{version}": fetched / f"usr/bin/python{version}", "/known.py": work / "known.py",
                 f"/usr/lib/python{version.replace('.', '')}.zip": library_of(work, fetched, version)}
        before, python = "", f"python{version}"
    else:
        (work / "start").write_text(f"PYTHONHOME=/new/usr exec {LOADERS[arch.name]} --library-path /new/{LIBRARIES[arch.name]} /new/usr/bin/python{version} $*\n")
        files = {"/root.tar": pack(work, fetched, version, arch), "/start": work / "start", "/known.py": work / "known.py"}
        before = "command lab-guest run g1 mkdir /new\ncommand lab-guest run g1 tar -C /new -xf /root.tar\n"
        python = "sh /start"
    lines = "".join(f"file g1 {source} {path}\n" for path, source in files.items())
    records = "".join(f"command nice -n -15 vperf record {options}{event}--no-agent --vm g1 -o /out/{name} -- lab-guest run g1 {python} -S /known.py 12 {how}\n"
                      for name, options, how in RECORDINGS)
    guest = f"guest g1 vcpus=1 memory=768 truth=no kernel={suite} flavour=cloud"
    return run_scenario(f"host arch={arch.name} pcpus=1 icount=yes memory=2048\n{guest}\n{lines}{before}{records}", directory, timeout=2400, silence=900)


def function_of(name):
    """The known function of that name, or None."""
    return {f"py::{known}:/known.py": known for known in SHARES}.get(name)


def named_of(report, comm):
    """The rows of the program in user space, their samples, and those of Python functions."""
    rows = [row for row in report["rows"] if row["kind"] == "user" and row["process"] == comm]
    return rows, sum(row["samples"] for row in rows), sum(row["samples"] for row in rows if (row["function"] or "").startswith("py::"))


def check_names(run_, claims, comm, name):
    """All the code of the interpreter counts as the Python function."""
    _, total, named = named_of(run_.report("guest", "--vm", "g1", "--no-host-files", recording=name), comm)
    claims.check(100 * named >= LEAST_NAMED_OF_ALL * total,
                 f"{name}: {100 * named / max(total, 1):.2f} % of all {total} samples of {comm} are of a Python function, at least {LEAST_NAMED_OF_ALL}")
    report = run_.report("guest", "--vm", "g1", "--no-host-files", *run_.settled(name, comm, SETTLED), recording=name)
    rows, total, named = named_of(report, comm)
    claims.check(total > 2000 and 100 * named >= LEAST_NAMED * total,
                 f"{name}: {100 * named / max(total, 1):.2f} % of {total} samples of {comm} are of a Python function, at least {LEAST_NAMED}: "
                 f"{[(row['function'], row['module'], row['samples']) for row in rows if not (row['function'] or '').startswith('py::')][:5]}")
    known = {of: sum(row["samples"] for row in rows if function_of(row["function"]) == of) for of in SHARES}
    counted = sum(known.values())
    claims.check(counted > 0.9 * total, f"{name}: {counted} of {total} samples are of the known functions")
    for of, expected in SHARES.items():
        claims.share(f"{name}: function {of}()", known[of], (counted, report), expected)


def is_tree(frames, how, burning):
    """Whether Python's frames are those of the tree, with frames of C in between where None is, and only there."""
    first = next((i for i, frame in enumerate(frames) if frame.startswith("py::")), len(frames))
    at = first
    for name in OUTER[how] + TREES[burning]:
        if name is None:
            between = at
            while at < len(frames) and not frames[at].startswith("py::"):
                at += 1
            if at == between:
                return False
        elif at == len(frames) or frames[at] != name:
            return False
        else:
            at += 1
    return first > 0 and not any(frame.startswith("py::") or "EvalFrameDefault" in frame for frame in frames[at:])


def check_chains(run_, claims, comm, name, how):
    report = json.loads(vperf("report", str(run_.recording(name)), "--view", "guest", "--vm", "g1", "--format", "json", "--no-host-files",
                              *run_.settled(name, comm, SETTLED)).stdout)
    stacks = [stack for stack in report["stacks"] if stack["process"] == comm and not any("_[k]" in frame for frame in stack["frames"])]
    claims.note(f"{name}: {report['walks']['guest_user']}")
    total = sum(stack["samples"] for stack in stacks)
    right = {of: 0 for of in SHARES}
    wrong = []
    for stack in stacks:
        burning = next((of for of in SHARES if f"py::{of}:/known.py" in stack["frames"]), None)
        if burning and is_tree(stack["frames"], how, burning):
            right[burning] += stack["samples"]
        else:
            wrong.append(stack)
    worst = max(wrong, key=lambda stack: stack["samples"], default=None)
    counted = sum(right.values())
    claims.check(total > 2000 and 100 * counted >= LEAST_CHAINS * total,
                 f"{name}: {counted} of {total} chains ({100 * counted / max(total, 1):.2f} %) are exactly those of the known tree, at least {LEAST_CHAINS} %: "
                 f"{worst and (worst['samples'], worst['frames'])}")
    for of, expected in SHARES.items():
        claims.share(f"{name}: chains of {of}()", right[of], (counted, report), expected)


def check(run_, claims, suite, arch=AMD64):
    comm = f"python{SUITES[suite][0]}" if suite == "bookworm" else Path(LOADERS[arch.name]).name[:15]
    for name, options, how in RECORDINGS:
        if options:
            check_chains(run_, claims, comm, name, how)
        else:
            check_names(run_, claims, comm, name)


def run_bookworm(directory):
    return run_python(directory, "bookworm")


def run_trixie(directory):
    return run_python(directory, "trixie")


def run_bookworm_on_arm(directory):
    return run_python(directory, "bookworm", "-e cpu-clock ", ARM64)


def run_on_arm(directory):
    """Sampled by time: the emulated processor has counters."""
    return run_python(directory, "trixie", "-e cpu-clock ", ARM64)


run_bookworm.is_virtual = True
run_bookworm_on_arm.is_virtual = True
run_on_arm.is_virtual = True
run_trixie.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: python 3.11 without options", run_bookworm, lambda run_, claims: check(run_, claims, "bookworm")),
        ("names: python 3.13 without options", run_trixie, lambda run_, claims: check(run_, claims, "trixie")),
        ("64-bit Arm, python 3.11", run_bookworm_on_arm, lambda run_, claims: check(run_, claims, "bookworm", ARM64)),
        ("64-bit Arm, python 3.13", run_on_arm, lambda run_, claims: check(run_, claims, "trixie", ARM64))]
