"""Connecting: what drivers ask first, addresses, compression, stopping."""

import json
import os
import re
import signal
import socket
import subprocess

import bson
import harness
import pymongo
import pytest
from harness import (
    CHECKSUM_PRESENT, EXHAUST_ALLOWED, MORE_TO_COME, OP_MSG, OP_QUERY, OP_REPLY,
    DidNotStart, Raw, Server, eventually, message, op_msg, sequence,
)
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError


def test_hello_is_a_primary_of_one(server, client):
    hello = client.admin.command("hello")
    assert hello["setName"] == "rs0"
    assert hello["isWritablePrimary"] is True and hello["secondary"] is False
    assert hello["hosts"] == [hello["me"]] == [hello["primary"]]
    assert hello["maxWireVersion"] == 25 and hello["minWireVersion"] == 0
    assert hello["logicalSessionTimeoutMinutes"] == 30
    assert hello["maxBsonObjectSize"] == 16 * 1024 * 1024
    assert hello["maxWriteBatchSize"] == 100_000
    assert set(hello["topologyVersion"]) == {"processId", "counter"}
    assert "lastWriteDate" in hello["lastWrite"] and "opTime" in hello["lastWrite"]
    assert isinstance(hello["connectionId"], int)
    assert isinstance(hello["ok"], float)


def test_server_selection_as_replica_set(server):
    client = server.client(server.set_uri)
    assert client.admin.command("ping")["ok"] == 1.0
    assert client.topology_description.topology_type_name == "ReplicaSetWithPrimary"
    assert client.primary == server.address
    wrong = server.client(server.set_uri.replace("rs0", "another"), serverSelectionTimeoutMS=500)
    with pytest.raises(ServerSelectionTimeoutError):
        wrong.admin.command("ping")


def test_read_preferences_reach_the_only_node(server):
    for mode in ("primary", "primaryPreferred", "secondaryPreferred", "nearest"):
        assert server.client(server.set_uri, readPreference=mode).admin.command("ping")["ok"] == 1.0


def test_standalone(start):
    server = start(None, "--standalone")
    client = server.client()
    hello = client.admin.command("hello")
    assert "setName" not in hello and hello["isWritablePrimary"] is True
    client.test.c.insert_one({"_id": 1})
    assert client.topology_description.topology_type_name == "Single"


def test_awaitable_hello_waits_and_is_exhaust(server):
    with server.raw() as raw:
        first = raw.command({"hello": 1, "$db": "admin"})
        ask = {"hello": 1, "topologyVersion": first["topologyVersion"], "maxAwaitTimeMS": 200, "$db": "admin"}
        assert raw.command(ask)["topologyVersion"] == first["topologyVersion"]
        raw.send(op_msg(ask, flags=EXHAUST_ALLOWED, request_id=7))
        for _ in range(3):
            assert raw.reply()["ok"] == 1.0
            assert raw.flags & MORE_TO_COME


@pytest.fixture
def numbers(db):
    db.c.insert_many([{"_id": i} for i in range(10)])
    return db


def get_more(opened, size, **more):
    cursor = opened["cursor"]
    database, collection = cursor["ns"].split(".", 1)
    return {"getMore": bson.Int64(cursor["id"]), "collection": collection, "batchSize": size, **more, "$db": database}


def stream(raw):
    """The replies of an exhaust stream; each answers the one before it."""
    answers = 7
    while True:
        opcode, request_id, response_to, body = raw.receive()
        assert opcode == OP_MSG and response_to == answers
        answers = request_id
        reply = bson.decode(body[5:])
        yield reply
        if not body[0] & MORE_TO_COME:
            return


@pytest.mark.parametrize("command", [{"find": "c"}, {"aggregate": "c", "pipeline": []}])
def test_an_exhaust_get_more_is_answered_with_all_batches(server, numbers, command):
    with server.raw() as raw:
        size = {"cursor": {"batchSize": 1}} if "aggregate" in command else {"batchSize": 1}
        opened = raw.command({**command, **size, "$db": numbers.name}, flags=EXHAUST_ALLOWED)
        assert not raw.flags & MORE_TO_COME, "only getMore streams"
        raw.send(op_msg(get_more(opened, 4), flags=EXHAUST_ALLOWED, request_id=7))
        replies = list(stream(raw))
        assert [[d["_id"] for d in r["cursor"]["nextBatch"]] for r in replies] == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]
        assert [r["cursor"]["id"] != 0 for r in replies] == [True, True, False]
        assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0


def test_an_exhaust_stream_ends_with_an_error(server, numbers):
    fault = {"$project": {"x": {"$divide": [1, {"$subtract": ["$_id", 6]}]}}}
    with server.raw() as raw:
        opened = raw.command({"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}, fault], "cursor": {"batchSize": 1}, "$db": numbers.name})
        raw.send(op_msg(get_more(opened, 2), flags=EXHAUST_ALLOWED, request_id=7))
        replies = list(stream(raw))
        assert [r["ok"] for r in replies] == [1.0, 1.0, 0.0]


def test_a_tailable_exhaust_stream_goes_on_as_long_as_its_client_is_there(server, client, db):
    db.create_collection("capped", capped=True, size=100_000)
    db.capped.insert_one({"_id": 0})
    with server.raw() as raw:
        opened = raw.command({"find": "capped", "tailable": True, "awaitData": True, "$db": db.name})
        raw.send(op_msg(get_more(opened, 10, maxTimeMS=60_000), flags=EXHAUST_ALLOWED, request_id=7))
        replies = stream(raw)
        for i in range(1, 4):
            db.capped.insert_one({"_id": i})
            assert [d["_id"] for d in next(replies)["cursor"]["nextBatch"]] == [i]
    with server.raw() as raw:
        eventually(lambda: raw.command(get_more(opened, 10)).get("code") == 43, what="the cursor's end")


def test_a_stream_that_nobody_reads_leaves_no_cursor(server, db):
    db.c.insert_many([{"_id": i, "pad": "x" * 1_000_000} for i in range(40)])
    with server.raw() as raw:
        opened = raw.command({"find": "c", "batchSize": 0, "$db": db.name})
        raw.send(op_msg(get_more(opened, 1), flags=EXHAUST_ALLOWED, request_id=7))
        raw.receive()
    with server.raw() as raw:
        # Asked for under another name, a cursor that is there is refused with another code, and not used.
        other = {**get_more(opened, 1), "collection": "other"}
        eventually(lambda: raw.command(other)["code"] == 43, what="the cursor's end")


def test_pymongo_reads_an_exhaust_cursor(numbers):
    found = numbers.c.find(cursor_type=pymongo.CursorType.EXHAUST, batch_size=3)
    assert [d["_id"] for d in found] == list(range(10))
    begun = numbers.c.find(cursor_type=pymongo.CursorType.EXHAUST, batch_size=3)
    next(begun), begun.close()
    assert numbers.c.count_documents({}) == 10


def test_legacy_hello(server):
    """Drivers that do not know the server yet open with OP_QUERY isMaster."""
    with server.raw() as raw:
        query = b"\0\0\0\0" + b"admin.$cmd\0" + b"\0\0\0\0" + b"\xff\xff\xff\xff"
        raw.send(message(OP_QUERY, query + bson.encode({"isMaster": 1, "helloOk": True}), request_id=5))
        opcode, _, response_to, body = raw.receive()
        assert (opcode, response_to) == (OP_REPLY, 5)
        reply = bson.decode(body[20:])
        assert reply["ismaster"] is True and reply["helloOk"] is True and reply["ok"] == 1.0
        # Any other command over OP_QUERY is refused, on the same connection.
        raw.send(message(OP_QUERY, query + bson.encode({"ping": 1}), request_id=6))
        opcode, _, _, body = raw.receive()
        refused = bson.decode(body[20:])
        assert opcode == OP_REPLY and refused["ok"] == 0 and refused["code"] == 352


@pytest.mark.parametrize(
    "command",
    [
        {"buildInfo": 1}, {"getParameter": "*"}, {"getParameter": 1, "featureCompatibilityVersion": 1},
        {"getLog": "startupWarnings"}, {"getLog": "global"}, {"getLog": "*"}, {"hostInfo": 1},
        {"connectionStatus": 1, "showPrivileges": True}, {"serverStatus": 1}, {"listDatabases": 1},
        {"listDatabases": 1, "nameOnly": True}, {"ping": 1}, {"whatsmyuri": 1}, {"getCmdLineOpts": 1},
        {"isMaster": 1}, {"hello": 1}, {"listCommands": 1}, {"replSetGetStatus": 1}, {"endSessions": []},
        {"currentOp": 1}, {"top": 1},
    ],
    ids=lambda c: "-".join(map(str, c)),
)
def test_commands_clients_send_while_connecting(client, command):
    assert client.admin.command(command)["ok"] == 1.0


def test_version_is_one_drivers_take_for_8(client):
    info = client.server_info()
    assert info["version"].startswith("8.") and info["versionArray"][0] == 8
    assert info["maxBsonObjectSize"] == 16777216


def test_log_lines_over_the_wire_are_json(client):
    for line in client.admin.command("getLog", "global")["log"]:
        assert {"t", "s", "c", "id", "ctx", "msg"} <= json.loads(line).keys()


def test_unknown_command(client):
    with pytest.raises(OperationFailure) as error:
        client.test.command("noSuchThing")
    assert error.value.code == 59 and error.value.details["codeName"] == "CommandNotFound"


def test_atlas_version_fails_cleanly(client):
    with pytest.raises(OperationFailure) as error:
        client.admin.command("atlasVersion")
    assert error.value.code == 59


def test_unknown_field_of_a_command(client):
    with pytest.raises(OperationFailure) as error:
        client.test.command({"find": "c", "noSuchField": 1})
    assert error.value.code == 40415


@pytest.mark.parametrize("compressor", ["snappy", "zlib", "zstd"])
def test_compression(server, compressor):
    client = server.client(compressors=compressor, directConnection=True)
    hello = client.admin.command("hello", compression=[compressor])
    assert hello["compression"] == [compressor]
    collection = client[f"compressed_{compressor}"].c
    collection.insert_many([{"_id": i, "text": "nestor " * 200} for i in range(500)])
    assert sum(len(d["text"]) for d in collection.find(batch_size=100)) == 500 * 1400
    client.drop_database(collection.database.name)


def test_checksum_is_verified(server):
    with server.raw() as raw:
        assert raw.command({"ping": 1, "$db": "admin"}, flags=CHECKSUM_PRESENT)["ok"] == 1.0
        good = op_msg({"ping": 1, "$db": "admin"}, flags=CHECKSUM_PRESENT)
        raw.send(good[:-1] + bytes([good[-1] ^ 1]))
        try:
            assert raw.reply()["ok"] == 0
        except Exception:  # closing this connection is the other right answer
            pass
    with server.raw() as raw:
        assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0


def test_document_sequences(server, db):
    documents = [{"_id": i} for i in range(50)]
    with server.raw() as raw:
        reply = raw.command({"insert": "c", "$db": db.name}, sequence("documents", documents))
        assert reply["n"] == 50
    assert db.c.count_documents({}) == 50


def test_more_to_come_gets_no_reply(server, db):
    with server.raw() as raw:
        insert = {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 0}, "$db": db.name}
        raw.send(op_msg(insert, flags=MORE_TO_COME, request_id=8))
        raw.send(op_msg({"ping": 1, "$db": "admin"}, request_id=9))
        assert raw.reply()["ok"] == 1.0
        assert raw.response_to == 9, "the next message answers the ping, not the insert"
    assert db.c.find_one() == {"_id": 1}


def test_pipelined_messages_are_answered_in_order(server):
    with server.raw() as raw:
        raw.send(b"".join(op_msg({"ping": 1, "$db": "admin"}, request_id=i) for i in range(1, 201)))
        for i in range(1, 201):
            assert raw.reply()["ok"] == 1.0
            assert raw.response_to == i


def test_unix_socket(start, tmp_path):
    server = start(None, "--unixSocketPrefix", tmp_path)
    path = tmp_path / f"mongodb-{server.port}.sock"
    assert path.is_socket()
    assert path.stat().st_mode & 0o777 == 0o700, "others on the machine keep out"
    with Raw(str(path)) as raw:
        assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0
    quoted = str(path).replace("/", "%2F")
    client = pymongo.MongoClient(f"mongodb://{quoted}/?directConnection=true")
    client.test.c.insert_one({"_id": "through the file system"})
    assert client.test.c.count_documents({}) == 1
    client.close()
    assert server.stop() == 0
    assert not path.exists(), "a stopped server takes its socket away"


def test_a_stale_unix_socket_is_replaced(start, tmp_path):
    first = start(None, "--unixSocketPrefix", tmp_path)
    port = first.port
    first.kill()
    assert (tmp_path / f"mongodb-{port}.sock").exists()
    start(None, "--unixSocketPrefix", tmp_path, port=port)
    with Raw(str(tmp_path / f"mongodb-{port}.sock")) as raw:
        assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0


@pytest.mark.skipif(not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")
def test_ipv6(start):
    server = start(None, "--ipv6", "--bind_ip", "::1,127.0.0.1")
    for address in ("::1", "127.0.0.1"):
        with Raw((address, server.port)) as raw:
            assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0


def test_binds_to_localhost_unless_told_otherwise(server):
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells our own address
        own = probe.getsockname()[0]
    except OSError:
        pytest.skip("no other address than localhost")
    finally:
        probe.close()
    if own.startswith("127."):
        pytest.skip("no other address than localhost")
    with pytest.raises(OSError):
        socket.create_connection((own, server.port), 2)


def test_port_in_use_is_said(start):
    taken = start().port
    with pytest.raises(DidNotStart) as error:
        start(port=taken)
    assert error.value.status not in (0, None)
    assert str(taken) in error.value.output


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stops_cleanly(start, tmp_path, how):
    server = start(tmp_path / "data")
    server.client().test.c.insert_one({"_id": 1})
    assert server.stop(how) == 0


def test_shutdown_command(start, tmp_path):
    server = start(tmp_path / "data")
    client = server.client()
    client.test.c.insert_one({"_id": 1})
    with pytest.raises(pymongo.errors.AutoReconnect):
        client.admin.command("shutdown", force=True)
    assert server.process.wait(20) == 0


def test_ephemeral_leaves_no_trace(start, tmp_path):
    server = start(None, cwd=tmp_path, env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path)})
    server.client().test.c.insert_many([{"n": i} for i in range(1000)])
    assert server.stop() == 0
    assert list(tmp_path.iterdir()) == []


def test_log_file_is_json_lines(start, tmp_path):
    log = tmp_path / "nestor.log"
    server = start(tmp_path / "data", "--logpath", log)
    server.client().admin.command("ping")
    server.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines
    for line in lines:
        assert {"t", "s", "c", "id", "ctx", "msg"} <= line.keys()
        assert "$date" in line["t"] and line["s"] in "FEWID12345"


def logged(path, ident):
    """How many lines of a log file have that id."""
    return sum(json.loads(line)["id"] == ident for line in path.read_text().splitlines()) if path.exists() else 0


LISTENING = 23015


def test_sigusr1_moves_the_log_aside(start, tmp_path):
    log = tmp_path / "nestor.log"
    server = start(tmp_path / "data", "--logpath", log)
    client = server.client()
    assert logged(log, LISTENING) == 1
    server.process.send_signal(signal.SIGUSR1)
    eventually(lambda: len(list(tmp_path.glob("nestor.log.*"))) == 1 and log.exists(), what="a second log file")
    (aside,) = tmp_path.glob("nestor.log.*")
    assert re.fullmatch(r"nestor\.log\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d{3})?", aside.name)
    assert logged(aside, LISTENING) == 1 and logged(log, LISTENING) == 0
    assert client.admin.command("ping")["ok"] == 1.0
    assert server.stop() == 0
    assert log.stat().st_size > 0, "what came after went to the new file"


def test_log_rotate_reopen_takes_the_name_anew(start, tmp_path):
    """What the logrotate utility wants: it renames the file, then sends SIGUSR1."""
    log = tmp_path / "nestor.log"
    server = start(tmp_path / "data", "--logpath", log, "--logappend", "--logRotate", "reopen")
    assert server.client().admin.command("getCmdLineOpts")["parsed"]["systemLog"]["logRotate"] == "reopen"
    log.rename(tmp_path / "moved")
    server.process.send_signal(signal.SIGUSR1)
    eventually(log.exists, what="a log file of the old name")
    assert server.stop() == 0
    assert logged(tmp_path / "moved", LISTENING) == 1 and logged(log, LISTENING) == 0
    assert log.stat().st_size > 0
    with pytest.raises(DidNotStart) as error:
        Server(None, "--logpath", log, "--logRotate", "reopen").start()
    assert "--logappend" in error.value.output


def test_sigusr1_without_a_log_file_does_nothing(start):
    server = start()
    server.process.send_signal(signal.SIGUSR1)
    assert server.client().admin.command("ping")["ok"] == 1.0
    assert server.stop() == 0


def test_configuration_file(start, tmp_path):
    file = tmp_path / "nestor.conf"
    file.write_text("net: {bindIp: 127.0.0.1, maxIncomingConnections: 50}\nsetParameter: {ttlMonitorEnabled: false}\n")
    server = start(None, "--config", file, "--slowms", 7)
    parsed = server.client().admin.command("getCmdLineOpts")["parsed"]
    assert parsed["config"] == str(file) and parsed["net"]["maxIncomingConnections"] == 50
    assert parsed["operationProfiling"]["slowOpThresholdMs"] == 7
    assert server.client().admin.command("getParameter", 1, ttlMonitorEnabled=1)["ttlMonitorEnabled"] is False
    file.write_text("processManagement: {fork: true}\n")
    with pytest.raises(DidNotStart) as error:
        start(None, "--config", file)
    assert "processManagement.fork" in error.value.output


def test_programs_that_start_mongod_can_start_this(tmp_path):
    """As mongodb-memory-server does: flags without a command, and words to wait for on standard output."""
    version = subprocess.run([harness.BIN, "--version"], capture_output=True, text=True, timeout=30).stdout
    assert re.search(r"^db version v8\.\d+\.\d+$", version, re.M), version
    command = [harness.BIN, "--port", "0", "--dbpath", str(tmp_path), "--bind_ip", "127.0.0.1", "--noauth", "--nounixsocket"]
    command += ["--storageEngine", "wiredTiger", "--replSet", "testset"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said = ""
        for line in process.stdout:
            said += line
            if "database writes are now permitted" in line:
                break
        assert "Waiting for connections" in said and "Transition to primary complete" in said, said
        port = int(re.search(r'"Waiting for connections".*?"port":(\d+)', said)[1])
        with pymongo.MongoClient("127.0.0.1", port, directConnection=True) as client:
            with pytest.raises(OperationFailure) as initiated:
                client.admin.command("replSetInitiate", {"_id": "testset", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
            assert initiated.value.details["errmsg"] == "already initialized"
            config = client.admin.command("replSetGetConfig")["config"]
            assert config["_id"] == "testset"
            assert client.admin.command("replSetReconfig", config, force=True)["ok"] == 1
            assert client.t.c.insert_one({}).acknowledged
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_unknown_flag_is_refused():
    with pytest.raises(DidNotStart) as error:
        Server(None, "--noSuchFlag").start()
    assert error.value.status != 0 and "noSuchFlag" in error.value.output
