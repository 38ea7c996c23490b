"""Logical sessions, retryable writes, cluster time."""

import uuid

from bson import Binary, Int64, Timestamp


def lsid():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def test_explicit_session(client, db):
    with client.start_session() as session:
        db.c.insert_many([{"_id": i} for i in range(300)], session=session)
        assert len(list(db.c.find({}, session=session, batch_size=50))) == 300
        assert session.operation_time is not None and session.cluster_time is not None


def test_causal_consistency(client, db):
    with client.start_session(causal_consistency=True) as session:
        before = None
        for i in range(20):
            db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, upsert=True, session=session)
            assert db.c.find_one({"_id": 1}, session=session)["n"] == i + 1
            assert before is None or session.operation_time > before
            before = session.operation_time


def test_replies_carry_cluster_time(db):
    reply = db.command("ping")
    assert isinstance(reply["operationTime"], Timestamp)
    assert isinstance(reply["$clusterTime"]["clusterTime"], Timestamp)


def test_sessions_can_be_started_refreshed_and_ended(client):
    started = client.admin.command("startSession")
    assert started["timeoutMinutes"] == 30
    assert client.admin.command("refreshSessions", [started["id"]])["ok"] == 1.0
    assert client.admin.command("endSessions", [started["id"]])["ok"] == 1.0


def test_every_session_that_is_used_is_listed(server, client):
    session = lsid()

    def listed():
        sessions = client.admin.aggregate([{"$listLocalSessions": {}}])
        return [found for found in sessions if found["_id"]["id"] == session["id"]]

    with server.raw() as raw:
        # The session of the command that lists, too.
        own = {"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}, "lsid": session, "$db": "admin"}
        assert session["id"] in [found["_id"]["id"] for found in raw.command(own)["cursor"]["firstBatch"]]
        assert len(listed()) == 1
        assert raw.command({"endSessions": [session], "$db": "admin"})["ok"] == 1
        assert listed() == []


def test_a_cursor_belongs_to_its_session_and_ends_with_it(server, db):
    db.c.insert_many([{"_id": i} for i in range(300)])
    session = lsid()
    with server.raw() as raw:
        opened = raw.command({"find": "c", "batchSize": 2, "lsid": session, "$db": db.name})
        more = {"getMore": Int64(opened["cursor"]["id"]), "collection": "c", "batchSize": 2, "$db": db.name}
        assert raw.command({**more, "lsid": lsid()})["ok"] == 0, "another session's"
        assert raw.command(more)["ok"] == 0, "no session"
        assert raw.command({**more, "lsid": session})["ok"] == 1
        assert raw.command({"killSessions": [session], "$db": "admin"})["ok"] == 1
        ended = raw.command({**more, "lsid": session})
        assert (ended["ok"], ended["code"]) == (0, 43)


def test_a_retried_write_happens_once(server, db):
    """The same lsid and txnNumber again answers as before and changes nothing."""
    session = lsid()
    with server.raw() as raw:
        insert = {"insert": "c", "documents": [{"_id": 1, "n": 0}], "lsid": session, "txnNumber": Int64(1), "$db": db.name}
        assert raw.command(insert)["n"] == 1
        again = raw.command(insert)
        assert again["ok"] == 1.0 and again["n"] == 1 and "writeErrors" not in again
        update = {
            "update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}],
            "lsid": session, "txnNumber": Int64(2), "$db": db.name,
        }
        for _ in range(3):
            reply = raw.command(update)
            assert (reply["n"], reply["nModified"]) == (1, 1)
        modify = {
            "findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 10}}, "new": True,
            "lsid": session, "txnNumber": Int64(3), "$db": db.name,
        }
        for _ in range(3):
            assert raw.command(modify)["value"] == {"_id": 1, "n": 11}
        old = raw.command(update)
        assert old["ok"] == 0 and old["code"] == 225, "a number below the session's last one is too old"
    assert db.c.find_one() == {"_id": 1, "n": 11}


def test_retry_survives_a_restart(start, tmp_path):
    session = lsid()
    insert = {
        "update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "upsert": True}],
        "lsid": session, "txnNumber": Int64(1), "writeConcern": {"w": 1, "j": True}, "$db": "test",
    }
    server = start(tmp_path / "data")
    with server.raw() as raw:
        assert raw.command(insert)["n"] == 1
    server.kill()
    server.start()
    with server.raw() as raw:
        assert raw.command(insert)["n"] == 1
    assert server.client().test.c.find_one() == {"_id": 1, "n": 1}


def test_a_retried_find_and_modify_returns_its_document_after_a_restart(start, tmp_path):
    """The documents that findAndModify returned last as long as what it did."""
    new = {"query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": True, "fields": {"n": 1, "_id": 0}}
    old = {"query": {"_id": 1}, "update": {"_id": 1, "m": 1}}
    array = {"query": {"_id": 4, "a": 2}, "update": {"$set": {"a.$": 9}}, "fields": {"a.$": 1}}
    upsert = {"query": {"_id": 3}, "update": {"$set": {"n": 3}}, "new": True, "upsert": True}
    remove = {"query": {"_id": 2}, "remove": True}
    nothing = {"query": {"_id": 5}, "update": {"$set": {"n": 3}}, "upsert": True}
    commands = [
        {"findAndModify": "c", **body, "lsid": lsid(), "txnNumber": Int64(1), "$db": "test"}
        for body in (new, old, array, upsert, remove, nothing)
    ]
    server = start(tmp_path / "data")
    with server.raw() as raw:
        raw.command({
            "insert": "c",
            "documents": [{"_id": 1, "n": 1}, {"_id": 2, "x": "y"}, {"_id": 4, "a": [1, 2, 3]}],
            "$db": "test",
        })
        first = [raw.command(command) for command in commands]
    server.kill()
    server.start()
    with server.raw() as raw:
        again = [raw.command(command) for command in commands]
    shown = [(reply["value"], reply["lastErrorObject"]) for reply in again]
    assert shown == [(reply["value"], reply["lastErrorObject"]) for reply in first]
    assert [value for value, _ in shown] == [
        {"n": 2}, {"_id": 1, "n": 2}, {"_id": 4, "a": [2]}, {"_id": 3, "n": 3}, {"_id": 2, "x": "y"}, None,
    ]
    assert all(reply["retriedStmtIds"] == [0] for reply in again)


def test_a_snapshot_session_reads_second_batches(client, db):
    """Drivers send the session's read concern with getMore and killCursors too."""
    db.c.insert_many([{"_id": i} for i in range(30)])
    with client.start_session(snapshot=True) as session:
        cursor = db.c.find({}, session=session, batch_size=10)
        assert next(cursor) == {"_id": 0}
        db.c.delete_many({})
        assert len(list(cursor)) == 29
        assert len(list(db.c.aggregate([], session=session, batchSize=7))) == 30
        left = db.c.find({}, session=session, batch_size=10)
        next(left)
        left.close()
        killed = db.command(
            "killCursors", "c", cursors=[Int64(5)], readConcern={"level": "snapshot", "atClusterTime": session._snapshot_time}
        )
        assert killed["cursorsNotFound"] == [5]
