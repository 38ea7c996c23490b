"""Fail points that the drivers' own suites set, as drivers meet them."""

import contextlib
import time

import pymongo
import pytest
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """A server of its own, so that no other test meets the faults."""
    from harness import Server

    with Server(None, "--setParameter", "enableTestCommands=1") as server:
        yield server


@contextlib.contextmanager
def fail_point(server, name="failCommand", mode="alwaysOn", **data):
    admin = server.client().admin
    admin.command({"configureFailPoint": name, "mode": mode, **({"data": data} if data else {})})
    try:
        yield
    finally:
        admin.command({"configureFailPoint": name, "mode": "off"})


def test_all_that_has_a_limit_of_time_times_out(failing):
    docs = failing.client().faults.docs
    docs.insert_one({"_id": 1})
    with fail_point(failing, "maxTimeAlwaysTimeOut"):
        with pytest.raises(ExecutionTimeout):
            list(docs.find(max_time_ms=60_000))
        with pytest.raises(ExecutionTimeout):
            docs.database.command("ping", maxTimeMS=60_000)
        assert docs.find_one() == {"_id": 1}, "what has none does not"
    assert list(docs.find(max_time_ms=60_000)) == [{"_id": 1}]


def test_a_blocked_command_waits_and_then_runs(failing):
    docs = failing.client().faults.blocked
    with fail_point(failing, mode={"times": 1}, failCommands=["insert"], blockConnection=True, blockTimeMS=300):
        begun = time.monotonic()
        docs.insert_one({"_id": 1})
        assert time.monotonic() - begun >= 0.3
    assert docs.count_documents({}) == 1


def test_a_blocked_connection_keeps_no_other_waiting(failing):
    with fail_point(failing, failCommands=["find"], blockConnection=True, blockTimeMS=5000), failing.raw() as blocked, failing.raw() as other:
        from harness import op_msg

        begun = time.monotonic()
        blocked.send(op_msg({"find": "blocked", "$db": "faults"}))
        assert other.command({"ping": 1, "$db": "admin"})["ok"] == 1
        assert time.monotonic() - begun < 5
        assert blocked.reply()["ok"] == 1
        assert time.monotonic() - begun >= 5


def test_blocking_longer_than_the_limit_of_a_client(failing):
    """The limit that the driver makes of timeoutMS is the server's, too; blocking does not count into what a tailable cursor waits."""
    docs = failing.client(timeoutMS=200, retryReads=False).faults.blocked
    with fail_point(failing, mode={"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=400):
        with pytest.raises(pymongo.errors.PyMongoError) as error:
            docs.find_one()
        assert error.value.timeout


def test_only_clients_of_a_name_meet_it(failing):
    met, spared = failing.client(appName="met", retryReads=False), failing.client(appName="spared")
    spared.faults.docs.find_one()
    with fail_point(failing, failCommands=["find"], errorCode=7, appName="met"):
        with pytest.raises(OperationFailure) as error:
            met.faults.docs.find_one()
        assert error.value.code == 7
        spared.faults.docs.find_one()
        failing.client().faults.docs.find_one()


def test_the_handshake_of_clients_of_a_name(failing):
    """The handshake says who comes: it fails by that."""
    with fail_point(failing, failCommands=["hello", "isMaster"], closeConnection=True, appName="unwanted"):
        failing.client(appName="welcome").admin.command("ping")
        with pytest.raises(AutoReconnect):
            failing.client(appName="unwanted", serverSelectionTimeoutMS=500).admin.command("ping")
    failing.client(appName="unwanted").admin.command("ping")


def test_only_the_first_times(failing):
    docs = failing.client(retryReads=False).faults.docs
    with fail_point(failing, mode={"times": 2}, failCommands=["find"], errorCode=59):
        for _ in range(2):
            with pytest.raises(OperationFailure):
                docs.find_one()
        docs.find_one()
    with fail_point(failing, mode={"skip": 1}, failCommands=["find"], errorCode=59):
        docs.find_one()
        with pytest.raises(OperationFailure):
            docs.find_one()
