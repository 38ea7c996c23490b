import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import harness  # noqa: E402


@pytest.fixture
def binary():
    if not os.path.exists(harness.BIN):
        pytest.fail(f"there is no binary {harness.BIN}: build it or name one in NESTOR_BIN")
    return harness.BIN
