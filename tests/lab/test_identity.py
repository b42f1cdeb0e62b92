# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests without an agent: who and what every sample was, by the guest's memory alone."""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from unittest import mock

# Threads that print their tid and function, a program with dynamic libraries, and
# system calls for the kernel's share.
SCENARIO = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus={vcpus} memory=256 kernel={guest} kallsyms=yes
workload g1 who --procs 2 --threads 2
workload g1 exits --syscalls 20000 --rate 6
workload g1 shares fast=80 slow=20
command export HOME=/tmp/home; vperf guests --format json >/out/guests.json; \
vperf guests --scan --no-cache --format json >/out/scanned.json; \
vperf record -o /out/rec -- lab-guest busy g1 2; \
sed -i '/member task_struct.comm/s/[0-9a-f]*$/10/' /tmp/home/.cache/vperf/packs/*.pack; \
vperf guests --format json >/out/tampered.json
command-after rm -rf /tmp/home/.cache
""".replace("\\\n", "")

BY_MEMORY = 128
GUEST_USER = "5"


def scenario(host, guest, vcpus):
    return SCENARIO.format(host=host, guest=guest, vcpus=vcpus)


def truth_of(run):
    """(from, to) of a function, and the (pid, tid, comm) of the thread that alone runs it."""
    text = (run.out / "guest-g1" / "workloads.log").read_text()
    pattern = r"who: pid=(\d+) tid=(\d+) comm=(\S+) from=0x(\w+) to=0x(\w+)"
    return [((int(start, 16), int(end, 16)), (int(pid), int(tid), comm))
            for pid, tid, comm, start, end in re.findall(pattern, text)]


def guest_samples(run, recording="rec"):
    """All guest samples of the trace as dictionaries, with `comm` from the records before them."""
    text = subprocess.run(["babeltrace2", str(run.recording(recording) / "host")],
                          capture_output=True, text=True, check=True).stdout
    comms, samples = {}, []
    for line in text.splitlines():
        kind = re.search(r" (guest_sample|guest_task): ", line)
        if not kind:
            continue
        fields = dict(re.findall(r"(\w+) = (\"[^\"]*\"|\w+)", line))
        if kind[1] == "guest_task":
            comms[fields["guest_tid"]] = fields["comm"].strip('"')
        else:
            fields["comm"] = comms.get(fields["guest_tid"])
            samples.append(fields)
    return samples


def check_samples(run, claims):
    samples, truth = guest_samples(run), truth_of(run)
    named = [sample for sample in samples if int(sample["flags"], 16) & BY_MEMORY]
    claims.check(len(samples) > 1000 and len(named) >= 0.99 * len(samples),
                 f"{len(named)} of {len(samples)} guest samples are named by memory")
    right = known = 0
    for sample in samples:
        ip = int(sample["ip"], 16)
        expected = [who for (start, end), who in truth if start <= ip < end]
        if sample["mode"] == GUEST_USER and expected:
            known += 1
            right += expected[0] == (int(sample["guest_pid"]), int(sample["guest_tid"]),
                                     sample["comm"])
    claims.check(known > 500 and right >= 0.99 * known,
                 f"{right} of {known} samples of threads that said who they are carry the right "
                 "tgid, tid and comm")


def by_function(report, kind):
    counts = {}
    for row in report["rows"]:
        if row["kind"] == kind:
            counts[row["function"]] = counts.get(row["function"], 0) + row["samples"]
    return counts


def check_kernel_symbols(run, claims):
    kallsyms = f"g1={run.out / 'guest-g1' / 'kallsyms'}"
    ours = by_function(run.report("guest", "--vm", "g1"), "kernel")
    theirs = by_function(run.report("guest", "--vm", "g1", "--kallsyms", kallsyms), "kernel")
    same = sum(min(count, ours.get(name, 0)) for name, count in theirs.items())
    total = sum(theirs.values())
    claims.check(total > 50 and same >= 0.99 * total,
                 f"{same} of {total} guest kernel samples have the symbol that the guest's "
                 "/proc/kallsyms gives")


def symfs_of(run):
    """The guest's root file system, as links to vlab's sources of its files."""
    root = run.out / "symfs"
    programs = json.loads((run.out / "result.json").read_text())["programs"]
    (root / "lab").mkdir(parents=True, exist_ok=True)
    for link, target in ((root / "lab/bin", programs), (root / "lib", "/lib"),
                         (root / "lib64", "/lib64")):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return root


# Functions of the two programs that are not in a library.
OWN = re.compile(r"(share_[a-h]|burn_[0-7]|run|main|work_\w+)$")


def check_functions(claims, report, how):
    """Samples of the two programs have names of their functions; returns their rows."""
    rows = [row for row in report["rows"] if row["kind"] == "user" and
            (row["process"] == "shares" or str(row["process"]).startswith("who-"))]
    total = sum(row["samples"] for row in rows)
    good = sum(row["samples"] for row in rows if OWN.match(row["function"]) and
               row["module"].startswith("/lab/bin/"))
    claims.check(total > 500 and good >= 0.95 * total,
                 f"{good} of {total} user samples have the right function {how}")
    return rows


def check_user_symbols(run, claims):
    report = run.report("guest", "--vm", "g1", "--symfs", str(symfs_of(run)))
    rows = check_functions(claims, report, "with --symfs")
    burners = {row["function"]: row["process"] for row in rows
               if row["function"].startswith("burn_") and row["samples"] > 20}
    claims.check(burners and all(name[-1] == who[-1] for name, who in burners.items()),
                 f"each thread is in its own function: {sorted(burners.items())}")


def serve_build_ids(root, asked):
    """A server as debuginfod's clients ask it, for the guest's programs: stripped, and their symbols."""
    served = {}
    for program in ("who", "shares"):
        path = root / "lab/bin" / program
        notes = subprocess.run(["readelf", "-n", str(path)], capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        for kind, option in (("executable", "--strip-all"), ("debuginfo", "--only-keep-debug")):
            apart = root / f"{program}.{kind}"
            subprocess.run(["objcopy", option, str(path), str(apart)], check=True)
            served[f"/buildid/{build_id}/{kind}"] = apart

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = served[self.path].read_bytes() if self.path in served else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def check_server(run, claims):
    """The same recording as if nothing of the files had been in the guest's memory."""
    bare = run.recording("bare")
    shutil.copytree(run.recording(), bare, dirs_exist_ok=True)
    maps = bare / "guest-g1.maps"
    lines = [line for line in maps.read_text().splitlines(keepends=True)
             if not line.startswith("s ")]
    maps.write_text("".join(lines[:-1]) + f"end {len(lines) - 1}\n")
    asked = []
    server = serve_build_ids(symfs_of(run), asked)
    settings = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}",
                "DEBUGINFOD_CACHE_PATH": str(run.out / "debuginfod"), "HOME": str(run.out)}
    with mock.patch.dict(os.environ, settings):
        report = run.report("guest", "--vm", "g1", recording="bare")
    server.shutdown()
    check_functions(claims, report, f"by a debuginfod server, asked for {sorted(asked)}")


def check_guests(run, claims):
    guest, = json.loads((run.out / "guests.json").read_text())["vms"]
    scanned, = json.loads((run.out / "scanned.json").read_text())["vms"]
    claims.check(guest["problem"] is None and guest["kernel"]["found_by"] == "registers",
                 "vperf guests finds the kernel by the vCPUs' registers")
    claims.check(scanned["kernel"] and scanned["kernel"]["found_by"] == "scan" and
                 scanned["kernel"]["text"] == guest["kernel"]["text"],
                 "it finds the same kernel without registers")
    pids = {pid for _, (pid, _, _) in truth_of(run)}
    listed = {process["pid"] for process in guest["processes"]}
    claims.check(pids and pids <= listed, f"it lists the workload's processes {sorted(pids)}")
    tampered, = json.loads((run.out / "tampered.json").read_text())["vms"]
    claims.check(tampered["kernel"] and tampered["kernel"]["pack"] == "read" and
                 "does not match" in str(tampered["kernel"]["dropped_pack"]) and
                 pids <= {process["pid"] for process in tampered["processes"]},
                 f"a wrong pack is dropped: {tampered['kernel'] and tampered['kernel']['dropped_pack']}")
    info = run.info()["vms"][0]
    claims.check("cached kernel pack" in info["memory"],
                 f"the recording starts from a cached pack: {info['memory']}")


def identity(run, claims):
    check_guests(run, claims)
    check_samples(run, claims)
    check_kernel_symbols(run, claims)
    check_user_symbols(run, claims)
    check_server(run, claims)


# g1 gets memory while it is recorded, above 4 GiB, and then new processes: once what it has set aside
# for tasks is full, the kernel puts more of them there. g2 is killed.
CHANGES = """
host pcpus=1 icount=yes kernel={host}
guest g1 vcpus=1 memory=256 kernel={guest} append=memhp_default_state=online_kernel \
qemu="-m slots=2,maxmem=1G"
guest g2 vcpus=1 memory=256 kernel={guest}
workload g1 sh -c "until [ -e /sys/devices/system/memory/memory32 ]; do sleep 0.2; done; \
for i in 1 2 3 4 5; do /lab/bin/who --procs 8 --threads 1 & done; wait"
workload g2 shares fast=80 slow=20
command vperf guests --format json >/out/guests.json; vperf record -o /out/rec -- sh -c ' \
lab-guest busy g2 1; tests/lab/qmp /run/vlab/g1.qmp object-add qom-type=memory-backend-ram id=more size=134217728; \
tests/lab/qmp /run/vlab/g1.qmp device_add driver=pc-dimm id=dimm memdev=more; lab-guest kill g2; lab-guest busy g1 9'
""".replace("\\\n", "")


def tasks_in_trace(run):
    """Guest tid → the guest's address of its task."""
    text = subprocess.run(["babeltrace2", str(run.recording() / "host")],
                          capture_output=True, text=True, check=True).stdout
    return {int(tid): int(task, 0) for tid, task in
            re.findall(r" guest_task: .*\bguest_tid = (\d+), task = (\w+)", text)}


def check_named_from_then_on(run, claims):
    """Tasks that are nowhere are looked for once a second; one that was named once stays named."""
    named_once, before, unnamed, named = set(), 0, 0, 0
    truth = truth_of(run)
    for sample in guest_samples(run):
        ip = int(sample["ip"], 16)
        who = [who for (start, end), who in truth if start <= ip < end]
        if sample["mode"] != GUEST_USER or not who:
            continue
        if int(sample["flags"], 16) & BY_MEMORY:
            named_once.add(who[0])
            named += 1
        elif who[0] in named_once:
            unnamed += 1
        else:
            before += 1
    claims.check(named > 1000 and unnamed <= 0.01 * named,
                 f"{named} samples of the new processes are named, {unnamed} not after their first, {before} before")


def changes(run, claims):
    guests = {guest["vm"]: guest for guest in json.loads((run.out / "guests.json").read_text())["vms"]}
    direct_map, tasks = int(guests["g1"]["kernel"]["direct_map"], 16), tasks_in_trace(run)
    new = {tid for _, (_, tid, _) in truth_of(run) if tasks.get(tid, 0) - direct_map >= 1 << 32}
    claims.check(len(new) >= 2, f"tasks in memory that was plugged in are named: {sorted(new)}")
    check_named_from_then_on(run, claims)
    report = run.report("guest", "--vm", "g2", "--symfs", str(symfs_of(run)))
    rows = [row for row in report["rows"] if row["process"] == "shares" and row["kind"] == "user"]
    total, good = (sum(row["samples"] for row in rows if OWN.match(row["function"]) or every)
                   for every in (True, False))
    claims.check(total > 200 and good >= 0.95 * total,
                 f"{good} of {total} user samples of the VM that was killed have their function")
    kernel = [row for row in report["rows"] if row["kind"] == "kernel"]
    claims.check(kernel and not any(row["function"].startswith("0x") for row in kernel),
                 "its kernel's functions have names")
    claims.check(any("the VM ended" in note for note in report["notes"]),
                 f"what is missing is said: {[note for note in report['notes'] if 'g2' in note]}")


# g1 has 64 GiB, of which it uses little; g2's memory is of huge pages. Their kernels are searched for, without registers. Memory that
# guests still take themselves, after their start, is no part of it: the second search waits until they take none for three seconds.
SPARSE = """
host pcpus=1 icount=yes append="hugepages=132"
guest g1 vcpus=1 memory=256 append="mem=256M" qemu="-m 64G -object memory-backend-memfd,id=ram,size=64G -machine memory-backend=ram"
guest g2 vcpus=1 memory=256 qemu="-object memory-backend-memfd,id=ram,size=256M,hugetlb=on -machine memory-backend=ram"
command used() {{ for name in g1 g2; do awk -v name=$name '/^(Size|Rss|Shared_Hugetlb|Private_Hugetlb)/ {{ sum[$1] += $2 }} \
END {{ for (what in sum) print name, what, sum[what] }}' /proc/$(pgrep -f -o "name $name,")/smaps; done; grep HugePages_Free /proc/meminfo; }}; \
vperf guests --scan --no-cache --json >/dev/null; last=; while now=$(used); [ "$now" != "$last" ]; do last=$now; sleep 3; done; used >/out/before; \
vperf guests --scan --no-cache --json >/out/scanned.json; used >/out/after
""".replace("\\\n", "").replace("{{", "{").replace("}}", "}")
LITTLE_KIB = 1024  # what guests that do nothing may use meanwhile


def memory_that_is_not_there(run, claims):
    before, after = ({line.rsplit(None, 1)[0] if line[0] == "g" else "free": int(line.split()[-1])
                      for line in (run.out / name).read_text().replace(" kB", "").splitlines()} for name in ("before", "after"))
    guests = {guest["vm"]: guest["kernel"] or {} for guest in json.loads((run.out / "scanned.json").read_text())["vms"]}
    claims.check({name: kernel.get("found_by") for name, kernel in guests.items()} == {"g1": "scan", "g2": "scan"},
                 f"both kernels are found by a search: {[(name, kernel.get('physical')) for name, kernel in guests.items()]}")
    size, rss = before["g1 Size:"], [counts["g1 Rss:"] for counts in (before, after)]
    claims.check(size > 64 << 20 and rss[0] < 1 << 20 and abs(rss[1] - rss[0]) <= LITTLE_KIB,
                 f"of {size} KiB the host has {rss[0]}, and {rss[1]} after another search")
    huge = [counts["g2 Shared_Hugetlb:"] + counts["g2 Private_Hugetlb:"] for counts in (before, after)]
    claims.check(0 < huge[0] < 256 << 10 and huge[0] == huge[1] and before["free"] == after["free"],
                 f"of g2's huge pages {huge[0]} KiB are used, and {huge[1]} after another search")


# g1's memory is in more than 300 slots of KVM's; the vCPUs of g2 have other numbers for KVM than for QEMU. And what a program would
# write into memory that is not a guest's any more.
NODES, DIMMS = 128, 180
SLOTS = f"""
host pcpus=1 icount=yes append="vhost.max_mem_regions=1024"
guest g1 vcpus=2 memory={2 * NODES} append="numa=off" qemu="\
{' '.join(f'-object memory-backend-ram,id=m{i},size=2M -numa node,memdev=m{i}' for i in range(NODES))} -m slots={DIMMS},maxmem=4G \
{' '.join(f'-object memory-backend-ram,id=d{i},size=2M -device pc-dimm,id=p{i},memdev=d{i}' for i in range(DIMMS))}"
guest g2 vcpus=1 memory=256 qemu="-smp 4,maxcpus=6,sockets=2,cores=3"
workload g1 who --procs 2 --threads 2
workload g2 who --procs 2 --threads 2
command vperf record -o /out/rec -- sleep 3; cat /out/rec/vms; for file in /sys/kernel/debug/kvm/*/vcpu*/pid; do \
echo kvm $(basename $(dirname $file)) $(cat $file); done
command build/tests/bpf/test_bpf_lend
""".replace("\\\n", "")


def slots_and_numbers(run, claims):
    text = run.command_output(1)
    for name in ("g1", "g2"):
        memory = re.search(rf" {name}\n(?:agent .*\n)?memory (.*)", text)[1]
        named, not_named = re.search(r"(\d+) samples named, (\d+) not", memory).groups()
        claims.check(memory.startswith("ok: ") and int(named) > 500 and int(not_named) <= int(named) / 100,
                     f"{name}: {memory}")
    kvms = {tid: number for number, tid in re.findall(r"kvm vcpu(\d+) (\d+)", text) if tid != "0"}
    known = dict(reversed(vcpu) for vcpu in re.findall(r"^vcpu (\d+) (\d+)$", text, re.M))
    claims.check(len(known) == 6 and known == kvms, f"threads and their vCPUs are KVM's: {known}")
    claims.check(sorted(known.values()) == sorted("0 1 0 1 2 4".split()), "which are not QEMU's own")
    report = run.report("guest", "--vm", "g1")
    burns = {row["function"] for row in report["rows"] if row["function"].startswith("burn_")}
    claims.check(len(burns) == 4, f"functions of programs in a guest of {NODES + DIMMS} memory slots: {sorted(burns)}")
    claims.check("[  PASSED  ] 2 test(s)" in run.command_output(2) + run.command_output(2, "err"),
                 "lending: nothing is written once KVM's slots have changed")


SUITES = ("bullseye", "bookworm", "trixie", "sid")


def tests(pairs):
    return [(f"identity: host {host}, guest {guest}, {vcpus} vCPUs",
             scenario(host, guest, vcpus), identity) for host, guest, vcpus in pairs]


TESTS = []
QUICK = ()
FULL = [("identity: memory slots, vCPU numbers", SLOTS, slots_and_numbers),
        ("identity: memory plugged in, a VM that is killed", CHANGES.format(host="bookworm", guest="trixie"), changes),
        ("identity: memory that is not there", SPARSE, memory_that_is_not_there)]
FULL += tests([(host, guest, vcpus) for host in SUITES for guest in SUITES for vcpus in (1, 4)] + [("bookworm", "sid", 2)])
