"""No command keeps other connections waiting, however expensive it is and whether or not it looks at its interrupt."""

import contextlib
import random
import threading
import time

import pymongo
import pytest

# Generous: what is checked is that others get their turn at all, not how fast the machine is.
PING_MAX_S = 3
NEW_MAX_S = 30
HOGS = 6


def nine_in_ten(took):
    """What at most one in ten of them exceeds: something else on the machine may hold up a few."""
    return sorted(took)[len(took) * 9 // 10]


def expression(rng, depth):
    """An expression that takes far longer than its maxTimeMS."""
    numbers = {"$range": [0, rng.choice([3000, 20000, 100000])]}
    if depth == 0:
        return {"$size": {"$filter": {"input": numbers, "cond": {"$gt": ["$$this", rng.randrange(1000)]}}}}
    inner = expression(rng, depth - 1)
    return rng.choice(
        [
            {"$reduce": {"input": numbers, "initialValue": 0, "in": {"$add": ["$$value", inner]}}},
            {"$sum": {"$map": {"input": numbers, "in": inner}}},
            {"$size": {"$filter": {"input": numbers, "cond": {"$in": [inner, numbers]}}}},
            {"$size": {"$setUnion": [{"$map": {"input": numbers, "in": {"$mod": [inner, 7]}}}, numbers]}},
        ]
    )


def nested_lookup(depth):
    """Sub-pipelines in sub-pipelines: 20 documents to the power of the depth."""
    pipeline = [{"$match": {"$expr": {"$gte": ["$n", 0]}}}]
    for _ in range(depth):
        pipeline = [{"$lookup": {"from": "twenty", "pipeline": pipeline, "as": "all"}}, {"$project": {"n": 1}}]
    return pipeline


def hogs(seed):
    rng = random.Random(seed)
    pipelines = [[{"$project": {"x": expression(rng, 2)}}] for _ in range(HOGS - 2)]
    pipelines.append(nested_lookup(6))
    pipelines.append([{"$match": {"text": {"$regex": "^(a+)+$"}}}])
    return pipelines


@pytest.mark.parametrize("seed", [1, 2])
def test_pings_are_answered_beside_expensive_pipelines(start, seed):
    server = start()
    one = {"maxPoolSize": 1, "heartbeatFrequencyMS": 600_000, "directConnection": True}
    others = [server.client(**one) for _ in range(12)]
    for other in others:
        other.admin.command("ping")
    db = others[0].fair
    db.one.insert_one({"text": "a" * 200 + "b"})
    db.twenty.insert_many([{"n": n} for n in range(20)])
    over = threading.Event()

    def hog(pipeline):
        coll = "twenty" if "$lookup" in pipeline[0] else "one"
        client = server.client(**one)
        while not over.is_set():
            with contextlib.suppress(pymongo.errors.PyMongoError):
                list(client.fair[coll].aggregate(pipeline, maxTimeMS=100))

    threads = [threading.Thread(target=hog, args=(pipeline,), daemon=True) for pipeline in hogs(seed)]
    for thread in threads:
        thread.start()
    took = []
    end = time.monotonic() + 4
    while time.monotonic() < end:
        for other in others:
            begun = time.monotonic()
            other.admin.command("ping")
            took.append(time.monotonic() - begun)
    begun = time.monotonic()
    server.client(**one).admin.command("ping")
    assert time.monotonic() - begun < NEW_MAX_S
    over.set()
    assert nine_in_ten(took) < PING_MAX_S
    assert server.is_running


def test_point_reads_are_answered_beside_many_scans(start):
    server = start()
    one = {"maxPoolSize": 1, "heartbeatFrequencyMS": 600_000, "directConnection": True}
    reader = server.client(**one).fair.docs
    reader.insert_many([{"_id": n, "text": "x" * 50} for n in range(5_000)])
    over = threading.Event()

    def scan():
        docs = server.client(**one).fair.docs
        # The server is gone before the last of them ends.
        with contextlib.suppress(pymongo.errors.PyMongoError):
            while not over.is_set():
                docs.count_documents({"text": {"$regex": "nowhere"}})

    threads = [threading.Thread(target=scan, daemon=True) for _ in range(60)]
    for thread in threads:
        thread.start()
    took = []
    end = time.monotonic() + 4
    while time.monotonic() < end:
        begun = time.monotonic()
        assert reader.find_one({"_id": 77})["_id"] == 77
        took.append(time.monotonic() - begun)
    # New connections are served too.
    assert server.client(**one).fair.docs.find_one({"_id": 78})
    over.set()
    assert nine_in_ten(took) < PING_MAX_S
