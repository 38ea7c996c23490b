"""Hot backups: full and incremental while clients write, restored as of their end or of a time; and copies made with ordinary tools.

What a copy has to have: every write that was acknowledged with j: true before it began.
"""

import shutil
import threading

import pytest
from harness import Server, run
from pymongo.errors import OperationFailure
from pymongo.write_concern import WriteConcern


class Writer:
    """Writes numbers one by one, each acknowledged when it is durable."""

    def __init__(self, server):
        self.client = server.client()
        concern = WriteConcern(j=True)
        self.collection = self.client.test.get_collection("n", write_concern=concern)
        self.acknowledged = 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        pad = "x" * 500
        for number in range(1, 20_000):
            if self.stop.is_set():
                break
            self.collection.insert_one({"_id": number, "pad": pad})
            self.acknowledged = number

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(60)


def numbers(dbpath):
    """How many numbers a directory has: all from the first to the last, or the assertion fails."""
    assert run("check", dbpath).returncode == 0
    with Server(dbpath) as server:
        client = server.client()
        found = [doc["_id"] for doc in client.test.n.find({}, {"_id": 1}).sort("_id")]
        assert found == list(range(1, len(found) + 1))
        assert client.test.n.count_documents({"pad": "x" * 500}) == len(found)
        return len(found)


def command(*args):
    done = run(*args)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_backups_while_clients_write(tmp_path):
    with Server(tmp_path / "data") as server:
        client = server.client()
        client.test.fill.insert_many([{"_id": i, "pad": "y" * 900} for i in range(5000)])
        seen, backups = [], []
        with Writer(server) as writer:
            for turn in range(3):
                while writer.acknowledged < (turn + 1) * 50:
                    writer.stop.wait(0.01)
                    assert writer.thread.is_alive()
                seen.append(writer.acknowledged)
                to = tmp_path / f"backup{turn}"
                incremental = ["--incrementalFrom", backups[-1]] if backups else []
                command("backup", to, *incremental, "--uri", server.uri)
                backups.append(to)
        with pytest.raises(OperationFailure, match="not empty"):
            client.admin.command("createBackup", backupDir=str(backups[0]))
        with pytest.raises(OperationFailure, match="absolute"):
            client.admin.command("createBackup", backupDir="x")
        before = client.local["oplog.rs"].find_one({"ns": "test.n", "o._id": seen[1] + 1})["ts"]
    for count in range(1, 4):
        to = tmp_path / f"restored{count}"
        command("restore", *[arg for path in backups[:count] for arg in ("--from", path)], "--dbpath", to)
        assert numbers(to) >= seen[count - 1]
    # The state of a moment between the second and the third.
    to = tmp_path / "moment"
    all_backups = [arg for path in backups for arg in ("--from", path)]
    said = command("restore", *all_backups, "--dbpath", to, "--to", f"{before.time}:{before.inc}")
    assert f"{before.time}:{before.inc}" in said
    assert numbers(to) == seen[1] + 1
    # What came after the last backup is in the oplog of the directory, whose base is lost.
    (server.dbpath / "base.nestor").unlink()
    to = tmp_path / "lost"
    command("restore", *all_backups, "--oplogFrom", server.dbpath, "--dbpath", to)
    assert numbers(to) == writer.acknowledged
    refused = run("restore", "--from", backups[1], "--dbpath", tmp_path / "x")
    assert refused.returncode == 1 and "needs its parents" in refused.stdout


def test_an_index_that_came_after_the_base(tmp_path):
    """The oplog has that the index was made, and not its entries: these are made when the directory is restored or opened."""
    with Server(tmp_path / "data") as server:
        things = server.client().test.things
        things.insert_many([{"_id": n, "x": n % 10, "pad": "y" * 100} for n in range(5000)])
        server.client().admin.command("fsync", 1)
        command("backup", tmp_path / "backup", "--uri", server.uri)
        by_hand = tmp_path / "by hand"
        by_hand.mkdir()
        for name in ["base.nestor", "nestor.durable", "nestor.format"]:
            shutil.copy(server.dbpath / name, by_hand / name)
        things.create_index("x")
        things.update_one({"_id": 1}, {"$set": {"x": 77}})
    shutil.copytree(server.dbpath / "journal", by_hand / "journal")
    restored = tmp_path / "restored"
    command("restore", "--from", tmp_path / "backup", "--oplogFrom", server.dbpath, "--dbpath", restored)
    checked = run("check", by_hand)
    assert checked.returncode == 0 and "the next start makes them" in checked.stdout
    for directory in (restored, by_hand):
        with Server(directory) as server:
            things = server.client().test.things
            counts = [things.count_documents({"x": x}, hint="x_1") for x in (0, 1, 77)]
            assert counts == [500, 499, 1], directory
            assert server.client().test.command("validate", "things")["valid"]
        assert run("check", directory).returncode == 0


def test_files_copied_one_by_one(tmp_path):
    """As rsync does: base.nestor and the other files first, then the journal."""
    with Server(tmp_path / "data") as server:
        with Writer(server) as writer:
            for turn in range(3):
                while writer.acknowledged < (turn + 1) * 50:
                    writer.stop.wait(0.01)
                    assert writer.thread.is_alive()
                before = writer.acknowledged
                copy = tmp_path / f"copy{turn}"
                (copy / "journal").mkdir(parents=True)
                for name in ["base.nestor", "nestor.durable", "nestor.format"]:
                    shutil.copy(server.dbpath / name, copy / name)
                for path in sorted((server.dbpath / "journal").iterdir()):
                    shutil.copy(path, copy / "journal" / path.name)
                assert numbers(copy) >= before
