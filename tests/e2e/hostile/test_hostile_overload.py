"""More work than there is machine: short operations go on beside any number of long ones, and many connections are all served.

How fast depends on the build and on what else the machine does. A debug build gets a bound that tells starving from being slow, for
half of the operations: those that starve waited for seconds, one and all. NESTOR_HOSTILE_P99_MS sets one for 99 of 100: `make
hostile` takes a release build and the bound that the server promises.
"""

import os
import selectors
import threading
import time

import bson
from harness import Closed, Raw, eventually, op_msg

P99_MS = os.environ.get("NESTOR_HOSTILE_P99_MS")
SHARE, BOUND_MS = (0.99, float(P99_MS)) if P99_MS else (0.5, 1000)
SCANNERS = 200
CONNECTIONS = 1000
SCAN = {"aggregate": "docs", "pipeline": [{"$match": {"$expr": {"$lt": [{"$add": ["$n", "$m"]}, 0]}}}], "cursor": {}, "$db": "load"}


def fill(server, documents):
    docs = server.client().load.docs
    docs.insert_many([{"_id": i, "n": i, "m": i % 7, "pad": "x" * 100} for i in range(documents)])


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def scan(raws, stop, done):
    """Keeps a scan running on each connection."""
    selector = selectors.DefaultSelector()
    for raw in raws:
        raw.send(op_msg(SCAN))
        selector.register(raw.socket, selectors.EVENT_READ, raw)
    while not stop.is_set():
        for key, _ in selector.select(0.2):
            try:
                reply = key.data.reply()
            except Closed:
                selector.unregister(key.fileobj)
                continue
            done.append(reply["ok"])
            key.data.send(op_msg(SCAN))


def test_points_beside_scans(start, seconds):
    server = start(None, "--quiet")
    fill(server, 20_000)
    point = {"find": "docs", "filter": {"_id": 77}, "$db": "load"}
    with server.raw(60) as reader:
        for _ in range(50):
            reader.command(point)
        raws = [server.raw(60) for _ in range(SCANNERS)]
        stop, done = threading.Event(), []
        thread = threading.Thread(target=scan, args=(raws, stop, done), daemon=True)
        thread.start()
        time.sleep(0.5)
        took = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.monotonic()
            assert reader.command(point)["cursor"]["firstBatch"][0]["n"] == 77
            took.append((time.monotonic() - begun) * 1000)
            time.sleep(0.002)
        stop.set()
        thread.join(60)
        for raw in raws:
            raw.close()
    print(f"beside {SCANNERS} scanning clients ({len(done)} scans done): {len(took)} point reads, p50 {percentile(took, 0.5):.2f} ms, p99 {percentile(took, 0.99):.1f} ms, slowest {max(took):.0f} ms")
    assert percentile(took, SHARE) < BOUND_MS
    assert all(ok == 1 for ok in done)
    status = server.client().admin
    eventually(lambda: len(status.command("currentOp", active=True, ns="load.docs")["inprog"]) == 0, what="an end of the scans without clients")
    assert server.stop() == 0


def test_many_connections(start, dice, seconds):
    """Each of 1,000 connections asks again as soon as it is answered; every one is served, none twice before another once."""
    server = start(None, "--quiet")
    fill(server, 2000)
    server.client().load.docs.create_index("n")
    raws = [Raw(server.address, 60) for _ in range(CONNECTIONS)]
    asked, served, slowest = {}, dict.fromkeys(range(CONNECTIONS), 0), 0.0

    def ask(i):
        n = dice.randrange(2000)
        kind = dice.random()
        command = {"find": "docs", "filter": {"n": n}} if kind < 0.5 else {"update": "docs", "updates": [{"q": {"_id": n}, "u": {"$inc": {"m": 1}}}], "writeConcern": {"w": 1}} if kind < 0.8 else {"insert": "new", "documents": [{"_id": bson.ObjectId(), "n": n}], "writeConcern": {"w": 1}} if kind < 0.95 else {"aggregate": "docs", "pipeline": [{"$group": {"_id": "$m", "n": {"$sum": 1}}}], "cursor": {}}
        asked[i] = time.monotonic()
        raws[i].send(op_msg({**command, "$db": "load"}))

    selector = selectors.DefaultSelector()
    for i, raw in enumerate(raws):
        selector.register(raw.socket, selectors.EVENT_READ, i)
        ask(i)
    end = time.monotonic() + seconds
    while asked:
        ready = selector.select(60)
        assert ready, f"{len(asked)} connections wait for an answer"
        for key, _ in ready:
            reply = raws[key.data].reply()
            assert reply["ok"] == 1 and "writeErrors" not in reply, reply
            served[key.data] += 1
            slowest = max(slowest, time.monotonic() - asked.pop(key.data))
            if time.monotonic() < end:
                ask(key.data)
    for raw in raws:
        raw.close()
    print(f"{CONNECTIONS} connections, {sum(served.values())} operations, {min(served.values())} to {max(served.values())} each, slowest {slowest:.2f} s")
    assert min(served.values()) >= 1
    assert server.stop() == 0
