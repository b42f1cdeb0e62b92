# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of Java methods, without any option to the Java VM: compiled ones, also while classes are loaded and unloaded, and interpreted ones. And
their frames in call chains.

The program runs each method for a known share of the time. Its pieces are classes that are loaded anew each time, by a class loader of
their own: their code takes the places of others'."""
import json
import re
import subprocess
import sys
from pathlib import Path

from lab import REPOSITORY, run_scenario, vperf

sys.path.insert(0, str(REPOSITORY / "lab"))
from vlablib import debian_programs  # noqa: E402
from vlablib.arch import AMD64, ARM64  # noqa: E402

PACKAGES = ("openjdk-17-jre-headless", "openjdk-17-jdk-headless")
JDK = "usr/lib/jvm/java-17-openjdk-{arch}"
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

# A known call tree. Reflection calls inner() through native code.
TREE = ["main", "outer", "middle", "inner", *["deep"] * 6, "tiny"]
CHAINS = """import java.lang.reflect.Method;
public class Chains {
    static long sink;
    static long tiny(long x) { for (int i = 0; i < 300; i += 1 + (int)(x >>> 63)) x = x * 31 + (x >> 7); return x; }
    static long deep(int n, long x) { return n == 0 ? tiny(x) : deep(n - 1, x + n) + 1; }
    public static long inner(long x) { for (int i = 0; i < 50; i++) x = deep(5, x); return x; }
    static long middle(Method m, long x) throws Exception { return (Long) m.invoke(null, x); }
    static long outer(Method m, long x) throws Exception { return middle(m, x) + 1; }
    public static void main(String[] args) throws Exception {
        Method m = Chains.class.getMethod("inner", long.class);
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
        while (System.nanoTime() < end)
            sink = outer(m, sink);
        Thread.sleep(1500);
    }
}
"""
NATIVE = "-Dsun.reflect.inflationThreshold=2147483647 "
# Recording → options. The first one finds the guest's kernel, too.
STACKS = {"warm": NATIVE, "compiled": NATIVE, "first-compiler": f"{NATIVE}-XX:TieredStopAtLevel=1 ",
          "interpreted": f"{NATIVE}-XX:CompileCommand=quiet -XX:CompileCommand=exclude,Chains.* "}
# Percent of the chains, from SETTLED seconds after the process's first sample: before that, vperf looks for the Java VM, and methods are
# compiled.
LEAST_CHAINS = 95.0
SETTLED = 5
# Percent of all samples of Java in user space: its other threads run, too.
LEAST_OF_ALL = 90.0


# Small methods that compilers inline, each with a known share of the time. The loops of Counted have no safepoint, and so no debug information
# without the option.
INLINED = """public class {name} {{
    static long sink;
    static long left(long x) {{ for (int i = 0; i < 1200; i += {step}) x = x * 31 + (x >> 7); return x; }}
    static long right(long x) {{ for (int i = 0; i < 800; i += {step}) x = x * 31 + (x >> 7); return x; }}
    static long work(long x) {{ for (int i = 0; i < 50; i++) x = right(left(x)); return x; }}
    public static void main(String[] args) {{
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;
        while (System.nanoTime() < end)
            sink = work(sink + 1);
    }}
}}
"""
INLINED_SHARES = {"left": 60, "right": 40}
INLINED_STEPS = {"Inlined": "1 + (int)(x >>> 63)", "Counted": "1"}
INLINED_RUNS = {"inlined": "Inlined", "inlined-first-compiler": "-XX:TieredStopAtLevel=1 Inlined",
                "inlined-interpreted": "-Xint Inlined",
                "inlined-option": "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints Counted"}
INLINED_SETTLED = 3


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=300)


def method(name, access=""):
    return METHOD.format(name=name, access=access, steps=STEPS)


def write_known(work):
    (work / "Known.java").write_text(PROGRAM.format(methods=method("often") + method("seldom"), pieces=PIECES))
    for i in range(PIECES):
        (work / f"Piece{i}.java").write_text(f"public class Piece{i} {{\n{method('piece', 'public ')}}}\n")


def jdk_of(arch):
    return debian_programs.get(arch, PACKAGES) / JDK.format(arch=arch.name)


def build(work, arch):
    """The program's classes, and a Java VM with what it needs."""
    run("javac", "--release", "17", "-d", work / "classes", *work.glob("*.java"))
    if not (work / "jre").exists():
        run(jdk_of(AMD64) / "bin/jlink", "--add-modules", "java.base", "--strip-java-debug-attributes", "--no-header-files", "--no-man-pages",
            "--module-path", jdk_of(arch) / "jmods", "--output", work / "jre")


def run_program(directory, write, recordings, arch=AMD64):
    work = Path(f"{directory}.programs")
    work.mkdir(parents=True, exist_ok=True)
    write(work)
    build(work, arch)
    files = {f"/java/{file.name}": file for file in (work / "classes").glob("*.class")}
    # Packed, because the lab copies an ELF file with its libraries, and these need each other. Two are copied, too, for the libraries of this
    # machine that all need.
    run("tar", "-C", work, "--exclude=legal", "-cf", work / "jre.tar", "jre")
    files |= {"/jre.tar": work / "jre.tar", "/needs/jvm": work / "jre/lib/server/libjvm.so", "/needs/jli": work / "jre/lib/libjli.so"}
    lines = "".join(f"file g1 {source} {path}\n" for path, source in sorted(files.items()))
    records = "command lab-guest run g1 tar -C / -xf /jre.tar\n"
    records += "".join(f"command nice -n -15 vperf record {options}--no-agent --vm g1 -o /out/{name} -- lab-guest run g1 /jre/bin/java -cp /java {program}\n"
                      for name, options, program in recordings)
    guest = "guest g1 vcpus=1 memory=1024 truth=no kernel=bookworm flavour=cloud"
    return run_scenario(f"host arch={arch.name} pcpus=1 icount=yes memory=2560\n{guest}\n{lines}{records}", directory, timeout=2400, silence=900)


def run_java(directory):
    return run_program(directory, write_known, [("compiled", "", "Known 12"), ("interpreted", "", "-Xint Known 12")])


def run_java_on_arm(directory):
    """Sampled by time: the emulated processor has counters."""
    return run_program(directory, write_known, [("compiled", "-e cpu-clock ", "Known 12"), ("interpreted", "-e cpu-clock ", "-Xint Known 12")], ARM64)


def run_stacks(directory, event="", arch=AMD64):
    return run_program(directory, lambda work: (work / "Chains.java").write_text(CHAINS),
                       [(name, f"-g {event}", f"{options}Chains {3 if name == 'warm' else 12}") for name, options in STACKS.items()], arch)


def run_stacks_on_arm(directory):
    return run_stacks(directory, "-e cpu-clock ", ARM64)


def write_inlined(work):
    for name, step in INLINED_STEPS.items():
        (work / f"{name}.java").write_text(INLINED.format(name=name, step=step))


def run_inlined(directory):
    return run_program(directory, write_inlined, [(name, "", f"{program} 8") for name, program in INLINED_RUNS.items()])


def inlined(run_, claims):
    """Without -g, a sample counts as the innermost method, also if that was inlined."""
    for name, program in INLINED_RUNS.items():
        report = run_.report("guest", "--vm", "g1", "--no-host-files", *run_.settled(name, "java", INLINED_SETTLED), recording=name)
        own = f"{program.split()[-1]}."
        rows = [(row["function"], row["samples"]) for row in report["rows"] if row["kind"] == "user" and row["process"] == "java"]
        total = sum(samples for _, samples in rows)
        shares = {method: sum(samples for function, samples in rows if function == own + method) for method in INLINED_SHARES}
        counted = sum(shares.values())
        others = sorted(((samples, function) for function, samples in rows if function not in [own + method for method in shares]), reverse=True)
        claims.check(total > 2000 and 100 * counted >= LEAST_NAMED * total, f"{name}: {counted} of {total} samples of Java "
                     f"({100 * counted / max(total, 1):.2f} %) are in the known small methods, at least {LEAST_NAMED} %: {others[:4]}")
        for method, expected in INLINED_SHARES.items():
            claims.share(f"{name}: {method}()", shares[method], (counted, report), expected, beside=BESIDE)


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
        inside = [row["function"] for row in rows if (row["function"] or "").startswith("[vdso]+")]
        claims.check(not inside, f"{name}: functions of the vDSO have names: {inside[:3]}")
        known = [(kind_of(row["function"]), row["samples"]) for row in rows if kind_of(row["function"])]
        counted = sum(samples for _, samples in known)
        claims.check(counted > 0.5 * total, f"{name}: {counted} of {total} samples are of the known methods")
        for kind, expected in SHARES.items():
            claims.share(f"{name}: methods '{kind}'", sum(samples for of, samples in known if of == kind), (counted, report), expected,
                         beside=BESIDE)


def methods_of(frames):
    return [frame.removeprefix("Chains.") for frame in frames if frame.startswith("Chains.")]


def is_native(frame):
    return frame.startswith(("libjvm.so", "libjava.so", "JavaCalls::", "Reflection::", "JVM_"))


def is_tree(frames):
    """Whether the methods are the tree's, from the start of the thread on, and native code calls inner()."""
    methods = methods_of(frames)
    whole = [*TREE[:TREE.index("deep")], *["deep"] * methods.count("deep"), "tiny"]
    if methods not in (TREE[:len(methods)], whole) or not frames[0].startswith(("libc.so.6:", "clone3", "__clone3", "start_thread")):
        return False
    return "inner" not in methods or any(map(is_native, frames[frames.index("Chains.middle"):frames.index("Chains.inner")]))


def stacks(run_, claims):
    for name in list(STACKS)[1:]:
        report = json.loads(vperf("report", str(run_.recording(name)), "--view", "guest", "--vm", "g1", "--format", "json", "--no-host-files",
                                  *run_.settled(name, "java", SETTLED)).stdout)
        found = [stack for stack in report["stacks"] if stack["process"] == "java" and not any("_[k]" in frame for frame in stack["frames"])]
        known = [stack for stack in found if methods_of(stack["frames"])]
        right = sum(stack["samples"] for stack in known if is_tree(stack["frames"]))
        total, counted = (sum(stack["samples"] for stack in of) for of in (found, known))
        wrong = max((stack for stack in known if not is_tree(stack["frames"])), key=lambda stack: stack["samples"], default=None)
        claims.note(f"{name}: {report['walks']['guest_user']}")
        claims.check(counted > 2000 and 100 * right >= LEAST_CHAINS * counted,
                     f"{name}: {right} of {counted} chains with methods of the program ({100 * right / max(counted, 1):.2f} %) are those of the known "
                     f"tree, through native code, at least {LEAST_CHAINS} %: {wrong and (wrong['samples'], wrong['frames'])}")
        rest = max((stack for stack in found if not methods_of(stack["frames"])), key=lambda stack: stack["samples"], default=None)
        claims.check(100 * right >= LEAST_OF_ALL * total, f"{name}: {right} of all {total} chains of Java, at least {LEAST_OF_ALL} %: "
                     f"{rest and (rest['samples'], rest['frames'])}")
        deepest = sum(stack["samples"] for stack in known if methods_of(stack["frames"])[-2:] == ["deep", "tiny"])
        claims.check(2 * deepest > counted, f"{name}: {deepest} of {counted} chains end in the innermost method, inlined or not, more than half")


run_java.is_virtual = True
run_java_on_arm.is_virtual = True
run_inlined.is_virtual = True
run_stacks.is_virtual = True
run_stacks_on_arm.is_virtual = True
TESTS = []
QUICK = ()
FULL = [("names: java without options", run_java, java), ("64-bit Arm, java", run_java_on_arm, java),
        ("names: java, inlined methods", run_inlined, inlined), ("names: java stacks", run_stacks, stacks),
        ("64-bit Arm, java stacks", run_stacks_on_arm, stacks)]
