"""What the log, the profiler and currentOp do not say."""

import json

import pytest
from pymongo.errors import OperationFailure

CARD = "4111-1111-2222-3333"
LOUD = ["--slowms", "-1", "-vvvvv"]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "nestor.log"


def work(db):
    """Commands, an error and a failed validation that all hold the card's number."""
    db.drop_collection("cards")
    db.create_collection("cards", validator={"n": {"$gt": 0}}, validationAction="warn")
    db.cards.create_index("card", unique=True)
    db.cards.insert_one({"_id": 1, "card": CARD, "n": 0})
    db.cards.find_one({"card": CARD})
    db.cards.update_one({"card": CARD}, {"$set": {"note": CARD}})
    list(db.cards.aggregate([{"$match": {"card": CARD}}], comment=CARD))
    with pytest.raises(OperationFailure):
        db.cards.insert_one({"_id": 2, "card": CARD})
    with pytest.raises(OperationFailure):
        db.command("find", "cards", filter={"$nonsense": CARD})


def test_the_log_says_nothing_of_clients_data(start, log):
    """Manual, "Log Redaction": the parameter works while the server runs, and what is kept lets an operator go on."""
    server = start(None, "--logpath", log, *LOUD)
    db = server.client().shop
    work(db)
    assert CARD in log.read_text()
    db.client.admin.command("setParameter", 1, redactClientLogData=True)
    before = len(log.read_text())
    work(db)
    text = log.read_text()[before:]
    assert CARD not in text
    assert not any(CARD in line for line in db.client.admin.command("getLog", "global")["log"][-3:])
    slow = [json.loads(line)["attr"] for line in text.splitlines() if '"Slow query"' in line]
    find = next(attr for attr in slow if "find" in attr.get("command", {}) and attr["ns"] == "shop.cards")
    assert find["command"]["filter"] == {"card": "###"}
    assert find["planSummary"].startswith("IXSCAN") and find["docsExamined"] == 1
    assert any(attr.get("errCode") == 2 and attr["errMsg"] == "###" for attr in slow)
    db.client.admin.command("setParameter", 1, redactClientLogData=False)
    work(db)
    assert CARD in log.read_text()[before:]


def test_the_flag_and_the_configuration_file_say_it_from_the_start(start, tmp_path, log):
    server = start(None, "--logpath", log, "--redactClientLogData", *LOUD)
    work(server.client().shop)
    assert CARD not in log.read_text()
    admin = server.client().admin
    assert admin.command("getParameter", 1, redactClientLogData=1)["redactClientLogData"] is True
    config = tmp_path / "nestor.yaml"
    config.write_text("security:\n  redactClientLogData: true\n")
    parsed = start(None, "--config", config).client().admin.command("getCmdLineOpts")["parsed"]
    assert parsed["security"]["redactClientLogData"] is True


def test_passwords_and_keys_are_nowhere(start, tmp_path, log):
    """Neither the log at its loudest, nor the profiler of all operations, nor currentOp, nor the audit log has them."""
    key_file = tmp_path / "key"
    key_file.write_text("keyOfTheCluster0123456789")
    key_file.chmod(0o600)
    audit = tmp_path / "audit.json"
    flags = ["--auth", "--keyFile", key_file, "--profile", "2", "--logpath", log, *LOUD]
    flags += ["--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", audit]
    flags += ["--setParameter", "auditAuthorizationSuccess=true"]
    server = start(None, *flags)
    server.client().admin.command("createUser", "root", pwd="pwd-of-root", roles=["root"])
    root = server.client(username="root", password="pwd-of-root", authSource="admin")
    root.test.command("createUser", "ann", pwd="pwd-of-ann", roles=["readWrite"])
    root.test.command("updateUser", "ann", pwd="pwd-of-ann-2")
    for wrong in ({"pwd": "pwd-wrong", "roles": ["nothing"]}, {"pwd": "pwd-wrong", "roles": [], "unknown": 1}):
        with pytest.raises(OperationFailure):
            root.test.command({"createUser": "bob", **wrong})
    with pytest.raises(OperationFailure):
        root.test.command("explain", {"createUser": "bob", "pwd": "pwd-wrong", "roles": []})
    with pytest.raises(OperationFailure):
        server.client(username="ann", password="pwd-wrong", authSource="test").test.command("ping")
    ann = server.client(username="ann", password="pwd-of-ann-2", authSource="test")
    ann.test.a.insert_one({})
    stored = root.admin["system.users"].find_one({"user": "ann"})["credentials"]
    keys = [part[name] for part in stored.values() for name in ("salt", "storedKey", "serverKey")]
    profiled = [str(doc) for db in ("admin", "test") for doc in root[db]["system.profile"].find()]
    current = str(root.admin.command("currentOp", 1, **{"$all": True}))
    text = "\n".join([log.read_text(), audit.read_text(), current, *profiled])
    assert "Successfully authenticated" in text and '"authCheck"' in text and profiled
    for secret in ("pwd-of", "pwd-wrong", "keyOfTheCluster", *keys):
        assert secret not in text, secret
    owners = {doc["user"] for doc in root.test["system.profile"].find({"op": "insert"})}
    assert owners == {"ann@test"}
