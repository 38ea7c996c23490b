"""What clients leave in the server's memory has a limit: messages half-sent, replies that nobody reads, and all operations together."""

import contextlib
import datetime
import random
import resource
import threading

import bson
import pymongo
import pytest

import harness

MIB = 1 << 20
POOL = 128 * MIB
# What the process may take beyond the pool: itself, the data, what the allocator keeps.
BESIDE = 300 * MIB


def fill(collection, mib):
    for n in range(mib):
        collection.insert_one({"_id": n, "data": b"x" * MIB})


def test_messages_that_never_end_are_limited(start):
    server = start(None, "--setParameter", f"totalOperationMemoryBytes={POOL}")
    sockets = [server.raw() for _ in range(24)]
    whole = harness.op_msg({"insert": "docs", "documents": [{"data": b"x" * (15 * MIB)}] * 3, "$db": "memory"})
    closed = 0
    for raw in sockets:
        try:
            raw.send(whole[: 40 * MIB])
        except harness.Closed:
            closed += 1
    harness.eventually(lambda: harness.rss_bytes(server.pid) < POOL + BESIDE, what="memory below the limit")
    assert closed + sum(is_gone(raw) for raw in sockets) > len(sockets) / 2, "the largest are ended"
    assert server.client().memory.docs.count_documents({}) == 0


def test_replies_that_nobody_reads_are_limited(start):
    server = start(None, "--setParameter", f"totalOperationMemoryBytes={POOL}")
    client = server.client()
    fill(client.memory.docs, 14)
    sockets = [server.raw() for _ in range(60)]
    for raw in sockets:
        raw.send(harness.op_msg({"find": "docs", "batchSize": 100, "$db": "memory"}))
    queries = lambda: client.admin.command("serverStatus")["opcounters"]["query"]
    harness.eventually(lambda: queries() >= len(sockets), what="an answer to each")
    # A socket takes some of a reply off the server, so a few more than fit are left; the allocator gives memory back when it likes.
    harness.eventually(lambda: sum(is_gone(raw) for raw in sockets) > len(sockets) / 2, what="an end of the largest")
    # Whoever reads is served.
    assert sum(1 for _ in client.memory.docs.find()) == 14


def is_gone(raw):
    """Whether the server has closed the connection, once what it sent before was read."""
    raw.socket.settimeout(0.1)
    try:
        while raw.socket.recv(MIB):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_a_store_in_memory_gives_memory_back(start):
    server = start(None)
    docs = server.client().memory.docs
    for _ in range(2):
        for _ in range(50):
            docs.insert_many([{"data": b"x" * 1950} for _ in range(1000)])
        assert harness.rss_bytes(server.pid) > 160 * MIB
        docs.drop()
        harness.eventually(lambda: harness.rss_bytes(server.pid) < 120 * MIB, timeout=60, what="memory given back")


# Each would take gigabytes. `$$d` is a string of 1 MiB.
BOMBS = {
    "arrays that double": {"$reduce": {"input": {"$range": [0, 40]}, "initialValue": [1], "in": {"$concatArrays": ["$$value", "$$value"]}}},
    "strings that double": {"$reduce": {"input": {"$range": [0, 40]}, "initialValue": "x", "in": {"$concat": ["$$value", "$$value"]}}},
    "objects that nest": {"$reduce": {"input": {"$range": [0, 60]}, "initialValue": {"a": 1}, "in": {"a": "$$value", "b": "$$value"}}},
    "many long strings": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$concat": ["$data", "$data"]}}},
    "sets": {"$setUnion": [{"$map": {"input": {"$range": [0, 20000]}, "in": {"$concat": [{"$toString": "$$this"}, "$data"]}}}]},
    "pieces": {"$map": {"input": {"$range": [0, 5000]}, "in": {"$split": ["$data", "x"]}}},
}


@pytest.mark.parametrize("name", list(BOMBS))
def test_no_expression_ends_the_process(start, name):
    server = start(None, limits={resource.RLIMIT_AS: 4 << 30})
    docs = server.client().memory.docs
    docs.insert_one({"_id": 1, "data": "x" * MIB})
    other = server.client().admin
    threads = [threading.Thread(target=run_bomb, args=(docs, BOMBS[name])) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert other.command("ping")["ok"] == 1
    for thread in threads:
        thread.join(120)
    assert server.is_running and other.command("ping")["ok"] == 1


def run_bomb(docs, expression):
    with contextlib.suppress(pymongo.errors.OperationFailure):
        list(docs.aggregate([{"$project": {"size": {"$size": {"$objectToArray": {"all": expression}}}}}], maxTimeMS=20_000))


STAGES = {
    "group": [{"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}],
    "lookup": [{"$lookup": {"from": "docs", "pipeline": [], "as": "all"}}, {"$lookup": {"from": "docs", "pipeline": [], "as": "more"}}],
    "facet": [{"$facet": {f"f{n}": [{"$match": {}}] for n in range(20)}}],
    "window": [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"all": {"$push": "$data", "window": {"documents": ["unbounded", "current"]}}}}}],
    "sort": [{"$sort": {"data": 1, "_id": 1}}],
}


@pytest.mark.parametrize("name", list(STAGES))
def test_no_stage_ends_the_process(start, name, tmp_path):
    server = start(tmp_path / "data", limits={resource.RLIMIT_AS: 4 << 30})
    docs = server.client().memory.docs
    for n in range(120):
        docs.insert_one({"_id": n, "data": bson.Binary(bytes([n]) * MIB)})

    def run():
        with contextlib.suppress(pymongo.errors.OperationFailure, bson.errors.InvalidBSON):
            for _ in docs.aggregate(STAGES[name], maxTimeMS=20_000, batchSize=1):
                pass

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert server.is_running and server.client().admin.command("ping")["ok"] == 1


def test_keys_of_one_document_are_limited(start):
    """A wildcard index repeats the path for each element: 16 MiB of a document would become a gigabyte of keys."""
    server = start(None)
    docs = server.client().memory.docs
    docs.insert_one({"_id": 1, "p" * 1500: list(range(600_000))})
    with pytest.raises(pymongo.errors.OperationFailure) as refused:
        docs.create_index([("$**", 1)])
    assert refused.value.code == 146
    assert harness.rss_bytes(server.pid) < 1 << 30
    assert [index["name"] for index in docs.list_indexes()] == ["_id_"]
    docs.create_index("p" * 1500)
    assert docs.count_documents({"p" * 1500: 7}) == 1


ADDRESS_SPACE = 2 << 30


def test_the_process_stays_below_a_limit_of_its_address_space(start):
    """Nothing that is counted stops the statement: what the process really takes does."""
    unlimited = 100 << 30
    flags = ["--setParameter", f"totalOperationMemoryBytes={unlimited}", "--setParameter", f"internalQueryMaxBlockingSortMemoryUsageBytes={unlimited}"]
    server = start(None, *flags, limits={resource.RLIMIT_AS: ADDRESS_SPACE})
    client = server.client()
    assert client.admin.command("serverStatus")["mem"]["virtual"] * MIB < ADDRESS_SPACE / 2, "little is reserved ahead"
    fill(client.memory.docs, 1)
    pipeline = [
        {"$set": {"n": {"$range": [0, 10_000]}}},
        {"$unwind": "$n"},
        {"$set": {"text": {"$reduce": {"input": {"$range": [0, 20]}, "initialValue": {"$toString": "$n"}, "in": {"$concat": ["$$value", "$$value"]}}}}},
        {"$sort": {"text": 1}},
    ]
    with pytest.raises(pymongo.errors.OperationFailure) as caught:
        client.memory.docs.aggregate(pipeline, allowDiskUse=False)
    assert caught.value.code == 146
    assert server.is_running
    assert client.memory.docs.count_documents({}) == 1
    # What it held is given back.
    harness.eventually(lambda: harness.rss_bytes(server.pid) < 2 * BESIDE, what="memory given back")


CACHE = 256 * MIB
# What a server may take beside its cache: what waits for a merge (two and a half memtables of 64 MiB), the oplog's and the journal's
# buffers, connections, and what the allocator keeps. Several times what it takes.
BESIDE_CACHE = 768 * MIB


def test_a_server_with_more_data_than_cache_stays_near_its_cache(start, tmp_path):
    server = start(tmp_path / "data", "--wiredTigerCacheSizeGB", CACHE / (1 << 30))
    docs = server.client(w=1).memory.docs
    dice = random.Random(1)
    highest = 0
    # Two and a half times the cache, of bytes that cannot be compressed.
    for first in range(0, 640, 8):
        docs.insert_many([{"_id": n, "n": n % 7, "data": dice.randbytes(MIB)} for n in range(first, first + 8)])
        highest = max(highest, harness.rss_bytes(server.pid))
    for _ in range(2):
        for n, doc in enumerate(docs.find({}, batch_size=8)):
            assert len(doc["data"]) == MIB
            if n % 64 == 0:
                highest = max(highest, harness.rss_bytes(server.pid))
    assert docs.aggregate([{"$group": {"_id": "$n", "n": {"$sum": 1}}}, {"$count": "n"}]).next() == {"n": 7}
    highest = max(highest, harness.rss_bytes(server.pid))
    print(f"at most {highest // MIB} MiB beside a cache of {CACHE // MIB} MiB")
    assert highest < CACHE + BESIDE_CACHE


def test_a_group_of_large_documents_that_is_written_is_small(start, tmp_path):
    """`$out` writes a thousand documents at a time, unless they are large: a thousand of these are 16 GiB."""
    server = start(tmp_path / "data", "--wiredTigerCacheSizeGB", CACHE / (1 << 30))
    db = server.client().memory
    db.docs.insert_one({"_id": 1, "data": b"x" * (15 * MIB), "list": list(range(5_000))})
    ended = []

    def write():
        with pytest.raises(pymongo.errors.PyMongoError) as caught:
            db.docs.aggregate([{"$unwind": "$list"}, {"$set": {"_id": "$list"}}, {"$out": "out"}], maxTimeMS=4_000)
        ended.append(caught.value)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    highest = 0
    while thread.is_alive():
        highest = max(highest, harness.rss_bytes(server.pid))
        thread.join(0.02)
    assert [error.code for error in ended] == [50]
    assert highest < CACHE + BESIDE_CACHE
    assert db.list_collection_names() == ["docs"]


def test_replies_of_many_large_errors_can_be_received(start):
    """Messages that name large values, and what scripts throw, are cut; of many errors the last ones have no values."""
    server = start(None)
    client = server.client(retryWrites=False)
    values = client.limits.docs
    values.create_index("k", unique=True)
    large = {"k": "x" * 1_000_000}
    values.insert_one(dict(large))
    with pytest.raises(pymongo.errors.BulkWriteError) as caught:
        values.insert_many([dict(large) for _ in range(40)], ordered=False)
    failed = caught.value.details["writeErrors"]
    assert [error["code"] for error in failed] == [11000] * 40
    assert failed[0]["keyValue"] == large and "keyValue" not in failed[39]
    assert all(error["errmsg"].startswith("E11000") and len(error["errmsg"]) < 1000 for error in failed)
    with pytest.raises(pymongo.errors.BulkWriteError) as caught:
        values.insert_many([{}, dict(large)], ordered=False)
    assert caught.value.details["writeErrors"][0]["errmsg"].endswith("\" }")
    throws = {"$function": {"body": "function () { throw new Error('x'.repeat(60000000)) }", "args": [], "lang": "js"}}
    with pytest.raises(pymongo.errors.OperationFailure) as caught:
        values.update_many({}, [{"$set": {"y": throws}}])
    assert caught.value.code == 139 and caught.value.details["errmsg"].startswith("Error: xxx")
    assert server.stop() == 0


def test_what_the_base_cannot_store_is_refused(start, tmp_path):
    """A key is longer than its string: one of zeros twice as long. Once accepted, it let no checkpoint succeed."""
    server = start(tmp_path / "data")
    client = server.client(retryWrites=False)
    docs, series = client.limits.docs, client.limits.series
    docs.create_index("k")
    client.limits.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})
    zeros = "\0" * (10 << 20)
    when = datetime.datetime(2026, 1, 1)
    for act in [
        lambda: docs.insert_one({"_id": zeros}),
        lambda: docs.insert_one({"k": zeros}),
        lambda: docs.update_one({"_id": 1}, {"$set": {"k": zeros}}, upsert=True),
        lambda: docs.insert_many([{"_id": 2}, {"_id": 3, "k": zeros}, {"_id": 4}], ordered=False),
        lambda: series.insert_one({"t": when, "m": "x" * (5 << 20), "v": "y" * (4 << 20)}),
    ]:
        with pytest.raises(pymongo.errors.PyMongoError) as caught:
            act()
        details = caught.value.details
        assert details["writeErrors"][0]["code"] == 10334 if details.get("writeErrors") else details["code"] == 10334, details
    assert [doc["_id"] for doc in docs.find({}, {"k": 0})] == [2, 4]
    # Several of these make a bucket each.
    series.insert_many([{"t": when, "m": 1, "v": "y" * (3 << 20)} for _ in range(5)])
    assert [len(doc["v"]) for doc in series.find()] == [3 << 20] * 5
    assert server.stop() == 0
    server.start()
    client = server.client()
    assert client.limits.docs.count_documents({}) == 2 and client.limits.series.count_documents({}) == 5
    assert server.stop() == 0
