"""A plan of vperf-bench on a lab host, where a time can be a count of instructions."""

import argparse
import base64
import signal
import sys
from pathlib import Path

from . import debian_programs, xen
from .arch import AMD64
from .common import REPO, LabError
from .reproduction import call, run_lab

BENCH = REPO / "benchmark/vperf-bench"
LIMIT = 64 << 10  # bytes of a plan; it goes by a line of the scenario


def scenario(plan: str, host: str, before: str = "true") -> str:
    """The host, and what it does; `before`: for its shell. The benchmark's directory is then DIR/bench."""
    held = base64.b64encode(plan.encode()).decode()
    return (f"host {host}\ncommand echo {held} | base64 -d > /tmp/plan.toml\n"
            f"command {before}; {BENCH} check /tmp/plan.toml && {{ {BENCH} run /tmp/plan.toml -o /tmp/bench; echo $? > /out/status; }}\n"
            "command cp -r /tmp/bench /out/bench\n")


def dbench() -> str:
    """For a lab host's shell: dbench, of which nothing is installed on the machine."""
    root = debian_programs.get(AMD64, ("dbench", "libpopt0"))
    return (f"ln -s {root}/usr/share/dbench /usr/share/dbench; export PATH=$PATH:{root}/usr/bin "
            f"LD_LIBRARY_PATH={root}/usr/lib/x86_64-linux-gnu:$LD_LIBRARY_PATH")


def run(plan: str, host: str, out: Path, before: str = "true") -> Path:
    """The benchmark's directory."""
    if len(plan) > LIMIT:
        raise LabError(f"the plan has {len(plan)} bytes, at most {LIMIT} can be passed on")
    run_lab(scenario(plan, host, before), out)
    return out / "lab/bench"


def main(argv: list[str]) -> int:
    """Its options; returns the exit status."""
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("plan", metavar="PLAN", type=Path, help="a plan of vperf-bench whose configurations name no kernels")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="new: DIR/lab/bench is the benchmark's directory")
    parser.add_argument("--icount", action="store_true", help="times are counts: one virtual nanosecond for each instruction")
    parser.add_argument("--hypervisor", choices=("kvm", "xen"), default="kvm", help="default: %(default)s")
    parser.add_argument("--pcpus", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--memory", type=int, default=3072, metavar="MIB", help="default: %(default)s")
    parser.add_argument("--guest-memory", type=int, default=512, metavar="MIB", help="of that, what dom0 leaves to the plan's guest of Xen; default: "
                        "%(default)s")
    args = parser.parse_args(argv)
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        parser.error(f"--out {args.out}: expected a new or an empty directory")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        plan = args.plan.read_text(encoding="utf-8")
        args.out.mkdir(parents=True, exist_ok=True)
        guests = f"xl mem-set 0 {args.memory - xen.OVERHEAD - args.guest_memory}" if args.hypervisor == "xen" else "true"
        directory = run(plan, f"pcpus={args.pcpus} memory={args.memory} hypervisor={args.hypervisor}" + " icount=yes" * args.icount,
                        args.out.absolute(), guests)
        print(call(str(BENCH), "report", str(directory)), end="")
        return int((directory.parent / "status").read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except LabError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
