"""Bombs of kinds that take other ways than expressions do: scripts, texts, shapes, time series, and change streams that nobody reads.

Each is bounded by its statement's limits; beside them one connection is answered all the time, and the process lives.
"""

import resource
import threading
import time

import pymongo
from bson import Code
from harness import op_msg
from watch import MIB, tell, watched

LIMIT = 4 << 30
AT_ONCE = 4
PING_MAX_S = 30
STATEMENT_MAX_S = 60
# InternalError and UnknownError: nobody foresaw what happened.
UNFORESEEN = {1, 8}
EXPECTED = {"ok", "AutoReconnect", "NetworkTimeout", "DocumentTooLarge", "BSONError", "InvalidBSON"}
SECOND = 1000

SCRIPTS = [
    "while (true) {}",
    "let x = 'x'; while (true) x += x; return x",
    "let x = []; while (true) x.push(x.length); return x",
    "let x = {}; for (let i = 0; ; i++) x['k' + i] = i; return x",
    "return new Array(1e9).fill(1)",
    "return 'x'.repeat(1 << 28).split('')",
    "return 'x'.repeat(1e9)",
    "const f = () => f(); return f()",
    "const f = (x) => [f(x), f(x)]; return f(1)",
    "let x = []; x.push(x); return x",
    "let x = {}; x.x = x; return x",
    "let x = []; for (let i = 0; i < 1e5; i++) x = [x]; return x",
    "return JSON.parse('['.repeat(1e6))",
    "return JSON.stringify(new Array(1e7).fill({a: 1}))",
    "return /(x+x+)+y/.test('x'.repeat(5000))",
    "return 'x'.repeat(1e6).replace(/x/g, 'y'.repeat(1e4))",
    "return new Uint8Array(1 << 30)",
    "return Array.from({length: 1e9}, (_, i) => i)",
    "return [...Array(1e8).keys()].sort()",
    "let a = Array.from({length: 1e6}, () => Math.random()); return a.sort(() => Math.random() - 0.5).length",
    "return 10n ** 10000000n",
    "throw new Error('x'.repeat(1e8))",
    "throw {toString() { while (true) {} }}",
    "return {get a() { while (true) {} }}",
    "return {toJSON() { while (true) {} }}",
    "return new Proxy({}, {ownKeys() { while (true) {} }})",
    "for (;;) try { f() } catch (e) {}",
    "const p = Promise.resolve(); const g = () => p.then(g); g(); return 1",
    "function* g() { while (true) yield 1 } return [...g()]",
    "Object.prototype.toString = null; Array.prototype.push = null; return [1]",
    "return (new Function('while (true) {}'))()",
    "let s = ''; for (let i = 0; i < 1e7; i++) s = s + i; return s.length",
    "return new Date(NaN)",
    "return Symbol('x')",
    "return function () {}",
]


class Bombs:
    """All that is random comes from `dice`."""

    def __init__(self, dice):
        self.dice = dice

    def script(self):
        return "function (a, b) {" + self.dice.choice(SCRIPTS) + "}"

    def scripted(self):
        dice = self.dice
        call = {"$function": {"body": self.script(), "args": ["$$ROOT", "$data"], "lang": "js"}}
        gathered = {
            "$accumulator": {
                "init": dice.choice(["function () { return [] }", self.script()]), "accumulate": self.script(), "accumulateArgs": ["$data"],
                "merge": self.script(), "finalize": self.script(), "lang": "js",
            },
        }
        return dice.choice([
            lambda: {"aggregate": "docs", "pipeline": [{"$project": {"x": call}}], "cursor": {}},
            lambda: {"aggregate": "docs", "pipeline": [{"$group": {"_id": None, "x": gathered}}], "cursor": {}},
            lambda: {"find": "docs", "filter": {"$where": Code(self.script())}},
            lambda: {"find": "docs", "filter": {"$expr": call}},
            lambda: {"update": "docs", "updates": [{"q": {}, "u": [{"$set": {"y": call}}], "multi": True}]},
            lambda: {"mapReduce": "docs", "map": Code(dice.choice(["function () { while (true) emit(1, this) }", "function () { emit(this.n, this) }"])), "reduce": Code(self.script()), "out": {"inline": 1}},
            lambda: {"aggregate": 1, "pipeline": [{"$documents": [{"x": call}]}], "cursor": {}},
        ])()

    def ring(self, points):
        """A closed ring that crosses itself or not."""
        dice = self.dice
        out = [[dice.uniform(-180, 180), dice.uniform(-90, 90)] if dice.random() < 0.5 else [i / points, (i * i % 97) / 97] for i in range(points)]
        return [*out, out[0]]

    def shape(self):
        dice = self.dice
        points = dice.choice([3, 50, 2000, 40_000])
        return dice.choice([
            lambda: {"type": "Polygon", "coordinates": [self.ring(points)]},
            lambda: {"type": "Polygon", "coordinates": [self.ring(4) for _ in range(points)]},
            lambda: {"type": "MultiPolygon", "coordinates": [[self.ring(3)] for _ in range(points)]},
            lambda: {"type": "LineString", "coordinates": self.ring(points)},
            lambda: {"type": "MultiPoint", "coordinates": self.ring(points)},
            lambda: {"type": "Polygon", "coordinates": [[[-179.9, -89], [179.9, -89], [179.9, 89], [-179.9, 89], [-179.9, -89]]]},
            lambda: {"type": "GeometryCollection", "geometries": [{"type": "LineString", "coordinates": self.ring(3)} for _ in range(points)]},
        ])()

    def geography(self):
        dice = self.dice
        return dice.choice([
            lambda: {"find": "places", "filter": {"at": {"$geoIntersects": {"$geometry": self.shape()}}}},
            lambda: {"find": "places", "filter": {"at": {"$geoWithin": {"$geometry": self.shape()}}}},
            lambda: {"find": "places", "filter": {"$or": [{"at": {"$geoIntersects": {"$geometry": self.shape()}}} for _ in range(20)]}},
            lambda: {"find": "places", "filter": {"at": {"$near": {"$geometry": {"type": "Point", "coordinates": [0, 0]}, "$maxDistance": dice.choice([1, 1e7, 1e300])}}}},
            lambda: {"find": "places", "filter": {"at": {"$geoWithin": {"$polygon": self.ring(dice.choice([3, 20_000]))}}}},
            lambda: {"find": "places", "filter": {"at": {"$geoWithin": {"$centerSphere": [[0, 0], dice.choice([0, 3, 1e9])]}}}},
            lambda: {"aggregate": "places", "pipeline": [{"$geoNear": {"near": {"type": "Point", "coordinates": [1, 1]}, "distanceField": "d", "query": {"$expr": {"$gt": ["$d", 1]}}}}, {"$sort": {"d": -1}}], "cursor": {}},
            lambda: {"insert": "places", "documents": [{"at": self.shape()}]},
            lambda: {"insert": "places", "documents": [{"at": [self.shape() for _ in range(20)]}]},
        ])()

    def text(self):
        dice = self.dice
        many = " ".join(f"w{dice.randrange(1 << 30):x}" for _ in range(dice.choice([10, 1000, 50_000])))
        return dice.choice([
            lambda: {"find": "words", "filter": {"$text": {"$search": many}}, "sort": {"score": {"$meta": "textScore"}}},
            lambda: {"find": "words", "filter": {"$text": {"$search": " ".join(f'"{w}"' for w in many.split()[:5000])}}},
            lambda: {"find": "words", "filter": {"$text": {"$search": " ".join("-" + w for w in many.split()) + " x"}}},
            lambda: {"find": "words", "filter": {"$text": {"$search": "x" * 5_000_000}}},
            lambda: {"insert": "words", "documents": [{"t": many * 20}]},
            lambda: {"insert": "words", "documents": [{"t": "x" * 10_000_000}]},
            lambda: {"insert": "words", "documents": [{"t": [many] * 20, "language": dice.choice(["none", "german", "turkish"])}]},
            lambda: {"aggregate": "words", "pipeline": [{"$match": {"$text": {"$search": many}}}, {"$group": {"_id": {"$meta": "textScore"}, "all": {"$push": "$$ROOT"}}}], "cursor": {}},
        ])()

    def series(self):
        import datetime

        dice = self.dice
        start = datetime.datetime(2026, 1, 1)
        when = lambda: start + datetime.timedelta(milliseconds=dice.randrange(1 << dice.choice([10, 30, 40])))  # noqa: E731
        many = dice.choice([1, 1000, 20_000])
        meta = dice.choice([lambda i: i % 3, lambda i: i, lambda i: {"a": "x" * 1000, "i": i % 100}])
        return dice.choice([
            lambda: {"insert": "series", "documents": [{"t": when(), "m": meta(i), "v": i} for i in range(many)], "ordered": False},
            lambda: {"insert": "series", "documents": [{"t": when(), "m": 1, **{f"f{dice.randrange(1 << 30)}": 1 for _ in range(100)}} for _ in range(min(many, 2000))]},
            lambda: {"insert": "series", "documents": [{"t": when(), "m": "x" * 5 * MIB, "v": "y" * 4 * MIB}]},
            lambda: {"insert": "series", "documents": [{"t": when(), "m": 1, "v": "y" * 100_000} for _ in range(100)]},
            lambda: {"aggregate": "series", "pipeline": [{"$sort": {"v": 1, "t": -1}}, {"$group": {"_id": None, "all": {"$push": "$$ROOT"}}}], "cursor": {}},
            lambda: {"aggregate": "series", "pipeline": [{"$setWindowFields": {"partitionBy": "$m", "sortBy": {"t": 1}, "output": {"all": {"$push": "$$ROOT", "window": {"range": [-1, 1], "unit": "year"}}}}}], "cursor": {}},
            lambda: {"aggregate": "series", "pipeline": [{"$densify": {"field": "t", "range": {"step": 1, "unit": "millisecond", "bounds": "full"}}}, {"$count": "n"}], "cursor": {}},
            lambda: {"aggregate": "series", "pipeline": [{"$group": {"_id": {"$dateTrunc": {"date": "$t", "unit": "second"}}, "n": {"$sum": "$v"}, "all": {"$addToSet": "$m"}}}], "cursor": {}},
            lambda: {"delete": "series", "deletes": [{"q": {"m": 1}, "limit": 0}]},
        ])()

    def command(self):
        return self.dice.choice([self.scripted, self.scripted, self.geography, self.text, self.series])()


def throw(server, bombs, end, results):
    client = server.client(retryWrites=False, retryReads=False, maxPoolSize=1)
    while time.monotonic() < end:
        command = bombs.command()
        command["maxTimeMS"] = bombs.dice.choice([100, 500, 3 * SECOND])
        begun = time.monotonic()
        try:
            reply = client.bombs.command(command)
            state = (reply.get("writeErrors") or [{"code": "ok"}])[0]["code"]
        except pymongo.errors.OperationFailure as error:
            state = error.code
        except (pymongo.errors.PyMongoError, Exception) as error:
            state = type(error).__name__
        results.append((state, command, time.monotonic() - begun))


def follow(server, dice, end, kept):
    """Change streams that are opened and never read on, and others that ask for large batches and do not read the reply."""
    while time.monotonic() < end:
        raw = server.raw(60)
        stage = {"$changeStream": {"fullDocument": dice.choice(["default", "updateLookup"])}}
        pipeline = [stage] if dice.random() < 0.5 else [stage, {"$match": {"fullDocument.never": 1}}]
        cursor = raw.command({"aggregate": dice.choice(["docs", "series", 1]), "pipeline": pipeline, "cursor": {"batchSize": 0}, "$db": "bombs"})
        if cursor["ok"]:
            # Not read: the reply waits in the server, or the getMore does.
            for _ in range(dice.choice([1, 3])):
                raw.send(op_msg({"getMore": cursor["cursor"]["id"], "collection": cursor["cursor"]["ns"].split(".", 1)[1], "maxTimeMS": 60 * SECOND, "$db": "bombs"}))
        kept.append(raw)
        while len(kept) > 100:
            kept.pop(dice.randrange(len(kept))).close()
        time.sleep(0.05)


def test_kinds_of_bombs(start, tmp_path, dice, seconds):
    server = start(tmp_path / "data", "--quiet", limits={resource.RLIMIT_AS: LIMIT})
    db = server.client().bombs
    db.docs.insert_many([{"_id": i, "n": i % 3, "data": "x" * (MIB // 4)} for i in range(12)])
    db.places.create_index([("at", "2dsphere")])
    db.places.insert_many([{"at": [i % 180, i % 90]} for i in range(5000)])
    db.words.create_index([("t", "text")])
    db.words.insert_many([{"t": f"x w{i:x} some words and others"} for i in range(2000)])
    db.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})
    results, kept = [], []
    end = time.monotonic() + seconds
    make = type(dice)
    threads = [threading.Thread(target=throw, args=(server, Bombs(make(dice.random())), end, results), daemon=True) for _ in range(AT_ONCE)]
    threads.append(threading.Thread(target=follow, args=(server, make(dice.random()), end, kept), daemon=True))
    slowest, highest = watched(server, threads, end, 180)
    for raw in kept:
        raw.close()
    tell(results, slowest, highest)
    assert server.is_running and "panic" not in server.said(), f"{server.said()[-2000:]}\nafter {[str(command)[:300] for _, command, _ in results[-8:]]}"
    for state, command, took in results:
        assert state not in UNFORESEEN and (isinstance(state, int) or state in EXPECTED), f"{state} for {str(command)[:1000]}"
        assert took < STATEMENT_MAX_S, f"{took:.1f} s for {str(command)[:1000]}"
    assert slowest < PING_MAX_S
    assert db.docs.count_documents({}) == 12
    assert server.stop() == 0, server.said()[-2000:]
