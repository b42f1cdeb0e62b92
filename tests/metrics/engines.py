# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics engines for tests: Prometheus of this machine, and newer ones from Debian's packages, with samples of the past."""
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds
GO = "golang-1.27-go"
NEWER = ("prometheus", "promtool", "victoria-metrics")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def fetched():
    """The directory of the newer engines' programs, fetched once into the lab's cache."""
    sys.path.insert(0, str(ROOT / "lab"))
    from vlablib import debian_programs  # pylint: disable=import-outside-toplevel
    from vlablib.arch import AMD64  # pylint: disable=import-outside-toplevel
    return debian_programs.get(AMD64, NEWER, suite="sid") / "usr/bin"


def collector():
    """An OpenTelemetry Collector that receives OTLP and prints it, built once from Debian's packages of its source."""
    sys.path.insert(0, str(ROOT / "lab"))
    from vlablib.arch import AMD64  # pylint: disable=import-outside-toplevel
    from vlablib.common import cache_dir, publish  # pylint: disable=import-outside-toplevel
    from vlablib.debian import PrivateApt  # pylint: disable=import-outside-toplevel
    source = pathlib.Path(__file__).with_name("collector.go")
    place = cache_dir("collector") / hashlib.sha256(source.read_bytes()).hexdigest()[:16]

    def build(work):
        apt = PrivateApt("sid", AMD64)
        apt.update()
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for deb in apt.with_dependencies(["golang-opentelemetry-collector-dev", GO]):
                if deb.name.startswith("golang-"):
                    subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
            package = root / "path/src/collector"
            package.mkdir(parents=True)
            shutil.copy(source, package / "main.go")
            compiler = root / "usr/lib" / GO.removeprefix("golang-").removesuffix("-go").join(("go-", ""))
            subprocess.run([compiler / "bin/go", "build", "-o", work / "collector", "."], cwd=package, check=True, env={
                **os.environ, "GOROOT": str(compiler), "GO111MODULE": "off", "GOFLAGS": "", "CGO_ENABLED": "0", "GOCACHE": str(root / "cache"),
                "GOPATH": f"{root / 'path'}:{root / 'usr/share/gocode'}"})

    publish(place, "collector", "collector", False, build)
    return place / "collector"


def wait_until_up(url, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            if urllib.request.urlopen(url, timeout=5).status == 200:
                return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    raise RuntimeError(f"'{url}' is not up")


class Prometheus:
    """A server with a prefix before its paths, and the samples of a text in OpenMetrics with times."""
    wrong_matcher, wrong_path = "bad_data", "404"

    def __init__(self, directory, samples=None, programs=None, config="global: {}\n", more=()):
        self.directory, self.samples, self.config, self.more = directory, samples, config, more
        self.program, self.promtool = (str(programs / name) if programs else name for name in ("prometheus", "promtool"))
        self.name = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True).stdout.split("(")[0].strip()

    def __enter__(self):
        data, config, port = self.directory / "prometheus", self.directory / "prometheus.yml", free_port()
        config.write_text(self.config)
        if self.samples:
            text = self.directory / "samples"
            text.write_text(self.samples)
            subprocess.run([self.promtool, "tsdb", "create-blocks-from", "openmetrics", text, data], capture_output=True, check=True)
        self.process = subprocess.Popen([self.program, f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address=127.0.0.1:{port}",
                                         "--web.external-url=http://x/some/prefix", *self.more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}/some/prefix"
        wait_until_up(f"{self.url}/-/ready", self.process)
        return self

    def __exit__(self, *what):
        self.process.terminate()
        self.process.wait()


class VictoriaMetrics:
    """One node, of the package victoria-metrics."""
    wrong_matcher, wrong_path = "422", "unsupported path"

    def __init__(self, directory, samples=None, programs=None, more=()):
        self.directory, self.samples, self.program, self.more = directory, samples, str(programs / "victoria-metrics"), more
        self.name = "VictoriaMetrics"

    def __enter__(self):
        port = free_port()
        self.process = subprocess.Popen([self.program, f"-storageDataPath={self.directory / 'victoria-metrics'}", f"-httpListenAddr=127.0.0.1:{port}",
                                         "-retentionPeriod=30d", "-search.latencyOffset=0s", *self.more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/prometheus"
        wait_until_up(f"{self.root}/health", self.process)
        if self.samples:
            self.load(self.samples)
        return self

    def load(self, samples):
        """Imports the same text: without OpenMetrics' lines, and with times in milliseconds."""
        lines = []
        for line in samples.splitlines():
            if not line.startswith("#"):
                series, _, at = line.rpartition(" ")
                lines.append(f"{series} {at}000\n")
        urllib.request.urlopen(urllib.request.Request(f"{self.root}/api/v1/import/prometheus", data="".join(lines).encode()), timeout=PATIENCE).close()
        urllib.request.urlopen(f"{self.root}/internal/force_flush", timeout=PATIENCE).close()

    def __exit__(self, *what):
        self.process.terminate()
        self.process.wait()


def have_prometheus():
    return all(shutil.which(program) for program in ("prometheus", "promtool"))
