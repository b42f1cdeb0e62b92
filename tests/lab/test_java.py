# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of Java methods, without any option to the Java VM: compiled ones, also while classes are loaded and unloaded, and interpreted ones.

The program runs each method for a known share of the time. Its pieces are classes that are loaded anew each time, by a class loader of
their own: their code takes the places of others'."""
import re
import subprocess
import sys
from pathlib import Path

from lab import REPOSITORY, run_scenario

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs  # noqa: E402
from vlablib.arch import AMD64  # noqa: E402

PACKAGES = ("openjdk-17-jre-headless", "openjdk-17-jdk-headless")
JDK = "usr/lib/jvm/java-17-openjdk-amd64"
PIECES = 8
# In percent of the samples in the three kinds of methods, and of all in user space of the process.
SHARES = {"often": 60, "seldom": 20, "piece": 20}
LEAST_NAMED = 95.0
BESIDE = 2.0  # the Java VM's other threads run when they like

# Too large to be inlined.
STEPS = "            " + " ".join(["n = n * 6364136223846793005L + 1442695040888963407L;"] * 40)
METHOD = """    {access}static long {name}(long until, long n) {{
        while (System.nanoTime() < until)
            for (int i = 0; i < 20; i++) {{
{steps}
            }}
        return n;
    }}
"""
PROGRAM = """import java.nio.file.*;
import java.lang.reflect.Method;
public class Known {{
    static class Fresh extends ClassLoader {{
        Class<?> load(String name, byte[] bytes) {{ return defineClass(name, bytes, 0, bytes.length); }}
    }}
{methods}
    public static void main(String[] args) throws Exception {{
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L, n = 1;
        byte[][] pieces = new byte[{pieces}][];
        for (int i = 0; i < pieces.length; i++)
            pieces[i] = Files.readAllBytes(Path.of("/java/Piece" + i + ".class"));
        for (int round = 0; System.nanoTime() < end; round++) {{
            n = often(System.nanoTime() + 12000000, n);
            n = seldom(System.nanoTime() + 4000000, n);
            Method piece = new Fresh().load("Piece" + round % pieces.length, pieces[round % pieces.length])
                .getMethod("piece", long.class, long.class);
            n = (Long) piece.invoke(null, System.nanoTime() + 4000000, n);
            if (round % 20 == 19)
                System.gc();
        }}
        System.out.println("done " + (n == 0 ? 1 : 0));
    }}
}}
"""


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=300)


def method(name, access=""):
    return METHOD.format(name=name, access=access, steps=STEPS)


def build(work, jdk):
    """The program's classes, and a Java VM with what it needs."""
    (work / "Known.java").write_text(PROGRAM.format(methods=method("often") + method("seldom"), pieces=PIECES))
    for i in range(PIECES):
        (work / f"Piece{i}.java").write_text(f"public class Piece{i} {{\n{method('piece', 'public ')}}}\n")
    run("javac", "--release", "17", "-d", work / "classes", *work.glob("*.java"))
    if not (work / "jre").exists():
        run(jdk / "bin/jlink", "--add-modules", "java.base", "--strip-debug", "--no-header-files", "--no-man-pages",
            "--module-path", jdk / "jmods", "--output", work / "jre")


def run_java(directory):
    jdk = debian_programs.get(AMD64, PACKAGES) / JDK
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    build(work, jdk)
    files = {f"/java/{file.name}": file for file in (work / "classes").glob("*.class")}
    # Packed, because the lab copies an ELF file with its libraries, and these need each other. Two are copied, too, for the libraries of this
    # machine that all need.
    run("tar", "-C", work, "--exclude=legal", "-cf", work / "jre.tar", "jre")
    files |= {"/jre.tar": work / "jre.tar", "/needs/jvm": work / "jre/lib/server/libjvm.so", "/needs/jli": work / "jre/lib/libjli.so"}
    lines = "".join(f"file g1 {source} {path}\n" for path, source in sorted(files.items()))
    java = "/jre/bin/java -cp /java"
    records = "command lab-guest run g1 tar -C / -xf /jre.tar\n"
    records += "".join(f"command nice -n -15 vperf record --no-agent --vm g1 -o /out/{name} -- lab-guest run g1 {java} {options}Known {seconds}\n"
                      for name, options, seconds in (("compiled", "", 12), ("interpreted", "-Xint ", 12)))
    guest = "guest g1 vcpus=1 memory=1024 truth=no kernel=bookworm flavour=cloud"
    return run_scenario(f"host pcpus=1 icount=yes memory=2560\n{guest}\n{lines}{records}", directory, timeout=2400, silence=900)


def is_unnamed(function):
    return function is None or function.startswith("0x") or "+0x" in function or function == "Interpreter"


def kind_of(function):
    """The kind of a known method, or None."""
    found = re.fullmatch(r"Known\.(often|seldom)|Piece\d+\.(piece)", function or "")
    return found and (found[1] or found[2])


def java(run_, claims):
    for name in ("compiled", "interpreted"):
        report = run_.report("guest", "--vm", "g1", "--no-host-files", recording=name)
        rows = [row for row in report["rows"] if row["kind"] == "user" and row["process"] == "java"]
        total = sum(row["samples"] for row in rows)
        unnamed = [row for row in rows if is_unnamed(row["function"])]
        share = 100 - 100 * sum(row["samples"] for row in unnamed) / max(total, 1)
        claims.check(total > 2000 and share >= LEAST_NAMED,
                     f"{name}: {share:.2f} % of {total} samples of Java have a function, at least {LEAST_NAMED}: "
                     f"{[(row['function'], row['module'], row['samples']) for row in unnamed][:5]}")
        known = [(kind_of(row["function"]), row["samples"]) for row in rows if kind_of(row["function"])]
        counted = sum(samples for _, samples in known)
        claims.check(counted > 0.5 * total, f"{name}: {counted} of {total} samples are of the known methods")
        for kind, expected in SHARES.items():
            claims.share(f"{name}: methods '{kind}'", sum(samples for of, samples in known if of == kind), (counted, report), expected,
                         beside=BESIDE)


run_java.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: java without options", run_java, java)]
