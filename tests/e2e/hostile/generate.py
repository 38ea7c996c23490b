"""Random but structured MongoDB commands: what is well-formed, and mutations of it.

A document is a list `Pairs` of names and values, so that names may come twice and in any order.
"""

import datetime
import struct
import sys

import bson
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

# Encoding a document that nests 250 levels deep takes a thousand frames.
sys.setrecursionlimit(20_000)


class Pairs(list):
    """A document: names with values."""


def encode(pairs):
    """BSON of a document."""
    body = b"".join(_element(str(name), value) for name, value in pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name, value):
    key = name.replace("\0", "").encode("utf-8", "replace") + b"\0"
    if isinstance(value, Pairs):
        return b"\3" + key + encode(value)
    if isinstance(value, list):
        return b"\4" + key + encode(Pairs((i, v) for i, v in enumerate(value)))
    if isinstance(value, Mismatched):
        return value.kind + key + value.body
    encoded = bson.encode({"": value})
    return encoded[4:5] + key + encoded[6:-1]


class Mismatched:
    """An element of some kind with a body of whatever: BSON that is not valid."""

    def __init__(self, dice):
        self.kind = bytes([dice.choice([0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0B, 0x0C, 0x0D, 0x0F, 0x14, 0x7E, 0xFE])])
        self.body = dice.randbytes(dice.randrange(24))

    def __repr__(self):
        return f"<kind {self.kind.hex()} {self.body.hex()}>"


def document(**fields):
    return Pairs(fields.items())


FIELDS = ["a", "b", "c", "_id", "a.b", "a.0", "b.c.d", "n", "s", "t", "", ".", "a.", "$a", "a.$", "a.$[]", "a.$[x]", "0", "é\u200d", "x" * 300]
STRINGS = ["", "a", "$a", "$$ROOT", "$$this", "$$value", "$$NOW", "$", "$$", "$a.b", "text", "%Y-%m-%d", "UTC", "+25:00", "int", "a" * 5000, "\u0130\u0307", "[", "(a+)+$", "1", "-"]
COLLECTIONS = ["c", "d", "e", "v", "capped", "missing", "system.profile", "system.views", "system.indexes", "$cmd.aggregate", "oplog.rs", "", "a.b", "x" * 300, "$cmd"]
TYPES = ["int", "long", "double", "decimal", "string", "date", "bool", "object", "array", "objectId", "number", "binData", "null", "missing", 1, 2, -1, 127, 999]

NARY = """add subtract multiply divide mod pow log and or not eq ne gt gte lt lte cmp concat concatArrays setUnion setIntersection setDifference setEquals
    setIsSubset arrayElemAt in indexOfArray indexOfBytes indexOfCP range slice split strcasecmp substr substrBytes substrCP min max sum avg stdDevPop stdDevSamp
    mergeObjects ifNull cond arrayToObject objectToArray atan2 trunc round bitAnd bitOr bitXor allElementsTrue anyElementTrue""".split()
UNARY = """abs ceil floor exp ln log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degreesToRadians radiansToDegrees bitNot type isNumber
    isArray size reverseArray first last toString toInt toLong toDouble toDecimal toBool toDate toObjectId toUpper toLower strLenBytes strLenCP binarySize
    bsonSize year month dayOfMonth dayOfWeek dayOfYear hour minute second millisecond week isoWeek isoWeekYear isoDayOfWeek literal meta tsSecond tsIncrement
    toHashedIndexKey toUUID""".split()
NAMED = {
    "map": "input as in", "filter": "input as cond limit", "reduce": "input initialValue in", "let": "vars in", "switch": "branches default", "zip": "inputs useLongestLength defaults",
    "cond": "if then else", "convert": "input to onError onNull format", "dateAdd": "startDate unit amount timezone", "dateDiff": "startDate endDate unit timezone startOfWeek",
    "dateFromParts": "year month day hour minute second millisecond timezone", "dateFromString": "dateString format timezone onError onNull",
    "dateToParts": "date timezone iso8601", "dateToString": "date format timezone onNull", "dateTrunc": "date unit binSize timezone startOfWeek", "dateSubtract": "startDate unit amount",
    "getField": "field input", "setField": "field input value", "unsetField": "field input", "regexFind": "input regex options", "regexFindAll": "input regex options",
    "regexMatch": "input regex options", "replaceAll": "input find replacement", "replaceOne": "input find replacement", "sortArray": "input sortBy", "trim": "input chars",
    "ltrim": "input chars", "rtrim": "input chars", "firstN": "input n", "lastN": "input n", "maxN": "input n", "minN": "input n", "median": "input method",
    "percentile": "input p method", "rand": "", "sampleRate": "",
}
NAMED = {name: fields.split() for name, fields in NAMED.items()}
ACCUMULATORS = "sum avg min max push addToSet first last stdDevPop stdDevSamp mergeObjects count".split()
N_ACCUMULATORS = {"firstN": "input n", "lastN": "input n", "maxN": "input n", "minN": "input n", "top": "sortBy output", "topN": "sortBy output n", "bottom": "sortBy output", "median": "input method", "percentile": "input p method"}
WINDOW = "rank denseRank documentNumber shift derivative integral expMovingAvg covariancePop linearFill locf".split() + ACCUMULATORS
QUERY = "eq ne gt gte lt lte in nin exists type all elemMatch size mod regex options bitsAllSet bitsAnyClear not expr jsonSchema comment".split()
UPDATES = "set unset inc mul min max rename setOnInsert currentDate bit push addToSet pop pull pullAll".split()
GENERIC = ["maxTimeMS", "comment", "readConcern", "writeConcern", "collation", "hint", "let", "lsid", "txnNumber", "autocommit", "startTransaction", "$readPreference", "apiVersion", "apiStrict", "$clusterTime", "allowDiskUse", "nonsense", "cursor", "batchSize", "rawData", "explain", "bypassDocumentValidation", "stmtId", "stmtIds", "$db"]


class Generator:
    """All that is random comes from `dice`."""

    def __init__(self, dice):
        self.dice = dice

    def any(self, *choices):
        return self.dice.choice(choices)()

    def scalar(self):
        dice = self.dice
        return dice.choice([
            lambda: dice.choice([0, 1, -1, 2, 3, 10, 2**31 - 1, -(2**31)]),
            lambda: Int64(dice.choice([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1])),
            lambda: dice.choice([0.0, -0.0, 0.5, 1e308, -1e-320, float("nan"), float("inf"), -float("inf"), 2.0**63]),
            lambda: Decimal128(dice.choice(["0", "-0", "1.10", "NaN", "Infinity", "9E6144", "1E-6176"])),
            lambda: dice.choice(STRINGS),
            lambda: dice.choice([True, False, None]),
            lambda: datetime.datetime(dice.choice([1, 1970, 2024, 9999]), dice.randrange(1, 13), dice.randrange(1, 29)),
            lambda: bson.datetime_ms.DatetimeMS(dice.choice([2**63 - 1, -(2**63), 0])),
            lambda: Timestamp(dice.choice([0, 1, 2**32 - 1]), dice.choice([0, 1, 2**32 - 1])),
            lambda: ObjectId(b"\0" * 11 + bytes([dice.randrange(4)])),
            lambda: Regex(dice.choice(["a", "^a", "(a|b)*c", "[", "(?<n>a)\\k<n>", "\\p{L}"]), dice.choice([0, 2, 8, 16])),
            lambda: Binary(dice.randbytes(dice.choice([0, 1, 16, 17])), dice.choice([0, 2, 3, 4, 5, 6, 8, 9, 128])),
            lambda: dice.choice([MinKey(), MaxKey(), Code("x"), Code("x", {"a": 1})]),
        ])()

    def value(self, depth=3):
        roll = self.dice.random()
        if depth and roll < 0.15:
            return [self.value(depth - 1) for _ in range(self.dice.randrange(4))]
        if depth and roll < 0.3:
            return Pairs((self.field(), self.value(depth - 1)) for _ in range(self.dice.randrange(4)))
        return self.scalar()

    def field(self):
        return self.dice.choice(FIELDS[:10] if self.dice.random() < 0.9 else FIELDS)

    def plain(self):
        """A document to store."""
        return Pairs([("_id", self.dice.randrange(200) if self.dice.random() < 0.8 else self.value(2))] * (self.dice.random() < 0.8) + [(f, self.value()) for f in "abcnst" if self.dice.random() < 0.5])

    def expression(self, depth=3):
        dice = self.dice
        if depth == 0 or dice.random() < 0.25:
            return dice.choice(["$a", "$b", "$a.b", "$$ROOT", "$$this", "$$value", "$n", "$s", "$t"]) if dice.random() < 0.6 else self.value(1)
        inner = lambda: self.expression(depth - 1)
        roll = dice.random()
        if roll < 0.4:
            return document(**{"$" + dice.choice(NARY): [inner() for _ in range(dice.choice([1, 2, 2, 2, 3]))]})
        if roll < 0.65:
            return document(**{"$" + dice.choice(UNARY): inner()})
        if roll < 0.95:
            name = dice.choice(list(NAMED))
            return document(**{"$" + name: self.named(NAMED[name], inner)})
        return Pairs((self.field(), inner()) for _ in range(2))

    def named(self, fields, inner):
        special = {
            "as": lambda: self.dice.choice(["this", "x", "value"]), "unit": lambda: self.dice.choice(["day", "month", "hour", "week", "millisecond", "quarter"]),
            "vars": lambda: Pairs([("x", inner())]), "branches": lambda: [document(case=inner(), then=inner())], "inputs": lambda: [inner(), inner()], "sortBy": lambda: self.sort(),
            "n": lambda: self.dice.choice([1, 2, 0, -1, inner()]), "method": lambda: "approximate", "p": lambda: [0.5, self.dice.choice([0.1, 2])], "to": lambda: self.dice.choice(TYPES),
            "regex": lambda: self.dice.choice(["a", "(", "a*", "^"]), "options": lambda: self.dice.choice(["", "i", "x", "q"]), "field": lambda: self.field(),
        }
        return Pairs((f, special.get(f, inner)()) for f in fields if self.dice.random() < 0.85)

    def filter(self, depth=3):
        dice = self.dice
        out = Pairs()
        for _ in range(dice.randrange(3)):
            roll = dice.random()
            if depth and roll < 0.2:
                out.append((dice.choice(["$and", "$or", "$nor"]), [self.filter(depth - 1) for _ in range(dice.randrange(1, 3))]))
            elif roll < 0.25:
                out.append(("$expr", self.expression(2)))
            elif roll < 0.28:
                out.append(("$jsonSchema", document(properties=Pairs([(self.field(), document(bsonType=dice.choice(TYPES)))]), required=["a"])))
            elif roll < 0.5:
                out.append((self.field(), self.value(1)))
            else:
                name = dice.choice(QUERY)
                value = [self.value(1) for _ in range(dice.randrange(4))] if name in ("in", "nin", "all", "mod") else self.filter(depth - 1) if depth and name in ("elemMatch", "not") else self.value(1)
                out.append((self.field(), document(**{"$" + name: value})))
        return out

    def sort(self):
        return Pairs((self.field(), self.dice.choice([1, -1, 1, -1, 0, "a", document(**{"$meta": "textScore"})])) for _ in range(self.dice.randrange(1, 3)))

    def projection(self):
        return Pairs((self.field(), self.dice.choice([1, 0, True, document(**{"$slice": [1, 2]}), document(**{"$elemMatch": self.filter(1)}), self.expression(2)])) for _ in range(self.dice.randrange(1, 3)))

    def update(self):
        dice = self.dice
        if dice.random() < 0.25:
            return [self.stage(1, ["$set", "$unset", "$replaceWith", "$project", "$addFields"]) for _ in range(dice.randrange(1, 3))]
        if dice.random() < 0.2:
            return self.plain()
        out = Pairs()
        for name in dice.sample(UPDATES, dice.randrange(1, 3)):
            value = self.value(2)
            if name == "push" and dice.random() < 0.7:
                value = Pairs([("$each", [self.value(1), self.value(1)])] + [(k, self.value(1)) for k in ("$slice", "$sort", "$position") if dice.random() < 0.4])
            if name in ("inc", "mul"):
                value = dice.choice([1, 2.5, Int64(2**62), Decimal128("1"), value])
            if name == "rename":
                value = self.field()
            out.append(("$" + name, Pairs([(self.field(), value)])))
        return out

    def accumulator(self):
        if self.dice.random() < 0.8:
            name = self.dice.choice(ACCUMULATORS)
            return document(**{"$" + name: Pairs() if name == "count" else self.expression(2)})
        name = self.dice.choice(list(N_ACCUMULATORS))
        return document(**{"$" + name: self.named(N_ACCUMULATORS[name].split(), lambda: self.expression(1))})

    def stage(self, depth=2, names=None):
        dice = self.dice
        inner = lambda: self.pipeline(depth - 1) if depth else []
        outputs = lambda make: Pairs((dice.choice("xyz"), make()) for _ in range(dice.randrange(1, 3)))
        make = {
            "$match": self.filter, "$project": self.projection, "$set": lambda: outputs(lambda: self.expression()), "$addFields": lambda: outputs(lambda: self.expression()),
            "$unset": lambda: dice.choice([self.field(), [self.field(), "c"]]), "$sort": self.sort, "$limit": lambda: dice.choice([1, 3, 100, 0, -1]), "$skip": lambda: dice.choice([0, 1, 100, -1]),
            "$count": lambda: self.field(), "$sample": lambda: document(size=dice.choice([1, 5, -1])), "$unwind": lambda: dice.choice(["$a", document(path="$a", includeArrayIndex="i", preserveNullAndEmptyArrays=True)]),
            "$replaceRoot": lambda: document(newRoot=self.expression()), "$replaceWith": self.expression, "$redact": lambda: dice.choice(["$$KEEP", "$$DESCEND", "$$PRUNE", self.expression()]),
            "$group": lambda: Pairs([("_id", self.expression())] + [(f, self.accumulator()) for f in "xy"]), "$sortByCount": self.expression,
            "$bucket": lambda: document(groupBy=self.expression(), boundaries=sorted(dice.sample(range(9), 3)), default="other"),
            "$bucketAuto": lambda: document(groupBy=self.expression(), buckets=dice.choice([1, 3, 0]), granularity=dice.choice(["R5", "POWERSOF2", "x"])),
            "$facet": lambda: outputs(inner),
            "$lookup": lambda: dice.choice([document(**{"from": "d", "localField": self.field(), "foreignField": self.field(), "as": "j"}), document(**{"from": "d", "let": Pairs([("x", self.expression(1))]), "pipeline": inner(), "as": "j"})]),
            "$graphLookup": lambda: document(**{"from": "d", "startWith": self.expression(1), "connectFromField": "a", "connectToField": "b", "as": "g", "maxDepth": dice.choice([0, 2, -1])}),
            "$unionWith": lambda: dice.choice(["d", document(coll="d", pipeline=inner())]), "$documents": lambda: [self.plain(), self.plain()],
            "$setWindowFields": lambda: document(partitionBy=self.expression(1), sortBy=self.sort(), output=Pairs([("w", Pairs([("$" + dice.choice(WINDOW), self.expression(1)), ("window", document(**{dice.choice(["documents", "range"]): [dice.choice(["unbounded", "current", -2, 1]), dice.choice(["unbounded", "current", 2])]}))]))])),
            "$fill": lambda: document(sortBy=self.sort(), output=Pairs([(self.field(), document(method=dice.choice(["linear", "locf"])))])),
            "$densify": lambda: document(field=self.field(), range=document(step=dice.choice([1, 0.5, 0, 1000]), bounds=dice.choice(["full", "partition", [0, 50]]))),
            "$out": lambda: dice.choice(["out", document(db="fuzz", coll="out")]), "$merge": lambda: document(into=dice.choice(["out", "d"]), on=dice.choice(["_id", "a"]), whenMatched=dice.choice(["replace", "merge", "fail", "keepExisting", self.pipeline(0)])),
            "$collStats": lambda: document(count=Pairs(), latencyStats=Pairs()), "$indexStats": Pairs, "$planCacheStats": Pairs, "$listSessions": Pairs, "$currentOp": Pairs, "$nope": Pairs,
        }
        name = dice.choice(names or list(make))
        return Pairs([(name, make[name]())])

    def pipeline(self, depth=2):
        return [self.stage(depth) for _ in range(self.dice.randrange(4))]

    def index(self):
        keys = Pairs((self.field(), self.dice.choice([1, -1, 1, "hashed", "text", "2d", 0])) for _ in range(self.dice.randrange(1, 4)))
        if self.dice.random() < 0.1:
            keys = Pairs([(self.dice.choice(["$**", "a.$**"]), 1)])
        spec = Pairs([("key", keys), ("name", f"i{self.dice.randrange(8)}")])
        options = {"unique": True, "sparse": True, "hidden": True, "expireAfterSeconds": 10_000, "partialFilterExpression": None, "collation": document(locale="de"), "wildcardProjection": Pairs([("a", 1)])}
        for option in self.dice.sample(list(options), self.dice.choice([0, 0, 1, 2])):
            spec.append((option, self.filter(1) if options[option] is None else options[option]))
        return spec

    def command(self, names):
        """A command of some kind; `names` are those that the server lists."""
        dice = self.dice
        coll = dice.choice(COLLECTIONS[:5] if dice.random() < 0.93 else COLLECTIONS)
        find = lambda: Pairs([("find", coll), ("filter", self.filter())] + [(k, v()) for k, v in {"sort": self.sort, "projection": self.projection, "limit": lambda: dice.choice([1, 5, -1]), "skip": lambda: 1, "batchSize": lambda: dice.choice([0, 1, 2]), "hint": lambda: dice.choice(["i1", Pairs([("a", 1)]), Pairs([("$natural", -1)])]), "collation": lambda: document(locale=dice.choice(["en", "simple", "xx"]), strength=dice.choice([1, 2, 9])), "returnKey": lambda: True, "showRecordId": lambda: True, "min": lambda: Pairs([("a", 1)]), "let": lambda: Pairs([("x", self.value(1))])}.items() if dice.random() < 0.15])
        aggregate = lambda: document(aggregate=dice.choice([coll, coll, coll, 1]), pipeline=self.pipeline(), cursor=Pairs([("batchSize", 2)] * dice.randrange(2)))
        update = lambda: document(update=coll, updates=[Pairs([("q", self.filter(1)), ("u", self.update()), ("multi", dice.random() < 0.4), ("upsert", dice.random() < 0.3)] + [("arrayFilters", [Pairs([("x.a", self.value(1))])])] * (dice.random() < 0.2)) for _ in range(dice.randrange(1, 3))], ordered=dice.random() < 0.5)
        kinds = [
            (4, find), (6, aggregate), (4, update),
            (5, lambda: document(insert=coll, documents=[self.plain() for _ in range(dice.randrange(1, 5))], ordered=dice.random() < 0.5)),
            (1, lambda: document(delete=coll, deletes=[document(q=self.filter(1), limit=dice.choice([0, 1, 1, 1, 2]))])),
            (3, lambda: Pairs([("findAndModify", coll), ("query", self.filter(1)), ("sort", self.sort())] + dice.choice([[("remove", True)], [("update", self.update()), ("new", dice.random() < 0.5), ("upsert", dice.random() < 0.3)]]) + [("fields", self.projection())] * dice.randrange(2))),
            (2, lambda: document(bulkWrite=1, ops=[dice.choice([document(insert=0, document=self.plain()), document(update=dice.randrange(2), filter=self.filter(1), updateMods=self.update(), multi=dice.random() < 0.3, upsert=dice.random() < 0.3), document(delete=0, filter=self.filter(1))]) for _ in range(dice.randrange(1, 4))], nsInfo=[document(ns="fuzz." + coll), document(ns="fuzz.d")], errorsOnly=dice.random() < 0.3)),
            (1, lambda: document(count=coll, query=self.filter())), (1, lambda: document(distinct=coll, key=self.field(), query=self.filter())),
            (1, lambda: document(createIndexes=coll, indexes=[self.index()])), (0.5, lambda: document(dropIndexes=coll, index=dice.choice(["i1", "*", ["i2", "i3"], Pairs([("a", 1)])]))),
            (0.4, lambda: Pairs([("create", coll)] + [(k, v()) for k, v in {"capped": lambda: True, "size": lambda: 5000, "max": lambda: 3, "validator": lambda: self.filter(1), "viewOn": lambda: "c", "pipeline": self.pipeline, "collation": lambda: document(locale="fr"), "clusteredIndex": lambda: document(key=Pairs([("_id", 1)]), unique=True), "changeStreamPreAndPostImages": lambda: document(enabled=True)}.items() if dice.random() < 0.3])),
            (0.2, lambda: document(drop=coll)), (0.3, lambda: document(renameCollection="fuzz." + coll, to="fuzz." + dice.choice("cde"), dropTarget=True)),
            (0.4, lambda: Pairs([("collMod", coll)] + dice.choice([[("validator", self.filter(1))], [("index", document(name="i1", hidden=True))], [("viewOn", "c"), ("pipeline", self.pipeline(1))]]))),
            (2, lambda: document(explain=dice.choice([find, aggregate, update])(), verbosity=dice.choice(["queryPlanner", "executionStats", "allPlansExecution"]))),
            (0.3, lambda: document(getMore=Int64(dice.choice([1, -1, 2**62])), collection=coll)), (0.3, lambda: document(applyOps=[document(op=dice.choice("iudcn"), ns="fuzz." + coll, o=self.plain(), o2=self.filter(1))])),
            (0.3, lambda: document(setQuerySettings=Pairs(find() + [("$db", "fuzz")]), settings=document(indexHints=document(ns=document(db="fuzz", coll=coll), allowedIndexes=["i1"]), reject=False))),
            (0.3, lambda: document(validate=coll, full=True)), (0.2, lambda: document(planCacheSetFilter=coll, query=self.filter(1), indexes=["i1"])), (0.1, lambda: document(compact=coll)),
            (3, lambda: Pairs([(dice.choice(names), dice.choice([coll, 1, "fuzz", self.value(1)]))] + [(dice.choice(GENERIC), self.value(1)) for _ in range(dice.randrange(2))])),
        ]
        chosen = dice.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()
        if dice.random() < 0.15:
            chosen.append((dice.choice(GENERIC), self.value(2)))
        return chosen

    def mutated(self, value, rate):
        """The same with mishaps."""
        dice = self.dice
        if dice.random() < rate:
            return dice.choice([lambda: self.value(), lambda: [value], lambda: Pairs([(self.field(), value)]), lambda: None, lambda: self.expression(2), lambda: self.nested(dice.choice([30, 150, 250]))])()
        if isinstance(value, Pairs):
            out = Pairs()
            for name, inner in value:
                roll = dice.random()
                if roll < rate:
                    continue
                if roll < 2 * rate:
                    out.append((name, self.mutated(inner, rate)))
                if 2 * rate < roll < 3 * rate:
                    name = dice.choice(FIELDS + ["$" + dice.choice(NARY + QUERY + UPDATES)])
                out.append((name, self.mutated(inner, rate)))
            return out
        if isinstance(value, list):
            return [self.mutated(inner, rate) for inner in value]
        return value

    def nested(self, depth):
        value = self.scalar()
        for _ in range(depth):
            value = [value] if self.dice.random() < 0.5 else Pairs([(self.dice.choice(["a", "$and", "$not", "$add", "$elemMatch"]), value)])
        return value
