# SPDX-License-Identifier: GPL-2.0-or-later
"""axe-core, from npm: a checker of accessibility, as one script. It is kept in the user's cache, and no part of vperf."""
import os
import pathlib
import subprocess
import tarfile
import tempfile

VERSION = "4.14.1"


def source():
    """The script, or None: npm, or its registry, is missing."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "vperf-tests"
    kept = cache / f"axe-core-{VERSION}.min.js"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as work:
            try:
                subprocess.run(["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=work, check=True, capture_output=True, timeout=120)
            except (OSError, subprocess.SubprocessError):
                return None
            with tarfile.open(pathlib.Path(work) / f"axe-core-{VERSION}.tgz") as files:
                script = files.extractfile("package/axe.min.js").read()
        cache.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".new").write_bytes(script)
        kept.with_suffix(".new").rename(kept)
    return kept.read_text(encoding="utf-8")
