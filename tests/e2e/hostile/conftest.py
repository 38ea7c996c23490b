"""Hostile tests: generators that want to break the server. A small run is part of `make test`; `make hostile MINUTES=n` runs long.

The small run asks the same each time: its seed is fixed, and so is the number of turns where one client asks. A long run
rolls its seed: NESTOR_HOSTILE_SECONDS is how long each generator runs, NESTOR_HOSTILE_SEED its dice. A test that fails
prints its seed.
"""

import itertools
import os
import random
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "histories"))

LONG = "NESTOR_HOSTILE_SECONDS" in os.environ
SECONDS = float(os.environ.get("NESTOR_HOSTILE_SECONDS", "3"))
SEED = int(os.environ.get("NESTOR_HOSTILE_SEED", random.SystemRandom().randrange(1 << 32) if LONG else 1))


@pytest.fixture
def seconds():
    """How long a generator goes on."""
    return SECONDS


@pytest.fixture
def turns(seconds):
    """Counts the turns of a generator: as many as are given in a small run, and in a long one until its time is over."""

    def count(few):
        end = time.monotonic() + seconds
        return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()) if LONG else range(few)

    return count


@pytest.fixture
def seed():
    print(f"seed {SEED} (NESTOR_HOSTILE_SEED)")
    return SEED


@pytest.fixture
def dice(seed):
    return random.Random(seed)


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(300 + 4 * SECONDS))
