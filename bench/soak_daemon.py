# SPDX-License-Identifier: GPL-2.0-or-later
"""The program of 'bench/soak --daemon' on the lab host, and its judgement."""
import statistics

KEEP_BYTES = 96 << 20

# One pCPU. g1 stays; g2 boots, reboots and is killed in each cycle, and so are three VMs without Linux. With --small, only those.
SCENARIO = """\
host pcpus=1 icount=yes memory=3072
guest g1 vcpus=1 memory=256 truth=no
guest g2 vcpus=2 memory=256 autostart=no truth=no
workload g1 idler BUSY 1
"""

CONFIG = f"""\
[store]
directory = HOME/store
rotate-every = SECONDSs
rotate-size = 16M
keep-size = {KEEP_BYTES >> 20}M
keep-free = off
[record]
names-every = 15s
[flight]
size = FLIGHT
[rules]
every = 2s
least = LEAST
again-after = 10s
samples = 3s
ignore = overcommit steal-vm steal-self steal-vmm wakeup
[http]
listen = 127.0.0.1:9757
"""

# `soak CYCLES SECONDS FLIGHT PROCESSES REPOSITORY SMALL` writes /out/cycles, a line of JSON for each cycle. A cycle is that of a recording: it begins when
# a recording has replaced the one before.
SOAK = r"""
import glob, json, os, re, shutil, subprocess, sys, tempfile, threading, time, urllib.request

CYCLES, SECONDS, FLIGHT, RATE, REPOSITORY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
SMALL = sys.argv[6] == "True"
HOME = tempfile.mkdtemp(prefix="soak-", dir="/tmp")
STORE = f"{HOME}/store"
TICKS = os.sysconf("SC_CLK_TCK")
THIEF_S, QUIET_S = 5, 5
spent, roles, largest = {}, {}, [0]  # CPU seconds and role of each process that was seen; the store's largest size

def start_processes():
    due = time.monotonic()
    while True:
        os.waitpid(os.posix_spawn(f"{HOME}/true", ["true"], {}), 0)
        due = max(due + 1 / RATE, time.monotonic() - 1)
        time.sleep(max(0, due - time.monotonic()))

def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True)

def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # it has ended
        return ""

def role_of(pid, parent):
    words = text(f"/proc/{pid}/cmdline").split("\0")
    path = next((word for word in words if word.startswith(STORE + "/")), "")
    own = ("vperfd" if words[0].endswith("vperfd") else "snapshots" if "snapshot" in words else "samples" if path.endswith(".samples")
           else "flight" if path.endswith("/flight") else "recorders" if path else "others")
    return f"{parent}, children" if parent and own == parent else own

def family(pid, parent=""):
    role = roles.setdefault(pid, role_of(pid, parent.partition(",")[0]))
    below = [int(child) for path in glob.glob(f"/proc/{pid}/task/*/children") for child in text(path).split()]
    return [pid] + [each for child in below for each in family(child, role)]

def cpu_of(pid):
    fields = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return [int(field) / TICKS for field in fields[11:15]] if len(fields) > 15 else None

# Once a second: the last CPU time of processes that end, and the size of the store, as du counts it.
def watch(daemon):
    while True:
        for pid in family(daemon):
            cpu = cpu_of(pid)
            if cpu:
                spent[pid] = cpu[0] + cpu[1]
        largest[0] = max(largest[0], int(run("du", "-s", "--block-size=1", STORE).stdout.split()[0]) if os.path.isdir(STORE) else 0)
        time.sleep(1)

def sum_by_role():
    ret = {}
    for pid, seconds in list(spent.items()):
        ret[roles[pid]] = ret.get(roles[pid], 0) + seconds
    return ret

# All of it: of what runs, and of what has ended, which is that of the parents.
def whole_s(daemon):
    return sum(sum(cpu_of(pid) or [0]) for pid in family(daemon))

def field(path, name):
    return sum(int(line.split()[1]) for line in text(path).splitlines() if line.startswith(name))

def measure(daemon):
    pids = family(daemon)
    memory = {name: sum(field(f"/proc/{pid}/smaps_rollup", key) for pid in pids) for name, key in (("rss_kib", "Rss:"), ("pss_kib", "Pss:"))}
    by_role = {}
    for pid in pids:
        by_role[roles[pid]] = by_role.get(roles[pid], 0) + field(f"/proc/{pid}/smaps_rollup", "Pss:")
    return {**memory, "pss_by_role": by_role, "anonymous_kib": sum(field(f"/proc/{pid}/status", "RssAnon:") for pid in pids), "processes": len(pids),
            "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids), "cpu_s": whole_s(daemon), "by_role": sum_by_role()}

def recordings():
    return sorted(path for path in glob.glob(f"{STORE}/2*Z*") if re.fullmatch(r"\d+T\d+Z(-\d+)?", os.path.basename(path)))

def count(daemon, role):
    return sum(roles[pid] == role for pid in family(daemon))

def wait(what, holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"soak: no {what} in {seconds} s")
        time.sleep(0.2)

def scrape():
    return urllib.request.urlopen("http://127.0.0.1:9757/metrics", timeout=10).read().decode()

def reboot(guest):
    for words in (["set-action", "reboot=reset"], ["system_reset"]):
        run("python3", f"{REPOSITORY}/tests/lab/qmp", f"/run/vlab/{guest}.qmp", *words)

def visit():
    small = [subprocess.Popen(["tinyvm", "--tick", "1000", "--period", "20000"], stdout=subprocess.DEVNULL) for _ in range(3)]
    if not SMALL:
        run("lab-guest", "start", "g2")
        time.sleep(2)
        reboot("g2")
    time.sleep(5)
    if not SMALL:
        run("lab-guest", "kill", "g2")
    for vm in small:
        vm.kill()
        vm.wait()

def thief():
    subprocess.run(["timeout", str(THIEF_S), "nice", "-n", "-5", "python3", "-c", "open('/proc/self/comm', 'w').write('thief')\nwhile True: pass"], check=False)

def listed():
    return json.loads(run("vperf", "store", "--json", STORE).stdout)

def cycle(number, daemon, log):
    before = recordings()
    wait("new recording", lambda: recordings() and recordings()[-1] not in before and count(daemon, "recorders") == 1)
    begun = time.monotonic()
    visit()
    time.sleep(4)
    known = len(listed()["findings"])
    thief()
    time.sleep(2)
    wait("end of samples", lambda: not count(daemon, "samples") and not count(daemon, "snapshots"))
    store = listed()
    kinds = {entry["name"]: entry["kind"] for entry in store["recordings"] if not entry["problem"]}
    new = store["findings"][known:]
    found = [entry for entry in new if entry["rule"] == "steal-task" and entry["vm"] == "g1" and str(entry["top_cause"]).startswith("thief/")]
    scrape()
    time.sleep(1)
    quiet, began = whole_s(daemon), time.monotonic()
    time.sleep(QUIET_S)
    idle = (whole_s(daemon) - quiet) / (time.monotonic() - began)
    print(json.dumps({"cycle": number, "at_s": time.monotonic(), "begun_s": begun, "findings": len(new), "of_thief": len(found),
                      "snapshots": sum(kinds.get(entry["snapshot"]) == "snapshot" for entry in found),
                      "small": SMALL, "samples": sum(kinds.get(entry["samples"]) == "samples" for entry in found), "kept": len(kinds),
                      "store_most": largest[0], "idle_share": idle, **measure(daemon)}), file=log, flush=True)

shutil.copy("/bin/busybox", f"{HOME}/true")  # static, and in memory: a library over 9p takes longer than the process
with open(f"{HOME}/conf", "w") as conf:
    conf.write(text("/run/soak/conf").replace("HOME", HOME).replace("FLIGHT", FLIGHT).replace("SECONDS", str(SECONDS)).replace("LEAST", "4" if SMALL else "10"))
with open("/out/said", "w") as said:
    daemon = subprocess.Popen(["vperfd", "-c", f"{HOME}/conf"], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
roles[daemon.pid] = "vperfd"
threading.Thread(target=start_processes, daemon=True).start()
threading.Thread(target=watch, args=(daemon.pid,), daemon=True).start()
wait("recording", recordings)
with open("/out/cycles", "w") as log:
    for number in range(CYCLES):
        cycle(number, daemon.pid, log)
        if daemon.poll() is not None:
            sys.exit(f"vperfd ended with status {daemon.returncode}")
daemon.terminate()
sys.exit(daemon.wait())
"""


def figures(cycles, ring_kib):
    """Values of each quantity by cycle. The ring, which the flight recorder maps, is subtracted: it has the same size all the time."""
    pairs = list(zip(cycles, cycles[1:]))
    later = cycles[1:]
    return {"memory (Rss), KiB": [cycle["rss_kib"] - ring_kib for cycle in later], "memory (Pss), KiB": [cycle["pss_kib"] - ring_kib for cycle in later],
            "memory (RssAnon), KiB": [cycle["anonymous_kib"] for cycle in later], "descriptors": [cycle["descriptors"] for cycle in later],
            "CPU time of a second, s": [(after["cpu_s"] - before["cpu_s"]) / (after["at_s"] - before["at_s"]) for before, after in pairs]}


def by_role(cycles):
    """CPU seconds of a cycle, by the process that spent them, and what of the whole was not seen in one of them."""
    pairs = list(zip(cycles, cycles[1:]))
    roles = {role: statistics.mean(after["by_role"].get(role, 0) - before["by_role"].get(role, 0) for before, after in pairs) for role in cycles[-1]["by_role"]}
    return {**roles, "not seen": statistics.mean(after["cpu_s"] - before["cpu_s"] for before, after in pairs) - sum(roles.values())}


def about(cycles):
    """Other claims, as lines to print."""
    most = max(cycle["store_most"] for cycle in cycles)
    without = sum(not (cycle["of_thief"] and cycle["samples"]) for cycle in cycles)
    spent, idle = by_role(cycles), statistics.mean(cycle["idle_share"] for cycle in cycles)
    return {"good": most <= KEEP_BYTES and not without, "store_most": most, "store_limit": KEEP_BYTES, "cycles_without_finding": without, "by_role": spent, "idle_share": idle,
            "lines": [f"the store had at most {most / 2**20:.2f} of {KEEP_BYTES >> 20} MiB; {without} cycles without a finding that names the thief, its snapshot and samples",
                      "CPU s of a cycle: " + ", ".join(f"{role} {seconds:.2f}" for role, seconds in sorted(spent.items(), key=lambda item: -item[1])),
                      f"while nothing starts or ends: {100 * idle:.2f}% of the pCPU"]}
