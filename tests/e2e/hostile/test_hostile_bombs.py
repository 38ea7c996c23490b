"""Statements that would take gigabytes, at random and several at a time, under a hard limit of memory: none ends the process."""

import resource
import threading
import time

import bson
import pymongo
from bson import Binary, Int64
from watch import MIB, tell, watched

# What the process may take in all, thread stacks and what the allocator keeps included.
LIMIT = 4 << 30
AT_ONCE = 4
PING_MAX_S = 30
# Each has at most 3 s; the rest is for a debug build on a busy machine, which looks at its interrupts as often but takes longer
# between them.
STATEMENT_MAX_S = 60
# InternalError and UnknownError: nobody foresaw what happened.
UNFORESEEN = {1, 8}
# What a client may meet besides errors with codes: half a character where a string was cut, a connection that was ended as
# that of the largest statement.
EXPECTED = {"ok", "InvalidBSON", "AutoReconnect"}


class Bombs:
    """All that is random comes from `dice`. `$data` is 1 MiB."""

    def __init__(self, dice):
        self.dice = dice

    def numbers(self):
        return {"$range": [0, self.dice.choice([30, 1000, 100_000, 5_000_000])]}

    def array(self, depth):
        dice = self.dice
        if depth == 0:
            return dice.choice(["$list", self.numbers(), ["$data", "$data"]])
        inner, other = self.array(depth - 1), self.array(depth - 1)
        return dice.choice([
            {"$reduce": {"input": {"$range": [0, 40]}, "initialValue": inner, "in": {"$concatArrays": ["$$value", "$$value"]}}},
            {"$map": {"input": inner, "in": self.value(depth - 1)}},
            {"$map": {"input": self.numbers(), "in": inner}},
            {"$zip": {"inputs": [inner, other], "useLongestLength": True, "defaults": ["$data", "$data"]}},
            {"$setUnion": [inner, {"$map": {"input": self.numbers(), "in": {"$concat": [{"$toString": "$$this"}, "$data"]}}}]},
            {"$concatArrays": [inner, other, inner]},
            {"$sortArray": {"input": inner, "sortBy": 1}},
            {"$filter": {"input": inner, "cond": {"$ne": [self.value(depth - 1), None]}}},
            {"$split": ["$data", ""] if dice.random() < 0.1 else ["$data", "x"]},
            {"$regexFindAll": {"input": "$data", "regex": dice.choice(["x", "(x)(x)(x)", "x*?"])}},
            {"$objectToArray": self.value(depth - 1)},
        ])

    def value(self, depth):
        dice = self.dice
        if depth == 0:
            return dice.choice(["$data", "$list", "$$ROOT"])
        inner = self.value(depth - 1)
        return dice.choice([
            self.array(depth - 1),
            {"$reduce": {"input": {"$range": [0, 60]}, "initialValue": inner, "in": {"a": "$$value", "b": "$$value"}}},
            {"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "x", "in": {"$concat": ["$$value", "$$value"]}}},
            {"$replaceAll": {"input": "$data", "find": "x", "replacement": dice.choice(["xxxxxxxxxxxxxxxxxxxxxxxx", "$data"])}},
            {"$mergeObjects": [{"a": inner}, {"b": inner}]},
            {"$arrayToObject": {"$map": {"input": self.numbers(), "in": {"k": {"$toString": "$$this"}, "v": inner}}}},
            {"$let": {"vars": {"x": inner}, "in": ["$$x", "$$x", "$$x", "$$x"]}},
            {"$setField": {"field": "f", "input": "$$ROOT", "value": inner}},
            {"$toUpper": {"$reduce": {"input": {"$range": [0, 22]}, "initialValue": "\u0149", "in": {"$concat": ["$$value", "$$value"]}}}},
            {"$switch": {"branches": [{"case": {"$gt": [{"$size": self.array(depth - 1)}, 3]}, "then": inner}], "default": inner}},
        ])

    def stage(self):
        dice = self.dice
        expression = self.value(dice.choice([1, 2, 3]))
        return dice.choice([
            {"$project": {"x": expression}}, {"$set": {"x": expression, "y": expression}}, {"$group": {"_id": None, "all": {"$push": "$$ROOT"}}},
            {"$group": {"_id": "$_id", "all": {"$addToSet": expression}}}, {"$unwind": "$list"}, {"$facet": {f"f{n}": [{"$match": {}}] for n in range(12)}},
            {"$lookup": {"from": "docs", "pipeline": [], "as": dice.choice(["a", "b"])}}, {"$unionWith": "docs"}, {"$sort": {"data": 1, "n": 1}},
            {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"all": {"$push": "$$ROOT", "window": {"documents": ["unbounded", "current"]}}}}},
            {"$graphLookup": {"from": "docs", "startWith": "$_id", "connectFromField": "next", "connectToField": "_id", "as": "g"}},
            {"$densify": {"field": "n", "range": {"step": dice.choice([1, 0.00001]), "bounds": "full"}}}, {"$bucketAuto": {"groupBy": "$data", "buckets": 3, "output": {"all": {"$push": "$$ROOT"}}}},
            {"$match": {"$expr": {"$eq": [expression, expression]}}}, {"$replaceWith": {"x": expression}}, {"$sortByCount": expression}, {"$documents": [{"x": expression}]},
            {"$match": {"data": {"$regex": dice.choice(["(x+x+)+y", "(x|xx)*y", "^(x*)*$"])}}}, {"$redact": {"$cond": [{"$gt": [expression, 1]}, "$$DESCEND", "$$KEEP"]}},
        ])

    def command(self):
        dice = self.dice
        return dice.choice([
            lambda: {"aggregate": "docs", "pipeline": [self.stage() for _ in range(dice.choice([1, 2, 3]))], "cursor": {"batchSize": dice.choice([1, 1000])}, "allowDiskUse": dice.random() < 0.5},
            lambda: {"aggregate": "docs", "pipeline": [self.stage(), self.stage()], "cursor": {}},
            lambda: {"find": "docs", "projection": {"x": self.value(3)}, "batchSize": 100},
            lambda: {"find": "docs", "filter": {"$expr": {"$gt": [{"$size": self.array(3)}, 1]}}, "sort": {"data": 1}},
            lambda: {"update": "docs", "updates": [{"q": {"_id": dice.randrange(9)}, "u": [{"$set": {"y": self.value(3)}}]}]},
            lambda: {"update": "docs", "updates": [{"q": {}, "u": {"$push": {"grown": {"$each": ["x" * MIB] * 5}}}, "multi": True}]},
            lambda: {"findAndModify": "docs", "query": {"_id": 1}, "update": [{"$set": {"y": self.value(2)}}], "new": True},
            lambda: {"distinct": "docs", "key": dice.choice(["data", "list"])},
            lambda: {"insert": "other", "documents": [{"data": Binary(bytes(5 * MIB))} for _ in range(3)]},
            lambda: {"createIndexes": "docs", "indexes": [{"key": {dice.choice(["list", "data", "$**"]): 1}, "name": f"i{dice.randrange(5)}"}]},
            lambda: {"aggregate": "docs", "pipeline": [self.stage(), {"$out": "out"}], "cursor": {}},
            lambda: {"explain": {"aggregate": "docs", "pipeline": [self.stage()], "cursor": {}}, "verbosity": "executionStats"},
            lambda: {"count": "docs", "query": {"$or": [{"list": {"$in": list(range(20_000))}}] * 20}},
        ])()


def throw(server, bombs, end, results):
    """One client: statement after statement, reading each cursor a little. A client that is cut off opens a new connection."""
    client = server.client(retryWrites=False, retryReads=False, maxPoolSize=1)
    options = bson.CodecOptions(unicode_decode_error_handler="ignore")
    while time.monotonic() < end:
        command = bombs.command()
        command["maxTimeMS"] = bombs.dice.choice([100, 500, 3000])
        begun = time.monotonic()
        try:
            reply = client.bombs.command(command, codec_options=options)
            cursor = reply.get("cursor", {}).get("id", 0)
            if cursor:
                client.bombs.command({"getMore": Int64(cursor), "collection": reply["cursor"]["ns"].split(".", 1)[1]}, codec_options=options)
            results.append(("ok", command, time.monotonic() - begun))
        except pymongo.errors.OperationFailure as error:
            results.append((error.code, command, time.monotonic() - begun))
        except pymongo.errors.PyMongoError as error:
            results.append((type(error).__name__, command, time.monotonic() - begun))
        except bson.errors.InvalidBSON:
            results.append(("InvalidBSON", command, time.monotonic() - begun))


def test_bombs(start, tmp_path, dice, seconds):
    server = start(tmp_path / "data", "--quiet", limits={resource.RLIMIT_AS: LIMIT})
    docs = server.client().bombs.docs
    docs.insert_many([{"_id": i, "n": i * 100, "next": (i + 1) % 12, "data": "x" * MIB, "list": list(range(i * 1000))} for i in range(12)])
    results = []
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=throw, args=(server, Bombs(type(dice)(dice.random())), end, results), daemon=True) for _ in range(AT_ONCE)]
    slowest, highest = watched(server, threads, end, 120)
    tell(results, slowest, highest)
    for code, command, took in results:
        assert code not in UNFORESEEN and (isinstance(code, int) or code in EXPECTED), f"{code} for {str(command)[:2000]}"
        assert took < STATEMENT_MAX_S, f"{took:.1f} s for {str(command)[:2000]}"
    assert slowest < PING_MAX_S
    assert server.is_running and "panic" not in server.said()
    assert docs.count_documents({}) == 12
    assert server.stop() == 0
