"""Bad days: each has a defined answer, and none loses what was acknowledged."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import bson
import harness
import pymongo
import pytest
from harness import DidNotStart, Server, check, eventually, op_msg, rss_bytes, run
from pymongo.errors import AutoReconnect, OperationFailure

JOURNALED = pymongo.WriteConcern(w=1, j=True)
# Bytes of a page of the base, and the kind of its leaves.
PAGE = 4096
LEAF = 6
PING = {"ping": 1, "$db": "admin"}
# What a server logs that was told to stop and waited in vain.
STILL_RUNNING = "Stopping while operations still run"


def refuses_to_start(dbpath, *words, flags=(), **options):
    """The server ends with an error that says all of `words`; returns what it said."""
    with pytest.raises(DidNotStart) as error:
        Server(dbpath, *flags, **options).start()
    assert error.value.status not in (0, "timed out"), error.value.output
    assert error.value.status > 0, f"ended by signal {-error.value.status}"
    for word in words:
        assert str(word) in error.value.output, error.value.output
    assert "panicked" not in error.value.output
    return error.value.output


def journal_files(dbpath):
    """Journal segments, oldest first."""
    return sorted(path for path in (Path(dbpath) / "journal").iterdir() if path.is_file())


def base_file(dbpath):
    """The file of the base B-tree."""
    return Path(dbpath) / "base.nestor"


def tear_mark(dbpath):
    """What a loss of power may leave of the file that says how far the journal was durable."""
    (Path(dbpath) / "nestor.durable").write_bytes(b"")


# -- the directory ----------------------------------------------------------------------------


def test_second_server_on_the_same_directory(start, tmp_path):
    server = start(tmp_path / "data")
    server.client().test.c.insert_one({"_id": 1})
    refuses_to_start(tmp_path / "data", tmp_path / "data")
    assert run("check", tmp_path / "data").returncode != 0, "nor is it checked under a running server"
    assert server.client().test.c.count_documents({}) == 1


def test_lock_of_a_dead_server_does_not_hold(start, tmp_path):
    server = start(tmp_path / "data")
    server.kill()
    server.start()
    assert server.client().admin.command("ping")["ok"] == 1.0


def test_missing_directory_is_made(start, tmp_path):
    server = start(tmp_path / "a" / "b")
    server.client().test.c.insert_one({})
    assert server.stop() == 0


def test_a_file_in_place_of_the_directory(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    refuses_to_start(tmp_path / "file", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "not a directory"


@contextlib.contextmanager
def public_directory():
    """A directory another user can reach, with a copy of the binary when this test runs as root."""
    folder = Path(tempfile.mkdtemp(prefix="nestor-e2e-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_read_only_directory():
    with public_directory() as folder:
        options = {}
        if os.getuid() == 0:  # root writes everywhere: be nobody
            binary = folder / "nestor"
            shutil.copy(harness.BIN, binary)
            binary.chmod(0o755)
            options = {"user": 65534, "binary": str(binary)}
        data = folder / "data"
        with Server(data) as server:
            server.client().test.c.insert_one({"_id": 1})
            assert server.stop() == 0
        subprocess.run(["chmod", "-R", "a+rX,a-w", data], check=True)
        refuses_to_start(data, data, **options)
        empty = folder / "empty"
        empty.mkdir()
        empty.chmod(0o555)
        refuses_to_start(empty, empty, **options)
        subprocess.run(["chmod", "-R", "u+w", data], check=True)
        with Server(data) as server:
            assert server.client().test.c.find_one() == {"_id": 1}


# -- the disk ---------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(megabytes):
    folder = tempfile.mkdtemp(prefix="nestor-disk-")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True)
    try:
        if done.returncode:
            pytest.skip("mounting a small disk is not allowed here")
        yield Path(folder)
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)
        os.rmdir(folder)


def fill_until_refused(collection, limit=2000):
    """Inserts until the server refuses; returns the ids that were acknowledged."""
    acknowledged = []
    for i in range(limit):
        try:
            collection.insert_one({"_id": i, "pad": os.urandom(100_000)})
        except (OperationFailure, AutoReconnect) as refusal:
            return acknowledged, refusal
        acknowledged.append(i)
    raise AssertionError("the disk never filled up")


def test_full_disk():
    with small_disk(64) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * 16 * 1024 * 1024)
        with Server(disk / "data") as server:
            client = server.client(retryWrites=False)
            collection = client.test.get_collection("c", write_concern=JOURNALED)
            acknowledged, refusal = fill_until_refused(collection)
            assert acknowledged, "some writes went through before"
            if isinstance(refusal, OperationFailure):
                assert refusal.code == 14031, refusal.details
            if server.is_running:  # it may go on reading, or have stopped rather than guess
                assert server.client().test.c.count_documents({"_id": {"$in": acknowledged}}) == len(acknowledged)
                server.stop()
            ballast.unlink()
            check(server.dbpath)
            server.start()
            collection = server.client().test.c
            found = {d["_id"] for d in collection.find({}, {"_id": 1})}
            assert found >= set(acknowledged)
            assert found <= set(acknowledged) | {len(acknowledged)}, "at most the refused one is there besides"
            collection.insert_one({"_id": "there is room again"})


def test_disk_that_fills_up_and_is_freed_again():
    """Once there is room, a server that went on takes writes again."""
    with small_disk(64) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * 16 * 1024 * 1024)
        with Server(disk / "data") as server:
            collection = server.client(retryWrites=False).test.get_collection("c", write_concern=JOURNALED)
            acknowledged, _ = fill_until_refused(collection)
            ballast.unlink()
            if not server.is_running:
                server.start()
                collection = server.client().test.get_collection("c", write_concern=JOURNALED)

            def writes_again():
                with contextlib.suppress(OperationFailure, AutoReconnect):
                    collection.replace_one({"_id": "again"}, {"n": 1}, upsert=True)
                    return True

            eventually(writes_again, what="writing once there is room")
            assert collection.count_documents({"_id": {"$in": acknowledged}}) == len(acknowledged)
            assert server.stop() == 0
            check(server.dbpath)


def test_file_size_limit(tmp_path):
    """RLIMIT_FSIZE: every write beyond it fails, as on a full disk, without any mount."""
    with Server(tmp_path / "data", limits={resource.RLIMIT_FSIZE: 24 * 1024 * 1024}) as server:
        collection = server.client(retryWrites=False).test.get_collection("c", write_concern=JOURNALED)
        acknowledged, _ = fill_until_refused(collection)
        if server.is_running:
            assert server.client().test.c.count_documents({"_id": {"$in": acknowledged}}) == len(acknowledged)
        server.kill()
    with Server(tmp_path / "data") as server:
        assert server.client().test.c.count_documents({"_id": {"$in": acknowledged}}) == len(acknowledged)


# -- damaged files ----------------------------------------------------------------------------


def extents(dbpath, kind):
    """Offsets of the extents of a kind in the base, those of former states included."""
    content = base_file(dbpath).read_bytes()
    starts = (at for at in range(2 * PAGE, len(content), PAGE) if content[at + 8] == kind)
    return [at for at in starts if int.from_bytes(content[at + 4 : at + 8], "little") == at // PAGE]


def filled(dbpath, documents=300, checkpoint=False):
    """A directory whose server was killed after that many journaled inserts."""
    with Server(dbpath) as server:
        collection = server.client().test.get_collection("c", write_concern=JOURNALED)
        for first in range(0, documents, 10):
            collection.insert_many([{"_id": i, "pad": f"{i:04}" * 100} for i in range(first, first + 10)])
        if checkpoint:
            server.client().test.command("compact", "c")
            assert extents(dbpath, LEAF), "they are in the base"
        server.kill()


@pytest.mark.parametrize("cut", [1, 3, 100, 4000])
def test_torn_journal_tail(start, tmp_path, cut):
    """What follows the last whole entry is cut off; everything before it is there."""
    filled(tmp_path / "data")
    last = journal_files(tmp_path / "data")[-1]
    used = len(last.read_bytes().rstrip(b"\0"))
    os.truncate(last, used - cut)
    tear_mark(tmp_path / "data")
    server = start(tmp_path / "data")
    found = sorted(d["_id"] for d in server.client().test.c.find({}, {"_id": 1}))
    assert found == list(range(len(found))), "a prefix in commit order"
    assert 270 <= len(found) < 300
    server.client().test.c.insert_one({"_id": "goes on"})
    assert server.stop() == 0
    check(server.dbpath)


@pytest.mark.parametrize("cut", [1, 4000, 20_000])
def test_durable_commits_that_are_missing(tmp_path, cut):
    """They were acknowledged with j: true and are gone from the journal's end: the server does not start without them
    unless it is told to, by the number of the last commit that is left."""
    dbpath = tmp_path / "data"
    filled(dbpath)
    last = journal_files(dbpath)[-1]
    os.truncate(last, len(last.read_bytes().rstrip(b"\0")) - cut)
    length = last.stat().st_size
    said = refuses_to_start(dbpath, last.name, "at byte", "are lost", "--giveUpCommitsAfter")
    assert last.stat().st_size == length, "nothing is changed"
    done = run("check", dbpath)
    assert done.returncode == 1 and "FAULT: " in done.stdout and "are lost" in done.stdout, done.stdout
    number = int(re.search(r"--giveUpCommitsAfter (\d+)", said).group(1))
    assert f"commits after number {number} are lost" in done.stdout, done.stdout
    refuses_to_start(dbpath, "are lost", flags=("--giveUpCommitsAfter", str(number - 1)))
    with Server(dbpath, "--giveUpCommitsAfter", str(number)) as server:
        found = sorted(d["_id"] for d in server.client().test.c.find({}, {"_id": 1}))
        assert found == list(range(len(found))) and len(found) < 300
        assert server.stop() == 0
    check(dbpath)
    with Server(dbpath) as server:
        assert server.client().test.c.count_documents({}) == len(found)


def test_garbage_after_the_last_entry(start, tmp_path):
    filled(tmp_path / "data")
    last = journal_files(tmp_path / "data")[-1]
    used = len(last.read_bytes().rstrip(b"\0"))
    with open(last, "r+b") as file:
        # The last entry may end in zeros itself: stay clear of it.
        file.seek(used + 64)
        file.write(os.urandom(777))
    server = start(tmp_path / "data")
    assert server.client().test.c.count_documents({}) == 300
    server.stop()
    check(server.dbpath)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))


@pytest.mark.parametrize("where", [0.25, 0.5, 0.75])
def test_flipped_byte_in_the_journal(tmp_path, where):
    """Whole entries follow the damaged one: that is no torn tail. Refused with file and offset."""
    filled(tmp_path / "data")
    segment = max(journal_files(tmp_path / "data"), key=lambda path: len(path.read_bytes().rstrip(b"\0")))
    flip(segment, int(len(segment.read_bytes().rstrip(b"\0")) * where))
    said = refuses_to_start(tmp_path / "data", segment.name, "at byte")
    done = run("check", tmp_path / "data")
    assert done.returncode != 0 and segment.name in done.stdout and "at byte" in done.stdout, done.stdout
    assert said


def test_flipped_byte_in_the_base(tmp_path):
    """Damage in the base is found by whoever reads it, and never returned as data."""
    dbpath = tmp_path / "data"
    filled(dbpath, documents=3000, checkpoint=True)
    base = base_file(dbpath)
    for at in extents(dbpath, LEAF):
        flip(base, at + 100)
    done = run("check", dbpath)
    assert done.returncode != 0 and base.name in done.stdout and "at byte" in done.stdout, done.stdout
    try:
        with Server(dbpath) as server:
            with pytest.raises((OperationFailure, AutoReconnect)) as error:
                list(server.client(retryReads=False).test.c.find())
            assert base.name in server.said() or base.name in str(error.value)
    except DidNotStart as refused:
        assert base.name in refused.output


def test_directory_of_a_newer_format(tmp_path):
    dbpath = tmp_path / "data"
    filled(dbpath, documents=10)
    with Server(dbpath) as server:
        server.stop()
    newer_format(dbpath)
    before = {p: p.read_bytes() for p in dbpath.rglob("*") if p.is_file()}
    said = refuses_to_start(dbpath, "format version")
    assert str(dbpath) in said
    assert run("check", dbpath).returncode != 0
    assert {p: p.read_bytes() for p in dbpath.rglob("*") if p.is_file()} == before, "nothing in it was touched"


def newer_format(dbpath):
    """Raises the format version the directory states, beyond the next one, which encrypted directories have."""
    path = dbpath / "nestor.format"
    name, version = path.read_text().split()
    path.write_text(f"{name} {int(version) + 2}\n")


# -- many and slow clients --------------------------------------------------------------------


def test_too_many_open_files(start, tmp_path):
    """Connections beyond the limit wait or are closed; those that are open go on, and so does the server."""
    server = start(tmp_path / "data", limits={resource.RLIMIT_NOFILE: 80})
    with server.raw() as steady:
        assert steady.command(PING)["ok"] == 1.0
        crowd = []
        for _ in range(200):
            with contextlib.suppress(OSError):
                crowd.append(socket.create_connection(server.address, 5))
        insert = {"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"j": True}, "$db": "test"}
        assert steady.command(insert)["n"] == 1
        for connection in crowd:
            connection.close()
    assert server.is_running

    def answers():
        with contextlib.suppress(Exception), server.raw(2) as raw:
            return raw.command(PING)["ok"] == 1.0

    eventually(answers, what="answering after the crowd has left")
    assert server.client().test.c.count_documents({}) == 1
    assert server.stop() == 0


def test_client_that_stops_reading(start):
    """A reply nobody reads holds up neither others nor the memory of the server."""
    server = start()
    collection = server.client().test.c
    collection.insert_many([{"_id": i, "pad": "x" * 1_000_000} for i in range(64)])
    before = rss_bytes(server.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            raw = stack.enter_context(server.raw())
            find = op_msg({"find": "c", "batchSize": 1000, "$db": "test"})
            raw.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(20):  # and asks again and again without reading
                    raw.socket.send(find)
        begun = time.monotonic()
        for _ in range(50):
            assert collection.find_one({"_id": 3}, {"pad": 0}) == {"_id": 3}
        assert time.monotonic() - begun < 60
        assert rss_bytes(server.pid) - before < 8 * 80 * 1024 * 1024
        assert server.stop() == 0
        assert STILL_RUNNING not in server.said(), "nor does it hold up stopping"


def slow(than):
    """A filter that takes its time for each document, and takes those whose sum is greater."""
    return {"$expr": {"$gt": [{"$sum": {"$map": {"input": {"$range": [0, 1000]}, "in": {"$add": ["$$this", "$n"]}}}}, than]}}


NONE, ALL = slow(float("inf")), slow(0)
LONG_READS = {
    "find": {"find": "c", "filter": NONE},
    "getMore": None,
    "aggregate": {"aggregate": "c", "pipeline": [{"$match": ALL}, {"$count": "n"}], "cursor": {}},
    "count": {"count": "c", "query": ALL},
    "distinct": {"distinct": "c", "key": "n", "query": ALL},
    "explain": {"explain": {"count": "c", "query": ALL}, "verbosity": "executionStats"},
    # Large commands are run in another way.
    "find of 100 kB": {"find": "c", "filter": {"$and": [NONE, {"pad": {"$ne": "x" * 100_000}}]}},
}


@pytest.fixture(scope="module")
def busy(server):
    """A collection that takes minutes to read with a slow filter."""
    client = server.client()
    client.disconnects.c.insert_many([{"_id": i, "n": i} for i in range(40_000)])
    yield client.disconnects
    client.drop_database("disconnects")


@contextlib.contextmanager
def begun(server, admin, command):
    """Sends a command and waits until it runs; yields whether it does so still. In the end the client goes away."""
    with server.raw() as raw:
        ours = raw.command({"hello": 1, "$db": "admin"})["connectionId"]

        def runs():
            return any(op.get("connectionId") == ours for op in admin.command("currentOp", active=True)["inprog"])

        raw.send(op_msg({**command, "$db": "disconnects"}))
        eventually(runs, what="the command's running")
        yield runs


@pytest.mark.parametrize("name", LONG_READS)
def test_a_read_ends_when_its_client_goes(server, busy, name):
    command = LONG_READS[name]
    with server.raw() as raw:
        if command is None:
            opened = raw.command({"find": "c", "filter": NONE, "batchSize": 0, "$db": "disconnects"})
            command = {"getMore": bson.Int64(opened["cursor"]["id"]), "collection": "c"}
        with begun(server, busy.client.admin, command) as runs:
            pass
        eventually(lambda: not runs(), timeout=5, what="the command's end")
        if "getMore" in command:
            gone = raw.command({**command, "$db": "disconnects"})
            assert gone["code"] == 43, "and its cursor's"


def test_what_has_effects_goes_on_without_its_client(server, busy):
    some = [{"$match": {"_id": {"$lt": 2000}}}, {"$match": ALL}]
    for command in (
        {"update": "c", "updates": [{"q": {"_id": {"$lt": 2000}, **ALL}, "u": {"$set": {"seen": 1}}, "multi": True}]},
        {"aggregate": "c", "pipeline": [*some, {"$out": "copy"}], "cursor": {}},
        {"aggregate": "c", "pipeline": [*some, {"$merge": "merged"}], "cursor": {}},
    ):
        with begun(server, busy.client.admin, command) as runs:
            pass
        eventually(lambda runs=runs: not runs(), timeout=60, what="the command's end")
    assert busy.c.count_documents({"seen": 1}) == 2000
    assert busy.copy.count_documents({}) == 2000 and busy.merged.count_documents({}) == 2000


def test_half_a_message_and_then_silence(start):
    server = start()
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(server.raw()).send(op_msg(PING)[:20])
        assert server.client().admin.command("ping")["ok"] == 1.0
        assert server.stop() == 0
        assert STILL_RUNNING not in server.said()


def test_5000_idle_connections(start, tmp_path):
    wanted = 5000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted + 500:
        pytest.skip(f"this machine allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 500), hard))
    server = start(tmp_path / "data")
    before = rss_bytes(server.pid)
    idle = []
    try:
        for _ in range(wanted):
            raw = server.raw(60)
            idle.append(raw)
            raw.send(op_msg({"hello": 1, "$db": "admin"}))
        for raw in idle:
            assert raw.reply()["ok"] == 1.0
        grown = rss_bytes(server.pid) - before
        print(f"\n5,000 idle connections: {grown / wanted / 1024:.1f} KiB each")
        assert grown < wanted * 40 * 1024
        collection = server.client().test.c
        collection.insert_many([{"_id": i} for i in range(1000)])
        assert collection.count_documents({}) == 1000
        for raw in idle[::500]:
            assert raw.command(PING)["ok"] == 1.0, "each of them still works"
        assert server.client().admin.command("serverStatus")["connections"]["current"] >= wanted
    finally:
        for raw in idle:
            raw.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    status = server.client().admin
    eventually(lambda: status.command("serverStatus")["connections"]["current"] < 50, what="forgetting them")
    assert server.stop() == 0


# -- restarts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["clean", "unclean"])
def test_restart(start, tmp_path, how):
    """On data of the sample's size. The time is printed; `nestor bench` measures it on a release build."""
    server = start(tmp_path / "data")
    collection = server.client().test.get_collection("c", write_concern=JOURNALED)
    for first in range(0, 20_000, 1000):
        collection.insert_many([{"_id": i, "name": f"city {i}", "location": {"type": "Point", "coordinates": [i / 200, 1.5]}} for i in range(first, first + 1000)])
    if how == "clean":
        assert server.stop(signal.SIGTERM) == 0
    else:
        server.kill()
    server.start()
    print(f"\n{how} restart: {server.started_in_s:.2f} s")
    assert server.client().test.c.count_documents({}) == 20_000
    assert server.started_in_s < 15


def test_check_prints_counts(start, tmp_path):
    server = start(tmp_path / "data")
    db = server.client().shop
    db.orders.insert_many([{"_id": i, "tags": ["a", "b"]} for i in range(123)])
    db.orders.create_index("tags")
    assert server.stop() == 0
    said = check(tmp_path / "data")
    assert "shop.orders" in said and "123" in said and "246" in said, said
    assert run("check", tmp_path / "nothing-here").returncode != 0
