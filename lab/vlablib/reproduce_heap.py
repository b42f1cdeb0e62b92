"""A Java program with a heap too small and with one large enough, as SPECjbb2013 was profiled with 8 and with 16 GB."""

import json
import re
import subprocess
from pathlib import Path

from . import debian_programs
from .arch import AMD64
from .common import LabError
from .reproduction import Reproduction, Row, call, run_lab, vperf

SOURCE = "Yamamoto, Ono, Nakashima, Hirai 2015, unified performance profiling"
PACKAGES = ("openjdk-17-jre-headless", "openjdk-17-jdk-headless")
SYMBOLS = ("openjdk-17-dbg",)  # of libjvm's own functions
JDK = "usr/lib/jvm/java-17-openjdk-amd64"
# In MiB: the heap, and of that what new objects have. The program always uses about LIVE.
HEAPS = {"small": (66, 9), "large": (1200, 900)}
LIVE, SECONDS, THREADS = 64, 10, 1
BUILT = 5  # seconds until the live objects exist
# Each transaction makes objects that end with it, and replaces some that live on: a table of accounts and their histories.
PROGRAM = """public class Heap {
    static final class Account { long balance; long[] history; Account next; }
    static Account[] accounts;
    static volatile long sum;
    static long transaction(long seed) {
        long n = seed;
        for (int i = 0; i < 40; i++) {
            n = n * 6364136223846793005L + 1442695040888963407L;
            int at = (int) (n >>> 33) % accounts.length;
            Account old = accounts[at], account = new Account();
            account.history = new long[100];
            for (int k = 0; k < 100; k++)
                account.history[k] = Long.rotateLeft(old.history[k] * n + k, 7) * 0x9e3779b97f4a7c15L ^ n >>> k;
            account.balance = old.balance + account.history[i];
            if (i == 0)
                accounts[at] = account;
        }
        return n;
    }
    public static void main(String[] args) throws Exception {
        accounts = new Account[Integer.parseInt(args[1]) * 1024];
        for (int i = 0; i < accounts.length; i++) {
            accounts[i] = new Account();
            accounts[i].history = new long[100];
        }
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
        long[] done = new long[Integer.parseInt(args[2])];
        Thread[] threads = new Thread[done.length];
        for (int t = 0; t < threads.length; t++) {
            final int mine = t;
            threads[t] = new Thread(() -> {
                long n = mine;
                for (; System.nanoTime() < end; done[mine]++)
                    n = transaction(n);
                sum += n;
            });
            threads[t].start();
        }
        long all = 0;
        for (int t = 0; t < threads.length; t++) {
            threads[t].join();
            all += done[t];
        }
        System.out.println("transactions=" + all);
    }
}
"""
COLLECTOR = "GC Thread"  # as its threads are called
AT_LEAST = 10.05  # percent, of the published functions of the collector the one that had most
AT_MOST = 1.0  # "gone"
WITHIN = 10  # percent, between what got done and the samples of those who did it


def _build(work: Path) -> None:
    jdk = debian_programs.get(AMD64, PACKAGES) / JDK
    (work / "Heap.java").write_text(PROGRAM, encoding="ascii")
    for command in (["javac", "--release", "17", "-d", work / "classes", work / "Heap.java"],
                    [jdk / "bin/jlink", "--add-modules", "java.base", "--strip-debug", "--no-header-files", "--no-man-pages", "--module-path",
                     jdk / "jmods", "--output", work / "jre"],
                    ["tar", "-C", work, "--exclude=legal", "-cf", work / "jre.tar", "jre"]):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise LabError(f"{command[0]} ended with status {done.returncode}: {done.stderr[-300:]}")


def _java(heap: int, young: int) -> str:
    return (f"/jre/bin/java -XX:+UseParallelGC -XX:ParallelGCThreads={THREADS} -XX:-UsePerfData -XX:+AlwaysPreTouch -XX:-UseGCOverheadLimit -Xms{heap}m "
            f"-Xmx{heap}m -Xmn{young}m -cp /java Heap {SECONDS} {LIVE} {THREADS}")


def _run(out: Path) -> None:
    work = out / "programs"
    work.mkdir()
    _build(work)
    # As in the lab test of Java: packed, and two of its files for what all of them need.
    files = {"/java/Heap.class": work / "classes/Heap.class", "/java/Heap$Account.class": work / "classes/Heap$Account.class",
             "/jre.tar": work / "jre.tar", "/needs/jvm": work / "jre/lib/server/libjvm.so", "/needs/jli": work / "jre/lib/libjli.so"}
    lines = "".join(f"file g1 {source} {path}\n" for path, source in files.items())
    records = "".join(f"command nice -n -15 vperf record --no-agent --vm g1 -o /out/{name} -- lab-guest run g1 {_java(*sizes)}\n"
                      for name, sizes in HEAPS.items())
    run_lab("host pcpus=1 icount=yes memory=4096\nguest g1 vcpus=1 memory=2048 truth=no kernel=bookworm flavour=cloud\n"
            f"{lines}command lab-guest run g1 tar -C / -xf /jre.tar\n{records}", out)


def heap_rows(functions: dict[str, list[tuple[str, str, float]]], done: list[int]) -> list[Row]:
    """Rows made of (thread, function, percent of the program's samples), most first, and of the number of transactions, by size of the heap."""
    if not all(functions.values()) or len(done) != len(HEAPS):
        raise LabError(f"there are no samples of Java, or it did not say how much it got done: {done}")
    collector = {name: [(function, share) for thread, function, share in rows if thread.startswith(COLLECTOR)] for name, rows in functions.items()}
    small, large = (sum(share for _, share in collector[name]) for name in HEAPS)
    first = [function for thread, function, _ in functions["small"][:5] if thread.startswith(COLLECTOR)]
    return [Row("heap too small: the collector, % of the program's samples", "24.97: SpinPause 11.10, ParMarkBitMap::live_words_in_range 10.05, "
                "ParallelTaskTerminator::offer_termination 3.82", f"{small:.2f}: " + ", ".join(f"{function} {share:.2f}" for function, share in collector["small"][:3]),
                small >= AT_LEAST, numbers=(24.97, small), bound=f"at least {AT_LEAST}"),
            Row("heap too small: functions of the collector among the five hottest, which lead to the heap", "3", f"{len(first)}: {', '.join(first)}",
                bool(first), numbers=(3.0, float(len(first))), bound="one or more"),
            Row("heap large enough: the collector, %", "gone", f"{large:.2f}", large < AT_MOST, numbers=(0.0, large), bound=f"less than {AT_MOST}"),
            Row("transactions with a heap large enough, of those with one too small", "more (figure 20; its numbers are not at hand)",
                f"{done[1] / done[0]:.3f} times; {(100 - large) / (100 - small):.3f} by the samples that are not the collector's",
                done[1] > done[0] and abs(done[1] / done[0] * (100 - small) / (100 - large) - 1) <= WITHIN / 100, bound=f"more than 1; equal within {WITHIN}%")]


def _read(out: Path) -> list[Row]:
    symbols = debian_programs.get(AMD64, SYMBOLS)
    functions = {}
    for name in HEAPS:
        report = json.loads(vperf("report", str(out / "lab" / name), "--view", "guest", "--vm", "g1", "--time", f"+{BUILT},", "--symfs", str(symbols), "--json"))
        rows = [row for row in report["rows"] if row["kind"] == "user"]
        total = sum(row["samples"] for row in rows)
        functions[name] = sorted(((row["process"], row["function"] or "", 100 * row["samples"] / max(total, 1)) for row in rows), key=lambda row: -row[2])
    log = (out / "lab/guest-g1/workloads.log").read_text(encoding="utf-8")
    return heap_rows(functions, [int(word) for word in re.findall(r"transactions=(\d+)", log)])


NAMES = {
    "profile-heap": Reproduction(
        "a Java program with a heap too small, and with one large enough", SOURCE + ", tables 16, 17, figure 20",
        "a program of transactions for SPECjbb2013, OpenJDK 17 for 7, 64 MiB that live for its gigabytes, one vCPU for four: nobody spins", _run, _read)}
