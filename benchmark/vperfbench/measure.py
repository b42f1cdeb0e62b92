"""One measured run of a command: a program of its own, so that a tracer can be its parent and a guest can run it.

usage: measure.py SPEC    (a JSON file; the standard library only, for Python of a guest)

With "guest" in it the command runs there: a file "go" in the directory shared with the guest, and then its
"measured.json" is waited for.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time


def _kill(process: subprocess.Popen) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            continue


def run_here(spec: dict) -> dict:
    """The command in its directory; its elapsed and CPU time, its status, whether it was too slow."""
    environment = {**os.environ, "SCALE": str(spec["scale"]), "LC_ALL": "C"}
    with open(spec["stdout"], "wb") as out, open(spec["stderr"], "wb") as err:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic_ns()
        process = subprocess.Popen(["sh", "-c", spec["command"]], cwd=spec["directory"], stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, env=environment, start_new_session=True)
        # Not by wait(), which looks twenty times a second once it has waited for a while.
        handle = os.pidfd_open(process.pid)
        late = not select.select([handle], [], [], spec["limit"])[0]
        ended = time.monotonic_ns()
        os.close(handle)
        if late:
            _kill(process)
        process.poll()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"status": process.returncode, "late": late, "elapsed": (ended - began) / 1e9,
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def run_in_guest(spec: dict) -> dict:
    """The same in a guest that waits for it."""
    share = spec["guest"]
    open(os.path.join(share, "go"), "wb").close()
    limit = time.monotonic() + spec["limit"] * 1.5 + 30  # the guest keeps the limit by its own clock
    while time.monotonic() < limit:
        try:
            with open(os.path.join(share, "measured.json"), encoding="utf-8") as handle:
                return json.load(handle)
        except FileNotFoundError:
            time.sleep(0.1)
    return {"status": None, "late": True, "elapsed": None, "cpu": None}


def write(path: str, values: dict) -> None:
    """There whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as handle:
        json.dump(values, handle)
        handle.flush()
        os.fsync(handle.fileno())
    os.rename(path + ".new", path)


def main() -> int:
    """As said above."""
    with open(sys.argv[1], encoding="utf-8") as handle:
        spec = json.load(handle)
    write(spec["result"], run_in_guest(spec) if spec.get("guest") else run_here(spec))
    return 0


if __name__ == "__main__":
    sys.exit(main())
