"""Functions in JavaScript from a driver: what they give, and that none of them outlasts or outgrows its statement."""

import threading

import bson
import harness
import pymongo
import pytest

MIB = 1 << 20


@pytest.fixture
def server(start):
    return start(None)


@pytest.fixture
def docs(server):
    docs = server.client().scripts.docs
    docs.insert_many([{"_id": i, "k": i % 3} for i in range(300)])
    return docs


def test_map_reduce_and_where(docs):
    count = bson.Code("function(key, values) { return Array.sum(values) * factor }")
    reply = docs.database.command("mapReduce", "docs", map=bson.Code("function() { emit(this.k, 1) }"), reduce=count, scope={"factor": 1}, out={"inline": 1})
    assert sorted((r["_id"], r["value"]) for r in reply["results"]) == [(0, 100), (1, 100), (2, 100)]
    assert docs.count_documents({"k": 1, "$expr": {"$function": {"body": "id => id < 10", "args": ["$_id"], "lang": "js"}}}) == 3
    assert docs.delete_many({"$where": "this._id >= 290"}).deleted_count == 10
    assert docs.update_many({"$where": bson.Code("this.k == 2")}, {"$set": {"two": True}}).modified_count == 96


def test_endless_scripts_end_with_their_statement(server, docs):
    with pytest.raises(pymongo.errors.ExecutionTimeout):
        list(docs.find({"$where": "while (true) ;"}).max_time_ms(100))
    failed = []

    def endless():
        try:
            list(docs.find({"$where": "for (;;) sleep(1)"}, comment="endless"))
        except pymongo.errors.OperationFailure as error:
            failed.append(error.code)

    thread = threading.Thread(target=endless)
    thread.start()
    admin = server.client().admin
    running = lambda: [op["opid"] for op in admin.aggregate([{"$currentOp": {}}, {"$match": {"command.comment": "endless"}}])]
    harness.eventually(running, what="the statement")
    admin.command("killOp", op=running()[0])
    thread.join(60)
    assert failed == [11601]


def test_scripts_that_take_memory_fail_alone(server, docs):
    with pytest.raises(pymongo.errors.OperationFailure, match="out of memory") as refused:
        list(docs.find({"$where": "var all = []; while (true) all.push('x'.repeat(1000) + all.length)"}))
    assert refused.value.code == 139
    assert len(list(docs.find({"$where": "typeof all == 'undefined'"}))) == 300
    harness.eventually(lambda: harness.rss_bytes(server.pid) < 200 * MIB, what="memory given back")


def test_scripts_can_be_refused(start):
    docs = start(None, "--noscripting").client().scripts.docs
    for filter in ({"$where": "true"}, {"$expr": {"$function": {"body": "() => true", "args": [], "lang": "js"}}}):
        with pytest.raises(pymongo.errors.OperationFailure) as refused:
            docs.find_one(filter)
        assert refused.value.code == 238
