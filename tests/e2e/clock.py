"""Moves the clock of single processes (clock.c), and slows their disk down (disk.c)."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path


@functools.cache
def library(name="clock"):
    """What a process loads whose clock is to be moved, or whose disk is to be slow; None without a C compiler."""
    source = Path(__file__).parent / f"{name}.c"
    path = Path(tempfile.mkdtemp(prefix=f"nestor-{name}-")) / f"{name}.so"
    compiler = os.environ.get("CC", "cc")
    try:
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(path), str(source), "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


def environment(path, disk=None):
    """The environment of a process whose clock is as many seconds off as the file `path` says, and each sync of whose disk takes as many
    milliseconds longer as the file `disk` says, if it is named."""
    if not library():
        return {}
    found = {"LD_PRELOAD": str(library()), "NESTOR_TEST_CLOCK": str(path)}
    if disk is not None and library("disk"):
        found["LD_PRELOAD"] += f":{library('disk')}"
        found["NESTOR_TEST_DISK"] = str(disk)
    return found
