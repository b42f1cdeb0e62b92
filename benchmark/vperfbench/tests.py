"""The tests that come with vperf-bench; a plan may name any other command. Shell commands run in an empty
directory of their own; $SCALE multiplies the work."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """How a test's figure is found: its elapsed time, its CPU time, or a pattern in what it prints."""

    kind: str  # elapsed, cpu, pattern
    unit: str = "s"
    better: str = "less"
    pattern: str = ""


@dataclass(frozen=True)
class TestKind:
    """What to run, and what it needs: program -> Debian package."""

    command: str
    prepare: str = ""
    figure: Figure = Figure("elapsed")
    needs: dict = field(default_factory=dict)


# The same bytes each time: text that compresses about as source code does.
TEXT = """awk -v n="$1" 'BEGIN { s = 42; for (i = 0; i < n; i++) { line = ""; for (j = 0; j < 10; j++) {
s = (s * 16807) % 2147483647; line = line " word" s % 997 } print line } }'"""
MAKE_TEXT = "text() { " + TEXT + "; }\n"
TREE = MAKE_TEXT + """mkdir tree; i=0
text 20 > sample
while [ $i -lt $((400 * SCALE)) ]; do mkdir -p tree/$((i % 20)); cat sample > tree/$((i % 20))/$i; i=$((i + 1)); done"""
SOURCES = """i=0
while [ $i -lt $((10 * SCALE)) ]; do
awk -v n=$i 'BEGIN { for (f = 0; f < 40; f++) printf "int f%d_%d(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) \
if (a[i] %% %d) s += a[i] * %d; else s ^= a[i] >> %d; return s; }\\n", n, f, f + 2, f + 3, f % 7 }' > $i.c
i=$((i + 1)); done"""
INSERTS = """{ echo 'PRAGMA synchronous=NORMAL; CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT, n INTEGER); BEGIN;'
awk -v n=$((5000 * SCALE)) 'BEGIN { s = 42; for (i = 0; i < n; i++) { s = (s * 16807) % 2147483647;
print "INSERT INTO t VALUES(" i ", '"'"'v" s "'"'"', " s % 1000 ");" } }'
echo 'COMMIT; SELECT count(*), sum(k) FROM t GROUP BY n ORDER BY 2 DESC LIMIT 5; DELETE FROM t WHERE n < 500;'; } > work.sql"""


def _printed(pattern: str, unit: str, better: str) -> Figure:
    return Figure("pattern", unit, better, pattern)


PERF = {"perf": "linux-perf"}
KINDS = {
    "compile": TestKind("for f in *.c; do cc -O2 -c $f -o ${f%.c}.o; done", SOURCES, needs={"cc": "gcc"}),
    "archive-create": TestKind("tar -cf tree.tar tree", TREE, needs={"tar": "tar"}),
    "archive-extract": TestKind("mkdir out; tar -xf tree.tar -C out", TREE + "\ntar -cf tree.tar tree", needs={"tar": "tar"}),
    "compress": TestKind("gzip -9 text", MAKE_TEXT + "text $((20000 * SCALE)) > text", needs={"gzip": "gzip"}),
    "database": TestKind("sqlite3 work.db < work.sql", INSERTS, needs={"sqlite3": "sqlite3"}),
    "dbench": TestKind("dbench -D . -t $((10 * SCALE)) 1", needs={"dbench": "dbench"},
                       figure=_printed(r"Throughput ([\d.]+) MB/sec", "MB/s", "more")),
    "perf-pipe": TestKind("perf bench sched pipe -l $((20000 * SCALE))", needs=PERF,
                          figure=_printed(r"Total time: *([\d.]+) \[sec\]", "s", "less")),
    "perf-messaging": TestKind("perf bench sched messaging -g 2 -l $((50 * SCALE))", needs=PERF,
                               figure=_printed(r"Total time: *([\d.]+) \[sec\]", "s", "less")),
    "perf-memcpy": TestKind("perf bench mem memcpy -f default -s 16MB -l $((20 * SCALE))", needs=PERF,
                            figure=_printed(r"([\d.]+) GB/sec", "GB/s", "more")),
    "perf-futex": TestKind("perf bench futex hash -s -t 2 -r $((2 * SCALE))", needs=PERF,
                           figure=_printed(r"Averaged (\d+) operations/sec", "operations/s", "more")),
    "perf-syscall": TestKind("perf bench syscall basic --loop $((1000000 * SCALE))", needs=PERF,
                             figure=_printed(r"Total time: *([\d.]+) \[sec\]", "s", "less")),
    "sysbench-cpu": TestKind("sysbench cpu --time=$((10 * SCALE)) run", needs={"sysbench": "sysbench"},
                             figure=_printed(r"events per second: *([\d.]+)", "events/s", "more")),
    "sysbench-memory": TestKind("sysbench memory --time=$((10 * SCALE)) run", needs={"sysbench": "sysbench"},
                                figure=_printed(r"\(([\d.]+) MiB/sec\)", "MiB/s", "more")),
}
