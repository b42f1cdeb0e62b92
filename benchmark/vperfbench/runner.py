"""From the first step to the last, through reboots: what is done next, and what when something goes wrong."""

import errno
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from . import boot, environment, order, step
from .common import BenchError, boot_id, program, say, write_json
from .plan import Plan
from .state import DONE, FAILED, LEFT_OUT, PENDING, RESERVE, RUNNING, State

BOOT_TRIES = 2


class GoingDown(BaseException):
    """The machine is being shut down: what is on disk says where to go on, and nothing is to be added."""


class Machine:
    """What the runner asks of the machine; tests have another one."""

    def __init__(self, script: Path) -> None:
        self.script = script

    def kernel(self) -> str:
        """As uname -r prints it."""
        return platform.release()

    def boot_id(self) -> str:
        """Which boot this is."""
        return boot_id()

    def free(self, path: str) -> int:
        """Bytes that are left there."""
        return shutil.disk_usage(path).free

    def under_xen(self) -> bool:
        """Whether Xen is below."""
        return environment.under_xen()

    def boot_once(self, kernel: str, named: str, xen: bool) -> None:
        """Have the boot loader boot a kernel once."""
        loader = boot.find()
        entry = boot.pick(loader.entries(), kernel, named, xen) if loader else None
        if not loader or not entry:
            raise BenchError(f"the boot loader has no entry for kernel {named or kernel} any more")
        loader.once(entry)

    def reboot(self) -> None:
        """Does not return for long."""
        boot.reboot()

    def going_down(self) -> bool:
        """Whether it is being shut down, by whomever."""
        return boot.going_down()

    def unprepare(self, original: dict) -> None:
        """Everything as it was, but for the kernel that runs."""
        boot.remove_unit()
        loader = boot.find()
        if original.get("reboots") and loader:
            loader.forget()
        for cpu, name in original.get("governors", {}).items():
            try:
                (environment.CPU / cpu / "cpufreq/scaling_governor").write_text(name, encoding="ascii")
            except OSError:
                pass  # a CPU that has gone
        for name in original.get("services", []):
            subprocess.run([program("systemctl") or "systemctl", "start", name], check=False, stdin=subprocess.DEVNULL)

    def prepare(self, plan: Plan, original: dict, directory: Path) -> None:
        """For measurements: after each boot again. From now on it goes on by itself after a boot, where it reboots."""
        if original["reboots"]:
            boot.install_unit([os.path.realpath(sys.executable), str(self.script), "resume", "--from-boot",
                               str(directory)], directory)
        for name in original.get("services", []):
            subprocess.run([program("systemctl") or "systemctl", "stop", name], check=False, stdin=subprocess.DEVNULL)
        if plan.governor:
            for path in environment.CPU.glob("cpu[0-9]*/cpufreq/scaling_governor"):
                path.write_text(plan.governor, encoding="ascii")

    def describe(self, plan: Plan, reboots: bool) -> dict:
        """What has to be put back at the end."""
        active = [name for name in plan.stop_services if subprocess.run(
            [program("systemctl") or "systemctl", "is-active", "--quiet", name], check=False).returncode == 0]
        return {"kernel": self.kernel(), "xen": self.under_xen(), "reboots": reboots, "services": active,
                "governors": environment.governors() if plan.governor else {}}

    def run(self, job: step.Job) -> dict:
        """A step."""
        return step.run(job)


def _named(kernel: str, xen: bool) -> str:
    return kernel + " under Xen" * xen


class Runner:
    """The benchmark of a directory. go() returns when it is over, or when the machine reboots."""

    def __init__(self, plan: Plan, state: State, machine: Machine) -> None:
        self.plan, self.state, self.machine = plan, state, machine
        self.asked = False  # to stop
        self.leaving = False  # the machine was asked to reboot: signals are systemd's

    def begin(self) -> None:
        """Signals stop it after the present step; at once when they come twice, or when the machine goes down."""
        step.adopt_orphans()
        signal.signal(signal.SIGTERM, self.signalled)
        signal.signal(signal.SIGINT, self.signalled)

    def signalled(self, _number: int = 0, _frame: object = None) -> None:
        """Somebody asks to stop, or a shutdown does."""
        if self.leaving:
            return
        if self.machine.going_down():
            raise GoingDown
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("will stop after this step; once more: at once")

    def _stop_wanted(self) -> bool:
        return self.asked or (self.state.directory / "stop").exists()

    def _say(self, text: str) -> None:
        say(text)
        self.state.note(text)

    def _arrive(self) -> bool:
        """After a boot: is this the kernel that was asked for? False: the benchmark ends here."""
        wanted = self.state.values["boot"]
        if not wanted or self.state.phase != "booting":
            return True
        if self.machine.boot_id() == wanted["from"]:
            return True  # not rebooted yet: it was asked to go on by hand
        here, xen = self.machine.kernel(), self.machine.under_xen()
        self.state.values["boot"] = None
        if (here, xen) == (wanted["kernel"], wanted["xen"]):
            say(f"the machine runs {_named(here, xen)}, as asked")
            self.state.values["served"] = {"boot": self.machine.boot_id(), "entry": wanted["entry"], "block": None}
            self.state.enter("running")
            return True
        came, asked = _named(here, xen), _named(wanted["kernel"], wanted["xen"])
        self._say(f"asked for kernel {asked}, the machine came back with {came}")
        return self._wrong_kernel(wanted, f"kernel {asked} did not come up: the machine came back with {came}")

    def _wrong_kernel(self, wanted: dict, why: str) -> bool:
        """As the plan says. False: the benchmark ends here."""
        tries, key = self.state.values["failed-boots"], wanted["entry"] or f"{wanted['kernel']}{wanted['xen']}"
        tries[key] = tries.get(key, 0) + 1
        choice = self.plan.on["wrong-kernel"]
        if choice == "stop":
            self.state.enter("stopped", why)
            return False
        if choice == "go-on" or tries[key] >= BOOT_TRIES:
            for entry in self.state.steps:
                if self._block(entry)[1:] == [wanted["kernel"], wanted["entry"], wanted["xen"]] and entry["status"] == PENDING:
                    entry.update(status=LEFT_OUT, why=why)
        self.state.enter("running")
        return True

    def _interrupted(self, entry: dict) -> bool:
        """A step that was running when everything ended. False: the benchmark ends here."""
        other = "the machine went down" if entry.get("boot_id") != self.machine.boot_id() else "vperf-bench was killed"
        self._say(f"step {entry['number'] + 1} ({entry['configuration']}, {entry['test']}): {other} during it")
        choice = self.plan.on["interruption"]
        if choice == "again" and entry["attempts"] < 3:
            entry["status"] = PENDING
        elif choice == "stop":
            entry["status"] = PENDING
            self.state.enter("stopped", f"{other} during step {entry['number'] + 1}")
            return False
        else:
            entry.update(status=FAILED, why=f"{other} during it")
        self.state.save()
        return True

    def _boot(self, entry: dict) -> None:
        """Ask the boot loader, and reboot."""
        kernel, named, xen = entry["kernel"], entry["boot_entry"], entry["xen"]
        self.machine.boot_once(kernel, named, xen)  # first: if the power fails after it, that kernel runs all the same
        self.state.values["boot"] = {"kernel": kernel, "entry": named, "xen": xen, "from": self.machine.boot_id()}
        self.state.enter("booting")
        say(f"rebooting into kernel {_named(kernel, xen)}")
        self._reboot()

    def _reboot(self) -> None:
        self.leaving = True
        self.machine.reboot()

    def _one(self, entry: dict) -> bool:
        """A step. False: the benchmark ends here."""
        configuration, test = self.plan.configurations[entry["configuration"]], self.plan.tests[entry["test"]]
        for place in (str(self.state.directory), configuration.directory):
            free = self.machine.free(place)
            if free < max(self.plan.least_free, RESERVE):
                self._say(f"{place} has {free >> 20} MiB left, less than least-free{' and 1 MiB' * (free < RESERVE)}: stopping")
                self.state.enter("stopped", f"{place} is full ({free >> 20} MiB left)")
                return False
        entry.update(status=RUNNING, attempts=entry["attempts"] + 1, boot_id=self.machine.boot_id())
        self.state.save()
        done = self.state.counts()
        say(f"step {entry['number'] + 1} of {len(self.state.steps)}: {configuration.name}, {test.name} ({entry['cache']}), "
            f"repeat {entry['repeat'] + 1}{', ' + str(done[FAILED]) + ' failed so far' if done.get(FAILED) else ''}")
        directory = self.state.step_directory(entry)
        # What an attempt left that a power cut ended before the state was written.
        shutil.rmtree(directory, ignore_errors=True)
        try:
            result = self.machine.run(step.Job(self.plan, configuration, test, entry["cache"] == "cold", directory))
            write_json(directory / "result.json", result)
            entry["status"] = DONE
            self.state.save()
            return True
        except (step.StepFailed, OSError) as error:
            full = isinstance(error, OSError) and error.errno == errno.ENOSPC
            if full or self.machine.free(str(self.state.directory)) < RESERVE:
                return self._full(entry, directory, str(error))
            return self._failed(entry, str(error))

    def _full(self, entry: dict, directory: Path, why: str) -> bool:
        """No space for what a step brings: that is not the step's fault, and it is done again. Returns False."""
        shutil.rmtree(directory, ignore_errors=True)
        entry["status"] = PENDING
        self._say(f"the disk is full, step {entry['number'] + 1} ({entry['configuration']}, {entry['test']}) will be done again: {why}")
        self.state.enter("stopped", "the disk is full")
        return False

    def _failed(self, entry: dict, why: str) -> bool:
        say(f"step {entry['number'] + 1} ({entry['configuration']}, {entry['test']}) failed: {why}")
        choice = self.plan.on["failure"]
        if choice == "again" and entry["attempts"] < 2:
            entry["status"] = PENDING
            self.state.save()
            return True
        entry.update(status=FAILED, why=why)
        if choice == "stop":
            self.state.enter("stopped", f"step {entry['number'] + 1} failed: {why}")
            return False
        self.state.save()
        return True

    def _finish(self, phase: str, why: str) -> None:
        """Everything as it was."""
        original = self.state.values["original"]
        try:
            self.state.enter(phase, why)
        finally:
            self.machine.unprepare(original)
        usual = original["kernel"], original["xen"]
        if original["reboots"] and (self.machine.kernel(), self.machine.under_xen()) != usual:
            say(f"rebooting into the usual kernel (it was {_named(*usual)})")
            self._reboot()

    def go(self) -> str:
        """Until it is over, or the machine reboots; the phase then."""
        if not self._arrive():
            self._finish("stopped", self.state.values["why"])
            return "stopped"
        self.machine.prepare(self.plan, self.state.values["original"], self.state.directory)
        try:
            while (entry := self.state.next()) is not None:
                if self._stop_wanted():
                    self.state.enter("stopped", "as asked")
                    break
                if entry["status"] == RUNNING:
                    if not self._interrupted(entry):
                        break
                    continue
                if entry["kernel"] and not self._is_here(entry):
                    self._boot(entry)
                    return "booting"
                if not self._one(entry):
                    break
        except KeyboardInterrupt:
            if entry and entry["status"] == RUNNING:
                entry["status"] = PENDING
            self.state.enter("stopped", "as asked, in the middle of a step")
        except BenchError as error:
            self._say(str(error))
            self._finish("stopped", str(error))
            return "stopped"
        over = self.state.next() is None
        self._finish("done" if over else "stopped", "" if over else self.state.values["why"])
        return self.state.phase

    @staticmethod
    def _block(entry: dict) -> list:
        """What one boot is for."""
        return [entry["round"], entry["kernel"], entry["boot_entry"], entry["xen"]]

    def _is_here(self, entry: dict) -> bool:
        """Whether this boot is one for a step: of its kernel, by its entry, and not one of another round."""
        if (self.machine.kernel(), self.machine.under_xen()) != (entry["kernel"], entry["xen"]):
            return False
        served = self.state.values.get("served")
        if not served or served["boot"] != self.machine.boot_id():
            served = {"boot": self.machine.boot_id(), "entry": "", "block": None}  # booted by somebody else
        if entry["boot_entry"] not in ("", served["entry"]) or served["block"] not in (None, self._block(entry)):
            return False
        self.state.values["served"] = {**served, "block": self._block(entry)}
        return True


def start(plan: Plan, directory: Path, machine: Machine, reboots: bool) -> State:
    """A new benchmark's directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "steps").mkdir()
    (directory / "plan.toml").write_text(plan.text, encoding="utf-8")
    return State.create(directory, order.make(plan), machine.describe(plan, reboots))
