# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the benchmarks in the lab: one boot under icount, and a fixed piece of work in a guest,
run again and again, each time with another profiler around it.

The guest waits at its second serial port: told "go", it runs the work and answers with the work's own
closing line. So nothing has to be timed from outside, and a profiler is ready before the work starts.
"""
import base64
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = "/run/bench"  # on the lab host, in memory: no disk and no share gets into the figures

# Runs on the lab host: `trigger LOG LABEL [DIR]` is the profiler's command, and the profiler its
# parent. Output of bpftool about programs before and after the work goes to DIR; the CPU time of all
# threads, by name, to LOG.threads.
TRIGGER = r"""
import glob, json, os, re, socket, subprocess, sys, time

def cpu_ns(pid):
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            total += int(f.read().split()[0])
    return total

def note_programs(name):
    if len(sys.argv) > 3:
        with open(f"{sys.argv[3]}/{name}", "w") as out:
            subprocess.run(["bpftool", "-j", "prog", "show"], stdout=out, check=True)

def threads(profiler):
    found = {}
    for task in glob.glob("/proc/[0-9]*/task/*"):
        try:
            with open(f"{task}/comm") as f:
                name = re.sub(r"[0-9]+$", "", f.read().strip())
            with open(f"{task}/schedstat") as f:
                ns = int(f.read().split()[0])
        except OSError:  # it is over
            continue
        found[task] = ("profiler" if task.startswith(f"/proc/{profiler}/") else name, ns)
    return found

def note_threads(before, after):
    spent = {}
    for task, (name, ns) in after.items():
        spent[name] = spent.get(name, 0) + ns - before.get(task, (name, 0))[1]
    with open(sys.argv[1] + ".threads", "a") as log:
        print(json.dumps({"label": sys.argv[2], "ns": {k: v for k, v in spent.items() if v}}), file=log)

def measured():
    profiler = os.getppid()
    guest = socket.socket(socket.AF_UNIX)
    guest.connect("/run/vlab/g1.work")
    time.sleep(0.5)  # the profiler's own start is over
    note_programs("before")
    threads_before = threads(profiler)
    before, start = cpu_ns(profiler), time.monotonic()
    guest.sendall(b"go\n")
    answer = b""
    while b"\n" not in answer.partition(b"elapsed_s=")[2]:
        answer += guest.recv(4096)
    own = cpu_ns(profiler) - before
    note_threads(threads_before, threads(profiler))
    note_programs("after")
    line = [l for l in answer.decode().splitlines() if "elapsed_s=" in l][0]
    with open(sys.argv[1], "a") as log:
        print(sys.argv[2], own, f"{time.monotonic() - start:.6f}", line, file=log)

measured()
"""

SCENARIO = """\
host pcpus=1 icount=yes memory=3072 {host}
guest g1 vcpus=1 memory=256 pin=0 truth=no {guest} qemu="-serial unix:/run/vlab/g1.work,server=on,wait=off"
workload g1 sh -c 'stty -F /dev/ttyS1 raw -echo; exec 3<>/dev/ttyS1; while read go <&3; do {work} | tail -n 1 >&3; done'
"""

# icount counts each round of `rep movs`: where the processor has ERMS or FSRM, the kernel copies by bytes.
WORDS = "cpu=max,-erms,-fsrm"


def add_words(parser):
    parser.add_argument("--words", dest="host", action="store_const", const=WORDS, default="",
                        help="a processor without ERMS and FSRM: the kernel copies memory by words, of which each counts, not by bytes")


def trigger(label, programs=""):
    """The command that a profiler is to run; `programs` is where to note what its programs cost."""
    return f"python3 {SCRATCH}/trigger /out/runs {label} {programs}"


def run_commands(commands, iterations, out, host="", work=None, guest=""):
    """Boots the lab host and runs the shell commands there, one after another; returns `out`.
    `work` is what the guest does, in place of `iterations` half milliseconds of computing."""
    work = work or f"shares a=80 b=20 --iterations {iterations}"
    text = SCENARIO.format(work=work, host=host, guest=guest)
    # No quote of any kind may be in what a scenario's line holds, and not every lab host sees this
    # machine's files: scripts go by the scenario itself.
    script = "\n".join(["set -e", f"cd {SCRATCH}", *commands]) + "\n"
    lines = [f"command mkdir -p {SCRATCH}"]
    lines += [f"command echo {base64.b64encode(held.encode()).decode()} | base64 -d > {SCRATCH}/{name}"
              for name, held in (("trigger", TRIGGER), ("commands", script))]
    lines.append(f"command bash {SCRATCH}/commands")
    (out.parent / "bench.scn").write_text("\n".join([text, *lines, ""]))
    command = [str(REPOSITORY / "lab/vlab"), "run", str(out.parent / "bench.scn"), "--out", str(out),
               "--timeout", "3000"]
    run = subprocess.run(command, stdout=sys.stderr, check=False)
    if run.returncode:
        log = out / f"host/command-{len(lines)}.err"
        sys.stderr.write(log.read_text(errors="replace") if log.exists() else "")
        sys.exit("bench: the lab run failed")
    return out


class Run:
    """One run of the work: what the guest and the trigger measured."""

    def __init__(self, line):
        self.label, own, _, rest = line.split(None, 3)
        self.own_s = int(own) / 1e9
        self.elapsed_s = float(re.search(r"elapsed_s=([\d.]+)", rest).group(1))


def read_runs(out):
    """The runs by label."""
    runs = {}
    for line in (out / "runs").read_text().splitlines():
        run = Run(line)
        runs.setdefault(run.label, []).append(run)
    return runs


def read_threads(out):
    """CPU seconds of threads, by label and name; of several runs, the last."""
    found = {}
    for line in (out / "runs.threads").read_text().splitlines():
        row = json.loads(line)
        found[row["label"]] = {name: ns / 1e9 for name, ns in row["ns"].items()}
    return found


def median(values):
    """0 if missing."""
    values = list(values)
    return statistics.median(values) if values else 0


def vperf():
    """The vperf of the same build that the lab host gets."""
    return str(pathlib.Path(os.environ.get("VLAB_VPERF_BUILD", REPOSITORY / "build")) / "vperf")


def vperf_samples(directory):
    """(samples, lost records) of a recording."""
    info = json.loads(subprocess.run([vperf(), "info", "--json", str(directory)], check=True,
                                     capture_output=True, text=True).stdout)
    return info


def perf_samples(path):
    """(samples, lost events) of a perf.data."""
    text = subprocess.run(["perf", "report", "-i", str(path), "--stats"], check=True,
                          capture_output=True, text=True).stdout
    found = re.search(r"SAMPLE events:\s+(\d+)", text)
    lost = re.search(r"LOST(?:_SAMPLES)? events:\s+(\d+)", text)
    return int(found.group(1)), int(lost.group(1)) if lost else 0


def print_programs(text):
    """Instructions of each program that ran, from what `bpftool -j prog show` printed there."""
    for program in json.loads(text):
        if program.get("run_cnt"):
            print(f"    {program.get('name', '?'):20} {program['run_cnt']:10d} runs of "
                  f"{program['run_time_ns'] / program['run_cnt']:6.0f} instructions")


def workspace(path):
    """A directory for everything of a benchmark's run: the given one, or a temporary one."""
    base = path or pathlib.Path(tempfile.mkdtemp(prefix="vperf-bench-"))
    base.mkdir(parents=True, exist_ok=True)
    return base.resolve()
