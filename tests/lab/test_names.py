# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of programs as people have them: stripped ones of Debian's, of Go, and one as Fedora ships them, and JIT code in a container. Each
sample has a function, and each function has one row."""
import lzma
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from lab import REPOSITORY, run_scenario, samples_of

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs, kernels  # noqa: E402
from vlablib.arch import AMD64  # noqa: E402

PACKAGES = ("gzip", "libpython3.11-minimal", "openssl", "python3.11-minimal", "sqlite3")
GO = (("bookworm", "1.19"), ("trixie", "1.24"))  # the suite's version
# In percent of the samples in user space of a program.
MOST_UNNAMED = 1.0
# The program spends three quarters of its time in the first function; without sizes or symbols, in whatever way they are found.
KNOWN = 75
# Programs that have no section headers, and options of the linker.
HEADLESS = {"no-headers": (), "dynamic-only": ("-rdynamic",)}

PYTHON = ("import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n"
          "    words = {str(i): [i] * 10 for i in range(2000)}\n    text = \" \".join(sorted(words)).split()\n")
SQL = ("create table t(a, b); with recursive c(x) as (values(1) union all select x + 1 from c where x < 120000) "
       "insert into t select x, printf('%d', x * 7 % 1000) from c; create index i on t(b); "
       "select count(*), max(a) from t where b like '9%'; select b, sum(a) from t group by b order by 2 limit 3;")
# Modules of the standard library that the interpreter itself imports.
MODULES = ("encodings", "abc.py", "codecs.py", "genericpath.py", "io.py", "os.py", "posixpath.py", "site.py", "stat.py", "_collections_abc.py",
           "_sitebuiltins.py")
GO_SOURCE = """package main

import "os"

//go:noinline
func often(n uint64) uint64 {
	for i := uint64(0); i < 30000; i++ {
		n = n*6364136223846793005 + 1442695040888963407
	}
	return n
}

//go:noinline
func seldom(n uint64) uint64 {
	for i := uint64(0); i < 10000; i++ {
		n = n*6364136223846793005 + 1442695040888963407
	}
	return n
}

func main() {
	var n uint64
	for i := 0; i < 20000; i++ {
		n = seldom(often(n))
	}
	if n == 0 {
		os.Exit(1)
	}
}
"""
C_SOURCE = """
__attribute__((noinline)) unsigned long often(unsigned long n)
{
	for (int i = 0; i < 30000; i++)
		n = n * 6364136223846793005UL + 1442695040888963407UL;
	return n;
}

__attribute__((noinline)) unsigned long seldom(unsigned long n)
{
	for (int i = 0; i < 10000; i++)
		n = n * 6364136223846793005UL + 1442695040888963407UL;
	return n;
}

int main(void)
{
	unsigned long n = 0;

	for (int i = 0; i < 20000; i++)
		n = seldom(often(n));
	return n == 0;
}
"""


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, timeout=300, **options)


def build_go(work, suite, version):
    """A stripped program by that version's compiler."""
    root = debian_programs.get(AMD64, (f"golang-{version}-go", f"golang-{version}-src"), suite) / f"usr/lib/go-{version}"
    source, program = work / "main.go", work / f"go-{version}"
    source.write_text(GO_SOURCE)
    run(root / "bin/go", "build", "-ldflags", "-s -w", "-o", program, source,
        env={"PATH": os.environ["PATH"], "GOROOT": str(root), "GOCACHE": str(work / "cache"), "GO111MODULE": "off", "HOME": str(work),
             "GOTOOLCHAIN": "local", "GOFLAGS": "-p=2"})
    return program


def build_packed(work):
    """A program with its symbols in .gnu_debugdata, made as Fedora's packages are."""
    source, full, small, program = (work / name for name in ("known.c", "full", "small", "packed"))
    source.write_text(C_SOURCE)
    run("gcc", "-O1", "-o", full, source)
    run("objcopy", "--only-keep-debug", full, small)
    run("objcopy", "-S", "--keep-symbol=often", "--keep-symbol=seldom", small)
    run("xz", "-f", small)
    run("strip", "-o", program, full)
    run("objcopy", "--add-section", f".gnu_debugdata={small}.xz", program)
    return program


def build_bare(work):
    """The same without any names."""
    source, program = work / "known.c", work / "bare"
    source.write_text(C_SOURCE)
    run("gcc", "-O1", "-s", "-o", program, source)
    return program


def build_headless(work, name, *options):
    """A stripped program without section headers: e_shoff, e_shnum and e_shstrndx are 0."""
    source, program = work / "known.c", work / name
    source.write_text(C_SOURCE)
    run("gcc", "-O1", "-s", *options, "-o", program, source)
    file = bytearray(program.read_bytes())
    file[0x28:0x30] = bytes(8)
    file[0x3c:0x40] = bytes(4)
    program.write_bytes(file)
    return program


def run_headless(directory):
    work = programs_of(directory)
    work.mkdir(parents=True, exist_ok=True)
    for name, options in HEADLESS.items():
        build_headless(work, name, *options)
    lines = "".join(f"file g1 {work / name} /bin/{name}\n" for name in HEADLESS)
    records = "".join(f"command nice -n -15 vperf record -g --no-agent --vm g1 -o /out/{name} -- lab-guest run g1 {name}\n" for name in HEADLESS)
    guest = "guest g1 vcpus=1 memory=512 truth=no kernel=bookworm flavour=cloud"
    return run_scenario(f"host pcpus=1 icount=yes memory=2048\n{guest}\n{lines}{records}", directory, timeout=1200, silence=900)


def python_library(work, fetched):
    """The interpreter looks for its library in an archive, too."""
    archive, library = work / "python311.zip", fetched / "usr/lib/python3.11"
    with zipfile.ZipFile(archive, "w") as to:
        for name in MODULES:
            place = library / name
            for file in sorted(place.glob("*.py")) if place.is_dir() else [place]:
                to.write(file, file.relative_to(library))
    return archive


def programs_of(directory):
    """The folder for programs built for the run: next to its results."""
    return Path(f"{directory}.programs")


def overlay_module(work):
    """overlayfs of the guest's kernel, packed: the lab takes an ELF file for a program."""
    packed = work / "overlay.ko.xz"
    module, = kernels.module_files(kernels.get("bookworm", "cloud"), ("overlay",))
    packed.write_bytes(lzma.compress(module.read_bytes()))
    return packed


def run_names(directory):
    fetched = debian_programs.get(AMD64, PACKAGES)
    work = programs_of(directory)
    work.mkdir(parents=True, exist_ok=True)
    files = {"/bin/packed": build_packed(work), "/bin/bare": build_bare(work), "/usr/lib/python311.zip": python_library(work, fetched),
             "/bin/real-gzip": fetched / "bin/gzip", "/bin/openssl": fetched / "usr/bin/openssl", "/bin/sqlite3": fetched / "usr/bin/sqlite3",
             "/usr/bin/python3.11": fetched / "usr/bin/python3.11"}
    files |= {f"/bin/go-{version}": build_go(work, suite, version) for suite, version in GO}
    (work / "burn.py").write_text(PYTHON)
    (work / "burn.sql").write_text(SQL)
    files |= {"/overlay.ko.xz": overlay_module(work), "/bin/overlaid": REPOSITORY / "tests/lab/overlaid"}
    files |= {"/burn.py": work / "burn.py", "/burn.sql": work / "burn.sql"}
    commands = {
        "openssl": "for what in \"-evp aes-256-gcm\" sha512 rsa2048 ecdsap256; do openssl speed -elapsed -seconds 1 -bytes 16384 $what; done",
        "sqlite3": "sqlite3 :memory: < /burn.sql",
        "gzip": "cat /bin/openssl /usr/bin/python3.11 | real-gzip -9 > /dev/null",
        "python3": "python3.11 -S -E /burn.py",
        "packed": "packed", "bare": "bare"} | {f"go-{version}": f"go-{version}" for _, version in GO}
    (work / "commands").mkdir(exist_ok=True)
    for name, command in commands.items():
        script = work / "commands" / name
        script.write_text(f"{command}\n")
        files[f"/burn-{name}"] = script
    lines = "".join(f"file g1 {source} {path}\n" for path, source in files.items())
    # With stacks, the interpreter's functions are rows of their own and do not count as Python's.
    records = "".join(f"command nice -n -15 vperf record {'-g ' if name == 'python3' else ''}--no-agent --vm g1 -o /out/{name} -- "
                      f"lab-guest run g1 sh /burn-{name}\n" for name in commands)
    # The last one: what is in the container goes on.
    records += "command lab-guest spawn g1 sh /bin/overlaid; nice -n -15 vperf record --no-agent --vm g1 -o /out/overlaid -- lab-guest busy g1 3\n"
    guest = "guest g1 vcpus=1 memory=768 truth=no kernel=bookworm flavour=cloud"
    return run_scenario(f"host pcpus=1 icount=yes memory=2048\n{guest}\n{lines}{records}", directory, timeout=2400,
                        silence=900)


def extents_of(file):
    """The functions in the unwind tables, as binutils read them: start and end, as offsets in the file."""
    segments = [tuple(int(word, 16) for word in words) for words in re.findall(
        r"^ +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", subprocess.run(["readelf", "-lW", file], check=True, capture_output=True, text=True).stdout,
        re.MULTILINE)]
    text = subprocess.run(["readelf", "-wF", file], check=True, capture_output=True, text=True).stdout
    addresses = [(int(start, 16), int(end, 16)) for start, end in re.findall(r" FDE .* pc=(\w+)\.\.(\w+)", text)]
    return [(start - address + offset, end - address + offset) for start, end in addresses for offset, address, size in segments
            if address <= start < address + size]


def is_unnamed(function):
    return function is None or function.startswith("0x") or "+0x" in function


def user_rows(report, comm):
    return [row for row in report["rows"] if row["kind"] == "user" and row["process"] == comm]


def check_program(run_, claims, name, comm):
    report = run_.report("guest", "--vm", "g1", "--no-host-files", recording=name)
    rows = user_rows(report, comm)
    total = sum(row["samples"] for row in rows)
    unnamed = [row for row in rows if is_unnamed(row["function"])]
    share = 100 * sum(row["samples"] for row in unnamed) / max(total, 1)
    nameless = [row for row in rows if re.search(r":0x[0-9a-f]+$", row["function"] or "")]
    claims.check(total > 500 and share <= MOST_UNNAMED,
                 f"{name}: {share:.2f} % of {total} samples have no function, at most {MOST_UNNAMED}: {[row['function'] for row in unnamed][:5]}; "
                 f"{100 * sum(row['samples'] for row in nameless) / max(total, 1):.1f} % are of {len(nameless)} functions without a name")
    return report, nameless


def check_extents(claims, name, nameless, file, module):
    """Each row without a name is one function by the unwind tables, and no two are the same one."""
    extents = extents_of(file)
    places = [int(row["function"].rpartition(":0x")[2], 16) for row in nameless if (row["module"] or "").endswith(module)]
    hit = [extent for place in places for extent in extents if extent[0] <= place < extent[1]]
    claims.check(bool(places) and len(hit) == len(places) == len(set(hit)),
                 f"{name}: {len(places)} functions without a name in {module} are {len(set(hit))} of an unwind table")


def names(run_, claims):
    debian = debian_programs.get(AMD64, PACKAGES)
    for name, comm in (("openssl", "openssl"), ("sqlite3", "sqlite3"), ("gzip", "real-gzip"), ("python3", "python3.11")):
        _, nameless = check_program(run_, claims, name, comm)
        if name == "openssl":  # a guest's libraries are this machine's
            check_extents(claims, name, nameless, "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "libcrypto.so.3")
        if name == "gzip":
            check_extents(claims, name, nameless, debian / "bin/gzip", "real-gzip")
        if name == "python3":
            check_extents(claims, name, nameless, debian / "usr/bin/python3.11", "python3.11")
    for name in ("packed", *(f"go-{version}" for _, version in GO)):
        report, _ = check_program(run_, claims, name, name)
        prefix = "main." if name.startswith("go") else ""
        often, seldom = samples_of(report, f"{prefix}often"), samples_of(report, f"{prefix}seldom")
        claims.check(often + seldom > 500, f"{name}: {often + seldom} samples of the known functions")
        claims.share(f"{name}: {prefix}often", often, (often + seldom, report), KNOWN)
    report, _ = check_program(run_, claims, "overlaid", "contained")
    hot, cold = samples_of(report, "jit_hot"), samples_of(report, "jit_cold")
    claims.check(hot + cold > 500, f"overlaid: {hot + cold} samples of JIT code in a container on overlayfs have names")
    claims.share("overlaid: jit_hot", hot, (hot + cold, report), KNOWN)
    report, nameless = check_program(run_, claims, "bare", "bare")
    counts = sorted((row["samples"] for row in nameless if row["module"] == "/bin/bare"), reverse=True)
    claims.share("bare: the longer one of two functions without a name", counts[0], (sum(counts[:2]), report), KNOWN)
    check_extents(claims, "bare", nameless, programs_of(run_.out) / "bare", "bare")


def headless(run_, claims):
    for name in HEADLESS:
        report, nameless = check_program(run_, claims, name, name)
        counts = sorted((row["samples"] for row in nameless), reverse=True) if name == "no-headers" else [
            samples_of(report, function) for function in ("often", "seldom")]
        claims.check(len(counts) >= 2 and sum(counts[:2]) > 500, f"{name}: {sum(counts[:2])} samples of the two functions")
        claims.share(f"{name}: the longer one of two functions", counts[0], (sum(counts[:2]), report), KNOWN)
        ends = report["walks"]["guest_user"]
        claims.check(ends.get("whole", 0) >= 0.99 * sum(ends.values()), f"{name}: stacks without section headers are whole: {ends}")


run_names.is_virtual = True
run_headless.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: stripped programs, and a container", run_names, names),
        ("names: programs without section headers", run_headless, headless)]
