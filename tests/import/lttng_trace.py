# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a trace as LTTng's kernel tracer does: compact headers, packets, strings, sequences, a clock with an offset."""
import struct

METADATA = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;
trace { major = 1; minor = 8; uuid = "%(uuid)s"; byte_order = le;
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };
env { hostname = "%(hostname)s"; domain = "%(domain)s"; sysname = "Linux"; kernel_release = "6.1.0";
	tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; tracer_patchlevel = 9; };
clock { name = "monotonic"; uuid = "%(uuid)s"; description = "Monotonic Clock"; freq = 1000000000; offset = %(offset)d; };
typealias integer { size = 27; align = 1; signed = false; map = clock.monotonic.value; } := uint27_clock_monotonic_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_monotonic_t;
struct packet_context { uint64_clock_monotonic_t timestamp_begin; uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; };
struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct { uint27_clock_monotonic_t timestamp; } compact;
		struct { uint32_t id; uint64_clock_monotonic_t timestamp; } extended;
	} v;
} align(8);
stream { id = 0; event.header := struct event_header_compact; packet.context := struct packet_context; %(context)s };
"""

TYPES = {"u8": "integer { size = 8; align = 8; signed = 0; }", "u32": "integer { size = 32; align = 8; signed = 0; }",
         "s32": "integer { size = 32; align = 8; signed = 1; }", "s64": "integer { size = 64; align = 8; signed = 1; }",
         "u64": "integer { size = 64; align = 8; signed = 0; base = 16; }",
         "text": "integer { size = 8; align = 8; signed = 0; encoding = UTF8; }"}
PACKING = {"u8": "<B", "u32": "<I", "s32": "<i", "s64": "<q", "u64": "<Q"}

# As lttng-modules 2.13 has them.
EVENTS = {
    "sched_switch": [("prev_comm", "comm"), ("prev_tid", "s32"), ("prev_prio", "s32"), ("prev_state", "s64"),
                     ("next_comm", "comm"), ("next_tid", "s32"), ("next_prio", "s32")],
    "sched_wakeup": [("comm", "comm"), ("tid", "s32"), ("prio", "s32"), ("target_cpu", "s32")],
    "kvm_x86_entry": [("vcpu_id", "u32"), ("guest_rip", "u64")],
    "kvm_x86_exit": [("exit_reason", "u32"), ("guest_rip", "u64"), ("isa", "u32"), ("info1", "u64"), ("info2", "u64"),
                     ("intr_info", "u32"), ("error_code", "u32"), ("vcpu_id", "u32")],
    "irq_handler_entry": [("irq", "s32"), ("name", "string")],
    "irq_handler_exit": [("irq", "s32"), ("ret", "s32")],
    "syscall_entry_writev": [("fd", "u64"), ("iov", "sequence")],
    "lttng_statedump_process_state": [("tid", "s32"), ("pid", "s32"), ("ppid", "s32"), ("name", "comm"), ("type", "s32"),
                                      ("mode", "s32"), ("submode", "s32"), ("status", "s32"), ("cpu", "u32")],
    "vmsync_gh_host": [("cnt", "u32"), ("vm_uid", "u64")],
    "vmsync_hg_host": [("cnt", "u32"), ("vm_uid", "u64")],
    "vmsync_gh_guest": [("cnt", "u32"), ("vm_uid", "u64")],
    "vmsync_hg_guest": [("cnt", "u32"), ("vm_uid", "u64")],
}
UUID = bytes(range(16))


def _declared(name, kind):
    if kind == "comm":
        return f"{TYPES['text']} _{name}[16];"
    if kind == "string":
        return f"string _{name};"
    if kind == "sequence":
        return f"{TYPES['u32']} __{name}_length; {TYPES['u64']} _{name}[ __{name}_length ];"
    return f"{TYPES[kind]} _{name};"


def _packed(kind, value):
    if kind == "comm":
        return value.encode()[:15].ljust(16, b"\0")
    if kind == "string":
        return value.encode() + b"\0"
    if kind == "sequence":
        return struct.pack("<I", len(value)) + b"".join(struct.pack("<Q", item) for item in value)
    return struct.pack(PACKING[kind], value)


class Trace:
    """Events by CPU, in order of time; write() makes a session's directory of them."""

    def __init__(self, hostname, offset, with_tid=False, domain="kernel"):
        self.about = {"hostname": hostname, "offset": offset, "domain": domain, "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
                      "context": f"event.context := struct {{ {TYPES['s32']} _tid; }};" if with_tid else ""}
        self.with_tid = with_tid
        self.cpus = {}
        self.discarded = {}

    def add(self, on, time, event, thread=0, **values):
        self.cpus.setdefault(on, []).append((time, event, thread, values))

    def write(self, directory):
        directory = directory / "kernel"
        directory.mkdir(parents=True)
        text = METADATA % self.about
        for number, (name, fields) in enumerate(EVENTS.items()):
            text += f'event {{ name = "{name}"; id = {number}; stream_id = 0; fields := struct {{ '
            text += " ".join(_declared(*field) for field in fields) + " }; };\n"
        (directory / "metadata").write_text(text)
        for cpu, events in self.cpus.items():
            half = len(events) // 2 or len(events)
            with open(directory / f"channel0_{cpu}", "wb") as stream:
                for number, part in enumerate(part for part in (events[:half], events[half:]) if part):
                    stream.write(self._packet(cpu, part, number, self.discarded.get(cpu, 0) if number else 0))

    def _packet(self, cpu, events, number, discarded):
        body, last = b"", events[0][0]
        for time, name, thread, values in events:
            event = list(EVENTS).index(name)
            if time - last < 1 << 27:
                body += struct.pack("<I", event | (time & (1 << 27) - 1) << 5)
            else:
                body += struct.pack("<BIQ", 31, event, time)
            last = time
            body += struct.pack("<i", thread) if self.with_tid else b""
            body += b"".join(_packed(kind, values[field]) for field, kind in EVENTS[name])
        head = struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<I", 0)
        size = 8 * (len(head) + 52 + len(body))
        context = struct.pack("<QQQQQQI", events[0][0], events[-1][0], size, size, number, discarded, cpu)
        return head + context + body
