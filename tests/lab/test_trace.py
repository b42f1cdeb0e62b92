# SPDX-License-Identifier: GPL-2.0-or-later
"""What recorded events must show. Their recordings are made on lab hosts that other tests boot (test_account.py)."""
import collections
import csv
import io
import json
import re
import subprocess

from lab import vperf

# Account and events together, no samples; the rings have room for all.
KNOWN = """command vperf record --no-samples --trace -m 4096 --no-guest-memory --no-agent -o /out/trace -- \
tinyvm --cpuid 20000 --out 10000 --mmio 5000 --hlt 3000 --wait 1
command vperf record --no-samples --no-account --no-guest-memory --no-agent -o /out/tracepoints -e kvm:kvm_cpuid \
-e kvm:kvm_pio --filter "rw == 1 && port == 0x80" -- tinyvm --cpuid 2000 --out 1000 --wait 1
""".replace("\\\n", "")


def events(run, *options, recording="trace"):
    text = vperf("script", str(run.recording(recording)), "--format", "csv", *options).stdout
    return list(csv.DictReader(io.StringIO(text)))


def counted_by_reason(run, claims, done):
    exits = events(run, "--event", "kvm_exit")
    places = collections.Counter((row["reason"], int(row["guest_rip"], 16)) for row in exits)
    for reason, (count, place) in done.items():
        claims.check(places[reason, place] == count,
                     f"trace: {reason} at {place:#x}: {places[reason, place]} kvm_exit, {count} were done")
    ours = collections.Counter(row["reason"] for row in exits)
    books = json.loads(vperf("exits", str(run.recording("trace")), "--json").stdout)["exits"]
    # The account counts an exit when the next entry ends it: a VM's last one is none.
    off = {row["reason"]: (ours[row["reason"]], row["count"]) for row in books
           if not 0 <= ours[row["reason"]] - row["count"] <= 1}
    claims.check(books and not off, f"trace: {len(exits)} kvm_exit, by reason as in the account beside it {off}")
    return exits


def entries_and_exits(run, claims):
    """An entry, an exit, an entry: of each vCPU."""
    last, twice = {}, 0
    rows = events(run, "--event", "kvm:kvm_entry,kvm:kvm_exit")
    for row in rows:
        who = row["vm"], row["vcpu"], row["tid"]
        twice += last.get(who) == row["event"]
        last[who] = row["event"]
    claims.check(len(last) == 1 and not twice,
                 f"trace: {len(rows)} entries and exits of {len(last)} vCPU take turns but {twice}")


def counted_by_others(run, claims):
    """vperf info, what the recorder said, and another reader of the format."""
    streams = run.info("trace")["streams"]
    told, lost = (sum(row[key] for row in streams) for key in ("events", "events_lost"))
    said = re.findall(r"(\d+) events, (\d+) lost", run.command_output(3, "err"))
    claims.check(said == [(str(told), "0")] and not lost, f"trace: {told} events, {lost} lost; it was said: {said}")
    text = subprocess.run(["babeltrace2", str(run.recording("trace") / "host")], capture_output=True, text=True,
                          check=True).stdout
    found = len(re.findall(r"^\[[^\]]*\].* (?:sched|kvm|irq|irq_vectors):\w+: \{", text, re.M))
    claims.check(found == told, f"trace: babeltrace2 has {found} events")
    sets = collections.Counter(row["event"].split(":")[0] for row in events(run) if ":" in row["event"])
    claims.check(sum(sets.values()) == told and all(sets[name] for name in ("sched", "kvm", "irq")),
                 f"trace: vperf script has {dict(sets)}")


def switches(run, claims):
    """On a pCPU, whoever leaves is whoever came last."""
    rows = events(run, "--event", "sched_switch")
    wrong = sum(before["next_tid"] != after["prev_tid"] for before, after in zip(rows, rows[1:]))
    claims.check(len(rows) > 50 and not wrong, f"trace: {len(rows)} switches of one pCPU, {wrong} out of a thread "
                 "that did not have it")


def any_tracepoints(run, claims):
    """KVM's own, by perf's buffers: each by its vCPU's thread, and one let by a filter only."""
    rows = events(run, recording="tracepoints")
    found = collections.Counter(row["event"] for row in rows)
    threads = {(row["comm"], row["tid"]) for row in rows}
    claims.check(found == {"kvm:kvm_cpuid": 2000, "kvm:kvm_pio": 1000} and len(threads) == 1,
                 f"tracepoints: {dict(found)} of 2000 CPUIDs and 1000 writes to a port, by {threads}")
    wrong = [row for row in rows if row["event"] == "kvm:kvm_pio" and (row["rw"], row["port"]) != ("1", "128")]
    claims.check(not wrong, "tracepoints: fields are those of the filter")
    lost = sum(row["events_lost"] for row in run.info("tracepoints")["streams"])
    claims.check(not lost, f"tracepoints: {lost} lost")


def known_exits(run, claims, done):
    any_tracepoints(run, claims)
    counted_by_reason(run, claims, {**done, "NPF": (5000, 0x31)})
    entries_and_exits(run, claims)
    counted_by_others(run, claims)
    switches(run, claims)
