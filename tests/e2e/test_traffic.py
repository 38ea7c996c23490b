"""Traffic control: limits for operations of an application, a user, a comment or a query shape."""

import contextlib
import threading
import time

import pytest
from pymongo.errors import OperationFailure, PyMongoError

LABELS = {"SystemOverloadedError", "RetryableError", "NoWritesPerformed"}
# What the tests wait for at most.
PATIENCE_S = 60


def set_limits(client, *limits):
    client.admin.command("setClusterParameter", {"trafficControl": {"limits": list(limits)}})


@pytest.fixture
def limited(start):
    """A server of its own, whose limits nobody else meets; `limited(**flags)`."""
    return start


def shown(client, name):
    """What `serverStatus` says of a limit."""
    limits = client.admin.command("serverStatus")["trafficControl"]["limits"]
    return next(limit for limit in limits if limit["name"] == name)


def refused(call):
    """The error of what meets a limit; drivers that know the labels try a few times before they show it."""
    with pytest.raises(OperationFailure) as failure:
        call()
    assert failure.value.code == 462
    assert set(failure.value.details["errorLabels"]) >= LABELS
    return failure.value.details


def plain(server, **options):
    """A client that sends each operation once."""
    return server.client(retryReads=False, retryWrites=False, **options)


def test_an_application_has_its_operations_a_second(limited):
    server = limited()
    admin, reports = plain(server), plain(server, appname="reports")
    set_limits(admin, {"name": "reports", "match": {"appName": "reports"}, "operationsPerSecond": 5})
    begun = time.monotonic()
    done = 0
    error = None
    while time.monotonic() < begun + 2:
        try:
            reports.db.c.find_one({})
            done += 1
        except OperationFailure as failure:
            error = failure
            time.sleep(0.01)
        admin.db.c.find_one({})
    took = time.monotonic() - begun
    assert 5 <= done <= 5 + 5 * took + 1, (done, took)
    assert error is not None and error.details["errInfo"]["limit"] == "reports"
    assert 0 < error.details["errInfo"]["retryAfterMillis"] <= 1_000
    counts = shown(admin, "reports")
    assert counts["admitted"] == done and counts["refused"]["operationsPerSecond"] > 0


def test_so_many_of_a_shape_run_at_a_time_whatever_the_values(limited):
    server = limited()
    client = plain(server)
    db = client.db
    db.c.insert_many([{"n": i} for i in range(5_000)])

    def pipeline(n):
        long = {"$reduce": {"input": {"$range": [0, 200]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}
        return [{"$match": {"n": {"$gte": n}}}, {"$group": {"_id": None, "s": {"$sum": long}}}]

    explained = db.command("explain", {"aggregate": "c", "pipeline": pipeline(0), "cursor": {}})
    shape = explained["queryShapeHash"]
    set_limits(client, {"name": "one", "match": {"queryShapeHash": shape}, "concurrent": 1})
    over = threading.Event()

    def hog():
        own = plain(server).db
        while not over.is_set():
            with contextlib.suppress(PyMongoError):
                list(own.c.aggregate(pipeline(0), maxTimeMS=PATIENCE_S * 1000))

    thread = threading.Thread(target=hog, daemon=True)
    thread.start()
    try:
        end = time.monotonic() + PATIENCE_S
        details = None
        while details is None and time.monotonic() < end:
            try:
                list(db.c.aggregate(pipeline(5)))
            except OperationFailure as failure:
                details = failure.details
        assert details and details["errInfo"] == {"limit": "one", "bound": "concurrent", "value": 1}
        # Another shape is not meant.
        assert db.c.count_documents({"n": {"$lt": 3}}) == 3
    finally:
        over.set()
        thread.join(PATIENCE_S)
    end = time.monotonic() + PATIENCE_S
    while shown(client, "one")["running"] and time.monotonic() < end:
        time.sleep(0.05)
    assert list(db.c.aggregate(pipeline(7))), "when it is over there is room"


def shaped(n):
    """Commands of one shape each, whatever `n` is: what explain calls the shape, and what has it."""
    query, change = {"kind": n}, {"$set": {"seen": n}}
    remove = {"q": query, "limit": 0}
    find_and_modify = {"findAndModify": "c", "query": query, "sort": {"_id": 1}, "update": change}
    map_reduce = {"mapReduce": "c", "map": "function() { emit(1, 1); }", "reduce": "function(k, v) { return 1; }", "query": query}
    first = {"q": {"_id": n}, "u": change}
    update = {"update": "c", "updates": [{"q": query, "u": change, "multi": True}]}
    in_bulk = [{"update": 0, "filter": {"_id": n}, "updateMods": change}, {"update": 0, "filter": query, "updateMods": change, "multi": True}]
    return {
        "update": (update, update),
        "the second of two updates": (update, {"update": "c", "updates": [first, *update["updates"]]}),
        "the update of a bulkWrite": (update, {"bulkWrite": 1, "ops": in_bulk, "nsInfo": [{"ns": "db.c"}], "$db": "admin"}),
        "delete": ({"delete": "c", "deletes": [remove]}, {"delete": "c", "deletes": [remove]}),
        "findAndModify": (find_and_modify, find_and_modify),
        "count": ({"count": "c", "query": query}, {"count": "c", "query": query}),
        "mapReduce": ({**map_reduce, "out": {"inline": 1}}, {**map_reduce, "out": "other"}),
    }


@pytest.mark.parametrize("name", shaped(0))
def test_writes_and_counts_have_shapes_too(limited, name):
    """Who is refused has written nothing, not even what came before the limited statement."""
    server = limited()
    client = plain(server)
    db = client.db
    documents = [{"_id": i, "kind": i % 2} for i in range(10)]
    db.c.insert_many(documents)
    explained = db.command("explain", shaped(0)[name][0], verbosity="queryPlanner")
    match = {"queryShapeHash": explained["queryShapeHash"]}
    bulk = name.endswith("bulkWrite")

    def run(n):
        command = {key: value for key, value in shaped(n)[name][1].items() if key != "$db"}
        return (client.admin if bulk else db).command(command)

    set_limits(client, {"name": "none", "match": match, "operationsPerSecond": 0})
    for n in (0, 1):
        details = refused(lambda n=n: run(n))
        assert details["errInfo"]["limit"] == "none" and details["errInfo"]["bound"] == "operationsPerSecond"
    assert list(db.c.find()) == documents and db.list_collection_names() == ["c"]
    assert shown(client, "none")["refused"]["operationsPerSecond"] == 2
    # Other shapes go on.
    db.c.update_one({"_id": 1, "kind": 1}, {"$set": {"other": 1}})
    db.c.delete_one({"_id": 1, "kind": 5})
    set_limits(client, {"name": "some", "match": match, "operationsPerSecond": 1000, "cpuMillisPerSecond": 500})
    assert run(1)["ok"] == 1.0
    counts = shown(client, "some")
    assert counts["admitted"] == 1 and counts["running"] == 0 and counts["cpuMicros"] > 0, counts


def test_processor_time_is_shared_out_on_average(limited):
    server = limited()
    client = plain(server)
    db = client.db
    db.c.insert_many([{"n": i} for i in range(2_000)])
    set_limits(client, {"name": "cheap", "match": {"comment": "cheap"}, "cpuMillisPerSecond": 100, "priority": "low"})
    long = {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}
    pipeline = [{"$group": {"_id": None, "s": {"$sum": long}}}]
    begun = time.monotonic()
    refusals = 0
    while time.monotonic() < begun + 3:
        try:
            list(db.c.aggregate(pipeline, comment="cheap"))
        except OperationFailure as failure:
            assert failure.details["errInfo"]["bound"] == "cpuMillisPerSecond"
            refusals += 1
            time.sleep(0.02)
    took = time.monotonic() - begun
    counts = shown(client, "cheap")
    # A second's worth at once and then what comes in, with some room for what one look after the other uses.
    assert counts["cpuMicros"] <= (took + 1) * 100_000 * 1.5 + 100_000, counts
    assert refusals or counts["pausedMicros"] > 0


def test_one_that_pauses_can_be_stopped(limited):
    server = limited()
    client = plain(server)
    db = client.db
    db.c.insert_many([{"n": i} for i in range(5_000)])
    set_limits(client, {"name": "none", "match": {"comment": "none"}, "cpuMillisPerSecond": 1})
    long = {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}
    begun = time.monotonic()
    with pytest.raises(OperationFailure) as failure:
        list(db.c.aggregate([{"$group": {"_id": None, "s": {"$sum": long}}}], comment="none", maxTimeMS=1_000))
    assert failure.value.code == 50
    assert time.monotonic() - begun < PATIENCE_S
    # Its time goes on while it pauses, and others run.
    assert db.c.count_documents({}) == 5_000


def test_a_user_has_limits_and_the_rest_of_a_transaction_goes_on(start):
    server = start(None, "--auth")
    first = server.client()
    first.admin.command("createUser", "root", pwd="root", roles=["root"])
    root = server.client(username="root", password="root")
    root.admin.command("createUser", "u", pwd="u", roles=["readWriteAnyDatabase"])
    root.db.create_collection("c")
    user = server.client(username="u", password="u", retryReads=False, retryWrites=False)
    with user.start_session() as session:
        session.start_transaction()
        user.db.c.insert_one({"_id": 1}, session=session)
        of_user = {"user": {"user": "u", "db": "admin"}}
        set_limits(root, {"name": "none", "match": of_user, "operationsPerSecond": 0})
        refused(lambda: user.db.c.find_one({}))
        user.db.c.insert_one({"_id": 2}, session=session)
        session.commit_transaction()
    with user.start_session() as session:
        session.start_transaction()
        details = refused(lambda: user.db.c.insert_one({"_id": 3}, session=session))
        assert "TransientTransactionError" in details["errorLabels"]
        session.abort_transaction()
    assert root.db.c.count_documents({}) == 2
    # The limits stand after a start, and who set them can take them back.
    set_limits(root)
    assert user.db.c.count_documents({}) == 2


def test_limits_outlive_the_server(start, tmp_path):
    limit = {"name": "none", "match": {"comment": "x"}, "concurrent": 0}
    server = start(dbpath=tmp_path / "data")
    set_limits(plain(server), limit)
    server.stop()
    again = start(dbpath=tmp_path / "data")
    client = plain(again)
    refused(lambda: client.db.c.find_one({}, comment="x"))
    (parameter,) = client.admin.command("getClusterParameter", "trafficControl")["clusterParameters"]
    assert parameter["limits"] == [limit]


def test_only_who_may_set_cluster_parameters_sets_limits(start):
    server = start(None, "--auth")
    first = server.client()
    first.admin.command("createUser", "root", pwd="root", roles=["root"])
    root = server.client(username="root", password="root")
    root.admin.command("createUser", "u", pwd="u", roles=["readWriteAnyDatabase"])
    with pytest.raises(OperationFailure) as failure:
        set_limits(server.client(username="u", password="u"))
    assert failure.value.code == 13


def test_batches_of_a_cursor_count_for_its_shape(limited):
    server = limited()
    client = plain(server)
    db = client.db
    db.c.insert_many([{"n": i} for i in range(300)])
    find = {"find": "c", "filter": {"n": {"$gte": 0}}, "batchSize": 10}
    shape = db.command("explain", find)["queryShapeHash"]
    set_limits(client, {"name": "one", "match": {"queryShapeHash": shape}, "concurrent": 1})
    cursor = db.command({**find, "filter": {"n": {"$gte": 3}}})["cursor"]
    before = shown(client, "one")
    assert before["running"] == 0
    more = db.command("getMore", cursor["id"], collection="c")["cursor"]["nextBatch"]
    assert len(more) == 287
    # A batch is no operation more.
    assert shown(client, "one")["admitted"] == before["admitted"] == 1


def test_hashes_of_shapes_are_those_of_query_settings(limited):
    server = limited()
    client = plain(server)
    client.db.c.insert_one({"_id": 1, "a": 1})
    query = {"find": "c", "filter": {"a": 1}, "$db": "db"}
    hash = client.admin.command("setQuerySettings", query, settings={"queryFramework": "classic"})["queryShapeHash"]
    set_limits(client, {"name": "a", "match": {"queryShapeHash": hash.lower()}, "concurrent": 0})
    refused(lambda: list(client.db.c.find({"a": 7})))
