# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes files of trace-cmd by their description (trace-cmd.dat.v6.5.txt, trace-cmd.dat.v7.5.txt), of versions and kernels that the
machine's own trace-cmd does not write."""
import struct

PAGE = 4096
FORMATS = {
    "sched": {"sched_wakeup": 31},
    "irq": {"softirq_entry": 32},
    "kvm": {"kvm_entry": 33},
}


def _format(name, number):
    fields = ["unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;", "unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;",
              "unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;", "int common_pid;\toffset:4;\tsize:4;\tsigned:1;", ""]
    if name == "sched_wakeup":
        fields += ["char comm[16];\toffset:8;\tsize:16;\tsigned:0;", "pid_t pid;\toffset:24;\tsize:4;\tsigned:1;",
                   "int prio;\toffset:28;\tsize:4;\tsigned:1;", "int target_cpu;\toffset:32;\tsize:4;\tsigned:1;"]
        show = '"pid=%d", REC->pid'
    elif name == "kvm_entry":
        fields += ["unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;", "unsigned long rip;\toffset:16;\tsize:8;\tsigned:0;"]
        show = '"vcpu %u", REC->vcpu_id'
    else:
        fields += ["unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;"]
        show = '"vec=%u", REC->vec'
    lines = "".join("\tfield:" + field + "\n" if field else "\n" for field in fields)
    return f"name: {name}\nID: {number}\nformat:\n{lines}\nprint fmt: {show}\n".encode()


def wakeup(time, tid, woken, cpu=0):
    return time, struct.pack("<HBBi16siii", 31, 0, 0, tid, b"woken", woken, 120, cpu)


def softirq(time, tid, vec):
    return time, struct.pack("<HBBiI", 32, 0, 0, tid, vec)


def entry(time, tid, vcpu):
    return time, struct.pack("<HBBiI4xQ", 33, 0, 0, tid, vcpu, 0x1000)


class Buffer:
    """An instance, or with no name the trace's own: events of each CPU, by time."""

    def __init__(self, name, cpus, clock="local"):
        self.name, self.cpus, self.clock = name, cpus, clock

    def pages(self, cpu, long_size):
        out, data, start, last = b"", b"", None, 0
        room = PAGE - 8 - long_size
        for time, raw in self.cpus[cpu] + [(None, b"")]:
            if time is None or len(data) + len(raw) + 12 > room:
                if start is not None:
                    page = struct.pack("<Q" + ("I" if long_size == 4 else "Q"), start, len(data)) + data
                    out += page.ljust(PAGE, b"\0")
                data, start = b"", None
            if time is None:
                break
            start = time if start is None else start
            delta = time - (last if data else start)
            if delta >= 1 << 27:
                data += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
                delta = 0
            data += struct.pack("<I", len(raw) // 4 | delta << 5) + raw
            last = time
        return out


def _headers(long_size):
    page = (f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{long_size};\tsigned:1;\n"
            f"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
            f"\tfield: char data;\toffset:{8 + long_size};\tsize:{PAGE - 8 - long_size};\tsigned:0;\n").encode()
    event = (b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n"
             b"\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n")
    return b"header_page\0" + struct.pack("<Q", len(page)) + page + b"header_event\0" + struct.pack("<Q", len(event)) + event


def _systems():
    out = struct.pack("<I", len(FORMATS))
    for system, events in FORMATS.items():
        out += system.encode() + b"\0" + struct.pack("<I", len(events))
        for name, number in events.items():
            text = _format(name, number)
            out += struct.pack("<Q", len(text)) + text
    return out


def _option(number, data):
    return struct.pack("<HI", number, len(data)) + data


def version_6(path, buffers, long_size=8, options=b"", clock=None):
    """`buffers`: the trace's own first. clock: the kernel's list, as it follows the places of its own events; None: of `options` only."""
    commands = b"7 waker\n8 woken\n"
    head = b"\x17\x08\x44tracing6\0" + bytes([0, long_size]) + struct.pack("<I", PAGE) + _headers(long_size)
    head += struct.pack("<I", 0) + _systems() + struct.pack("<IIQ", 0, 0, len(commands)) + commands + struct.pack("<I", len(buffers[0].cpus))
    head += b"options  \0" + options + (_option(7, b"") if clock else b"")
    names = [buffer.name.encode() + b"\0" for buffer in buffers[1:]]
    places = 10 + 16 * len(buffers[0].cpus)
    clocks = struct.pack("<Q", len(clock)) + clock.encode() if clock else b""
    at = len(head) + sum(6 + 8 + len(name) for name in names) + 2 + places + len(clocks)
    data_at = at + len(names) * places
    data_at += -data_at % PAGE
    for i, name in enumerate(names):
        head += _option(3, struct.pack("<Q", at + i * places) + name)
    head += struct.pack("<H", 0)
    data, tables = b"", []
    for buffer in buffers:
        table = b"flyrecord\0"
        for cpu in range(len(buffer.cpus)):
            pages = buffer.pages(cpu, long_size)
            table += struct.pack("<QQ", data_at + len(data), len(pages))
            data += pages
        tables.append(table)
    head += tables[0] + clocks + b"".join(tables[1:])
    path.write_bytes(head.ljust(data_at, b"\0") + data)


def version_7(path, buffers, long_size=8, options=b""):
    commands = b"7 waker\n8 woken\n"
    out = b"\x17\x08\x44tracing7\0" + bytes([0, long_size]) + struct.pack("<I", PAGE) + b"none\0\0"
    at_options = len(out)
    out += struct.pack("<Q", 0)
    list_ = options

    def section(number, data):
        nonlocal out, list_
        list_ += _option(number, struct.pack("<Q", len(out)))
        out += struct.pack("<HHIQ", number, 0, 0, len(data)) + data
    section(16, _headers(long_size))
    section(17, struct.pack("<I", 0))
    section(18, _systems())
    section(21, struct.pack("<Q", len(commands)) + commands)
    for buffer in buffers:
        at = len(out) + 16
        pad = -at % PAGE
        pages = [buffer.pages(cpu, long_size) for cpu in range(len(buffer.cpus))]
        data = b"".join(pages)
        begin = len(out)
        out += struct.pack("<HHIQ", 3, 0, 0, pad + len(data)) + bytes(pad) + data
        entry = struct.pack("<Q", begin) + buffer.name.encode() + b"\0" + buffer.clock.encode() + b"\0" + struct.pack("<II", PAGE, len(pages))
        place = at + pad
        for cpu, its in enumerate(pages):
            entry += struct.pack("<IQQ", cpu, place, len(its))
            place += len(its)
        list_ += _option(3, entry)
    list_ += _option(8, struct.pack("<I", max(len(buffer.cpus) for buffer in buffers)))
    body = list_ + _option(0, struct.pack("<Q", 0))
    out = out[:at_options] + struct.pack("<Q", len(out)) + out[at_options + 8:] + struct.pack("<HHIQ", 0, 0, 0, len(body)) + body
    path.write_bytes(out)
