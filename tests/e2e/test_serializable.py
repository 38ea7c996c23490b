"""Transactions with read concern level "serializable", Nestor's own: what they read is validated at their commit.

Under snapshot isolation two transactions that read what the other one writes both commit (write skew); here the second one to commit
fails with a label on which drivers run it again.
"""

import threading

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

SERIALIZABLE = ReadConcern("serializable")
SNAPSHOT = ReadConcern("snapshot")


def both(client, first, second, concern=SERIALIZABLE):
    """Two transactions whose bodies both run before either commits; the first to commit is `first`."""
    with client.start_session() as one, client.start_session() as two:
        one.start_transaction(concern)
        two.start_transaction(concern)
        first(one)
        second(two)
        one.commit_transaction()
        two.commit_transaction()


def refused(client, first, second):
    with pytest.raises(OperationFailure) as error:
        both(client, first, second)
    assert error.value.code == 112
    assert error.value.has_error_label("TransientTransactionError")
    assert not error.value.has_error_label("UnknownTransactionCommitResult")


def test_two_doctors_on_call(client, db):
    """One of them has to stay; each looks whether the other one does."""

    def leave(doctor):
        def body(session):
            if db.doctors.count_documents({"on_call": True}, session=session) > 1:
                db.doctors.update_one({"_id": doctor}, {"$set": {"on_call": False}}, session=session)

        return body

    def all_on_call():
        db.doctors.drop()
        db.doctors.insert_many([{"_id": doctor, "on_call": True} for doctor in ("alice", "bob")])

    all_on_call()
    both(client, leave("alice"), leave("bob"), SNAPSHOT)
    assert db.doctors.count_documents({"on_call": True}) == 0, "snapshot isolation lets both go"
    for index in None, "on_call":
        all_on_call()
        if index:
            db.doctors.create_index(index)
        refused(client, leave("alice"), leave("bob"))
        assert db.doctors.count_documents({"on_call": True}) == 1


def test_with_transaction_keeps_an_assertion_over_two_documents(client, db):
    """Of two accounts together nobody takes more than there is: `with_transaction` runs those again that were refused."""
    db.accounts.insert_many([{"_id": "checking", "n": 50}, {"_id": "savings", "n": 50}])
    taken, failed = [], []

    def take(session, account):
        total = sum(found["n"] for found in db.accounts.find(session=session))
        if total >= 10:
            db.accounts.update_one({"_id": account}, {"$inc": {"n": -10}}, session=session)
            return 10
        return 0

    def work(account):
        try:
            for _ in range(12):
                with client.start_session() as session:
                    taken.append(session.with_transaction(lambda s: take(s, account), SERIALIZABLE))
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work, args=(account,)) for account in ("checking", "savings") * 2]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failed == []
    assert sum(taken) == 100
    assert sum(found["n"] for found in db.accounts.find()) == 0


def test_phantoms_over_an_index_range(client, db):
    """Rooms are booked when nothing overlaps: what was not there counts as read."""
    db.bookings.create_index([("room", 1), ("at", 1)])
    db.bookings.insert_one({"room": 2, "at": 10})

    def book(room, at, by):
        def body(session):
            overlapping = {"room": room, "at": {"$gt": at - 5, "$lt": at + 5}}
            if db.bookings.count_documents(overlapping, session=session) == 0:
                db.bookings.insert_one({"_id": by, "room": room, "at": at}, session=session)

        return body

    refused(client, book(1, 10, "a"), book(1, 12, "b"))
    assert db.bookings.count_documents({"room": 1}) == 1
    # Elsewhere nothing is in the way.
    both(client, book(2, 30, "c"), book(1, 40, "d"))
    assert db.bookings.count_documents({}) == 4


@pytest.mark.parametrize(
    "read",
    [
        lambda coll, session: coll.find_one({"_id": "x"}, session=session),
        lambda coll, session: list(coll.find({"n": {"$gte": 5}}, session=session)),
        lambda coll, session: coll.distinct("n", session=session),
        lambda coll, session: list(coll.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$n"}}}], session=session)),
        lambda coll, session: list(
            coll.aggregate(
                [{"$limit": 1}, {"$lookup": {"from": coll.name, "pipeline": [{"$match": {"n": 7}}], "as": "all"}}],
                session=session,
            )
        ),
        lambda coll, session: coll.update_many({"n": 7}, {"$set": {"seen": True}}, session=session),
        lambda coll, session: coll.find_one_and_delete({"n": {"$gt": 6}}, session=session),
    ],
    ids=["find_one", "find", "distinct", "group", "lookup", "update_many", "find_one_and_delete"],
)
def test_whatever_reads(client, db, read):
    """A document that matches appears after the snapshot, written by a plain statement."""
    db.c.insert_many([{"_id": n, "n": n} for n in range(5)])
    db.create_collection("other")
    with client.start_session() as session:
        session.start_transaction(SERIALIZABLE)
        read(db.c, session)
        db.other.insert_one({}, session=session)
        db.c.insert_one({"_id": "x", "n": 7})
        with pytest.raises(OperationFailure) as error:
            session.commit_transaction()
    assert error.value.code == 112


def test_one_that_only_reads_is_never_refused(client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    with client.start_session() as session:
        session.start_transaction(SERIALIZABLE)
        assert db.c.find_one(session=session)["n"] == 0
        db.c.update_one({"_id": 1}, {"$set": {"n": 1}})
        assert db.c.find_one(session=session)["n"] == 0
        session.commit_transaction()


def test_those_that_touch_different_documents_do_not_meet(client, db):
    db.c.insert_many([{"_id": n, "n": 0} for n in range(10)])

    def change(number):
        def body(session):
            n = db.c.find_one({"_id": number}, session=session)["n"]
            db.c.update_one({"_id": number}, {"$set": {"n": n + 1}}, session=session)
            db.c.insert_one({"_id": f"new {number}"}, session=session)

        return body

    both(client, change(1), change(8))


def test_the_level_belongs_to_transactions(client, db):
    db.c.insert_one({"_id": 1})
    with pytest.raises(OperationFailure) as error:
        db.c.with_options(read_concern=SERIALIZABLE).find_one()
    assert error.value.code == 72
    for level in "linearizable", "available":
        with client.start_session() as session:
            session.start_transaction(ReadConcern(level))
            with pytest.raises(OperationFailure) as error:
                db.c.find_one(session=session)
            assert error.value.code == 72
    with pytest.raises(OperationFailure) as error:
        client.admin.command("setDefaultRWConcern", 1, defaultReadConcern={"level": "serializable"})
    assert error.value.code == 2
