"""What is run in place of these tests must not pass for them: nothing that was asked for is left out silently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

HERE = Path(__file__).parent


def run(*command, without=(), **env):
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        list(map(str, command)), cwd=ROOT, env={**inherited, **env},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )


@pytest.mark.parametrize("ci", [False, True])
def test_without_node_ci_fails(ci):
    env = {"NESTOR_CI": "1"} if ci else {}
    test = HERE / "test_clients.py"
    done = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{test}::test_node_driver",
        without=["NESTOR_CI", "NESTOR_NODE_MODULES"], **env,
    )
    assert done.returncode == (1 if ci else 0), done.stdout
    assert ("1 error" if ci else "1 skipped") in done.stdout


def test_specifications_that_are_named_have_to_be_there(tmp_path):
    done = run("scripts/spec", SPECS=str(tmp_path))
    assert done.returncode != 0 and str(tmp_path) in done.stdout, done.stdout
