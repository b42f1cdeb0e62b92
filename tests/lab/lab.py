# SPDX-License-Identifier: GPL-2.0-or-later
"""Shared by the lab tests: runs a scenario once, reads its reports, checks claims about them."""
import csv
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("VPERF_BUILD", REPOSITORY / "build"))
VPERF = BUILD / "vperf"
# For lab hosts of 64-bit Arm: see tools/configure-cross.
BUILD_ARM64 = pathlib.Path(os.environ.get("VPERF_BUILD_ARM64", REPOSITORY / "build-arm64"))

# The lab host or a guest in it died or hangs. vperf may be the cause: such a run has failed.
LAB_FAILURES = re.compile(r"lab failed.*|guest \S+ ended by itself.*|guest \S+ hangs.*")

# Lines of a host's or guest's console or kernel log that report damage, whatever the cause. A message about missing newer microcode
# (Zen 2, of hosts with a PMU) does not. The write to a counter's register is of an event that the lab's PMU does not have: perf counts
# nothing then, and does not report it.
COMPLAINTS = re.compile(r"(?<!Return Stack Overflow: )\bWARNING:|\bBUG:|kernel BUG at|\bOops\b|soft lockup|hard LOCKUP|rcu: .*\bstall|self-detected stall|detected stalls|"
                        r"blocked for more than|segfault at|\btraps: |general protection fault|unhandled (signal|exception)|Kernel panic|"
                        r"Unable to handle kernel|unchecked MSR access error: WRMSR to 0xc0010[02]0")
# A scenario names what its kernels may complain of, in a comment: one regular expression each.
EXPECTED = re.compile(r"^# kernels may say: (.+)$", re.M)

# A recording with more late ticks than this, in percent, has no usable shares, and its test fails. At more than 1000 Hz
# the emulated host is always late: such recordings are for claims about other things.
MOST_LATE, LEAST_PERIOD_NS = 15, 1000000
LATE = 16  # a sample's flag: VP_LATE in src/schema/records.h
# Standard errors that chance may move a share by: once in 16,000 claims.
SIGMAS = 4
SAMPLES = "host_sample,vcpu_sample,guest_sample"


class Claims:
    """Collects what held and what did not; each claim is one line with its figures."""

    def __init__(self, test):
        self.test, self.passed, self.failed, self.lines = test, 0, 0, []

    def note(self, text):
        """A line that is no claim."""
        self.lines.append(f"   {text}")

    def skip(self, why):
        """Something was not looked at, for want of a peer."""
        self.lines.append(f"skipped: {self.test}: {why}")

    def check(self, holds, text):
        self.lines.append(f"{'ok' if holds else 'NOT OK'}: {self.test}: {text}")
        if holds:
            self.passed += 1
        else:
            self.failed += 1

    def near(self, what, value, expected, tolerance):
        self.check(abs(value - expected) <= tolerance,
                   f"{what} is {value:.2f}, expected {expected:.2f} +- {tolerance:.2g}")

    def share(self, what, count, report_or_total, expected, beside=0.0):
        """A share of samples, in percent, is what is expected, within what chance and this run's late
        ticks explain. `beside`: further known deviation, in percentage points."""
        total, late = ticks_of(report_or_total)
        if not total:
            self.check(False, f"{what}: there are no samples")
            return
        self.near(f"{what}, %", 100 * count / total, expected,
                  share_bound(expected, total, late) + beside)


def ticks_of(report_or_total):
    """Samples, and the share of the ticks that came late, of a report; or a number of samples of none."""
    if isinstance(report_or_total, tuple):
        total, report = report_or_total
        return total, late_share(report)
    return report_or_total["samples"], late_share(report_or_total)


def late_share(report):
    return report["late_ticks"] / max(report["ticks"], 1)


def share_bound(percent, total, late):
    """How far a share of `total` samples may be from the true one, in points: chance, and each tick that
    came late may have been another's."""
    share = min(max(percent / 100, 0), 1)
    return 100 * (SIGMAS * math.sqrt(share * (1 - share) / max(total, 1)) + late + 1 / max(total, 1))


class Run:
    """A finished run of a scenario; `out` is the directory that it brought back."""

    def __init__(self, out, status, messages):
        self.out, self.status, self.messages = out, status, messages

    def recording(self, name="rec"):
        return self.out / name

    def command_output(self, number=1, stream="out"):
        return (self.out / "host" / f"command-{number}.{stream}").read_text(errors="replace")

    def story(self):
        """Output of the lab, the commands and the guests, to explain a failed claim."""
        files = [*sorted(self.out.glob("host/command-*.err")), *sorted(self.out.glob("rec*/vms")),
                 *sorted(self.out.glob("guest-*/workloads.log"))]
        parts = [self.messages[-1500:]]
        parts += [f"{path.relative_to(self.out)}:\n{path.read_text(errors='replace')[-1500:]}"
                  for path in files]
        return "\n".join("   | " + line for part in parts for line in part.splitlines())

    def report(self, view, *options, recording="rec"):
        text = vperf("report", str(self.recording(recording)), "--view", view, "--format", "json",
                     *options).stdout
        return json.loads(text)

    def info(self, recording="rec"):
        return json.loads(vperf("info", str(self.recording(recording)), "--json").stdout)

    def facts(self, recording="rec"):
        """The lines KEY VALUE of the recording's own file."""
        lines = (self.recording(recording) / "recording").read_text().splitlines()
        return dict(line.partition(" ")[::2] for line in lines)

    def window_s(self, recording="rec"):
        """Start and end of the recording, in seconds after T0."""
        facts = self.facts(recording)
        t0 = json.loads((self.out / "result.json").read_text())["t0_monotonic_ns"]
        return (int(facts["start"]) - t0) / 1e9, (int(facts["end"]) - t0) / 1e9

    def duration_s(self, recording="rec"):
        facts = self.facts(recording)
        return (int(facts["end"]) - int(facts["start"])) / 1e9

    def settled(self, recording, process, seconds):
        """Report options for the time from `seconds` after the first sample of the guest process: it may start long after the recording."""
        printed = vperf("report", str(self.recording(recording)), "--view", "guest", "--comm", process, "--no-host-files", "--format", "jsonl").stdout
        times = [record["time_ns"] for record in map(json.loads, printed.splitlines()) if record["type"] == "sample"]
        if not times:
            raise RuntimeError(f"{recording}: no samples of {process}")
        return "--time", f"{min(times) / 1e9 + seconds:.9f},"

    def lab_failure(self):
        """The line that reports that the lab died or that a guest in it hangs, or None."""
        failure = LAB_FAILURES.search(self.messages)
        return failure and failure.group()[:300]

    def late_recordings(self):
        """Those with too many late ticks, each with the share that was late, in percent."""
        ret = []
        for path in sorted(self.out.glob("*/recording")):
            done = vperf("report", str(path.parent), "--format", "json", check=False)
            report = json.loads(done.stdout) if done.returncode == 0 else {"ticks": 0, "late_ticks": 0}
            if report.get("period_ns", 0) >= LEAST_PERIOD_NS and late_share(report) > MOST_LATE / 100:
                ret.append((path.parent.name, 100 * late_share(report)))
        return ret

    def complaints(self):
        """Complaints of the hosts' and guests' kernels, except those that the scenario expects."""
        scenario = self.out / "scenario.scn"
        expected = [re.compile(each) for each in EXPECTED.findall(scenario.read_text() if scenario.exists() else "")]
        ret = []
        for path in sorted([*self.out.rglob("console*.log"), *self.out.rglob("kernel.log")]):
            for line in path.read_text(errors="replace").splitlines():
                if COMPLAINTS.search(line) and not any(each.search(line) for each in expected):
                    ret.append(f"{path.relative_to(self.out)}: {line.strip()[:200]}")
        return ret


def vperf(*arguments, check=True):
    """Runs vperf on this machine (the unprivileged half: report, info)."""
    done = subprocess.run([str(VPERF), *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"vperf {' '.join(arguments)}: status {done.returncode}: {done.stderr}")
    return done


def page_of(run, recording="rec"):
    """The data of the page that 'vperf html' makes; None: this vperf was built without it."""
    return page_with(run.out / f"{recording}.html", str(run.recording(recording)))


def page_with(file, *arguments):
    """The same with these arguments; the page is kept in `file`."""
    done = vperf("html", *arguments, "-o", str(file), check=False)
    if "was built without it" in done.stderr:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"vperf html: {done.stderr}")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', file.read_text(), re.S)[1])


def sample_times(run, recording="rec"):
    """The times of all samples, ns, by pCPU."""
    printed = vperf("script", str(run.recording(recording)), "--format", "csv", "--event", SAMPLES).stdout
    ret = defaultdict(list)
    for row in csv.DictReader(printed.splitlines()):
        ret[int(row["pcpu"])].append(int(row["time_ns"]))
    return ret


def is_virtual(scenario):
    """Whether time in that lab is counted in instructions, and does not depend on the machine's load."""
    if callable(scenario):
        return getattr(scenario, "is_virtual", False)
    return any(word in scenario for word in ("icount=yes", "pmu=", "vendor=intel"))


def run_scenario(text, directory, timeout=900, silence=300):
    """Runs the scenario given as text; results go to `directory`. The limits of time for all that it waits for
    are generous: a lab that goes on takes a quarter of either."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    build = BUILD_ARM64 if "arch=arm64" in text else BUILD
    with tempfile.NamedTemporaryFile("w", suffix=".scn", delete=False) as scenario:
        scenario.write(text)
    try:
        done = subprocess.run([str(REPOSITORY / "lab" / "vlab"), "run", scenario.name, "--out",
                               str(directory), "--force", "--timeout", str(timeout), "--silence", str(silence)],
                              capture_output=True, text=True,
                              env={**os.environ, "VLAB_VPERF_BUILD": str(build)})
    finally:
        os.unlink(scenario.name)
    return Run(directory, done.returncode, done.stderr)


def rows_named(report, function):
    return [row for row in report["rows"] if row["function"] == function]


def samples_of(report, function):
    return sum(row["samples"] for row in rows_named(report, function))


def share_of(report, function):
    """Percent of all samples of the report."""
    return 100.0 * samples_of(report, function) / report["samples"]


def steal_rows(report):
    return [row for row in report["rows"] if row["kind"] == "steal"]
