#!/usr/bin/env python3
"""Puts axe-core, the accessibility checker, at the path that is named: `fetch_axe.py PATH`.

It comes from a Python package that brings it along, because that can be had by pip alone; its hash is looked at, and nothing of it is run here.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "axe-playwright-python==0.1.8"
MEMBER = "axe_playwright_python/axe.min.js"
# axe-core 4.12.1.
SHA256 = "84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc"

to = Path(sys.argv[1])
if to.exists() and hashlib.sha256(to.read_bytes()).hexdigest() == SHA256:
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", folder, PACKAGE],
        check=True,
        stdout=sys.stderr,
    )
    (wheel,) = Path(folder).glob("*.whl")
    script = zipfile.ZipFile(wheel).read(MEMBER)
found = hashlib.sha256(script).hexdigest()
if found != SHA256:
    sys.exit(f"{MEMBER} of {PACKAGE} has the SHA-256 {found}, and should have {SHA256}: nothing was written")
# Beside its place first: another story may be at it as well.
beside = to.with_name(f".{to.name}.{os.getpid()}")
beside.write_bytes(script)
beside.replace(to)
