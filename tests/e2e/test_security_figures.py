"""The figures of what logging in, rights and TLS cost can be measured: the script runs, with so few operations that they mean nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import harness
import pytest

SCRIPT = Path(__file__).parents[2] / "benches" / "security" / "figures.py"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here to make a certificate")
def test_the_script_runs():
    done = subprocess.run(
        [sys.executable, SCRIPT, harness.BIN, "--quick"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5 and all("µs" in line for line in lines), done.stdout
