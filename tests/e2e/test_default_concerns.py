"""Default read and write concern."""

import pytest
from pymongo.errors import OperationFailure

TWO = {"code": 100, "codeName": "UnsatisfiableWriteConcern"}


def insert(db, **concern):
    return db.command({"insert": "c", "documents": [{}], **({"writeConcern": concern} if concern else {})}, check=False)


def error(reply):
    return {name: reply["writeConcernError"][name] for name in TWO}


def test_the_default_write_concern_is_that_of_commands_without_one(start, tmp_path):
    server = start(tmp_path / "db")
    client = server.client()
    admin, db = client.admin, client.d
    assert "writeConcernError" not in insert(db)
    set_ = admin.command("setDefaultRWConcern", defaultWriteConcern={"w": 2, "wtimeout": 5})
    assert set_["defaultWriteConcernSource"] == "global" and "writeConcernError" not in set_

    def check(db):
        reply = insert(db)
        assert reply["n"] == 1 and error(reply) == TWO
        assert reply["writeConcernError"]["errInfo"]["writeConcern"] == {
            "w": 2, "wtimeout": 5, "provenance": "customDefault"
        }
        # What a command says itself counts; where it does not say w, that of the default does.
        assert "writeConcernError" not in insert(db, w=1)
        reply = insert(db, j=True)
        assert error(reply) == TWO
        assert reply["writeConcernError"]["errInfo"]["writeConcern"]["provenance"] == "clientSupplied"
        assert "writeConcernError" not in db.command("find", "c")

    check(db)
    # In a transaction it is the commit that waits.
    with client.start_session() as session:
        session.start_transaction()
        assert db.c.insert_one({}, session=session).acknowledged
        with pytest.raises(OperationFailure) as failure:
            session.commit_transaction()
        assert failure.value.code == 100
    server.stop()
    server.start()
    admin, db = (client := server.client()).admin, client.d
    assert admin.command("getDefaultRWConcern")["defaultWriteConcern"] == {"w": 2, "wtimeout": 5}
    check(db)
    with pytest.raises(OperationFailure) as failure:
        admin.command("setDefaultRWConcern", defaultWriteConcern={})
    assert failure.value.code == 20
    reply = admin.command("setDefaultRWConcern", defaultWriteConcern={"w": 1}, defaultReadConcern={"level": "majority"})
    assert "writeConcernError" not in reply
    assert "writeConcernError" not in insert(db)
    assert [d for d in db.c.find({"nosuch": 1})] == []
    # Stages that take no other read concern than local are not kept from running.
    assert list(admin.aggregate([{"$currentOp": {}}]))
