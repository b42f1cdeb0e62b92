"""The boot loader, asked to boot a kernel once, and the unit that goes on after a boot.

Once: a kernel that does not come up is followed, at the next reset, by the one that is booted as always.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .common import BenchError, program, sync_directory, write_whole

UNIT = "vperf-bench.service"
UNITS = Path("/etc/systemd/system")
EFI_VARIABLES = Path("/sys/firmware/efi/efivars")
VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"  # of the variables of systemd's boot loader interface


@dataclass(frozen=True)
class Entry:
    """What a boot loader can boot: its name for it, and what that is."""

    id: str
    title: str
    kernel: str
    xen: bool
    arguments: str


def _release(path: str) -> str:
    """Of a kernel's file: /boot/vmlinuz-6.1.0-1-amd64."""
    match = re.search(r"vmlinu[xz]-(\S+)$", path)
    return match[1] if match else ""


def grub_entries(text: str) -> list[Entry]:
    """The entries of a grub.cfg, those in submenus too, without recovery modes."""
    found: list[Entry] = []
    names: list[tuple[str, str] | None] = []  # of what is open: (title, id), None for what is no entry
    kernel, arguments, xen = "", "", False
    for raw in text.splitlines():
        line = raw.strip()
        head = re.match(r"(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\")", line)
        if line.startswith("#"):
            continue
        if head and line.endswith("{"):
            own = re.search(r"(?:\$menuentry_id_option|--id)\s+'?([^'\s{]+)", line)
            title = head[2] if head[2] is not None else head[3]
            names.append((title, own[1] if own else title))
            kernel, arguments, xen = "", "", False
        elif line.endswith("{"):
            names.append(None)
        elif line == "}" and names:
            closed = names.pop()
            if closed and kernel and "(recovery mode)" not in closed[0]:
                way = [name[1] for name in names if name] + [closed[1]]
                found.append(Entry(">".join(way), closed[0], kernel, xen, arguments))
            kernel = ""
        else:
            words = line.split()
            loads = [_release(word) for word in words[1:] if _release(word)]
            if words and re.fullmatch(r"(linux|linux16|linuxefi|module|module2)", words[0]) and loads:
                kernel, arguments = loads[0], line
            elif words and re.fullmatch(r"(multiboot2?|xen_hypervisor)", words[0]) and "xen" in line:
                xen = True
    return found


def loader_entries(files: dict[str, str]) -> list[Entry]:
    """The entries of systemd-boot: name of the file -> its text."""
    found = []
    for name, text in sorted(files.items()):
        fields = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
        kernel = fields.get("version", "").strip() or _release(fields.get("linux", "").strip())
        if kernel and "linux" in fields:
            found.append(Entry(name, fields.get("title", name).strip(), kernel, False, fields.get("options", "")))
    return found


def _run(*command: str) -> None:
    path = program(command[0])
    if not path:
        raise BenchError(f"the program '{command[0]}' is missing")
    done = subprocess.run([path, *command[1:]], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} ended with status {done.returncode}: {(done.stderr or done.stdout).strip()}")


class Grub:
    """GRUB 2, whose environment block has the entry that is booted once."""

    name = "grub"
    # Where GRUB cannot write it cannot forget that entry either: a kernel that hangs would be booted for ever.
    WRITABLE = ("ext2", "ext3", "ext4", "xfs", "vfat")

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def entries(self) -> list[Entry]:
        """What can be booted."""
        return grub_entries((self.directory / "grub.cfg").read_text(encoding="utf-8", errors="replace"))

    def fault(self) -> str:
        """Why it cannot boot something once, or ""."""
        if not program("grub-reboot"):
            return "the program grub-reboot is missing (Debian package grub2-common)"
        if not re.search(r"^\s*set default=\"\$\{next_entry\}\"", (self.directory / "grub.cfg").read_text(
                encoding="utf-8", errors="replace"), re.MULTILINE):
            return f"{self.directory}/grub.cfg does not heed the entry that grub-reboot names"
        done = subprocess.run(["findmnt", "-no", "FSTYPE,SOURCE", "--target", str(self.directory)], capture_output=True,
                              text=True, check=False)
        kind, _, source = done.stdout.strip().partition(" ")
        if kind not in self.WRITABLE or re.search(r"/dev/(mapper/|dm-|md)", source):
            return (f"GRUB cannot write to {self.directory} (on {kind or 'an unknown file system'}, {source.strip() or '?'}), so a "
                    "kernel that does not come up would be booted again and again")
        return ""

    def once(self, entry: Entry) -> None:
        """Boot it the next time, and only then."""
        _run("grub-reboot", entry.id)

    def forget(self) -> None:
        """Boot as always the next time."""
        _run("grub-editenv", str(self.directory / "grubenv"), "unset", "next_entry")


class SystemdBoot:
    """systemd-boot, by bootctl: an EFI variable has the entry that is booted once. Entries that start another program than a kernel are left out."""

    name = "systemd-boot"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def entries(self) -> list[Entry]:
        """What can be booted."""
        return loader_entries({path.name: path.read_text(encoding="utf-8", errors="replace")
                               for path in self.directory.glob("*.conf")})

    def fault(self) -> str:
        """Why it cannot boot something once, or ""."""
        if not booted_by_systemd_boot():
            return "there are entries of systemd-boot, but another loader booted this machine (no EFI variable LoaderInfo says so)"
        return "" if program("bootctl") else "the program bootctl is missing (Debian package systemd-boot)"

    def once(self, entry: Entry) -> None:
        """Boot it the next time, and only then."""
        _run("bootctl", "set-oneshot", entry.id)

    def forget(self) -> None:
        """Boot as always the next time."""
        if (EFI_VARIABLES / f"LoaderEntryOneShot-{VENDOR}").exists():
            _run("bootctl", "set-oneshot", "")


def booted_by_systemd_boot() -> bool:
    """Whether it booted this machine, which may have files of other loaders, too: it says so in an EFI variable, after four bytes of flags."""
    try:
        return (EFI_VARIABLES / f"LoaderInfo-{VENDOR}").read_bytes()[4:].decode("utf-16-le", "replace").startswith("systemd-boot")
    except OSError:
        return False


def find(root: Path = Path("/")) -> Grub | SystemdBoot | None:
    """The machine's."""
    grub = root / "boot/grub"
    if (grub / "grub.cfg").is_file() and not booted_by_systemd_boot():
        return Grub(grub)
    for directory in ("efi/loader/entries", "boot/efi/loader/entries", "boot/loader/entries"):
        if (root / directory).is_dir():
            return SystemdBoot(root / directory)
    return Grub(grub) if (grub / "grub.cfg").is_file() else None


def pick(entries: list[Entry], kernel: str, named: str, xen: bool) -> Entry | None:
    """The entry of a kernel; `named`: by its id or title."""
    for entry in entries:
        if named in (entry.id, entry.title, entry.id.rsplit(">", 1)[-1]) if named else (
                entry.kernel == kernel and entry.xen == xen):
            return entry
    return None


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'


def install_unit(command: list[str], directory: Path) -> None:
    """After each boot, the benchmark goes on."""
    text = (f"[Unit]\nDescription=vperf-bench goes on after a boot\nAfter=multi-user.target\n"
            f"RequiresMountsFor={_quoted(str(directory))}\n\n"
            # What a shutdown interrupts is done again: the test is not to be told of it before vperf-bench.
            f"[Service]\nType=exec\nKillMode=mixed\nExecStart={' '.join(_quoted(word) for word in command)}\n"
            "StandardOutput=journal+console\nStandardError=journal+console\n\n[Install]\nWantedBy=multi-user.target\n")
    write_whole(UNITS / UNIT, text)
    _run("systemctl", "daemon-reload")
    _run("systemctl", "enable", "--quiet", UNIT)
    # On the disk, whatever happens to the machine next.
    sync_directory(UNITS / "multi-user.target.wants")


def remove_unit() -> None:
    """No more. The unit may be the one that runs this."""
    if (UNITS / UNIT).exists():
        _run("systemctl", "disable", "--quiet", UNIT)
        (UNITS / UNIT).unlink()
        sync_directory(UNITS)
        _run("systemctl", "daemon-reload")


def reboot() -> None:
    """Asked for. systemd may end this program, and systemctl too, before that returns."""
    done = subprocess.run([program("systemctl") or "systemctl", "--no-block", "reboot"], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    if done.returncode > 0:
        raise BenchError(f"systemctl reboot ended with status {done.returncode}: {done.stderr.strip()}")


def going_down() -> bool:
    """Whether the machine is being shut down."""
    done = subprocess.run([program("systemctl") or "systemctl", "is-system-running"], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    return done.stdout.strip() == "stopping"
