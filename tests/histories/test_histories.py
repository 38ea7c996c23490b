"""A short episode of the checker; `make histories HOURS=2` runs long ones. NESTOR_HISTORIES_SEED repeats one."""

import collections
import os
import random

import pytest
from generate import Generator
from history import FAILED, OK
from run import Episode

SECONDS = float(os.environ.get("NESTOR_HISTORIES_SECONDS", "8"))


@pytest.mark.parametrize("serializable", [False, True])
def test_a_short_history_has_no_anomaly(binary, tmp_path, serializable):
    seed = os.environ.get("NESTOR_HISTORIES_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"\nhistories: seed {seed} (NESTOR_HISTORIES_SEED)")
    episode = Episode(tmp_path, seed, SECONDS, serializable=serializable)
    assert episode.run() == [], f"seed {seed}"
    print(f"  {episode.summary()}")
    # That it could have found something: every kind of operation came to an end, there was contention, there were cuts.
    done = collections.Counter(op[0] for txn in episode.history if txn.outcome == OK for op in txn.ops)
    assert {"append", "list", "write", "value", "add", "members"} <= done.keys()
    assert any(txn.outcome == FAILED for txn in episode.history)
    assert episode.kills and sum(episode.fates.values())


def test_the_same_seed_makes_the_same_transactions():
    def plans(seed, worker):
        generator = Generator(seed, worker)
        return [generator.next() for _ in range(500)]

    assert plans(1, 0) == plans(1, 0)
    assert plans(1, 0) != plans(2, 0)
    assert plans(1, 0) != plans(1, 1)
    kinds = {request[0] for plan in plans(1, 0) for request in plan.requests}
    assert kinds == {
        "append", "list", "write", "value", "add", "members", "move", "tokens", "insert", "find", "transfer", "balances",
    }  # fmt: skip
