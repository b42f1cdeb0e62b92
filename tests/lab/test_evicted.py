# SPDX-License-Identifier: GPL-2.0-or-later
"""Names and call chains of programs whose tables have left the guest's page cache: text that is mapped stays there, tables do not. Each program
is recorded before and after the guest drops its caches."""
import os
import re
import subprocess
from pathlib import Path
from unittest import mock

from lab import run_scenario
from test_names import extents_of, is_unnamed, user_rows
from test_unwind import LEAST, SOURCE, TREES, check_openssl, judge, stacks_of
from vlablib import debian_programs
from vlablib.arch import AMD64

# Percent of a program's samples without a function that need no note.
MOST_UNNAMED = 1.0
# Functions before and after the known ones, for tables that are larger than what the kernel maps around a page fault (64 KiB).
FILLERS = 4000
# The guest's libraries and programs are on a disk: what is in its initramfs cannot be evicted. Libraries are those of the host, which has them
# at the same place.
DISK = "/usr/lib/x86_64-linux-gnu"
PREPARE = f"""set -e
mke2fs /dev/vda > /dev/null
mkdir -p {DISK} /mnt
mount -t ext4 /dev/vda /mnt
cp /lib/x86_64-linux-gnu/* /evicted /packed /mnt
chmod 755 /mnt/*
umount /mnt
mount -t ext4 /dev/vda {DISK}
"""
DROP = "echo 3 > /proc/sys/vm/drop_caches\n"
# The first part is before the program's tables are evicted.
RECORD = "nice -n -15 vperf record -g -e cpu-clock --no-agent --vm g1 -o /out/{name} -- lab-guest busy g1 3"
OWN = {name: [*callers, name] for name, callers in TREES.items() if name != "burn_destructor"}
PROGRAMS = ("evicted", "packed")
# The host has no such program, but a download of debuginfod's client.
CACHE = "/run/downloads"


def compile_program(work):
    """The known program in C, between many small functions."""
    (work / "trees.c").write_text(SOURCE)
    sources = [work / "before.c", work / "trees.c", work / "after.c"]
    for source in (sources[0], sources[2]):
        source.write_text("".join(f"int {source.stem}_{i}(int x) {{ return x * {i} + 1; }}\n" for i in range(FILLERS)))
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-toplevel-reorder", "-o", work / "full", *sources], check=True, timeout=300)


def build(work):
    """A stripped program, and one with its symbols in .gnu_debugdata. Not as ELF files: the lab would add libraries."""
    compile_program(work)
    full, small = work / "full", work / "small"
    subprocess.run(["strip", "-o", work / "evicted", full], check=True)
    subprocess.run(["objcopy", "--strip-debug", full, small], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", small, small], check=True)
    subprocess.run(["xz", "-f", small], check=True)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={small}.xz", work / "evicted", work / "packed"], check=True)


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def run_evicted(directory):
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    build(work)
    for name, text in (("prepare", PREPARE), ("drop", DROP),
                       *((f"start-{name}", f"cat {DISK}/* > /dev/null; exec {DISK}/{name} 600\n") for name in PROGRAMS),
                       ("start-openssl", f"LD_LIBRARY_PATH={DISK} exec openssl speed -elapsed -seconds 600 -bytes 16384 sha512\n")):
        (work / name).write_text(text)
    fetched = debian_programs.get(AMD64, ("openssl",))
    files = {"/bin/openssl": fetched / "usr/bin/openssl"} | {f"/{name}": work / name for name in PROGRAMS}
    files |= {f"/{name}": work / name for name in ("prepare", "drop", *(f"start-{name}" for name in (*PROGRAMS, "openssl")))}
    lines = "".join(f"file g1 {source} {path}\n" for path, source in files.items())
    records = "command lab-guest run g1 sh /prepare\n"
    for name in (*PROGRAMS, "openssl"):
        before = f"{RECORD.format(name=f'{name}-before')}; " if name in PROGRAMS else ""
        after = name if name == "openssl" else f"{name}-after"
        records += (f"command job=$(lab-guest spawn g1 sh /start-{name}); lab-guest busy g1 1; {before}"
                    f"lab-guest run g1 sh /drop; {RECORD.format(name=after)}; lab-guest end g1 $job || [ $? = 143 ]\n")
    cached = f"{CACHE}/{build_id_of(work / 'evicted')}"
    records += (f"command mkdir -p {cached}; cp {(work / 'evicted').resolve()} {cached}/executable\n"
                f"command job=$(lab-guest spawn g1 sh /start-evicted); lab-guest busy g1 1; lab-guest run g1 sh /drop; DEBUGINFOD_CACHE_PATH={CACHE} "
                f"{RECORD.format(name='evicted-download')}; lab-guest end g1 $job || [ $? = 143 ]; cp -r {CACHE} /out\n")
    guest = ('guest g1 vcpus=1 memory=512 truth=no kernel=bookworm flavour=cloud autostart=no '
             'qemu="-drive if=none,id=d1,file=/run/d1.img,format=raw -device virtio-blk-pci,drive=d1"')
    start = "command truncate -s 64M /run/d1.img; lab-guest start g1\n"
    return run_scenario(f"host pcpus=1 icount=yes memory=2048\n{guest}\n{lines}{start}{records}", directory, timeout=1800, silence=900)


def known_functions(full):
    """The program's functions by symbols: start and end, as offsets in the file, and names."""
    named = subprocess.run(["nm", "-S", "--defined-only", full], check=True, capture_output=True, text=True).stdout
    # Text has the same offsets and addresses in this program; extents_of() has offsets.
    return [(int(start, 16), int(start, 16) + int(size, 16), name)
            for start, size, name in re.findall(r"^(\w+) (\w+) [Tt] (\w+)$", named, re.MULTILINE)]


def place_of(frame, program):
    """The place of a frame or row without a name in the program, and whether vperf takes it for the start of a function."""
    found = re.fullmatch(rf"{program}([:+])0x([0-9a-f]+)", frame)
    return (int(found[2], 16), found[1] == ":") if found else (None, False)


def name_of(frame, program, functions):
    """The true name of a frame: its own, or that of its place."""
    place, _ = place_of(frame, program)
    return frame if place is None else next((name for start, end, name in functions if start <= place < end), frame)


def map_notes(run, recording):
    return [note for vm in run.info(recording)["vms"] for note in vm["maps"]["notes"]]


def notes_of(run, recording, path):
    """Notes of vperf about missing names in the file."""
    return [note for note in map_notes(run, recording) if f"function names of '{path}'" in note]


def check_rows(run, claims, recording, program, functions, extents):
    """Names are right, starts of functions are those of the unwind tables; percent of the samples without a function."""
    report = run.report("guest", "--vm", "g1", "--no-host-files", recording=recording)
    rows = user_rows(report, program)
    own = [row for row in rows if (row["module"] or "").endswith(f"/{program}")]
    total, samples = (sum(row["samples"] for row in of) for of in (rows, own))
    claims.check(total > 500 and samples > 0.95 * total, f"{recording}: {samples} of {total} samples are in the program's file")
    starts = {start for start, _ in extents}
    known = {name for _, _, name in functions}
    wrong = []
    for row in own:
        place, is_start = place_of(row["function"] or "", program)
        if row["function"] and (place is None and row["function"] not in known or is_start and place not in starts):
            wrong.append(row["function"])
    claims.check(bool(own) and not wrong, f"{recording}: none of {len(own)} rows has a wrong function: {wrong[:5]}")
    return 100 * sum(row["samples"] for row in own if is_unnamed(row["function"])) / max(total, 1)


def check_chains(run, claims, recording, program, functions, is_whole, *options):
    """Chains are those of the known tree; without tables, what is there of it."""
    report, stacks = stacks_of(run, recording, program, *options)
    ends = report["walks"]["guest_user"]
    claims.note(f"{recording}: {ends}")
    own = {name for tree in OWN.values() for name in tree}
    for burning, tree in OWN.items():
        def is_right(frames, tree=tree):
            found = [name for name in (name_of(frame, program, functions) for frame in frames) if name in own]
            return found == (tree if is_whole else tree[-len(found):])
        judge(claims, f"chains of {burning} in {recording} are those of its known tree{'' if is_whole else ', or its innermost part'}",
              [stack for stack in stacks if name_of(stack["frames"][-1], program, functions) == burning], is_right)
    return ends


def check_download(run, claims, functions):
    """The download is used for chains, from a second on."""
    name = "evicted-download"
    notes = notes_of(run, name, f"{DISK}/evicted")
    claims.check(len(notes) == 1, f"{name}: the program's tables were evicted: {notes}")
    check_chains(run, claims, name, "evicted", functions, True, *run.settled(name, "evicted", 1))
    # Symbols, too: the report has the names of functions.
    cache = run.out / Path(CACHE).name
    work = Path(f"{run.out}.programs")
    subprocess.run(["objcopy", "--only-keep-debug", work / "full", cache / build_id_of(work / "full") / "debuginfo"], check=True)
    with mock.patch.dict(os.environ, {"DEBUGINFOD_CACHE_PATH": str(cache), "DEBUGINFOD_URLS": ""}):
        report = run.report("guest", "--vm", "g1", recording=name)
    rows = {row["function"] for row in user_rows(report, "evicted") if (row["module"] or "").endswith("/evicted")}
    known = {function for _, _, function in functions}
    claims.check(rows >= OWN.keys() and rows <= known, f"{name}: the report has names by the downloads: {sorted(map(str, rows))[:8]}")


def check(run, claims):
    work = Path(f"{run.out}.programs")
    functions, extents = known_functions(work / "full"), extents_of(work / "evicted")
    for program in PROGRAMS:
        before, after = f"{program}-before", f"{program}-after"
        unnamed = check_rows(run, claims, before, program, functions, extents)
        notes = notes_of(run, before, f"{DISK}/{program}")
        claims.check(unnamed <= MOST_UNNAMED and not notes, f"{before}: {unnamed:.2f} % of the samples have no function, at most {MOST_UNNAMED}: {notes}")
        check_chains(run, claims, before, program, functions, True)
        unnamed = check_rows(run, claims, after, program, functions, extents)
        notes = notes_of(run, after, f"{DISK}/{program}")
        claims.check(len(notes) == 1, f"{after}: {unnamed:.2f} % of the samples have no function, and a note has the reason: {notes}")
        # The symbols of one program are in a section that is not loaded.
        notes = [note for note in map_notes(run, after) if "section headers are not in the guest's page cache" in note]
        claims.check(len(notes) == 1, f"{after}: a note has the files whose symbols may be missing: {notes}")
        ends = check_chains(run, claims, after, program, functions, False)
        # Otherwise the tables are still in the page cache, and the test is void.
        claims.check(ends.get("whole", 0) < 0.5 * sum(ends.values()), f"{after}: chains that end early have a reason: {ends}")
    check_download(run, claims, functions)
    notes = notes_of(run, "openssl", f"{DISK}/libcrypto.so.3")
    claims.check(len(notes) == 1, f"openssl: the library's tables were evicted: {notes}")
    # The host has the same library; its tables are used within a second.
    check_openssl(run, claims, *run.settled("openssl", "openssl", 1))


run_evicted.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: tables that left the page cache", run_evicted, check)]
