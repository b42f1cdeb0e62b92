"""Whether functions in a report are right, by what binutils read in the same files: symbols and unwind tables."""

import bisect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from .reproduction import call

SYMBOL = re.compile(r"^ +\d+: ([0-9a-f]+) +(\d+|0x[0-9a-f]+) (?:FUNC|IFUNC|NOTYPE) +\w+ +\w+ +(?:\[.*?\] +)?\d+ (\S+)")
SEGMENT = re.compile(r"^ +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", re.MULTILINE)
EXTENT = re.compile(r" FDE .* pc=(\w+)\.\.(\w+)")
SCRIPT = re.compile(r"^g1/(.*?) +(\d+) \[\d+\] +([\d.]+): +\d+ \S+: $")
FRAME = re.compile(r"^\t +([0-9a-f]+) (.*?)(?:\+0x([0-9a-f]+))? \((\S+)\)$")
MANGLED = ("_Z", "_R")


@dataclass
class _Ranges:
    """Start → the end and the names of what starts there."""

    found: dict[int, tuple[int, set[str]]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def add(self, start: int, end: int, name: str) -> None:
        last, names = self.found.get(start, (0, set()))
        self.found[start] = (max(last, end), names | {name})

    def at(self, place: int) -> list[int]:
        """The starts of all that holds a place, of the last few before it: symbols nest little."""
        if len(self.starts) != len(self.found):
            self.starts = sorted(self.found)
        last = bisect.bisect_right(self.starts, place)
        return [start for start in self.starts[max(0, last - 8):last] if place < self.found[start][0]]


class _File:
    """An ELF file: its symbols and the extents in its unwind tables, by offsets in the file."""

    def __init__(self, path: Path):
        self.segments = [tuple(int(word, 16) for word in words) for words in SEGMENT.findall(call("readelf", "-lW", str(path)))]
        self.symbols, self.extents = _Ranges(), _Ranges()
        for line in call("readelf", "-sW", str(path)).splitlines():
            if (match := SYMBOL.match(line)) and (size := int(match[2], 0)):
                self._add(self.symbols, int(match[1], 16), size, match[3].partition("@")[0])
        for start, end in EXTENT.findall(call("readelf", "-wFN", str(path), fine=(0, 1))):
            self._add(self.extents, int(start, 16), int(end, 16) - int(start, 16), "")

    def _add(self, to: _Ranges, address: int, size: int, name: str) -> None:
        for offset, start, length in self.segments:
            if start <= address < start + length:
                to.add(address - start + offset, address - start + offset + size, name)


class Truth:
    """Files of a guest, looked for in its root directories in this order."""

    def __init__(self, *places: Path):
        self.places, self.files = places, {}

    def _file(self, path: str) -> _File | None:
        if path not in self.files:
            found = next((place / path.lstrip("/") for place in self.places if (place / path.lstrip("/")).is_file()), None)
            self.files[path] = _File(found) if found else None
        return self.files[path]

    def judge(self, path: str, offset: int, back: int | None, name: str) -> bool | None:
        """Whether the function at an offset in a file starts `back` bytes before it and has that name; None if binutils see nothing there."""
        file = self._file(path)
        symbols, extents = (file.symbols.at(offset), file.extents.at(offset)) if file else ([], [])
        if (not symbols and not extents) or name.endswith("@plt"):
            return None
        start = offset - back if back is not None else None
        if not symbols:
            return start in extents or name.endswith(f":0x{extents[-1]:x}")
        names = set().union(*(file.symbols.found[at][1] for at in symbols))
        return start in symbols and (name in names or any(other.startswith(MANGLED) for other in names))


def _mappings(maps: Path) -> dict[int, list[tuple[int, int, int, str]]]:
    """Process → its mapped files and those of the processes that it was forked from, as start, end, offset, path."""
    tgids, parents, mapped = {}, {}, defaultdict(list)
    for words in map(str.split, maps.read_text(encoding="utf-8", errors="replace").splitlines()):
        if words[0] == "a":
            tgids[words[1]] = int(words[2])
        elif words[0] == "f":
            parents[words[1]] = words[2]
        elif words[0] == "m":
            mapped[words[1]].append((int(words[2], 16), int(words[3], 16), int(words[4], 16), words[7]))
    ret = defaultdict(list)
    for space, tgid in tgids.items():
        seen = set()
        while space and space not in seen:
            seen.add(space)
            ret[tgid] += mapped[space]
            space = parents.get(space)
    return ret


def judged(truth: Truth, maps: Path, script: str, comms: tuple[str, ...], start: float) -> tuple[int, int, list[str]]:
    """Counts the samples of these processes from a time on that binutils have a function for, and those that are right; also some that are wrong."""
    mappings = _mappings(maps)
    pid, total, right, wrong = None, 0, 0, []
    for line in script.splitlines():
        if header := SCRIPT.match(line):
            pid = int(header[2]) if header[1] in comms and float(header[3]) >= start else None
            continue
        frame = FRAME.match(line) if pid is not None else None
        if not frame:
            continue
        address, name, back, path = int(frame[1], 16), frame[2], frame[3] and int(frame[3], 16), frame[4]
        pid, of = None, pid
        place = next((address - start + offset for start, end, offset, mapped in reversed(mappings[of]) if start <= address < end and mapped == path), None)
        verdict = None if place is None else truth.judge(path, place, back, name)
        if verdict is not None:
            total += 1
            right += verdict
            if not verdict:
                wrong.append(f"{path} {place:#x} {name}+{back}")
    return total, right, wrong
