"""The profiler, the slow-query log, currentOp."""

import json
import threading

import pytest
from pymongo import DeleteMany, UpdateOne
from pymongo.errors import OperationFailure

from harness import eventually


@pytest.fixture
def profiled(db):
    """A database whose every operation is recorded; `profiled(filter)` gives the newest record that matches."""
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i} for i in range(100)])
    db.c.create_index("a")
    db.command("profile", 2)

    def newest(**wanted):
        found = list(db["system.profile"].find(wanted).sort("$natural", -1).limit(1))
        assert found, f"nothing recorded for {wanted}: {list(db['system.profile'].find())}"
        return found[0]

    newest.db = db
    yield newest
    db.command("profile", 0, slowms=100, sampleRate=1.0, filter="unset")


def having(record, **fields):
    assert {name: record.get(name) for name in fields} == fields, record


def test_settings_are_those_before(db):
    assert db.command("profile", 1, slowms=50, sampleRate=0.5)["was"] == 0
    before = db.command("profile", 0, slowms=100, sampleRate=1.0)
    assert (before["was"], before["slowms"], before["sampleRate"]) == (1, 50, 0.5)
    assert "note" not in before
    db.command("profile", 0, filter={"op": "query"})
    shown = db.command("profile", -1)
    assert shown["was"] == 0 and shown["filter"] == {"op": {"$eq": "query"}} and "slowms" in shown["note"]
    db.command("profile", 0, filter="unset")
    assert "filter" not in db.command("profile", -1)


def test_find_and_get_more(profiled):
    db = profiled.db
    cursor = db.c.find({"a": 3}, batch_size=4, comment="f")
    list(cursor)
    record = profiled(op="query", **{"command.comment": "f"})
    having(
        record, ns=f"{db.name}.c", keysExamined=4, docsExamined=4, nreturned=4, planSummary="IXSCAN { a: 1 }",
        numYield=0, queryFramework="classic", protocol="op_msg", client="127.0.0.1", allUsers=[], user="",
    )
    assert record["cursorid"] > 0 and record["responseLength"] > 100 and record["millis"] >= 0
    assert record["command"]["filter"] == {"a": 3}
    stages = record["execStats"]
    assert stages["stage"] == "FETCH" and stages["inputStage"]["keysExamined"] == 4
    assert "_id" not in record and "cursorExhausted" not in record
    more = profiled(op="getmore")
    having(more, ns=f"{db.name}.c", docsExamined=2, nreturned=2, cursorExhausted=True, planSummary="IXSCAN { a: 1 }")
    assert more["cursorid"] == record["cursorid"] and more["originatingCommand"]["comment"] == "f"

    db.c.find_one({"_id": 5})
    having(profiled(op="query"), planSummary="EXPRESS_IXSCAN { _id: 1 }", keysExamined=1, docsExamined=1, nreturned=1)
    db.c.find_one({"_id": 5}, {"a": 1})
    having(profiled(op="query"), planSummary="EXPRESS_IXSCAN { _id: 1 }", keysExamined=1, docsExamined=1, nreturned=1)
    list(db.c.find({"b": {"$gt": 50}}).sort("b", -1).limit(3))
    having(profiled(op="query"), planSummary="COLLSCAN", docsExamined=100, keysExamined=0, hasSortStage=True)
    list(db.none.find())
    having(profiled(ns=f"{db.name}.none"), nreturned=0, cursorExhausted=True, planSummary="EOF")


def test_a_collection_named_by_its_uuid_is_recorded_by_its_name(profiled):
    db = profiled.db
    uuid = next(db.list_collections(filter={"name": "c"}))["info"]["uuid"]
    for comment, query in [("point", {"_id": 5}), ("range", {"a": 5})]:
        db.command("find", uuid, filter=query, comment=comment)
        having(profiled(op="query", **{"command.comment": comment}), ns=f"{db.name}.c")
    db.command("count", uuid, query={"a": 5}, comment="count")
    having(profiled(**{"command.comment": "count"}), ns=f"{db.name}.c")


def test_commands(profiled):
    db = profiled.db
    list(db.c.aggregate([{"$match": {"a": 1}}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}]))
    having(
        profiled(**{"command.aggregate": "c"}), op="command", ns=f"{db.name}.c", keysExamined=10, docsExamined=0, nreturned=1,
        planSummary="IXSCAN { a: 1 }",
    )
    db.command("count", "c", query={"a": 2})
    having(profiled(**{"command.count": "c"}), op="command", keysExamined=11, planSummary="COUNT_SCAN { a: 1 }")
    db.c.distinct("b")
    having(profiled(**{"command.distinct": "c"}), op="command", docsExamined=100)
    db.list_collection_names()
    having(profiled(**{"command.listCollections": 1}), op="command", ns=f"{db.name}.$cmd")
    db.c.find_one_and_update({"a": 4}, {"$set": {"a": 44}})
    having(
        profiled(**{"command.findAndModify": "c"}), op="command", nMatched=1, nModified=1, keysInserted=1,
        keysDeleted=1, nreturned=1,
    )


def test_writes_are_recorded_by_statement(profiled):
    db = profiled.db
    db.c.insert_many([{"a": 1}, {"a": 2}])
    having(profiled(op="insert"), ns=f"{db.name}.c", ninserted=2, keysInserted=4)
    db.c.update_many({"a": 5}, {"$set": {"a": 55}})
    record = profiled(op="update")
    having(record, ns=f"{db.name}.c", nMatched=10, nModified=10, keysInserted=10, keysDeleted=10, docsExamined=10)
    assert record["command"] == {"q": {"a": 5}, "u": {"$set": {"a": 55}}, "multi": True, "upsert": False}
    db.c.update_one({"_id": "new"}, {"$set": {"x": 1}}, upsert=True)
    having(profiled(op="update"), nMatched=0, nModified=0, upsert=True, planSummary="IDHACK")
    db.c.delete_many({"a": 55})
    record = profiled(op="remove")
    having(record, ndeleted=10, keysDeleted=20, planSummary="IXSCAN { a: 1 }")
    assert record["command"] == {"q": {"a": 55}, "limit": 0}
    assert db["system.profile"].count_documents({"ns": f"{db.name}.$cmd"}) == 0
    # Each of several statements on its own.
    db.c.update_one({"a": 1}, {"$set": {"z": 1}}, hint="a_1")
    assert profiled(op="update")["command"]["hint"] == {"$hint": "a_1"}
    db.c.delete_one({"a": 11}, hint="a_1")
    assert profiled(op="remove")["command"]["hint"] == {"$hint": "a_1"}
    db.c.delete_one({"a": 11}, hint={"a": 1})
    assert profiled(op="remove")["command"]["hint"] == {"a": 1}
    db.c.bulk_write([UpdateOne({"_id": i}, {"$set": {"z": 1}}) for i in (1, 2)] + [DeleteMany({"_id": 3})])
    recent = list(db["system.profile"].find({"op": {"$in": ["update", "remove"]}}).sort("$natural", -1).limit(3))
    assert [r["command"]["q"]["_id"] for r in recent] == [3, 2, 1]


def test_failures_are_recorded_with_their_errors(profiled):
    db = profiled.db
    with pytest.raises(OperationFailure):
        db.command("find", "c", filter={"$nosuch": 1})
    having(profiled(op="query"), ok=0.0, errCode=2, errName="BadValue")
    with pytest.raises(Exception):
        db.c.update_one({"_id": 1}, {"$set": {"_id": 2}})
    having(profiled(op="update"), errCode=66, errName="ImmutableField")


def test_a_filter_chooses_instead_of_slowness(profiled):
    db = profiled.db
    db.command("profile", 1, filter={"op": "query", "docsExamined": {"$gte": 50}})
    before = db["system.profile"].count_documents({})
    list(db.c.find({"b": 1}))
    list(db.c.find({"a": 1}))
    db.c.update_many({}, {"$inc": {"n": 1}})
    record = profiled()
    assert record["command"]["filter"] == {"b": 1}
    assert db["system.profile"].count_documents({}) == before + 1
    with pytest.raises(OperationFailure) as error:
        db.command("profile", 1, filter={"$nosuch": 1})
    assert error.value.code == 2


def test_level_one_records_what_is_slow(profiled):
    db = profiled.db
    db.command("profile", 1, slowms=60_000)
    before = db["system.profile"].count_documents({})
    list(db.c.find())
    assert db["system.profile"].count_documents({}) == before
    db.command("profile", 1, slowms=-1)
    list(db.c.find({"b": 77}))
    having(profiled(), op="query", docsExamined=100)
    db.command("profile", 1, slowms=-1, sampleRate=0)
    before = db["system.profile"].count_documents({})
    list(db.c.find({"b": 78}))
    assert db["system.profile"].count_documents({}) == before


def test_the_collection_is_the_profilers(profiled):
    db = profiled.db
    info = db.command("listCollections", filter={"name": "system.profile"})["cursor"]["firstBatch"][0]
    assert info["options"] == {"capped": True, "size": 1 << 20} and "idIndex" not in info
    for write in (
        lambda: db["system.profile"].insert_one({"x": 1}),
        lambda: db["system.profile"].update_one({}, {"$set": {"x": 1}}),
        lambda: db["system.profile"].delete_many({}),
    ):
        with pytest.raises(OperationFailure) as error:
            write()
        assert error.value.code == 73
    with pytest.raises(OperationFailure) as error:
        db.drop_collection("system.profile")
    assert error.value.code == 20
    db.command("profile", 0)
    db.drop_collection("system.profile")
    db.create_collection("system.profile", capped=True, size=4 << 20)
    db.command("profile", 2)
    db.c.find_one()
    having(profiled(), op="query")
    assert db.command("collStats", "system.profile")["maxSize"] == 4 << 20


def test_the_collection_stays_within_its_size(profiled):
    db = profiled.db
    for i in range(60):
        db.c.find_one({"b": {"$in": list(range(8000))}, "i": i})
    stats = db.command("collStats", "system.profile")
    assert 0 < stats["size"] <= 1 << 20
    assert stats["count"] < 60, "the oldest made room"
    assert "$truncated" in profiled(op="query")["command"]


def test_level_of_a_dropped_database_is_zero(client):
    db = client["profiled_and_dropped"]
    db.command("profile", 2)
    db.c.insert_one({})
    client.drop_database(db.name)
    assert db.command("profile", -1)["was"] == 0
    db.c.find_one()
    assert "system.profile" not in db.list_collection_names()
    client.drop_database(db.name)


def test_transactions_are_recorded(profiled):
    db = profiled.db
    with db.client.start_session() as session, session.start_transaction():
        db.c.update_one({"_id": 1}, {"$set": {"t": 1}}, session=session)
        record = profiled(op="update")
        assert record["command"]["u"] == {"$set": {"t": 1}}
        session.abort_transaction()


def test_slow_operations_are_logged(start):
    server = start()
    client = server.client(appname="slowly")
    db = client.slow
    db.command("profile", 0, slowms=-1)
    db.c.insert_many([{"_id": i} for i in range(30)])
    list(db.c.find({"x": 1}))
    db.c.update_many({"x": 1}, {"$set": {"y": 1}})
    db.command("profile", 0, slowms=100)
    list(db.c.find({"x": 2}))
    lines = [json.loads(line) for line in client.admin.command("getLog", "global")["log"]]
    slow = [line for line in lines if line["id"] == 51803]
    assert all(line["msg"] == "Slow query" and line["s"] == "I" for line in slow)
    finds = [line for line in slow if line["attr"]["command"].get("find") == "c"]
    assert [line["attr"]["command"]["filter"] for line in finds] == [{"x": 1}]
    attr = finds[0]["attr"]
    assert finds[0]["c"] == "COMMAND" and finds[0]["ctx"].startswith("conn")
    having(
        attr, type="command", ns="slow.c", appName="slowly", planSummary="COLLSCAN", keysExamined=0, docsExamined=30,
        nreturned=0, numYields=0, protocol="op_msg", cursorExhausted=True,
    )
    assert attr["remote"].startswith("127.0.0.1:") and attr["durationMillis"] >= 0 and attr["reslen"] > 0
    (write,) = [line for line in slow if line["c"] == "WRITE"]
    having(write["attr"], type="update", ns="slow.c", nMatched=0, nModified=0, docsExamined=30)
    (envelope,) = [line for line in slow if line["attr"]["command"].get("update") == "c"]
    having(envelope["attr"], type="command", ns="slow.$cmd")


def test_plans_chosen_by_trial_are_recorded_as_such(profiled):
    db = profiled.db
    db.c.create_index("b")
    query = {"a": 5, "b": {"$gte": 50}}
    for by_trial in (True, True, None):
        list(db.c.find(query))
        record = profiled(op="query")
        having(record, fromMultiPlanner=by_trial, nreturned=5)
        assert "replanned" not in record
    shown = db.command("explain", {"find": "c", "filter": query}, verbosity="queryPlanner")
    planner = shown["queryPlanner"]
    having(
        record, planCacheShapeHash=planner["planCacheShapeHash"], queryHash=planner["queryHash"],
        planCacheKey=planner["planCacheKey"], queryShapeHash=shown["queryShapeHash"],
    )
    # One plan alone is chosen without a trial, and kept nowhere.
    list(db.c.find({"a": 5}))
    record = profiled(op="query")
    shown = db.command("explain", {"find": "c", "filter": {"a": 5}}, verbosity="queryPlanner")
    having(record, planCacheShapeHash=shown["queryPlanner"]["planCacheShapeHash"], planCacheKey=None)
    # What stages read of other collections counts.
    list(db.c.aggregate([{"$match": {"a": 1}}, {"$lookup": {"from": "c", "localField": "b", "foreignField": "b", "as": "x"}}]))
    having(profiled(**{"command.aggregate": "c"}), keysExamined=30, docsExamined=20)


def test_nothing_is_recorded_under_a_lock(profiled):
    db = profiled.db
    db.client.admin.command("fsync", lock=True)
    try:
        before = db["system.profile"].count_documents({})
        list(db.c.find({"b": 3}))
        assert db["system.profile"].count_documents({}) == before
    finally:
        db.client.admin.command("fsyncUnlock")
    list(db.c.find({"b": 3}))
    having(profiled(), op="query", docsExamined=100)


LONG = {"$expr": {"$lt": [{"$size": {"$range": [0, {"$add": ["$_id", 100_000]}]}}, 0]}}


def test_current_op_shows_what_runs(server, db):
    db.c.insert_many([{"_id": i} for i in range(5000)])
    other = server.client(appname="long")
    failures = []

    def run():
        try:
            list(other[db.name].c.find(LONG, comment="long"))
        except OperationFailure as failure:
            failures.append(failure.code)

    def running():
        listed = db.client.admin.command("currentOp", **{"command.comment": "long"})["inprog"]
        return [op for op in listed if "planSummary" in op]

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(running)
        (op,) = running()
        having(
            op, op="query", ns=f"{db.name}.c", planSummary="COLLSCAN", appName="long", active=True, killPending=False,
            numYields=0,
        )
        assert op["microsecs_running"] > 0 and op["command"]["filter"] == LONG
        (same,) = db.client.admin.aggregate([{"$currentOp": {}}, {"$match": {"opid": op["opid"]}}])
        having(same, ns=op["ns"], planSummary="COLLSCAN", command=op["command"])
        db.client.admin.command("killOp", op=op["opid"])
    finally:
        thread.join()
    assert failures == [11601]


def test_current_op_shows_idle_connections_and_cursors_when_asked(db):
    admin = db.client.admin
    db.c.insert_many([{} for _ in range(10)])
    cursor = db.c.find(batch_size=2)
    next(cursor)
    shown = list(admin.aggregate([{"$currentOp": {"idleCursors": True}}, {"$match": {"type": "idleCursor"}}]))
    (mine,) = [c for c in shown if c["cursor"]["cursorId"] == cursor.cursor_id]
    having(mine, ns=f"{db.name}.c")
    having(mine["cursor"], nDocsReturned=2, nBatchesReturned=1, tailable=False)
    assert mine["cursor"]["originatingCommand"]["find"] == "c"
    cursor.close()
    assert all(op["active"] for op in admin.aggregate([{"$currentOp": {}}]))
    with db.client.start_session():
        idle = list(admin.aggregate([{"$currentOp": {"idleConnections": True}}]))
    assert len(idle) >= 1
