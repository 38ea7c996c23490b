"""`$queryStats`: what queries cost, by shape and client."""

import pytest
from bson import Binary, Decimal128
from pymongo.errors import OperationFailure

ALL = ("--setParameter", "internalQueryStatsRateLimit=-1")


def entries(client, db, **options):
    """The entries of a database's queries."""
    found = client.admin.aggregate([{"$queryStats": options}])
    return [entry for entry in found if entry["key"]["queryShape"]["cmdNs"]["db"] == db]


def test_queries_are_grouped_by_shape_and_client(start):
    server = start(None, *ALL)
    client, other = server.client(appname="one"), server.client(appname="two")
    client.q.products.insert_many([{"item": "card", "qty": 15}, {"item": "envelope", "qty": 20}])
    list(client.q.products.find({"item": "card"}))
    list(client.q.products.find({"item": "pen"}))
    list(other.q.products.find({"item": "pen"}))
    list(client.q.products.aggregate([{"$match": {"qty": {"$gt": 1}}}], batchSize=10))
    client.q.products.distinct("item")
    client.q.nothing.find_one({"x": 1})
    found = entries(client, "q")
    seen = [
        (e["key"]["queryShape"]["command"], e["key"]["client"]["application"]["name"], e["metrics"]["execCount"])
        for e in found
        if e["key"]["collectionType"] == "collection"
    ]
    assert sorted(seen) == [("aggregate", "one", 1), ("distinct", "one", 1), ("find", "one", 2), ("find", "two", 1)]
    (nothing,) = [e for e in found if e["key"]["collectionType"] == "nonExistent"]
    assert nothing["key"]["queryShape"]["cmdNs"] == {"db": "q", "coll": "nothing"}
    (find,) = [e for e in found if e["metrics"]["execCount"] == 2]
    assert find["key"]["queryShape"]["filter"] == {"item": {"$eq": "?string"}}
    assert len(find["queryShapeHash"]) == 64
    explained = client.q.command("explain", {"find": "products", "filter": {"item": "x"}})
    assert explained["queryShapeHash"] == find["queryShapeHash"]
    metrics = find["metrics"]
    assert metrics["docsReturned"] == {"sum": 1, "max": 1, "min": 0, "sumOfSquares": Decimal128("1")}
    assert metrics["docsExamined"]["sum"] == 4 and metrics["keysExamined"]["max"] == 0
    assert metrics["totalExecMicros"]["sum"] >= metrics["lastExecutionMicros"] > 0
    (aggregate,) = [e for e in found if e["key"]["queryShape"]["command"] == "aggregate"]
    assert aggregate["key"]["cursor"] == {"batchSize": "?number"}


def test_all_batches_of_a_cursor_are_one_execution(start):
    server = start(None, *ALL)
    client = server.client()
    client.q.c.insert_many([{"n": n} for n in range(100)])
    assert len(list(client.q.c.find({}, batch_size=10))) == 100
    (entry,) = entries(client, "q")
    assert entry["metrics"]["execCount"] == 1 and entry["metrics"]["docsReturned"]["sum"] == 100
    assert entry["key"]["batchSize"] == "?number"
    # One that is given up counts with what it had done.
    cursor = client.q.c.find({"n": {"$gte": 0}}, batch_size=10)
    next(cursor)
    assert len(entries(client, "q")) == 1
    cursor.close()
    (given_up,) = [e for e in entries(client, "q") if e["key"]["queryShape"].get("filter")]
    assert given_up["metrics"]["docsReturned"]["sum"] == 10


def test_no_value_is_kept(start):
    server = start(None, *ALL)
    client = server.client()
    client.q.c.insert_one({"a": "s3cret"})
    schema = {"$jsonSchema": {"properties": {"a": {"enum": ["s3cret"]}}}}
    list(client.q.c.find({"a": "s3cret"}, {"b": {"$concat": ["$a", "s3cret"]}}, comment="s3cret"))
    list(client.q.c.find(schema))
    list(client.q.c.aggregate([{"$match": schema}, {"$addFields": {"x": {"$eq": ["$a", "s3cret"]}}}], let={"v": "s3cret"}))
    client.q.c.distinct("a", {"a": "s3cret"})
    assert len(entries(client, "q")) == 4
    assert "s3cret" not in str(entries(client, "q"))


def test_names_can_be_hidden(start):
    server = start(None, *ALL)
    client = server.client()
    client.q.people.insert_one({"surname": "x"})
    list(client.q.people.find({"surname": "x"}, {"surname": 1}, sort={"surname": 1}, hint="_id_"))
    list(client.q.people.aggregate([{"$group": {"_id": "$surname"}}, {"$sort": {"surname": 1}}]))
    hidden = [
        entry
        for entry in client.admin.aggregate(
            [{"$queryStats": {"transformIdentifiers": {"algorithm": "hmac-sha-256", "hmacKey": Binary(b"k" * 32, 8)}}}]
        )
    ]
    assert len(hidden) >= 2
    text = str([entry["key"]["queryShape"] for entry in hidden])
    assert "people" not in text and "surname" not in text and "$group" in text
    plain = {entry["keyHash"]: entry["queryShapeHash"] for entry in entries(client, "q")}
    assert plain.items() <= {entry["keyHash"]: entry["queryShapeHash"] for entry in hidden}.items()


@pytest.mark.parametrize(
    "stage, code",
    [
        ({"nosuch": 1}, 40415),
        (1, 9),
        ({"transformIdentifiers": 1}, 14),
        ({"transformIdentifiers": {}}, 40414),
        ({"transformIdentifiers": {"algorithm": "md5", "hmacKey": Binary(b"k", 8)}}, 2),
        ({"transformIdentifiers": {"algorithm": 1, "hmacKey": Binary(b"k", 8)}}, 14),
        ({"transformIdentifiers": {"algorithm": "hmac-sha-256"}}, 40414),
        ({"transformIdentifiers": {"algorithm": "hmac-sha-256", "hmacKey": Binary(b"k", 0)}}, 14),
    ],
)
def test_what_is_wrong_is_told(client, stage, code):
    with pytest.raises(OperationFailure) as failure:
        client.admin.aggregate([{"$queryStats": stage}])
    assert failure.value.code == code


def test_it_is_asked_of_the_server(client, db):
    for ask in (lambda: db.aggregate([{"$queryStats": {}}]), lambda: client.admin.c.aggregate([{"$queryStats": {}}])):
        with pytest.raises(OperationFailure) as failure:
            ask()
        assert failure.value.code == 73


def test_of_many_short_queries_some_are_recorded_and_of_long_ones_all(start):
    server = start(None, "--setParameter", "internalQueryStatsRateLimit=1")
    client = server.client()
    client.q.c.insert_many([{"n": n} for n in range(2_000)])
    for _ in range(300):
        client.q.c.find_one({"_id": 1})
    long = {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}
    for _ in range(3):
        list(client.q.c.aggregate([{"$group": {"_id": None, "s": {"$sum": long}}}]))
    found = {e["key"]["queryShape"]["command"]: e["metrics"]["execCount"] for e in entries(client, "q")}
    assert found["aggregate"] == 3
    assert found.get("find", 0) < 300
    first = next(iter(client.admin.aggregate([{"$queryStats": {}}])))
    assert first["key"]["queryShape"]["command"] == "aggregate", "what took most time comes first"
    assert client.admin.command("serverStatus")["metrics"]["queryStats"]["numRateLimitedRequests"] > 0
    client.admin.command("setParameter", 1, internalQueryStatsRateLimit=0)
    list(client.q.other.find({"x": 1}))
    assert not [e for e in entries(client, "q") if e["key"]["queryShape"]["cmdNs"]["coll"] == "other"]


def test_rights(start):
    server = start(None, "--auth")
    server.client().admin.command("createUser", "root", pwd="root", roles=["root"])
    root = server.client(username="root", password="root")
    root.admin.command("createUser", "monitor", pwd="m", roles=["clusterMonitor"])
    root.admin.command("createUser", "reader", pwd="r", roles=["readAnyDatabase"])
    root.admin.command(
        "createRole",
        "half",
        roles=[],
        privileges=[{"resource": {"cluster": True}, "actions": ["queryStatsRead"]}],
    )
    root.admin.command("createUser", "half", pwd="h", roles=["half"])
    hidden = {"transformIdentifiers": {"algorithm": "hmac-sha-256", "hmacKey": Binary(b"k", 8)}}
    for user, plain_allowed, hidden_allowed in [("monitor", True, True), ("reader", False, False), ("half", True, False)]:
        client = server.client(username=user, password=user[0])
        for options, allowed in [({}, plain_allowed), (hidden, hidden_allowed)]:
            if allowed:
                client.admin.aggregate([{"$queryStats": options}]).to_list()
            else:
                with pytest.raises(OperationFailure) as failure:
                    client.admin.aggregate([{"$queryStats": options}])
                assert failure.value.code == 13, (user, options)
