"""Transactions as drivers use them: `withTransaction` under contention, and writes that wait for a transaction."""

import threading
import time

import pytest
from pymongo.errors import OperationFailure


def transfer(method):
    """A transaction's body that moves one from an account to another by `method`."""

    def by_update(coll, session, source, target):
        coll.update_one({"_id": source}, {"$inc": {"n": -1}}, session=session)
        coll.update_one({"_id": target}, {"$inc": {"n": 1}}, session=session)

    def by_many(coll, session, source, target):
        coll.update_many({"_id": {"$in": [source]}}, {"$inc": {"n": -1}}, session=session)
        coll.update_many({"_id": {"$in": [target]}}, {"$inc": {"n": 1}}, session=session)

    def by_find_and_modify(coll, session, source, target):
        coll.find_one_and_update({"_id": source}, {"$inc": {"n": -1}}, session=session)
        coll.find_one_and_update({"_id": target}, {"$inc": {"n": 1}}, session=session)

    def by_delete(coll, session, source, target):
        for _id, by in (source, -1), (target, 1):
            n = coll.find_one({"_id": _id}, session=session)["n"]
            coll.delete_one({"_id": _id}, session=session)
            coll.insert_one({"_id": _id, "n": n + by}, session=session)

    return {"update": by_update, "many": by_many, "findAndModify": by_find_and_modify, "delete": by_delete}[method]


@pytest.mark.parametrize("method", ["update", "many", "findAndModify", "delete"])
def test_with_transaction_reaches_the_exact_total(client, db, method):
    """Every call succeeds in the end: conflicts fail the command with the label on which drivers try again."""
    accounts, threads, calls = 3, 4, 25
    db.accounts.insert_many([{"_id": i, "n": 1000} for i in range(accounts)])
    db.create_collection("done")
    body = transfer(method)
    failed = []

    def work(thread):
        for call in range(calls):
            source = (thread + call) % accounts
            target = (source + 1) % accounts

            def run(session):
                body(db.accounts, session, source, target)
                db.done.insert_one({"_id": f"{thread} {call}"}, session=session)

            try:
                with client.start_session() as session:
                    session.with_transaction(run)
            except Exception as error:  # noqa: BLE001
                failed.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert failed == []
    assert db.done.count_documents({}) == threads * calls
    assert sum(account["n"] for account in db.accounts.find()) == 1000 * accounts
    moved = {i: 1000 for i in range(accounts)}
    for thread in range(threads):
        for call in range(calls):
            moved[(thread + call) % accounts] -= 1
            moved[(thread + call + 1) % accounts] += 1
    assert {account["_id"]: account["n"] for account in db.accounts.find()} == moved


def test_a_plain_write_waits_for_the_transaction_that_wrote_before_it(client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        session.start_transaction()
        db.c.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        with pytest.raises(OperationFailure) as error:
            db.command("update", "c", updates=[{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}], maxTimeMS=100)
        assert error.value.code == 50
        done = threading.Event()

        def write():
            db.c.update_one({"_id": 1}, {"$inc": {"n": 100}})
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert not done.wait(0.2)
        # Others go on meanwhile.
        assert db.command("ping")["ok"] == 1
        db.c.insert_one({"_id": 2})
        session.commit_transaction()
        assert done.wait(60)
        writer.join()
    assert db.c.find_one({"_id": 1})["n"] == 101


def test_an_abandoned_transaction_ends_by_itself(start):
    """transactionLifetimeLimitSeconds can be set at run time; what waits for the transaction goes on then."""
    server = start()
    client = server.client()
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
    coll = client.test.c
    coll.insert_one({"_id": 1, "n": 0})
    session = client.start_session()
    session.start_transaction()
    coll.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
    coll.update_one({"_id": 1}, {"$inc": {"n": 10}})
    assert coll.find_one({"_id": 1})["n"] == 10
    with pytest.raises(OperationFailure) as error:
        session.commit_transaction()
    assert error.value.code == 251
    assert error.value.has_error_label("TransientTransactionError")


def test_open_transactions_share_a_bound(start):
    """What open transactions hold is shown; a statement for which there is no room fails without a label, and takes its transaction along."""
    client = start(None, "--setParameter", "totalOperationMemoryBytes=20000000").client()
    held = lambda: client.admin.command("serverStatus")["nestor"]["transactionBytes"]  # noqa: E731
    coll = client.test.c
    coll.insert_one({"_id": -1})
    with client.start_session() as session:
        session.start_transaction()
        with pytest.raises(OperationFailure) as error:
            for i in range(60):
                coll.insert_many([{"_id": i * 10 + j, "s": "x" * 50_000} for j in range(10)], session=session)
        assert 10 <= i <= 50
        assert error.value.code == 388
        assert error.value.details["codeName"] == "TransactionTooLargeForCache"
        assert not error.value.details.get("errorLabels")
        assert held() == 0
        with pytest.raises(OperationFailure) as error:
            session.commit_transaction()
        assert error.value.code == 251
        with session.start_transaction():
            coll.insert_many([{"_id": i, "s": "x" * 50_000} for i in range(10)], session=session)
            assert 500_000 < held() < 2_000_000
        assert held() == 0
    assert coll.count_documents({}) == 11
