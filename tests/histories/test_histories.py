"""A short episode of the checker, of the same transactions each time; `make histories HOURS=2` rolls its dice."""

import os

import cluster
import pytest
from generate import Generator
from history import FAILED, OK
from run import Episode
from several import Several

SECONDS = float(os.environ.get("NESTOR_HISTORIES_SECONDS", "8"))


@pytest.mark.parametrize("serializable", [False, True])
def test_a_short_history_has_no_anomaly(binary, tmp_path, serializable):
    seed = os.environ.get("NESTOR_HISTORIES_SEED", "1")
    print(f"\nhistories: seed {seed} (NESTOR_HISTORIES_SEED)")
    # A busy machine does little in an episode: it is followed by longer ones.
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        episode = Episode(folder, seed, SECONDS * (attempt + 1), serializable=serializable)
        assert episode.run() == [], f"seed {seed}"
        print(f"  {episode.summary()}")
        missing = what_it_could_not_find(episode)
        if not missing:
            break
    assert not missing


def test_a_short_history_of_a_set_has_no_anomaly(tmp_path):
    """Three members and a double of an object store, both of which have bad days (`make histories-set` for longer)."""
    cluster.needs_cluster(tmp_path)
    seed = os.environ.get("NESTOR_HISTORIES_SEED", "1")
    print(f"\nhistories: seed {seed} (NESTOR_HISTORIES_SEED)")
    episode = Episode(tmp_path, seed, SECONDS * 5, system=Several)
    assert episode.run() == [], f"seed {seed}"
    print(f"  {episode.summary()}")
    assert any(txn.outcome == OK for txn in episode.history)
    assert episode.system.happened and sum(watcher.reads for watcher in episode.system.watching)


def what_it_could_not_find(episode):
    """Every kind of operation is to come to an end, there is to be contention, there are to be cuts and kills."""
    done = {op[0] for txn in episode.history if txn.outcome == OK for op in txn.ops}
    missing = {"append", "list", "write", "value", "add", "members"} - done
    if not any(txn.outcome == FAILED for txn in episode.history):
        missing.add("contention")
    if not episode.system.kills:
        missing.add("a kill")
    if not episode.system.cuts:
        missing.add("a cut")
    return missing


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
