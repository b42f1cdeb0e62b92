"""One step: settle, prepare, trace, measure, read the figure. What it brings stays in a directory of its own."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from . import environment, guest, noise, seen, xenguest
from .common import BenchError, program, read_text, write_json
from .plan import Configuration, Plan, Test
from .tracers import TRACERS

GRACE = 60  # seconds that a tracer may take to write what it has
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
OUTPUT = 1 << 20  # bytes of a test's output in which its figure is looked for


class StepFailed(BenchError):
    """This run gives no figure; the next may."""


@dataclass(frozen=True)
class Job:
    """What a step is to do, and where it keeps what it brings."""

    plan: Plan
    configuration: Configuration
    test: Test
    cold: bool
    directory: Path


def last_line(path: Path, missing: str) -> str:
    """The end of what a program said, for a message; `missing` where it said nothing."""
    try:
        with open(path, "rb") as handle:
            handle.seek(-min(4096, os.fstat(handle.fileno()).st_size), os.SEEK_END)
            lines = handle.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    return "".join(char if char.isprintable() else "?" for char in (lines or [missing])[-1][:200])


def adopt_orphans() -> None:
    """Processes that a test leaves behind become this one's children, and can be ended."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def end_orphans(kept: set[int]) -> int:
    """Ends what is left of a step; how many these were."""
    ended = 0
    for _ in range(20):
        found = read_text(f"/proc/self/task/{os.getpid()}/children").split()
        children = [int(word) for word in found if int(word) not in kept]
        for child in children:
            try:
                state = read_text(f"/proc/{child}/stat").rpartition(")")[2].split()[:1]
                if state != ["Z"]:
                    os.kill(child, signal.SIGKILL)
                    ended += 1
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        if not children:
            break
    return ended


def drop_caches() -> None:
    """Nothing of a file is in memory afterwards."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    except OSError as error:
        raise StepFailed(f"the caches cannot be dropped: {error.strerror}") from error


def read_figure(test: Test, measured: dict, output: str) -> float:
    """The test's figure of a run."""
    if test.figure.kind != "pattern":
        return measured[test.figure.kind]
    found = re.findall(test.figure.pattern, output)
    if not found:
        raise StepFailed(f"the figure cannot be read: nothing in the output fits '{test.figure.pattern}'")
    try:
        return float(found[-1].replace(",", ""))
    except ValueError as error:
        raise StepFailed(f"the figure cannot be read: '{found[-1]}' is no number") from error


def _shell(command: str, directory: Path, scale: int, limit: float, what: str, log: Path) -> None:
    """A part of a step that is not measured."""
    with open(log, "wb") as out:
        process = subprocess.Popen(["sh", "-c", command], cwd=directory, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, "SCALE": str(scale), "LC_ALL": "C"})
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise StepFailed(f"{what} took longer than {limit:g} s") from None
    if status:
        raise StepFailed(f"{what} ended with status {status}: {last_line(log, 'no output')}")


class Tracing:
    """A tracer around the measured command."""

    def __init__(self, job: Job) -> None:
        self.tracer = TRACERS[job.configuration.tracer]
        self.out = job.directory / "tracer"
        self.options = list(job.configuration.tracer_options)
        self.background: subprocess.Popen | None = None
        self.out.mkdir()

    def _fill(self, words: tuple) -> list[str]:
        filled = self.tracer.fill(words, self.out, self.options)
        return [program(filled[0]) or filled[0], *filled[1:]] if filled else []

    def start(self) -> list[str]:
        """What is put before the measured command."""
        for words in self.tracer.start:
            self._call(words)
        if self.tracer.background:
            with open(self.out / "log", "ab") as log:
                self.background = subprocess.Popen(self._fill(self.tracer.background), stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log, start_new_session=True)
            time.sleep(1)
            if self.background.poll() is not None:
                raise StepFailed(f"the tracer {self.tracer.title} ended at once: {read_text(self.out / 'log')[-200:]}")
        return self._fill(self.tracer.prefix)

    def _call(self, words: tuple) -> None:
        done = subprocess.run(self._fill(words), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=GRACE)
        with open(self.out / "log", "a", encoding="utf-8") as log:
            log.write(done.stdout + done.stderr)
        if done.returncode:
            raise StepFailed(f"{' '.join(words)} ended with status {done.returncode}: {done.stderr.strip()[-200:]}")

    def stop(self) -> None:
        """It has written what it has."""
        if self.background:
            self.background.send_signal(signal.SIGINT)
            try:
                self.background.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(self.background.pid, signal.SIGKILL)
                self.background.wait()
        for words in self.tracer.stop:
            self._call(words)

    def size(self) -> int:
        """Bytes of what it wrote."""
        return sum(path.stat().st_size for path in self.out.rglob("*") if path.is_file() and path.name != "log")


def _measure(job: Job, spec: dict, tracing: Tracing) -> dict:
    """The measured command under its tracer."""
    own = job.directory / "spec.json"
    write_json(own, spec)
    pin = ["taskset", "-c", job.configuration.cpus] if job.configuration.cpus and not spec.get("guest") else []
    command = [*tracing.start(), *pin, sys.executable, str(Path(__file__).with_name("measure.py")), str(own)]
    limit = job.test.limit * (1.5 if spec.get("guest") else 1) + 30 + GRACE
    with open(tracing.out / "log", "ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise StepFailed(f"the tracer did not end within {GRACE} s of the test's time limit") from None
    tracing.stop()
    try:
        measured = json.loads(Path(spec["result"]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise StepFailed(f"nothing was measured, the tracer ended with status {status}: "
                         f"{last_line(tracing.out / 'log', 'no output')}") from None
    if status:
        raise StepFailed(f"the tracer {tracing.tracer.title} ended with status {status}: "
                         f"{last_line(tracing.out / 'log', 'no output')}")
    return measured


def _judge(job: Job, measured: dict, out: Path) -> dict:
    """The figure, if the run was one."""
    if measured["late"]:
        raise StepFailed(f"the test took longer than its time limit of {job.test.limit:g} s")
    if measured["status"]:
        raise StepFailed(f"the test ended with status {measured['status']}: {last_line(out / 'stderr', 'no message')}")
    text = "".join((out / name).read_bytes()[-OUTPUT:].decode("utf-8", "replace") for name in ("stdout", "stderr"))
    return {**measured, "figure": read_figure(job.test, measured, text)}


def _on_machine(job: Job, tracing: Tracing) -> dict:
    test = job.test
    with tempfile.TemporaryDirectory(dir=job.configuration.directory, prefix="vperf-bench.", ignore_cleanup_errors=True) as name:
        work = Path(name)
        if not job.cold:
            (work / "warm").mkdir()
            _shell(f"{test.prepare}\n{test.command}", work / "warm", test.scale, test.limit, "the hot run",
                   job.directory / "warm.out")
            shutil.rmtree(work / "warm")
        (work / "test").mkdir()
        if test.prepare:
            _shell(test.prepare, work / "test", test.scale, test.limit, "the preparation", job.directory / "prepare.out")
        if job.cold:
            drop_caches()
        spec = {"command": test.command, "directory": str(work / "test"), "limit": test.limit, "scale": test.scale,
                "stdout": str(job.directory / "stdout"), "stderr": str(job.directory / "stderr"),
                "result": str(job.directory / "measured.json")}
        before = noise.look()
        measured = _measure(job, spec, tracing)
        return {**_judge(job, measured, job.directory), "noise": noise.between(before, noise.look())}


def _in_guest(job: Job, tracing: Tracing) -> dict:
    test, share = job.test, job.directory / "guest"
    inside = {"command": test.command, "directory": "/run/work/test", "limit": test.limit, "scale": test.scale,
              "stdout": "/vperf-bench/stdout", "stderr": "/vperf-bench/stderr", "result": "/vperf-bench/measured.json"}
    files = {"prepare": test.prepare, "warm": "" if job.cold else f"{test.prepare}\n{test.command}",
             "spec.json": json.dumps(inside)}
    python = os.path.realpath(sys.executable)
    disk = Path(job.configuration.directory) / f"vperf-bench-{os.getpid()}.disk"
    machine = (xenguest.XenGuest(job.configuration, list(test.needs), share, disk) if job.configuration.on_xen else
               guest.Guest(job.configuration, share, disk))
    try:
        try:
            machine.start(files, test.scale, job.cold, python)
        except BenchError as error:
            raise StepFailed(str(error)) from error
        before = noise.look()
        spec = {"guest": str(share), "limit": test.limit, "result": str(job.directory / "measured.json")}
        measured = _measure(job, spec, tracing)
        after = noise.look()
    finally:
        machine.stop()
    if measured["status"] is None:
        raise StepFailed(f"the guest did not answer: {read_text(share / 'failed') or 'no word of it'}")
    return {**_judge(job, measured, share), "noise": noise.between(before, after),
            "guest": machine.name, "guest-kernel": read_text(share / "kernel")}


def run(job: Job) -> dict:
    """Its result: figure, times, noise, what vperf saw. StepFailed: there is no figure, and why."""
    job.directory.mkdir(parents=True)
    versions = {name: environment.version(name) for name in job.plan.programs()}
    write_json(job.directory / "environment.json", {**environment.describe(), "versions": versions})
    kept = {int(word) for word in read_text(f"/proc/self/task/{os.getpid()}/children").split()}
    settled = noise.settle(job.plan.settle)
    tracing = Tracing(job)
    try:
        result = (_in_guest if job.configuration.in_guest else _on_machine)(job, tracing)
    finally:
        left = end_orphans(kept)
    result.update({"settle": settled, "left-behind": left, "tracer-bytes": tracing.size()})
    if not settled["settled"]:
        result["noise"]["warnings"].append({"what": "the machine was busy when the step began", "percent": settled["busy"]})
    if tracing.tracer.recording:
        recordings = sorted(tracing.out.glob("recording*"))  # a flight recorder puts a time after the name
        result["seen"] = (seen.look(recordings[-1], job.directory, result.get("guest", "")) if recordings else
                          {"why": "there is no recording"})
    return result
