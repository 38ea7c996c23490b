"""Time-series collections with a driver: windows, deletes, updates, retries over a restart, copies of buckets, expiry."""

import random
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from bson import Binary, Int64
from harness import check
from pymongo import ASCENDING, DeleteMany, InsertOne
from pymongo.errors import OperationFailure

BEGIN = datetime(2024, 1, 1)
SENSORS = ["north", "south", "west"]


def lsid():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


def measurements(hours=30, step_s=60):
    """A day and more of three sensors, of which some come hours late."""
    dice = random.Random(14)
    times = [BEGIN + timedelta(seconds=s) for s in range(0, hours * 3600, step_s)]
    found = [
        {"_id": i, "t": t, "m": {"at": sensor}, "v": round(dice.uniform(-10, 40), 1), "n": dice.randrange(100)}
        for i, (t, sensor) in enumerate((t, sensor) for t in times for sensor in SENSORS)
    ]
    return sorted(found, key=lambda one: one["t"] + timedelta(seconds=dice.randrange(3 * 3600)))


def series(db, name="series", **options):
    timeseries = {"timeField": "t", "metaField": "m", **options.pop("timeseries", {})}
    return db.create_collection(name, timeseries=timeseries, **options)


WINDOWS = [
    {"$group": {
        "_id": {"at": "$m.at", "day": {"$dateTrunc": {"date": "$t", "unit": "day"}}},
        "avg": {"$avg": "$n"}, "low": {"$min": "$v"}, "high": {"$max": "$v"}, "count": {"$sum": 1},
    }},
    {"$sort": {"_id": 1}},
]


def windows_of(documents):
    groups = {}
    for found in documents:
        groups.setdefault((found["m"]["at"], found["t"].replace(hour=0, minute=0, second=0)), []).append(found)
    return [
        {
            "_id": {"at": at, "day": day},
            "avg": sum(found["n"] for found in group) / len(group),
            "low": min(found["v"] for found in group),
            "high": max(found["v"] for found in group),
            "count": len(group),
        }
        for (at, day), group in sorted(groups.items())
    ]


def plain(documents):
    return sorted(documents, key=lambda found: found["_id"])


def test_measurements_live_as_documents_do(start, tmp_path):
    server = start(tmp_path / "data")
    db = server.client().test
    coll = series(db)
    kept = measurements()
    for at in range(0, len(kept), 700):
        coll.insert_many(kept[at:at + 700], ordered=False)
    assert db.command("collStats", "series")["timeseries"]["bucketCount"] < len(kept) / 10
    assert plain(coll.find()) == plain(kept)
    assert list(coll.aggregate(WINDOWS)) == windows_of(kept)

    coll.create_index([("m.at", ASCENDING), ("t", ASCENDING)])
    noon = BEGIN + timedelta(hours=12)
    assert coll.delete_many({"t": {"$lt": noon}, "v": {"$gt": 20}}).deleted_count == sum(
        found["t"] < noon and found["v"] > 20 for found in kept
    )
    kept = [found for found in kept if not (found["t"] < noon and found["v"] > 20)]
    assert coll.delete_one({"_id": kept[0]["_id"]}).deleted_count == 1
    kept = kept[1:]

    moved = coll.update_many({"m.at": "west"}, {"$set": {"m.at": "east"}})
    assert moved.modified_count == sum(found["m"]["at"] == "west" for found in kept)
    kept = [{**found, "m": {"at": found["m"]["at"].replace("west", "east")}} for found in kept]
    assert plain(coll.find()) == plain(kept)
    with pytest.raises(OperationFailure) as refused:
        coll.update_one({"m.at": "east"}, {"$set": {"v": 1}})
    assert refused.value.code == 72

    db.command("collMod", "series", timeseries={"granularity": "minutes"})
    late = {"_id": -1, "t": BEGIN + timedelta(hours=31), "m": {"at": "east"}, "v": 0.5, "n": 1}
    coll.insert_one(late)
    kept.append(late)
    assert list(coll.aggregate(WINDOWS)) == windows_of(kept)

    assert server.stop() == 0
    check(tmp_path / "data")
    server.start()
    db = server.client().test
    assert plain(db.series.find()) == plain(kept)
    assert db.validate_collection("series")["valid"]


def test_buckets_can_be_copied(server, client, db):
    """What mongodump and mongorestore do: the buckets are read as they are listed, and inserted into the buckets of a new collection."""
    kept = measurements(hours=5)
    series(db).insert_many(kept)
    options = next(db.list_collections(filter={"name": "series"}))["options"]
    copy = client[f"{db.name}_copy"]
    try:
        copy.command({"create": "series", **options})
        buckets = list(db["system.buckets.series"].find())
        assert {bucket["control"]["version"] for bucket in buckets} == {1}
        copy["system.buckets.series"].insert_many(buckets)
        assert plain(copy.series.find()) == plain(kept)
        assert list(copy.series.aggregate(WINDOWS)) == windows_of(kept)
        assert copy.validate_collection("series")["valid"]
    finally:
        client.drop_database(copy)


def test_old_buckets_expire(start):
    server = start(None, "--setParameter", "ttlMonitorSleepSecs=1")
    coll = series(server.client().test, expireAfterSeconds=3600)
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    coll.insert_many([{"t": now - timedelta(days=2), "m": 1}, {"t": now, "m": 1}])
    end = time.monotonic() + 60
    while coll.count_documents({}) > 1 and time.monotonic() < end:
        time.sleep(0.2)
    assert [found["t"].date() for found in coll.find()] == [now.date()]


def retryable(command, number=1, session=None):
    return {**command, "lsid": session or lsid(), "txnNumber": Int64(number), "$db": "test"}


def test_a_retried_write_happens_once_even_after_a_crash(start, tmp_path):
    """Measurements of several statements share buckets, and a bucket that is there already is changed by some of them."""
    server = start(tmp_path / "data")
    series(server.client().test)

    def measured(first, count):
        return [{"_id": i, "t": BEGIN + timedelta(seconds=i), "m": SENSORS[i % 3], "v": i} for i in range(first, first + count)]

    inserts = [
        retryable({"insert": "series", "documents": measured(0, 30)}),
        retryable({"insert": "series", "documents": measured(30, 1)}),
        retryable({"insert": "series", "documents": measured(31, 3), "ordered": False, "stmtIds": [7, 9, 11]}),
        retryable({
            "bulkWrite": 1, "nsInfo": [{"ns": "test.series"}],
            "ops": [{"insert": 0, "document": found} for found in measured(34, 6)],
        }) | {"$db": "admin"},
    ]
    deletes = [
        retryable({"delete": "series", "deletes": [{"q": {"m": "north"}, "limit": 1}, {"q": {"m": "south"}, "limit": 1}]}),
        retryable({"findAndModify": "series", "query": {"m": "west"}, "remove": True}),
        retryable({"findAndModify": "series", "query": {"m": "north"}, "remove": True, "fields": {"m": 1}}),
    ]

    def send(commands):
        with server.raw() as raw:
            replies = [raw.command(command) for command in commands]
        names = ("ok", "n", "nInserted", "nErrors", "value", "lastErrorObject", "writeErrors")
        return [{name: reply[name] for name in names if name in reply} for reply in replies]

    def ids():
        return sorted(found["_id"] for found in server.client().test.series.find())

    first = send(inserts)
    assert [reply.get("n", reply.get("nInserted")) for reply in first] == [30, 1, 3, 6]
    assert ids() == list(range(40))
    server.kill()
    server.start()
    assert send(inserts) == first
    assert ids() == list(range(40)), "nothing was inserted twice"

    gone = send(deletes)
    assert gone[0]["n"] == 2 and gone[1]["value"]["m"] == "west" and set(gone[2]["value"]) == {"_id", "m"}
    left = ids()
    assert len(left) == 36
    server.kill()
    server.start()
    assert send(deletes) == gone
    assert send(inserts) == first
    assert ids() == left
    assert server.client().test.validate_collection("series")["valid"]


def test_a_retry_runs_what_the_crash_left_out(start, tmp_path):
    """Statements after one that failed were not executed: they are when the command is sent again, and the others are not."""
    server = start(tmp_path / "data")
    series(server.client().test)
    good = [{"_id": i, "t": BEGIN, "m": 1} for i in range(4)]
    command = retryable({"insert": "series", "documents": [*good[:2], {"_id": "no time"}, *good[2:]]})
    with server.raw() as raw:
        assert raw.command(command)["n"] == 2
    server.kill()
    server.start()
    with server.raw() as raw:
        command["documents"][2] = {"_id": 9, "t": BEGIN, "m": 1}
        reply = raw.command(command)
    assert (reply["n"], reply["retriedStmtIds"]) == (5, [0, 1])
    assert sorted(found["_id"] for found in server.client().test.series.find()) == [0, 1, 2, 3, 9]


def test_transactions_read_measurements_and_do_not_write_them(client, db):
    """Manual, "Time Series Collection Limitations": transactions may read, and must not write."""
    coll = series(db)
    coll.insert_one({"_id": 1, "t": BEGIN, "m": 1})
    writes = [
        lambda session: coll.insert_one({"t": BEGIN}, session=session),
        lambda session: coll.delete_one({"_id": 1}, session=session),
        lambda session: coll.update_many({"m": 1}, {"$set": {"m": 2}}, session=session),
        lambda session: coll.find_one_and_delete({"m": 1}, session=session),
        lambda session: coll.bulk_write([InsertOne({"t": BEGIN}), DeleteMany({})], session=session),
    ]
    for write in writes:
        with client.start_session() as session, session.start_transaction():
            assert coll.count_documents({}, session=session) == 1
            with pytest.raises(OperationFailure) as refused:
                write(session)
            errors = (refused.value.details or {}).get("writeErrors", [{"code": refused.value.code}])
            assert [error["code"] for error in errors] == [263]
            session.abort_transaction()
    assert list(coll.find()) == [{"_id": 1, "t": BEGIN, "m": 1}]
