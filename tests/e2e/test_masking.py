"""Masking by role: what users see of a collection that has a policy, and that it cannot be got around."""

import datetime

import pymongo
import pytest
from pymongo.errors import BulkWriteError, OperationFailure

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
POLICY = {
    "ssn": "hide",
    "name": "hash",
    "email": "email",
    "card": "lastFour",
    "born": "year",
    "notes": "null",
    "homes.street": "null",
}
PEOPLE = [
    {
        "_id": n,
        "ssn": f"{n}23-45-6789",
        "name": name,
        "email": f"{name}@example.org",
        "card": f"4111 1111 1111 000{n}",
        "born": datetime.datetime(1980 + n, 6, 5),
        "notes": ["private", n],
        "homes": [{"city": city, "street": f"{name} street"}],
        "city": city,
        "age": 10 * n,
    }
    for n, (name, city) in enumerate([("ann", "Pylos"), ("bob", "Methoni"), ("ann", "Pylos")], start=1)
]
# What of PEOPLE nobody may learn who is masked.
SECRETS = ["23-45-6789", '"ann"', "'ann'", "ann@", "bob@", "1111 1111", "private", " street", "datetime(1981, 6"]


def refused(code, act, *args, **kwargs):
    with pytest.raises(OperationFailure) as caught:
        act(*args, **kwargs)
    assert caught.value.code == code, caught.value
    assert not any(secret in str(caught.value) for secret in SECRETS), caught.value


class World:
    def __init__(self, server):
        self.server = server
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        self.root = server.client(**ROOT)
        self.db = self.root.shop
        self.db.create_collection("people", masking=POLICY)
        self.db.people.insert_many(PEOPLE)
        self.db.people.create_index("card")
        self.db.people.create_index([("city", 1), ("ssn", 1)])
        self.db.people.create_index("city")
        self.db.people.create_index("ssn", unique=True)

    def user(self, name, *roles, db="shop"):
        self.root[db].command("createUser", name, pwd="x", roles=list(roles))
        return self.server.client(username=name, password="x", authSource=db).shop


@pytest.fixture
def world(start):
    return World(start(None, "--auth"))


def check_document(doc):
    """Document 1 as somebody masked sees it."""
    assert "ssn" not in doc
    assert len(doc["name"]) == 64
    assert doc["email"] == "a***@example.org"
    assert doc["card"] == "****0001"
    assert doc["born"] == datetime.datetime(1981, 1, 1)
    assert doc["notes"] is None
    assert doc["homes"] == [{"city": "Pylos", "street": None}]
    assert (doc["city"], doc["age"]) == ("Pylos", 10)


def nothing_secret(value):
    text = str(value)
    assert not any(secret in text for secret in SECRETS), text


def test_reads_are_masked(world):
    read = world.user("reader", "read")
    check_document(read.people.find_one({"_id": 1}))
    check_document(read.people.find_one({"city": "Pylos"}, sort=[("_id", 1)]))
    check_document(list(read.people.aggregate([{"$match": {"_id": 1}}]))[0])
    world.db.create_collection("pylos", viewOn="people", pipeline=[{"$match": {"city": "Pylos"}}])
    check_document(read.pylos.find_one({"_id": 1}))
    names = sorted(read.people.distinct("name"))
    assert len(names) == 2 and "ann" not in names
    assert read.people.distinct("ssn") == []
    assert {row["_id"]: row["n"] for row in read.people.aggregate([{"$group": {"_id": "$card", "n": {"$sum": 1}}}])} == {
        "****0001": 1,
        "****0002": 1,
        "****0003": 1,
    }
    world.db.visits.insert_one({"_id": 1, "who": 1, "card": PEOPLE[0]["card"]})
    joins = [
        {"$lookup": {"from": "people", "localField": "who", "foreignField": "_id", "as": "p"}},
        {"$lookup": {"from": "people", "let": {"w": "$who"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$w"]}}}], "as": "p"}},
        {"$graphLookup": {"from": "people", "startWith": "$who", "connectFromField": "x", "connectToField": "_id", "as": "p"}},
    ]
    for join in joins:
        (row,) = read.visits.aggregate([join])
        check_document(row["p"][0])
    (row,) = read.visits.aggregate([{"$lookup": {"from": "people", "localField": "card", "foreignField": "card", "as": "p"}}])
    assert row["p"] == []
    rows = list(read.visits.aggregate([{"$unionWith": "people"}, {"$match": {"age": 10}}]))
    check_document(rows[0])
    (facets,) = read.people.aggregate([{"$facet": {"a": [{"$match": {"_id": 1}}]}}])
    check_document(facets["a"][0])
    nothing_secret(list(read.people.aggregate([{"$project": {"all": "$$ROOT"}}])))
    nothing_secret(list(read.people.aggregate([{"$sample": {"size": 3}}])))


def test_who_may_unmask_sees_plain(world):
    owner = world.user("owner", "dbOwner")
    assert owner.people.find_one({"ssn": "123-45-6789"}) == PEOPLE[0]
    world.root.shop.command(
        "createRole",
        "auditor",
        roles=["read"],
        privileges=[{"resource": {"db": "shop", "collection": "people"}, "actions": ["unmask"]}],
    )
    auditor = world.user("ann", "auditor")
    assert auditor.people.find_one({"card": PEOPLE[1]["card"]}) == PEOPLE[1]
    # A right that is taken away is gone with the next command.
    world.root.shop.command("revokeRolesFromUser", "ann", roles=["auditor"])
    world.root.shop.command("grantRolesToUser", "ann", roles=["read"])
    check_document(auditor.people.find_one({"_id": 1}))
    for role in ("read", "readWrite", "dbAdmin", "userAdmin"):
        (told,) = world.root.shop.command("rolesInfo", {"role": role, "db": "shop"}, showPrivileges=True)["roles"]
        assert not any("unmask" in privilege["actions"] for privilege in told["privileges"])


@pytest.mark.parametrize(
    "filter",
    [
        {"ssn": "123-45-6789"},
        {"ssn": {"$exists": True}},
        {"ssn": {"$gt": ""}},
        {"name": "ann"},
        {"name": {"$regex": "^ann$"}},
        {"email": {"$in": ["ann@example.org", "bob@example.org"]}},
        {"card": "4111 1111 1111 0001"},
        {"card": {"$gte": "4111"}},
        {"born": {"$gt": datetime.datetime(1981, 3, 1), "$lt": datetime.datetime(1981, 12, 1)}},
        {"notes": "private"},
        {"homes.street": "ann street"},
        {"homes": {"$elemMatch": {"street": "ann street"}}},
        {"$expr": {"$eq": ["$card", "4111 1111 1111 0001"]}},
        {"$expr": {"$eq": [{"$getField": {"field": "ssn", "input": "$$ROOT"}}, "123-45-6789"]}},
        {"$or": [{"ssn": "123-45-6789"}, {"name": "bob"}]},
        {"$nor": [{"ssn": {"$ne": "123-45-6789"}}]},
        {"city": "Pylos", "ssn": "123-45-6789"},
        {"$jsonSchema": {"properties": {"ssn": {"enum": ["123-45-6789"]}}, "required": ["ssn"]}},
    ],
)
def test_filters_see_what_their_user_sees(world, filter):
    """None of these finds anything, by whatever way one asks."""
    read = world.user("reader", "readWrite")
    assert list(read.people.find(filter)) == []
    assert read.people.count_documents(filter) == 0
    assert read.command("count", "people", query=filter)["n"] == 0
    assert read.people.distinct("_id", filter) == []
    for hint in ("card_1", "ssn_1", "city_1_ssn_1"):
        assert list(read.people.find(filter).hint(hint)) == []
    explained = read.command("explain", {"find": "people", "filter": filter}, verbosity="executionStats")
    assert "card_1" not in str(explained) and "ssn_1" not in str(explained)
    # Writes that depend on masked fields are refused: what they did would tell.
    refused(13, read.people.delete_one, filter)
    refused(13, read.people.update_one, filter, {"$set": {"seen": True}})
    refused(13, read.people.find_one_and_update, filter, {"$set": {"seen": True}})
    refused(13, read.command, "explain", {"delete": "people", "deletes": [{"q": filter, "limit": 0}]})
    assert world.db.people.count_documents({"seen": True}) == 0


def test_plain_fields_still_use_their_indexes(world):
    read = world.user("reader", "read")
    explained = read.command("explain", {"find": "people", "filter": {"city": "Pylos", "name": "x"}}, verbosity="executionStats")
    text = str(explained)
    assert "'indexName': 'city_1'" in text and "city_1_ssn_1" not in text
    nothing_secret(explained)


def test_order_tells_nothing(world):
    read = world.user("reader", "read")
    for field in ("ssn", "notes", "homes.street"):
        # All are alike to whoever is masked, so the order is that of the collection.
        for direction in (1, -1):
            assert [doc["_id"] for doc in read.people.find().sort([(field, direction), ("_id", 1)])] == [1, 2, 3]
    pipeline = [{"$setWindowFields": {"sortBy": {"ssn": 1}, "output": {"r": {"$rank": {}}}}}]
    assert {doc["r"] for doc in read.people.aggregate(pipeline)} == {1}


def test_writes_tell_nothing(world):
    write = world.user("writer", "readWrite")
    people = write.people
    # Fields that are not masked can be changed, and what comes back is masked.
    check_document(people.find_one_and_update({"_id": 1}, {"$set": {"seen": 1}}))
    check_document(people.find_one_and_update({"_id": 1}, {"$set": {"seen": 2}}, return_document=pymongo.ReturnDocument.AFTER))
    assert people.update_many({"city": "Pylos"}, {"$inc": {"age": 0}, "$set": {"a": 1}}).matched_count == 2
    for update in (
        {"$set": {"ssn": "123-45-6789"}},
        {"$set": {"card": "x"}},
        {"$unset": {"email": 1}},
        {"$rename": {"ssn": "plain"}},
        {"$rename": {"age": "name"}},
        {"$max": {"born": datetime.datetime(1981, 3, 1)}},
        {"$pull": {"homes": {"street": "ann street"}}},
        {"$set": {"homes.0.city": "x"}},
        [{"$set": {"plain": "$ssn"}}],
        [{"$replaceWith": {"all": "$$ROOT"}}],
    ):
        refused(13, people.update_one, {"_id": 1}, update)
        refused(13, people.find_one_and_update, {"_id": 1}, update)
        refused(13, people.update_one, {"_id": 9}, update, upsert=True)
    refused(13, people.replace_one, {"_id": 1}, {"city": "x"})
    refused(13, people.update_one, {"_id": 1}, {"$set": {"homes.$[h].n": 1}}, array_filters=[{"h.street": "ann street"}])
    refused(13, people.find_one_and_delete, {"city": "Pylos"}, sort=[("ssn", 1)])
    # A duplicate key would tell that somebody has it.
    with pytest.raises((OperationFailure, BulkWriteError)) as caught:
        people.insert_one({"_id": 7, "ssn": "123-45-6789"})
    assert caught.value.code == 13
    with pytest.raises((OperationFailure, BulkWriteError)):
        people.insert_many([{"_id": 8}])
    world.db.people.drop_index("ssn_1")
    people.insert_one({"_id": 7, "ssn": "123-45-6789"})
    people.delete_one({"_id": 7})
    check_document(people.find_one_and_delete({"_id": 1}))


def test_copies_are_masked_or_refused(world):
    write = world.user("writer", "readWrite")
    write.people.aggregate([{"$out": "copy"}])
    check_document({key: value for key, value in world.db.copy.find_one({"_id": 1}).items()})
    write.people.aggregate([{"$merge": "copy2"}])
    check_document(world.db.copy2.find_one({"_id": 1}))
    refused(13, write.visits.aggregate, [{"$merge": "people"}])
    refused(13, write.visits.aggregate, [{"$out": "people"}])
    admin = world.user("admin", "readWrite", "dbAdmin")
    refused(13, admin.client.admin.command, "renameCollection", "shop.people", to="shop.other")
    refused(13, admin.command, "cloneCollectionAsCapped", "people", toCollection="capped", size=4096)
    refused(13, admin.command, "dataSize", "shop.people", keyPattern={"ssn": 1}, min={"ssn": "1"}, max={"ssn": "2"})
    refused(13, admin.people.create_index, "name", unique=True)
    refused(13, admin.people.create_index, "age", partialFilterExpression={"ssn": "123-45-6789"})
    refused(13, admin.people.create_index, [("$**", 1)])
    admin.people.create_index("age")


def test_validation_tells_nothing(world):
    world.db.command("collMod", "people", validator={"$expr": {"$lt": [{"$strLenCP": "$name"}, 5]}, "age": {"$lt": 100}})
    write = world.user("writer", "readWrite")
    refused(121, write.people.update_one, {"_id": 1}, {"$set": {"age": 200}})


def test_change_streams_are_masked(world):
    world.db.command("collMod", "people", changeStreamPreAndPostImages={"enabled": True})
    read = world.user("reader", "read")
    options = {"full_document": "updateLookup", "full_document_before_change": "whenAvailable"}
    with read.people.watch(**options) as one, read.watch(**options) as all, read.people.watch(
        [{"$match": {"fullDocument.card": {"$regex": "1111"}}}], **options
    ) as guess:
        world.db.people.insert_one({**PEOPLE[0], "_id": 11, "ssn": "x"})
        changed = {"seen": 1, "card": "4111 1111 1111 0001", "homes.0.street": "new ann street"}
        world.db.people.update_one({"_id": 1}, {"$set": changed, "$unset": {"x": 1}})
        world.db.people.update_one({"_id": 1}, {"$set": {"ssn": "123-45-6789-x", "email": "anna@example.org"}})
        world.db.people.delete_one({"_id": 11})
        for stream in (one, all):
            insert, update, second, delete = (stream.next() for _ in range(4))
            check_document(insert["fullDocument"])
            check_document(update["fullDocument"])
            check_document(update["fullDocumentBeforeChange"])
            assert update["updateDescription"]["updatedFields"] == {"seen": 1, "homes.0.street": None}
            assert second["updateDescription"]["updatedFields"] == {"email": "a***@example.org"}
            check_document(delete["fullDocumentBeforeChange"])
            nothing_secret([insert, update, second, delete])
        assert guess.try_next() is None


def test_the_oplog_is_not_read_around_masks(world):
    reader = world.user("reader", "clusterManager", "readAnyDatabase", db="admin")
    refused(13, reader.client.local["oplog.rs"].find_one)
    refused(13, reader.client.local["oplog.rs"].aggregate, [{"$match": {"ns": "shop.people"}}])
    refused(13, reader.client.local["oplog.rs"].count_documents, {"o.ssn": "123-45-6789"})
    refused(13, reader.client.local["system.version"].find_one)
    backup = world.user("keeper", "backup", db="admin")
    assert backup.client.local["oplog.rs"].find_one({"ns": "shop.people"})["o"]["ssn"] == "123-45-6789"


def test_who_may_change_what_is_masked(world):
    """The administrator of collections may not, that of users may: masking is about who sees what."""
    admin = world.user("admin", "dbAdmin", "readWrite")
    refused(13, admin.command, "collMod", "people", masking={})
    refused(13, admin.create_collection, "other", masking={"a": "hide"})
    admin.command("collMod", "people", validationLevel="off")
    warden = world.user("warden", "userAdmin")
    refused(13, warden.command, "collMod", "people", masking={"age": "null"}, validationLevel="off")
    warden.command("collMod", "people", masking={**POLICY, "age": "null"})
    read = world.user("reader", "read")
    assert read.people.find_one({"_id": 1})["age"] is None
    (listed,) = read.list_collections(filter={"name": "people"})
    assert listed["options"]["masking"] == {**POLICY, "age": "null"}
    warden.command("collMod", "people", masking={})
    (listed,) = read.list_collections(filter={"name": "people"})
    assert "masking" not in listed["options"]
    assert read.people.find_one({"_id": 1}) == PEOPLE[0]


@pytest.mark.parametrize(
    ("policy", "code"),
    [({"a": "blur"}, 2), ({"a": 1}, 14), ({"_id": "hide"}, 2), ({"a": "hide", "a.b": "null"}, 2), ({"a.0": "hide"}, 2)],
)
def test_policies_that_mean_nothing_are_refused(world, policy, code):
    refused(code, world.db.create_collection, "other", masking=policy)
    refused(code, world.db.command, "collMod", "people", masking=policy)


def test_views_cannot_be_masked(world):
    with pytest.raises(OperationFailure):
        world.db.create_collection("view", viewOn="people", pipeline=[], masking={"a": "hide"})


def test_time_series_cannot_be_masked(world):
    """Their limits (`control.min`, `control.max`) and their order would tell what is masked, so a policy is refused, not ignored."""
    series = {"timeField": "at", "metaField": "who"}
    refused(72, world.db.create_collection, "visits", timeseries=series, masking={"name": "hide"})
    refused(72, world.db.create_collection, "visits", timeseries=series, masking={"who.ssn": "hide"})
    world.db.create_collection("visits", timeseries=series)
    refused(72, world.db.command, "collMod", "visits", masking={"name": "hide"})
    refused(13, world.db.command, "collMod", "system.buckets.visits", masking={"control": "hide"})
    # What a masked user copies into a time series is masked before.
    copier = world.user("copier", "readWrite")
    stages = [{"$project": {"at": "$born", "who": "$card", "name": 1, "email": 1}}]
    try:
        copier.people.aggregate([*stages, {"$out": {"db": "shop", "coll": "copied", "timeseries": series}}])
    except OperationFailure as error:
        assert error.code == 13, error
    for row in world.db.copied.find():
        nothing_secret(row)
    rows = list(copier.visits.aggregate([{"$lookup": {"from": "people", "pipeline": stages, "as": "p"}}]))
    world.db.visits.insert_one({"at": datetime.datetime(2026, 1, 1), "who": 1})
    rows += list(copier.visits.aggregate([{"$lookup": {"from": "people", "pipeline": stages, "as": "p"}}]))
    assert len(rows) == 1 and len(rows[0]["p"]) == 3
    nothing_secret(rows)


def test_policies_and_hashes_outlive_a_restart(start, tmp_path):
    server = start(tmp_path / "data", "--auth")
    world = World(server)
    read = world.user("reader", "read")
    before = read.people.find_one({"_id": 1})
    server.stop()
    server.start()
    read = server.client(username="reader", password="x", authSource="shop").shop
    assert read.people.find_one({"_id": 1}) == before
    check_document(before)


def test_cursors_and_transactions_are_masked(world):
    read = world.user("reader", "readWrite")
    nothing_secret(list(read.people.find(batch_size=1)))
    with read.client.start_session() as session, session.start_transaction():
        nothing_secret(list(read.people.find(session=session)))
        read.people.update_one({"_id": 1}, {"$set": {"seen": 1}}, session=session)
        check_document(read.people.find_one({"_id": 1}, session=session))
    with read.client.start_session(snapshot=True) as session:
        check_document(read.people.find_one({"_id": 1}, session=session))


def test_views_and_redact_by_the_roles_of_who_reads(world):
    """$redact with $$USER_ROLES in a view: the other way to show to each what is theirs."""
    world.db.plans.insert_many([{"_id": 1, "for": ["read"], "a": 1}, {"_id": 2, "for": ["dbOwner"], "a": 2}])
    mine = {"$setIntersection": ["$for", "$$USER_ROLES.role"]}
    redact = {"$redact": {"$cond": [{"$gt": [{"$size": mine}, 0]}, "$$KEEP", "$$PRUNE"]}}
    world.db.create_collection("mine", viewOn="plans", pipeline=[redact])
    assert [doc["_id"] for doc in world.user("reader", "read").mine.find()] == [1]
    assert [doc["_id"] for doc in world.user("owner", "dbOwner").mine.find()] == [2]
    world.root.shop.command(
        "createRole",
        "onlyView",
        roles=[],
        privileges=[{"resource": {"db": "shop", "collection": "mine"}, "actions": ["find"]}],
    )
    only = world.user("only", "onlyView")
    assert list(only.mine.find()) == []
    refused(13, only.plans.find_one)


def test_without_logins_everything_is_plain(start):
    db = start().client().shop
    db.create_collection("people", masking=POLICY)
    db.people.insert_one(PEOPLE[0])
    assert db.people.find_one({"ssn": "123-45-6789"}) == PEOPLE[0]
