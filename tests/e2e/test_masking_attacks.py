"""Ways by which somebody masked might find a masked value out, one a line. None may succeed.

Each attempt is made in two databases that differ in masked fields only, and has to be answered alike. Source: `docs/masking.md`.
"""

import re

import harness
import pytest
from bson.son import SON
from pymongo.errors import OperationFailure, PyMongoError

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
POLICY = {"ssn": "hide", "note": "null", "at": "null", "tags": "hide", "n": "hide"}
# The same documents but for what is masked. Index 0 and 1 have their secrets exchanged.
SECRETS = [
    {"ssn": "111", "note": "alpha beta", "at": [0.0, 0.0], "tags": ["x"], "n": 1},
    {"ssn": "222", "note": "gamma gamma gamma", "at": [10.0, 10.0], "tags": ["x", "y"], "n": 50},
    {"ssn": "333", "note": "delta", "at": [20.0, 20.0], "tags": ["z"], "n": 7},
]
PLAIN = [{"_id": i, "city": city, "age": 10 * i, "place": [1.0 * i, 2.0]} for i, city in enumerate("aab", start=1)]
TEXT = "words"
INDEXES = [
    ("ssn", {}),
    ([("city", 1), ("ssn", 1)], {"unique": True}),
    ("age", {"unique": True, "partialFilterExpression": {"n": {"$gt": 20}}, "name": "partial"}),
    ([("at", "2dsphere")], {}),
    ([("note", "text"), ("city", "text")], {"name": TEXT}),
    ([("n", "hashed")], {}),
    ([("tags", 1)], {}),
    ([("place", "2dsphere"), ("ssn", 1)], {"name": "place_ssn"}),
    ("city", {"collation": {"locale": "en", "strength": 2}, "name": "folded"}),
]


class World:
    def __init__(self, server):
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        self.root = server.client(**ROOT)
        roles = {"reader": ["read"], "writer": ["readWrite"], "keeper": ["readWrite", "dbAdmin"]}
        for db in ("one", "two"):
            for name, given in roles.items():
                self.root[db].command("createUser", name, pwd="p", roles=given)
        self.users = {
            (name, db): server.client(username=name, password="p", authSource=db, retryWrites=False)[db]
            for db in ("one", "two")
            for name in roles
        }
        for db in ("one", "two"):
            self.root[db].create_collection("people", masking=POLICY)

    def fill(self):
        for db, order in (("one", [0, 1, 2]), ("two", [1, 0, 2])):
            people = self.root[db].people
            people.delete_many({})
            if "remade" in people.index_information():
                people.drop_index("remade")
            for keys, options in INDEXES:
                people.create_index(keys, **options)
            people.insert_many([{**PLAIN[i], **SECRETS[at]} for i, at in enumerate(order)])
            for name in ("mine", "made"):
                self.root[db].drop_collection(name)
            self.root[db].mine.insert_many([{"_id": i, "ssn": s["ssn"], "n": s["n"]} for i, s in enumerate(SECRETS, start=1)])


@pytest.fixture(scope="module")
def world():
    with harness.Server(None, "--auth") as server:
        yield World(server)
        server.stop()


def command(*words, **options):
    return lambda db: db.command(*words, **options)


def aggregate(*stages, coll="people", **options):
    return lambda db: list(db[coll].aggregate(list(stages), **options))


def explain(what):
    return lambda db: db.command("explain", what, verbosity="executionStats")


def update(q, u, **options):
    return command("update", "people", updates=[{"q": q, "u": u, **options}])


def delete(q, **options):
    return command("delete", "people", deletes=[{"q": q, "limit": 0, **options}])


def modify(**options):
    return command("findAndModify", "people", **options)


def find(filter=None, **options):
    return command("find", "people", filter=filter or {}, **options)


def bulk(op):
    return lambda db: db.client.admin.command("bulkWrite", 1, ops=[op], nsInfo=[{"ns": f"{db.name}.people"}])


def text_index(key, **options):
    """Makes a text index in the place of that which is there."""

    def act(db):
        db.command("dropIndexes", "people", index=TEXT)
        return db.command("createIndexes", "people", indexes=[{"key": key, "name": "remade", **options}])

    return act


NEAR = {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}
WITHIN = {"$geoWithin": {"$centerSphere": [[0, 0], 0.01]}}
FUNCTION = {"$function": {"body": "function(d) { return d.ssn; }", "args": ["$$ROOT"], "lang": "js"}}
SCORE = {"$meta": "textScore"}
FIELD = {"$getField": {"field": "ssn", "input": "$$ROOT"}}
SELF = {"from": "people", "localField": "_id", "foreignField": "_id", "as": "p"}
GRAPH = {"from": "people", "startWith": "$ssn", "connectFromField": "ssn", "connectToField": "ssn", "as": "p"}
WINDOW = {"sortBy": {"n": 1}, "output": {"s": {"$sum": "$n", "window": {"documents": ["unbounded", "current"]}}}}
MAP = "function() { emit(this._id, this.ssn); }"

READS = {
    # Conditions.
    "equal": find({"ssn": "111"}),
    "a collation": find({"ssn": {"$gte": "111", "$lt": "222"}}, collation={"locale": "en", "strength": 1}),
    "a number's range": find({"n": {"$gt": 20}}),
    "by the partial index": find({"age": {"$gte": 0}, "n": {"$gt": 20}}, hint="partial"),
    "by the partial index without a condition": find({"age": {"$gte": 0}}, hint="partial"),
    "elements": find({"tags": {"$size": 2}}),
    "types": find({"n": {"$type": "int"}, "tags.1": {"$exists": True}}),
    "$expr": find({"$expr": {"$gt": ["$n", 20]}}),
    "$expr and let": find({"$expr": {"$eq": ["$ssn", "$$x"]}}, let={"x": "111"}),
    "$getField": find({"$expr": {"$eq": [FIELD, "111"]}}),
    "$where": find({"$where": "this.ssn == '111'"}),
    "$function": find({"$expr": {"$eq": [FUNCTION, "111"]}}),
    "$jsonSchema": find({"$jsonSchema": {"properties": {"n": {"minimum": 20}}, "required": ["n"]}}),
    "$mod": find({"n": {"$mod": [5, 0]}}),
    "$text": find({"$text": {"$search": "gamma"}}),
    "$text of a plain field": find({"$text": {"$search": "a"}}),
    "score": find({"$text": {"$search": "gamma alpha"}}, projection={"s": SCORE}, sort={"s": SCORE}),
    "$match $text": aggregate({"$match": {"$text": {"$search": "gamma"}}}, {"$sort": {"s": SCORE}}),
    "count $text": command("count", "people", query={"$text": {"$search": "gamma"}}),
    "near": find({"at": NEAR}),
    "within": find({"at": WITHIN}),
    "$geoNear": aggregate({"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "d", "key": "at"}}),
    "$geoNear of the other": aggregate(
        {"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "d", "key": "place", "query": {"ssn": "111"}}}
    ),
    "$geoIntersects": find({"at": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [0, 0]}}}}),
    # Orders and bounds.
    "sort": find(sort={"n": 1}),
    "sort by an index": find(sort={"ssn": 1}, hint="ssn_1"),
    "sort by half an index": find({"city": "a"}, sort=SON([("city", 1), ("ssn", -1)])),
    "sort and limit": find(sort={"tags": -1}, limit=1),
    "$sort": aggregate({"$sort": {"n": -1}}, {"$limit": 1}),
    "hint": find(hint={"ssn": 1}),
    "hint of hashes": find({"n": 1}, hint={"n": "hashed"}),
    "min": find(min={"ssn": "111"}, max={"ssn": "112"}, hint={"ssn": 1}),
    "returnKey": find({"city": "a"}, returnKey=True),
    "batches in an order": lambda db: [d["_id"] for d in db.people.find({"city": "a"}, batch_size=1).hint("city_1_ssn_1")],
    # Projections.
    "projection": find(projection={"ssn": 1, "x": "$ssn", "f": FUNCTION}),
    "$elemMatch": find(projection={"tags": {"$elemMatch": {"$eq": "y"}}}),
    "$slice": find(projection={"tags": {"$slice": 1}}),
    "$meta": find({"city": "a"}, projection={"k": {"$meta": "indexKey"}}),
    "$toHashedIndexKey": aggregate({"$project": {"h": {"$toHashedIndexKey": "$n"}}}),
    # Stages.
    "distinct": command("distinct", "people", key="ssn"),
    "distinct elements": command("distinct", "people", key="tags", query={"city": "a"}),
    "distinct with a query": command("distinct", "people", key="_id", query={"n": 50}),
    "count": command("count", "people", query={"ssn": "111"}, hint="ssn_1"),
    "$group": aggregate({"$group": {"_id": "$ssn", "n": {"$sum": "$n"}}}),
    "$group by an index": aggregate({"$sort": SON([("city", 1), ("ssn", 1)])}, {"$group": {"_id": "$city", "f": {"$first": "$_id"}}}),
    "$top": aggregate({"$group": {"_id": "$city", "t": {"$top": {"sortBy": {"n": 1}, "output": "$_id"}}}}),
    "$accumulator": aggregate(
        {
            "$group": {
                "_id": None,
                "a": {
                    "$accumulator": {
                        "init": "function() { return ''; }",
                        "accumulate": "function(s, d) { return s + d.ssn; }",
                        "accumulateArgs": ["$$ROOT"],
                        "merge": "function(a, b) { return a + b; }",
                        "lang": "js",
                    }
                },
            }
        }
    ),
    "$bucketAuto": aggregate({"$bucketAuto": {"groupBy": "$n", "buckets": 2, "output": {"i": {"$push": "$_id"}}}}),
    "$setWindowFields": aggregate({"$setWindowFields": WINDOW}),
    "$densify": aggregate({"$densify": {"field": "n", "range": {"step": 10, "bounds": "full"}}}),
    "$facet": aggregate({"$facet": {"f": [{"$match": {"ssn": "111"}}, {"$sort": {"n": 1}}]}}),
    "$redact": aggregate({"$redact": {"$cond": [{"$eq": ["$ssn", "111"]}, "$$KEEP", "$$PRUNE"]}}),
    "$unwind": aggregate({"$unwind": "$tags"}),
    "an error that shows a value": aggregate({"$project": {"x": {"$toInt": "$note"}}}),
    "an error that depends on one": aggregate({"$project": {"x": {"$divide": [1, {"$subtract": ["$n", 50]}]}}}),
    "$lookup": aggregate({"$lookup": {**SELF, "from": "people"}}, coll="mine"),
    "$lookup by a secret": aggregate({"$lookup": {**SELF, "localField": "ssn", "foreignField": "ssn"}}, coll="mine"),
    "$lookup from a secret": aggregate({"$lookup": {**SELF, "from": "mine", "localField": "ssn", "foreignField": "ssn"}}),
    "$lookup and let": aggregate({"$lookup": {"from": "mine", "let": {"s": "$ssn"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$ssn", "$$s"]}}}], "as": "p"}}),
    "$lookup's pipeline": aggregate({"$lookup": {"from": "people", "pipeline": [{"$match": {"n": {"$gt": 20}}}], "as": "p"}}, coll="mine"),
    "$lookup and $unwind": aggregate({"$lookup": SELF}, {"$unwind": "$p"}, {"$match": {"p.ssn": "111"}}, coll="mine"),
    "$graphLookup": aggregate({"$graphLookup": GRAPH}, coll="mine"),
    "$graphLookup's condition": aggregate(
        {"$graphLookup": {**GRAPH, "startWith": "$_id", "connectFromField": "x", "connectToField": "_id", "restrictSearchWithMatch": {"ssn": "111"}}},
        coll="mine",
    ),
    "$unionWith": aggregate({"$unionWith": {"coll": "people", "pipeline": [{"$match": {"ssn": "111"}}]}}, coll="mine"),
    "mapReduce": command("mapReduce", "people", map=MAP, reduce="function(k, v) { return v[0]; }", out={"inline": 1}),
    "mapReduce's query": command("mapReduce", "people", map="function() { emit(1, 1); }", reduce="function(k, v) { return Array.sum(v); }", query={"ssn": "111"}, out={"inline": 1}),
    # Explain.
    "explain": explain({"find": "people", "filter": {"ssn": "111"}}),
    "explain of a hint": explain({"find": "people", "filter": {"n": {"$gt": 20}}, "hint": "partial"}),
    "explain of an order": explain({"find": "people", "sort": {"ssn": 1}, "limit": 1}),
    "explain $lookup": explain({"aggregate": "mine", "pipeline": [{"$lookup": {**SELF, "localField": "ssn", "foreignField": "ssn"}}], "cursor": {}}),
    "explain $text": explain({"find": "people", "filter": {"$text": {"$search": "gamma"}}}),
    "explain near": explain({"find": "people", "filter": {"at": NEAR}}),
    "explain distinct": explain({"distinct": "people", "key": "ssn"}),
    "explain count": explain({"count": "people", "query": {"ssn": "111"}}),
}
WRITES = {
    "a condition": update({"ssn": "111"}, {"$set": {"seen": 1}}),
    "a condition in $expr": update({"$expr": {"$eq": [FIELD, "111"]}}, {"$set": {"seen": 1}}),
    "a condition in $where": update({"$where": "this.ssn == '111'"}, {"$set": {"seen": 1}}),
    "a condition in a script": update({"$expr": {"$eq": [FUNCTION, "111"]}}, {"$set": {"seen": 1}}),
    "a condition by the whole": update({"$expr": {"$gt": [{"$bsonSize": "$$ROOT"}, 150]}}, {"$set": {"seen": 1}}),
    "a condition by text": update({"$text": {"$search": "gamma"}}, {"$set": {"seen": 1}}),
    "a condition by place": update({"at": WITHIN}, {"$set": {"seen": 1}}),
    "a condition by schema": update({"$jsonSchema": {"required": ["tags"], "properties": {"tags": {"minItems": 2}}}}, {"$set": {"seen": 1}}),
    "a hint": update({"age": {"$gte": 0}}, {"$set": {"seen": 1}}, hint="partial", multi=True),
    "an order": modify(query={}, sort={"n": 1}, update={"$set": {"seen": 1}}),
    "an order by an index": modify(query={"city": "a"}, hint="city_1_ssn_1", update={"$set": {"seen": 1}}),
    "an order without a word": modify(query={"city": "a"}, update={"$set": {"seen": 1}}, new=True),
    "what is next in place": modify(query={"place": NEAR}, update={"$set": {"seen": 1}}),
    "what comes back": modify(query={"_id": 1}, update={"$set": {"seen": 1}}, fields={"x": "$ssn", "f": FUNCTION, "ssn": 1}),
    "what comes back removed": modify(query={"_id": 1}, remove=True, fields={"x": FIELD}),
    "array filters": update({"_id": 1}, {"$set": {"tags.$[t]": "q"}}, arrayFilters=[{"t": "y"}]),
    "a position": update({"_id": 1, "tags": "y"}, {"$set": {"tags.$": "q"}}),
    "a pipeline": update({"_id": 1}, [{"$set": {"b": "$ssn"}}]),
    "a pipeline of the whole": update({"_id": 1}, [{"$replaceWith": {"_id": 1, "all": "$$CURRENT"}}]),
    "a pipeline with constants": update({"_id": 1}, [{"$set": {"b": {"$eq": ["$ssn", "$$c"]}}}], c={"c": "111"}),
    "a rename": update({"_id": 1}, {"$rename": {"ssn": "b"}}),
    "an error about a type": update({"_id": 1}, {"$inc": {"note": 1}}),
    "an error about an array": update({"_id": 1}, {"$push": {"note": 1}}),
    "a change of nothing": update({"_id": 1}, {"$set": {"ssn": "111"}}),
    "an addition to a set": update({"_id": 1}, {"$addToSet": {"tags": "y"}}),
    "a pull": update({"_id": 1}, {"$pull": {"tags": "y"}}),
    "a key that is there, partly plain": update({"_id": 3}, {"$set": {"city": "a"}}),
    "a key that is there in a partial index": update({"_id": 3}, {"$set": {"age": 10}}),
    "an upsert": update({"_id": 9, "city": "a"}, {"$setOnInsert": {"age": 10}}, upsert=True),
    "an insert": command("insert", "people", documents=[{"_id": 9, "city": "a", "ssn": "111"}]),
    "a deletion": delete({"n": {"$gt": 20}}),
    "a deletion by a hint": delete({"age": {"$gte": 0}}, hint="partial"),
    "a deletion of one by an index": delete({"city": "a"}, hint="city_1_ssn_1", limit=1),
    "a deletion by the whole": delete({"$expr": {"$gt": [{"$bsonSize": "$$ROOT"}, 150]}}),
    "bulkWrite": bulk({"update": 0, "filter": {"ssn": "111"}, "updateMods": {"$set": {"seen": 1}}}),
    "bulkWrite with a pipeline": bulk({"update": 0, "filter": {"_id": 1}, "updateMods": [{"$set": {"b": "$ssn"}}]}),
    "bulkWrite deletes": bulk({"delete": 0, "filter": {"n": {"$gt": 20}}}),
    "$merge by a secret": aggregate({"$merge": {"into": "people", "on": ["city", "ssn"]}}, coll="mine"),
    "$merge with a pipeline": aggregate({"$merge": {"into": "people", "whenMatched": [{"$set": {"b": "$ssn"}}]}}, coll="mine"),
    "$merge of masked": lambda db: (list(db.people.aggregate([{"$merge": "made"}])), list(db.made.find().sort("_id", 1))),
    "$out of masked": lambda db: (list(db.people.aggregate([{"$match": {"n": {"$gt": 5}}}, {"$out": "made"}])), list(db.made.find())),
    "mapReduce into a collection": lambda db: (
        db.command("mapReduce", "people", map=MAP, reduce="function(k, v) { return v[0]; }", out="made"),
        list(db.made.find().sort("_id", 1)),
    ),
    "explain of a write": explain({"update": "people", "updates": [{"q": {"ssn": "111"}, "u": {"$set": {"seen": 1}}}]}),
    "explain of findAndModify": explain({"findAndModify": "people", "query": {}, "sort": {"n": 1}, "update": {"$set": {"seen": 1}}}),
    "explain of a hint": explain({"delete": "people", "deletes": [{"q": {"age": {"$gte": 0}}, "limit": 0, "hint": "partial"}]}),
}
KEEPS = {
    "an index that becomes unique": lambda db: (
        db.command("collMod", "people", index={"keyPattern": {"tags": 1}, "prepareUnique": True}),
        db.command("collMod", "people", index={"keyPattern": {"tags": 1}, "unique": True}),
    ),
    "an index that would be": command("collMod", "people", index={"keyPattern": {"tags": 1}, "unique": True}, dryRun=True),
    "a unique index": command("createIndexes", "people", indexes=[{"key": {"ssn": 1, "city": 1}, "name": "u", "unique": True}]),
    "a text index": text_index({"note": "text"}),
    "a text index of everything": text_index({"$**": "text"}),
    "a text index of a language": text_index({"city": "text"}, language_override="ssn"),
    "an index of places": command("createIndexes", "people", indexes=[{"key": {"note": "2dsphere"}, "name": "g"}]),
    "an index of arrays": command("createIndexes", "people", indexes=[{"key": {"tags": 1, "tags.x": 1}, "name": "p"}]),
    "a partial index": command("createIndexes", "people", indexes=[{"key": {"age": 1}, "name": "q", "partialFilterExpression": {"n": 50}}]),
    "an expiry": command("createIndexes", "people", indexes=[{"key": {"n": 1}, "name": "t", "expireAfterSeconds": 1}]),
    "a view": lambda db: (db.command("create", "made", viewOn="people", pipeline=[{"$match": {"n": 50}}]), list(db.made.find())),
    "a copy": command("cloneCollectionAsCapped", "people", toCollection="made", size=4096),
    "a size of a range": lambda db: db.command("dataSize", f"{db.name}.people", keyPattern={"ssn": 1}, min={"ssn": "1"}, max={"ssn": "2"}),
    "a validation": command("validate", "people", full=True),
    "indexes": aggregate({"$indexStats": {}}, {"$project": {"name": 1, "spec": 1}}),
    "statistics": aggregate({"$collStats": {"storageStats": {}, "count": {}}}, {"$project": {"count": 1}}),
    "kept plans": aggregate({"$planCacheStats": {}}, {"$project": {"cachedPlan": 1}}),
}
# What differs whatever is asked, being of the server and not of documents.
NOISE = {
    "$clusterTime",
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "opTime",
    "operationTime",
    "optimizationTimeMillis",
    "planCacheKey",
    "planCacheShapeHash",
    "queryHash",
    "queryShapeHash",
    "readTimestamp",
    "serverInfo",
    "uuid",
}


def without_noise(value, name):
    """`value` without what differs anyway, and with the database's name replaced."""
    if isinstance(value, dict):
        return {key: without_noise(item, name) for key, item in value.items() if key not in NOISE}
    if isinstance(value, list | tuple):
        return [without_noise(item, name) for item in value]
    return re.sub(rf"\b{name}\b", "DB", value) if isinstance(value, str) else value


def told(act, db):
    """Everything that somebody is told."""
    try:
        answer = act(db)
    except PyMongoError as error:
        answer = {"failed": getattr(error, "details", None) or str(error)}
    return without_noise(answer, db.name)


def attempt(world, user, act):
    answers = []
    for db in ("one", "two"):
        world.fill()
        answers.append(told(act, world.users[user, db]))
    assert answers[0] == answers[1]


def test_text_indexes_are_not_made_of_masked_fields(world):
    """An unknown language in a document is an error that names it."""
    for key, options in (({"note": "text"}, {}), ({"$**": "text"}, {}), ({"city": "text"}, {"language_override": "ssn"})):
        world.fill()
        with pytest.raises(OperationFailure) as caught:
            text_index(key, **options)(world.users["keeper", "one"])
        assert caught.value.code == 13, caught.value
    world.fill()
    text_index({"city": "text"})(world.users["keeper", "one"])


@pytest.mark.parametrize("way", READS)
def test_reading_tells_nothing(world, way):
    attempt(world, "reader", READS[way])


@pytest.mark.parametrize("way", WRITES)
def test_writing_tells_nothing(world, way):
    attempt(world, "writer", WRITES[way])


@pytest.mark.parametrize("way", KEEPS)
def test_keeping_collections_tells_nothing(world, way):
    attempt(world, "keeper", KEEPS[way])


def test_these_documents_differ_for_who_may_see_them(world):
    """Else the tests above would hold whatever is masked."""
    world.fill()
    told_root = [told(READS["equal"], world.root[db]) for db in ("one", "two")]
    assert told_root[0] != told_root[1]
