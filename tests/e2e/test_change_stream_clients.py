"""Drivers that follow changes while the server is killed and started again: they resume by themselves, and each event comes once and in
order. Source: driver specification "Change Streams", "Resume Process"."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pymongo

NODE = Path(__file__).parent / "node"
COUNT = 200


def port_of(server):
    return int(server.uri.split("?")[0].rstrip("/").rsplit(":", 1)[1])


def write_over_a_kill(start, server, dbpath):
    """Inserts half of the documents, kills the server, starts it again at its port and inserts the others."""
    port = port_of(server)
    for half in [range(COUNT // 2), range(COUNT // 2, COUNT)]:
        with pymongo.MongoClient(server.uri) as client:
            for i in half:
                client.e2e_streams.c.insert_one({"_id": i})
        if half.start == 0:
            server.kill()
            server = start(dbpath, port=port)
    return server


def follow(stream, seen, failures):
    """Reads until all have come; an end in any case."""
    deadline = time.monotonic() + 90
    try:
        with stream:
            while len(seen) < COUNT and time.monotonic() < deadline:
                event = stream.try_next()
                if event is not None:
                    seen.append(event["documentKey"]["_id"])
    except Exception as error:
        failures.append(error)


def test_pymongo_resumes_over_a_kill(start, tmp_path):
    server = start(tmp_path / "data")
    only_inserts = [{"$match": {"operationType": "insert"}}]
    with pymongo.MongoClient(server.uri, serverSelectionTimeoutMS=60_000) as client:
        client.e2e_streams.create_collection("c")
        watched = [client.e2e_streams.c, client.e2e_streams, client]
        streams = [target.watch(only_inserts, max_await_time_ms=500) for target in watched]
        seen, failures = [[], [], []], []
        threads = [threading.Thread(target=follow, args=(stream, ids, failures)) for stream, ids in zip(streams, seen)]
        for thread in threads:
            thread.start()
        write_over_a_kill(start, server, tmp_path / "data")
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive()
    assert not failures
    assert seen == [list(range(COUNT))] * 3


def test_node_resumes_over_a_kill(node_modules, start, tmp_path):
    server = start(tmp_path / "data")
    with pymongo.MongoClient(server.uri) as client:
        client.e2e_streams.create_collection("c")
    watcher = subprocess.Popen(
        ["node", NODE / "streams.js", server.uri, str(COUNT)],
        env={**os.environ, "NODE_PATH": str(node_modules), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    )
    try:
        assert watcher.stdout.readline() == "watching\n"
        write_over_a_kill(start, server, tmp_path / "data")
        said, _ = watcher.communicate(timeout=120)
    finally:
        watcher.kill()
        watcher.wait()
    assert watcher.returncode == 0, said
    assert json.loads(said.splitlines()[-1]) == [list(range(COUNT))] * 3
