"""The crash test: kill -9 under concurrent writers, reopen, check.

Every writer owns its documents and keeps a model of what the server has acknowledged with j:true, plus the
one operation that was in flight. After the crash the data must be the model, with the operation in flight
applied as a whole or not at all. NESTOR_CRASH_ROUNDS and NESTOR_CRASH_SEED set its length and its dice.
"""

import os
import random
import struct
import threading
import time

import pymongo
from bson import Int64
from harness import Server, check
from pymongo.errors import AutoReconnect, ConnectionFailure, OperationFailure

ROUNDS = int(os.environ.get("NESTOR_CRASH_ROUNDS", "4"))
# `make test` asks the same each time; a long run rolls its seed.
SEED = int(os.environ.get("NESTOR_CRASH_SEED", random.SystemRandom().randrange(1 << 32) if "NESTOR_CRASH_ROUNDS" in os.environ else 1))
# Whether a crash hits a checkpoint is up to the scheduler: so many more rounds until one did.
MORE_ROUNDS = 20
WRITERS = 8
PAGE = 4096
JOURNALED = pymongo.WriteConcern(w=1, j=True)
ABSENT = None


class Writer(threading.Thread):
    """Writes its own documents `{_id: "writer-n", a, b, c, pad}`, where a == b == c always holds."""

    def __init__(self, number, client, model, dice):
        super().__init__(daemon=True)
        self.number = number
        self.collection = client.crash.get_collection("docs", write_concern=JOURNALED)
        self.model = model  # _id -> value of a, of what was acknowledged
        self.in_flight = {}  # _id -> value after the operation that was not acknowledged
        self.dice = random.Random(dice)
        self.acknowledged = 0
        self.problem = None

    def run(self):
        try:
            while True:
                self.step()
        except (AutoReconnect, ConnectionFailure):
            pass  # the crash
        except Exception as problem:  # noqa: BLE001: reported by the main thread
            self.problem = problem

    def step(self):
        kind = self.dice.choices(["insert", "batch", "update", "delete", "grow"], [4, 2, 6, 2, 1])[0]
        if kind in ("insert", "batch") or not self.model:
            fresh = [self.new_id() for _ in range(20 if kind == "batch" else 1)]
            self.apply({i: 0 for i in fresh}, lambda: self.insert(fresh))
            return
        chosen = self.dice.choice(list(self.model))
        if kind == "delete":
            self.apply({chosen: ABSENT}, lambda: self.collection.delete_one({"_id": chosen}))
        else:
            change = {"$inc": {"a": 1, "b": 1, "c": 1}}
            if kind == "grow":
                change["$set"] = {"pad": "y" * self.dice.randrange(20_000)}
            self.apply({chosen: self.model[chosen] + 1}, lambda: self.collection.update_one({"_id": chosen}, change))

    def new_id(self):
        return f"{self.number}-{self.dice.getrandbits(48):012x}"

    def insert(self, fresh):
        pad = "x" * self.dice.randrange(2000)
        self.collection.insert_many([{"_id": i, "w": self.number, "a": 0, "b": 0, "c": 0, "pad": pad} for i in fresh])

    def apply(self, outcome, operation):
        self.in_flight = outcome
        operation()
        for key, value in outcome.items():
            if value is ABSENT:
                del self.model[key]
            else:
                self.model[key] = value
        self.in_flight = {}
        self.acknowledged += 1


def verify(collection, writer):
    """The data of one writer against its model; returns the model to go on with."""
    found = {}
    for document in collection.find({"w": writer.number}):
        assert document["a"] == document["b"] == document["c"], f"half an update: {document}"
        found[document["_id"]] = document["a"]
    for key in writer.model.keys() | found.keys() | writer.in_flight.keys():
        allowed = {writer.model.get(key, ABSENT)}
        if key in writer.in_flight:
            allowed.add(writer.in_flight[key])
        assert found.get(key, ABSENT) in allowed, f"{key}: found {found.get(key, ABSENT)}, may be {allowed}"
    return found


def indexes_agree(collection):
    """Each index returns the documents a scan of the collection returns."""
    scanned = sorted(d["_id"] for d in collection.find({}, {"_id": 1}, hint=[("$natural", 1)]))
    for name in collection.index_information():
        through = sorted(d["_id"] for d in collection.find({}, {"_id": 1}, hint=name))
        assert through == scanned, f"index {name} has {len(through)} of {len(scanned)} documents"
    assert collection.count_documents({}) == len(scanned)


class Checkpointer(threading.Thread):
    """Merges what is committed into the base, again and again until the crash."""

    def __init__(self, client, dbpath):
        super().__init__(daemon=True)
        self.client = client
        self.base = dbpath / "base.nestor"
        self.before = self.now()

    def now(self):
        """When the base was last written, and the transactions that its two meta pages name."""
        with open(self.base, "rb") as file:
            content = file.read(2 * PAGE)
        return self.base.stat().st_mtime_ns, *(struct.unpack_from("<Q", content, at + 24)[0] for at in (0, PAGE))

    def run(self):
        try:
            while True:
                self.before = self.now()
                self.client.crash.command("compact", "docs")
        except (AutoReconnect, ConnectionFailure):
            pass

    def wait_until_it_writes(self):
        """Returns at once then: there are only milliseconds to its end."""
        end = time.monotonic() + 60
        while self.base.stat().st_mtime_ns == self.before[0]:
            assert time.monotonic() < end, "no checkpoint begins"

    def was_interrupted(self):
        """Something was written, but not, or not yet to both meta pages, that it is there."""
        (written, first, second), (before, committed, _) = self.now(), self.before
        return written != before and (first == committed or first != second)


def test_nothing_acknowledged_is_lost(tmp_path):
    print(f"\ncrash test: {ROUNDS} rounds, seed {SEED} (NESTOR_CRASH_SEED)")
    dice = random.Random(SEED)
    models = [{} for _ in range(WRITERS)]
    dbpath = tmp_path / "data"
    total = interrupted = 0
    with Server(dbpath) as server:
        server.client().crash.docs.create_index([("w", 1), ("a", -1)])
        server.close_clients()
        for round_number in range(ROUNDS + MORE_ROUNDS):
            if round_number >= ROUNDS and (interrupted or ROUNDS < 2):
                break
            client = server.client(retryWrites=bool(round_number % 2), maxPoolSize=None, serverSelectionTimeoutMS=500)
            writers = [Writer(i, client, models[i], dice.random()) for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(0.3 + dice.random())
            checkpoints = round_number % 2 or round_number >= ROUNDS
            checkpointer = Checkpointer(client, dbpath) if checkpoints else None
            if checkpointer:
                checkpointer.start()
                time.sleep(0.2 * dice.random())
                checkpointer.wait_until_it_writes()
            server.process.kill()  # under them: their connections break
            server.process.wait()
            for writer in writers:
                writer.join(60)
                assert not writer.is_alive()
                assert writer.problem is None, repr(writer.problem)
            if checkpointer:
                checkpointer.join(60)
                assert not checkpointer.is_alive()
                interrupted += checkpointer.was_interrupted()
            server.close_clients()
            total += sum(writer.acknowledged for writer in writers)

            check(dbpath)  # changes nothing: it is the server that recovers
            server.start()
            collection = server.client().crash.docs
            models = [verify(collection, writer) for writer in writers]
            assert collection.count_documents({}) == sum(map(len, models)), "no document without a writer"
            indexes_agree(collection)
            server.close_clients()
            print(
                f"  round {round_number + 1}: {total} acknowledged so far, {sum(map(len, models))} documents, "
                f"restarted in {server.started_in_s:.2f} s"
            )
        assert total > ROUNDS * WRITERS, "the writers did write"
        print(f"  {interrupted} checkpoints were interrupted")
        assert interrupted or ROUNDS < 2, "no checkpoint was under way at a crash"
        assert server.stop() == 0
        check(dbpath)


def test_unacknowledged_writes_reach_the_disk_within_100_ms_or_so(tmp_path):
    """w:1 without j waits for no sync; the journal is synced behind it."""
    with Server(tmp_path / "data") as server:
        collection = server.client().test.c
        for i in range(200):
            collection.insert_one({"_id": i})
        collection.with_options(write_concern=JOURNALED).insert_one({"_id": "last"})
        server.kill()
        server.start()
        assert server.client().test.c.count_documents({}) == 201, "what came before a journaled write is there too"


def test_a_killed_retryable_write_is_not_repeated(tmp_path):
    """A write that was journaled and then retried after the crash is recognised."""
    from bson import Binary

    session = {"id": Binary(b"0123456789abcdef", 4)}
    with Server(tmp_path / "data") as server:
        server.client().test.c.insert_one({"_id": 1, "n": 0})
        for number in range(1, 4):
            command = {
                "update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "lsid": session,
                "txnNumber": Int64(number), "writeConcern": {"w": "majority"}, "$db": "test",
            }
            with server.raw() as raw:
                assert raw.command(command)["nModified"] == 1
            server.kill()
            server.start()
            with server.raw() as raw:
                assert raw.command(command)["nModified"] == 1
        assert server.client().test.c.find_one() == {"_id": 1, "n": 3}


def test_the_newest_of_a_long_history_is_not_repeated(tmp_path):
    """A session is known again from its oldest entry on, long before the entry that matters was read."""
    from bson import Binary

    session = {"id": Binary(b"0123456789abcdef", 4)}
    journaled = {"writeConcern": {"w": "majority"}, "$db": "test", "lsid": session}

    def increment(number):
        return {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}], "txnNumber": Int64(number)}

    def in_transaction(command, **more):
        return {**command, "lsid": session, "txnNumber": Int64(4), "autocommit": False, **more}

    with Server(tmp_path / "data") as server:
        others = server.client().test.others
        others.database.c.insert_one({"_id": 1, "n": 0})
        with server.raw() as raw:
            assert raw.command({**increment(1), **journaled})["nModified"] == 1
            for i in range(6):
                others.insert_many([{"_id": 10_000 * i + j} for j in range(10_000)])
            assert raw.command({**increment(2), **journaled})["nModified"] == 1
        server.kill()
        server.start()
        with server.raw() as raw:
            assert raw.command({**increment(2), **journaled})["nModified"] == 1
            insert = {"insert": "c", "documents": [{"_id": 2}], "$db": "test"}
            assert raw.command(in_transaction(insert, startTransaction=True))["ok"] == 1
            commit = in_transaction({"commitTransaction": 1, "$db": "admin", "writeConcern": {"w": "majority"}})
            assert raw.command(commit)["ok"] == 1
        server.kill()
        server.start()
        with server.raw() as raw:
            again = raw.command(commit)
            assert again["ok"] == 1, again
        assert list(server.client().test.c.find()) == [{"_id": 1, "n": 2}, {"_id": 2}]


def test_create_drop_and_index_survive(tmp_path):
    """The catalog changes in the same batch as the data."""
    with Server(tmp_path / "data") as server:
        for round_number in range(3):
            db = server.client().catalog
            db.create_collection(f"made{round_number}")
            db[f"made{round_number}"].create_index("x", unique=True)
            db[f"made{round_number}"].insert_one({"x": round_number})
            if round_number:
                db[f"made{round_number - 1}"].drop()
            db.moved.drop()
            db.source.insert_one({"round": round_number})
            db.source.rename("moved")
            db.sync.with_options(write_concern=JOURNALED).insert_one({})
            server.kill()
            check(server.dbpath)
            server.start()
            db = server.client().catalog
            assert sorted(db.list_collection_names()) == sorted([f"made{round_number}", "moved", "sync"])
            assert "x_1" in db[f"made{round_number}"].index_information()
            assert db.moved.find_one({}, {"_id": 0}) == {"round": round_number}
            try:
                db[f"made{round_number}"].insert_one({"x": round_number})
                raise AssertionError("the unique index was lost")
            except OperationFailure as error:
                assert error.code == 11000


def test_an_interrupted_index_build_leaves_nothing(tmp_path):
    print(f"\nindex build crash test: seed {SEED} (NESTOR_CRASH_SEED)")
    dice = random.Random(SEED)
    dbpath = tmp_path / "data"
    with Server(dbpath) as server:
        filler = [{"_id": f"filler-{n}", "w": -1, "a": n, "b": n, "c": n, "pad": "z" * 60} for n in range(5_000)]
        # It is closed when the server is gone, and then looks for one as long as this.
        server.client(serverSelectionTimeoutMS=500).crash.docs.insert_many(filler)
        models = [{} for _ in range(WRITERS)]
        for phase in ("", "inserting keys", "draining")[: max(1, ROUNDS - 1)]:
            client = server.client(maxPoolSize=None, serverSelectionTimeoutMS=500)
            writers = [Writer(i, client, models[i], dice.random()) for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            seen = []
            builder = threading.Thread(target=build_until_crash, args=(client, seen), daemon=True)
            builder.start()
            running = {"command.createIndexes": "docs", "msg": {"$regex": f"^Index Build: {phase}"}}
            # Without a pause, not to miss the phase.
            while builder.is_alive() and not client.admin.command({"currentOp": 1, **running})["inprog"]:
                pass
            time.sleep(dice.random() * 0.3)
            server.process.kill()
            server.process.wait()
            builder.join(60)
            for writer in writers:
                writer.join(60)
                assert writer.problem is None, repr(writer.problem)
            server.close_clients()

            check(dbpath)
            server.start()
            collection = server.client().crash.docs
            models = [verify(collection, writer) for writer in writers]
            indexes_agree(collection)
            found = set(collection.index_information())
            # All indexes of one command or none; those of an acknowledged command in any case.
            assert found == {"_id_", "a_1", "w_1_a_-1"} or (found == {"_id_"} and seen != ["built"]), (found, seen)
            print(f"  build {'acknowledged' if seen else 'interrupted'} {phase}, indexes {sorted(found)}")
            collection.drop_indexes()
            collection.create_index("a")
            indexes_agree(collection)
            collection.drop_indexes()
            server.close_clients()


def build_until_crash(client, seen):
    models = [pymongo.IndexModel([("a", 1)]), pymongo.IndexModel([("w", 1), ("a", -1)])]
    try:
        client.crash.get_collection("docs", write_concern=JOURNALED).create_indexes(models)
        seen.append("built")
    except (AutoReconnect, ConnectionFailure):
        pass
