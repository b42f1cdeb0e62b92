# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of VMs that attack what vperf writes, and claims about its output."""
import csv
import gzip
import html.parser
import io
import json
import re
import subprocess

NAMES = [b'quote"back\\slash{vm="x"} 1', b"line\n# HELP vperf_up up\nvperf_up 1", b"../../../../tmp/escaped", b"/tmp/absolute", b"<script>alert(1)</script>&amp;'\"",
         b"\x1b]0;title\x07\x1b[2J\x1b[31mred", b"A" * 4096, b"\xff\xfe\x80bad \xc3", b"- !!python/object: {{ $labels }} ${HOME} `id` $(id) %s%n",
         "\u202eright\u2028separator\u009b31m".encode(), b"tab\tcarriage\rreturn", b"--help"]
# Control characters (C0 except newline and tab, DEL, C1), line separators, and those that reverse the text around them.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(claims, what, data):
    """The text, if it is UTF-8 and has nothing that a terminal obeys."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        claims.check(False, f"{what}: is not UTF-8: {error}")
        return ""
    found = CONTROL.search(text)
    claims.check(not found and bool(text.strip()), f"{what}: no control characters" + (f": {text[max(0, found.start() - 40):found.end() + 20]!r}" if found else f" in {len(text)}"))
    return text


class Scripts(html.parser.HTMLParser):
    """Finds attributes that run something."""

    def __init__(self, text):
        super().__init__()
        self.handlers = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def check_exports(claims, vperf, recording, out):
    """No format has a name that is not text, or a file that is named by a VM."""
    out.mkdir()
    for form in ("folded", "csv", "jsonl", "script", "speedscope", "pprof", "otlp", "pyroscope", "parca", "perfetto", "chrome", "perf", "ctf", "babeltrace", "trace.dat"):
        done = subprocess.run([vperf, "export", form, "-o", out / form, recording], capture_output=True, check=False)
        claims.check(done.returncode == 0, f"vperf export {form}: status {done.returncode}")
        printable(claims, f"vperf export {form}: messages", done.stderr or b"-")
        if (out / form).is_dir():
            continue
        data = (out / form).read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if form in ("pprof", "otlp", "perfetto"):  # strings between numbers
            raw = [name for name in NAMES if CONTROL.search(name.decode(errors="replace")) or not name.isascii()]
            claims.check(len(data) > 300 and not [name for name in raw if name[:12] in data], f"vperf export {form}: {len(data)} bytes, without the names as they are")
        else:
            printable(claims, f"vperf export {form}", data)
    names = [path.relative_to(out).as_posix() for path in out.rglob("*")]
    wrong = [name for name in names if not re.fullmatch(r"[\w.+/[\]-]+", name, re.ASCII) or ".." in name.split("/")]
    claims.check(len(names) > 20 and not wrong, f"{len(names)} exported files: {wrong[:3]}")


def check_answers(claims, vperf, store, count):
    """Output of the commands that read a store."""
    reads = ("--store", str(store), "--time", ",")

    def answer(*words):
        done = subprocess.run([str(vperf), *words], capture_output=True, check=False)
        claims.check(done.returncode == 0, f"vperf {' '.join(words)[:60]}: status {done.returncode}: {done.stderr[:200]}")
        if done.stderr:
            printable(claims, f"vperf {words[0]}: messages", done.stderr)
        return done.stdout

    for words in (("account", *reads), ("steal", *reads), ("diagnose", *reads), ("report", *reads), ("exits", *reads), ("script", *reads, "--limit", "2000"), ("sched", *reads), ("timeline", *reads),
                  ("info", *reads), ("store", str(store))):
        printable(claims, f"vperf {words[0]}", answer(*words))
        if words[0] not in ("script", "timeline"):
            found = json.loads(printable(claims, f"vperf {words[0]} --json", answer(words[0], "--json", *words[1:])))
            claims.check(bool(found), f"vperf {words[0]} --json is JSON")
            if words[0] == "account":
                vms = {row["vm"] for row in found["states"]}
                claims.check(len(vms) == count, f"vperf account: {len(vms)} VMs")
    rows = list(csv.reader(io.StringIO(printable(claims, "vperf steal --csv", answer("steal", "--csv", *reads)))))
    claims.check(len(rows) > 1 and len({len(row) for row in rows}) == 1, f"vperf steal --csv: {len(rows)} rows of as many fields")
