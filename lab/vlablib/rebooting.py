"""A machine that really reboots, by a real boot loader, and whose power can fail: for vperf-bench's benchmarks."""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import bootdisk, initramfs
from .arch import AMD64
from .common import REPO, LabError, UsageError, cache_dir, need_program, prefer_session, priority, say

HOME = "/opt/bench"  # there: the program, the plan, and DIR with the results
DIRECTORY = "/var/lib/bench"
SILENCE = 400  # seconds; a boot prints something every few seconds, even on a busy host …
FIRMWARE = 900  # … except UEFI's firmware, which loads kernels from disk, while other labs run
START = f"""[Unit]
Description=the benchmark begins
ConditionPathExists=!{DIRECTORY}/state.json
After=multi-user.target
[Service]
Type=exec
ExecStart=/usr/bin/python3 {HOME}/vperf-bench run {HOME}/plan.toml -o {DIRECTORY} --may-reboot
StandardOutput=journal+console
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""
# Off when all is over: nothing runs, nothing is to be booted.
VARIABLE = "/sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
WATCH = f"""echo "BOOTED $(uname -r)$(sed 's/^/ under /' /sys/hypervisor/type)" > /dev/console
while sleep 2; do
	if grep -qE '"phase": "(done|stopped)"' {DIRECTORY}/state.json && ! pgrep -f vperf-benc[h] && [ "$(uname -r)" = @USUAL@ ]; then
		[ ! -e {VARIABLE} ] || echo "ONCE MORE" > /dev/console
		systemctl poweroff
		exit
	fi
done
"""
WATCH_UNIT = f"""[Unit]
Description=off when the benchmark is over
[Service]
Type=exec
ExecStart=/bin/sh {HOME}/watch
[Install]
WantedBy=multi-user.target
"""


def _debugfs(image: Path, commands: list[str], write: bool = False) -> str:
    done = subprocess.run([need_program("debugfs", "e2fsprogs"), *(["-w"] if write else []), "-f", "-", bootdisk.file_system(image)],
                          input="".join(f"{line}\n" for line in commands), capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"debugfs failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def _put(image: Path, plan: Path, work: Path) -> None:
    """Program, plan and units onto the disk."""
    (work / "watch").write_text(WATCH.replace("@USUAL@", bootdisk.versions()[1]), encoding="ascii")
    units = {"bench-start.service": START, "bench-watch.service": WATCH_UNIT}
    commands = [f"mkdir {HOME}", f"mkdir {HOME}/vperfbench", f"write {plan} {HOME}/plan.toml", f"write {work}/watch {HOME}/watch",
                f"write {REPO}/benchmark/vperf-bench {HOME}/vperf-bench"]
    commands += [f"write {path} {HOME}/vperfbench/{path.name}" for path in sorted((REPO / "benchmark/vperfbench").glob("*.py"))]
    tinyvm = initramfs.build_programs(AMD64) / "tinyvm"  # for plans: a VM of KVM that needs no VMM
    commands += [f"write {tinyvm} {HOME}/tinyvm", f"set_inode_field {HOME}/tinyvm mode 0100755"]
    wants = "/etc/systemd/system/multi-user.target.wants"
    for name, text in units.items():
        (work / name).write_text(text, encoding="ascii")
        commands += [f"write {work / name} /etc/systemd/system/{name}", f"symlink {wants}/{name} /etc/systemd/system/{name}"]
    _debugfs(image, commands, write=True)


class Reboots:
    """The machine: on, off, on again."""

    def __init__(self, image: Path, out: Path, cut: str, limit: float, more: list[str]) -> None:
        self.image, self.out, self.cut, self.limit, self.more = image, out, cut, limit, more
        self.cuts = 0

    def _power(self, number: int) -> tuple[subprocess.Popen, Path]:
        console = self.out / f"console-{number}.log"
        console.touch()
        process = subprocess.Popen([*priority(), *bootdisk.qemu(self.image, console, self.more)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        prefer_session(process, True)
        return process, console

    def run(self) -> None:
        """Runs until it powers itself off; cuts the power once, when the console prints `cut`."""
        until = time.monotonic() + self.limit
        process, console = self._power(0)
        told, heard, length = 0, time.monotonic(), 0
        try:
            while process.poll() is None:
                time.sleep(0.2)
                text = console.read_text(errors="replace")
                heard, length = (heard, length) if len(text) == length else (time.monotonic(), len(text))
                for line in re.findall(r"(?:vperf-bench: |BOOTED |Kernel panic).*\n", text[told:]):
                    say(line.strip())
                told = text.rfind("\n") + 1
                if self.cut and not self.cuts and re.search(self.cut, text):
                    say("the power fails")
                    process.kill()
                    process.wait()
                    self.cuts, told = 1, 0
                    process, console = self._power(1)
                if time.monotonic() > until or time.monotonic() - heard > (FIRMWARE if self.more else SILENCE):
                    raise LabError(f"the machine hangs, or was not off after {self.limit:.0f} s; the end of its console: {text[-500:]}")
        finally:
            process.kill()
            process.wait()


def run(plan: Path, out: Path, cut: str, limit: float, uefi: bool) -> dict:
    """Runs the plan on the emulated host; returns its messages. The benchmark's directory is out/bench afterwards."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"the output directory '{out}' is not empty")
    out.mkdir(parents=True, exist_ok=True)
    base = bootdisk.get()
    with tempfile.TemporaryDirectory(dir=cache_dir("run"), prefix="reboot.") as name:
        image = Path(name) / "image"
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", str(base), str(image)], check=True)
        _put(image, plan, Path(name))
        machine = Reboots(image, out, cut, limit, bootdisk.firmware(Path(name)) if uefi else [])
        machine.run()
        _debugfs(image, [f"rdump {DIRECTORY} {out}"])
        environment = _debugfs(image, ["cat /boot/grub/grubenv"])
        units = _debugfs(image, ["ls -p /etc/systemd/system"])
    consoles = "".join(path.read_text(errors="replace") for path in sorted(out.glob("console-*.log")))
    once = re.findall(r"^next_entry=(.*)$", environment, re.MULTILINE) + re.findall("ONCE MORE", consoles)
    result = {"cuts": machine.cuts, "boots": re.findall(r"BOOTED (\S+(?: under \w+)?)", consoles), "panics": consoles.count("Kernel panic"),
              "next-entry": once, "unit-left": "vperf-bench.service" in units}
    (out / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="ascii")
    return result


def main(argv: list[str]) -> int:
    """Its options; returns the exit status."""
    parser = argparse.ArgumentParser("reboot", description=__doc__)
    parser.add_argument("plan", metavar="PLAN", type=Path, help="a plan of vperf-bench; in it @OLDER@, @USUAL@ and @GENERIC@ stand for "
                        f"the disk's kernels, of which Xen can boot the last, {bootdisk.BROKEN} is one that cannot come up")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="for the benchmark's directory and the consoles")
    parser.add_argument("--cut", metavar="PATTERN", default="", help="the power fails when the console says this")
    parser.add_argument("--uefi", action="store_true", help="systemd-boot on UEFI; default: GRUB on a BIOS")
    parser.add_argument("--timeout", metavar="S", type=float, default=1800.0, help="default: %(default).0f")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        older, usual, generic = bootdisk.versions()
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as plan:
            text = args.plan.read_text(encoding="utf-8")
            plan.write(text.replace("@OLDER@", older).replace("@USUAL@", usual).replace("@GENERIC@", generic))
            plan.flush()
            print(json.dumps(run(Path(plan.name), args.out.absolute(), args.cut, args.timeout, args.uefi)))
        return 0
    except (UsageError, OSError) as error:
        print(f"reboot: {error}", file=sys.stderr)
        return 2
    except LabError as error:
        print(f"reboot: lab failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("reboot: interrupted", file=sys.stderr)
        return 130
