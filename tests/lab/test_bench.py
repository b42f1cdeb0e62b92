# SPDX-License-Identifier: GPL-2.0-or-later
"""vperf-bench on a real host, with real tracers and a guest of its own (see docs/lab.md)."""
import base64
import json
import re
import shutil
import subprocess
import sys

from lab import REPOSITORY, Run, run_scenario

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs  # noqa: E402
from vlablib.arch import AMD64  # noqa: E402
from vlablib.common import cache_dir  # noqa: E402

CPUIDS = 3000
# In the guest's place: the lab host's own kernel, which has 9p.
KERNEL = f"{cache_dir('kernels')}/bookworm-generic/root/boot/vmlinuz-*"
# On one pCPU in virtual time. Two threads wake each other over a pipe: each event that is recorded adds to their CPU time. (Elapsed time
# has waits for the machine's files in it, which are not in virtual time.)
TRACERS = """
repeats = 2
least-free = 0
[settle]
seconds = 0
[configuration.plain]
directory = "/tmp"
[configuration.trace-cmd]
directory = "/tmp"
tracer = "trace-cmd"
[test.pipe]
command = "perf bench sched pipe -l 2000"
figure = "cpu"
cache = ["cold"]
"""
# Failures are reported, and the other steps continue.
WRONG = """
repeats = 1
least-free = 0
[settle]
seconds = 0
[configuration.plain]
directory = "/tmp"
[test.hangs]
command = "sleep 1000"
cache = ["cold"]
time-limit = 2
[test.mute]
command = "echo nothing"
figure = { pattern = '([0-9.]+) s' }
cache = ["cold"]
[test.second]
command = "@BENCH@ run /tmp/wrong.toml -o /tmp/second; [ $? = 1 ] && [ ! -e /tmp/second ]"
cache = ["cold"]
[test.well]
command = "true"
cache = ["cold"]
"""
# On 4 MiB, most of which one test fills: no space is left for the next.
FULL_DISK = """
repeats = 3
least-free = 0
[settle]
seconds = 0
[configuration.plain]
directory = "/tmp"
[test.fills]
command = "head -c 1200000 /dev/zero; cat /proc/uptime >&2"
cache = ["cold"]
"""
GUEST = """
repeats = 1
least-free = 0
[settle]
seconds = 0
""" + "".join(f"""
[configuration.{name}]
directory = "/tmp"
where = "kvm-guest"
tracer = "vperf-account"
memory = "256M"
{disk}
guest-kernel = "@KERNEL@"
guest-cpu = "{AMD64.guest_cpu}"
""" for name, disk in (("guest", 'disk-size = "64M"'), ("block", 'disk = "/dev/ram0"'))) + f"""
[test.cpuid]
prepare = "echo prepared > file"
command = "cat file; uname -r; @EXITS@ --cpuid {CPUIDS}"
figure = {{ pattern = '(?s)prepared.*cpuid=(\\d+)', unit = "exits" }}
cache = ["cold"]
"""
# Tests that come with vperf-bench, under nothing and two who record. In real time: sysbench counts for ten seconds.
PEERS = """
repeats = 1
least-free = 0
[settle]
seconds = 0
[configuration.plain]
directory = "/tmp"
[configuration.perf-kvm]
directory = "/tmp"
tracer = "perf-kvm"
[configuration.account]
directory = "/tmp"
tracer = "vperf-account"
[test.sysbench]
use = "sysbench-cpu"
cache = ["cold"]
[test.database]
use = "database"
cache = ["cold"]
"""
SYSBENCH = ("sysbench", "libaio1", "libluajit-5.1-2", "libluajit-5.1-common", "libmariadb3", "libpq5", "libldap-2.5-0", "libsasl2-2")
UNKNOWN = """
[configuration.a]
kernel = "1.2.3-none"
[test.t]
command = "true"
"""
BENCH = f"{REPOSITORY}/benchmark/vperf-bench"


def put(name, text):
    """A scenario's command that writes a plan; where things are is known on the lab host."""
    held = base64.b64encode(text.encode()).decode()
    return f"command echo {held} | base64 -d | sed -e s:@EXITS@:$(command -v exits): -e s:@KERNEL@:$(echo {KERNEL}): \
-e s:@BENCH@:{BENCH}: > /tmp/{name}.toml"


PLANS = {"tracers": TRACERS, "wrong": WRONG, "guest": GUEST}
# It stops, stays so while there is no space, and goes on when there is.
FILLING = f"""
{put("full", FULL_DISK)}
command mkdir /tmp/full; mount -t tmpfs -o size=4M tmpfs /tmp/full; for way in "run /tmp/full.toml -o" resume; do \
{BENCH} $way /tmp/full/out >/dev/null 2>>/out/full.said; echo $? >> /out/full.statuses; done; cp /tmp/full/out/state.json /out/full.state; \
mount -o remount,size=64M /tmp/full; {BENCH} resume /tmp/full/out; echo $? >> /out/full.statuses; cp /tmp/full/out/state.json /out/full.end
""".replace("\\\n", "")


def scenario(*names, before="true", after="true"):
    """A host that carries out these plans, after it was asked for what cannot work; shell commands before and after."""
    lines = [put("unknown", UNKNOWN), f"command {BENCH} check /tmp/unknown.toml > /out/refused 2>&1; echo $? >> /out/refused"]
    for name in names:
        lines += [put(name, PLANS[name]), f"command {BENCH} run /tmp/{name}.toml -o /tmp/{name}; echo $? > /out/{name}.status",
                  f"command {BENCH} report --format json -o /out/{name}.json /tmp/{name}",
                  f"command cp -r /tmp/{name}/steps /out/{name}.steps"]
    return "\n".join(["host pcpus=1 icount=yes memory=3072", f"command {before}", *lines, FILLING if "wrong" in names else "", f"command {after}", ""])


def cells(run, name):
    """(test, configuration) -> its cell of the report."""
    found = json.loads((run.out / f"{name}.json").read_text())
    return {(cell["test"], cell["configuration"]): cell for cell in found["cells"]}, found


def status(run, name):
    """With which vperf-bench ended."""
    return int((run.out / f"{name}.status").read_text())


def tracers(run, claims):
    """More is recorded, more is paid."""
    found, results = cells(run, "tracers")
    claims.check(results["steps"] == {"done": 4} and status(run, "tracers") == 0, f"all steps are done: {results['steps']}")
    plain, traced = found["pipe", "plain"], found["pipe", "trace-cmd"]
    claims.check(min(traced["values"]) > max(plain["values"]),
                 f"trace-cmd costs: {traced['percent']:.1f} % of the baseline: {traced['values']}, {plain['values']} s")
    # Four events a round trip, of eight bytes at least.
    claims.check(traced["tracer_bytes"] > 2000 * 4 * 8 and plain["tracer_bytes"] == 0,
                 f"trace-cmd wrote {traced['tracer_bytes']:.0f} bytes, nothing {plain['tracer_bytes']:.0f}")
    steps = list(run.out.glob("tracers.steps/*/environment.json"))
    kernel = {json.loads(step.read_text())["kernel"] for step in steps}
    claims.check(len(steps) == 4 and len(kernel) == 1, f"{len(steps)} steps have their environment, of one kernel: {kernel}")


def wrong(run, claims):
    """Tests that hang or print no figure are reported, and the other steps continue."""
    _, results = cells(run, "wrong")
    why = {failure["test"]: failure["why"] for failure in results["failures"]}
    claims.check(results["steps"] == {"done": 2, "failed": 2} and status(run, "wrong") == 1
                 and why["hangs"] == "the test took longer than its time limit of 2 s"
                 and why["mute"].startswith("the figure cannot be read"), f"what goes wrong is told: {why}")
    said = [path.read_text() for path in run.out.glob("wrong.steps/*/stderr")]
    claims.check(any("another vperf-bench runs on this machine" in text for text in said), f"a second one is refused: {said}")


def full(run, claims):
    """A full disk stops it, with the state on disk; what was lost is done again when there is space."""
    statuses = (run.out / "full.statuses").read_text().split()
    stopped, end = (json.loads((run.out / name).read_text()) for name in ("full.state", "full.end"))
    told = [[step["status"] for step in state["steps"]] for state in (stopped, end)]
    claims.check(statuses == ["1", "1", "0"] and stopped["phase"] == "stopped" and "full" in stopped["why"] and
                 0 < told[0].count("pending") == 3 - told[0].count("done") and told[1] == ["done"] * 3,
                 f"a disk that fills up: statuses {statuses}, '{stopped['why']}', steps {told[0]}, then {told[1]}")
    claims.check("Traceback" not in (run.out / "full.said").read_text(), "it says so in sentences")


def guest(run, claims):
    """In a guest: its figure, and what vperf saw of it."""
    found, _ = cells(run, "guest")
    for name in ("guest", "block"):
        cell = found["cpuid", name]
        claims.check(cell["values"] == [CPUIDS], f"{name}: the test in the guest said {cell['values']} CPUIDs of {CPUIDS}")
        seen = cell["seen"] or {}
        counted = seen.get("reasons", {}).get("CPUID", 0)
        # Each start of a program asks the CPU some dozen things more.
        claims.check(CPUIDS <= counted <= 1.5 * CPUIDS, f"{name}: vperf saw {counted:.0f} exits by CPUID in that step: {seen.get('why', '')}")
    claims.check((run.out / "block.file").read_text() == "prepared\n", "what the test wrote is on the block device that was its disk")
    output = "".join(path.read_text() for path in run.out.glob("guest.steps/*/guest/stdout"))
    claims.check("6.1.0" in output, "the test ran on the guest's kernel")
    claims.check(status(run, "guest") == 0, "the exit status says that all went well")


def without_guest(run, claims):
    refused = (run.out / "refused").read_text()
    claims.check(refused.endswith("\n2\n") and re.search(r"unknown\.toml: configuration\.a\.kernel: ", refused),
                 f"a plan that cannot work is refused: {refused.strip()}")
    tracers(run, claims)
    wrong(run, claims)
    full(run, claims)


def run_peers(directory):
    """PEERS, on a host with sysbench, of which nothing is installed on the machine."""
    root = debian_programs.get(AMD64, SYSBENCH)
    libraries = f"LD_LIBRARY_PATH={root}/usr/lib/x86_64-linux-gnu"
    lines = [put("peers", PEERS), f"command export PATH=$PATH:{root}/usr/bin {libraries}; {BENCH} run /tmp/peers.toml -o /tmp/peers; echo $? > /out/peers.status",
             f"command {BENCH} report --format json -o /out/peers.json /tmp/peers", "command cp -r /tmp/peers/steps /out/peers.steps"]
    return run_scenario("\n".join(["host pcpus=1 memory=3072", *lines, ""]), directory)


def peers(run, claims):
    """Each has its figure, and what records has recorded."""
    found, results = cells(run, "peers")
    claims.check(results["steps"] == {"done": 6} and status(run, "peers") == 0, f"all steps are done: {results['steps']}, {results['failures']}")
    for (test, configuration), cell in sorted(found.items()):
        claims.check(len(cell["values"]) == 1 and cell["values"][0] > 0 and (cell["tracer_bytes"] > 0) == (configuration != "plain"),
                     f"{test}, {configuration}: {cell['values']} {cell['unit']}, {cell['tracer_bytes']:.0f} bytes recorded")


# In a dom0, with a guest that competes for the same pCPU.
DOM0 = """
repeats = 2
least-free = 0
[settle]
seconds = 0
[configuration.dom0]
where = "xen-dom0"
directory = "/tmp"
[configuration.account]
where = "xen-dom0"
directory = "/tmp"
tracer = "vperf-account"
[configuration.xentrace]
where = "xen-dom0"
directory = "/tmp"
tracer = "xentrace"
[test.loop]
command = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i loops"
figure = { pattern = '(\\d+) loops' }
cache = ["cold"]
"""
XEN_GUEST = """
repeats = 1
least-free = 0
[settle]
seconds = 0
""" + "".join(f"""
[configuration.{kind}]
where = "xen-guest"
guest-type = "{kind}"
directory = "/tmp"
tracer = "vperf-account"
memory = "192M"
guest-kernel = "@KERNEL@"
guest-config = 'tsc_mode = "native"'
programs = ["tar"]
""" for kind in ("pvh", "pv")) + """
[test.loop]
command = '''i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i loops; cat /sys/hypervisor/properties/features /sys/hypervisor/guest_type
tar --version'''
figure = { pattern = '(\\d+) loops' }
cache = ["cold"]
"""
NO_XEN = {where: f"""
[configuration.a]
where = "{where}"
[test.t]
command = "true"
""" for where in ("machine", "kvm-guest")}
XEN = "\n".join([
    "host hypervisor=xen pcpus=1 icount=yes memory=4096", "guest pvh memory=128 type=pvh", "workload pvh shares a=80 b=20",
    *(line for where, text in NO_XEN.items() for line in (
        put(where, text), f"command {BENCH} check /tmp/{where}.toml > /out/{where} 2>&1; echo $? >> /out/{where}")),
    "command xl mem-set 0 2200",
    *(line for name, text in (("dom0", DOM0), ("xen-guest", XEN_GUEST)) for line in (
        put(name, text), f"command {BENCH} run /tmp/{name}.toml -o /tmp/{name}; echo $? > /out/{name}.status",
        f"command {BENCH} report --format json -o /out/{name}.json /tmp/{name}", f"command cp -r /tmp/{name}/steps /out/{name}.steps")), ""])


def dom0(run, claims):
    """On Xen: impossible plans are rejected, and the report has vperf's data about the domains next to the figure."""
    for where in NO_XEN:
        text = (run.out / where).read_text()
        claims.check("configuration.a.where: this machine is the dom0 of a Xen" in text and text.endswith("\n2\n"),
                     f"'{where}' is refused: {text.strip()}")
    found, results = cells(run, "dom0")
    claims.check(results["steps"] == {"done": 6} and status(run, "dom0") == 0, f"all steps are done: {results['steps']}, {results['failures']}")
    seen = found["loop", "account"]["seen"] or {}
    # The guest is always busy, and so is dom0 in the test: each takes from the other.
    claims.check(seen.get("steal", 0) > 10, f"vperf saw {seen.get('steal', 0):.1f} % of the vCPUs' time stolen: {seen.get('why', '')}")
    claims.check(found["loop", "xentrace"]["tracer_bytes"] > 0, "xentrace recorded")
    found, results = cells(run, "xen-guest")
    claims.check(results["steps"] == {"done": 2} and status(run, "xen-guest") == 0, f"so are those in guests: {results['failures']}")
    said = sorted((path.read_text().split()[:6] for path in run.out.glob("xen-guest.steps/*/guest/stdout")), key=lambda text: text[3:])
    claims.check([text[:2] + text[3:] for text in said] == [["20000", "loops", kind, "tar", "(GNU"] for kind in ("PV", "PVH")]
                 and not any(int(text[2], 16) & 1 << 11 for text in said), f"in guests of its own, with the program that was asked for: {said}")
    for kind in ("pv", "pvh"):
        mine = found["loop", kind]["seen"] or {}
        claims.check(mine.get("steal", 0) > 10 and (kind == "pv" or sum(mine.get("reasons", {}).values()) > 0), f"{kind}: vperf saw {mine}")
    told = [json.loads(path.read_text()) for path in run.out.glob("xen-guest.steps/*/result.json")]
    machines = [(result["guest"], result["seen"]["vms"]) for result in told]
    claims.check(len(machines) == 2 and all(vms == [name] for name, vms in machines), f"of the step's own guest: {machines}")
    hypervisors = {json.loads(path.read_text())["hypervisor"] for path in run.out.glob("dom0.steps/*/environment.json")}
    claims.check(hypervisors == {"xen"}, f"the environment says so: {hypervisors}")


# On a machine with a boot loader. The figure is known beforehand; the test prints which kernel it ran on.
# By this seed the order is broken, usual, older: after the cut the usual kernel comes up, and is not what is needed.
# The broken kernel has no initrd: it panics, which is what the plan is to survive.
REBOOTS = """
# kernels may say: Kernel panic - not syncing: VFS: Unable to mount root fs
seed = 7
repeats = 1
least-free = "16M"
[settle]
seconds = 0
[configuration.usual]
kernel = "@USUAL@"
[configuration.older]
kernel = "@OLDER@"
[configuration.broken]
kernel = "5.0-broken"
[test.count]
command = "sleep 5; uname -r; echo 42 things"
figure = { pattern = '(\\d+) things' }
cache = ["cold"]
"""


# One kernel with and without Xen below it, and in a guest of Xen; the power fails in dom0. The test prints what it ran on; on the KVM host
# it starts a VM.
XEN_REBOOTS = """
seed = 4
repeats = 1
least-free = "16M"
[settle]
seconds = 0
[configuration.kvm]
kernel = "@GENERIC@"
where = "kvm-host"
[configuration.dom0]
kernel = "@GENERIC@"
where = "xen-dom0"
[configuration.guest]
kernel = "@GENERIC@"
where = "xen-guest"
memory = "192M"
guest-config = 'tsc_mode = "native"'
[test.count]
command = '''echo "on $(cat /sys/hypervisor/type || echo none) $(cat /sys/hypervisor/properties/features) $(uname -r)"
sleep 2; if [ -c /dev/kvm ]; then /opt/bench/tinyvm --cpuid 500; fi; echo 42 things'''
figure = { pattern = '(\\d+) things' }
cache = ["cold"]
"""


def reboot(text, *options):
    """A test that carries out a plan on such a machine, whose power fails in the middle of a step."""
    def run(directory):
        shutil.rmtree(directory, ignore_errors=True)
        directory.parent.mkdir(parents=True, exist_ok=True)
        plan = directory.with_suffix(".toml")
        plan.write_text(text)
        done = subprocess.run([str(REPOSITORY / "lab/reboot"), str(plan), "--out", str(directory), *options], capture_output=True, text=True)
        (directory / "scenario.scn").write_text(text)  # with the complaints that it expects
        return Run(directory, done.returncode, done.stderr)

    return run


def stdout_of(run, step):
    """The output of a step's test."""
    place = run.out / "bench/steps" / f"{step['number']:05d}.{step['attempts']}"
    return (place / ("guest/stdout" if (place / "guest").exists() else "stdout")).read_text()


def xen_reboots(run, claims):
    """Into a Xen and back, with a power cut in dom0: each step ran where the plan requires."""
    told = json.loads((run.out / "result.json").read_text())
    state = json.loads((run.out / "bench" / "state.json").read_text())
    steps = {step["configuration"]: step for step in state["steps"]}
    claims.check(state["phase"] == "done" and {step["status"] for step in state["steps"]} == {"done"},
                 f"all steps are done: {[(name, step['status'], step.get('why')) for name, step in steps.items()]}")
    kernel = steps["dom0"]["kernel"]
    said = {name: stdout_of(run, step).splitlines() for name, step in steps.items()}
    places = {name: re.fullmatch(r"on (\w+) ([0-9a-f]*) (\S+)", lines[0]).groups() for name, lines in said.items()}
    found = {name: (hypervisor, bool(int(features or "0", 16) & 1 << 11), release) for name, (hypervisor, features, release) in places.items()}
    claims.check(found == {"kvm": ("none", False, kernel), "dom0": ("xen", True, kernel), "guest": ("xen", False, kernel)},
                 f"where the plan says (hypervisor, whether it is dom0, kernel): {found}")
    claims.check(any("cpuid=500" in line for line in said["kvm"]), f"a VM of KVM ran there: {said['kvm']}")
    claims.check(told["cuts"] == 1 and steps["dom0"]["attempts"] == 2 and steps["guest"]["attempts"] == steps["kvm"]["attempts"] == 1,
                 f"after the power cut its step was done again: {[event['text'] for event in state['events']]}")
    usual = told["boots"][0]
    claims.check(told["boots"] == [usual, f"{kernel} under xen", usual, f"{kernel} under xen", kernel, usual] and told["panics"] == 0
                 and not told["next-entry"] and not told["unit-left"],
                 f"Xen was booted once each time, and at the end all is as it was: boots {told['boots']}, next {told['next-entry']}")


def reboots(run, claims):
    """Through real reboots, a kernel that panics and a power cut, every step that can be done was done on its kernel."""
    told = json.loads((run.out / "result.json").read_text())
    state = json.loads((run.out / "bench" / "state.json").read_text())
    steps = {name: [step for step in state["steps"] if step["configuration"] == name] for name in ("usual", "older", "broken")}
    statuses = {name: [step["status"] for step in found] for name, found in steps.items()}
    claims.check(state["phase"] == "done" and statuses == {"usual": ["done"], "older": ["done"], "broken": ["left-out"]},
                 f"what can be done is done: {state['phase']}, {statuses}")
    why = {step.get("why", "") for step in steps["broken"]}
    usual = told["boots"][0]
    claims.check(told["panics"] == 1 and why == {f"kernel 5.0-broken did not come up: the machine came back with {usual}"},
                 f"a kernel that panics ({told['panics']} times) is told: {why}")
    older = next(step["kernel"] for step in steps["older"])
    for name, found in steps.items():
        for step in found:
            if step["status"] == "done":
                output = stdout_of(run, step)
                claims.check(output.splitlines()[0] == step["kernel"], f"step {step['number'] + 1} of '{name}' ran on "
                             f"{output.splitlines()[0]}")
    events = [event["text"] for event in state["events"]]
    claims.check(told["cuts"] == 1 and sum("the machine went down during it" in text for text in events) == 1
                 and (steps["usual"][0]["attempts"], steps["older"][0]["attempts"]) == (1, 2),
                 f"after the power cut its step was done again: {events}")
    claims.check(older in told["boots"] and told["boots"][-1] == usual and not told["next-entry"] and not told["unit-left"],
                 f"at the end all is as it was: boots {told['boots']}, next {told['next-entry']}, unit left: {told['unit-left']}")


TESTS = QUICK = ()
FULL = [("bench: tracers", scenario("tracers", "wrong"), without_guest), ("bench: a guest", scenario("guest", before="modprobe brd rd_nr=1 rd_size=65536", after="debugfs -R 'cat test/file' /dev/ram0 > /out/block.file"), guest), ("bench: dom0", XEN, dom0),
        ("bench: perf kvm, sysbench, a database", run_peers, peers),
        ("bench: reboots", reboot(REBOOTS, "--cut", "step 3 of"), reboots),
        ("bench: reboots by systemd-boot", reboot(REBOOTS, "--uefi", "--cut", "step 3 of"), reboots),
        ("bench: reboots into Xen", reboot(XEN_REBOOTS, "--cut", r"step \d of 3: dom0"), xen_reboots)]
