"""Query settings: what is set for all queries of a shape."""

import pytest
from bson import SON
from pymongo.errors import OperationFailure


@pytest.fixture
def settings(client, db):
    """`settings(query, **what)` sets; all of the database's are removed afterwards."""
    db.c.insert_many([{"a": i % 10, "b": i} for i in range(100)])
    db.c.create_index("a")
    db.c.create_index("b")

    def of(query):
        return SON([*query.items(), ("$db", db.name)])

    def set_(query, **what):
        return client.admin.command("setQuerySettings", of(query), settings=what)

    set_.of = of
    set_.hint = lambda *indexes: [{"ns": {"db": db.name, "coll": "c"}, "allowedIndexes": list(indexes)}]
    yield set_
    for entry in listed(client):
        if entry["representativeQuery"]["$db"] == db.name:
            client.admin.command("removeQuerySettings", entry["queryShapeHash"])


def listed(client, **options):
    return list(client.admin.aggregate([{"$querySettings": options}]))


FIND = {"find": "c", "filter": {"a": 1, "b": 1}}


def planner(db, command):
    return db.command("explain", command, verbosity="queryPlanner")["queryPlanner"]


def scans(plan):
    """The indexes and scans of a plan."""
    inputs = plan.get("inputStages", [plan["inputStage"]] if "inputStage" in plan else [])
    return [plan.get("indexName", plan["stage"])] if not inputs else [s for i in inputs for s in scans(i)]


def test_a_reply_tells_what_is_set(client, db, settings):
    reply = settings(FIND, indexHints=settings.hint("a_1"), comment="why")
    assert reply["settings"] == {"indexHints": settings.hint("a_1"), "comment": "why"}
    assert reply["representativeQuery"] == settings.of(FIND)
    assert db.command("explain", FIND)["queryShapeHash"] == reply["queryShapeHash"]
    (entry,) = listed(client)
    assert {name: entry[name] for name in ("queryShapeHash", "settings", "representativeQuery")} == {
        name: reply[name] for name in ("queryShapeHash", "settings", "representativeQuery")
    }
    shape = listed(client, showDebugQueryShape=True)[0]["debugQueryShape"]
    assert shape["cmdNs"] == {"db": db.name, "coll": "c"} and shape["command"] == "find"


def test_what_is_not_given_again_stays(client, settings):
    hash = settings(FIND, indexHints=settings.hint("a_1"))["queryShapeHash"]
    reply = client.admin.command("setQuerySettings", hash, settings={"comment": "x"})
    assert reply["settings"] == {"indexHints": settings.hint("a_1"), "comment": "x"}
    assert client.admin.command("removeQuerySettings", hash)["ok"] == 1
    assert listed(client) == []
    assert client.admin.command("removeQuerySettings", hash)["ok"] == 1


@pytest.mark.parametrize("index", ["a_1", "b_1"])
def test_hints_choose_the_index_of_finds(db, settings, index):
    settings(FIND, indexHints=settings.hint(index))
    shown = planner(db, FIND)
    assert scans(shown["winningPlan"]) == [index]
    assert shown["querySettings"] == {"indexHints": settings.hint(index)} and shown["indexFilterSet"] is False
    # Other literals, the same shape; its own hint does not count.
    other = {"find": "c", "filter": {"a": 7, "b": 70}, "hint": "a_1"}
    assert scans(planner(db, other)["winningPlan"]) == [index]
    assert [d["b"] for d in db.c.find({"a": 7, "b": 17})] == [17]
    # Another shape.
    assert "querySettings" not in planner(db, {"find": "c", "filter": {"a": 1}})
    # They come before index filters.
    unwanted = "b_1" if index == "a_1" else "a_1"
    db.command("planCacheSetFilter", "c", query={"a": 1, "b": 1}, indexes=[unwanted])
    assert scans(planner(db, FIND)["winningPlan"]) == [index]
    db.command("planCacheClearFilters", "c")


def test_hints_of_key_patterns_natural_order_and_missing_indexes(db, settings):
    settings(FIND, indexHints=settings.hint({"b": 1}))
    assert scans(planner(db, FIND)["winningPlan"]) == ["b_1"]
    settings(FIND, indexHints=settings.hint("$natural"))
    assert scans(planner(db, FIND)["winningPlan"]) == ["COLLSCAN"]
    settings(FIND, indexHints=settings.hint({"$natural": -1}))
    assert planner(db, FIND)["winningPlan"]["direction"] == "backward"
    settings(FIND, indexHints=settings.hint("nosuch"))
    assert scans(planner(db, FIND)["winningPlan"]) in (["a_1"], ["b_1"])


def test_hints_of_pipelines_and_distinct(db, settings):
    pipeline = {"aggregate": "c", "pipeline": [{"$match": {"a": 1, "b": 1}}, {"$project": {"a": 1}}], "cursor": {}}
    without_cursor = {name: value for name, value in pipeline.items() if name != "cursor"}
    distinct = {"distinct": "c", "key": "a", "query": {"a": 1, "b": 1}}
    for index in ("a_1", "b_1"):
        settings(without_cursor, indexHints=settings.hint(index))
        settings(distinct, indexHints=settings.hint(index))
        shown = db.command("explain", pipeline)
        planned = shown.get("queryPlanner") or shown["stages"][0]["$cursor"]["queryPlanner"]
        assert scans(planned["winningPlan"]) == [index] and "querySettings" in planned
        assert scans(planner(db, distinct)["winningPlan"]) == [index]
        db.command("profile", 2)
        assert [d["a"] for d in db.c.aggregate(pipeline["pipeline"])] == [1]
        assert db.c.distinct("a", {"a": 1, "b": 1}) == [1]
        db.command("profile", 0)
        ran = list(db["system.profile"].find({"op": "command", "keysExamined": {"$gt": 0}}).sort("$natural", -1).limit(2))
        assert {r["planSummary"] for r in ran} == {f"IXSCAN {{ {index[0]}: 1 }}"}


@pytest.mark.parametrize(
    "query",
    [
        {"find": "c", "filter": {"a": 5}},
        {"distinct": "c", "key": "b", "query": {"a": 5}},
        {"aggregate": "c", "pipeline": [{"$match": {"a": 5}}]},
    ],
    ids=lambda query: next(iter(query)),
)
def test_queries_can_be_refused(db, settings, query):
    settings(query, reject=True)
    command = {**query, "cursor": {}} if "aggregate" in query else query
    with pytest.raises(OperationFailure) as error:
        db.command(command)
    assert error.value.code == 411
    # Explaining one is no query.
    db.command("explain", command, verbosity="queryPlanner")
    settings(query, reject=False, queryFramework="classic")
    assert db.command(command)["ok"] == 1


@pytest.mark.parametrize(
    "query, settings_, code",
    [
        ({"count": "c"}, {"reject": True}, 7746402),
        ({"find": "c", "filter": {"_id": 1}}, {"reject": True}, 7746606),
        ({"find": "system.js"}, {"reject": True}, 8584901),
        ({"find": "c", "filter": {"$nosuch": 1}}, {"reject": True}, 2),
        ({"find": "c"}, {}, 8727502),
        ({"find": "c"}, {"reject": False}, 7746604),
        ({"find": "c"}, {"queryFramework": "other"}, 2),
        ({"find": "c"}, {"nosuch": 1}, 40415),
    ],
)
def test_refusals(settings, query, settings_, code):
    with pytest.raises(OperationFailure) as error:
        settings(query, **settings_)
    assert error.value.code == code


def test_refusals_of_whole_commands(client, settings):
    for command, code in (
        ({"setQuerySettings": {"find": "c", "$db": "admin"}, "settings": {"reject": True}}, 8584900),
        ({"setQuerySettings": {"find": "c"}, "settings": {"reject": True}}, 40414),
        ({"setQuerySettings": "0" * 64, "settings": {"reject": True}}, 7746401),
        ({"setQuerySettings": 1, "settings": {"reject": True}}, 14),
        ({"removeQuerySettings": 1}, 14),
    ):
        with pytest.raises(OperationFailure) as error:
            client.admin.command(command)
        assert error.value.code == code, command


def test_they_survive_a_restart(start, tmp_path):
    server = start(tmp_path / "db")
    client = server.client()
    client.d.c.insert_one({"a": 1})
    query = {"find": "c", "filter": {"a": 1}, "$db": "d"}
    client.admin.command("setQuerySettings", query, settings={"reject": True})
    before = listed(client)
    server.stop()
    server.start()
    client = server.client()
    assert listed(client) == before
    with pytest.raises(OperationFailure) as error:
        list(client.d.c.find({"a": 3}))
    assert error.value.code == 411
    client.admin.command("removeQuerySettings", query)
    server.stop()
    server.start()
    client = server.client()
    assert listed(client) == [] and len(list(client.d.c.find({"a": 1}))) == 1
