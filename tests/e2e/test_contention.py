"""`withTransaction` of three drivers in several processes, over a few accounts: every call succeeds, and the total is exact."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ACCOUNTS = 4
TIMEOUT_S = 240

PYTHON = """
import sys, pymongo
uri, name, worker, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = pymongo.MongoClient(uri)
db = client[name]
for call in range(calls):
    source = (worker + call) % 4
    target = (source + 1 + call % 3) % 4

    def transfer(session):
        db.accounts.update_one({"_id": source}, {"$inc": {"n": -1}}, session=session)
        db.accounts.update_one({"_id": target}, {"$inc": {"n": 1}}, session=session)
        db.done.insert_one({"_id": f"{worker} {call}", "from": source, "to": target}, session=session)

    with client.start_session() as session:
        session.with_transaction(transfer)
"""


def run_all(commands, tmp_path, node_modules=None):
    """Runs all of them at one time; fails with what the first one said that failed."""
    env = {**os.environ, "HOME": str(tmp_path), "NODE_PATH": str(node_modules or "")}
    said = [open(tmp_path / f"said {i}", "w+") for i in range(len(commands))]
    running = [
        subprocess.Popen(list(map(str, command)), env=env, stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path)
        for command, out in zip(commands, said, strict=True)
    ]
    try:
        for process, out in zip(running, said, strict=True):
            status = process.wait(TIMEOUT_S)
            out.seek(0)
            assert status == 0, out.read()
    finally:
        for process in running:
            process.kill()
            process.wait()
        [out.close() for out in said]


def set_up(db):
    db.accounts.insert_many([{"_id": i, "n": 1000} for i in range(ACCOUNTS)])
    db.create_collection("done")


def verify(db, calls):
    """All calls were made, each once, and each account has what it should."""
    done = list(db.done.find())
    assert len(done) == calls
    expected = {i: 1000 for i in range(ACCOUNTS)}
    for transfer in done:
        expected[transfer["from"]] -= 1
        expected[transfer["to"]] += 1
    found = {account["_id"]: account["n"] for account in db.accounts.find()}
    assert found == expected
    assert sum(found.values()) == 1000 * ACCOUNTS


def python(server, db, worker, calls):
    return [sys.executable, "-c", PYTHON, server.set_uri, db.name, worker, calls]


def test_processes_of_pymongo(server, db, tmp_path):
    set_up(db)
    run_all([python(server, db, worker, 15) for worker in range(4)], tmp_path)
    verify(db, 60)


@pytest.mark.parametrize("with_shell", [False, True], ids=["node", "node and mongosh"])
def test_node_and_mongosh_beside_pymongo(node_modules, server, db, tmp_path, with_shell):
    set_up(db)
    script = HERE / "node" / "transfer.js"
    commands = [["node", script, server.set_uri, db.name, worker, 15] for worker in (10, 11)]
    calls = 2 * 15 + 15
    if with_shell:
        mongosh = node_modules / "mongosh" / "bin" / "mongosh.js"
        uri = server.uri.rstrip("/").split("/?")[0] + f"/{db.name}"
        for worker in 20, 21:
            values = f"var worker = {worker}, calls = 10"
            commands.append(["node", mongosh, "--norc", "--quiet", uri, "--eval", values, "--file", script])
        calls += 20
    run_all([*commands, python(server, db, 0, 15)], tmp_path, node_modules)
    verify(db, calls)
