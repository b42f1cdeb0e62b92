# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of VMs that attack what vperfd and vperf write: labels, YAML, HTML, the spool and other file names, terminals,
lines.

The VMs are QEMU's, without Linux: their firmware halts. Two of them are busy and share the only pCPU, so that findings
have their names.
"""
import base64
import json
import re
import shutil
import subprocess
import sys

from lab import REPOSITORY, VPERF, page_with

sys.path.insert(0, str(REPOSITORY / "tests/commands"))
from hostile_names import NAMES, Scripts, check_answers, check_exports, printable  # noqa: E402

# Starts some VMs, vperfd, the other VMs but one, and the last VM, which is the thief. The fourth never runs. Ends the VMs when a finding, its snapshot and samples
# exist. The store and what was served go to /out.
ATTACK = r"""
import base64, glob, json, os, subprocess, sys, time, urllib.request
names = [base64.b64decode(name) for name in sys.argv[1].split(",")]
os.makedirs("/run/d")
with open("/run/d/conf", "w") as conf:
    conf.write("[store]\ndirectory = /run/d/store\nkeep-free = off\nspool-size = 100M\n[flight]\nsize = 8M\nevents = sched,kvm\n[rules]\nevery = 3s\nleast = 20\nsamples = 2s\n"
               "ignore = tool-cost\n[http]\nlisten = 127.0.0.1:9757\n")
# Firmware of 64 KiB. Its last 16 bytes are the first to be executed: a jump to its start.
for kind, code in ("idle", b"\xf4\xeb\xfd"), ("busy", b"\x40" * 400 + b"\xe9" + (65536 - 403).to_bytes(2, "little")):
    with open("/run/d/" + kind, "wb") as firmware:
        firmware.write(code.ljust(65520, b"\x90") + b"\xe9\x0d\x00".ljust(16, b"\x90"))
def start(number):
    return subprocess.Popen([b"qemu-system-x86_64", b"-accel", b"kvm", b"-cpu", b"qemu64", b"-m", b"16", b"-nodefaults", b"-no-user-config", b"-display", b"none",
                             b"-uuid", b"00000000-0000-4000-8000-%012d" % number, b"-bios", b"/run/d/busy" if number >= len(names) - 2 else b"/run/d/idle",
                             b"-name", b"guest=" + names[number].replace(b",", b",,")] + [b"-S"] * (number == 3), stdin=subprocess.DEVNULL)
def until(done):
    end = time.monotonic() + 60
    while time.monotonic() < end and not done():
        time.sleep(0.5)
def fetch(path, **headers):
    return urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:9757/" + path, headers=headers), timeout=60).read()
def has_vcpu(vm):
    return any(os.readlink(fd).startswith("anon_inode:kvm-vcpu") for fd in glob.glob(f"/proc/{vm.pid}/fd/*") if os.path.islink(fd))
# vperfd starts as soon as they exist: they run for the first time, and halt for good, while it starts.
vms = [start(number) for number in range(EARLY)]
until(lambda: all(map(has_vcpu, vms)))
with open("/out/said", "wb") as said:
    daemon = subprocess.Popen(["vperfd", "-c", "/run/d/conf"], stderr=said)
until(lambda: glob.glob("/run/d/store/2*Z/recording") and os.path.exists("/run/d/store/flight/control"))
vms += [start(number) for number in range(EARLY, len(names) - 1)]
until(lambda: all(map(has_vcpu, vms)))
time.sleep(2)
vms.append(start(len(names) - 1))
until(lambda: glob.glob("/run/d/store/*.flight/recording") and glob.glob("/run/d/store/*.samples/recording"))
time.sleep(4)
for file, path, headers in (("metrics.prom", "metrics", {}), ("metrics.openmetrics", "metrics", {"Accept": "application/openmetrics-text; version=1.0.0"}),
                            ("page.html", "", {}), ("hour.json", "hour.json", {})):
    with open("/out/" + file, "wb") as out:
        out.write(fetch(path, **headers))
subprocess.run(["vperf", "metrics", "--textfile", "/out/textfile.prom", "-n", "2", "--listen", "127.0.0.1:9758"], check=True)
for vm in vms:
    vm.kill()
time.sleep(3)
daemon.terminate()
status = daemon.wait()
with open("/out/escaped", "w") as out:
    json.dump([path for path in ("/tmp/escaped", "/tmp/absolute", "/run/tmp", "/run/d/tmp") if os.path.exists(path)], out)
subprocess.run(["cp", "-r", "/run/d/store", "/out/store"], check=True)
sys.exit(status)
"""
EARLY = 5  # VMs that start before vperfd
HOSTILE = f"""
host pcpus=1 icount=yes memory=2560
guest g1 vcpus=1 memory=64 autostart=no
command echo {base64.b64encode(ATTACK.replace("EARLY", str(EARLY)).encode()).decode()} | base64 -d > /run/attack; python3 /run/attack {",".join(base64.b64encode(name).decode() for name in NAMES)}
"""

VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
LABELS = rf"\{{\w+={VALUE}(?:,\w+={VALUE})*\}}"
SERIES = re.compile(rf"(vperf_\w+)({LABELS})? [-+\d.eEInfNa]+(?: [\d.]+)?(?: # {LABELS} [\d.eE+-]+(?: [\d.]+)?)?")
COMMENT = re.compile(r"# (?:HELP|TYPE|UNIT) vperf_\w+ .*|# EOF")


def check_metrics(run, claims):
    for name in ("metrics.prom", "metrics.openmetrics", "textfile.prom"):
        text = printable(claims, name, (run.out / name).read_bytes())
        wrong = [line for line in text.splitlines() if not SERIES.fullmatch(line) and not COMMENT.fullmatch(line)]
        claims.check(not wrong, f"{name}: each line is a series or a comment of vperf's: {wrong[:2]}"[:400])
        claims.check(not re.search(r"^(# HELP )?vperf_up\b", text, re.M), f"{name}: no name has made a series")
        uuids = set(re.findall(r'^vperf_vm_info\{.*uuid="00000000-0000-4000-8000-(\d+)"', text, re.M))
        claims.check(len(uuids) == len(NAMES), f"{name}: {len(uuids)} VMs of {len(NAMES)}")
        if name.endswith(".prom") and shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            claims.check(done.returncode != 1, f"{name}: promtool reads it: {done.stderr}"[:300])
    claims.check((run.out / "metrics.openmetrics").read_bytes().endswith(b"# EOF\n"), "metrics.openmetrics: ends with # EOF")


def check_page(claims, what, data):
    """Names are text: they run nothing."""
    page = printable(claims, what, data)
    claims.check("alert(1)" in page and "<script>alert" not in page.lower() and not Scripts(page).handlers, f"{what}: a name is text")


def check_pages(run, claims):
    check_page(claims, "page.html", (run.out / "page.html").read_bytes())
    listed = json.loads(printable(claims, "hour.json", (run.out / "hour.json").read_bytes()))
    claims.check(len(listed["vms"]) == len(NAMES), f"hour.json: {len(listed['vms'])} VMs")
    page = run.out / "all.html"
    if page_with(page, "--store", str(run.out / "store"), "--time", ",") is None:
        claims.skip("the page: this vperf was built without it (esbuild)")
        return
    check_page(claims, "vperf html", page.read_bytes())


def check_files(run, claims):
    """The names of files in the store and in its spool are vperf's own; the findings and what the daemon said have one line each."""
    names = [path.relative_to(run.out / "store").as_posix() for path in (run.out / "store").rglob("*")]
    wrong = [name for name in names if not re.fullmatch(r"[\w.+/-]+", name) or ".." in name or "escaped" in name or "script" in name]
    claims.check(len(names) > 20 and any(name.startswith("spool/") for name in names) and not wrong, f"{len(names)} files of the store and its spool: {wrong[:3]}")
    claims.check(json.loads((run.out / "escaped").read_text()) == [], f"nothing outside of it: {(run.out / 'escaped').read_text()}")
    findings = printable(claims, "the findings", (run.out / "store/findings").read_bytes()).splitlines()
    claims.check(len(findings) >= 2 and len({line.count("\t") for line in findings}) == 1, f"{len(findings)} findings, a line each")
    said = printable(claims, "messages of vperfd", (run.out / "said").read_bytes()).splitlines()
    wrong = [line for line in said if not re.match(r"vperfd?( \w+)?: ", line)]
    claims.check(not wrong, f"{len(said)} lines of the journal begin with the program's name: {wrong[:2]}"[:400])
    begun, ended = (sum(line.endswith(f" {what} during the recording") for line in said) for what in ("started", "stopped"))
    claims.check((begun, ended) == (len(NAMES) - EARLY, len(NAMES)), f"each VM's start and end have a line each: {begun}, {ended}")


def hostile(run, claims):
    check_metrics(run, claims)
    check_pages(run, claims)
    check_files(run, claims)
    store = run.out / "store"
    check_answers(claims, VPERF, store, len(NAMES) - 1)  # one has no account: it never ran
    check_exports(claims, VPERF, sorted(store.glob("2*Z"))[0], run.out / "exported")


TESTS = []
QUICK = ()
FULL = [("daemon: names that attack", HOSTILE, hostile)]
