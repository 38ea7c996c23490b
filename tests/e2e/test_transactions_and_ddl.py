"""Transactions and changes of the catalog beside them: who waits for whom, and what does not disturb anybody.

Source: manual, "Production Considerations": "Pending DDL Operations and Transactions", "Acquiring Locks".
"""

import threading

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

LONG = 60


def drop(db):
    db.command("drop", "c")


def rename(db):
    db.client.admin.command("renameCollection", f"{db.name}.c", to=f"{db.name}.other")


def create_index(db):
    db.command("createIndexes", "c", indexes=[{"key": {"y": 1}, "name": "y_1"}])


def drop_index(db):
    db.command("dropIndexes", "c", index="x_1")


def change(db):
    db.command("collMod", "c", index={"name": "x_1", "hidden": True})


def drop_database(db):
    db.command("dropDatabase")


def cap(db):
    db.command("convertToCapped", "c", size=4096)


def replace(db):
    list(db.c.aggregate([{"$match": {"_id": 1}}, {"$out": "c"}]))


def drop_by_oplog_entry(db):
    db.client.admin.command("applyOps", [{"op": "c", "ns": f"{db.name}.$cmd", "o": {"drop": "c"}}])


DDL = [drop, rename, create_index, drop_index, change, drop_database, cap, replace, drop_by_oplog_entry]


def in_background(work):
    """Runs `work` in a thread; an event says that it has ended, and a list what it raised."""
    ended, raised = threading.Event(), []

    def run():
        try:
            work()
        except Exception as error:  # noqa: BLE001
            raised.append(error)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    return ended, raised


def fill(db, many=False):
    db.c.insert_many([{"_id": i, "x": i, "y": i} for i in range(3000 if many else 3)])
    db.c.create_index("x")


def write(db, session):
    db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)


def read(db, session):
    assert db.c.find_one({"_id": 1}, session=session)["x"] == 1


def read_through_lookup(db, session):
    stage = {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "found"}}
    assert len(list(db.outer.aggregate([stage], session=session))[0]["found"]) == 1


def read_through_view(db, session):
    assert db.view.find_one({"_id": 1}, session=session)["x"] == 1


@pytest.mark.parametrize("ddl", DDL)
def test_it_waits_for_a_transaction_that_wrote(client, db, ddl):
    fill(db)
    with client.start_session() as session:
        session.start_transaction()
        write(db, session)
        ended, raised = in_background(lambda: ddl(db))
        assert not ended.wait(0.3), raised
        # It is where it was, for everybody.
        assert db.c.find_one({"_id": 2})["x"] == 2
        write(db, session)
        session.commit_transaction()
    assert ended.wait(LONG)
    assert raised == []


@pytest.mark.parametrize("use", [read, read_through_lookup, read_through_view])
@pytest.mark.parametrize("ddl", [drop, create_index, drop_database])
def test_it_waits_for_a_transaction_that_read(client, db, ddl, use):
    fill(db)
    db.outer.insert_one({"_id": 1})
    db.create_collection("view", viewOn="c", pipeline=[])
    with client.start_session() as session:
        session.start_transaction()
        use(db, session)
        ended, raised = in_background(lambda: ddl(db))
        assert not ended.wait(0.3), raised
        use(db, session)
        session.abort_transaction()
    assert ended.wait(LONG)
    assert raised == []


def test_an_index_of_many_documents_waits_at_its_end(client, db):
    """It is built meanwhile, and has what was written while it waited."""
    fill(db, many=True)
    with client.start_session() as session:
        session.start_transaction()
        write(db, session)
        ended, raised = in_background(lambda: create_index(db))
        assert not ended.wait(0.3), raised
        db.c.insert_many([{"_id": 10000 + i, "y": -1} for i in range(1500)])
        db.c.update_one({"_id": 2}, {"$set": {"y": -1}}, session=session)
        session.commit_transaction()
    assert ended.wait(LONG)
    assert raised == []
    assert db.c.count_documents({"y": -1}, hint="y_1") == 1501
    assert db.command("validate", "c")["valid"]


def test_what_would_change_nothing_waits_for_nobody(client, db):
    fill(db)
    with client.start_session() as session:
        session.start_transaction()
        write(db, session)
        db.command("createIndexes", "c", indexes=[{"key": {"x": 1}, "name": "x_1"}], maxTimeMS=30000)
        db.command("collMod", "c", index={"name": "x_1", "hidden": False}, maxTimeMS=30000)
        db.other.insert_one({})
        db.command("drop", "other", maxTimeMS=30000)
        session.commit_transaction()


def test_it_waits_no_longer_than_it_may(client, db):
    fill(db)
    with client.start_session() as session:
        session.start_transaction()
        read(db, session)
        with pytest.raises(OperationFailure) as error:
            db.command("drop", "c", maxTimeMS=100)
        assert error.value.code == 50
        write(db, session)
        session.commit_transaction()
    assert db.c.find_one({"_id": 1})["n"] == 1


def test_it_waits_no_longer_than_the_transaction_may_live(start):
    server = start(None, "--setParameter", "transactionLifetimeLimitSeconds=1")
    client = server.client()
    db = client.test
    fill(db)
    with client.start_session() as session:
        session.start_transaction()
        write(db, session)
        db.command("drop", "c", maxTimeMS=LONG * 1000)
        with pytest.raises(OperationFailure) as error:
            session.commit_transaction()
        assert error.value.code == 251


@pytest.mark.parametrize("begins", [True, False])
def test_a_transaction_that_comes_after_it_waits_a_little_and_fails(client, db, begins):
    """Otherwise new transactions would keep whoever waits for the old ones waiting for ever."""
    fill(db)
    db.other.insert_one({"_id": 1})
    with client.start_session() as holder, client.start_session() as session:
        holder.start_transaction()
        write(db, holder)
        ended, raised = in_background(lambda: drop_index(db))
        assert not ended.wait(0.3), raised
        session.start_transaction()
        if not begins:
            db.other.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
        with pytest.raises(OperationFailure) as error:
            write(db, session)
        assert error.value.code == 24
        assert error.value.has_error_label("TransientTransactionError")
        with pytest.raises(OperationFailure) as error:
            db.command("find", "other", session=session)
        assert error.value.code == 251
        session.abort_transaction()
        assert "a" not in db.other.find_one()
        holder.commit_transaction()
        assert ended.wait(LONG)
        assert raised == []
        # Those who wait long enough go on with what there is then.
        with session.start_transaction():
            write(db, session)
    assert db.c.find_one({"_id": 1})["n"] == 2


def test_a_transaction_may_wait_for_longer(start):
    client = start(None, "--setParameter", "maxTransactionLockRequestTimeoutMillis=-1").client()
    db = client.test
    fill(db)
    with client.start_session() as holder, client.start_session() as session:
        holder.start_transaction()
        write(db, holder)
        ended, _ = in_background(lambda: create_index(db))
        assert not ended.wait(0.3)
        session.start_transaction()
        wrote, raised = in_background(lambda: db.c.update_one({"_id": 2}, {"$set": {"y": 7}}, session=session))
        assert not wrote.wait(0.3)
        holder.commit_transaction()
        assert ended.wait(LONG) and wrote.wait(LONG)
        assert raised == []
        session.commit_transaction()
    assert db.c.count_documents({"y": 7}, hint="y_1") == 1


def covered(db, session=None):
    find = {"filter": {"x": {"$gte": 0}}, "projection": {"_id": 0, "x": 1}, "hint": "x_1"}
    return [document["x"] for document in db.c.find(**find, session=session)]


@pytest.mark.parametrize("level", ["snapshot", "serializable"])
def test_the_first_array_of_an_index_disturbs_nobody_who_does_not_read_it(client, db, level):
    """Neither a transaction that reads with a covered plan nor one that writes other documents, arrays or not."""
    fill(db)
    below = {"filter": {"x": {"$lt": 2}}, "projection": {"_id": 0, "x": 1}, "hint": "x_1"}
    with client.start_session() as reader, client.start_session() as writer, client.start_session() as arrays:
        for session in reader, writer, arrays:
            session.start_transaction(ReadConcern(level))
            assert list(db.c.find(**below, session=session)) == [{"x": 0}, {"x": 1}]
        db.c.insert_one({"_id": 10, "x": [5, 6]})
        assert db.c.find_one({"x": 6}, {"_id": 0, "x": 1}, hint="x_1") == {"x": [5, 6]}
        assert list(db.c.find(**below, session=reader)) == [{"x": 0}, {"x": 1}]
        db.d.insert_one({"_id": level}, session=reader)
        write(db, writer)
        db.c.update_one({"_id": 2}, {"$set": {"x": [7, 8]}}, session=arrays)
        # It knows of its own array.
        found = db.c.find({"x": {"$gte": 7}}, {"_id": 0, "x": 1}, hint="x_1", session=arrays)
        assert list(found) == [{"x": [7, 8]}]
        writer.commit_transaction()
        if level == "snapshot":
            reader.commit_transaction()
            arrays.commit_transaction()
        else:
            # They have read what is another one now, and the range that was written to.
            reader.abort_transaction()
            arrays.abort_transaction()
            db.c.update_one({"_id": 2}, {"$set": {"x": [7, 8]}})
    assert db.c.find_one({"_id": 1})["n"] == 1
    assert list(db.c.find({"x": 8}, {"_id": 1}, hint="x_1")) == [{"_id": 2}]
    assert db.command("validate", "c")["valid"]


def test_two_transactions_that_find_the_first_array_do_not_conflict(client, db):
    fill(db)
    with client.start_session() as one, client.start_session() as other:
        one.start_transaction()
        other.start_transaction()
        db.c.insert_one({"_id": 10, "x": [5, 6]}, session=one)
        db.c.insert_one({"_id": 11, "x": [7, 8]}, session=other)
        # Nor does a plain write wait for them.
        db.command("insert", "c", documents=[{"_id": 12, "x": [9, 10]}], maxTimeMS=30000)
        one.abort_transaction()
        other.commit_transaction()
    found = db.c.find({"x": {"$gte": 5}}, {"_id": 0, "x": 1}, hint="x_1")
    assert list(found) == [{"x": [7, 8]}, {"x": [9, 10]}]
    assert db.command("validate", "c")["valid"]


def test_an_array_in_a_transaction_is_there_after_a_crash(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    db = client.test
    fill(db)
    with client.start_session() as session:
        with session.start_transaction():
            db.c.update_one({"_id": 2}, {"$set": {"x": [7, 8]}}, session=session)
    server.kill()
    server.restart()
    db = server.client().test
    assert list(db.c.find({"x": 8}, {"_id": 0, "x": 1}, hint="x_1")) == [{"x": [7, 8]}]
    assert db.command("validate", "c")["valid"]
