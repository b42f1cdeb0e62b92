# SPDX-License-Identifier: GPL-2.0-or-later
"""`vperf selftest` on hosts of AMD, Intel and 64-bit Arm, and on hosts where a part of it cannot work."""
import json

# Time goes on in the emulated host while it reads a file of this machine's, so the limit of a real host is not for it.
SELFTEST = "vperf selftest --timeout 10m"
# A program that competes for the guest's pCPU all the time.
LOAD = f"""shares a=100 & load=$!; {SELFTEST} --json >/out/load.json; echo status $?; kill $load"""
# Without the kernel's types; without the right to use /dev/kvm.
MISSING = f"""unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf; {SELFTEST}'; echo status $?; mv /dev/kvm /dev/novm; {SELFTEST}; \
echo status $?; mv /dev/novm /dev/kvm; setpriv --reuid 65534 --clear-groups {SELFTEST}; echo status $?; {SELFTEST} -C none; echo status $?"""

AMD = f"""
host pcpus=1 icount=yes
command {SELFTEST} --json -o /out/report.json >/out/plain.json; echo status $?; ls /tmp
"""
DISTURBED = f"""
host pcpus=1 icount=yes
command {LOAD}
command {MISSING}
""".replace("\\\n", "")
# Two pCPUs, no recorder during the guest's run; and a kernel that does not let BPF read memory.
PCPUS = f"""
host pcpus=2 icount=yes
command {SELFTEST} --json -C 1 >/out/plain.json; echo status $?
command {SELFTEST} -C 0 -o /out/report.txt; echo status $?
"""
LOCKED = f"""
host pcpus=1 icount=yes append="lockdown=confidentiality"
command {SELFTEST} --json >/out/plain.json; echo status $?
"""
INTEL = f"""
host vendor=intel pcpus=1
command {SELFTEST} --json >/out/plain.json; echo status $?
"""
ARM = f"""
host arch=arm64 pcpus=1 icount=yes memory=1280
command {SELFTEST} --json >/out/plain.json; echo status $?
"""

NO_PMU = {"samples: by a hardware counter", "counter: instructions in the guest"}
EXITS = {"exits: CPUID", "exits: port writes", "exits: MMIO reads", "exits: MSR reads", "exits: halts"}
ALWAYS = {"samples: time in the guest", "account: sum of all states", "account: time on the pCPU", "account: time halted", "exits: halts",
          "exits: all, by KVM's statistics", "steal: time stolen", "steal: taken by the known thief", "lost records", "cost: a busy guest's time"}
PLACES = {"samples: share of selftest_hot", "samples: with a function's name", "clock: time from first to last sample",
          "clock: samples within the work's time"}


def verdicts(run, name="plain"):
    """Verdict → names of the checks that have it."""
    found = {"ok": set(), "failed": set(), "not possible": set()}
    for check in json.loads((run.out / f"{name}.json").read_text())["checks"]:
        found[check["verdict"]].add(check["check"])
    return found


def expect(run, claims, name, ok, not_possible, failed=frozenset(), command=1):
    found = verdicts(run, name)
    for verdict, expected in (("ok", ok), ("not possible", not_possible), ("failed", failed)):
        claims.check(found[verdict] == set(expected), f"{name}: {verdict}: {sorted(found[verdict])}, expected {sorted(expected)}")
    claims.check(f"status {1 if failed else 0}" in run.command_output(command), f"{name}: exit status: {run.command_output(command)}")


def amd(run, claims):
    expect(run, claims, "plain", ALWAYS | PLACES | EXITS, NO_PMU)
    report = json.loads((run.out / "report.json").read_text())
    claims.check(report == json.loads((run.out / "plain.json").read_text()), "the report has what was printed")
    claims.check("vlab" not in json.dumps(report) and "running VMs" not in json.dumps(report), "the report has no name of the host or of VMs")
    claims.check("vperf-selftest" not in run.command_output(1), f"nothing stays in /tmp: {run.command_output(1)}")


def disturbed(run, claims):
    expect(run, claims, "load", ALWAYS | PLACES | EXITS, NO_PMU)
    said = run.command_output(2, "err")
    for part in ("cannot read /sys/kernel/btf/vmlinux", "cannot use /dev/kvm", "only root can run it", "expected the number of a pCPU, not 'none'"):
        claims.check(part in said, f"without what it needs: '{part}' in {said}")
    claims.check(run.command_output(2).split() == ["status", "1"] * 3 + ["status", "2"], f"exit statuses: {run.command_output(2)}")


def pcpus(run, claims):
    expect(run, claims, "plain", ALWAYS | PLACES | EXITS, NO_PMU)
    claims.check("its guest ran on pCPU 0" in run.command_output(2), f"-C 0: {run.command_output(2)}")
    report = (run.out / "report.txt").read_text()
    claims.check(report.startswith(run.command_output(2).split("status")[0]) and "Features of this host" in report,
                 "the report has the table and the host's features")


def locked(run, claims):
    found = verdicts(run)
    claims.check(not found["failed"] and {"samples", "account", "exits", "steal", "cost"} <= found["not possible"],
                 f"BPF programs are not allowed: not possible are {sorted(found['not possible'])}")


def intel(run, claims):
    expect(run, claims, "plain", ALWAYS | PLACES | EXITS, NO_PMU)


def arm(run, claims):
    expect(run, claims, "plain", ALWAYS | {"samples: by a hardware counter", "exits: hypercalls", "exits: MMIO"},
           {"samples: share of selftest_hot", "clock", "counter: instructions in the guest"})


TESTS = [("selftest", AMD, amd)]
QUICK = ()
FULL = [("selftest: a load, and without what it needs", DISTURBED, disturbed), ("selftest: two pCPUs", PCPUS, pcpus), ("selftest: a kernel in lockdown", LOCKED, locked)]
