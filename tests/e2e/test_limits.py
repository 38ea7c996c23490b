"""What a statement computes ends by maxTimeMS, by killOp and when its client leaves, and takes bounded memory."""

import threading
import time

import pytest
from pymongo.errors import OperationFailure

from harness import eventually, op_msg


def rangeof(n):
    return {"$range": [0, n]}


# A filter over 100,000 numbers for each of 50,000.
REDUCE = [
    {
        "$project": {
            "x": {
                "$reduce": {
                    "input": rangeof(50_000),
                    "initialValue": 0,
                    "in": {"$size": {"$filter": {"input": rangeof(100_000), "cond": {"$gt": ["$$this", "$$value"]}}}},
                }
            }
        }
    }
]


def nested_lookups(depth):
    inner = []
    for _ in range(depth):
        inner = [
            {"$lookup": {"from": "many", "let": {"v": "$_id"}, "pipeline": inner, "as": "m"}},
            {"$match": {"$expr": {"$ne": ["$m", 5]}}},
        ]
    return inner


FILTERS = [
    {"$set": {"a": rangeof(3000)}},
    {
        "$project": {
            "x": {
                "$filter": {
                    "input": "$a",
                    "as": "x",
                    "cond": {
                        "$eq": [
                            0,
                            {
                                "$size": {
                                    "$filter": {
                                        "input": "$a",
                                        "as": "y",
                                        "cond": {"$in": [{"$add": ["$$x", "$$y"]}, "$a"]},
                                    }
                                }
                            },
                        ]
                    },
                }
            }
        }
    },
]

# Each of them runs for hours when nothing ends it.
ENDLESS = {"reduce": REDUCE, "lookups": nested_lookups(6), "filters": FILTERS}


@pytest.fixture
def data(db):
    db.one.insert_one({"_id": 1})
    db.many.insert_many([{"_id": i} for i in range(20)])
    return db


@pytest.mark.parametrize("name", ENDLESS)
def test_max_time_ends_what_an_expression_computes(data, name):
    # Without the limit it would run for many minutes.
    began = time.monotonic()
    with pytest.raises(OperationFailure) as failure:
        data.many.aggregate(ENDLESS[name], maxTimeMS=500)
    assert failure.value.code == 50
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("name", ENDLESS)
def test_kill_op_ends_what_an_expression_computes(data, name):
    failures = []

    def run():
        try:
            data.many.aggregate(ENDLESS[name], comment=name)
        except OperationFailure as failure:
            failures.append(failure.code)

    thread = threading.Thread(target=run)
    thread.start()
    admin = data.client.admin

    def running():
        return [op["opid"] for op in admin.command("currentOp", **{"command.comment": name})["inprog"]]

    eventually(lambda: running())
    for opid in running():
        admin.command("killOp", op=opid)
    thread.join(60)
    assert not thread.is_alive()
    assert failures == [11601]


def test_what_an_expression_computes_ends_when_its_client_leaves(data, server):
    admin = data.client.admin

    def running():
        return admin.command("currentOp", **{"command.comment": "leaves"})["inprog"]

    with server.raw() as raw:
        raw.send(op_msg({"aggregate": "many", "pipeline": REDUCE, "cursor": {}, "comment": "leaves", "$db": data.name}))
        eventually(lambda: running())
    eventually(lambda: not running())


def test_values_that_double_end_with_an_error(data):
    doubling = {
        "$reduce": {
            "input": rangeof(30),
            "initialValue": [1],
            "in": {"$concatArrays": ["$$value", "$$value"]},
        }
    }
    with pytest.raises(OperationFailure) as failure:
        data.one.aggregate([{"$project": {"x": doubling}}])
    assert failure.value.code == 146
