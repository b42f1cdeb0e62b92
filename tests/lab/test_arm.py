# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold on a host of 64-bit Arm, whose emulated PMU counts exactly (see docs/lab.md)."""
import json
import re

from lab import vperf

HOST = "host arch=arm64 pcpus=1 icount=yes memory=1280\n"

# Its probes, its exact account, and whether the PMU is what the other tests take it for.
PORT = HOST + """
command vperf check --json
command vperf record --account -q -o /out/rec -- tinyvm --hvc 1000 --mmio 500 --rounds 3 --wait 0.1
command perf stat -x, -e instructions:G tinyvm --loops 100000 --rounds 10
command perf stat -x, -e instructions:u counted --loops 1000000
command perf stat -x, -e instructions:u counted --loops 2000000
"""


def parse_counts(text):
    """Event -> count of `perf stat -x,` output."""
    return {event: int(count) for count, event in re.findall(r"^(\d+),,([\w:-]+),", text, re.MULTILINE)}


def port(run, claims):
    probes = {probe["name"]: probe["found"] for probe in json.loads(run.command_output(1))}
    for name in ("sampling programs", "accounting programs", "KVM", "hardware counter"):
        claims.check(probes[name], f"vperf check finds: {name}")
    table = json.loads(vperf("exits", str(run.recording()), "--format", "json").stdout)
    exits = {row["reason"]: row["count"] for row in table["exits"]}
    claims.check(exits.get("HVC64") == 3000, f"{exits.get('HVC64')} of 3000 hypercalls are counted")
    claims.check(exits.get("DABT_LOW") == 1500, f"{exits.get('DABT_LOW')} of 1500 accesses are counted")
    guest, one, two = (next(iter(parse_counts(run.command_output(n, "err")).values())) for n in (3, 4, 5))
    claims.near("instructions of a guest of 10 x 100000 loops of 6", guest, 6000000, 100)
    claims.near("instructions of 1000000 loops of 6", two - one, 6000000, 1000)


# All of it there: the unit tests, and models that are WEKA's to the last digit.
WHOLE = HOST + """
command cd /tmp && for test in $(dirname $(command -v vperf))/tests/unit/test_*; do \
[ -d $test ] || $test 2>&1 || exit; done
command tests/models/run vperf
""".replace("\\\n", "")


def whole(run, claims):
    passed = [int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", run.command_output(1))]
    claims.check(len(passed) > 10, f"{sum(passed)} unit tests in {len(passed)} programs pass")
    claims.check(not run.command_output(2), "models are as WEKA has them")


TESTS = [("64-bit Arm", PORT, port)]
FULL = [("64-bit Arm, whole", WHOLE, whole)]
