"""How much of the oplog is kept, what it shows of itself, and those who follow it. Source: manual, "replSetResizeOplog", "Oplog",
"oplogTruncation" of "serverStatus"; the ways of clients as named in each test."""

import re
import threading
import time

import bson
import pymongo
import pytest
from pymongo.errors import OperationFailure

from harness import eventually

MIB = 1 << 20


def status(client):
    return client.admin.command("serverStatus")


def fill(db, mib):
    """Writes that many MiB."""
    for _ in range(mib):
        db.filler.insert_many([{"x": "y" * 64 * 1024} for _ in range(16)])


def checkpoint(client):
    client.admin.command("fsync", lock=True)
    client.admin.command("fsyncUnlock")


def stats(client):
    (shown,) = client.local["oplog.rs"].aggregate([{"$collStats": {"storageStats": {}, "count": {}}}])
    assert shown["count"] == shown["storageStats"]["count"]
    return shown["storageStats"]


def test_the_oplog_shows_its_size(start):
    client = start(None, "--oplogSize", "4").client()
    assert stats(client)["maxSize"] == 4 * MIB and stats(client)["capped"]
    before = stats(client)
    client.test.c.insert_many([{"_id": i} for i in range(100)])
    after = stats(client)
    assert after["count"] >= before["count"] + 100
    assert after["count"] == client.local["oplog.rs"].count_documents({})
    assert after["count"] == client.local["oplog.rs"].estimated_document_count()
    assert after["size"] > before["size"]
    assert client.local.command("collStats", "oplog.rs")["size"] == after["size"]
    fill(client.test, 12)
    full = stats(client)
    assert 2 * MIB < full["size"] < 6 * MIB
    shown = status(client)
    assert shown["nestor"]["log"]["bytesMax"] == 4 * MIB and shown["nestor"]["log"]["bytes"] == full["size"]
    assert shown["oplogTruncation"]["truncateCount"] > 0
    # What replication info is made of: the first and the last entry.
    oplog = client.local["oplog.rs"]
    first = oplog.find().sort("$natural", 1).limit(1).next()["ts"]
    last = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
    assert first > shown["nestor"]["log"]["begins"] and last >= first


def test_a_size_that_was_set_survives_a_restart(start, tmp_path):
    server = start(tmp_path / "data", "--oplogSize", "1")
    client = server.client()
    assert stats(client)["maxSize"] == MIB
    client.admin.command("replSetResizeOplog", 1, size=float(1000))
    assert stats(client)["maxSize"] == 1000 * MIB
    client.test.c.insert_one({"_id": 1})
    server.kill()
    # As with mongod the flag is for an oplog that is made.
    server = start(tmp_path / "data", "--oplogSize", "1")
    client = server.client()
    assert stats(client)["maxSize"] == 1000 * MIB
    assert status(client)["nestor"]["log"]["bytesMax"] == 1000 * MIB


def test_what_is_young_is_kept_whatever_the_size(start, tmp_path):
    server = start(tmp_path / "data", "--oplogSize", "1", "--oplogMinRetentionHours", "2.5")
    client = server.client()
    options = client.admin.command("getCmdLineOpts")["parsed"]
    assert options["storage"]["oplogMinRetentionHours"] == 2.5 and options["replication"]["oplogSizeMB"] == 1
    assert status(client)["oplogTruncation"]["oplogMinRetentionHours"] == 2.5
    db = client.test
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=200) as stream:
        db.c.insert_one({"_id": 1})
        token = stream.next()["_id"]
    # Segments have 32 MiB, and those before a checkpoint go.
    fill(db, 80)
    checkpoint(client)
    assert stats(client)["size"] > 70 * MIB
    with db.c.watch(resume_after=token, max_await_time_ms=100) as stream:
        assert stream.try_next() is None
    client.admin.command("replSetResizeOplog", 1, minRetentionHours=0.0)
    assert "oplogMinRetentionHours" not in status(client)["oplogTruncation"]
    checkpoint(client)
    eventually(lambda: stats(client)["size"] < 70 * MIB)
    assert status(client)["oplogTruncation"]["truncateCount"] > 0
    with pytest.raises(OperationFailure) as failure:
        db.c.watch(resume_after=token)
    assert failure.value.code == 286


def test_flags_that_mean_nothing_are_refused(start):
    from harness import run

    for flags in [("--oplogMinRetentionHours=-1",), ("--oplogMinRetentionHours", "1", "--ephemeral")]:
        done = run("serve", "--port", "0", *flags)
        assert done.returncode != 0 and "oplogMinRetentionHours" in done.stdout


def test_cluster_parameters_survive_a_restart(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    db = client.test
    db.create_collection("c", changeStreamPreAndPostImages={"enabled": True})
    wanted = {"preAndPostImages": {"expireAfterSeconds": 1}}
    client.admin.command("setClusterParameter", {"changeStreamOptions": wanted})
    (before,) = client.admin.command("getClusterParameter", "changeStreamOptions")["clusterParameters"]
    assert before["preAndPostImages"] == {"expireAfterSeconds": 1}
    db.c.insert_one({"_id": 1})
    with db.c.watch(max_await_time_ms=200) as stream:
        db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
        began = stream.next()["clusterTime"]
    server.kill()
    client = start(tmp_path / "data").client()
    (after,) = client.admin.command("getClusterParameter", "changeStreamOptions")["clusterParameters"]
    assert after == before
    # The document before the change is older than a second by now, or soon, and is shown no more.
    options = {"full_document_before_change": "whenAvailable", "start_at_operation_time": began}

    def is_gone():
        with client.test.c.watch(max_await_time_ms=100, **options) as stream:
            return stream.next()["fullDocumentBeforeChange"] is None

    eventually(is_gone)


def test_rocket_chat_follows_the_oplog_of_all(db, client):
    """A tailing query over many namespaces with a regular expression, and with transactions among what it matches."""
    db.rooms.insert_one({"_id": 0})
    oplog = client.local["oplog.rs"]
    last = oplog.find({}, {"ts": 1}).sort("$natural", -1).limit(1).next()["ts"]
    names = re.compile(f"^(?:{db.name}\\.|admin\\.\\$cmd)")
    query = {
        "ns": names,
        "$or": [{"op": {"$in": ["i", "u", "d"]}}, {"op": "c", "o.drop": {"$exists": True}}, {"op": "c", "o.applyOps": {"$exists": True}}],
        "ts": {"$gt": last},
    }
    cursor = oplog.find(query, cursor_type=pymongo.CursorType.TAILABLE_AWAIT).max_await_time_ms(100)
    db.rooms.insert_one({"_id": 1})
    with client.start_session() as session, session.start_transaction():
        db.rooms.update_one({"_id": 1}, {"$set": {"n": 1}}, session=session)
        db.messages.insert_one({"_id": 1}, session=session)
    db.rooms.drop()
    found = []
    deadline = time.monotonic() + 20
    kinds = []
    while "drop" not in kinds and time.monotonic() < deadline:
        found.extend(entry for entry in [next(cursor, None)] if entry)
        kinds = [entry["op"] if entry["op"] != "c" else next(iter(entry["o"])) for entry in found]
    assert kinds[0] == "i" and kinds.count("applyOps") == 1 and kinds[-1] == "drop", kinds
    inner = next(entry for entry in found if "applyOps" in entry["o"])["o"]["applyOps"]
    assert [operation["op"] for operation in inner][-2:] == ["u", "i"]
    assert cursor.alive
    cursor.close()


def test_mongodump_takes_the_oplog_of_its_time(db, client):
    """`mongodump --oplog` notes the newest entry, dumps, reads what is newer, and looks whether the first entry is still there;
    `mongorestore --oplogReplay` sends each entry whole to applyOps."""
    oplog = client.local["oplog.rs"]
    db.c.insert_many([{"_id": i} for i in range(3)])
    began = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
    dumped = list(db.c.find())
    db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
    db.c.delete_one({"_id": 0})
    db.c.insert_one({"_id": 9})
    db.create_collection("other", capped=True, size=4096)
    ended = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
    raw = client.local.get_collection("oplog.rs", codec_options=bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument))
    entries = [bson.decode(entry.raw) for entry in raw.find({"ts": {"$gte": began, "$lte": ended}}, oplog_replay=True)]
    assert entries[0]["ts"] == began
    assert oplog.find().sort("$natural", 1).limit(1).next()["ts"] <= began
    expected = list(db.c.find().sort("_id", 1))
    db.c.drop()
    db.other.drop()
    db.c.insert_many(dumped)
    for entry in entries[1:]:
        entry.pop("ui", None)
        client.admin.command("applyOps", [entry], bypassDocumentValidation=False)
    assert list(db.c.find().sort("_id", 1)) == expected
    assert db.command("listCollections", filter={"name": "other"})["cursor"]["firstBatch"][0]["options"]["capped"]


def test_a_tail_that_falls_off_the_end_says_so(start):
    client = start(None, "--oplogSize", "1").client()
    oplog = client.local["oplog.rs"]
    client.test.c.insert_one({"_id": 0})
    cursor = oplog.find({}, cursor_type=pymongo.CursorType.TAILABLE_AWAIT).max_await_time_ms(100)
    next(cursor)
    reply = client.local.command("find", "oplog.rs", tailable=True, awaitData=True)
    fill(client.test, 8)
    with pytest.raises(OperationFailure) as failure:
        client.local.command("getMore", reply["cursor"]["id"], collection="oplog.rs")
    assert failure.value.code == 136
    # The driver takes that for the end of the cursor.
    deadline = time.monotonic() + 20
    while cursor.alive and time.monotonic() < deadline:
        next(cursor, None)
    assert not cursor.alive


def test_the_looked_up_document_is_no_older_than_its_event(db):
    """The document that comes with an update has that update, while others write all the time."""
    db.c.insert_one({"_id": 1, "n": 0})
    over = threading.Event()

    def write():
        n = 0
        while not over.is_set() and n < 20_000:
            n += 1
            db.c.update_one({"_id": 1}, {"$set": {"n": n}})

    with db.c.watch(full_document="updateLookup", max_await_time_ms=200) as stream:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen, deadline = 0, time.monotonic() + 60
            while seen < 1500 and time.monotonic() < deadline:
                event = stream.try_next()
                if event is None:
                    continue
                seen += 1
                assert event["fullDocument"]["n"] >= event["updateDescription"]["updatedFields"]["n"]
        finally:
            over.set()
            writer.join(timeout=60)
    assert seen > 0


def test_a_stream_that_nobody_reads_keeps_nothing(start):
    """Streams that were opened and left alone hold neither memory nor the log, and say so when they are read again."""
    server = start(None, "--oplogSize", "1")
    client = server.client()
    db = client.test
    db.c.insert_one({"_id": 0})
    # What is known of users follows the log too.
    followers = status(client)["nestor"]["log"]["followers"]
    streams = [db.watch(max_await_time_ms=100) for _ in range(20)]
    for _ in range(3):
        fill(db, 8)
        db.filler.drop()
    shown = status(client)
    assert shown["nestor"]["log"]["bytes"] < 3 * MIB
    assert shown["nestor"]["held"]["states"] <= 2
    for stream in streams[:3]:
        with pytest.raises(OperationFailure) as failure:
            for _ in range(1000):
                stream.try_next()
        assert failure.value.code == 286
    for stream in streams:
        stream.close()
    eventually(lambda: status(client)["nestor"]["log"]["followers"] == followers)
    eventually(lambda: status(client)["metrics"]["cursor"]["open"]["total"] == 0)
