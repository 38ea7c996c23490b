"""Bad days of a replica set's members: each has an answer (docs/cluster.md), and no acknowledged majority write is lost."""

import contextlib
import dataclasses
import os
import shutil
import threading
import time

import cluster
import pymongo
import pytest
from pymongo.errors import PyMongoError, WTimeoutError
from pymongo.write_concern import WriteConcern
from s3 import Faults, Store
from test_bad_days import small_disk

MAJORITY = WriteConcern("majority")


@pytest.fixture
def store(tmp_path):
    cluster.needs_cluster(tmp_path)
    with Store() as store:
        yield store


def until(is_so, what):
    begun = time.monotonic()
    while not (found := is_so()):
        assert time.monotonic() - begun < cluster.PATIENCE_S, what
        time.sleep(0.05)
    return found


def insert(collection, *ids, patience_s=cluster.PATIENCE_S):
    """Inserts, however often it takes."""
    for one in ids:
        begun = time.monotonic()
        while True:
            try:
                collection.replace_one({"_id": one}, {"n": 1}, upsert=True)
                break
            except PyMongoError:
                assert time.monotonic() - begun < patience_s
                time.sleep(0.05)


# -- the store --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 507])
def test_the_store_takes_nothing_any_more(tmp_path, store, status):
    """Credentials that ran out (403), or a store that is full (507): majority writes wait, reads and `w: 1` go on, and all goes on when the
    store takes requests again. The primary cannot renew its lease, and neither can anybody take it."""
    door = store.door()
    with cluster.Set(tmp_path, log="s3://bucket/set", env=door.environment) as members:
        client = members.client(retryWrites=False)
        things = client.test.get_collection("things", write_concern=MAJORITY)
        insert(things, 1)
        door.faults = Faults(status=status)
        primary = members.primary()
        direct = members.direct(primary, retryWrites=False).test.things
        with pytest.raises(WTimeoutError):
            direct.with_options(write_concern=WriteConcern("majority", wtimeout=300)).insert_one({"_id": 2})
        assert direct.with_options(write_concern=WriteConcern(w=1)).insert_one({"_id": 3}).acknowledged
        assert direct.find_one({"_id": 3}) and members.direct((primary + 1) % 3).test.things.find_one({"_id": 1})
        door.faults = Faults()
        insert(things, 4)
        assert {found["_id"] for found in members.wait_equal("things")} >= {1, 4}


def test_credentials_of_one_member_run_out(tmp_path, store):
    """The primary's: another member takes over within some seconds, and the first one follows again when it has others."""
    doors = [store.door() for _ in range(3)]
    with cluster.Set(tmp_path, log="s3://bucket/set", env=[door.environment for door in doors]) as members:
        client = members.client()
        things = client.test.get_collection("things", write_concern=MAJORITY)
        insert(things, *range(10))
        primary = members.primary()
        # It reads, and its reads are answered, but nothing that it writes.
        doors[primary].faults = Faults(status=403)
        other = members.primary(but=primary)
        insert(things, *range(10, 20))
        assert other != primary
        doors[primary].faults = Faults()
        assert {found["_id"] for found in members.wait_equal("things")} == set(range(20))


def test_a_store_without_conditional_creates(tmp_path, store):
    """It would let two members write at the same place: nobody starts on it."""
    store.ignores_conditions = True
    env = store.door().environment
    server = cluster.harness.Server(tmp_path / "a", "--replSet", "rs0", "--log", "s3://bucket/set", "--host", "127.0.0.1:1", env=env)
    with pytest.raises(cluster.harness.DidNotStart) as refused:
        server.start()
    assert "ignores If-None-Match" in refused.value.output
    assert not any("/records/" in path or "/log/" in path for path in store.objects)


def test_conflicts_of_requests_are_no_writers(tmp_path, store):
    """A create on a condition is answered 409 when another request for the object is under way. It says nothing of the object: nobody is
    shut out by it, and no file of the log is passed over, without which no writer could open it again."""
    door = store.door()
    with cluster.Set(tmp_path, log="s3://bucket/set", env=door.environment) as members:
        things = members.client().test.get_collection("things", write_concern=MAJORITY)
        insert(things, 0)
        terms = []
        for round in range(4):
            door.faults = Faults(conflict=0.3)
            insert(things, *range(10 * round + 1, 10 * round + 11))
            primary = members.primary()
            terms.append(members.direct(primary).admin.command("replSetGetStatus")["term"])
            members.kill(primary)
            members.primary(but=primary)
            insert(things, 1000 + round)
            members.start(primary)
        door.faults = Faults()
        assert door.fates["conflict"], "there were some"
        assert terms == list(range(terms[0], terms[0] + 4)), "a new term for each that was killed, and no more"
        assert len(members.wait_equal("things")) == 45


# -- the path ---------------------------------------------------------------------------------


def test_two_sets_at_one_path(tmp_path, store):
    """The second is refused at its start, by the name of the first; the first does not notice."""
    env = store.door().environment
    with cluster.Set(tmp_path, size=1, log="s3://bucket/set", env=env) as members:
        insert(members.client().test.things, 1)
        second = cluster.harness.Server(
            tmp_path / "second", "--replSet", "rs1", "--log", "s3://bucket/set", "--host", "127.0.0.1:1", env=env
        )
        with pytest.raises(cluster.harness.DidNotStart) as refused:
            second.start()
        assert "the log is that of the set rs0, not of rs1" in refused.value.output
        assert members.hello(0)["hosts"] == members.hosts
        insert(members.client().test.things, 2)


def test_two_members_of_one_name(tmp_path, store):
    """Two processes with one `--host`: they take the lease from each other, each shuts the other out, and no acknowledged write is lost."""
    env = store.door().environment
    with cluster.Set(tmp_path, size=2, log="s3://bucket/set", env=env) as members:
        client = members.client(retryWrites=True)
        things = client.test.get_collection("things", write_concern=MAJORITY)
        insert(things, *range(5))
        primary = members.primary()
        twin = cluster.harness.Server(
            tmp_path / "twin", "--replSet", "rs0", "--log", "s3://bucket/set", "--host", members.hosts[primary], env=env
        )
        with contextlib.suppress(cluster.harness.DidNotStart):
            twin.start()
        acknowledged = list(range(5))
        begun = time.monotonic()
        while time.monotonic() - begun < 5:
            with contextlib.suppress(PyMongoError):
                things.insert_one({"_id": len(acknowledged) + 1000})
                acknowledged.append(len(acknowledged) + 1000)
        twin.kill()
        insert(things, "after")
        found = {found["_id"] for found in members.wait_equal("things")}
        assert found >= {*acknowledged, "after"}


def test_another_log_in_the_place_of_the_own(tmp_path, store):
    """A member whose directory has another history than the log (an emptied bucket, a wrong path) does not start, and changes neither."""
    env = store.door().environment
    with cluster.Set(tmp_path, size=1, log="s3://bucket/set", env=env) as members:
        things = members.client().test.things
        things.insert_many([{"_id": n} for n in range(100)])
        members.client().test.command("compact", "things")
        members.kill(0)
        members.log = "s3://bucket/other"
        with pytest.raises(cluster.harness.DidNotStart) as refused:
            members.start(0)
        assert "the log has others, or none" in refused.value.output
        members.log = "s3://bucket/set"
        members.start(0)
        assert members.client().test.things.count_documents({}) == 100


def test_a_newer_version_has_been_here(tmp_path, store):
    """A member of an older version does not start, or ends, when the log's record has a format that it does not know."""
    env = store.door().environment
    with cluster.Set(tmp_path, size=2, log="s3://bucket/set", env=env) as members:
        insert(members.client().test.things, 1)
        records = sorted(path for path in store.objects if "/records/config/" in path)
        body, *rest = store.objects[records[-1]]
        at = body.index(b"format\0") + len(b"format\0")
        # The record of a version from now on, as it raises the format when all members know it.
        newest = records[-1][:-1] + chr(ord(records[-1][-1]) + 1)
        store.objects[newest] = (body[:at] + bytes([body[at] + 1]) + body[at + 1 :], *rest)
        for member in members.members:
            member.process.wait(cluster.PATIENCE_S)
            assert "takes a newer version" in member.said()
        with pytest.raises(cluster.harness.DidNotStart) as refused:
            members.start(0)
        assert "takes a newer version" in refused.value.output
        del store.objects[newest]
        for at in range(2):
            members.start(at)
        assert members.client().test.things.count_documents({}) == 1


def test_members_are_replaced_by_another_version(tmp_path, store):
    """One after the other, the primary last, while clients write; and back again. NESTOR_BIN_BEFORE names the other version's binary; without it
    it is this one."""
    before = os.environ.get("NESTOR_BIN_BEFORE", cluster.harness.BIN)
    members = cluster.Set(tmp_path, log="s3://bucket/set", env=store.door().environment, flags=["--logCheckpoints", "50"])
    members.binary = before
    with members:
        things = members.client().get_database("test").get_collection("things", write_concern=MAJORITY)
        written = 0

        def write(count):
            nonlocal written
            insert(things, *range(written, written + count))
            written += count

        for binary in [cluster.harness.BIN, before]:
            members.binary = binary
            primary = members.primary()
            for at in sorted(range(3), key=lambda at: at == primary):
                write(40)
                assert members.members[at].stop() == 0
                members.start(at)
            write(40)
            assert [found["_id"] for found in members.wait_equal("things")] == list(range(written))


# -- the disk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["primary", "secondary"])
def test_the_disk_of_one_member_fills(tmp_path, store, role):
    """A secondary waits until there is room, and the others go on; a primary refuses writes, and goes on, or hands over, when there is room."""
    with small_disk(96) as disk, cluster.Set(tmp_path, log="s3://bucket/set", env=store.door().environment) as members:
        client = members.client()
        things = client.test.get_collection("things", write_concern=MAJORITY)
        insert(things, 1)
        primary = members.primary()
        full = primary if role == "primary" else (primary + 1) % 3
        # Its directory moves to the small disk.
        members.kill(full)
        server = members.members[full]
        shutil.move(server.dbpath, disk / "data")
        server.dbpath = disk / "data"
        server.start()
        if role == "primary":
            config = client.admin.command("replSetGetConfig")["config"]
            config["version"] += 1
            next(member for member in config["members"] if member["host"] == members.hosts[full])["priority"] = 5
            client.admin.command("replSetReconfig", config)
            until(lambda: members.hello(full).get("isWritablePrimary"), "it is primary again")
        ballast = disk / "ballast"
        ballast.write_bytes(b"\0" * (shutil.disk_usage(disk).free - (6 << 20)))
        acknowledged, refused = [], 0
        for n in range(150):
            try:
                with pymongo.timeout(3):
                    things.insert_one({"_id": f"large {n}", "pad": os.urandom(200_000)})
                acknowledged.append(f"large {n}")
            except PyMongoError:
                refused += 1
                if refused == 3:
                    break
        if role == "secondary":
            assert refused == 0, "the others go on"
        else:
            assert refused, "the disk is full"
        ballast.unlink()
        insert(things, "after")
        found = {found["_id"] for found in members.wait_equal("things")}
        assert found >= {1, *acknowledged, "after"}


# -- index builds -----------------------------------------------------------------------------


def test_the_primary_goes_while_an_index_is_built(tmp_path, store):
    """The build is dropped, and everybody has the same indexes; it is made again without a trace of the first."""
    with cluster.Set(tmp_path, log="s3://bucket/set", env=store.door().environment) as members:
        client = members.client()
        things = client.test.get_collection("things", write_concern=MAJORITY)
        for first in range(0, 30_000, 5_000):
            things.insert_many([{"_id": n, "x": n % 1000, "text": f"{n}" * 20} for n in range(first, first + 5_000)])
        primary = members.primary()
        direct = members.direct(primary)
        outcome = []

        def build():
            try:
                direct.test.things.create_index([("x", 1), ("text", 1)])
                outcome.append("built")
            except PyMongoError as error:
                outcome.append(str(error))

        builder = threading.Thread(target=build)
        builder.start()
        until(lambda: outcome or direct.admin.command("currentOp", {"command.createIndexes": "things"})["inprog"], "it is being built")
        members.kill(primary)
        builder.join()
        members.primary(but=primary)
        members.start(primary)
        insert(things, "after")
        members.wait_equal("things")
        name = "x_1_text_1"
        there = [name in members.direct(at).test.things.index_information() for at in range(3)]
        assert there in ([False] * 3, [True] * 3), (there, outcome)
        assert outcome == ["built"] or not there[0], "what was told to be built at majority is there"
        things.create_index([("x", 1), ("text", 1)])
        things.with_options(write_concern=WriteConcern(w=3)).insert_one({"_id": "last"})
        for at in range(3):
            of_member = members.direct(at).test
            assert of_member.command("validate", "things")["valid"]
            assert of_member.things.count_documents({"x": 7}, hint=name) == 30


# -- checkpoints ------------------------------------------------------------------------------


def test_checkpoints_while_the_store_has_bad_days(tmp_path, store):
    """Half of a checkpoint, of a member that was killed on the way or of requests that failed, is none, and is removed in the end."""
    door = store.door()
    flags = ["--logCheckpoints", "40"]
    with cluster.Set(tmp_path, log="s3://bucket/set", env=door.environment, flags=flags) as members:
        things = members.client().test.get_collection("things", write_concern=MAJORITY)
        door.faults = dataclasses.replace(Faults(), lost=0.05, unanswered=0.05, refused=0.05)
        primary = members.primary()
        uploader = min((at for at in range(3) if at != primary), key=lambda at: members.hosts[at])
        written = 0

        def parts():
            return [path for path in list(store.objects) if "/files/packs/" in path or "/files/checkpoints/" in path]

        for round in range(3):
            before = set(parts())
            begun = time.monotonic()
            while not set(parts()) - before:
                written += 1
                insert(things, written)
                assert time.monotonic() - begun < cluster.PATIENCE_S, "no upload begins"
            # On its way, or just there.
            members.kill(uploader)
            members.start(uploader)
        door.faults = Faults()
        records = lambda: {path for path in list(store.objects) if "/records/checkpoints/" in path}  # noqa: E731
        for _ in range(2):
            known = records()
            begun = time.monotonic()
            while not records() - known:
                written += 1
                insert(things, written)
                assert time.monotonic() - begun < cluster.PATIENCE_S, "no checkpoint is whole"

        def ids():
            """/bucket/set/files/packs/ID/N, and checkpoints likewise."""
            return {path.split("/")[5] for path in parts()}

        until(lambda: len(ids()) <= 3, f"halves are removed: {ids()}")
        new = (primary + 1) % 3
        members.kill(new)
        shutil.rmtree(members.members[new].dbpath)
        members.start(new)
        assert len(members.wait_equal("things")) == written


def test_a_new_member_while_the_store_loses_requests(tmp_path, store):
    """One of thousands of requests that gets no answer costs a new member neither the checkpoint nor what it has of it."""
    door = store.door()
    with cluster.Set(tmp_path, log="s3://bucket/set", env=door.environment, flags=["--logCheckpoints", "40"]) as members:
        things = members.client().test.get_collection("things", write_concern=MAJORITY)
        new = (members.primary() + 1) % 3
        written = 0
        while not any("/records/checkpoints/" in path for path in list(store.objects)):
            written += 1
            insert(things, written)
        members.kill(new)
        shutil.rmtree(members.members[new].dbpath)
        # Four are what the store's client sends.
        door.faults = Faults(lost_first=5, lost_of="/files/")
        members.start(new)
        door.faults = Faults()
        assert any("/files/packs/" in path for path in door.lost) and any("/files/checkpoints/" in path for path in door.lost)
        assert "of no use" not in members.members[new].said()
        assert len(members.wait_equal("things")) == written


def test_checkpoints_over_a_slow_link(tmp_path, store):
    """A piece of a checkpoint may take longer than a request for which a commit or the lease waits."""
    door = store.door()
    with cluster.Set(tmp_path, size=2, log="s3://bucket/set", env=door.environment, flags=["--logCheckpoints", "40"]) as members:
        things = members.client().test.get_collection("things", write_concern=MAJORITY)
        for n in range(5):
            things.insert_one({"_id": f"large {n}", "pad": os.urandom(1 << 20)})
        door.faults = Faults(bytes_per_s=1.1e6)
        insert(things, *range(40))
        until(lambda: any("/records/checkpoints/" in path for path in list(store.objects)), "a checkpoint is whole")
        assert max(len(entry[0]) for path, entry in list(store.objects.items()) if "/files/packs/" in path) > 4.5 * 1.1e6
        new = (members.primary() + 1) % 2
        members.kill(new)
        shutil.rmtree(members.members[new].dbpath)
        members.start(new)
        assert "of no use" not in members.members[new].said()
        assert len(members.wait_equal("things")) == 45
