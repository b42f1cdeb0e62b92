"""Whether a plan can work on this machine: asked before the first step."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from . import boot, guest, xenguest
from .common import PlanError, program
from .environment import CPU, under_xen
from .plan import Configuration, Plan
from .tracers import TRACERS


def _refuse(plan: Plan, key: str, text: str) -> None:
    raise PlanError(f"{plan.file}: {key}: {text}")


def _programs(plan: Plan) -> None:
    for test in plan.tests.values():
        for name, package in test.needs.items():
            if not program(name):
                _refuse(plan, f"test.{test.name}.use", f"'{name}' is not installed (Debian package {package})")
        if "cold" in test.caches and os.geteuid() != 0 and any(not c.in_guest for c in plan.configurations.values()):
            _refuse(plan, f"test.{test.name}.cache", "only root can drop the machine's caches")
    for own in plan.configurations.values():
        key = f"configuration.{own.name}"
        for name, package in TRACERS[own.tracer].needs.items():
            if not program(name):
                _refuse(plan, f"{key}.tracer", f"'{name}' is not installed (package {package})")
        if TRACERS[own.tracer].module:
            _module(plan, key, own)
        if own.tracer != "none" and os.geteuid() != 0:
            _refuse(plan, f"{key}.tracer", f"only root can use {own.tracer}")
        if own.cpus and not program("taskset"):
            _refuse(plan, f"{key}.cpus", "'taskset' is not installed (Debian package util-linux)")
        if own.cpus and max(int(word) for part in own.cpus.split(",") for word in part.split("-")) >= (os.cpu_count() or 1):
            _refuse(plan, f"{key}.cpus", f"there are {os.cpu_count()} CPUs here, the first is 0: '{own.cpus}' has others")


def _module(plan: Plan, key: str, own: Configuration) -> None:
    """The tracer's module is loaded, or there for the kernel that will run."""
    name, loaded, package = TRACERS[own.tracer].module
    kernel = own.kernel or platform.release()
    if not own.kernel and os.path.exists(loaded):
        return
    done = subprocess.run([program("modinfo") or "modinfo", "-k", kernel, "-n", name], check=False, capture_output=True) if program("modinfo") else None
    if not done or done.returncode:
        _refuse(plan, f"{key}.tracer", f"kernel {kernel} has no module {name} (package {package}, built for that kernel): {own.tracer} cannot trace it")


def _place(plan: Plan, own: Configuration) -> None:
    key = f"configuration.{own.name}"
    if not os.path.isdir(own.directory) or not os.access(own.directory, os.W_OK):
        _refuse(plan, f"{key}.directory", f"'{own.directory}' is no directory that can be written to")
    free = shutil.disk_usage(own.directory).free
    wanted = plan.least_free
    if free < wanted:
        _refuse(plan, f"{key}.directory", f"'{own.directory}' has {free >> 20} MiB free, least-free wants {wanted >> 20}")
    if own.where == "kvm-host" and not own.kernel and not Path("/dev/kvm").exists():
        _refuse(plan, f"{key}.where", "there is no /dev/kvm")
    if own.on_xen and not own.kernel and not under_xen():
        _refuse(plan, f"{key}.where", "this machine is not the dom0 of a Xen: name the kernel to boot (key kernel)")
    if not own.on_xen and not own.kernel and under_xen():
        _refuse(plan, f"{key}.where", f"this machine is the dom0 of a Xen: expected xen-dom0 or xen-guest, not {own.where}, or the "
                "kernel to boot without Xen (key kernel)")
    if own.in_guest:
        needs = [name for test in plan.tests.values() for name in test.needs]
        wrong, why = xenguest.fault(own, needs) if own.on_xen else guest.fault(own)
        if wrong:
            _refuse(plan, f"{key}.{wrong}", why)


def needs_reboots(plan: Plan) -> bool:
    """Whether some configuration has a kernel of its own."""
    return any(own.kernel for own in plan.configurations.values())


def _boots(plan: Plan, may_reboot: bool) -> list[str]:
    named = [own for own in plan.configurations.values() if own.kernel]
    if len(named) != len(plan.configurations):
        other = next(own for own in plan.configurations.values() if not own.kernel)
        _refuse(plan, f"configuration.{other.name}.kernel", "is missing, where other configurations name theirs")
    key = f"configuration.{named[0].name}.kernel"
    if not may_reboot:
        _refuse(plan, key, "this machine would be rebooted: say --may-reboot if it may")
    if os.geteuid() != 0 or not program("systemctl") or not Path("/run/systemd/system").is_dir():
        _refuse(plan, key, "only root can reboot, and only where systemd runs")
    loader = boot.find()
    if not loader:
        _refuse(plan, key, "no boot loader was found: expected /boot/grub/grub.cfg, or loader/entries of systemd-boot")
    if loader.fault():
        _refuse(plan, key, loader.fault())
    entries, notes = loader.entries(), []
    for own in named:
        entry = boot.pick(entries, own.kernel, own.boot_entry, own.on_xen)
        what = f"no entry '{own.boot_entry}'" if own.boot_entry else f"no entry with kernel {own.kernel}"
        if not entry:
            known = ", ".join(dict.fromkeys(e.kernel + (" under Xen" if e.xen else "") for e in entries)) or "none"
            _refuse(plan, f"configuration.{own.name}.{'boot-entry' if own.boot_entry else 'kernel'}",
                    f"{loader.name} has {what}{' under Xen' * own.on_xen}; its kernels are: {known}")
        if "panic=" not in entry.arguments:
            notes.append(f"configuration {own.name}: the entry '{entry.title}' has no panic=SECONDS: if that kernel panics, "
                         "it waits for somebody instead of booting the usual one")
    return notes


def check(plan: Plan, may_reboot: bool) -> list[str]:
    """Refuses a plan that cannot work by PlanError; else what is worth knowing."""
    _programs(plan)
    notes: list[str] = []
    for own in plan.configurations.values():
        _place(plan, own)
    if needs_reboots(plan):
        notes += _boots(plan, may_reboot)
    if plan.governor:
        known = sorted({word for path in CPU.glob("cpu[0-9]*/cpufreq/scaling_available_governors")
                        for word in path.read_text(encoding="ascii").split()})
        if plan.governor not in known:
            _refuse(plan, "governor", f"'{plan.governor}' is none of this machine's: {', '.join(known) or 'it has none'}")
        if os.geteuid() != 0:
            _refuse(plan, "governor", "only root can set it")
    if plan.stop_services and (os.geteuid() != 0 or not program("systemctl")):
        _refuse(plan, "stop-services", "only root can stop services, and only where systemd runs")
    if plan.repeats < 3:
        notes.append(f"with repeats = {plan.repeats} hardly any difference can be shown to be real")
    return notes
