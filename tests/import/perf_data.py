# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes perf.data files record by record (tools/perf/Documentation/perf.data-file-format.txt): of processors, versions and options that the
machine's own perf does not have."""
import struct

COMM, FORK, SAMPLE, MMAP = 3, 7, 9, 1
ROUND, AUXTRACE, HEADER_ATTR, HEADER_FEATURE = 68, 71, 64, 80
IP, TID, TIME, ID, CPU, PERIOD, READ, CHAIN, IDENT = 1, 2, 4, 64, 128, 256, 16, 32, 1 << 16
USUAL = IP | TID | TIME | CPU | PERIOD | IDENT
KERNEL, USER, GUEST_KERNEL, GUEST_USER = 1, 2, 4, 5
HARDWARE, SOFTWARE, TRACEPOINT, RAW = 0, 1, 2, 4


class Event:
    def __init__(self, type_, config, period, freq=False, name="", sample_type=USUAL, read_format=0, id_all=True, ids=None):
        self.type, self.config, self.period, self.freq, self.name = type_, config, period, freq, name
        self.sample_type, self.read_format, self.id_all, self.ids = sample_type, read_format, id_all, ids


class File:
    def __init__(self, events, big=False):
        self.events, self.e, self.big, self.records, self.features = events, ">" if big else "<", big, [], {}
        for i, event in enumerate(events):
            event.ids = event.ids or [i + 1]

    def pack(self, form, *values):
        return struct.pack(self.e + form, *values)

    def add(self, type_, misc, body):
        body += bytes(-len(body) % 8)
        self.records.append(self.pack("IHH", type_, misc, 8 + len(body)) + body)

    def _tail(self, pid, now, ident=0):
        """The ids after a record, in the format of the first event."""
        event, out = self.events[0], b""
        if not event.id_all:
            return out
        for bit, data in ((TID, ("II", pid, pid)), (TIME, ("Q", now)), (ID, ("Q", ident)), (CPU, ("II", 0, 0)), (IDENT, ("Q", ident))):
            out += self.pack(*data) if event.sample_type & bit else b""
        return out

    def comm(self, pid, name, now, exec_=False):
        text = name.encode() + b"\0"
        self.add(COMM, 1 << 13 if exec_ else 0, self.pack("II", pid, pid) + text + bytes(-len(text) % 8) + self._tail(pid, now))

    def mmap(self, pid, start, size, offset, path, now=0, misc=USER):
        text = path.encode() + b"\0"
        self.add(MMAP, misc, self.pack("IIQQQ", pid, pid, start, size, offset) + text + bytes(-len(text) % 8) + self._tail(pid & 0xffffffff, now))

    def sample(self, pid, ip, now, period, event=0, cpu=0, misc=USER, values=None, chain=()):
        event = self.events[event]
        kind, ident = event.sample_type, event.ids[0]
        out = b""
        for bit, data in ((IDENT, ("Q", ident)), (IP, ("Q", ip)), (TID, ("II", pid, pid)), (TIME, ("Q", now)), (ID, ("Q", ident)), (CPU, ("II", cpu, 0)),
                          (PERIOD, ("Q", period))):
            out += self.pack(*data) if kind & bit else b""
        if kind & READ:
            out += self.pack("Q", len(values)) + b"".join(self.pack("QQ", value, key) for key, value in values)
        if kind & CHAIN:
            out += self.pack("Q", len(chain)) + self.pack("Q" * len(chain), *chain)
        self.add(SAMPLE, misc, out)

    def round(self):
        self.add(ROUND, 0, b"")

    def _attr(self, event):
        flags = (2 if False else 0) | (1 << 10 if event.freq else 0) | (1 << 18 if event.id_all else 0) | 1 << 8 | 1 << 9
        raw = struct.pack("<Q", flags)
        if self.big:  # bit fields begin at the other end of each byte
            raw = bytes(int(f"{byte:08b}"[::-1], 2) for byte in raw)
        head = self.pack("IIQQQQ", event.type, 112, event.config, event.period, event.sample_type, event.read_format) + raw
        return head + bytes(112 - len(head))

    def _text(self, text):
        data = text.encode() + b"\0"
        data += bytes(-len(data) % 64)
        return self.pack("I", len(data)) + data

    def feature(self, number, data):
        self.features[number] = data

    def describe(self):
        """HEADER_EVENT_DESC: names as perf was given them."""
        out = self.pack("II", len(self.events), 112)
        for event in self.events:
            out += self._attr(event) + self.pack("I", len(event.ids)) + self._text(event.name) + self.pack("Q" * len(event.ids), *event.ids)
        self.feature(12, out)

    def build_id(self, path, build_id, pid=-1, misc=KERNEL):
        name = path.encode() + b"\0"
        name += bytes(-len(name) % 64)
        body = self.pack("i", pid) + bytes.fromhex(build_id).ljust(20, b"\0") + bytes([len(build_id) // 2, 0, 0, 0]) + name
        self.features[2] = self.features.get(2, b"") + self.pack("IHH", 0, misc | 1 << 15, 8 + len(body)) + body

    def bytes(self, magic=None, words_of_32=False):
        ids = b"".join(self.pack("Q" * len(event.ids), *event.ids) for event in self.events)
        at_attrs, attrs, at_ids = 104 + len(ids), b"", 104
        for event in self.events:
            attrs += self._attr(event) + self.pack("QQ", at_ids, 8 * len(event.ids))
            at_ids += 8 * len(event.ids)
        at_data, data = at_attrs + len(attrs), b"".join(self.records)
        bits, sections, at = 0, b"", at_data + len(data) + 16 * len(self.features)
        for number in sorted(self.features):
            bits |= 1 << number
            sections += self.pack("QQ", at, len(self.features[number]))
            at += len(self.features[number])
        head = (magic or (b"2ELIFREP" if self.big else b"PERFILE2")) + self.pack("QQQQQQQQ", 104, 128, at_attrs, len(attrs), at_data, len(data), 0, 0)
        # The bits are an array of unsigned long.
        head += self.pack("IIIIIIII", bits, *[0] * 7) if words_of_32 else self.pack("QQQQ", bits, 0, 0, 0)
        return head + ids + attrs + data + sections + b"".join(self.features[number] for number in sorted(self.features))

    def pipe(self):
        """As perf record -o - writes it."""
        out = (b"2ELIFREP" if self.big else b"PERFILE2") + self.pack("Q", 16)
        for event in self.events:
            body = self._attr(event) + self.pack("Q" * len(event.ids), *event.ids)
            out += self.pack("IHH", HEADER_ATTR, 0, 8 + len(body)) + body
        for number, data in sorted(self.features.items()):
            body = self.pack("Q", number) + data
            body += bytes(-len(body) % 8)
            out += self.pack("IHH", HEADER_FEATURE, 0, 8 + len(body)) + body
        return out + b"".join(self.records)
