"""`configureFailPoint` as drivers' own suites use it: each option of failCommand, modes, maxTimeAlwaysTimeOut."""

import contextlib
import time

import pymongo
import pytest
from bson import Int64
from harness import Server
from pymongo.errors import AutoReconnect, ExecutionTimeout, OperationFailure, WriteConcernError


@pytest.fixture(scope="module")
def test_server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("failpoints"), "--setParameter", "enableTestCommands=1") as server:
        yield server
        server.stop()


@pytest.fixture
def client(test_server):
    client = test_server.client(retryWrites=False, retryReads=False)
    client.test.drop_collection("c")
    client.test.c.insert_one({"_id": 1})
    return client


@contextlib.contextmanager
def fail_point(client, mode="alwaysOn", name="failCommand", **data):
    set_point = {"configureFailPoint": name, "mode": mode}
    client.admin.command(set_point | ({"data": data} if data else {}))
    try:
        yield
    finally:
        client.admin.command("configureFailPoint", name, mode="off")


def failing(run):
    """The code with which `run` fails; None when it does not."""
    try:
        run()
    except OperationFailure as error:
        return error.code
    return None


def test_error_code_and_names(client):
    coll = client.test.c
    with fail_point(client, failCommands=["find", "count"], errorCode=262):
        with pytest.raises(OperationFailure) as error:
            coll.find_one()
        assert error.value.code == 262
        assert error.value.details["codeName"] == "ExceededTimeLimit"
        assert failing(lambda: coll.estimated_document_count()) == 262
        assert failing(lambda: coll.insert_one({})) is None
    assert failing(coll.find_one) is None


def test_code_name_is_that_of_the_code(client):
    """The Java driver's tests of transactions set such a fail point."""
    with fail_point(client, failCommands=["find"], errorCode=251, codeName="NoSuchTransaction"):
        assert failing(client.test.c.find_one) == 251
    for data in ({"codeName": "NoSuchTransaction"}, {"codeName": "Interrupted", "errorCode": 251}):
        with pytest.raises(OperationFailure, match="'codeName' must be the name of 'errorCode'") as error:
            client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=data)
        assert error.value.code == 2


@pytest.mark.parametrize("code", [280, 286])
def test_a_code_that_ends_change_streams_has_its_label(client, code):
    """PHP's driver has a getMore of a plain cursor fail so (its bug1419-001)."""
    client.test.c.insert_many([{"_id": 2}, {"_id": 3}])
    cursor = client.test.c.find(batch_size=1)
    next(cursor)
    with fail_point(client, failCommands=["getMore", "find"], errorCode=code):
        for run in (lambda: next(cursor), client.test.c.find_one):
            with pytest.raises(OperationFailure) as error:
                run()
            assert error.value.details["errorLabels"] == ["NonResumableChangeStreamError"]
    with fail_point(client, failCommands=["find"], errorCode=code, errorLabels=[]):
        with pytest.raises(OperationFailure) as error:
            client.test.c.find_one()
        assert "errorLabels" not in error.value.details


def test_no_command_fails_when_none_is_named(client):
    """PyMongo's test_pool_backpressure_preserves_existing_connections sets such a fail point."""
    with fail_point(client, {"times": 1}, closeConnection=True):
        assert client.test.command("ping")["ok"] == 1


def test_close_connection(client):
    with fail_point(client, {"times": 1}, failCommands=["find"], closeConnection=True):
        with pytest.raises(AutoReconnect):
            client.test.c.find_one()
        assert client.test.c.find_one() == {"_id": 1}


def test_close_connection_is_stronger_than_an_error(client):
    with fail_point(client, {"times": 1}, failCommands=["find"], closeConnection=True, errorCode=262):
        with pytest.raises(AutoReconnect):
            client.test.c.find_one()


def test_block_connection_delays_and_then_runs(client):
    others = client.test.others
    with fail_point(client, failCommands=["find"], blockConnection=True, blockTimeMS=3000):
        begun = time.monotonic()
        assert client.test.c.find_one() == {"_id": 1}
        assert time.monotonic() - begun >= 3
        begun = time.monotonic()
        others.estimated_document_count()
        assert time.monotonic() - begun < 3, "only what is named waits"


def test_block_connection_before_an_error(client):
    with fail_point(client, failCommands=["find"], blockConnection=True, blockTimeMS=200, errorCode=50):
        begun = time.monotonic()
        assert failing(client.test.c.find_one) == 50
        assert time.monotonic() - begun >= 0.2


def test_a_client_that_does_not_wait_for_a_blocked_command(test_server, client):
    with fail_point(client, {"times": 1}, failCommands=["find"], blockConnection=True, blockTimeMS=60_000):
        impatient = test_server.client(socketTimeoutMS=200, retryReads=False)
        with pytest.raises(AutoReconnect):
            impatient.test.c.find_one()
        assert client.test.c.find_one() == {"_id": 1}


def test_app_name(test_server, client):
    named = test_server.client(appname="the one", retryReads=False)
    with fail_point(client, failCommands=["find"], errorCode=262, appName="the one"):
        assert failing(named.test.c.find_one) == 262
        assert failing(client.test.c.find_one) is None
    assert failing(named.test.c.find_one) is None


def test_app_name_of_the_handshake_itself(test_server, client):
    with fail_point(client, failCommands=["hello", "isMaster"], closeConnection=True, appName="unwanted"):
        unwanted = test_server.client(appname="unwanted", serverSelectionTimeoutMS=500)
        with pytest.raises(pymongo.errors.ServerSelectionTimeoutError):
            unwanted.admin.command("ping")
        assert test_server.client(appname="wanted").admin.command("ping")["ok"] == 1


def test_namespace(client):
    with fail_point(client, failCommands=["find"], errorCode=11601, namespace="test.c"):
        assert failing(client.test.c.find_one) == 11601
        assert failing(client.test.d.find_one) is None
        assert failing(client.other.c.find_one) is None


def test_fail_internal_commands_concerns_other_nodes(client):
    """Commands of clients fail with it as without it."""
    for internal in True, False:
        with fail_point(client, failCommands=["find"], errorCode=262, failInternalCommands=internal):
            assert failing(client.test.c.find_one) == 262


def test_error_labels_take_the_place_of_the_servers_own(client):
    session = client.start_session()
    command = {"insert": "c", "documents": [{}]}

    def labels(number, **data):
        with fail_point(client, failCommands=["insert"], **data):
            with pytest.raises(OperationFailure) as error:
                client.test.command({**command, "txnNumber": Int64(number)}, session=session)
            return error.value.details.get("errorLabels", [])

    assert labels(1, errorCode=262) == ["RetryableWriteError"]
    assert labels(2, errorCode=262, errorLabels=[]) == []
    assert labels(3, errorCode=2, errorLabels=["RetryableWriteError"]) == ["RetryableWriteError"]
    session.end_session()


def test_write_concern_error_comes_after_the_work(client):
    concern = {"code": 262, "codeName": "ExceededTimeLimit", "errmsg": "soon", "errorLabels": ["RetryableWriteError"]}
    with fail_point(client, failCommands=["insert"], writeConcernError=concern):
        with pytest.raises((WriteConcernError, OperationFailure)) as error:
            client.test.c.insert_one({"_id": 2})
        assert error.value.code == 262
    assert client.test.c.find_one({"_id": 2})


def test_times(client):
    with fail_point(client, {"times": 2}, failCommands=["find"], errorCode=262):
        assert [failing(client.test.c.find_one) for _ in range(4)] == [262, 262, None, None]


def test_skip(client):
    with fail_point(client, {"skip": 2}, failCommands=["find"], errorCode=262):
        assert [failing(client.test.c.find_one) for _ in range(4)] == [None, None, 262, 262]


def test_only_what_matches_counts(client):
    with fail_point(client, {"times": 1}, failCommands=["find"], errorCode=262, namespace="test.c"):
        assert failing(client.test.d.find_one) is None
        assert failing(client.test.c.find_one) == 262


def test_activation_probability(client):
    def failures(probability):
        mode = {"activationProbability": probability}
        with fail_point(client, mode, failCommands=["find"], errorCode=262):
            return sum(failing(client.test.c.find_one) == 262 for _ in range(200))

    assert failures(0.0) == 0
    assert failures(1.0) == 200
    assert 40 < failures(0.5) < 160


def test_the_number_of_times_entered(client):
    def count(mode):
        set_point = {"configureFailPoint": "failCommand", "mode": mode, "data": {"failCommands": ["find"], "errorCode": 262}}
        return client.admin.command(set_point)["count"]

    before = count("alwaysOn")
    for _ in range(3):
        failing(client.test.c.find_one)
    assert count("off") == before + 3


def test_max_time_always_times_out(client):
    with fail_point(client, name="maxTimeAlwaysTimeOut"):
        with pytest.raises(ExecutionTimeout) as error:
            list(client.test.c.find(max_time_ms=60_000))
        assert error.value.code == 50
        assert error.value.details["codeName"] == "MaxTimeMSExpired"
        for run in (
            lambda: client.test.c.count_documents({}, maxTimeMS=60_000),
            lambda: list(client.test.c.aggregate([], maxTimeMS=60_000)),
            lambda: client.test.command({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}], "maxTimeMS": 60_000}),
        ):
            assert failing(run) == 50
        assert list(client.test.c.find()) == [{"_id": 1}], "only what has a limit can exceed it"
    assert list(client.test.c.find(max_time_ms=60_000)) == [{"_id": 1}]


def test_max_time_never_times_out(client):
    with fail_point(client, name="maxTimeNeverTimeOut"):
        slow = {"$project": {"n": {"$size": {"$filter": {"input": {"$range": [0, 300_000]}, "cond": {"$gt": ["$$this", 5]}}}}}}
        assert list(client.test.c.aggregate([slow], maxTimeMS=1))[0]["n"] == 299_994


def test_an_error_says_what_it_is_told_to_say(client):
    with fail_point(client, failCommands=["find"], errorCode=8, errmsg="as told"):
        with pytest.raises(OperationFailure, match="as told"):
            client.test.c.find_one()


def test_that_of_get_mores_has_a_text_of_its_own(client):
    client.test.c.insert_many([{"_id": 2}, {"_id": 3}])
    with fail_point(client, name="failGetMoreAfterCursorCheckout", errorCode=237, errmsg="operation was interrupted"):
        with pytest.raises(OperationFailure) as error:
            list(client.test.c.find(batch_size=2))
    assert error.value.code == 237
    assert error.value.details["errmsg"] == "Failing command via 'failGetMoreAfterCursorCheckout' failpoint"


@pytest.mark.parametrize(
    "data",
    [
        {"failCommands": ["find"], "errorCode": "262"},
        {"failCommands": "find", "errorCode": 262},
        {"failCommands": [1], "errorCode": 262},
        {"failCommands": ["find"], "closeConnection": "yes"},
        {"failCommands": ["find"], "blockConnection": True},
        {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": -1},
        {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": "1"},
        {"failCommands": ["find"], "errorLabels": "RetryableWriteError", "errorCode": 262},
        {"failCommands": ["find"], "errorLabels": [1], "errorCode": 262},
        {"failCommands": ["find"], "writeConcernError": 91},
        {"failCommands": ["find"], "appName": 1, "errorCode": 262},
        {"failCommands": ["find"], "namespace": 1, "errorCode": 262},
        {"failCommands": ["find"], "failInternalCommands": 1, "errorCode": 262},
        {"failCommands": ["find"], "errorCod": 91},
    ],
)
def test_data_that_would_silently_do_nothing_is_refused(client, data):
    with pytest.raises(OperationFailure) as error:
        client.admin.command({"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data})
    assert error.value.code in (2, 14, 72)
    assert failing(client.test.c.find_one) is None


def test_without_test_commands_there_are_no_fail_points(server):
    with pytest.raises(OperationFailure) as error:
        server.client().admin.command("configureFailPoint", "failCommand", mode="off")
    assert error.value.code in (13, 59)


def test_what_stands_beside_data_is_passed_over(client):
    """The C driver's tests of change streams put `appName` there, where it restricts nothing."""
    command = {"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["find"], "errorCode": 262}}
    client.admin.command(command | {"appName": "another"})
    assert failing(client.test.c.find_one) == 262
    assert failing(client.test.c.find_one) is None
