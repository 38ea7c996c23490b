"""Change streams as drivers use them. Source: manual, "Change Streams", "Change Events"; driver specification "Change Streams"."""

import os
import threading
import time
from pathlib import Path

import pymongo
import pytest
from bson import Timestamp
from pymongo.errors import OperationFailure

from harness import eventually


def take(stream, count):
    """The next `count` events, which have happened already."""
    events = []
    deadline = time.monotonic() + 60
    while len(events) < count:
        assert time.monotonic() < deadline, f"only {events}"
        event = stream.try_next()
        if event is not None:
            events.append(event)
    return events


def kinds(events):
    return [event["operationType"] for event in events]


def test_a_stream_tells_of_each_write(db):
    with db.c.watch(max_await_time_ms=200) as stream:
        db.c.insert_one({"_id": 1, "a": {"b": list(range(20))}})
        db.c.update_one({"_id": 1}, {"$set": {"a.b.1": 9, "n": 1}, "$unset": {"nothing": 1}})
        db.c.update_one({"_id": 1}, [{"$set": {"a.b": {"$slice": ["$a.b", 15]}}}])
        db.c.replace_one({"_id": 1}, {"x": 1})
        db.c.delete_one({"_id": 1})
        db.other.insert_one({"_id": 1})
        events = take(stream, 5)
        assert stream.try_next() is None
    assert kinds(events) == ["insert", "update", "update", "replace", "delete"]
    assert all(event["documentKey"] == {"_id": 1} for event in events)
    assert all(event["ns"] == {"db": db.name, "coll": "c"} for event in events)
    assert events[0]["fullDocument"] == {"_id": 1, "a": {"b": list(range(20))}}
    description = {"updatedFields": {"a.b.1": 9, "n": 1}, "removedFields": [], "truncatedArrays": []}
    assert events[1]["updateDescription"] == description
    assert events[2]["updateDescription"]["truncatedArrays"] == [{"field": "a.b", "newSize": 15}]
    assert events[3]["fullDocument"] == {"_id": 1, "x": 1}
    times = [event["clusterTime"] for event in events]
    assert times == sorted(times) and len(set(times)) == 5
    tokens = [event["_id"]["_data"] for event in events]
    assert tokens == sorted(tokens)


def test_a_waiting_stream_wakes_up_at_once(db):
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=90_000) as stream:
        writer = threading.Timer(0.3, db.c.insert_one, [{"_id": 1}])
        writer.start()
        begun = time.monotonic()
        event = stream.next()
        assert event["documentKey"] == {"_id": 1}
        assert time.monotonic() - begun < 60, "it did not wait for the end of its time"
        writer.join()


def test_database_and_cluster(db, client):
    with db.watch(max_await_time_ms=200) as of_db, client.watch(
        [{"$match": {"ns.db": db.name}}], max_await_time_ms=200
    ) as of_all:
        db.a.insert_one({"_id": 1})
        db.b.insert_one({"_id": 2})
        client[f"{db.name}_x"].c.insert_one({"_id": 3})
        db.a.rename("d")
        client.drop_database(db.name)
        events = take(of_db, 6)
        assert kinds(events) == ["insert", "insert", "rename", "drop", "drop", "dropDatabase"]
        assert events[2]["ns"]["coll"] == "a" and events[2]["to"] == {"db": db.name, "coll": "d"}
        assert events[5]["ns"] == {"db": db.name}
        assert kinds(take(of_db, 1)) == ["invalidate"]
        with pytest.raises(StopIteration):
            of_db.next()
        assert not of_db.alive
        # The cluster's goes on.
        assert kinds(take(of_all, 6)) == kinds(events)
        assert of_all.try_next() is None and of_all.alive
    client.drop_database(f"{db.name}_x")


def test_expanded_events(db):
    expanded = {"show_expanded_events": True, "max_await_time_ms": 200}
    with db.watch(**expanded) as stream:
        db.create_collection("c", validationLevel="off")
        db.c.create_index("a", name="by_a")
        db.command("collMod", "c", validationLevel="strict")
        db.command("collMod", "c", index={"name": "by_a", "hidden": True})
        db.c.drop_index("by_a")
        db.c.insert_one({"_id": 1, "a.b": 1, "l": [{"0": 1}]})
        db.c.update_one({"_id": 1}, {"$set": {"l.0.0": 2}})
        events = take(stream, 7)
    assert kinds(events) == ["create", "createIndexes", "modify", "modify", "dropIndexes", "insert", "update"]
    create, create_index, modify, hide, drop_index, insert, update = events
    assert create["operationDescription"]["idIndex"] == {"v": 2, "key": {"_id": 1}, "name": "_id_"}
    assert create_index["operationDescription"] == {"indexes": [{"v": 2, "key": {"a": 1}, "name": "by_a"}]}
    assert modify["operationDescription"] == {"validationLevel": "strict"}
    assert modify["stateBeforeChange"]["collectionOptions"]["validationLevel"] == "off"
    assert hide["operationDescription"] == {"index": {"name": "by_a", "hidden": True}}
    assert hide["stateBeforeChange"]["indexOptions"] == {"hidden": False}
    assert drop_index["operationDescription"]["indexes"][0]["name"] == "by_a"
    uuid = db.command("listCollections", filter={"name": "c"})["cursor"]["firstBatch"][0]["info"]["uuid"]
    assert all(event["collectionUUID"] == uuid for event in events)
    assert update["updateDescription"]["disambiguatedPaths"] == {"l.0.0": ["l", 0, "0"]}


def test_what_becomes_of_views_is_an_expanded_event(db):
    """Source: specification "Change Streams", showExpandedEvents, "create events on views are reported"."""
    with db.watch(show_expanded_events=True, max_await_time_ms=200) as expanded, db.watch(max_await_time_ms=200) as plain:
        db.command("create", "v", viewOn="c", pipeline=[{"$match": {"a": 1}}])
        db.command("collMod", "v", viewOn="d", pipeline=[])
        db.drop_collection("v")
        db.c.insert_one({"_id": 1})
        events = take(expanded, 5)
        assert kinds(take(plain, 1)) == ["insert"]
    assert kinds(events) == ["create", "modify", "drop", "create", "insert"]
    assert {event["ns"]["coll"] for event in events[:3]} == {"v"}
    assert all("collectionUUID" not in event for event in events[:3])
    assert events[0]["operationDescription"] == {"viewOn": "c", "pipeline": [{"$match": {"a": 1}}]}
    assert events[1]["operationDescription"] == {"viewOn": "d", "pipeline": []}


def test_events_of_a_transaction_have_its_time(db, client):
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=200) as stream, client.start_session() as session:
        with session.start_transaction():
            for i in range(1, 4):
                db.c.insert_one({"_id": i}, session=session)
            db.c.delete_one({"_id": 0}, session=session)
            db.other.insert_one({"_id": 1}, session=session)
            assert stream.try_next() is None, "nothing before the commit"
        with session.start_transaction():
            db.c.insert_one({"_id": 9}, session=session)
            session.abort_transaction()
        events = take(stream, 4)
        session_id = session.session_id["id"]
        assert stream.try_next() is None
    assert kinds(events) == ["insert"] * 3 + ["delete"]
    assert len({event["clusterTime"] for event in events}) == 1
    assert len({event["txnNumber"] for event in events}) == 1
    assert all(event["lsid"]["id"] == session_id for event in events)
    # Behind each of them a stream goes on with the next.
    for at in range(4):
        with db.c.watch(resume_after=events[at]["_id"], max_await_time_ms=100) as stream:
            assert [event["_id"] for event in take(stream, 3 - at)] == [event["_id"] for event in events[at + 1 :]]


def test_tokens_survive_a_restart(start, tmp_path):
    server = start(tmp_path / "data")
    db = server.client().test
    db.c.insert_one({"_id": 0})
    with db.c.watch() as stream:
        db.c.insert_many([{"_id": i} for i in range(1, 6)])
        first = stream.next()
        mark = stream.resume_token
        began = first["clusterTime"]
    server.kill()
    server = start(tmp_path / "data")
    db = server.client().test
    db.c.insert_one({"_id": 6})
    for options in [{"resume_after": first["_id"]}, {"start_after": first["_id"]}, {"resume_after": mark}]:
        with db.c.watch(max_await_time_ms=200, **options) as stream:
            assert [event["documentKey"]["_id"] for event in take(stream, 5)] == [2, 3, 4, 5, 6]
    with db.c.watch(start_at_operation_time=began, max_await_time_ms=200) as stream:
        assert [event["documentKey"]["_id"] for event in take(stream, 6)] == [1, 2, 3, 4, 5, 6]


def test_a_post_batch_token_moves_on_without_events(db):
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=100) as stream:
        before = stream.resume_token["_data"]
        db.other.insert_one({"_id": 1})
        eventually(lambda: stream.try_next() is None and stream.resume_token["_data"] > before)
        db.c.insert_one({"_id": 2})
        with db.c.watch(resume_after=stream.resume_token, max_await_time_ms=100) as resumed:
            assert take(resumed, 1)[0]["documentKey"] == {"_id": 2}


def test_invalidate(db):
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=200) as stream:
        db.c.drop()
        drop, invalidate = take(stream, 2)
        assert kinds([drop, invalidate]) == ["drop", "invalidate"]
    assert "ns" not in invalidate and invalidate["clusterTime"] == drop["clusterTime"]
    with pytest.raises(OperationFailure) as failure:
        db.c.watch(resume_after=invalidate["_id"])
    assert failure.value.code == 260
    db.c.insert_one({"_id": 1})
    with db.c.watch(start_after=invalidate["_id"], max_await_time_ms=200) as stream:
        assert kinds(take(stream, 1)) == ["insert"]


def test_the_current_document_is_looked_up(db):
    db.c.insert_many([{"_id": 1}, {"_id": 2}])
    with db.c.watch(full_document="updateLookup", max_await_time_ms=200) as stream:
        db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
        db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
        db.c.update_one({"_id": 2}, {"$set": {"a": 1}})
        db.c.delete_one({"_id": 2})
        events = take(stream, 4)
    assert [event.get("fullDocument") for event in events] == [{"_id": 1, "a": 2}, {"_id": 1, "a": 2}, None, None]
    assert "fullDocument" in events[2] and "fullDocument" not in events[3]


def test_documents_before_and_after_a_change(db, client):
    db.create_collection("c", changeStreamPreAndPostImages={"enabled": True})
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": 1}])
    required = {"full_document": "required", "full_document_before_change": "required", "max_await_time_ms": 200}
    with db.c.watch(**required) as stream:
        db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
        db.c.replace_one({"_id": 2}, {"b": 1})
        with client.start_session() as session, session.start_transaction():
            db.c.update_one({"_id": 1}, {"$inc": {"a": 1}}, session=session)
            db.c.delete_one({"_id": 3}, session=session)
        events = take(stream, 4)
    before = [event["fullDocumentBeforeChange"] for event in events]
    assert before == [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 1, "a": 2}, {"_id": 3, "a": 1}]
    after = [event.get("fullDocument") for event in events]
    assert after == [{"_id": 1, "a": 2}, {"_id": 2, "b": 1}, {"_id": 1, "a": 3}, None]
    # Without the option there is nothing to show.
    db.command("collMod", "c", changeStreamPreAndPostImages={"enabled": False})
    with db.c.watch(**required) as stream:
        db.c.update_one({"_id": 1}, {"$set": {"a": 9}})
        with pytest.raises(OperationFailure) as failure:
            take(stream, 1)
    assert failure.value.code == 47


def test_what_cannot_be_resumed_says_so(db):
    db.c.insert_one({"_id": 0})
    with db.c.watch([{"$project": {"_id": 0}}], max_await_time_ms=200) as stream:
        db.c.insert_one({"_id": 1})
        with pytest.raises(OperationFailure) as failure:
            take(stream, 1)
    assert failure.value.code == 280
    assert failure.value.has_error_label("NonResumableChangeStreamError")
    with db.other.watch(max_await_time_ms=200) as stream:
        db.other.insert_one({"_id": 1})
        foreign = take(stream, 1)[0]["_id"]
    db.c.insert_one({"_id": 2})
    with pytest.raises(OperationFailure) as failure:
        db.c.watch(resume_after=foreign)
    assert failure.value.code == 280
    for token, code in [({"_data": "00"}, 50811), ({"_data": "82"}, 15), ({"x": 1}, 40647)]:
        with pytest.raises(OperationFailure) as failure:
            db.c.watch(resume_after=token)
        assert failure.value.code == code
    with pytest.raises(OperationFailure) as failure:
        db.command("aggregate", "c", pipeline=[{"$changeStream": {"noSuchOption": 1}}], cursor={})
    assert failure.value.code == 40415


def test_history_that_was_cut_off_is_lost(start, tmp_path):
    server = start(None, "--oplogSize", "1")
    db = server.client().test
    db.c.insert_one({"_id": 0})
    with db.c.watch(max_await_time_ms=200) as stream:
        db.c.insert_one({"_id": 1})
        token = take(stream, 1)[0]["_id"]
    for _ in range(8):
        db.c.insert_many([{"x": "y" * 1000} for _ in range(1000)])
    with pytest.raises(OperationFailure) as failure:
        db.c.watch(resume_after=token)
    assert failure.value.code == 286
    assert failure.value.has_error_label("NonResumableChangeStreamError")


def test_a_start_in_the_future_waits_for_it(db):
    db.c.insert_one({"_id": 0})
    future = Timestamp(int(time.time()) + 3600, 1)
    with db.c.watch(start_at_operation_time=future, max_await_time_ms=100) as stream:
        db.c.insert_one({"_id": 1})
        assert stream.try_next() is None


def test_a_start_in_the_future_begins_there(db):
    """Once that time is reached, with the first event at or after it."""
    db.c.insert_one({"_id": 0})
    start = Timestamp(int(time.time()) + 3, 1)
    with db.c.watch(start_at_operation_time=start, max_await_time_ms=100) as stream:
        with db.c.watch(max_await_time_ms=100) as everything:
            written, deadline = 0, time.monotonic() + 60
            seen = []
            while not (seen and seen[-1]["clusterTime"] > start):
                assert time.monotonic() < deadline, "the time does not come"
                written += 1
                db.c.insert_one({"_id": written})
                seen += take(everything, 1)
                time.sleep(0.02)
        expected = [event for event in seen if event["clusterTime"] >= start]
        assert len(expected) > 0
        assert take(stream, len(expected)) == expected
        assert stream.try_next() is None


def test_idle_streams_do_not_run(start):
    """A stream for which nothing happens costs no time of the processor, and wakes up when something does."""
    server = start()
    client = server.client(maxPoolSize=None)
    db = client.test
    db.c.insert_one({"_id": 0})
    streams = [db.c.watch(max_await_time_ms=60_000) for _ in range(50)]
    waiting = [threading.Thread(target=stream.try_next) for stream in streams]
    for thread in waiting:
        thread.start()

    def cpu_seconds():
        fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def waits():
        before = cpu_seconds()
        time.sleep(1)
        return cpu_seconds() - before < 0.05

    eventually(waits, what="fifty streams that cost nothing")
    db.c.insert_one({"_id": 1})
    for thread in waiting:
        thread.join(timeout=60)
        assert not thread.is_alive()
    for stream in streams:
        stream.close()


def test_a_stream_whose_client_leaves_is_closed(start):
    server = start()
    client = server.client()
    watcher = server.client(socketTimeoutMS=500)
    watcher.test.c.insert_one({"_id": 0})
    cursor = watcher.test.command("aggregate", "c", pipeline=[{"$changeStream": {}}], cursor={})["cursor"]["id"]

    def open_cursors():
        return client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"]

    assert open_cursors() == 1
    # The client stops waiting and closes its connection.
    with pytest.raises(pymongo.errors.NetworkTimeout):
        watcher.test.command("getMore", cursor, collection="c", maxTimeMS=60_000)
    eventually(lambda: open_cursors() == 0)


def test_the_oplog_is_tailed_as_meteor_does(db, client):
    db.c.insert_one({"_id": 0})
    oplog = client.local["oplog.rs"]
    last = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
    cursor = oplog.find(
        {"ts": {"$gt": last}, "ns": f"{db.name}.c", "op": {"$in": ["i", "u", "d"]}},
        cursor_type=pymongo.CursorType.TAILABLE_AWAIT,
        oplog_replay=True,
    ).max_await_time_ms(200)
    db.other.insert_one({"_id": 1})
    db.c.insert_one({"_id": 1})
    db.c.update_one({"_id": 1}, {"$set": {"a": 1}})
    db.c.delete_one({"_id": 1})
    found = []
    deadline = time.monotonic() + 60
    while len(found) < 3 and time.monotonic() < deadline:
        found.extend(entry["op"] for entry in [next(cursor, None)] if entry)
    assert found == ["i", "u", "d"]
    assert cursor.alive
    cursor.close()
