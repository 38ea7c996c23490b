"""The audit log: who did what, seen from the files that `--auditDestination` names."""

import base64
import json
import os
import signal

import bson
import pytest
from harness import DidNotStart, eventually
from pymongo.errors import OperationFailure

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}


def refused(code, act, *args, **kwargs):
    with pytest.raises(OperationFailure) as caught:
        act(*args, **kwargs)
    assert caught.value.code == code, caught.value


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(path, action):
    return [record for record in read(path) if record["atype"] == action]


def params(path, action):
    return [(record["param"], record["result"]) for record in of(path, action)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.json"


def flags(path, *more):
    return ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", path, *more]


def test_changes_of_the_catalog_are_recorded_however_they_come(start, path):
    """Manual, "mongo Schema Audit Messages": a collection that an insert makes is as recorded as one that `create` makes."""
    server = start(None, *flags(path))
    db = server.client().shop
    db.orders.insert_one({"_id": 1, "total": 5})
    db.orders.insert_one({"_id": 2, "total": 7})
    db.orders.create_index("total")
    db.create_collection("large", viewOn="orders", pipeline=[{"$match": {"total": {"$gt": 5}}}])
    db.orders.rename("sales")
    with db.client.start_session() as session, session.start_transaction():
        db.created.insert_one({"_id": 1}, session=session)
    db.sales.drop_index("total_1")
    refused(27, db.sales.drop_index, "total_1")
    db.sales.drop()
    db.client.drop_database("shop")
    assert params(path, "createDatabase") == [({"ns": "shop"}, 0)]
    view = {"ns": "shop.large", "viewOn": "shop.orders", "pipeline": [{"$match": {"total": {"$gt": 5}}}]}
    made = [param for param, result in params(path, "createCollection") if result == 0]
    assert [param for param in made if "system.views" not in param["ns"]] == [
        {"ns": "shop.orders"},
        view,
        {"ns": "shop.created"},
    ]
    ((index, result),) = params(path, "createIndex")
    assert (index["ns"], index["indexName"], index["indexBuildState"], result) == (
        "shop.orders",
        "total_1",
        "IndexBuildSucceeded",
        0,
    )
    assert index["indexSpec"]["key"] == {"total": 1}
    assert params(path, "renameCollection") == [({"old": "shop.orders", "new": "shop.sales"}, 0)]
    dropped = {"ns": "shop.sales", "indexName": "total_1"}
    assert params(path, "dropIndex") == [(dropped, 0), (dropped, 27)]
    assert ({"ns": "shop.sales"}, 0) in params(path, "dropCollection")
    assert params(path, "dropDatabase") == [({"ns": "shop"}, 0)]


def test_a_record_says_who_and_where(start, path):
    server = start(None, *flags(path))
    client = server.client()
    client.admin.command("logApplicationMessage", "hello")
    (record,) = of(path, "applicationMessage")
    assert record["param"] == {"msg": "hello"}
    assert set(record) == {"atype", "ts", "uuid", "local", "remote", "users", "roles", "param", "result"}
    assert record["local"]["port"] == client.address[1]
    assert record["remote"]["ip"] == "127.0.0.1"
    assert record["uuid"]["$type"] == "04" and len(base64.b64decode(record["uuid"]["$binary"])) == 16
    (metadata, *_) = of(path, "clientMetadata")
    assert metadata["param"]["clientMetadata"]["driver"]["name"].startswith("PyMongo")
    server.stop()
    own = [(record["atype"], record["remote"]) for record in read(path) if record["atype"] in ("startup", "shutdown")]
    assert own == [("startup", {"isSystemUser": True}), ("shutdown", {"isSystemUser": True})]


def test_logins_and_users_are_recorded_without_passwords(start, path):
    server = start(None, "--auth", *flags(path))
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    root = server.client(**ROOT)
    root.test.command("createUser", "ann", pwd="first word", roles=["read"])
    root.test.command("updateUser", "ann", pwd="second word")
    root.test.command("grantRolesToUser", "ann", roles=["readWrite"])
    refused(51003, root.test.command, "createUser", "ann", pwd="third word", roles=[])
    refused(18, server.client(username="ann", password="wrong", authSource="test").test.command, "ping")
    ann = server.client(username="ann", password="second word", authSource="test")
    ann.test.command("ping")
    refused(13, ann.other.people.find_one)
    assert {"user": "root", "db": "admin", "roles": [{"role": "root", "db": "admin"}]} == params(path, "createUser")[0][0]
    ann_made = {"user": "ann", "db": "test", "roles": [{"role": "read", "db": "test"}]}
    assert params(path, "createUser")[1:] == [(ann_made, 0), ({**ann_made, "roles": []}, 51003)]
    assert params(path, "updateUser") == [({"user": "ann", "db": "test", "passwordChanged": True}, 0)]
    granted = {"user": "ann", "db": "test", "roles": [{"role": "readWrite", "db": "test"}]}
    assert params(path, "grantRolesToUser") == [(granted, 0)]
    logins = [(param["user"], result) for param, result in params(path, "authenticate")]
    assert ("ann", 18) in logins and ("ann", 0) in logins and ("root", 0) in logins
    (check,) = of(path, "authCheck")
    assert check["result"] == 13
    assert check["users"] == [{"user": "ann", "db": "test"}]
    assert {"role": "readWrite", "db": "test"} in check["roles"]
    assert (check["param"]["command"], check["param"]["ns"]) == ("find", "other.people")
    text = path.read_text()
    assert not any(word in text for word in ("secret", "first word", "second word", "third word", "storedKey"))


def test_commands_that_are_allowed_are_recorded_when_that_is_set(start, path):
    server = start(None, "--auth", "--setParameter", "auditAuthorizationSuccess=true", *flags(path))
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    root = server.client(**ROOT)
    root.test.people.insert_one({"_id": 1})
    inserted = [param for param, result in params(path, "authCheck") if param["command"] == "insert" and result == 0]
    assert [param["ns"] for param in inserted] == ["test.people"]
    root.admin.command("setParameter", 1, auditAuthorizationSuccess=False)
    root.test.people.find_one()
    assert not any(param["command"] == "find" for param, _ in params(path, "authCheck"))
    assert "secret" not in path.read_text()


def test_only_what_the_filter_matches_is_recorded(start, path):
    wanted = {"atype": "dropCollection", "param.ns": {"$regex": "^shop\\."}}
    server = start(None, *flags(path, "--auditFilter", json.dumps(wanted)))
    client = server.client()
    for db in ("shop", "other"):
        client[db].a.insert_one({})
        client[db].a.drop()
    assert [record["param"]["ns"] for record in read(path)] == ["shop.a"]


def test_a_file_of_bson_is_one_of_documents(start, tmp_path):
    path = tmp_path / "audit.bson"
    server = start(None, "--auditDestination", "file", "--auditFormat", "BSON", "--auditPath", path)
    server.client().shop.a.insert_one({})
    records = bson.decode_all(path.read_bytes())
    assert {"startup", "createCollection"} <= {record["atype"] for record in records}
    assert {record["uuid"].subtype if hasattr(record["uuid"], "subtype") else 4 for record in records} == {4}


def test_rotation_begins_a_new_file(start, path):
    server = start(None, *flags(path))
    client = server.client()
    client.shop.a.insert_one({})
    client.admin.command("logRotate", "audit")
    client.shop.a.drop()
    old, *_ = [name for name in os.listdir(path.parent) if name != path.name]
    assert of(path.parent / old, "createCollection") and not of(path.parent / old, "dropCollection")
    # Clients connect when they like.
    others = [record["atype"] for record in read(path) if record["atype"] != "clientMetadata"]
    assert others[0] == "rotateLog"
    assert of(path, "dropCollection")
    server.process.send_signal(signal.SIGUSR1)
    eventually(lambda: len(os.listdir(path.parent)) == 3)


def test_what_is_audited_can_be_changed_and_is_kept(start, tmp_path, path):
    """Manual, "setAuditConfig" and "auditConfig"."""
    server = start(tmp_path / "data", *flags(path, "--auditRuntimeConfiguration"))
    admin = server.client().admin
    assert admin.command("getAuditConfig")["auditAuthorizationSuccess"] is False
    refused(2, admin.command, "setAuditConfig", 1, filter={"$nonsense": 1}, auditAuthorizationSuccess=False)
    admin.command("setAuditConfig", 1, filter={"atype": "dropCollection"}, auditAuthorizationSuccess=True)
    ((change, _),) = params(path, "auditConfigure")
    assert change["previous"]["filter"] == {}
    assert change["config"]["filter"] == {"atype": "dropCollection"}
    admin.client.shop.a.insert_one({})
    admin.client.shop.a.drop()
    server.stop()
    server.start()
    admin = server.client().admin
    assert admin.command("getAuditConfig")["filter"] == {"atype": "dropCollection"}
    (shown,) = admin.command("getClusterParameter", "auditConfig")["clusterParameters"]
    assert shown["auditAuthorizationSuccess"] is True
    assert "shop.a" not in [param["ns"] for param, _ in params(path, "createCollection")]
    assert params(path, "dropCollection") == [({"ns": "shop.a"}, 0)]


def test_without_auditing_there_is_nothing_to_configure(start):
    admin = start().client().admin
    refused(20, admin.command, "getAuditConfig")
    refused(20, admin.command, "setAuditConfig", 1, filter={}, auditAuthorizationSuccess=True)
    refused(4, admin.command, "setClusterParameter", {"auditConfig": {}})


@pytest.mark.parametrize(
    "wrong",
    [
        ["--auditDestination", "file"],
        ["--auditDestination", "console", "--auditFormat", "JSON", "--auditPath", "x"],
        ["--auditDestination", "file", "--auditFormat", "XML", "--auditPath", "x"],
        ["--auditDestination", "console", "--auditFilter", "{$nonsense: 1}"],
        ["--auditDestination", "console", "--auditFilter", "[]"],
        ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", "/nowhere/at/all"],
        ["--auditFilter", "{}"],
    ],
)
def test_options_that_mean_nothing_are_refused(start, wrong):
    with pytest.raises(DidNotStart):
        start(None, *wrong)


def test_a_record_that_cannot_be_written_stops_the_server(start):
    """Nobody may act unseen: the manual has MongoDB end, too, when it cannot write what it audits."""
    with pytest.raises(DidNotStart):
        start(None, *flags("/dev/full"))


def test_the_configuration_file_says_the_same(start, tmp_path, path):
    config = tmp_path / "nestor.yaml"
    config.write_text(
        f"auditLog:\n  destination: file\n  format: JSON\n  path: {path}\n"
        "  filter: '{\"atype\": \"createCollection\"}'\n"
        "setParameter: {auditAuthorizationSuccess: true}\n"
    )
    server = start(None, "--config", config)
    parsed = server.client().admin.command("getCmdLineOpts")["parsed"]["auditLog"]
    assert (parsed["destination"], parsed["format"], parsed["path"]) == ("file", "JSON", str(path))
    server.client().shop.a.insert_one({})
    assert [record["atype"] for record in read(path)] == ["createCollection"]
