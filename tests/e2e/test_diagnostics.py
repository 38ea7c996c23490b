"""What serverStatus, currentOp and $collStats count and show. Expected fields: the manual's pages of the same names."""

import threading

import pytest
from pymongo import CursorType, UpdateOne
from pymongo.errors import OperationFailure

from harness import eventually


def status(db, **options):
    return db.client.admin.command("serverStatus", **options)


@pytest.fixture
def counted(db):
    """`counted(path)`: by how much a number of serverStatus has grown since the test began."""
    first = status(db)

    def grown(path):
        before, after = first, status(db)
        for name in path.split("."):
            before, after = before[name], after[name]
        return after - before

    return grown


def test_documents_and_queries_are_counted(db, counted):
    db.c.insert_many([{"_id": i, "a": i} for i in range(10)])
    db.c.create_index("a")
    assert counted("metrics.document.inserted") == 10
    assert len(list(db.c.find({"a": {"$gte": 5}}))) == 5
    assert counted("metrics.document.returned") == 5
    assert counted("metrics.queryExecutor.scanned") == 5
    assert counted("metrics.queryExecutor.scannedObjects") == 5
    assert counted("metrics.queryExecutor.collectionScans.total") == 0
    list(db.c.find({"b": None}).sort("b"))
    assert counted("metrics.queryExecutor.scannedObjects") == 15
    assert counted("metrics.queryExecutor.collectionScans.total") == 1
    assert counted("metrics.queryExecutor.collectionScans.nonTailable") == 1
    assert counted("metrics.operation.scanAndOrder") == 1
    # Statements of one command count one by one; updated is what was found, whether or not it changed.
    db.c.bulk_write([UpdateOne({"_id": 1}, {"$set": {"a": 1}}), UpdateOne({"_id": 2}, {"$set": {"x": 1}})])
    db.c.update_one({"_id": 99}, {"$set": {"x": 1}}, upsert=True)
    assert counted("metrics.document.updated") == 2
    assert counted("metrics.document.inserted") == 11
    db.c.find_one_and_delete({"_id": 99})
    db.c.delete_many({"_id": {"$lt": 5}})
    assert counted("metrics.document.deleted") == 6


def test_commands_are_counted(db, counted):
    db.command("count", "c")
    with pytest.raises(OperationFailure):
        db.command("count", "c", limit="x")
    with pytest.raises(OperationFailure):
        db.command("noSuchCommand")
    assert counted("metrics.commands.count.total") == 2
    assert counted("metrics.commands.count.failed") == 1
    assert counted("metrics.commands.find.total") == 0
    assert counted("metrics.commands.<UNKNOWN>") == 1


def test_cursors_are_counted(start):
    db = start().client().test

    def cursors():
        return status(db)["metrics"]["cursor"]

    db.c.insert_many([{"_id": i} for i in range(10)])
    list(db.c.find(batch_size=20))
    assert cursors()["totalOpened"] == 0
    list(db.c.find(batch_size=4))
    open_one = db.c.find(batch_size=2, no_cursor_timeout=True)
    next(open_one)
    assert cursors()["totalOpened"] == 2
    assert cursors()["moreThanOneBatch"] == 1
    assert cursors()["open"]["total"] == 1
    assert cursors()["open"]["noTimeout"] == 1
    assert sum(cursors()["lifespan"].values()) == 1
    open_one.close()
    assert cursors()["open"]["total"] == 0
    assert sum(cursors()["lifespan"].values()) == 2
    assert len(cursors()["lifespan"]) == 7


def test_latencies_by_class_with_histograms_when_asked(db, counted):
    db.c.insert_many([{}, {}])
    list(db.c.find())
    list(db.c.aggregate([{"$match": {}}]))
    db.command("collMod", "c")
    assert counted("opLatencies.writes.ops") == 1
    assert counted("opLatencies.reads.ops") == 2
    assert counted("opLatencies.commands.ops") >= 1
    assert counted("opLatencies.reads.latency") > 0
    assert "histogram" not in status(db)["opLatencies"]["reads"]
    reads = status(db, opLatencies={"histograms": True})["opLatencies"]["reads"]
    assert sum(bucket["count"] for bucket in reads["histogram"]) == reads["ops"]

    def of_collection(**options):
        (stats,) = db.c.aggregate([{"$collStats": {"latencyStats": options}}])
        return stats["latencyStats"]

    with_histograms = of_collection(histograms=True)
    assert [with_histograms[kind]["ops"] for kind in ("reads", "writes", "commands", "transactions")] == [2, 1, 1, 0]
    for stats in with_histograms.values():
        assert sum(bucket["count"] for bucket in stats["histogram"]) == stats["ops"]
    for bucket in with_histograms["writes"]["histogram"]:
        assert bucket["micros"] <= with_histograms["writes"]["latency"]
    assert "histogram" not in of_collection()["reads"]
    assert "histogram" not in of_collection(histograms=False)["reads"]


def test_transactions_are_counted_and_shown(db, counted):
    admin = db.client.admin
    db.create_collection("c")
    with db.client.start_session() as session:
        session.start_transaction()
        db.c.insert_one({"_id": 1}, session=session)
        assert counted("transactions.totalStarted") == 1
        assert counted("transactions.currentOpen") == 1
        assert counted("transactions.currentInactive") == 1
        mine = {"lsid.id": session.session_id["id"]}
        (idle,) = admin.aggregate([{"$currentOp": {}}, {"$match": mine}])
        assert (idle["type"], idle["desc"], idle["active"]) == ("idleSession", "inactive transaction", False)
        shown = idle["transaction"]
        assert shown["parameters"]["autocommit"] is False and shown["parameters"]["txnNumber"] > 0
        assert shown["timeActiveMicros"] + shown["timeInactiveMicros"] == shown["timeOpenMicros"]
        assert 0 < shown["timeActiveMicros"] < shown["timeOpenMicros"]
        assert not list(admin.aggregate([{"$currentOp": {"idleSessions": False}}, {"$match": mine}]))
        session.commit_transaction()
        assert counted("transactions.totalCommitted") == 1
        session.start_transaction()
        db.c.insert_one({"_id": 2}, session=session)
        session.abort_transaction()
        session.start_transaction()
        with pytest.raises(OperationFailure):
            db.c.insert_one({"_id": 1}, session=session)
    assert counted("transactions.totalStarted") == 3
    assert counted("transactions.totalAborted") == 2
    assert counted("transactions.currentOpen") == 0
    assert counted("opLatencies.transactions.ops") >= 2
    assert status(db)["transactions"]["lastCommittedTransaction"]["operationCount"] == 1


def test_api_versions_are_shown_by_application(server, db):
    from pymongo.server_api import ServerApi

    def versions():
        return status(db)["metrics"]["apiVersions"]

    strict = server.client(appname="versioned", server_api=ServerApi("1"))
    strict.admin.command("ping")
    assert versions()["versioned"] == ["1"]
    plain = server.client(appname="versioned")
    plain.admin.command("ping")
    assert versions()["versioned"] == ["default", "1"]
    plain.close()
    strict.close()
    eventually(lambda: versions().get("versioned") == ["default", "1"])


def test_writers_behind_the_fsync_lock_are_queued_and_shown(server, db):
    admin = db.client.admin
    db.create_collection("c")
    admin.command("fsync", lock=True)
    other = server.client(appname="queued")
    failures = []

    def write(comment):
        try:
            other[db.name].c.insert_one({}, comment=comment)
        except OperationFailure as failure:
            failures.append(failure.code)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("stays", "goes")]
    try:
        for thread in threads:
            thread.start()

        def waiting():
            return [op for op in admin.command("currentOp", appName="queued", op="insert")["inprog"] if op["waitingForLock"]]

        eventually(lambda: len(waiting()) == 2)
        # At every moment, also when one of them looks whether the lock is still held.
        for _ in range(500):
            lock = status(db)["globalLock"]
            assert lock["currentQueue"] == {"total": 2, "readers": 0, "writers": 2}
            assert lock["activeClients"]["writers"] == 0
        opid = {op["command"]["comment"]: op["opid"] for op in waiting()}["goes"]
        admin.command("killOp", op=opid)
        eventually(lambda: failures == [11601])
        # The one that stays is still the same operation.
        assert [op["command"]["comment"] for op in waiting()] == ["stays"]
    finally:
        admin.command("fsyncUnlock")
        for thread in threads:
            thread.join()
    assert db.c.count_documents({}) == 1


def test_max_time_counts_what_a_writer_waits_behind_the_fsync_lock(db):
    admin = db.client.admin
    admin.command("fsync", lock=True)
    try:
        with pytest.raises(OperationFailure) as failure:
            db.command("insert", "c", documents=[{}], maxTimeMS=100)
        assert failure.value.code == 50
    finally:
        admin.command("fsyncUnlock")
    assert db.c.count_documents({}) == 0


def test_settings_that_wait_behind_the_fsync_lock_keep_nobody_waiting(start):
    server = start()
    admin = server.client().admin
    admin.command("fsync", lock=True)
    other = server.client()

    def profile(i):
        other[f"db{i}"].command("profile", 1, comment="waits")

    def concern(i):
        other.admin.command("setDefaultRWConcern", defaultReadConcern={"level": "local"}, comment="waits")

    # More of each than the server has threads for connections on most machines.
    threads = [threading.Thread(target=run, args=(i,)) for run in (profile, concern) for i in range(8)]
    try:
        for thread in threads:
            thread.start()
        eventually(lambda: len(admin.command("currentOp", **{"command.comment": "waits"})["inprog"]) == len(threads))
    finally:
        admin.command("fsyncUnlock")
        for thread in threads:
            thread.join()
    assert [other[f"db{i}"].command("profile", 0)["was"] for i in range(8)] == [1] * 8


def test_long_commands_are_cut_where_one_asks_for_it(db):
    """Source: manual, "currentOp" ("command") and "$currentOp" ("truncateOps")."""
    admin = db.client.admin
    long = {"x": {"$nin": ["y" * 1000] * 20}}
    mine = {"command.comment": "long", **long}

    def staged(**options):
        pipeline = [{"$currentOp": options}, {"$match": mine}]
        (own,) = admin.aggregate(pipeline, comment="long")
        return own["command"]

    assert staged()["pipeline"] == [{"$currentOp": {}}, {"$match": mine}]
    assert "$truncated" not in staged(truncateOps=False)
    for cut in (staged(truncateOps=True), admin.command("currentOp", comment="long", **mine)["inprog"][0]["command"]):
        assert set(cut) == {"$truncated", "comment"} and cut["comment"] == "long"
        assert len(cut["$truncated"]) == 1024 and cut["$truncated"].endswith("yyy")
    assert "currentOp" in admin.command("currentOp", comment="short", **{"command.comment": "short"})["inprog"][0]["command"]
    (whole,) = admin.command("currentOp", comment="long", **{"$truncateOps": False}, **mine)["inprog"]
    assert whole["command"]["x"] == long["x"]


def test_current_op_has_the_fields_of_an_operation(db):
    (own,) = db.client.admin.aggregate([{"$currentOp": {}}, {"$match": {"command.comment": "me"}}], comment="me")
    assert own["active"] is True and own["type"] == "op"
    assert own["waitingForLock"] is False and own["locks"] == {} and own["lockStats"] == {}
    assert own["currentOpTime"].endswith("+00:00")
    assert "effectiveUsers" not in own


def test_current_op_shows_a_get_more_that_waits_as_one_operation(server, db):
    admin = db.client.admin
    db.create_collection("c", capped=True, size=4096)
    db.c.insert_one({"_id": 1})
    other = server.client(appname="tail")
    found = other[db.name].c.find(cursor_type=CursorType.TAILABLE_AWAIT).max_await_time_ms(10_000)
    assert next(found)["_id"] == 1
    replies = []
    thread = threading.Thread(target=lambda: replies.append(next(found)["_id"]))
    thread.start()

    def waiting():
        return admin.command("currentOp", appName="tail", op="getmore")["inprog"]

    try:
        eventually(waiting)
        opids = {op["opid"] for op in waiting()}
        db.c.insert_one({"_id": 2})
    finally:
        thread.join()
    assert len(opids) == 1
    found.close()
    assert replies == [2]


def test_clients_that_wait_for_a_change_of_the_topology_are_counted(start):
    server = start()
    client = server.client()
    # A driver's monitor waits in hello from its second one on.
    eventually(lambda: status(client.test)["connections"]["awaitingTopologyChanges"] == 1)
    assert status(client.test)["globalLock"]["activeClients"]["readers"] == 0


def test_sections_can_be_left_out(db):
    whole = status(db)
    for name in ("globalLock", "metrics", "opLatencies", "opcountersRepl", "transactions", "catalogStats"):
        assert name in whole
        assert name not in status(db, **{name: 0})
    assert set(whole["opcountersRepl"].values()) == {0}
    assert whole["extra_info"]["page_faults"] >= 0 and whole["extra_info"]["user_time_us"] > 0
    assert whole["catalogStats"]["internalCollections"] > 0


def test_views_and_capped_collections_are_counted(db, counted):
    db.create_collection("a")
    db.create_collection("b", capped=True, size=4096)
    db.create_collection("v", viewOn="a", pipeline=[])
    assert counted("catalogStats.collections") == 2
    assert counted("catalogStats.capped") == 1
    assert counted("catalogStats.views") == 1


def test_db_stats_know_the_file_system(start, db):
    stats = db.command("dbStats")
    assert 0 < stats["fsUsedSize"] <= stats["fsTotalSize"]
    scaled = db.command("dbStats", scale=1 << 20)
    assert scaled["fsTotalSize"] == stats["fsTotalSize"] / (1 << 20)
    in_memory = start().client()
    assert "fsTotalSize" not in in_memory.test.command("dbStats")


def test_each_start_is_noted_in_the_startup_log(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    (first,) = client.local.startup_log.find()
    assert first["_id"] == f"{first['hostname']}-{int(first['startTime'].timestamp() * 1000)}"
    assert first["pid"] == client.admin.command("serverStatus")["pid"]
    assert first["buildinfo"]["version"] == client.server_info()["version"]
    assert first["cmdLine"] == client.admin.command("getCmdLineOpts")["parsed"]
    assert not list(client.local["oplog.rs"].find({"ns": "local.startup_log"}))
    server.stop()
    again = start(tmp_path / "data").client()
    starts = list(again.local.startup_log.find())
    assert starts[0] == first and len(starts) == 2


def test_host_info_describes_the_machine(db):
    extra = db.client.admin.command("hostInfo")["extra"]
    assert extra["pageSize"] >= 4096 and extra["numPages"] > 0 and extra["maxOpenFiles"] > 0
    assert extra["kernelVersion"] in extra["versionString"]
    for name in ("cpuFrequencyMHz", "cpuFeatures"):
        assert extra.get(name, "as the machine has it") != ""
