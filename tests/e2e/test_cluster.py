"""Members of a replica set whose log is in an object store (docs/cluster.md), here in a directory."""

import os
import shutil
import signal
import subprocess
import threading
import time

import cluster
import pymongo
import pytest
from pymongo.errors import ExecutionTimeout, NotPrimaryError, OperationFailure, PyMongoError, WTimeoutError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern
from s3 import Store


@pytest.fixture
def members(tmp_path):
    cluster.needs_cluster(tmp_path)
    with cluster.Set(tmp_path) as members:
        yield members


def test_drivers_see_an_ordinary_set(members):
    client = members.client()
    things = client.test.things
    things.with_options(write_concern=WriteConcern(w=3)).insert_one({"_id": 1})
    primary = members.primary()
    hello = members.hello(primary)
    assert sorted(hello["hosts"]) == sorted(members.hosts)
    assert hello["me"] == hello["primary"] == members.hosts[primary]
    assert hello["setVersion"] == 3
    assert hello["lastWrite"]["majorityOpTime"]["ts"] == hello["lastWrite"]["opTime"]["ts"]
    other = next(at for at in range(3) if at != primary)
    said = members.hello(other)
    assert said["secondary"] and not said["isWritablePrimary"]
    assert said["primary"] == members.hosts[primary] and said["electionId"] == hello["electionId"]
    near = client.test.get_collection("things", read_preference=ReadPreference.SECONDARY)
    assert near.find_one()["_id"] == 1
    status = client.admin.command("replSetGetStatus")
    assert sorted(m["stateStr"] for m in status["members"]) == ["PRIMARY", "SECONDARY", "SECONDARY"]
    config = client.admin.command("replSetGetConfig")["config"]
    assert sorted(m["host"] for m in config["members"]) == sorted(members.hosts)
    assert client.admin.command("replSetInitiate", {})["ok"] == 1


def test_a_secondary_writes_nothing_and_reads_for_who_wants_it(members):
    client = members.client()
    client.test.things.with_options(write_concern=WriteConcern(w=3)).insert_one({"_id": 1})
    primary = members.primary()
    other = next(at for at in range(3) if at != primary)
    direct = members.direct(other, retryWrites=False)

    def code_of(what):
        with pytest.raises(NotPrimaryError) as refusal:
            what()
        return refusal.value.details["code"]

    assert code_of(lambda: direct.test.things.insert_one({"_id": 2})) == 10107
    # A driver that is told to use one member asks as `primaryPreferred`.
    assert direct.test.things.find_one()["_id"] == 1
    with direct.start_session() as session:
        session.start_transaction()
        assert code_of(lambda: direct.test.things.find_one(session=session)) == 10107
    strict = direct.test.get_collection("things", read_concern=ReadConcern("linearizable"))
    assert code_of(strict.find_one) == 10107
    with pytest.raises(OperationFailure) as refused:
        direct.admin.command("replSetSyncFrom", members.hosts[primary])
    assert refused.value.code == 115


def test_pipelines_that_write_on_a_secondary(members):
    """The primary runs them, and the secondary answers when it has what was written."""
    client = members.client()
    things = client.test.things
    things.with_options(write_concern=WriteConcern(w=3)).insert_many([{"_id": n, "x": n % 3} for n in range(30)])
    other = (members.primary() + 1) % 3
    direct = members.direct(other).test
    near = direct.get_collection("things", read_preference=ReadPreference.SECONDARY_PREFERRED)
    assert list(near.aggregate([{"$match": {"x": 1}}, {"$out": "copy"}])) == []
    assert direct.copy.count_documents({}) == 10, "it has them already"
    merge = [{"$group": {"_id": "$x", "n": {"$sum": 1}}}, {"$merge": {"into": "sums"}}]
    assert list(near.aggregate(merge, let={"a": 1}, comment="c")) == []
    assert sorted(found["n"] for found in direct.sums.find()) == [10, 10, 10]
    with pytest.raises(OperationFailure) as refused:
        near.aggregate([{"$merge": {"into": "sums", "whenNotMatched": "fail", "on": "y"}}])
    assert refused.value.code == 51183, "errors are the primary's"
    causal = client.get_database("test", read_preference=ReadPreference.SECONDARY)
    with client.start_session(causal_consistency=True) as session:
        causal.things.aggregate([{"$match": {"x": 2}}, {"$out": "copy"}], session=session)
        assert causal.copy.count_documents({"x": 2}, session=session) == 10
        assert client.test.copy.count_documents({"x": 2}, session=session) == 10


def test_pipelines_that_write_on_a_secondary_where_users_log_in(tmp_path):
    """They run as the user who asks, with that user's rights."""
    cluster.needs_cluster(tmp_path)
    key = tmp_path / "key"
    key.write_text("c2VjcmV0")
    key.chmod(0o600)
    system = {"username": "__system", "password": "c2VjcmV0", "authSource": "local", "authMechanism": "SCRAM-SHA-256"}
    with cluster.Set(tmp_path, size=2, flags=["--keyFile", str(key)]) as members:
        client = members.client(**system)
        client.test.things.with_options(write_concern=WriteConcern(w=2)).insert_many([{"_id": n} for n in range(10)])
        client.test.command("createUser", "writer", pwd="p", roles=["readWrite"], writeConcern={"w": 2})
        client.test.command("createUser", "reader", pwd="p", roles=["read"], writeConcern={"w": 2})
        other = 1 - members.primary()

        def run(user):
            direct = members.direct(other, username=user, password="p", authSource="test").test
            near = direct.get_collection("things", read_preference=ReadPreference.SECONDARY_PREFERRED)
            near.aggregate([{"$out": "copy"}])
            return direct.copy.count_documents({})

        assert run("writer") == 10
        with pytest.raises(OperationFailure) as refused:
            run("reader")
        assert refused.value.code == 13
        with pytest.raises(OperationFailure) as refused:
            members.direct(other, username="writer", password="p", authSource="test").admin.command("assumeUser", "reader", db="test")
        assert refused.value.code == 13


def test_write_concerns_and_read_concerns(members):
    client = members.client()
    things = client.test.things
    for concern in [WriteConcern(w=1), WriteConcern(w=1, j=True), WriteConcern(w="majority"), WriteConcern(w=2)]:
        things.with_options(write_concern=concern).insert_one({})
    with pytest.raises(OperationFailure) as refused:
        things.with_options(write_concern=WriteConcern(w=4)).insert_one({})
    assert refused.value.code == 100
    for level in ["local", "majority", "linearizable"]:
        assert things.with_options(read_concern=ReadConcern(level)).count_documents({}) == 5
    # What one member said, another waits for.
    with client.start_session(causal_consistency=True) as session:
        for number in range(20):
            things.with_options(write_concern=WriteConcern(w="majority")).insert_one({"n": number}, session=session)
            near = client.test.get_collection(
                "things", read_preference=ReadPreference.SECONDARY, read_concern=ReadConcern("majority")
            )
            assert near.find_one({"n": number}, session=session)


def test_no_acknowledged_majority_write_is_lost_by_kill_9(members):
    client = members.client()
    counters = client.test.counters
    counters.insert_one({"_id": 0, "n": 0})
    stop = threading.Event()
    acknowledged, incremented, unknown, gaps = [], [0], [0], []
    lock = threading.Lock()

    def insert(worker):
        number, last = 0, time.monotonic()
        while not stop.is_set():
            number += 1
            key = f"{worker}-{number}"
            try:
                client.test.things.insert_one({"_id": key})
                with lock:
                    acknowledged.append(key)
                    gaps.append(time.monotonic() - last)
            except PyMongoError:
                pass
            last = time.monotonic()

    def increment():
        while not stop.is_set():
            try:
                counters.update_one({"_id": 0}, {"$inc": {"n": 1}})
                incremented[0] += 1
            except PyMongoError:
                unknown[0] += 1

    threads = [threading.Thread(target=insert, args=(worker,)) for worker in range(4)]
    threads.append(threading.Thread(target=increment))
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            before = len(acknowledged)
            while len(acknowledged) < before + 50:
                time.sleep(0.05)
            primary = members.primary()
            members.kill(primary)
            members.primary(but=primary)
            members.start(primary)
    finally:
        before = len(acknowledged)
        begun = time.monotonic()
        while len(acknowledged) < before + 50 and time.monotonic() - begun < cluster.PATIENCE_S:
            time.sleep(0.05)
        stop.set()
        for thread in threads:
            thread.join()
    documents = {document["_id"] for document in members.wait_equal("things")}
    lost = [key for key in acknowledged if key not in documents]
    assert not lost, f"{len(lost)} of {len(acknowledged)} are lost: {lost[:10]}"
    counted = members.wait_equal("counters")[0]["n"]
    assert incremented[0] <= counted <= incremented[0] + unknown[0]
    print(f"{len(acknowledged)} writes, the longest wait for one {max(gaps):.2f} s, {unknown[0]} increments unknown")


def test_a_primary_that_was_stopped_comes_back_as_a_secondary(members):
    client = members.client()
    majority = client.test.get_collection("things", write_concern=WriteConcern(w="majority"))
    majority.insert_one({"_id": 1})
    old = members.primary()
    members.members[old].process.send_signal(signal.SIGSTOP)
    new = members.primary(but=old)
    majority.insert_one({"_id": 2})
    members.members[old].process.send_signal(signal.SIGCONT)
    begun = time.monotonic()
    while not members.hello(old).get("secondary") and time.monotonic() - begun < cluster.PATIENCE_S:
        time.sleep(0.05)
    assert members.hello(old)["primary"] == members.hosts[new]
    assert [document["_id"] for document in members.wait_equal("things")] == [1, 2]


def test_stepping_down(members):
    client = members.client()
    things = client.test.things
    things.insert_one({"_id": 1})
    old = members.primary()
    begun = time.monotonic()
    client.admin.command("replSetStepDown", 30)
    things.insert_one({"_id": 2})
    print(f"stepping down took {time.monotonic() - begun:.2f} s")
    assert members.primary() != old
    assert len(members.wait_equal("things")) == 2
    with pytest.raises(NotPrimaryError) as refused:
        members.direct(old).admin.command("replSetStepDown", 30)
    assert refused.value.details["code"] == 10107


def test_transactions_and_change_streams_over_a_failover(members):
    client = members.client()
    client.test.create_collection("accounts")
    client.test.accounts.insert_many([{"_id": n, "balance": 100} for n in range(2)])
    stop = threading.Event()
    seen = []

    def follow():
        with client.test.moves.watch() as stream:
            while not stop.is_set():
                change = stream.try_next()
                if change is not None:
                    seen.append(change["documentKey"]["_id"])

    def move(session, number):
        client.test.accounts.update_one({"_id": 0}, {"$inc": {"balance": -1}}, session=session)
        client.test.accounts.update_one({"_id": 1}, {"$inc": {"balance": 1}}, session=session)
        client.test.moves.insert_one({"_id": number}, session=session)

    client.test.create_collection("moves")
    follower = threading.Thread(target=follow)
    follower.start()
    time.sleep(1)
    try:
        for number in range(40):
            if number == 20:
                members.kill(members.primary())
            with client.start_session() as session:
                session.with_transaction(lambda session: move(session, number))  # noqa: B023
        begun = time.monotonic()
        while len(seen) < 40 and time.monotonic() - begun < cluster.PATIENCE_S:
            time.sleep(0.05)
    finally:
        stop.set()
        follower.join()
    assert seen == list(range(40))
    balances = {document["_id"]: document["balance"] for document in members.wait_equal("accounts")}
    assert balances == {0: 60, 1: 140}


def test_indexes_and_collections_arrive(members):
    client = members.client()
    things = client.test.things
    things.insert_many([{"_id": n, "x": n % 7} for n in range(5000)])
    things.create_index("x")
    client.test.other.insert_one({"_id": 1})
    client.test.other.drop()
    things.with_options(write_concern=WriteConcern(w=3)).delete_many({"x": 0})
    for at in range(3):
        direct = members.direct(at)
        assert "x_1" in direct.test.things.index_information()
        plan = direct.test.things.find({"x": 3}).explain()
        assert "IXSCAN" in str(plan["queryPlanner"]["winningPlan"])
        assert direct.test.things.count_documents({"x": 3}) == 714
        assert direct.test.list_collection_names() == ["things"]
        assert direct.test.command("validate", "things")["valid"]


def test_members_make_the_entries_of_indexes(members):
    """While clients write, keys of a unique index go from one document to another, and a member is killed."""
    client = members.client()
    things = client.test.get_collection("things", write_concern=WriteConcern(w=1))
    count = 12_000
    for first in range(0, count, 4000):
        things.insert_many([{"_id": n, "u": n, "tags": [n % 7, n % 5], "pad": "x" * 200} for n in range(first, first + 4000)])
    victim = next(at for at in range(3) if at != members.primary())
    stop = threading.Event()
    moved = []

    def move():
        n = 0
        while not stop.is_set():
            n = (n + 611) % (count - 1)
            things.update_one({"_id": n}, {"$unset": {"u": 1}, "$push": {"tags": 9}})
            things.update_one({"_id": n + 1}, {"$set": {"u": -n}})
            things.update_one({"_id": n}, {"$set": {"u": -n - count}})
            moved.append(n)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for keys, options in (("tags", {}), ("u", {"unique": True, "sparse": True})):
            killer = threading.Timer(0.3, members.kill, [victim])
            if keys == "tags":
                killer.start()
            things.create_index(keys, **options)
            if keys == "tags":
                killer.join()
                members.start(victim)
    finally:
        stop.set()
        mover.join()
    assert len(moved) > 10
    client.test.things.with_options(write_concern=WriteConcern(w=3)).insert_one({"_id": "last"})
    wanted = [things.count_documents({"tags": 9}), things.count_documents({"u": {"$lt": 0}})]
    for at in range(3):
        there = members.direct(at).test
        assert [there.things.count_documents({"tags": 9}, hint="tags_1"), there.things.count_documents({"u": {"$lt": 0}}, hint="u_1")] == wanted
        assert there.command("validate", "things")["valid"], at


def test_reads_and_writes_while_the_store_is_gone(tmp_path):
    cluster.needs_cluster(tmp_path)
    with Store() as store:
        door = store.door()
        with cluster.Set(tmp_path, size=2, log="s3://bucket/set", env=door.environment) as members:
            primary = members.primary()
            direct = members.direct(primary, retryWrites=False, retryReads=False)
            things = direct.test.things
            things.with_options(write_concern=WriteConcern("majority")).insert_one({"_id": 1})
            door.is_shut = True
            things.with_options(write_concern=WriteConcern(w=1)).insert_one({"_id": 2})
            with pytest.raises(WTimeoutError):
                things.with_options(write_concern=WriteConcern("majority", wtimeout=300)).insert_one({"_id": 3})
            for level in ["majority", "linearizable"]:
                # What is not in the log is not told.
                with pytest.raises(ExecutionTimeout):
                    things.with_options(read_concern=ReadConcern(level)).find_one({"_id": 2}, max_time_ms=300)
            assert things.find_one({"_id": 2})
            door.is_shut = False
            assert things.with_options(read_concern=ReadConcern("linearizable")).count_documents({}) == 3
            assert len(members.wait_equal("things")) == 3


def test_settings_reach_secondaries(members):
    client = members.client()
    client.admin.command("setDefaultRWConcern", 1, defaultReadConcern={"level": "majority"}, defaultWriteConcern={"w": 2})
    client.admin.command("setClusterParameter", {"changeStreams": {"expireAfterSeconds": 12345}})
    client.test.things.insert_one({})
    settings = {"queryFramework": "classic"}
    client.admin.command("setQuerySettings", {"find": "things", "filter": {"x": 1}, "$db": "test"}, settings=settings)

    def seen(at):
        admin = members.direct(at).admin
        concerns = admin.command("getDefaultRWConcern")
        parameter = admin.command("getClusterParameter", "changeStreams")["clusterParameters"][0]
        found = list(admin.aggregate([{"$querySettings": {}}]))
        return concerns.get("defaultWriteConcern", {}).get("w"), parameter["expireAfterSeconds"], len(found)

    begun = time.monotonic()
    for at in range(3):
        while (now := seen(at)) != (2, 12345, 1):
            assert time.monotonic() - begun < cluster.PATIENCE_S, (at, now)
            time.sleep(0.1)


def test_a_new_member_begins_from_a_checkpoint(tmp_path):
    cluster.needs_cluster(tmp_path)
    with Store() as store:
        env = store.door().environment
        with cluster.Set(tmp_path, log="s3://bucket/set", env=env, flags=["--logCheckpoints", "50"]) as members:
            client = members.client()
            client.test.things.create_index("x")
            for n in range(100):
                client.test.things.insert_one({"_id": n, "x": n % 7, "text": "x" * 1000})
            begun = time.monotonic()
            while not any("records/checkpoints/" in path for path in store.objects):
                assert time.monotonic() - begun < cluster.PATIENCE_S
                time.sleep(0.1)
            primary = members.primary()
            new = (primary + 1) % 3
            members.kill(new)
            shutil.rmtree(members.members[new].dbpath)
            # Half of a checkpoint, which no list names.
            store.objects["/bucket/set/files/checkpoints/half/base.nestor"] = (b"half", time.time(), {})
            members.start(new)
            client.test.things.insert_one({"_id": 100})
            assert len(members.wait_equal("things")) == 101
            direct = members.direct(new)
            assert direct.test.command("validate", "things")["valid"]
            assert direct.test.things.count_documents({"x": 3}) == 14


def test_moments_are_restored_and_branched_off(tmp_path):
    """From what is beside the log, while the set goes on; the log is kept as long as the oplog is to be."""
    cluster.needs_cluster(tmp_path)
    with Store() as store:
        env = store.door().environment
        flags = ["--logCheckpoints", "40", "--oplogMinRetentionHours", "1"]
        origin, to = "s3://bucket/set", "s3://bucket/branch"
        with cluster.Set(tmp_path, size=2, log=origin, env=env, flags=flags) as members:
            client = members.client()
            things = client.test.get_collection("things", write_concern=WriteConcern("majority"))
            things.create_index("x")
            things.insert_many([{"_id": n, "x": n % 7, "text": "x" * 1000} for n in range(1000)])
            begun = time.monotonic()
            written = 1000
            lists = lambda: sum("/records/checkpoints/" in path for path in list(store.objects))  # noqa: E731
            moments = {}
            while lists() < 3:
                things.insert_one({"_id": written, "x": written % 7})
                written += 1
                if written == 1020:
                    # Its entries are in no commit.
                    things.create_index("text")
                if written % 40 == 0:
                    moments[written] = client.test.command("ping")["operationTime"]
                    # The next commit is of a later time, whatever the clock says.
                    things.insert_one({"_id": written, "x": written % 7})
                    written += 1
                assert time.monotonic() - begun < cluster.PATIENCE_S
            things.insert_one({"_id": "later"})
            environment = {**os.environ, **env}

            def nestor(*arguments):
                done = subprocess.run([cluster.harness.BIN, *arguments], env=environment, capture_output=True, text=True)
                return done.returncode, done.stdout + done.stderr

            for count in [min(moments), max(moments)]:
                at = f"{moments[count].time}:{moments[count].inc}"
                status, said = nestor("restore", "--log", origin, "--at", at, "--dbpath", str(tmp_path / f"at{count}"))
                assert status == 0 and f"restored the state of {at}" in said, said
                with cluster.harness.Server(tmp_path / f"at{count}") as alone:
                    restored = alone.client().test
                    assert restored.things.count_documents({}) == count
                    assert restored.things.count_documents({"text": "x" * 1000}, hint="text_1") == 1000
                    assert restored.command("validate", "things")["valid"]
                    restored.things.insert_one({"_id": "own"})
            status, said = nestor("restore", "--log", origin, "--dbpath", str(tmp_path / "newest"))
            assert status == 0, said
            cluster.harness.check(tmp_path / "newest")
            status, said = nestor("restore", "--log", origin, "--at", "5", "--dbpath", str(tmp_path / "early"))
            assert (status, "what is kept begins with" in said) == (1, True), said
            status, said = nestor("restore", "--log", "s3://bucket/none", "--dbpath", str(tmp_path / "none"))
            assert (status, "has no commits" in said) == (1, True), said

            count = max(moments)
            before = set(store.objects)
            at = f"{moments[count].time}:{moments[count].inc}"
            status, said = nestor("branch", "--log", origin, "--to", to, "--at", at)
            assert status == 0 and f"{to} is a branch with the state of {at}" in said, said
            made = set(store.objects) - before
            # The set itself may upload one meanwhile.
            assert not any(path.startswith("/bucket/branch/") and "/packs/" in path for path in made), "no base is copied"
            status, said = nestor("branch", "--log", origin, "--to", to)
            assert (status, "there is a log at" in said) == (1, True), said
            with cluster.Set(tmp_path / "branch", size=2, log=to, env=env, flags=["--logCheckpoints", "40"]) as other:
                staging = other.client().test.get_collection("things", write_concern=WriteConcern(w=2))
                assert staging.count_documents({}) == count
                assert staging.count_documents({"text": "x" * 1000}, hint="text_1") == 1000
                staging.delete_many({"x": 3})
                staging.insert_one({"_id": "own"})
                assert other.direct(0).test.things.count_documents({}) == other.direct(1).test.things.count_documents({})
                assert other.client().test.command("validate", "things")["valid"]
            assert things.find_one({"_id": "later"}) and not things.find_one({"_id": "own"})
            assert things.count_documents({"x": 3}) > 100
            status, said = nestor("branch", "--log", origin, "--forget", to)
            assert status == 0, said
            assert not any("/branches/" in path for path in store.objects)


def config_of(client):
    config = client.admin.command("replSetGetConfig")["config"]
    config["version"] += 1
    return config


def test_members_are_configured(members):
    client = members.client()
    things = client.test.things
    things.with_options(write_concern=WriteConcern(w=3)).insert_one({"_id": 1})
    primary = members.primary()
    hidden, tagged = [at for at in range(3) if at != primary]
    config = config_of(client)
    by_host = {member["host"]: member for member in config["members"]}
    by_host[members.hosts[hidden]].update(priority=0, hidden=True, tags={"rack": "x"})
    by_host[members.hosts[tagged]].update(priority=0, tags={"rack": "y", "use": "reports"})
    config["settings"]["getLastErrorModes"] = {"racks": {"rack": 2}}
    client.admin.command("replSetReconfig", config)

    def wait(at, is_so):
        begun = time.monotonic()
        while not is_so(said := members.hello(at)):
            assert time.monotonic() - begun < cluster.PATIENCE_S, said
            time.sleep(0.05)
        return said

    for at in range(3):
        said = wait(at, lambda said: said.get("setVersion") == config["version"])
        assert said["hosts"] == [members.hosts[primary]] and said["passives"] == [members.hosts[tagged]]
    assert members.hello(hidden)["hidden"] and members.hello(hidden)["passive"]
    assert members.hello(tagged)["tags"] == {"rack": "y", "use": "reports"}
    reports = ReadPreference.SECONDARY.__class__(tag_sets=[{"use": "reports"}])
    assert client.test.get_collection("things", read_preference=reports).find_one() == {"_id": 1}
    for concern in [WriteConcern(w="racks"), WriteConcern(w="racks", j=True)]:
        things.with_options(write_concern=concern).insert_one({})
    written = client.test.command("insert", "things", documents=[{}], writeConcern={"w": {"use": 1}})
    assert "writeConcernError" not in written
    members.kill(tagged)
    with pytest.raises(WTimeoutError):
        things.with_options(write_concern=WriteConcern(w="racks", wtimeout=300)).insert_one({})
    for concern, code in [({"w": "floors"}, 79), ({"w": {"floor": 1}}, 100)]:
        written = client.test.command("insert", "things", documents=[{}], writeConcern=concern)
        assert written["writeConcernError"]["code"] == code
    members.start(tagged)
    client.admin.command("setDefaultRWConcern", 1, defaultWriteConcern={"w": "racks"})
    things.insert_one({})

    # What makes no sense here is refused by name.
    def refused(change, **options):
        config = config_of(client)
        change(config)
        with pytest.raises(OperationFailure) as refusal:
            client.admin.command("replSetReconfig", config, **options)
        return refusal.value.code, refusal.value.details["errmsg"]

    assert refused(lambda config: config["members"][0].update(votes=0))[0] == 93
    assert refused(lambda config: config["members"][0].update(arbiterOnly=True))[0] == 93
    code, why = refused(lambda config: config["settings"].update(electionTimeoutMillis=5))
    assert code == 93 and why.startswith("electionTimeoutMillis")
    assert refused(lambda config: config.update(version=1))[0] == 103
    own = config["members"].index(by_host[members.hosts[primary]])
    assert refused(lambda config: config["members"][own].update(priority=0))[0] == 93, "nobody could be primary"
    other = (own + 1) % 3

    def leaves(config):
        config["members"][own]["priority"] = 0
        config["members"][other].update(priority=1, hidden=False)

    assert refused(leaves)[0] == 104
    assert refused(lambda config: (leaves(config), config["members"].pop(own)))[0] == 74
    with pytest.raises(NotPrimaryError):
        members.direct(hidden).admin.command("replSetReconfig", config_of(client))


def test_members_are_removed_and_added(members):
    client = members.client()
    primary = members.primary()
    removed = (primary + 1) % 3
    config = config_of(client)
    gone = next(member for member in config["members"] if member["host"] == members.hosts[removed])
    config["members"].remove(gone)
    client.admin.command("replSetReconfig", config)
    members.members[removed].process.wait(cluster.PATIENCE_S)
    assert members.hosts[removed] not in members.hello(primary)["hosts"]
    with pytest.raises(cluster.harness.DidNotStart) as refused:
        members.start(removed)
    assert "was removed from the set rs0" in refused.value.output
    client.test.things.insert_one({"_id": 1})
    config = config_of(client)
    config["members"].append(gone)
    client.admin.command("replSetReconfig", config)
    members.start(removed)
    assert members.wait_equal("things") == [{"_id": 1}]


def test_a_member_with_a_higher_priority_becomes_primary(members):
    client = members.client()
    client.test.things.insert_one({"_id": 1})
    primary = members.primary()
    wanted = (primary + 1) % 3
    config = config_of(client)
    next(member for member in config["members"] if member["host"] == members.hosts[wanted])["priority"] = 3
    client.admin.command("replSetReconfig", config)
    assert members.primary(but=primary) == wanted
    # It stays away for as long as it was told to, and then it is back.
    client.admin.command("replSetStepDown", 8)
    other = members.primary(but=wanted)
    assert members.primary(but=other) == wanted
    client.test.things.insert_one({"_id": 2})
    assert len(members.wait_equal("things")) == 2


def test_what_is_wrong_is_refused(tmp_path):
    cluster.needs_cluster(tmp_path)
    with cluster.Set(tmp_path, size=1) as members:
        members.primary()
        for flags, why in [
            (["--replSet", "other", "--log", members.log], "the log is that of the set rs0"),
            (["--log", "ftp://x"], "no address of a log"),
            (["--log", "s3://bucket"], "a bucket and a path in it are needed"),
        ]:
            server = cluster.harness.Server(tmp_path / "refused", *flags, "--host", "127.0.0.1:1")
            with pytest.raises(cluster.harness.DidNotStart) as refused:
                server.start()
            assert why in refused.value.output
    alone = cluster.harness.Server(tmp_path / "alone").start()
    pymongo.MongoClient(alone.uri).test.things.insert_one({})
    alone.stop()
    server = cluster.harness.Server(tmp_path / "alone", "--log", members.log, "--host", "127.0.0.1:1")
    with pytest.raises(cluster.harness.DidNotStart) as refused:
        server.start()
    assert "commits that cannot be dropped" in refused.value.output
