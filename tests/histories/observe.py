"""From a history to facts: who committed, who wrote what, in which order objects took their values, who saw which version.

What contradicts itself without any order of transactions is found here, too: aborted, intermediate, partial and future reads,
lost and repeated writes, a transaction that does not see its own writes or sees two states.

Unknown outcomes are deduced as Elle does (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
Observations", VLDB 2020): a value that a committed transaction has seen was committed, and with it all of its
transaction.
"""

import collections
import dataclasses

from history import FAILED, OK, UNKNOWN


@dataclasses.dataclass(frozen=True)
class Anomaly:
    """`kind` is Elle's name where there is one; `text` says who saw what."""

    kind: str
    text: str

    def __str__(self):
        return f"{self.kind}: {self.text}"


@dataclasses.dataclass
class Facts:
    # Transactions that committed, acknowledged or deduced.
    committed: list
    # (kind, key, value) -> who wrote it; kind is "list", "register" or "set".
    writers: dict
    # Lists: key -> values in the order of their versions.
    orders: dict
    # Lists: key -> committed transactions with values that they appended and nobody has read.
    unseen: dict
    # Registers: (key, value before) -> committed transactions that wrote next, with what they wrote.
    successors: dict
    # Sets: key -> committed values with those who added them.
    added: dict
    # What each committed transaction saw of others: (txn, kind, key, what), where what is a list's length, a register's
    # value or a set's members.
    reads: list
    anomalies: list


def observe(history):
    anomalies = []
    history = _linked(history, anomalies)
    writers = _writers(history, anomalies)
    views = {txn.id: _View(txn, anomalies) for txn in history}
    committed = _committed(history, writers, views)
    ids = {txn.id for txn in committed}
    for txn in committed:
        _check_reads(txn, views[txn.id], writers, ids, anomalies)
    orders = _orders(committed, views, anomalies)
    successors = _successors(committed)
    added = _added(committed)
    facts = Facts(committed, writers, orders, _unseen(committed, orders), successors, added, [], anomalies)
    _positions(facts, views)
    _lost(facts, views)
    _taken(history, committed, anomalies)
    return facts


KINDS = {
    "append": "list", "list": "list", "write": "register", "blind": "register", "value": "register",
    "add": "set", "members": "set",
}  # fmt: skip


def _kind_of(op):
    return KINDS[op[0]]


def _linked(history, anomalies):
    """The history with writes in the place of blind ones, where somebody saw later what they replaced."""
    links = {}
    for txn in history:
        for op in txn.ops:
            if op[0] == "link" and txn.outcome != FAILED:
                links[op[1], op[2]] = op[3]
    linked = []
    for txn in history:
        ops = []
        for op in txn.ops:
            at = tuple(op[1:3])
            if op[0] == "blind" and at in links:
                op = ["write", *at, links[at]]
            elif op[0] == "write" and links.get(at, op[3]) != op[3]:
                text = f"{txn} replaced {op[3]!r} by {op[2]!r} in {op[1]}, which says {links[at]!r}"
                anomalies.append(Anomaly("incompatible order", text))
            if op[0] != "link":
                ops.append(op)
        linked.append(dataclasses.replace(txn, ops=ops))
    return linked


def _writers(history, anomalies):
    writers = {}
    for txn in history:
        for op in txn.ops:
            if op[0] in ("append", "write", "blind", "add"):
                at = (_kind_of(op), op[1], op[2])
                # A mistake of the clients, not of the server: nothing that follows would mean anything.
                assert at not in writers, f"{at} is written by {writers[at]} and {txn}"
                writers[at] = txn
            if op[0] == "broken" and txn.outcome != FAILED:
                anomalies.append(Anomaly("broken", f"{txn}: {op[1]}"))
    return writers


class _View:
    """What one transaction saw of others, per object, without what it wrote itself."""

    def __init__(self, txn, anomalies):
        # (kind, key) -> list of values, a value, or a set of values.
        self.seen = {}
        self.own = collections.defaultdict(list)
        report = (lambda text: anomalies.append(Anomaly("internal", f"{txn}: {text}"))) if txn.outcome == OK else None
        for op in txn.ops:
            self._step(op, report or (lambda text: None))

    def _step(self, op, report):
        if op[0] in ("taken", "broken", "blind"):
            return
        at = (_kind_of(op), op[1])
        own = self.own[at]
        if op[0] in ("append", "add"):
            own.append(op[2])
        elif op[0] == "write":
            expected = own[-1] if own else self.seen.get(at, op[3])
            if op[3] != expected:
                report(f"{op[1]} was {expected!r} and is {op[3]!r} when {op[2]!r} is written")
            if not own:
                self.seen.setdefault(at, op[3])
            own.append(op[2])
        elif op[0] == "value":
            expected = own[-1] if own else self.seen.get(at, op[2])
            if op[2] != expected:
                report(f"{op[1]} was {expected!r} and reads {op[2]!r}")
            if not own:
                self.seen.setdefault(at, op[2])
        elif op[0] == "list":
            others = list(op[2])
            if own:
                if others[-len(own) :] != own:
                    report(f"appended {own} to {op[1]} and reads {op[2]}")
                others = [v for v in others if v not in own]
            if self.seen.setdefault(at, others) != others:
                report(f"{op[1]} read {self.seen[at]}, later {others}")
        elif op[0] == "members":
            members = set(op[2])
            if len(members) != len(op[2]):
                report(f"{op[1]} has a member twice: {op[2]}")
            if not set(own) <= members:
                report(f"added {own} to {op[1]} and reads {op[2]}")
            others = members - set(own)
            if self.seen.setdefault(at, others) != others:
                report(f"{op[1]} differs between two reads by {sorted(self.seen[at] ^ others)}")

    def values(self):
        """Every single value of others that was seen: (kind, key, value)."""
        for (kind, key), seen in self.seen.items():
            if kind == "register":
                if seen is not None:
                    yield kind, key, seen
            else:
                for value in seen:
                    yield kind, key, value


def _committed(history, writers, views):
    """The acknowledged ones, and those of the others whose writes they saw, and so on."""
    committed = [txn for txn in history if txn.outcome == OK]
    ids = {txn.id for txn in committed}
    for txn in committed:  # grows meanwhile
        for at in views[txn.id].values():
            writer = writers.get(at)
            if writer is not None and writer.outcome == UNKNOWN and writer.id not in ids:
                ids.add(writer.id)
                committed.append(writer)
    return committed


def _check_reads(txn, view, writers, committed, anomalies):
    for kind, key, value in view.values():
        writer = writers.get((kind, key, value))
        if writer is None:
            anomalies.append(Anomaly("garbage", f"{txn} read {value!r} in {key}, which nobody wrote"))
        elif writer.outcome == FAILED:
            anomalies.append(Anomaly("G1a", f"{txn} read {value!r} in {key} of {writer}, which was aborted"))
        elif writer is not txn and txn.outcome == OK and writer.begin > txn.end:
            anomalies.append(Anomaly("future read", f"{txn} read {value!r} in {key}, and {writer} began later"))
    for (kind, key), seen in view.seen.items():
        last = seen if kind == "register" else seen[-1] if kind == "list" and seen else None
        writer = writers.get((kind, key, last))
        if writer is None or writer is txn or writer.id not in committed:
            continue
        written = [op for op in writer.ops if op[0] in ("append", "write", "blind") and (_kind_of(op), op[1]) == (kind, key)]
        at = next(at for at, op in enumerate(written) if op[2] == last)
        # A blind one may not have been.
        later = [op[2] for op in written[at + 1 :] if op[0] != "blind"]
        if later:
            anomalies.append(Anomaly("G1b", f"{txn} read {last!r} in {key}, and {writer} wrote {later[-1]!r} after it"))


def _orders(committed, views, anomalies):
    """The longest list that was read of each key; the others must be its beginnings."""
    orders = {}
    lists = collections.defaultdict(list)
    for txn in committed:
        for op in txn.ops:
            if op[0] == "list":
                lists[op[1]].append((txn, op[2]))
    for key, reads in lists.items():
        longest = max((read for _, read in reads), key=len)
        repeated = sorted(v for v, count in collections.Counter(longest).items() if count > 1)
        if repeated:
            anomalies.append(Anomaly("duplicate", f"{key} has {repeated} more than once: {longest}"))
        for txn, read in reads:
            if longest[: len(read)] != read:
                anomalies.append(Anomaly("incompatible order", f"{txn} read {read} in {key}, others {longest}"))
        orders[key] = list(dict.fromkeys(longest))
    return orders


def _unseen(committed, orders):
    unseen = collections.defaultdict(list)
    seen = {(key, value) for key, order in orders.items() for value in order}
    for txn in committed:
        for op in txn.ops:
            if op[0] == "append" and (op[1], op[2]) not in seen:
                unseen[op[1]].append((txn, op[2]))
    return unseen


def _successors(committed):
    successors = collections.defaultdict(list)
    for txn in committed:
        for op in txn.ops:
            if op[0] == "write":
                successors[op[1], op[3]].append((txn, op[2]))
    return successors


def _added(committed):
    added = collections.defaultdict(dict)
    for txn in committed:
        for op in txn.ops:
            if op[0] == "add":
                added[op[1]][op[2]] = txn
    return added


def _positions(facts, views):
    for txn in facts.committed:
        for (kind, key), seen in views[txn.id].seen.items():
            facts.reads.append((txn, kind, key, len(seen) if kind == "list" else seen))


def _lost(facts, views):
    """Committed writes that somebody who began later must have seen and did not: looked for in the last read of each object.

    Stale reads in general are cycles with the order of time; this names the worst of them, and those of unknown
    transactions of which only a part is there.
    """
    lost, anomalies = collections.defaultdict(list), facts.anomalies
    last = {}
    for txn, kind, key, seen in facts.reads:
        if txn.outcome == OK and ((kind, key) not in last or txn.begin > last[kind, key][0].begin):
            last[kind, key] = (txn, seen)
    passed, torn = _passed(facts, last)
    for txn in facts.committed:
        for op in txn.ops:
            if op[0] not in ("append", "write", "add"):
                continue
            at = (_kind_of(op), op[1])
            if at not in last or last[at][0] is txn:
                continue
            reader, seen = last[at]
            if txn.outcome == OK and txn.end >= reader.begin:
                continue
            if txn.outcome == UNKNOWN and txn.begin >= reader.begin:
                continue
            if at[0] == "list":
                is_there = op[2] in facts.orders.get(op[1], [])[:seen]
            elif at[0] == "set":
                is_there = op[2] in seen
            else:
                is_there = op[1] in torn or (op[1], op[2]) in passed
            if not is_there:
                lost[txn.id, reader.id].append(f"{op[2]!r} in {op[1]}")
    for (txn, reader), what in lost.items():
        known = next(t for t in facts.committed if t.id == txn)
        how = "was acknowledged" if known.outcome == OK else "is there in part"
        anomalies.append(Anomaly("lost", f"T{txn} {how}, and T{reader} does not see {', '.join(what)}"))


def _passed(facts, last):
    """All values that registers had up to the one that was seen last: {(key, value)}, and registers of which nobody knows what an earlier one replaced."""
    before = {(key, value): old for (key, old), new in facts.successors.items() for _, value in new}
    blind = {(op[1], op[2]) for txn in facts.committed for op in txn.ops if op[0] == "blind"}
    passed, torn = set(), set()
    for (kind, key), (_, seen) in last.items():
        while kind == "register" and (key, seen) not in passed:
            passed.add((key, seen))
            if (key, seen) in blind:
                torn.add(key)
            if (key, seen) in before:
                seen = before[key, seen]
    return passed, torn


def _taken(history, committed, anomalies):
    """Whoever was told that a unique key is taken can name one who may have taken it."""
    takers = collections.defaultdict(list)
    ids = {txn.id for txn in committed}
    for txn in history:
        for op in txn.ops:
            if op[0] == "write" and op[3] is None and (txn.id in ids or txn.outcome == UNKNOWN):
                takers[op[1]].append(txn)
    for txn in history:
        own = set()
        for op in txn.ops:
            if op[0] == "write":
                own.add(op[1])
            if op[0] != "taken" or op[1] in own:
                continue
            if not any(t is not txn and t.begin < txn.end for t in takers[op[1]]):
                anomalies.append(Anomaly("taken by nobody", f"{txn} was told that {op[1]} is there, nobody had made it"))
