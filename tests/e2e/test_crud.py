"""Create, read, update, delete through pymongo."""

import datetime
import re
import threading
import uuid

import bson
import pymongo
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from harness import eventually
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, CursorNotFound, DuplicateKeyError, OperationFailure, WriteError


@pytest.fixture
def people(db):
    db.people.insert_many(
        [
            {"_id": 1, "name": "Ada", "born": 1815, "tags": ["maths", "engines"], "home": {"city": "London"}},
            {"_id": 2, "name": "Grace", "born": 1906, "tags": ["compilers"], "home": {"city": "New York"}},
            {"_id": 3, "name": "Edsger", "born": 1930, "tags": ["graphs", "proofs"], "home": {"city": "Rotterdam"}},
            {"_id": 4, "name": "Barbara", "born": 1939, "tags": [], "home": {"city": "Los Angeles"}},
            {"_id": 5, "name": "Edgar", "born": 1923, "home": None},
        ]
    )
    return db.people


def ids(cursor):
    return [d["_id"] for d in cursor]


@pytest.mark.parametrize(
    "query, expected",
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"name": "Ada"}, [1]),
        ({"born": {"$gte": 1906, "$lt": 1930}}, [2, 5]),
        ({"born": {"$in": [1815, 1939]}}, [1, 4]),
        ({"name": {"$nin": ["Ada", "Grace"]}}, [3, 4, 5]),
        ({"name": {"$ne": "Ada"}, "born": {"$lte": 1923}}, [2, 5]),
        ({"home.city": "London"}, [1]),
        ({"tags": "graphs"}, [3]),
        ({"tags": {"$all": ["maths", "engines"]}}, [1]),
        ({"tags": {"$size": 0}}, [4]),
        ({"tags": {"$elemMatch": {"$gt": "f", "$lt": "h"}}}, [3]),
        ({"tags.0": "compilers"}, [2]),
        ({"tags": {"$exists": False}}, [5]),
        ({"home": None}, [5]),
        ({"home": {"$type": "object"}}, [1, 2, 3, 4]),
        ({"$or": [{"born": {"$gt": 1935}}, {"name": "Ada"}]}, [1, 4]),
        ({"$and": [{"born": {"$gt": 1900}}, {"born": {"$lt": 1925}}]}, [2, 5]),
        ({"$nor": [{"born": {"$gt": 1900}}, {"name": "x"}]}, [1]),
        ({"name": {"$not": {"$gt": "B"}}}, [1]),
        ({"name": re.compile("^Ed")}, [3, 5]),
        ({"name": {"$regex": "^ed", "$options": "i"}}, [3, 5]),
    ],
    ids=str,
)
def test_find(people, query, expected):
    assert ids(people.find(query).sort("_id")) == expected
    assert people.count_documents(query) == len(expected)


def test_sort_skip_limit_projection(people):
    assert ids(people.find().sort("born", -1).skip(1).limit(2)) == [3, 5]
    assert ids(people.find().sort([("home.city", 1), ("_id", -1)])) == [5, 1, 4, 2, 3]
    assert people.find_one({"_id": 1}, {"name": 1, "home.city": 1, "_id": 0}) == {
        "name": "Ada",
        "home": {"city": "London"},
    }
    assert people.find_one({"_id": 5}, {"name": 0, "born": 0}) == {"_id": 5, "home": None}
    assert people.find_one({"_id": 1}, {"tags": {"$slice": 1}, "name": 1}) == {"_id": 1, "name": "Ada", "tags": ["maths"]}


def test_natural_order_is_insertion_order(db):
    order = [5, 3, 9, 1, 7]
    db.c.insert_many([{"_id": i} for i in order])
    assert ids(db.c.find()) == order
    assert ids(db.c.find().sort("$natural", -1)) == order[::-1]


def test_distinct_and_counts(people):
    assert sorted(people.distinct("tags")) == ["compilers", "engines", "graphs", "maths", "proofs"]
    assert people.distinct("born", {"born": {"$lt": 1910}}) == [1815, 1906]
    assert people.estimated_document_count() == 5
    assert people.count_documents({}, skip=1, limit=3) == 3


def test_inserted_document_gets_an_id_first(db):
    document = {"a": 1}
    db.command({"insert": "c", "documents": [bson.raw_bson.RawBSONDocument(bson.encode(document))]})
    stored = db.c.find_one()
    assert list(stored) == ["_id", "a"] and isinstance(stored["_id"], ObjectId)


def test_update_operators(people):
    result = people.update_one({"_id": 1}, {"$set": {"home.country": "UK", "alive": False}, "$inc": {"born": 1}, "$push": {"tags": "poetry"}})
    assert (result.matched_count, result.modified_count) == (1, 1)
    assert people.find_one({"_id": 1}) == {
        "_id": 1, "name": "Ada", "born": 1816, "tags": ["maths", "engines", "poetry"],
        "home": {"city": "London", "country": "UK"}, "alive": False,
    }
    people.update_one({"_id": 1}, {"$unset": {"alive": ""}, "$pull": {"tags": {"$in": ["poetry", "maths"]}}})
    after = people.find_one({"_id": 1})
    assert "alive" not in after and after["tags"] == ["engines"]
    result = people.update_many({"born": {"$gt": 1900}}, {"$set": {"century": 20}})
    assert (result.matched_count, result.modified_count) == (4, 4)
    result = people.update_many({"century": 20}, {"$set": {"century": 20}})
    assert (result.matched_count, result.modified_count) == (4, 0), "nothing changes: nothing is written"


def test_replace_and_upsert(people):
    people.replace_one({"_id": 2}, {"name": "Admiral"})
    assert people.find_one({"_id": 2}) == {"_id": 2, "name": "Admiral"}
    result = people.update_one({"_id": 9, "kind": "new"}, {"$set": {"a.b": 1}, "$setOnInsert": {"c": 2}}, upsert=True)
    assert result.upserted_id == 9
    assert people.find_one({"_id": 9}) == {"_id": 9, "kind": "new", "a": {"b": 1}, "c": 2}
    result = people.update_one({"name": "Nobody"}, {"$inc": {"n": 1}}, upsert=True)
    assert isinstance(result.upserted_id, ObjectId)


def test_positional_updates(people):
    people.update_one({"_id": 3, "tags": "proofs"}, {"$set": {"tags.$": "weakest preconditions"}})
    assert people.find_one({"_id": 3})["tags"] == ["graphs", "weakest preconditions"]
    people.update_one({"_id": 3}, {"$set": {"tags.$[]": "x"}})
    assert people.find_one({"_id": 3})["tags"] == ["x", "x"]


def test_delete(people):
    assert people.delete_one({"born": {"$gt": 1900}}).deleted_count == 1
    assert people.delete_many({"born": {"$gt": 1900}}).deleted_count == 3
    assert people.delete_many({"born": {"$gt": 1900}}).deleted_count == 0
    assert ids(people.find()) == [1]


def test_find_and_modify(people):
    before = people.find_one_and_update({"_id": 1}, {"$inc": {"born": 5}})
    assert before["born"] == 1815
    after = people.find_one_and_update(
        {"born": {"$gt": 1900}}, {"$set": {"found": True}}, sort=[("born", -1)],
        projection={"name": 1, "found": 1}, return_document=ReturnDocument.AFTER,
    )
    assert after == {"_id": 4, "name": "Barbara", "found": True}
    assert people.find_one_and_replace({"_id": 2}, {"x": 1}, return_document=ReturnDocument.AFTER) == {"_id": 2, "x": 1}
    assert people.find_one_and_delete({"_id": 3})["name"] == "Edsger"
    assert people.find_one_and_delete({"_id": 3}) is None
    new = people.find_one_and_update({"_id": 77}, {"$set": {"a": 1}}, upsert=True, return_document=ReturnDocument.AFTER)
    assert new == {"_id": 77, "a": 1}


def test_bulk_write(people):
    result = people.bulk_write(
        [
            InsertOne({"_id": 10}), UpdateOne({"_id": 1}, {"$set": {"a": 1}}), UpdateMany({}, {"$set": {"b": 1}}),
            ReplaceOne({"_id": 11}, {"r": 1}, upsert=True), DeleteOne({"_id": 2}), DeleteMany({"born": {"$gt": 1925}}),
        ]
    )
    assert (result.inserted_count, result.matched_count, result.modified_count) == (1, 7, 7)
    assert result.deleted_count == 3 and result.upserted_ids == {3: 11}


def test_ordered_stops_and_unordered_goes_on(db):
    writes = [InsertOne({"_id": 1}), InsertOne({"_id": 1}), InsertOne({"_id": 2}), InsertOne({"_id": 2}), InsertOne({"_id": 3})]
    with pytest.raises(BulkWriteError) as error:
        db.ordered.bulk_write(writes)
    assert error.value.details["nInserted"] == 1
    assert [e["index"] for e in error.value.details["writeErrors"]] == [1]
    with pytest.raises(BulkWriteError) as error:
        db.unordered.bulk_write(writes, ordered=False)
    assert error.value.details["nInserted"] == 3
    assert [(e["index"], e["code"]) for e in error.value.details["writeErrors"]] == [(1, 11000), (3, 11000)]


def test_bulk_write_over_collections(db):
    """The bulkWrite command of MongoDB 8."""
    client = db.client
    result = client.bulk_write(
        [
            InsertOne({"_id": 1, "n": 1}, namespace=f"{db.name}.a"),
            InsertOne({"_id": 1}, namespace=f"{db.name}.b"),
            UpdateOne({"_id": 1}, {"$inc": {"n": 1}}, namespace=f"{db.name}.a"),
            DeleteOne({"_id": 1}, namespace=f"{db.name}.b"),
        ]
    )
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (2, 1, 1)
    assert db.a.find_one() == {"_id": 1, "n": 2} and db.b.count_documents({}) == 0


# -- cursors ----------------------------------------------------------------------------------


@pytest.fixture
def numbers(db):
    db.numbers.insert_many([{"_id": i, "n": i % 7, "pad": "x" * 100} for i in range(2500)])
    return db.numbers


def test_first_batch_is_101(numbers):
    reply = numbers.database.command({"find": "numbers"})
    assert len(reply["cursor"]["firstBatch"]) == 101
    cursor = reply["cursor"]["id"]
    more = numbers.database.command({"getMore": Int64(cursor), "collection": "numbers"})["cursor"]
    assert len(more["nextBatch"]) == 2399 and more["id"] == 0


@pytest.mark.parametrize("batch", [1, 2, 100, 101, 1000, 5000])
def test_cursors_over_several_batches(numbers, batch):
    if batch == 1:
        assert ids(numbers.find({"_id": {"$lt": 20}}, batch_size=1)) == list(range(20))
    else:
        assert ids(numbers.find(batch_size=batch)) == list(range(2500))
        assert ids(numbers.find({"n": 3}, batch_size=batch).sort("_id", -1)) == [i for i in range(2499, -1, -1) if i % 7 == 3]


def test_batches_end_at_16_mib(db):
    db.big.insert_many([{"_id": i, "pad": "x" * (1024 * 1024)} for i in range(40)])
    first = db.command({"find": "big", "batchSize": 1000})["cursor"]
    assert 1 <= len(first["firstBatch"]) <= 16
    assert ids(db.big.find(batch_size=1000)) == list(range(40))


@pytest.mark.parametrize(
    "opening",
    [
        {"find": "numbers", "limit": 5, "batchSize": 3},
        {"find": "numbers", "limit": 5, "batchSize": 3, "sort": {"n": 1}},
        {"find": "numbers", "limit": 3, "batchSize": 3},
        {"find": "numbers", "limit": 3, "batchSize": 3, "sort": {"n": 1}},
        {"find": "numbers", "limit": 3, "batchSize": 3, "projection": {"n": 1}},
        {"aggregate": "numbers", "pipeline": [{"$limit": 3}], "cursor": {"batchSize": 3}},
        {"aggregate": "numbers", "pipeline": [{"$sort": {"n": 1}}, {"$limit": 3}], "cursor": {"batchSize": 3}},
        {"aggregate": "numbers", "pipeline": [{"$limit": 3}, {"$set": {"a": [1]}}, {"$unwind": "$a"}], "cursor": {"batchSize": 3}},
        {"find": "numbers", "filter": {"_id": {"$lt": 3}}, "batchSize": 3, "sort": {"n": 1}},
    ],
)
def test_a_full_batch_leaves_its_cursor_open(numbers, opening):
    """As MongoDB since 5.0, of which the drivers' specification of find, getMore and killCursors tells: nothing is looked for behind it."""
    db = numbers.database
    cursor = db.command(opening)["cursor"]
    wanted = opening.get("limit", 3)
    while wanted > 3:
        assert len(cursor["firstBatch"]) == 3 and cursor["id"] != 0
        wanted -= 3
        cursor = db.command("getMore", cursor["id"], collection="numbers", batchSize=wanted)["cursor"]
        cursor["firstBatch"] = cursor["nextBatch"]
    assert len(cursor["firstBatch"]) == wanted and cursor["id"] != 0
    last = db.command("getMore", cursor["id"], collection="numbers", batchSize=1)["cursor"]
    assert last["nextBatch"] == [] and last["id"] == 0


def test_a_batch_with_room_ends_its_cursor(numbers):
    """So drivers ask for one more than the limit; the lists of commands end with their last batch, and so does a single batch."""
    db = numbers.database
    for more in ({"batchSize": 4}, {"batchSize": 3, "singleBatch": True}, {}):
        cursor = db.command({"find": "numbers", "limit": 3} | more)["cursor"]
        assert len(cursor["firstBatch"]) == 3 and cursor["id"] == 0
    count = len(db.list_collection_names())
    assert db.command({"listCollections": 1, "cursor": {"batchSize": count}})["cursor"]["id"] == 0


def test_a_cursor_sees_later_batches_of_its_own_range_once(numbers):
    """Writes while a cursor is open neither duplicate nor lose what it had to return."""
    cursor = numbers.find({"_id": {"$lt": 2500}}, batch_size=100)
    seen = [next(cursor)["_id"] for _ in range(150)]
    numbers.update_many({}, {"$set": {"pad": "y" * 300}})
    numbers.insert_one({"_id": 9999})
    seen += [d["_id"] for d in cursor]
    assert seen == list(range(2500))


def test_kill_cursors(numbers):
    db = numbers.database
    cursor = db.command({"find": "numbers", "batchSize": 2})["cursor"]["id"]
    reply = db.command({"killCursors": "numbers", "cursors": [Int64(cursor), Int64(12345)]})
    assert reply["cursorsKilled"] == [cursor] and reply["cursorsNotFound"] == [12345]
    with pytest.raises(CursorNotFound) as error:
        db.command({"getMore": Int64(cursor), "collection": "numbers"})
    assert error.value.code == 43


def test_get_more_of_another_collection_is_refused(numbers):
    db = numbers.database
    cursor = db.command({"find": "numbers", "batchSize": 2})["cursor"]["id"]
    with pytest.raises(OperationFailure) as error:
        db.command({"getMore": Int64(cursor), "collection": "other"})
    assert error.value.code in (13, 43)


def test_single_batch(numbers):
    reply = numbers.database.command({"find": "numbers", "batchSize": 3, "singleBatch": True})
    assert reply["cursor"]["id"] == 0 and len(reply["cursor"]["firstBatch"]) == 3


def test_empty_first_batch(numbers):
    cursor = numbers.database.command({"find": "numbers", "batchSize": 0})["cursor"]
    assert cursor["firstBatch"] == [] and cursor["id"] != 0


# -- collections and databases ----------------------------------------------------------------


def test_collections(db):
    db.create_collection("a")
    db.b.insert_one({"x": 1})
    assert sorted(db.list_collection_names()) == ["a", "b"]
    listed = {c["name"]: c for c in db.list_collections()}
    assert listed["a"]["type"] == "collection"
    assert isinstance(listed["a"]["info"]["uuid"], (uuid.UUID, Binary))
    assert listed["a"]["info"]["readOnly"] is False
    assert listed["a"]["idIndex"]["key"] == {"_id": 1}
    with pytest.raises(OperationFailure) as error:
        db.command({"create": "a", "capped": True, "size": 4096})
    assert error.value.code == 48
    db.b.rename("c")
    assert sorted(db.list_collection_names()) == ["a", "c"]
    with pytest.raises(OperationFailure) as error:
        db.c.rename("a")
    assert error.value.code == 48
    db.c.rename("a", dropTarget=True)
    assert db.a.find_one({}, {"_id": 0}) == {"x": 1}
    db.drop_collection("a")
    assert db.list_collection_names() == []


def test_databases(db):
    client = db.client
    db.c.insert_one({})
    assert db.name in client.list_database_names()
    client.drop_database(db.name)
    assert db.name not in client.list_database_names()


def test_stats(db):
    db.c.insert_many([{"_id": i, "pad": "x" * 1000} for i in range(100)])
    stats = db.command("collStats", "c")
    assert stats["count"] == 100 and stats["size"] > 100_000 and stats["nindexes"] == 1
    assert stats["ns"] == f"{db.name}.c"
    stats = db.command("dbStats")
    assert stats["collections"] == 1 and stats["objects"] == 100
    (stage,) = db.c.aggregate([{"$collStats": {"count": {}, "storageStats": {}}}])
    assert stage["count"] == 100 and stage["storageStats"]["count"] == 100


# -- errors -----------------------------------------------------------------------------------


def test_duplicate_key(db):
    db.c.insert_one({"_id": "a"})
    with pytest.raises(DuplicateKeyError) as error:
        db.c.insert_one({"_id": "a"})
    assert error.value.code == 11000
    assert error.value.details["keyPattern"] == {"_id": 1} and error.value.details["keyValue"] == {"_id": "a"}
    assert error.value.details["errmsg"].startswith("E11000 duplicate key error collection: ")


@pytest.mark.parametrize(
    "command, code",
    [
        ({"find": "c", "filter": {"a": {"$noSuchOperator": 1}}}, 2),
        ({"find": "c", "filter": {"$and": []}}, 2),
        ({"find": "c", "filter": 5}, 14),
        ({"find": "c", "sort": {"a": 5}}, 15975),
        ({"find": "c", "projection": {"a": 1, "b": 0}}, 31254),
        ({"find": "c", "limit": -1}, 2),
        ({"find": ""}, 73),
        ({"insert": "c"}, 40414),
        ({"insert": "c", "documents": []}, 16),
        ({"renameCollection": "a.b", "to": "a.c"}, 13),
        ({"killCursors": "c"}, 40414),
        ({"aggregate": "c", "pipeline": [{"$noSuchStage": {}}], "cursor": {}}, 40324),
    ],
    ids=str,
)
def test_command_errors(db, command, code):
    with pytest.raises(OperationFailure) as error:
        db.command(command)
    assert error.value.code == code, error.value.details


@pytest.mark.parametrize(
    "update, code",
    [
        ({"$set": {"_id": 2}}, 66),
        ({"$inc": {"name": 1}}, 14),
        ({"$push": {"name": 1}}, 2),
        ({"$noSuchOperator": {"a": 1}}, 9),
        ({"$set": {"a": 1}, "$inc": {"a": 1}}, 40),
        ({"$set": {"name.first": 1}}, 28),
    ],
    ids=str,
)
def test_update_errors(db, update, code):
    db.c.insert_one({"_id": 1, "name": "x"})
    with pytest.raises(WriteError) as error:
        db.c.update_one({"_id": 1}, update)
    assert error.value.code == code, error.value.details
    assert db.c.find_one() == {"_id": 1, "name": "x"}


def test_document_too_large(db):
    with pytest.raises(pymongo.errors.PyMongoError):
        db.c.insert_one({"pad": b"x" * (16 * 1024 * 1024)})
    db.c.insert_one({"_id": 1, "pad": b"x" * (16 * 1024 * 1024 - 64)})
    with pytest.raises(WriteError):
        db.c.update_one({"_id": 1}, {"$set": {"more": "y" * 1000}})
    assert "more" not in db.c.find_one()


# -- types ------------------------------------------------------------------------------------

EVERY_TYPE = {
    "double": 1.5, "nan": float("inf"), "string": "grüße \0 \U0001f600", "document": {"a": {"b": {}}}, "array": [1, [2, []], {}],
    "binary": b"\0\1\2", "subtype": Binary(b"abc", 128), "uuid": Binary(uuid.uuid4().bytes, 4),
    "objectid": ObjectId(), "true": True, "false": False, "date": datetime.datetime(2024, 2, 29, 12, 30, 1, 5000),
    "old": datetime.datetime(1901, 1, 1), "null": None, "regex": Regex("^a.*b$", "im"), "dbref": DBRef("c", ObjectId()),
    "code": Code("function() {}"), "scoped": Code("x", {"x": 1}), "int": -1, "timestamp": Timestamp(5, 7),
    "long": Int64(1 << 60), "smallong": Int64(1), "decimal": Decimal128("1.230E-10"), "min": MinKey(), "max": MaxKey(),
    "": "empty name", "dup": [None, False, 0, ""],
}


def test_every_type_round_trips_byte_for_byte(db):
    sent = bson.encode({"_id": 1, **EVERY_TYPE})
    raw = db.get_collection("c", bson.codec_options.CodecOptions(document_class=bson.raw_bson.RawBSONDocument))
    raw.insert_one(bson.raw_bson.RawBSONDocument(sent))
    assert raw.find_one().raw == sent
    for name, value in EVERY_TYPE.items():
        if name and not isinstance(value, (Regex, DBRef)) and name != "array":
            assert db.c.count_documents({name: value}) == 1, name


def test_order_across_types(db):
    ascending = [MinKey(), None, -5, 3.5, Int64(4), "a", {"a": 1}, b"x", ObjectId(), False, True,
                 datetime.datetime(2020, 1, 1), Timestamp(1, 1), Regex("a"), MaxKey()]
    for i in reversed(range(len(ascending))):
        db.c.insert_one({"_id": i, "v": ascending[i]})
    assert ids(db.c.find().sort("v", 1)) == list(range(len(ascending)))
    assert ids(db.c.find().sort("v", -1)) == list(reversed(range(len(ascending))))


@pytest.mark.parametrize("concern", [{"w": 0}, {"w": 1}, {"w": 1, "j": True}, {"w": "majority"}], ids=str)
def test_write_concerns(db, concern):
    collection = db.get_collection("c", write_concern=pymongo.WriteConcern(**concern))
    result = collection.insert_one({"_id": 1})
    assert result.acknowledged == (concern.get("w") != 0)
    eventually(lambda: db.c.count_documents({}) == 1)


def test_write_concern_beyond_one_node_is_not_met(db):
    reply = db.command({"insert": "c", "documents": [{}], "writeConcern": {"w": 2, "wtimeout": 100}})
    assert reply["n"] == 1 and reply["writeConcernError"]["code"] == 100


def test_explain_names_the_plan(db):
    db.c.insert_many([{"_id": i} for i in range(10)])
    plan = db.c.find({"_id": 3}).explain()["queryPlanner"]["winningPlan"]
    assert plan["stage"] == "EXPRESS_IXSCAN"
    assert "COLLSCAN" in str(db.c.find({"x": 3}).explain()["queryPlanner"]["winningPlan"])


def test_oplog_has_mongodbs_entries(db):
    db.c.insert_one({"_id": 1, "a": 1})
    db.c.update_one({"_id": 1}, {"$set": {"a": 2}})
    db.c.delete_one({"_id": 1})
    entries = list(db.client.local["oplog.rs"].find({"ns": f"{db.name}.c"}))
    assert [e["op"] for e in entries] == ["i", "u", "d"]
    assert entries[0]["o"] == {"_id": 1, "a": 1}
    assert entries[1]["o2"] == {"_id": 1} and entries[2]["o"] == {"_id": 1}
    assert all(isinstance(e["ts"], Timestamp) and e["v"] == 2 and "wall" in e and "ui" in e for e in entries)
    times = [e["ts"] for e in entries]
    assert times == sorted(set(times))


def test_the_results_of_a_bulk_write_come_in_several_batches(client, db):
    """Two upserts with `_id`s of 8 MiB do not fit one reply (specification "Bulk Write", prose test 9)."""
    big = "a" * (8 * 1024 * 1024)
    ops = [
        {"update": 0, "filter": {"_id": big + str(i)}, "updateMods": {"$set": {"x": 1}}, "upsert": True} for i in range(2)
    ]
    reply = client.admin.command({"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": f"{db.name}.c"}]})
    assert reply["nUpserted"] == 2
    assert len(reply["cursor"]["firstBatch"]) == 1
    more = client.admin.command({"getMore": reply["cursor"]["id"], "collection": "$cmd.bulkWrite"})
    assert [result["idx"] for result in more["cursor"]["nextBatch"]] == [1]
    assert more["cursor"]["id"] == 0


def test_a_cursor_whose_index_is_dropped(db):
    """It ends with an error: what it has not given is not passed over."""
    db.n.insert_many([{"_id": n, "a": n, "b": n % 3} for n in range(200)])
    for name, ask in {
        "hint": lambda: db.n.find({}, hint="a_1", batch_size=2),
        "filter": lambda: db.n.find({"a": {"$gte": 0}}, batch_size=2),
        "covered": lambda: db.n.find({"a": {"$gte": 0}}, {"_id": 0, "a": 1}, batch_size=2),
        "pipeline": lambda: db.n.aggregate([{"$match": {"a": {"$gte": 0}}}], batchSize=2),
        "either": lambda: db.n.find({"$or": [{"a": {"$gte": 5}}, {"b": 1}]}, batch_size=2),
    }.items():
        db.n.create_index("a")
        db.n.create_index("b")
        cursor = ask()
        next(cursor)
        db.n.drop_index("a_1")
        if name == "hint":
            db.n.create_index("a")
        with pytest.raises(OperationFailure, match="dropped") as killed:
            list(cursor)
        assert killed.value.code == 175, name
        db.n.drop_indexes()
    # One that it does not read may go.
    db.n.create_index("b")
    cursor = db.n.find({}, batch_size=2)
    next(cursor)
    db.n.drop_index("b_1")
    assert len(list(cursor)) == 199


def test_an_update_of_many_whose_collection_is_dropped(db):
    """What is left of it is told."""
    db.n.insert_many([{"_id": n, "pad": "x" * 20} for n in range(60_000)])
    outcome = []

    def update():
        try:
            outcome.append(db.n.update_many({}, {"$set": {"a": 1}}).modified_count)
        except WriteError as error:
            outcome.append(error)

    writer = threading.Thread(target=update)
    writer.start()
    while not db.n.find_one({"a": 1}):
        pass
    db.n.drop()
    writer.join()
    assert outcome[0] == 60_000 or outcome[0].code == 175


def test_a_limit_of_deletes_that_is_no_whole_number(db):
    db.n.insert_many([{"_id": n} for n in range(3)])
    for limit in [0.5, -0.5, 1.5, bson.Decimal128("0.5"), 2]:
        with pytest.raises(OperationFailure) as refused:
            db.command("delete", "n", deletes=[{"q": {}, "limit": limit}])
        assert refused.value.code == 9 and f"Got {limit}" in str(refused.value)
    assert db.command("delete", "n", deletes=[{"q": {}, "limit": bson.Decimal128("1.0")}])["n"] == 1


def test_transactions_that_are_listed_and_refused(db):
    client = db.client
    with client.start_session() as session, session.start_transaction():
        db.n.insert_one({"_id": 1}, session=session)
        idle = [entry for entry in client.admin.command("currentOp")["inprog"] if entry.get("type") == "idleSession"]
        assert [entry["desc"] for entry in idle] == ["inactive transaction"]
        session.abort_transaction()
    for write in [lambda session: client.admin.things.insert_one({}, session=session), lambda session: client.admin.things.find_one({}, session=session)]:
        with client.start_session() as session:
            session.start_transaction()
            with pytest.raises(OperationFailure) as refused:
                write(session)
            assert refused.value.code == 263
    with client.start_session() as session, session.start_transaction():
        client.bulk_write([InsertOne({"_id": 2}, namespace=f"{db.name}.n")], session=session)
    assert db.n.count_documents({}) == 1


def test_backwards_from_an_end_that_is_not_in(db):
    """Keys of unique indexes end with their values."""
    db.n.create_index("u", unique=True)
    db.n.create_index([("v", -1)], unique=True)
    db.n.create_index([("a", 1), ("b", 1)], unique=True)
    db.n.insert_many([{"_id": n, "u": n, "v": n, "a": n // 5, "b": n % 5} for n in range(30)])
    for field in ["_id", "u", "v"]:
        for order in [1, -1]:
            for low, high in [("$gt", "$lt"), ("$gte", "$lt"), ("$gt", "$lte"), ("$gte", "$lte")]:
                found = [each[field] for each in db.n.find({field: {low: 10, high: 20}}).sort(field, order)]
                expected = range(10 + (low == "$gt"), 20 + (high == "$lte"))
                assert found == sorted(expected, reverse=order < 0), (field, order, low, high)
    found = db.n.find({"a": {"$gt": 2}, "b": {"$lt": 2}}).sort([("a", -1), ("b", -1)]).hint([("a", 1), ("b", 1)])
    assert [(each["a"], each["b"]) for each in found] == [(5, 1), (5, 0), (4, 1), (4, 0), (3, 1), (3, 0)]
    last = db.n.aggregate([{"$sort": {"u": -1}}, {"$group": {"_id": "$u", "first": {"$first": "$a"}}}])
    assert len(list(last)) == 30
