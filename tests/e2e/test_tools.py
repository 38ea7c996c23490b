"""MongoDB's database tools, unmodified: mongodump, mongorestore, mongoexport, mongoimport, bsondump, mongostat, mongotop.

scripts/test builds them from their Go module and names their folder in NESTOR_MONGO_TOOLS; without Go they are left out.
"""

import json
import os
import subprocess
import threading
from pathlib import Path

import bson
import pytest
from pymongo import ASCENDING, MongoClient
from pymongo.collation import Collation
from pymongo.errors import OperationFailure

USER = {"user": "root", "pwd": "e2e-root", "roles": ["root"]}


@pytest.fixture(scope="session")
def tools():
    folder = os.environ.get("NESTOR_MONGO_TOOLS")
    if not folder:
        pytest.skip("MongoDB's tools are not here: Go could not be had to build them")
    return Path(folder)


def run(tools, name, *arguments, status=0, timeout=120):
    """Standard output of a tool, which must end with that status."""
    done = subprocess.run(
        [str(tools / name), *map(str, arguments)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == status, f"{name} {arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def login(server, user, password, database):
    host = server.uri.split("//")[1].split("/")[0]
    return f"mongodb://{user}:{password}@{host}/?authSource={database}"


@pytest.fixture
def secured(start, tmp_path):
    """A server with --auth and its first user; returns the server, and the URI of that user."""
    server = start(tmp_path / "data", "--auth")
    client = MongoClient(server.uri)
    client.admin.command("createUser", USER["user"], pwd=USER["pwd"], roles=USER["roles"])
    client.close()
    return server, login(server, USER["user"], USER["pwd"], "admin")


def fill(client):
    """One of each thing that a dump has to carry."""
    shop = client.shop
    shop.create_collection("capped", capped=True, size=100_000, max=50)
    shop.create_collection("french", collation={"locale": "fr", "strength": 1})
    shop.create_collection("checked", validator={"$jsonSchema": {"required": ["n"]}}, validationAction="error")
    shop.orders.insert_many([{"_id": i, "n": i, "tags": [i, "x"], "place": {"d": bson.Decimal128("1.10")}} for i in range(3000)])
    shop.orders.create_index([("tags", ASCENDING), ("n", -1)], name="tags_n")
    shop.orders.create_index("n", unique=True, partialFilterExpression={"n": {"$gte": 0}})
    shop.orders.create_index("when", expireAfterSeconds=3600)
    shop.orders.create_index("place", collation=Collation("de", strength=2), name="german")
    shop.capped.insert_many([{"_id": i} for i in range(10)])
    shop.french.insert_many([{"_id": "Été"}, {"_id": "hiver"}])
    shop.checked.insert_one({"n": 1})
    shop.command("create", "view", viewOn="orders", pipeline=[{"$match": {"n": {"$lt": 10}}}])
    shop.command("createRole", "reader", privileges=[
        {"resource": {"db": "shop", "collection": "orders"}, "actions": ["find"]}
    ], roles=[])
    shop.command("createUser", "ada", pwd="lovelace", roles=["reader"])


def described(client):
    """Collections with their options, indexes, and contents."""
    out = {}
    for found in client.shop.list_collections():
        found.get("info", {}).pop("uuid", None)
        name = found["name"]
        if name.startswith("system."):
            continue
        indexes = {}
        if found["type"] == "collection":
            # The order of keys counts, that of options is mongorestore's.
            indexes = {index["name"]: {**index, "key": list(index["key"].items())} for index in client.shop[name].list_indexes()}
        out[name] = (found, indexes, list(client.shop[name].find().sort("_id")))
    return out


def test_dump_and_restore(tools, secured, start, tmp_path):
    server, uri = secured
    client = server.client(uri)
    fill(client)
    before = described(client)
    assert set(before) == {"capped", "french", "checked", "orders", "view"}
    for form in [["--out", tmp_path / "dump"], [f"--archive={tmp_path / 'archive'}", "--gzip"]]:
        run(tools, "mongodump", "--uri", uri, *form)
    listed = run(tools, "bsondump", "--quiet", tmp_path / "dump" / "shop" / "orders.bson").splitlines()
    assert len(listed) == 3000 and json.loads(listed[7])["_id"] == {"$numberInt": "7"}

    for turn, form in enumerate([[tmp_path / "dump"], [f"--archive={tmp_path / 'archive'}", "--gzip"]]):
        other = start(tmp_path / f"other{turn}")
        run(tools, "mongorestore", "--uri", other.uri, *form)
        restored = other.client()
        after = described(restored)
        for name, parts in before.items():
            for part, expected in zip(after[name], parts, strict=True):
                assert part == expected, name
        # Users and roles came along, with their passwords and rights.
        assert restored.shop.command("rolesInfo", "reader")["roles"]
        other.stop()
        locked = start(tmp_path / f"other{turn}", "--auth")
        ada = locked.client(login(locked, "ada", "lovelace", "shop"))
        assert ada.shop.orders.count_documents({}) == 3000
        with pytest.raises(OperationFailure):
            ada.shop.checked.find_one()
        locked.stop()


def test_dump_with_oplog(tools, start, tmp_path):
    """Writes during the dump are replayed: the restored state is that of one moment."""
    server = start(tmp_path / "data")
    client = server.client()
    client.test.first.insert_one({"_id": 0, "n": 0})
    client.test.filler.insert_many([{"_id": i, "pad": "x" * 500} for i in range(5000)])
    client.test.second.insert_one({"_id": 0, "n": 0})
    stop = threading.Event()

    def write():
        for n in range(1, 50_000):
            if stop.is_set():
                return
            # One after the other: at every moment the first is the second's or one ahead.
            client.test.first.update_one({"_id": 0}, {"$set": {"n": n}})
            client.test.second.update_one({"_id": 0}, {"$set": {"n": n}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        run(tools, "mongodump", "--uri", server.uri, "--oplog", "--out", tmp_path / "dump")
    finally:
        stop.set()
        writer.join(60)
    assert (tmp_path / "dump" / "oplog.bson").exists()
    other = start(tmp_path / "other")
    run(tools, "mongorestore", "--uri", other.uri, "--oplogReplay", tmp_path / "dump")
    restored = other.client().test
    first, second = (restored[name].find_one({"_id": 0})["n"] for name in ("first", "second"))
    assert first - second in (0, 1), (first, second)
    assert restored.filler.count_documents({}) == 5000


def test_export_and_import(tools, server, db, tmp_path):
    db.people.insert_many([{"_id": i, "name": f"n{i}", "age": i % 90} for i in range(500)])
    common = ["--uri", server.uri, "--db", db.name]
    run(tools, "mongoexport", *common, "--collection", "people", "--out", tmp_path / "people.json")
    run(tools, "mongoimport", *common, "--collection", "again", "--file", tmp_path / "people.json")
    everyone = list(db.people.find().sort("_id"))
    assert list(db.again.find().sort("_id")) == everyone
    run(tools, "mongoexport", *common, "--collection", "people", "--type", "csv", "--fields", "_id,name,age",
        "--query", '{"age": {"$lt": 5}}', "--sort", '{"_id": 1}', "--out", tmp_path / "young.csv")
    run(tools, "mongoimport", *common, "--collection", "young", "--type", "csv", "--headerline", "--drop",
        "--file", tmp_path / "young.csv")
    assert list(db.young.find().sort("_id")) == [doc for doc in everyone if doc["age"] < 5]
    # The same ones again: merged by _id, and refused without a mode.
    run(tools, "mongoimport", *common, "--collection", "again", "--mode", "merge", "--file", tmp_path / "people.json")
    assert db.again.count_documents({}) == 500


def test_stat_and_top(tools, secured):
    server, uri = secured
    server.client(uri).test.c.insert_one({})
    # mongostat and mongotop name the server by host and log in like anybody.
    lines = run(tools, "mongostat", "--uri", uri, "--rowcount", "2", "--json", "1").splitlines()
    rows = [row for line in lines for row in json.loads(line).values()]
    assert len(rows) == 2 and all({"insert", "query", "conn", "dirty"} & set(row) for row in rows), lines
    top = run(tools, "mongotop", "--uri", uri, "--rowcount", "1", "--json", "1")
    assert "test.c" in json.loads(top.splitlines()[-1])["totals"]
