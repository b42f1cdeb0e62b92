# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests whose kernels lie, and kernel packs that are of another kernel: names may be missing then,
but none is wrong, and nothing hangs."""
import json
import re
from urllib.parse import unquote

from test_identity import BY_MEMORY, GUEST_USER, guest_samples, truth_of

# Lies about each process except `shares`, whose names must stay correct.
LIES = ("endless-name:who-0 ~huge-pid:who-1 no-process:who-2 mapping-ring:who-3 "
        "mapping-nowhere:who-4 ~endless-name:who-5 path-ring:exits huge-headers:exits "
        "file-size:exits long-path:idler huge-notes:idler path-nowhere:jit page-ring:jit "
        "~task-ring:jit module-ring")
# Kernels whose task layout must be derived without BTF, and those for which it cannot be derived.
WITHOUT_BTF = ("no-btf", "huge-btf")
UNREADABLE = ("no-btf,task-ring:init", "wild-symbols")
FORGERIES = ("name", "notes", "evidence", "symbols")
CALLS = "exits --syscalls 20000 --rate 2"
FEWER = (WITHOUT_BTF[:1], UNREADABLE[1:], FORGERIES[2:])  # without --full

SCENARIO = """
host pcpus=1 icount=yes kernel={host}{machine}
guest g1 vcpus=1 memory=256 kernel={first}
guest g2 vcpus=1 memory=256 kernel={second} agent=yes
workload g1 who --procs 6 --threads 1
workload g1 {calls}
workload g1 idler 1 1
workload g1 jit
workload g1 shares fast=80 slow=20
workload g2 idler 1 3
workload g2 {calls}
command-before ln -s "$(dirname "$(command -v vperf)")/tests/lab" /tmp/lab; \
export XDG_CACHE_HOME=/tmp/honest; vperf guests --format json >/out/honest.json
command-before for how in {forgeries}; do export XDG_CACHE_HOME=/tmp/$how; \
tests/lab/forge-packs $how /tmp/honest/vperf/packs /tmp/$how/vperf/packs; \
vperf guests --format json >/out/forged-$how.json; done
command-before for lie in {kernel_lies}; do /tmp/lab/lying-guest g1 ${{lie//,/ }} -- \
vperf guests --vm g1 --no-cache --format json >/out/$lie.json; echo $lie $? >>/out/statuses; done
command lab-guest busy g1 1; export XDG_CACHE_HOME=/tmp/honest; \
/tmp/lab/lying-guest g1 {lies} -- {second_lies}\
nice -n -15 vperf record {trigger}-o /out/rec -- sh -c 'lab-guest busy g1 8; date +%s.%N >/out/slept' 2>/out/said; date +%s.%N >/out/ended
""".replace("\\\n", "")



def scenario(host, first, second, without_btf, unreadable, forgeries):
    return SCENARIO.format(host=host, first=first, second=second, lies=LIES, machine="", trigger="", calls=CALLS,
                           second_lies="/tmp/lab/lying-guest g2 no-btf -- ", kernel_lies=" ".join(without_btf + unreadable),
                           forgeries=" ".join(forgeries))


def scenario_on_arm(host, first, second, unreadable):
    """Sampled by time: the emulated processor has counters. `exits` makes no system calls there."""
    lines = SCENARIO.replace("workload g2 {calls}\n", "").replace(" agent=yes", "")
    return lines.format(host=host, first=first, second=second, lies=LIES.replace(":exits", ":modes"), machine=" arch=arm64 memory=1280",
                        trigger="-e cpu-clock --no-agent ", calls="modes 1 1", second_lies="", kernel_lies=" ".join(unreadable),
                        forgeries=" ".join(FORGERIES))


def naming_of_threads(run):
    """Thread's name → [samples named right, not named, named wrong] of those in its function, once
    the kernel was found."""
    truth, found = truth_of(run), False
    pid = next(str(vm["pid"]) for vm in run.info()["vms"] if vm["name"] == "g1")
    counts = {who[2]: [0, 0, 0] for _, who in truth}
    for sample in guest_samples(run):
        ip, named = int(sample["ip"], 16), int(sample["flags"], 16) & BY_MEMORY
        expected = [who for (start, end), who in truth if start <= ip < end]
        found |= named != 0 and sample["vm"] == pid
        if found and sample["mode"] == GUEST_USER and expected:
            got = (int(sample["guest_pid"]), int(sample["guest_tid"]), sample["comm"])
            counts[expected[0][2]][1 if not named else 0 if got == expected[0] else 2] += 1
    return counts


def check_names(run, claims):
    counts = naming_of_threads(run)
    claims.check(len(counts) == 6 and all(sum(each) > 100 for each in counts.values()),
                 f"samples of each thread, named right, not and wrong: {counts}")
    claims.check(not any(wrong for _, _, wrong in counts.values()), "none has a wrong name")
    claims.check(all(counts[who][0] == 0 for who in ("who-0", "who-2")),
                 "threads without an end to their name, or of no process, are not named")
    claims.check(all(counts[who][1] == 0 for who in ("who-3", "who-4")),
                 "threads whose mappings are a lie have their names")
    claims.check(all(min(counts[who][:2]) > 0.2 * sum(counts[who]) for who in ("who-1", "who-5")),
                 "threads that are lied about now and then are named in between")


def user_modules(report, process):
    counts = {}
    for row in report["rows"]:
        if row["kind"] == "user" and row["process"] == process:
            key = str(row["module"])
            counts[key] = counts.get(key, 0) + row["samples"]
    return counts


def check_functions(run, claims, calls="exits"):
    report = run.report("guest", "--vm", "g1")
    rows = [row for row in report["rows"] if row["kind"] == "user" and row["process"] == "shares"]
    total = sum(row["samples"] for row in rows)
    good = sum(row["samples"] for row in rows if row["function"] in ("share_a", "share_b") and
               row["module"] == "/lab/bin/shares")
    claims.check(total > 200 and good >= 0.95 * total,
                 f"{good} of {total} samples of the process that is not lied about have functions")
    for process in (calls, "idler", "jit"):
        modules = user_modules(report, process)
        claims.check(modules and not any(name.startswith("/") and not name.startswith("//") and
                                         not name.startswith("/lib") for name in modules),
                     f"files without a path that can be read are unknown: {process} {modules}")
    text = (run.recording() / "guest-g1.maps").read_text(errors="replace")
    notes = [unquote(line[2:]) for line in text.splitlines() if line.startswith("n ")]
    claims.check(any("kernel modules" in note for note in notes) and
                 any("process mappings" in note for note in notes),
                 f"what could not be read is said: {notes}")


def check_course(run, claims):
    slept, ended = (float((run.out / name).read_text()) for name in ("slept", "ended"))
    # Nothing hangs: there is no lie that costs as long as the limit of an answer, twice.
    claims.check(ended - slept < 120, f"the recording ended {ended - slept:.1f} s after its command")
    claims.note(f"the recorder said: {(run.out / 'said').read_text()}")
    vms = {vm["name"]: vm for vm in run.info()["vms"]}
    claims.check(vms["g1"]["memory"].startswith("ok:"), f"g1: {vms['g1']['memory']}")
    text = (run.out / "guest-g1" / "workloads.log").read_text()
    ends = re.findall(r"exit status=(\d+)", text)
    claims.check(ends and set(ends) == {"0"} and len(ends) == 5,
                 f"the guest has taken no harm: its programs ended with {ends}")


def check_without_btf(run, claims):
    vms = {vm["name"]: vm for vm in run.info()["vms"]}
    claims.check("no BTF" in vms["g2"]["memory"] and vms["g2"]["agent"].startswith("ok:"),
                 f"a kernel without BTF is said to be one: {vms['g2']['memory']}")
    report = run.report("guest", "--vm", "g2")
    named, others = (sum(report["routes"].get(name, 0) for name in names)
                     for names in (("memory",), ("none", "cr3", "kernel-symbols")))
    claims.check(named > 200 and (named >= 0.9 * (named + others)),
                 f"its memory names the process of {named} samples, not of {others}")
    rows = [row for row in report["rows"] if row["kind"] == "user" and row["process"] != "exits"]
    total = sum(row["samples"] for row in rows)
    good = sum(row["samples"] for row in rows if row["process"] == "idler" and
               re.match("(idler|work)_", row["function"]))
    claims.check(total > 200 and good >= 0.95 * total,
                 f"its agent names the function of {good} of {total} user samples")
    kernel = [row for row in report["rows"] if row["kind"] == "kernel" and row["samples"]]
    claims.check(kernel and all(not row["function"].startswith("0x") for row in kernel),
                 "its memory still names the kernel's functions")


def lasting_processes(guest):
    """Without the kernel's worker threads, which come and go."""
    return {(process["pid"], process["process"]) for process in guest["processes"]
            if not process["process"].startswith("kworker")}


def check_kernel_lies(run, claims, without_btf, unreadable):
    honest = json.loads((run.out / "honest.json").read_text())["vms"][0]
    statuses = dict(line.split() for line in (run.out / "statuses").read_text().splitlines())
    for lie in without_btf:
        guest, = json.loads((run.out / f"{lie}.json").read_text())["vms"]
        same = lasting_processes(guest) == lasting_processes(honest)
        claims.check(statuses[lie] == "0" and same and guest["kernel"]["derived"] and
                     not honest["kernel"]["derived"],
                     f"{lie}: the same {len(guest['processes'])} processes as with BTF: "
                     f"{guest['problem']}")
    for lie in unreadable:
        guest, = json.loads((run.out / f"{lie}.json").read_text())["vms"]
        claims.check(statuses[lie] == "1" and guest["problem"] and not guest["processes"],
                     f"{lie}: {guest['problem']}")


def check_packs(run, claims, forgeries):
    honest = {guest["vm"]: guest for guest in json.loads((run.out / "honest.json").read_text())["vms"]}
    for how in forgeries:
        for guest in json.loads((run.out / f"forged-{how}.json").read_text())["vms"]:
            kernel, name = guest["kernel"], guest["vm"]
            programs = [{process["pid"] for process in side["processes"]
                         if process["process"] in ("shares", "init")}
                        for side in (guest, honest[name])]
            claims.check(kernel and kernel["pack"] == "read" and programs[0] == programs[1] and
                         kernel["text"] == honest[name]["kernel"]["text"],
                         f"{name}, pack that is another kernel's but for its {how}: "
                         f"{kernel and kernel['dropped_pack'] or 'not used'}")


def test(host, first, second, without_btf=WITHOUT_BTF, unreadable=UNREADABLE, forgeries=FORGERIES):
    def lies(run, claims):
        check_course(run, claims)
        check_names(run, claims)
        check_functions(run, claims)
        check_without_btf(run, claims)
        check_kernel_lies(run, claims, without_btf, unreadable)
        check_packs(run, claims, forgeries)

    text = scenario(host, first, second, without_btf, unreadable, forgeries)
    return (f"lies: host {host}, guests {first} and {second}", text, lies)


def test_on_arm(host, first, second):
    """Debian's kernels for 64-bit Arm have no symbols of data: without BTF, tasks are not found."""
    unreadable = ("no-btf", "huge-btf", *UNREADABLE[1:])

    def lies(run, claims):
        check_course(run, claims)
        check_names(run, claims)
        check_functions(run, claims, "modes")
        check_kernel_lies(run, claims, (), unreadable)
        check_packs(run, claims, FORGERIES)

    return ("64-bit Arm, lying guest", scenario_on_arm(host, first, second, unreadable), lies)


TESTS = [test("bookworm", "bookworm", "trixie", *FEWER)]
QUICK = ()
FULL = [test("bookworm", "bullseye", "sid"), test("trixie", "sid", "bullseye"), test_on_arm("bookworm", "bookworm", "trixie")]
