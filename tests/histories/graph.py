"""Cycles of dependencies, the way Adya defines isolation and Elle looks for it.

Transactions depend on each other (T1 before T2):

- ww: T2 wrote the version that follows T1's.
- wr: T2 read what T1 wrote.
- rw: T1 read a version and T2 wrote the one that follows (the anti-dependency).
- rt: T1 was acknowledged before T2 began.

For snapshot isolation each transaction is two events, its start and its commit. ww, wr and rt lead from T1's commit to
T2's start, because T2's snapshot has to show T1; rw leads from T1's start to T2's commit, because T1's
snapshot must not show T2. A history is possible under snapshot isolation exactly if these events have no cycle: it is the
theorem that every cycle must have two rw next to each other (Cerone and Gotsman, "Analysing Snapshot Isolation", 2018).
Serializable is stricter: no cycle among the transactions at all.
"""

import collections

from observe import Anomaly

START, COMMIT = 0, 1
CYCLES_MAX = 5


class Edges:
    """Dependencies between transactions, each with the sentence that explains it."""

    def __init__(self):
        # (from id, to id) -> {kind: sentence}
        self.of = collections.defaultdict(dict)

    def add(self, kind, before, after, why):
        if before.id != after.id:
            self.of[before.id, after.id].setdefault(kind, why)


def dependencies(facts):
    edges = Edges()
    writers = facts.writers
    known = {txn.id for txn in facts.committed}
    for key, order in facts.orders.items():
        for value, following in zip(order, order[1:]):
            before, after = writers.get(("list", key, value)), writers.get(("list", key, following))
            if before and after and before.id in known and after.id in known:
                edges.add("ww", before, after, f"{key}: {value!r}, then {following!r}")
        # What nobody read yet comes after all that was read.
        last = writers.get(("list", key, order[-1])) if order else None
        for after, following in facts.unseen.get(key, ()):
            if last and last.id in known:
                edges.add("ww", last, after, f"{key}: {order[-1]!r}, later {following!r}")
    for (key, value), following in facts.successors.items():
        before = writers.get(("register", key, value))
        for after, written in following:
            if before and before.id in known:
                edges.add("ww", before, after, f"{key}: {value!r}, then {written!r}")
    for txn, kind, key, seen in facts.reads:
        _read_edges(facts, edges, known, txn, kind, key, seen)
    return edges


def _read_edges(facts, edges, known, txn, kind, key, seen):
    def saw(value):
        writer = facts.writers.get((kind, key, value))
        if writer and writer.id in known:
            edges.add("wr", writer, txn, f"{key}: read {value!r}")

    if kind == "list":
        order = facts.orders.get(key, [])
        if 0 < seen <= len(order):
            saw(order[seen - 1])
        if seen < len(order):
            after = facts.writers.get((kind, key, order[seen]))
            if after and after.id in known:
                edges.add("rw", txn, after, f"{key}: did not see {order[seen]!r}")
        else:
            for after, following in facts.unseen.get(key, ()):
                edges.add("rw", txn, after, f"{key}: did not see {following!r}")
    elif kind == "register":
        if seen is not None:
            saw(seen)
        for after, written in facts.successors.get((key, seen), ()):
            edges.add("rw", txn, after, f"{key}: saw {seen!r}, not {written!r}")
    else:
        for value, adder in facts.added.get(key, {}).items():
            if value in seen:
                edges.add("wr", adder, txn, f"{key}: saw {value!r}")
            else:
                edges.add("rw", txn, adder, f"{key}: did not see {value!r}")


def find_cycles(facts, serializable=False):
    """One anomaly for each knot of transactions that depend on each other in a circle."""
    edges = dependencies(facts)
    found = list(_lost_updates(facts))
    named = {frozenset((a, b)) for a, b, _ in found}
    anomalies = [anomaly for _, _, anomaly in found]
    # The worst first; a later search only tells what an earlier one has not.
    searches = [
        ("G0", lambda: _plain(edges, ("ww",))),
        ("G1c", lambda: _plain(edges, ("ww", "wr"))),
        (None, lambda: _events(edges, facts.committed, real_time=False)),
        (None, lambda: _events(edges, facts.committed, real_time=True)),
    ]
    if serializable:
        searches.append(("G2", lambda: _plain(edges, ("ww", "wr", "rw"))))
        searches.append(("G2-realtime", lambda: _plain(edges, ("ww", "wr", "rw"), facts.committed)))
    for name, graph in searches:
        for cycle in _cycles(graph()):
            members = frozenset(_transactions(cycle))
            if any(members <= other or other <= members for other in named):
                continue
            named.add(members)
            anomalies.append(_describe(name, cycle, edges))
    return anomalies


def _lost_updates(facts):
    for (key, value), following in facts.successors.items():
        # Two transactions, each of which replaced the same version.
        distinct = {txn.id: (txn, written) for txn, written in following}
        if len(distinct) > 1:
            (a, first), (b, second) = sorted(distinct.values(), key=lambda pair: pair[0].begin)[:2]
            text = f"{a} and {b} both replaced {value!r} in {key}, by {first!r} and {second!r}"
            kind = "lost update" if value is not None else "made twice"
            yield a.id, b.id, Anomaly(kind, text)


# -- graphs: node -> {node: label}. A node is (id, event); labels are kinds of edges, or None within a transaction --


def _plain(edges, kinds, timed=None):
    graph = collections.defaultdict(dict)
    for (before, after), labels in edges.of.items():
        kind = next((kind for kind in kinds if kind in labels), None)
        if kind:
            graph[before, COMMIT][after, COMMIT] = kind
    if timed is not None:
        _add_time(graph, timed, COMMIT)
    return graph


def _events(edges, committed, real_time):
    graph = collections.defaultdict(dict)
    for txn in committed:
        graph[txn.id, START][txn.id, COMMIT] = None
    for (before, after), labels in edges.of.items():
        for kind in "ww", "wr":
            if kind in labels:
                graph[before, COMMIT].setdefault((after, START), kind)
        if "rw" in labels:
            graph[before, START].setdefault((after, COMMIT), "rw")
    if real_time:
        _add_time(graph, committed, START)
    return graph


def _add_time(graph, committed, start):
    """rt edges, by way of one node for each acknowledgement: commit -> moment -> next moment, moment -> later starts."""
    ends = sorted({txn.end for txn in committed if txn.outcome == "ok"})
    moments = {end: ("moment", n) for n, end in enumerate(ends)}
    for earlier, later in zip(ends, ends[1:]):
        graph[moments[earlier]][moments[later]] = "rt"
    at = 0
    for txn in sorted(committed, key=lambda txn: txn.begin):
        while at < len(ends) and ends[at] < txn.begin:
            at += 1
        if at:
            graph[moments[ends[at - 1]]].setdefault((txn.id, start), "rt")
        if txn.outcome == "ok":
            graph[txn.id, COMMIT].setdefault(moments[txn.end], "rt")


def _transactions(cycle):
    return {node[0] for node, _ in cycle if node[0] != "moment"}


def _cycles(graph):
    """A short cycle in each strongly connected component, as [(node, label of the edge to the next), ...]."""
    found = 0
    for component in _components(graph):
        cycle = _short_cycle(graph, component)
        if cycle:
            yield cycle
            found += 1
            if found == CYCLES_MAX:
                return


def _components(graph):
    """Strongly connected components of more than one node: Tarjan's algorithm without recursion."""
    index, low, on_stack, stack = {}, {}, set(), []
    for root in list(graph):
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while node not in component:
                        other = stack.pop()
                        on_stack.discard(other)
                        component.add(other)
                    if len(component) > 1:
                        yield component


TRIES_PER_COMPONENT = 200


def _short_cycle(graph, component):
    """The shortest cycle through any of the first nodes of a component, counted in transactions."""
    best = None
    for start in sorted(component, key=str)[:TRIES_PER_COMPONENT]:
        came_from, todo = {start: None}, collections.deque([start])
        while todo:
            node = todo.popleft()
            if start in graph.get(node, ()):
                path = [node]
                while came_from[path[-1]] is not None:
                    path.append(came_from[path[-1]])
                path.reverse()
                if best is None or len(path) < len(best):
                    best = path
                break
            for other in graph.get(node, ()):
                if other in component and other not in came_from:
                    came_from[other] = node
                    todo.append(other)
        if best is not None and len(best) <= 2:
            break
    return best and [(node, graph[node][best[(n + 1) % len(best)]]) for n, node in enumerate(best)]


def _describe(name, cycle, edges):
    # The edges that leave transactions: not those within one, from start to commit, and not those from moment to moment.
    hops = [(node[0], kind) for node, kind in cycle if node[0] != "moment" and kind is not None]
    steps = []
    for n, (txn, kind) in enumerate(hops):
        following = hops[(n + 1) % len(hops)][0]
        why = edges.of.get((txn, following), {}).get(kind, "acknowledged before it began")
        steps.append(f"T{txn} -{kind}-> T{following} ({why})")
    return Anomaly(name or _name([kind for _, kind in hops]), "; ".join(steps))


def _name(kinds):
    name = "G-single" if kinds.count("rw") == 1 else "G-nonadjacent" if "rw" in kinds else "G1c"
    return name + "-realtime" if "rt" in kinds else name
