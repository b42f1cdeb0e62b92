"""Debian packages of any suite and architecture, fetched through a private apt.

It has its own state, lists and cache, and the machine's own configuration (proxies, keyrings). Its
sources are those of the machine with other suite names in them.
"""

import os
import re
import subprocess
from pathlib import Path

from .arch import AMD64
from .common import LabError, cache_dir, need_program

SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid")
# Releases of Debian, to recognise which of the machine's sources are Debian's own.
CODENAME = re.compile(r"^(buster|bullseye|bookworm|trixie|forky|duke|sid|stable|oldstable|testing|"
                      r"unstable)(/updates|-[a-z-]+)?/?$")
KERNEL_PART = re.compile(r"^linux-(?:image|binary|modules)-\d\S*$")


def _deb822_stanzas(text):
    for block in re.split(r"\n[ \t]*\n", text):
        fields, last = {}, None
        for line in block.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line[0] in " \t" and last:
                fields[last] += "\n" + line
            elif ":" in line:
                last, value = line.split(":", 1)
                last = last.strip().lower()
                fields[last] = value.strip()
        if fields:
            yield fields


def _one_line_stanzas(text):
    for line in text.splitlines():
        match = re.match(r"^\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*?)\s*(?:#.*)?$", line)
        if not match:
            continue
        fields = {"types": "deb", "uris": match[2], "suites": match[3], "components": match[4]}
        for option in (match[1] or "").split():
            key, _, value = option.partition("=")
            fields[key.lower()] = value
        yield fields


def _machine_stanzas():
    """The machine's apt sources for Debian main, each as deb822 fields in lower case."""
    etc = Path("/etc/apt")
    stanzas = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if not path.is_file() or path.suffix not in (".list", ".sources"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        parse = _deb822_stanzas if path.suffix == ".sources" else _one_line_stanzas
        stanzas += parse(text)
    return [s for s in stanzas
            if "deb" in s.get("types", "").split() and "main" in s.get("components", "").split()
            and s.get("enabled", "yes") != "no"
            and s.get("suites") and all(CODENAME.match(n) for n in s["suites"].split())]


def _archives():
    """Machine's Debian sources, split: the archive proper, and the security archive."""
    plain, security = [], []
    for stanza in _machine_stanzas():
        names = stanza["suites"].split()
        is_security = all("security" in n or n.endswith("/updates") for n in names)
        (security if is_security else plain).append(stanza)
    if not plain:
        raise LabError("no Debian archive (component main) is among this machine's apt sources")
    return plain[0], security[0] if security else None


def _sources_text(choices, arch, types, component):
    """deb822 text; choices: pairs of (machine stanza, suite names); types: deb, deb-src."""
    keep = ("signed-by", "check-valid-until", "check-date", "valid-until-max")
    blocks = []
    for stanza, suites in choices:
        lines = [f"Types: {types}", f"URIs: {stanza['uris']}", f"Suites: {' '.join(suites)}",
                 f"Components: {component}", f"Architectures: {arch.name}"]
        lines += [f"{key}: {stanza[key]}" for key in keep if key in stanza]
        if "signed-by" not in stanza:
            lines.append("Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def place_name(name, arch):
    """Name of an architecture's file in the cache."""
    return name if arch is AMD64 else f"{name}-{arch.name}"


class PrivateApt:
    """apt with state, lists, cache and sources of its own, for one suite and architecture; with source
    packages if asked for, which a mirror may lack. The component: main, or non-free."""

    def __init__(self, suite, arch, sources=False, component="main"):
        self.suite = suite
        self.arch = arch
        self.types = "deb deb-src" if sources else "deb"
        self.component = component
        self.dir = cache_dir("apt", place_name(suite, arch) + "-sources" * sources + f"-{component}" * (component != "main"))
        for sub in ("state/lists/partial", "cache/archives/partial", "sources"):
            (self.dir / sub).mkdir(parents=True, exist_ok=True)
        (self.dir / "status").touch()
        self.options = []
        for key, value in {
                "Dir::State": self.dir / "state", "Dir::State::status": self.dir / "status",
                "Dir::Cache": self.dir / "cache", "Dir::Etc::sourcelist": "/dev/null",
                "Dir::Etc::sourceparts": self.dir / "sources", "Acquire::Languages": "none",
                "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
                "APT::Sandbox::User": "root", "Acquire::Retries": "2",
                "APT::Architecture": arch.name, "APT::Architectures": arch.name}.items():
            self.options += ["-o", f"{key}={value}"]

    def run(self, program, *args, cwd=None):
        """Run apt-get or apt-cache; returns (exit status, stdout, stderr)."""
        done = subprocess.run([need_program(program, "apt"), *self.options, *args], cwd=cwd,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})
        return done.returncode, done.stdout, done.stderr

    def update(self, with_security=True):
        """Fetch the package lists: with updates and, if asked for, security where these exist."""
        archive, security = _archives()
        security = security if with_security else None
        base = self.suite
        tries = []
        if base != "sid" and "backports" not in base:
            extra = [(security, [f"{base}-security"])] if security else []
            tries.append([(archive, [base, f"{base}-updates"])] + extra)
            tries.append([(archive, [base])] + extra)
        tries.append([(archive, [base])])
        errors = ""
        for choices in tries:
            text = _sources_text(choices, self.arch, self.types, self.component)
            (self.dir / "sources" / "lab.sources").write_text(text, encoding="utf-8")
            status, out, err = self.run("apt-get", "update", "-q", "--error-on=any")
            if status == 0:
                return
            errors = out + err
        lines = [line for line in errors.splitlines() if line.startswith(("E:", "W:", "Err:"))]
        raise LabError(f"the suite '{self.suite}' cannot be had from this machine's Debian mirror "
                       f"(a dated snapshot may lack it): {lines[0] if lines else 'apt-get update failed'}")

    def kernel_packages(self, meta):
        """Names of the kernel packages that the meta package depends on."""
        found, queue = [], [meta]
        while queue:
            name = queue.pop(0)
            status, out, _ = self.run("apt-cache", "show", "--no-all-versions", name)
            if status != 0 or not out.strip():
                raise LabError(f"the suite '{self.suite}' has no package '{name}'")
            depends = re.findall(r"^(?:Pre-)?Depends: (.*)$", out, re.MULTILINE)
            for item in re.split(r"\s*[,|]\s*", ", ".join(depends)):
                part = re.sub(r"[\s:(].*", "", item)
                if KERNEL_PART.match(part) and part not in found:
                    found.append(part)
                    queue.append(part)
        if not found:
            raise LabError(f"the package '{meta}' of '{self.suite}' names no kernel")
        return found

    def with_dependencies(self, names):
        """Fetch packages and all that they depend on; the files. Removes what an interrupted fetch left."""
        self.run("apt-get", "clean")
        status, out, err = self.run("apt-get", "install", "-q", "-y", "--download-only",
                                    "--no-install-recommends", *names)
        if status != 0:
            raise LabError(f"the packages {' '.join(names)} of '{self.suite}' cannot be had: "
                           f"{(err or out).strip()[-300:]}")
        return sorted((self.dir / "cache" / "archives").glob("*.deb"))

    def download(self, names, into):
        """Fetch packages, signatures checked by apt, into a directory."""
        status, out, err = self.run("apt-get", "download", "-q", *names, cwd=into)
        if status != 0:
            raise LabError(f"apt-get download of {' '.join(names)} failed: {(err or out).strip()[-300:]}")
        return sorted(Path(into).glob("*.deb"))

    def source_tarball(self, name, into):
        """Fetch a source package's upstream tarball, checked by apt against the signed index, into a directory."""
        status, out, err = self.run("apt-get", "source", "-q", "--download-only", "--tar-only", name, cwd=into)
        found = sorted(Path(into).glob(f"{name}_*.orig.tar.*"))
        if status != 0 or not found:
            raise LabError(f"the source package {name} of '{self.suite}' cannot be had: {(err or out).strip()[-300:]}")
        return found[0]

    def source_package(self, name, into):
        """Fetch a source package, checked by apt against the signed index, into a directory; returns its .dsc."""
        status, out, err = self.run("apt-get", "source", "-q", "--download-only", name, cwd=into)
        found = sorted(Path(into).glob(f"{name}_*.dsc"))
        if status != 0 or not found:
            raise LabError(f"the source package {name} of '{self.suite}' cannot be had: {(err or out).strip()[-300:]}")
        return found[0]
