"""The verbs of vlab, their options and their exit status."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from . import bochs_build, disks, kernels, qemu_build, roots
from .arch import ARCHES
from .common import LAB, LabError, UsageError, say
from .debian import SUITES
from .machine import Machine, prepare_out
from .scenario import HYPERVISORS, VENDORS, load

DESCRIPTION = """\
A real hypervisor on any machine: boots a lab host in an emulated computer, real Linux guests in
it under KVM, runs workloads in the guests and commands on the lab host, and brings the results back.
"""

EPILOG = """\
A scenario has one statement per line; '#' starts a comment:

  host     [arch=amd64|arm64] [vendor=amd|intel] [hypervisor=kvm|xen] [kernel=SUITE]
           [flavour=cloud|generic|16k] [pcpus=N] [memory=MIB] [icount=yes|no] [pmu=yes|no|v2]
           [caches=KIB,KIB] [kaslr=yes|no] [append="KERNEL ARGUMENTS"] [cpu=MODEL] [accel=tcg|kvm] [qemu="QEMU ARGUMENTS"]
           [xen="XEN'S ARGUMENTS"] (with hypervisor=xen only)
  guest NAME [vcpus=N] [memory=MIB] [pin=PCPU,...] [kernel=SUITE] [flavour=cloud|generic|16k]
           [agent=yes|no] [truth=yes|no] [kallsyms=yes|no] [autostart=yes|no] [start=S] [stop=S]
           [kill=S] [append="..."] [cpu=MODEL] [qemu="..."]
           [type=pv|pvh|hvm] [weight=N] [cap=PERCENT] (these with hypervisor=xen only)
  workload NAME|host [start=S] [length=S] [copies=N] PROGRAM [ARGUMENT...]
  file NAME SOURCE [PATH-IN-GUEST]
  command-before SHELL COMMAND      on the lab host, guests ready, before T0
  command SHELL COMMAND             on the lab host, at T0; several run one after the other
  command-after SHELL COMMAND       on the lab host, guests gone

Suites: """ + ", ".join(SUITES) + """.
Exit status: that of the first command that failed, else 0; 2 for a mistake in the scenario or the
options; 1 when the lab itself failed (its message then starts with "vlab: lab failed").
Environment: VLAB_CACHE (default ~/.cache/vperf-lab), VLAB_VPERF_BUILD (default build/ of the
repository), VLAB_ACCEL (tcg or kvm). The whole story is in docs/lab.md.
"""


def _directory(text):
    """A directory's name: not '-', which means standard output in other options."""
    if text == "-":
        raise argparse.ArgumentTypeError("expected a directory, which cannot be standard output")
    return text


def _parser():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("vlab", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def lab_verb(name, text):
        verb = verbs.add_parser(name, help=text, description=text, epilog=EPILOG, formatter_class=raw)
        verb.add_argument("scenario", metavar="SCENARIO", help="a scenario file, or the name of one in "
                          "lab/scenarios without .scn")
        verb.add_argument("--out", metavar="DIR", type=_directory, help="directory for the results; on the lab host it "
                          "is /out (default: a new one under ./vlab-out)")
        verb.add_argument("--force", action="store_true", help="use DIR even if it holds an earlier run")
        verb.add_argument("--set", metavar="T.KEY=VALUE", action="append", default=[],
                          help="change an option of the scenario: T is host, guest (all of them) or the "
                          "name of a guest")
        verb.add_argument("--arch", choices=tuple(ARCHES), help="processor of the lab host: as --set "
                          "host.arch=")
        verb.add_argument("--vendor", choices=VENDORS, help="maker of the lab host's processor: as --set "
                          "host.vendor=")
        verb.add_argument("--hypervisor", choices=HYPERVISORS, help="as --set host.hypervisor=")
        verb.add_argument("--accel", choices=("tcg", "kvm"), help="accelerator of the lab host")
        verb.add_argument("--keep", action="store_true", help="keep the temporary files of the lab")
        verb.add_argument("-v", "--verbose", action="store_true", help="show the lab host's console")
        return verb

    run = lab_verb("run", "run a scenario and bring the results back")
    run.add_argument("--timeout", metavar="S", type=float, default=600.0,
                     help="give up after this many seconds (default 600)")
    run.add_argument("--silence", metavar="S", type=float,
                     help="take the lab for dead when no step of it begins or ends for so many seconds")
    shell = lab_verb("shell", "a prompt on the lab host; guests start by hand with lab-guest")
    shell.add_argument("--start", action="store_true", help="start the scenario's guests at once")
    fetch = verbs.add_parser("fetch", help="fetch kernels ahead of time, after which no network is needed")
    fetch.add_argument("suite", metavar="SUITE", nargs="*", help="default: bookworm")
    fetch.add_argument("--arch", choices=tuple(ARCHES), default="amd64",
                       help="of which processor; one that is not the machine's needs a root too, and "
                       "the directory of that is printed")
    fetch.add_argument("--vendor", choices=VENDORS, default="amd",
                       help="of the lab host's processor: for intel, Bochs is built too")
    fetch.add_argument("--hypervisor", choices=HYPERVISORS, default="kvm",
                       help="of the lab host: for xen, a root with the suite's Xen is fetched too")
    fetch.add_argument("--pmu", action="store_true", help="also build the QEMU for lab hosts with a PMU")
    fetch.add_argument("--refresh", action="store_true", help="look for newer ones")
    return parser


def _find_scenario(name):
    path = Path(name)
    if not path.exists() and "/" not in name:
        shipped = LAB / "scenarios" / f"{path.stem}.scn"
        if shipped.exists():
            return str(shipped)
    return name


def _open(args, mode):
    args.scenario = _find_scenario(args.scenario)
    arch = [f"host.arch={args.arch}"] if args.arch else []
    vendor = [f"host.vendor={args.vendor}"] if args.vendor else []
    hypervisor = [f"host.hypervisor={args.hypervisor}"] if args.hypervisor else []
    scenario = load(args.scenario, args.set + arch + vendor + hypervisor)
    if getattr(args, "commands", None):
        scenario.commands = [" ".join(args.commands)]
    if args.out:
        prepare_out(Path(args.out), args.force)
    else:
        base = Path("vlab-out")
        base.mkdir(exist_ok=True)
        args.out = tempfile.mkdtemp(prefix=f"{scenario.name}.", dir=base)
        prepare_out(Path(args.out), False)
    machine = Machine(scenario, args, mode)
    return machine


def _run(args):
    machine = _open(args, "run")
    try:
        machine.prepare()
        machine.start()
        result = machine.wait()
    finally:
        machine.close()
    if result["error"]:
        raise LabError(result["error"])
    say(f"results are in {args.out}")
    if result["status"]:
        say(f"the command ended with status {result['status']}")
    return result["status"]


def _shell(args):
    machine = _open(args, "shell")
    try:
        machine.prepare()
        machine.start()
        machine.attend()
    finally:
        machine.close()
    say(f"results are in {args.out}")
    return 0


def _fetch(args):
    arch = ARCHES[args.arch]
    for suite in args.suite or ["bookworm"]:
        if suite not in SUITES:
            raise UsageError(f"the suite '{suite}' is unknown: expected one of {', '.join(SUITES)}")
        for flavour in kernels.FLAVOURS:
            kernel = kernels.get(suite, flavour, args.refresh, arch)
            print(f"{suite} {flavour} {kernel.version}")
        if args.hypervisor == "xen":
            print(f"{suite} root {roots.get_dom0(suite, args.refresh)}")
    if arch.foreign:
        print(f"root {roots.get(arch, args.refresh)}")
    if args.vendor == "intel":
        print(f"bochs {bochs_build.get(args.refresh)}")
        print(f"root {disks.root()}")
    if args.pmu:
        print(f"qemu {qemu_build.get(args.refresh)}")
    return 0


def _interrupted(_number, _frame):
    raise KeyboardInterrupt


def main(argv):
    """Run one verb; returns the exit status."""
    command = []
    if "--" in argv:
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1:]
    args = _parser().parse_args(argv)
    args.commands = command
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        return {"run": _run, "shell": _shell, "fetch": _fetch}[args.verb](args)
    except UsageError as error:
        print(f"vlab: {error}", file=sys.stderr)
        return 2
    except LabError as error:
        print(f"vlab: lab failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("vlab: interrupted", file=sys.stderr)
        return 130
