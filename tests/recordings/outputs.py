#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares everything that vperf prints of the recordings in whole/ with what it printed before.

usage: tests/recordings/outputs.py VPERF [--only NAME]
       tests/recordings/outputs.py VPERF --write [--only NAME]   keeps what is printed today

whole/NAME.tar.xz is a recording of a lab test, whole/NAME.txt has each command with the beginning of its output,
and a checksum of all of it. The lab tests show that these outputs are right; this test shows that they did not
change. After a change that is meant, look at the difference of NAME.txt in git.
"""
import argparse
import difflib
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "whole"
SHOWN, WIDE = 16, 200  # lines of each output that are kept, and characters of a line
WORD = re.compile(r"[\w.$@<>~]+")
# Nothing of the machine that reads: not its files, its terminal, its language, its time zone.
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "120",
               **{key: value for key, value in os.environ.items() if key.startswith(("ASAN_", "UBSAN_", "LSAN_", "LD_"))}}

PROFILE = ["report", "report -v --per-vcpu", "report --per-process --sort vm,process,pid,module,function --json", "report --csv",
           "report --folded", "report --view host", "report --view host --format script", "report --format jsonl",
           "report --no-children --call-graph=caller,0.5", "report -j 3 --json"]
ACCOUNT = ["account", "account --json", "account --csv --sort guest", "account --events --csv", "steal -v", "steal --json", "steal --csv",
           "exits -v", "exits --by function --json", "exits --by process --csv", "exits --by address", "diagnose", "diagnose --json",
           "info -v", "info --json"]
TRACE = ["script", "script --json --clock offset", "script --csv --clock rfc3339", "timeline --track pcpu --csv", "timeline --json",
         "timeline --track thread --csv", "sched -v", "sched --json", "sched --table wakeups --csv"]
CRITICAL = ["critical --vm g1 --thread chain-waiter -v", "critical --vm g1 --thread chain-reader --json",
            "critical --vm g1 --thread 82 --table chain --csv --time +0.4,+0.6"]
COUNTS = ["stat report", "stat report --json", "stat report --csv --subjects --live --partial", "stat report --format arff"]
EXPORTS = ["folded", "speedscope", "pprof", "otlp", "pyroscope", "parca", "perfetto", "chrome", "perf", "ctf", "babeltrace", "trace.dat",
           "csv", "jsonl", "script"]
HOST_FILES = ("report", "exits", "html", "export", "diagnose")  # commands with --no-host-files


def commands(directory):
    """For the recording DIRECTORY, words after 'vperf' without the directory."""
    directory = pathlib.Path(directory)
    if list((directory / "host").glob("intervals-*")):
        yield from [*COUNTS, "report", "info -v", "info --json", "html", "export csv"]
        return
    yield from [*PROFILE, *ACCOUNT, *TRACE, *(CRITICAL if directory.name == "critical" else []), f"diff {directory.name}",
                f"diff --json {directory.name}", f"html --diff {directory.name}"]
    for name in sorted({line.split()[-1] for line in (directory / "vms").read_text().splitlines() if line.startswith("vm ")}):
        yield from (f"{words} --vm {name}" for words in ("report --view guest", "report --view guest --per-vcpu --json", "script", "timeline --csv"))
    yield "html"
    yield from (f"export {form}" for form in EXPORTS)


def content(out):
    """The bytes of a file, or of each file below a directory."""
    if out.is_dir():
        return b"".join(f"== {path.relative_to(out)} {path.stat().st_size}\n".encode() + path.read_bytes()
                        for path in sorted(out.rglob("*")) if path.is_file())
    return out.read_bytes() if out.exists() else b""


def data_of(command, output):
    """The data of a page: its program is as esbuild of this machine writes it."""
    page = re.search(rb'<script id="data".*?</script>', output, re.S) if command == "html" else None
    return page[0] + b"\n" if page else output


def run(vperf, words, directory):
    """Output, messages and exit status."""
    directory = pathlib.Path(directory)
    words = words.split()
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:  # its name is in files for perf; its length always the same
        out = pathlib.Path(scratch) / "out"
        options = ["--no-host-files"] if words[0] in HOST_FILES else []
        written = ["-o", str(out)] if words[0] in ("html", "export") else []
        done = subprocess.run([vperf, *words, *options, *written, directory.name], cwd=directory.parent, env=ENVIRONMENT,
                              capture_output=True, check=False)
        messages = re.sub(rb" \([\d.]+ \w+\)$", b"", done.stderr, flags=re.M) if words[0] == "html" else done.stderr  # the page's size
        return (done.stdout + data_of(words[0], content(out)) + messages + f"exit status {done.returncode}\n".encode()).replace(scratch.encode(), b"SCRATCH")


def whole(vperf, directory):
    """The output of each command for a recording."""
    version = subprocess.run([vperf, "--version"], capture_output=True, check=True).stdout.split()[-1]
    return {words: run(vperf, words, directory).replace(version, b"VERSION") for words in commands(directory)}


def shown(words, output):
    """The command, the beginning of its output if that is text, and a checksum of all."""
    lines = [f"... {len(output)} bytes"] if b"\0" in output else [
        line if len(line) <= WIDE else f"{line[:WIDE]}..." for line in output.decode(errors="backslashreplace").splitlines()]
    more = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    return "\n".join([f"$ vperf {words}", *(line.rstrip() for line in lines[:SHOWN]), *more,
                      f"sha256 {hashlib.sha256(output).hexdigest()[:16]}", "", ""])


def check(vperf, archive, write):
    """The differences."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as files:
            files.extractall(scratch)
        outputs = whole(vperf, pathlib.Path(scratch) / archive.name.split(".")[0])
    if missing := [words for words, output in outputs.items() if b"was built without it" in output]:
        print(f"this vperf was built without: {', '.join(missing)}")
    got = "".join(shown(words, output) for words, output in outputs.items() if words not in missing)
    kept = archive.parent / f"{archive.name.split('.')[0]}.txt"
    if write:
        kept.write_text(got)
    before = "".join(f"$ vperf {part}" for part in (kept.read_text() if kept.exists() else "").split("$ vperf ")[1:]
                     if part.partition("\n")[0] not in missing)
    return "".join(difflib.unified_diff(before.splitlines(keepends=True), got.splitlines(keepends=True), "before", "now", n=1))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("vperf", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    archives = [path for path in sorted(HERE.glob("*.tar.xz")) if options.only in (path.name.split(".")[0], "")]
    failed = 0
    for archive in archives:
        differences = check(options.vperf, archive, options.write)
        failed += bool(differences)
        print(f"{'NOT OK' if differences else 'ok'}: {archive.name.split('.')[0]}\n{differences}", end="")
    print(f"{len(archives) - failed} passed, {failed} failed")
    return 0 if archives and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
