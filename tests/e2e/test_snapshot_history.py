"""Snapshot reads of any time within the window (`minSnapshotHistoryWindowInSeconds`), across checkpoints and a restart."""

import itertools
import time

import pytest
from bson import Binary, Int64, Timestamp
from pymongo import WriteConcern
from pymongo.errors import OperationFailure


def read_at(db, name, at):
    found = db.command("find", name, readConcern={"level": "snapshot", "atClusterTime": at}, batchSize=1000)
    assert found["cursor"]["atClusterTime"] == at
    return found["cursor"]["firstBatch"]


def code_at(db, name, at):
    with pytest.raises(OperationFailure) as error:
        read_at(db, name, at)
    return error.value.code


def checkpoint(client):
    client.admin.command("fsync", 1, lock=True)
    client.admin.command("fsyncUnlock", 1)


def write(db, rounds, now, states):
    """Counts up, inserts and deletes; notes what is there after each operation by its time."""
    for i in rounds:
        for done in (
            {"update": "c", "updates": [{"q": {"_id": "n"}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
            {"insert": "c", "documents": [{"_id": i, "a": "x" * 1000}]},
            {"delete": "c", "deletes": [{"q": {"_id": i - 3}, "limit": 1}]},
        ):
            reply = db.command(done)
            if "update" in done:
                now["n"] = now.get("n", 0) + 1
            elif "insert" in done:
                now[i] = True
            else:
                now.pop(i - 3, None)
            states.append((reply["operationTime"], dict(now)))


def state(documents):
    return {doc["_id"]: doc["n"] if doc["_id"] == "n" else True for doc in documents}


def test_any_time_within_the_window_can_be_read(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    db = client.test
    db.create_collection("c")
    now, states = {}, []
    for part in range(4):
        write(db, range(part * 20, part * 20 + 20), now, states)
        checkpoint(client)
    for at, expected in states[::7] + states[-1:]:
        assert state(read_at(db, "c", at)) == expected
    # Between two commits, one sees the one before.
    last, expected = states[30]
    between = Timestamp(last.time, last.inc + 1)
    if between < states[31][0]:
        assert state(read_at(db, "c", between)) == expected
    history = client.admin.command("serverStatus")["nestor"]["history"]
    assert history["windowSeconds"] == 300 and history["bases"] >= 4
    assert history["oldest"] <= states[0][0]
    assert history["statesPutTogether"] >= 30 and history["states"] <= 64
    # Aggregations, indexes that were made later, and collections that are gone.
    db.c.create_index("a")
    db.c.rename("d")
    at, expected = states[100]
    concern = {"level": "snapshot", "atClusterTime": at}
    counted = db.command("aggregate", "c", pipeline=[{"$count": "n"}], cursor={}, readConcern=concern)
    assert counted["cursor"]["firstBatch"] == [{"n": len(expected)}]
    by_index = db.command("find", "c", filter={"a": "x" * 1000}, readConcern=concern)
    assert len(by_index["cursor"]["firstBatch"]) == len(expected) - 1
    server.kill()
    server.start()
    db = server.client().test
    now, later = {"n": 0}, []
    db.e.insert_one({"_id": 1})
    write(db, range(5), {}, later)
    for at, expected in later:
        assert state(read_at(db, "c", at)) == expected


def test_transactions_read_a_time_too(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    db = client.test
    majority = db.c.with_options(write_concern=WriteConcern("majority"))
    majority.insert_many([{"_id": i, "n": 0} for i in range(3)])
    at = db.command("update", "c", updates=[{"q": {"_id": 0}, "u": {"$inc": {"n": 1}}}])["operationTime"]
    checkpoint(client)
    majority.update_many({}, {"$inc": {"n": 10}})
    checkpoint(client)
    numbers = itertools.count(1)

    def in_transaction(*commands):
        """The answer to the last of them."""
        of_all = {"lsid": {"id": Binary(bytes(16), 4)}, "txnNumber": Int64(next(numbers)), "autocommit": False, "$db": "test"}
        begin = {"startTransaction": True, "readConcern": {"level": "snapshot", "atClusterTime": at}}
        with server.raw() as raw:
            for i, command in enumerate(commands):
                reply = raw.command({**command, **of_all, **({} if i else begin)})
            return reply

    found = in_transaction({"find": "c", "sort": {"_id": 1}})
    assert [doc["n"] for doc in found["cursor"]["firstBatch"]] == [1, 0, 0]
    refused = in_transaction({"find": "c"}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]})
    assert (refused["ok"], refused["code"]) == (0, 112)
    assert refused["errorLabels"] == ["TransientTransactionError"]


def test_times_outside_of_the_window(start, tmp_path):
    server = start(tmp_path / "data", "--setParameter", "minSnapshotHistoryWindowInSeconds=600")
    client = server.client()
    db = client.test
    assert client.admin.command("getParameter", 1, minSnapshotHistoryWindowInSeconds=1)["minSnapshotHistoryWindowInSeconds"] == 600
    first = db.command("insert", "c", documents=[{"_id": 1}])["operationTime"]
    second = db.command("insert", "c", documents=[{"_id": 2}])["operationTime"]
    assert len(read_at(db, "c", first)) == 1
    ahead = Timestamp(second.time + 1000, 1)
    assert code_at(db, "c", ahead) == 72
    client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=1)
    deadline = time.monotonic() + 30
    while True:
        try:
            read_at(db, "c", first)
        except OperationFailure as error:
            assert error.code == 239
            break
        assert time.monotonic() < deadline, "the window has passed"
        time.sleep(0.2)
    assert len(read_at(db, "c", second)) == 2, "the newest state is never too old"
    assert client.admin.command("serverStatus")["nestor"]["history"]["snapshotTooOld"] >= 1
    for bad in -1, 1 << 40:
        with pytest.raises(OperationFailure) as error:
            client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=bad)
        assert error.value.code == 2
