"""Hand-written histories, each with one anomaly or just without."""

import itertools

import pytest
from history import FAILED, OK, UNKNOWN, Txn, load, save
from verify import verify


class History(list):
    """`h(ops, begin, end)` adds a transaction; without times, all of them are concurrent."""

    def __init__(self):
        super().__init__()
        self.numbers = itertools.count(1)

    def __call__(self, *ops, at=(0, 100), outcome=OK):
        self.append(Txn(next(self.numbers), "p", *at, outcome, [list(op) for op in ops]))


def kinds(history, **options):
    return [anomaly.kind for anomaly in verify(history, **options)]


@pytest.fixture
def h():
    return History()


# -- clean ones ----------------------------------------------------------------------------------


def test_nothing_is_wrong_with_one_after_the_other(h):
    h(("append", "x", 1), at=(0, 1))
    h(("list", "x", [1]), ("append", "x", 2), ("list", "x", [1, 2]), at=(2, 3))
    h(("write", "r", "a", None), at=(2, 3))
    h(("value", "r", "a"), ("write", "r", "b", "a"), ("value", "r", "b"), ("add", "s", 7), at=(4, 5))
    h(("list", "x", [1, 2]), ("value", "r", "b"), ("members", "s", [7]), at=(6, 7))
    assert kinds(h) == kinds(h, serializable=True) == []


def test_a_snapshot_may_be_old_while_transactions_are_concurrent(h):
    h(("append", "x", 1), ("append", "y", 1))
    h(("list", "x", []), ("list", "y", []))
    h(("list", "x", [1]), ("list", "y", [1]))
    assert kinds(h) == []


def test_write_skew_is_possible_under_snapshot_isolation_and_not_serializable(h):
    h(("list", "x", []), ("append", "y", 1))
    h(("list", "y", []), ("append", "x", 1))
    h(("list", "x", [1]), ("list", "y", [1]), at=(101, 102))
    assert kinds(h) == []
    assert kinds(h, serializable=True) == ["G2"]


def test_phantoms_are_write_skew(h):
    h(("members", "on call", []), ("add", "on call", "alice"))
    h(("members", "on call", []), ("add", "on call", "bob"))
    assert kinds(h) == []
    assert kinds(h, serializable=True) == ["G2"]


def test_a_read_only_transaction_can_make_it_unserializable(h):
    """Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", 2004."""
    h(("list", "x", []), ("list", "y", []), ("append", "x", 1), at=(0, 9))
    h(("list", "y", []), ("append", "y", 1), at=(1, 2))
    h(("list", "x", []), ("list", "y", [1]), at=(3, 4))
    assert kinds(h) == []
    assert kinds(h, serializable=True) == ["G2"]


def test_a_stale_read_is_not_serializable_in_real_time(h):
    h(("append", "x", 1), at=(0, 1))
    h(("list", "x", []), at=(2, 3))
    h(("list", "x", [1]), at=(4, 5))
    assert kinds(h) == ["G-single-realtime"]


# -- what one read shows -------------------------------------------------------------------------


def test_g1a_aborted_read(h):
    h(("append", "x", 1), outcome=FAILED)
    h(("list", "x", [1]))
    assert kinds(h) == ["G1a"]


def test_g1b_intermediate_read(h):
    h(("append", "x", 1), ("append", "x", 2))
    h(("list", "x", [1]))
    h(("list", "x", [1, 2]))
    assert "G1b" in kinds(h)


def test_g1b_of_a_register(h):
    h(("write", "r", "a", None), ("write", "r", "b", "a"))
    h(("value", "r", "a"))
    assert "G1b" in kinds(h)


def test_a_value_that_nobody_wrote(h):
    h(("value", "r", "z"))
    assert kinds(h) == ["garbage"]


def test_a_future_read(h):
    h(("list", "x", [1]), at=(0, 1))
    h(("append", "x", 1), at=(2, 3))
    assert kinds(h)[0] == "future read"


def test_what_a_client_found_itself_counts_unless_it_was_aborted(h):
    h(("broken", "the sum is 99"))
    h(("broken", "the sum is 98"), outcome=FAILED)
    assert kinds(h) == ["broken"]


@pytest.mark.parametrize(
    "ops",
    [
        [("append", "x", 1), ("list", "x", [])],
        [("list", "x", []), ("list", "x", [9])],
        [("write", "r", "a", None), ("value", "r", None)],
        [("value", "r", None), ("value", "r", "z")],
        [("value", "r", None), ("write", "r", "a", "z")],
        [("add", "s", 1), ("members", "s", [])],
        [("members", "s", []), ("members", "s", [8])],
        [("members", "s", [8, 8])],
    ],
)
def test_a_transaction_disagrees_with_itself(h, ops):
    h(("append", "x", 9), ("write", "r", "z", None), ("add", "s", 8))
    h(*ops)
    assert "internal" in kinds(h)


def test_lists_in_two_orders(h):
    h(("append", "x", 1))
    h(("append", "x", 2))
    h(("list", "x", [1, 2]))
    h(("list", "x", [2, 1]))
    assert "incompatible order" in kinds(h)


def test_a_retried_write_is_there_twice(h):
    h(("append", "x", 1))
    h(("list", "x", [1, 1]))
    assert kinds(h) == ["duplicate"]


# -- lost and unknown ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write, read",
    [
        (("append", "x", 1), ("list", "x", [])),
        (("write", "x", 1, None), ("value", "x", None)),
        (("add", "x", 1), ("members", "x", [])),
    ],
)
def test_an_acknowledged_write_is_lost(h, write, read):
    h(write, at=(0, 1))
    h(read, at=(2, 3))
    assert "lost" in kinds(h)


def test_a_register_that_went_on_has_lost_nothing(h):
    h(("write", "x", 1, None), at=(0, 1))
    h(("write", "x", 2, 1), at=(2, 3))
    h(("value", "x", 2), at=(4, 5))
    assert kinds(h) == []


def test_an_unknown_transaction_may_have_left_nothing_or_all(h):
    h(("append", "x", 1), ("append", "y", 1), at=(0, 1), outcome=UNKNOWN)
    h(("list", "x", []), ("list", "y", []), at=(2, 3))
    assert kinds(h) == []
    h(("list", "x", [1]), ("list", "y", [1]), at=(4, 5))
    assert kinds(h) == []


def test_what_an_unknown_transaction_may_have_written_can_be_read(h):
    h(("write", "r", "a", None), at=(0, 1))
    h(("blind", "r", "b"), ("blind", "r", "b-"), at=(2, 3), outcome=UNKNOWN)
    h(("value", "r", "b"), at=(4, 5))
    assert kinds(h) == []
    h(("blind", "s", "x"), ("blind", "s", "x-"), at=(6, 7), outcome=UNKNOWN)
    h(("write", "s", "y", "x-"), ("link", "s", "x-", "x"), at=(8, 9))
    h(("value", "s", "x"), at=(8, 9))
    assert "G1b" in kinds(h)


def test_an_unknown_transaction_of_which_half_is_there(h):
    h(("append", "x", 1), ("append", "y", 1), at=(0, 1), outcome=UNKNOWN)
    h(("list", "x", [1]), ("list", "y", []), at=(2, 3))
    assert "lost" in kinds(h) and "G-single" in kinds(h)


def test_an_unknown_transaction_that_was_seen_counts_as_a_reader(h):
    h(("list", "y", [1]), ("append", "x", 1), at=(0, 1), outcome=UNKNOWN)
    h(("append", "y", 1), outcome=FAILED)
    assert kinds(h) == []
    h(("list", "x", [1]), at=(2, 3))
    assert kinds(h) == ["G1a"]


def test_a_unique_key_is_taken_by_somebody(h):
    h(("write", "k", "a", None), at=(0, 5))
    h(("taken", "k"), at=(1, 2), outcome=FAILED)
    h(("write", "o", "b", None), ("taken", "o"), ("write", "o", "c", None), outcome=FAILED)
    assert kinds(h) == []
    h(("taken", "other"), ("write", "other", "d", None), at=(1, 2), outcome=FAILED)
    assert kinds(h) == ["taken by nobody"]


def test_a_unique_key_is_made_twice(h):
    h(("write", "k", "a", None))
    h(("write", "k", "b", None))
    assert kinds(h) == ["made twice"]


# -- cycles --------------------------------------------------------------------------------------


def test_g0_write_cycle(h):
    h(("append", "x", 1), ("append", "y", 1))
    h(("append", "x", 2), ("append", "y", 2))
    h(("list", "x", [1, 2]), ("list", "y", [2, 1]))
    assert kinds(h) == ["G0"]


def test_g1c_circular_information_flow(h):
    h(("append", "x", 1), ("list", "y", [1]))
    h(("append", "y", 1), ("list", "x", [1]))
    assert kinds(h) == ["G1c"]


def test_a_partial_read(h):
    """Both or neither must be seen."""
    h(("append", "x", 1), ("add", "s", 1))
    h(("list", "x", [1]), ("members", "s", []))
    assert kinds(h) == ["G-single"]


def test_g_single_read_skew(h):
    h(("write", "a", "a1", None), ("write", "b", "b1", None), at=(0, 1))
    h(("write", "a", "a2", "a1"), ("write", "b", "b2", "b1"), at=(2, 9))
    h(("value", "a", "a1"), ("value", "b", "b2"), at=(3, 8))
    assert kinds(h) == ["G-single"]


def test_lost_update(h):
    h(("write", "r", "a", None), at=(0, 1))
    h(("write", "r", "b", "a"), at=(2, 9))
    h(("write", "r", "c", "a"), at=(3, 8))
    assert kinds(h)[0] == "lost update"


def test_lost_update_of_a_list_is_g_single(h):
    h(("list", "x", []), ("append", "x", 1))
    h(("list", "x", []), ("append", "x", 2))
    h(("list", "x", [1, 2]))
    assert kinds(h) == ["G-single"]


def test_g_nonadjacent_the_long_fork(h):
    """Two readers see two independent writers in different orders."""
    h(("append", "x", 1))
    h(("append", "y", 1))
    h(("list", "x", [1]), ("list", "y", []))
    h(("list", "x", []), ("list", "y", [1]))
    assert kinds(h) == ["G-nonadjacent"]


def test_a_cycle_with_two_adjacent_anti_dependencies_is_no_anomaly_of_snapshot_isolation(h):
    h(("list", "x", [1]), ("list", "y", []))
    h(("list", "z", []), ("append", "y", 1))
    h(("append", "z", 1), ("append", "x", 1))
    assert kinds(h) == []
    assert kinds(h, serializable=True) == ["G2"]


def test_the_text_says_who_saw_what(h):
    h(("append", "x", 1), ("add", "s", 1))
    h(("list", "x", [1]), ("members", "s", []))
    (anomaly,) = verify(h)
    assert sorted(anomaly.text.split("; ")) == ["T1 -wr-> T2 (x: read 1)", "T2 -rw-> T1 (s: did not see 1)"]


def test_histories_can_be_kept(h, tmp_path):
    h(("append", "x", 1), ("list", "x", [1]))
    h(("write", "r", "a", None), outcome=UNKNOWN)
    save(h, tmp_path / "history.jsonl")
    assert load(tmp_path / "history.jsonl") == list(h)
