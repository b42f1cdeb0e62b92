"""A database in a guest, sampled from the host and in the guest: figures 17 to 19 of the unified profile, MySQL under sysbench."""

import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import debian_programs
from .arch import AMD64
from .common import LabError
from .reproduce_profile import PUBLISHED_RATES
from .reproduction import Reproduction, Row, run_lab

SOURCE = "Yamamoto, Ono, Nakashima, Hirai 2015, unified performance profiling, figures 17 to 19"
PACKAGES = ("mariadb-server-core", "mariadb-common", "liburing2", "libsnappy1v5", "sysbench", "libaio1", "libluajit-5.1-2", "libluajit-5.1-common",
            "libmariadb3", "libpq5", "libldap-2.5-0", "libsasl2-2")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
ROWS, TRANSACTIONS = 1000, 300
TURNS = 5  # as published; one more comes first and warms up
RATES = (1000, 10000)
HOST = "vperf record -q --no-agent --no-account --no-guest-memory -e cycles -c {} -o /run/rec -- "
RUN = "lab-guest run g1 {}sh /db/run"
# In turn. Sampled from the host by NMIs, as published; in the guest by its timer, which KVM injects.
WAYS = {"alone": RUN.format(""), **{f"host-{rate}": HOST.format(10 ** 9 // rate) + RUN.format("") for rate in RATES},
        "guest-1000": RUN.format("perf record -q -a -e cpu-clock -F 1000 -o /perf.data ")}
T_95 = 2.306  # Student's, of two times five runs
BUSY = 93  # percent: "the CPU was less than 93% busy"


def _database(root: str, data: str, socket: str) -> str:
    """Without rights, without a network, and with files that fit into a guest's memory."""
    return (f"{root}/mariadbd --no-defaults --user=root --datadir={data} --socket={socket} --skip-grant-tables --skip-networking --lc-messages-dir={root}/mysql "
            "--plugin-dir=/none --innodb-log-file-size=4M --innodb-buffer-pool-size=32M --innodb-use-native-aio=0")


def _client(root: str, socket: str) -> str:
    return (f"{root}/sysbench {root}/lua/oltp_read_write.lua --db-driver=mysql --mysql-socket={socket} --mysql-user=root --mysql-db=test --tables=1 "
            f"--table-size={ROWS} --threads=1 --rand-seed=1")


def _call(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{command[0]} ended with status {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout


@contextmanager
def _running(command: list[str], environment: dict[str, str], socket: Path, log: Path) -> Iterator[None]:
    """The database, as long as its table is made."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, stdin=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while not socket.is_socket():
            if process.poll() is not None or time.monotonic() > limit:
                raise LabError(f"the database does not start: {log.read_text(errors='replace')[-300:]}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _build(work: Path) -> Path:
    """An archive with the database, its table, sysbench, and what both load."""
    packages = debian_programs.get(AMD64, PACKAGES)
    db = work / "db"
    for name in ("lib", "lua", "data/test"):
        (db / name).mkdir(parents=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(packages / LIBRARIES), "LUA_PATH": f"{db}/lua/?.lua"}
    for program in ("usr/sbin/mariadbd", "usr/bin/sysbench"):
        shutil.copy2(packages / program, db)
        text = _call(["ldd", str(packages / program)], environment)
        if "not found" in text:
            raise LabError(f"{program} needs what neither this machine nor its packages have: {text}")
        for library in re.findall(r"=> (/\S+) \(0x", text):
            shutil.copy2(library, db / "lib")
    for script in (packages / "usr/share/sysbench").glob("oltp_*.lua"):
        shutil.copy2(script, db / "lua")
    for name in ("charsets", "english"):
        shutil.copytree(packages / "usr/share/mysql" / name, db / "mysql" / name)
    socket = work / "socket"
    with _running(_database(str(db), str(db / "data"), str(socket)).split(), environment, socket, work / "log"):
        _call([*_client(str(db), str(socket)).split(), "prepare"], environment)
    # The daemon and the client are on a vCPU each.
    own = "export LD_LIBRARY_PATH=/db/lib LUA_PATH='/db/lua/?.lua'\n"
    (db / "serve").write_text(f"{own}exec taskset 1 {_database('/db', '/db/data', '/db/socket')}\n", encoding="ascii")
    (db / "run").write_text(f"{own}head -n 1 /proc/stat\ntaskset 2 {_client('/db', '/db/socket')} --events={TRANSACTIONS} --time=0 run\nhead -n 1 /proc/stat\n",
                            encoding="ascii")
    _call(["tar", "-C", str(work), "-cf", str(work / "db.tar"), "db"], dict(os.environ))
    return work / "db.tar"


def _run(out: Path) -> None:
    work = out / "programs"
    work.mkdir()
    archive = _build(work)
    turns = "".join(f"command {command}; rm -rf /run/rec\n" for _ in range(1 + TURNS) for command in WAYS.values())
    run_lab(f"host pmu=yes pcpus=2 memory=3072\nguest g1 vcpus=2 memory=768 pin=0,1 truth=no\nfile g1 /usr/bin/perf /bin/perf\nfile g1 {archive} /db.tar\n"
            "command lab-guest run g1 tar -C / -xf /db.tar\ncommand lab-guest spawn g1 sh /db/serve\n"
            "command lab-guest run g1 sh -c 'until [ -S /db/socket ]; do sleep 0.1; done'\n" + turns, out)
    archive.unlink()
    shutil.rmtree(work / "db")


def busy_of(before: list[int], after: list[int]) -> float:
    """Percent of the vCPUs' time that was not idle, from two first lines of /proc/stat."""
    spent = [end - start for start, end in zip(before, after)]
    return 100 * (1 - (spent[3] + spent[4]) / max(sum(spent[:8]), 1))


def database_rows(rates: list[float], busy: list[float]) -> list[Row]:
    """Rows from transactions per second and from the guest's busy time, run by run in turn."""
    if len(rates) != (1 + TURNS) * len(WAYS) or len(busy) != len(rates):
        raise LabError(f"sysbench printed {len(rates)} figures and /proc/stat {len(busy)}, not {(1 + TURNS) * len(WAYS)}")
    of = {name: rates[len(WAYS) + place::len(WAYS)] for place, name in enumerate(WAYS)}
    mean = {name: statistics.mean(values) for name, values in of.items()}
    error = {name: statistics.stdev(values) / TURNS ** 0.5 for name, values in of.items()}
    rows = [Row("transactions per second, alone: mean, deviation of five runs", "its numbers are not at hand",
                f"{mean['alone']:.2f}, {statistics.stdev(of['alone']):.2f}", None)]
    for name in list(WAYS)[1:]:
        where, rate = name.split("-")
        percent = 100 * (mean["alone"] / mean[name] - 1)
        width = 100 * T_95 * (error["alone"] ** 2 + error[name] ** 2) ** 0.5 / mean["alone"]
        ours = f"{percent:.3f} ± {width:.3f} ({mean[name]:.2f} transactions per second, deviation {statistics.stdev(of[name]):.2f})"
        what = f"% that a transaction takes longer, sampled in the {where} every {1000 / int(rate):g} ms"
        if where == "guest":
            rows.append(Row(what, "-", ours, None))
            continue
        bound = PUBLISHED_RATES[int(rate)]
        decided = percent + width < bound or percent - width > bound
        rows.append(Row(what, f"less than with a busy CPU, {bound:.3f} (figure 16b)", ours, percent + width < bound if decided else None,
                        "" if decided else "the published bound is within the interval of five runs", (bound, percent), f"less than {bound:.3f}"))
    alone = statistics.mean(busy[len(WAYS)::len(WAYS)])
    return rows + [Row("% of the vCPUs' time that is not idle, alone", f"less than {BUSY}", f"{alone:.1f}", alone < BUSY, numbers=(BUSY, alone), bound=f"less than {BUSY}")]


def _read(out: Path) -> list[Row]:
    log = (out / "lab/guest-g1/workloads.log").read_text(encoding="utf-8")
    rates = [TRANSACTIONS / float(word) for word in re.findall(r"total time: +([0-9.]+)s", log)]
    stats = [[int(word) for word in line.split()] for line in re.findall(r"\| cpu +([0-9 ]+)$", log, re.MULTILINE)]
    return database_rows(rates, [busy_of(*pair) for pair in zip(stats[::2], stats[1::2])])


NAMES = {"profile-mysql": Reproduction(
    "the cost of sampling for a database in a guest", SOURCE,
    f"MariaDB 10.11 for MySQL 5.1, {TRANSACTIONS} transactions of sysbench 1.0 a run on a table of {ROWS} rows in memory, on an emulated host that counts "
    "instructions", _run, _read)}
