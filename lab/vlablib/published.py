"""Every published table and figure that can be stated as numbers, and what became of it here."""

from dataclasses import dataclass

REPRODUCED, DIFFERS, NOT_POSSIBLE, OPEN = "reproduced", "differs", "not possible", "open"


@dataclass(frozen=True)
class Published:
    """One table or figure. `by`: names of lab/reproduce that show it, or what stands in for it."""

    place: str
    title: str
    state: str
    by: tuple[str, ...] = ()
    why: str = ""


SYSTEMS = {
    "A": "Yamamoto, Ono, Nakashima, Hirai 2015: unified profiling of an entire virtualized environment",
    "B": "Nikolaev, Back 2011: perfctr-xen",
    "C": "Mousa, Doshi, Ould-Ahmed-Vall 2007: performance in virtualized execution",
    "D": "Heidari, Desnoyers, Dagenais 2011: virtual systems tracing, LTTng for Xen"}

OLD_HOST = "the host's own part of steal is smaller: 0 to 4% here, 2.5 to 7.5% there"
NO_HPC = "HPCToolkit is not in Debian, and 429.mcf of SPEC is not available; four programs of Debian stand in"
NO_SPEC = "SPEC CPU2006 is not available; gzip, OpenSSL, sqlite3 and libquantum stand in"
LAB_PENALTIES = "by the lab's PMU, whose misses have penalties of their own, and programs of the lab for the published ones"
NO_GUESTS = ("of trace-xen two of nine lab runs are done, the machine and dom0, once each: domUs with a disk hang or are not created in time "
             "where instructions are counted")

ENTRIES = [
    Published("A 3", "native, libquantum", REPRODUCED, ("profile-native", "profile-shor")),
    Published("A 4, 5", "one guest: its view and the host's", DIFFERS, ("profile-one", "profile-shor"), OLD_HOST),
    Published("A 6", "native, two processes", REPRODUCED, ("profile-native",)),
    Published("A 7", "two processes in a guest", DIFFERS, ("profile-processes",), OLD_HOST),
    Published("A 8, 9", "two vCPUs on one pCPU", DIFFERS, ("profile-shared-pcpu",), OLD_HOST),
    Published("A 10, 11", "two vCPUs on two pCPUs", DIFFERS, ("profile-two-pcpus",), OLD_HOST),
    Published("A 12, 13", "three VMs on one pCPU, guest's and host's view", DIFFERS, ("profile-three-vms", "profile-guests"), OLD_HOST),
    Published("A 14, 15", "a guest busy for 10 of 30 s", DIFFERS, ("profile-idle",), OLD_HOST),
    Published("A 16, 17", "SPECjbb2013 with two sizes of the heap", DIFFERS, ("profile-heap",), "the collector keeps 2% of the samples with a heap that is large enough"),
    Published("A figure 16", "overhead by rate", REPRODUCED, ("profile-overhead", "profile-injection")),
    Published("A figures 17 to 19", "overhead on MySQL", DIFFERS, ("profile-mysql",),
              "sampling costs more than it does on a busy CPU, not less; why was not examined (two emulated pCPUs take turns)"),
    Published("A figure 20", "throughput before and after the heap was enlarged", REPRODUCED, ("profile-heap",)),
    Published("A figures 10 to 15", "-", NOT_POSSIBLE, (), "their numbers are not at hand"),
    Published("B table 1", "which tools count threads, and by direct access", DIFFERS, ("counters-tools", "counters-threads"),
              "PAPI reads by system calls; perfctr and perfmon are gone, OProfile, TAU and HPCToolkit are missing here"),
    Published("B figures 7, 8", "PAPI's overflow test", REPRODUCED, ("tests/lab/run --full --only 'own tests'", "tests/lab/run --full --only 'PMU: PAPI'")),
    Published("B figure 9", "a microbenchmark in four placements", REPRODUCED, ("counters-threads", "counters-programs")),
    Published("B figures 10 to 13", "SPEC CPU2006 against native", DIFFERS, ("counters-programs",), NO_SPEC),
    Published("B tables 2, 3", "HPCToolkit on 429.mcf", NOT_POSSIBLE, ("counters-programs",), NO_HPC),
    Published("C table 5", "contributions to CPI by group", DIFFERS, ("cpi-pmu", "cpi-inflation"), LAB_PENALTIES),
    Published("C table 6", "correlation and error of the models", DIFFERS, ("cpi-pmu", "cpi-tree", "cpi-merged"), LAB_PENALTIES),
    Published("C figures 2, 3", "-", NOT_POSSIBLE, (), "their numbers are not at hand"),
    Published("C figures 4, 5", "model trees of the merged sets", DIFFERS, ("cpi-pmu", "cpi-merged"), LAB_PENALTIES),
    Published("D tables 1, 3 to 6", "compile, tar, bzip2, dbench by tracer", OPEN, ("trace-xen", "trace-overhead"), NO_GUESTS),
    Published("D table 2", "appending to a file made compile faster", NOT_POSSIBLE, (), "a side effect of a disk's scheduler: the lab has no such disk"),
    Published("D table 7", "SPECviewperf", NOT_POSSIBLE, (), "the lab has no graphics"),
    Published("D tables 8 to 11", "LMbench", OPEN, ("trace-xen", "trace-overhead"), NO_GUESTS),
    Published("D table 12", "-", NOT_POSSIBLE, (), "its numbers are not at hand"),
    Published("D table 13", "the hypervisor traced, and bytes", DIFFERS, ("trace-xen", "trace-sizes", "trace-sizes-kvm"),
              "vperf's states are three times xentrace's records; elapsed times in dom0, of one run"),
    Published("D tables 14, 15", "four tasks in one VM against one in each of four", DIFFERS, ("trace-tasks",),
              "on KVM; the emulated host has no caches and no disk, and one VM for all is no slower"),
    Published("D figures 5 to 11", "-", NOT_POSSIBLE, (), "their numbers are not at hand")]


def of_system(letter: str) -> list[Published]:
    """The tables and figures of one system."""
    return [entry for entry in ENTRIES if entry.place.startswith(f"{letter} ")]


def lines() -> list[str]:
    """The catalogue, a line or two for each."""
    ret = []
    for letter, system in SYSTEMS.items():
        ret += ["", system]
        for entry in of_system(letter):
            ret.append(f"  {entry.place:20} {entry.state:13} {entry.title}{': ' + ', '.join(entry.by) if entry.by else ''}")
            if entry.why:
                ret.append(f"{'':36} {entry.why}")
    return ret
