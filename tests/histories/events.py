"""Whether change streams told every commit, in order, each once.

A stream is the list of events that one follower got, over all its resumes. Of an event only this matters:
`Event(token, time, kind, key, value, txn)`: `kind`, `key` and `value` name a write as histories do, `txn` is what all events of one
transaction have in common (None: a plain statement).
"""

import dataclasses

from history import OK
from observe import Anomaly, observe


@dataclasses.dataclass(frozen=True)
class Event:
    # Resume tokens order as strings.
    token: str
    # The cluster time, as a pair.
    time: tuple
    kind: str
    key: str
    value: object
    txn: object = None


def verify_events(history, stream, name="stream"):
    """The anomalies of one stream that followed everything from before the first transaction until after the last."""
    facts = observe(history)
    anomalies = []

    def report(kind, text):
        anomalies.append(Anomaly(kind, f"{name}: {text}"))

    for before, after in zip(stream, stream[1:]):
        if after.token <= before.token:
            report("event order", f"token of {_write(after)} is not after that of {_write(before)}")
        if after.time < before.time:
            report("event order", f"{_write(after)} at {after.time} follows {_write(before)} at {before.time}")
    at = {}
    for place, event in enumerate(stream):
        if _write(event) in at:
            report("event twice", f"{_write(event)}")
        at.setdefault(_write(event), place)
        if _write(event) not in facts.writers:
            report("event of nothing", f"{_write(event)}, which nobody wrote")
    _each_commit(facts, history, at, report)
    _object_order(facts, at, report)
    _whole_transactions(stream, facts, report)
    _real_time(facts, at, report)
    return anomalies


def _write(event):
    return event.kind, event.key, event.value


def _writes(txn):
    kinds = {"append": "list", "write": "register", "add": "set"}
    return [(kinds[op[0]], op[1], op[2]) for op in txn.ops if op[0] in kinds]


def _each_commit(facts, history, at, report):
    committed = {txn.id for txn in facts.committed}
    for txn in history:
        missing = [write for write in _writes(txn) if write not in at]
        if txn.id in committed and missing:
            report("event missing", f"{txn} committed {missing}")
        elif txn.id not in committed and len(missing) < len(_writes(txn)):
            told = [write for write in _writes(txn) if write in at]
            report("event of nothing", f"{txn} ({txn.outcome}) was not committed, and {told} were told")


def _object_order(facts, at, report):
    for key, order in facts.orders.items():
        places = [at[write] for value in order if (write := ("list", key, value)) in at]
        if places != sorted(places):
            report("event order", f"{key} became {order}, and the events are in another order")
    for (key, before), following in facts.successors.items():
        for txn, value in following:
            one, two = ("register", key, before), ("register", key, value)
            if one in at and two in at and at[one] > at[two]:
                report("event order", f"{txn} replaced {before!r} by {value!r} in {key}, and was told first")


def _whole_transactions(stream, facts, report):
    """The events of a transaction come together, with one time."""
    ended, last = set(), None
    times = {}
    for event in stream:
        writer = facts.writers.get(_write(event))
        if writer is None:
            continue
        if writer.id != last:
            if last is not None:
                ended.add(last)
            if writer.id in ended:
                report("event order", f"the events of {writer} do not come together")
            last = writer.id
        if event.txn is not None and times.setdefault(writer.id, event.time) != event.time:
            report("event order", f"the events of {writer} have the times {times[writer.id]} and {event.time}")


def _real_time(facts, at, report):
    """What was acknowledged before another began is told before it."""
    ends, starts = [], []
    for txn in facts.committed:
        places = [at[write] for write in _writes(txn) if write in at]
        if places:
            starts.append((txn.begin, min(places), txn))
            if txn.outcome == OK:
                ends.append((txn.end, max(places), txn))
    ends.sort(key=lambda entry: entry[0])
    newest, latest = 0, None
    for begin, first, txn in sorted(starts, key=lambda entry: entry[0]):
        while newest < len(ends) and ends[newest][0] < begin:
            if latest is None or ends[newest][1] > latest[1]:
                latest = ends[newest]
            newest += 1
        if latest is not None and latest[1] > first:
            report("event order", f"{latest[2]} was acknowledged before {txn} began, and is told after it")
