"""Moves the clock of single processes (clock.c)."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "clock.c"


@functools.cache
def library():
    """What a process loads whose clock is to be moved; None without a C compiler."""
    path = Path(tempfile.mkdtemp(prefix="nestor-clock-")) / "clock.so"
    compiler = os.environ.get("CC", "cc")
    try:
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(path), str(SOURCE), "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


def environment(path):
    """The environment of a process whose clock is as many seconds off as the file `path` says."""
    return {"LD_PRELOAD": str(library()), "NESTOR_TEST_CLOCK": str(path)} if library() else {}
