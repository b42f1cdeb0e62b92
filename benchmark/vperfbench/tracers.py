"""What records while a test runs: vperf in its modes, and its peers."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Tracer:
    """Either a prefix, after which the measured command is put, or commands that start and stop it.
    {out} is a directory of the step, {options} what the plan adds."""

    title: str
    prefix: tuple = ()
    start: tuple = ()
    stop: tuple = ()
    background: tuple = ()
    needs: dict = field(default_factory=dict)
    recording: bool = False  # {out}/recording can be asked by vperf
    module: tuple = ()  # of the kernel: its name, what is there once it is loaded, its Debian package

    def fill(self, words: tuple, out: Path, options: list[str]) -> list[str]:
        """The words of a command."""
        filled: list[str] = []
        for word in words:
            filled += options if word == "{options}" else [word.replace("{out}", str(out))]
        return filled


VPERF = {"vperf": "vperf"}


def _vperf(title: str, *options: str) -> Tracer:
    return Tracer(title, ("vperf", "record", "-q", *options, "{options}", "-o", "{out}/recording", "--"), needs=VPERF,
                  recording=True)


TRACERS = {
    "none": Tracer("nothing records"),
    "vperf-off": Tracer("nothing records any more: vperf record of everything has ended", start=(
        ("vperf", "record", "-q", "--trace", "{options}", "-o", "{out}/before", "--", "true"), ("rm", "-rf", "{out}/before")), needs=VPERF),
    "vperf": _vperf("vperf record: samples, account, guests' memory"),
    "vperf-samples": _vperf("vperf record: samples only", "--no-account", "--no-guest-memory"),
    "vperf-account": _vperf("vperf record: the account only", "--no-samples", "--no-guest-memory"),
    "vperf-disk": _vperf("vperf record --trace, to disk", "--no-samples", "--no-guest-memory", "--trace"),
    "vperf-flight": _vperf("vperf record --trace --flight, in memory", "--no-samples", "--no-guest-memory", "--trace",
                           "--flight", "64M"),
    "perf-kvm": Tracer("perf kvm record", ("perf", "kvm", "--host", "--guest", "record", "-q", "-a", "-e", "cpu-clock", "-F",
                                           "997", "{options}", "-o", "{out}/perf.data", "--"), needs={"perf": "linux-perf"}),
    "perf-kvm-stat": Tracer("perf kvm stat record", ("perf", "kvm", "stat", "record", "-q", "-a", "{options}", "-o",
                                                     "{out}/perf.data", "--"), needs={"perf": "linux-perf"}),
    "trace-cmd": Tracer("trace-cmd record", ("trace-cmd", "record", "-q", "-e", "kvm", "-e", "sched:sched_switch", "-e",
                                             "sched:sched_wakeup", "{options}", "-o", "{out}/trace.dat"),
                        needs={"trace-cmd": "trace-cmd"}),
    # KVM's events where there is a probe for them: it is built where the kernel's whole source is.
    "lttng": Tracer("LTTng, kernel tracer", start=(
        ("lttng", "create", "vperf-bench", "--output={out}/lttng"),
        ("lttng", "enable-channel", "-s", "vperf-bench", "-k", "{options}", "all"),
        ("lttng", "enable-event", "-s", "vperf-bench", "-k", "-c", "all", "sched_switch,sched_wakeup,sched_wakeup_new"),
        ("sh", "-c", "! lttng list -k | grep -q kvm_x86_exit || lttng enable-event -s vperf-bench -k -c all kvm_x86_exit,kvm_x86_entry"),
        ("lttng", "start", "vperf-bench")), stop=(("lttng", "stop", "vperf-bench"), ("lttng", "destroy", "vperf-bench")),
        needs={"lttng": "lttng-tools"}, module=("lttng-tracer", "/proc/lttng", "lttng-modules-dkms")),
    "xentrace": Tracer("xentrace", background=("xentrace", "-D", "-e", "all", "{options}", "{out}/xentrace"),
                       needs={"xentrace": "xen-utils"}),
}
