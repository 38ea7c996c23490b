"""Hand-written streams, each with one fault or without."""

import pytest
from events import Event, verify_events
from history import FAILED, OK, UNKNOWN, Txn

HISTORY = [
    Txn(1, "p", 0, 1, OK, [["append", "x", 1], ["write", "r", "a", None]]),
    Txn(2, "p", 2, 3, OK, [["append", "x", 2], ["list", "x", [1, 2]]]),
    Txn(3, "p", 2, 9, FAILED, [["append", "x", 3]]),
    Txn(4, "p", 2, 9, UNKNOWN, [["add", "s", 4]]),
    Txn(5, "p", 4, 5, OK, [["write", "r", "b", "a"], ["add", "s", 5]]),
    Txn(6, "p", 10, 11, OK, [["list", "x", [1, 2]], ["value", "r", "b"], ["members", "s", [5]]]),
]


def event(number, kind, key, value, txn=None, time=None):
    return Event(f"{number:04}", (time or number, 1), kind, key, value, txn)


def stream():
    return [
        event(1, "list", "x", 1, "t1", time=1),
        event(2, "register", "r", "a", "t1", time=1),
        event(3, "list", "x", 2),
        event(4, "register", "r", "b", "t5", time=4),
        event(5, "set", "s", 5, "t5", time=4),
    ]


def kinds(events, history=HISTORY):
    return {anomaly.kind for anomaly in verify_events(history, events)}


def renumbered(events):
    return [Event(f"{n:04}", (n, 1), *(e.kind, e.key, e.value)) for n, e in enumerate(events)]


def test_every_commit_is_told_once_and_in_order():
    assert kinds(stream()) == set()


@pytest.mark.parametrize("lost", range(5))
def test_an_event_is_missing(lost):
    events = stream()
    del events[lost]
    assert kinds(events) == {"event missing"}


def test_an_event_comes_twice():
    events = stream()
    assert "event twice" in kinds(renumbered(events[:3] + events[2:]))


def test_tokens_and_times_ascend():
    events = stream()
    events[2] = Event("0000", (3, 1), "list", "x", 2)
    assert kinds(events) == {"event order"}
    events[2] = Event("0003", (0, 9), "list", "x", 2)
    assert kinds(events) == {"event order"}


def test_what_was_aborted_is_told():
    assert kinds([*stream(), event(6, "list", "x", 3)]) == {"event of nothing"}


def test_what_nobody_wrote_is_told():
    assert kinds([*stream(), event(6, "list", "x", 99)]) == {"event of nothing"}


def test_what_left_nothing_is_told():
    """It was not seen by one that began after it ended."""
    assert kinds([*stream(), event(6, "set", "s", 4)]) == {"event of nothing"}


def test_the_order_of_versions():
    events = stream()
    assert kinds(renumbered([events[2], events[0], events[1], *events[3:]])) == {"event order"}
    assert kinds(renumbered([events[0], events[3], events[4], events[1], events[2]])) == {"event order"}


def test_a_transaction_in_two_parts():
    history = [
        Txn(1, "p", 0, 9, OK, [["append", "x", 1], ["append", "y", 1]]),
        Txn(2, "p", 0, 9, OK, [["append", "z", 1]]),
    ]
    together = [event(1, "list", "x", 1), event(2, "list", "y", 1), event(3, "list", "z", 1)]
    assert kinds(together, history) == set()
    assert kinds(renumbered([together[0], together[2], together[1]]), history) == {"event order"}


def test_a_transaction_with_two_times():
    events = stream()
    events[1] = event(2, "register", "r", "a", "t1", time=2)
    assert kinds(events) == {"event order"}


def test_real_time():
    history = [Txn(1, "p", 0, 1, OK, [["append", "x", 1]]), Txn(2, "p", 2, 3, OK, [["append", "y", 1]])]
    assert kinds([event(1, "list", "x", 1), event(2, "list", "y", 1)], history) == set()
    assert kinds([event(1, "list", "y", 1), event(2, "list", "x", 1)], history) == {"event order"}
