"""Losing power at any moment: a server's file operations are recorded, and what the disk may have at each of them is opened.

What was acknowledged with the write concern majority is there, a transaction is there as a whole or not at all, and `nestor check`
finds nothing wrong.
"""

import shutil
import subprocess
import threading
import time

import harness
import pymongo
import pytest
from harness import Server, check
from recorder import Recording, wrapper

WRITERS = 3
RECORDED_S = 1.0


def can_record():
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-D", "-f", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


class Writer(threading.Thread):
    """Notes when each write was answered: `(moment, kind, number)`, and how many were begun."""

    def __init__(self, client, number, dice, end):
        super().__init__(daemon=True)
        self.client, self.number, self.dice, self.end = client, number, dice, end
        self.answered = []
        self.begun = {"inc": 0, "insert": 0, "both": 0}
        self.problem = None

    def run(self):
        try:
            while time.time() < self.end:
                self.step()
        except Exception as problem:  # noqa: BLE001: told by the main thread
            self.problem = problem

    def step(self):
        db = self.client.get_database("power", write_concern=pymongo.WriteConcern("majority"))
        kind = self.dice.choice(["inc", "insert", "both"])
        n = self.begun[kind]
        self.begun[kind] += 1
        key, pad = f"{self.number}-{n}", "x" * self.dice.choice([10, 900, 9000])
        if kind == "inc":
            db.counts.update_one({"_id": self.number}, {"$inc": {"n": 1}, "$set": {"pad": pad}}, upsert=True)
        elif kind == "insert":
            db.docs.insert_one({"_id": key, "pad": pad})
        else:
            with self.client.start_session() as session, session.start_transaction():
                db.left.insert_one({"_id": key, "pad": pad}, session=session)
                db.right.insert_one({"_id": key}, session=session)
        self.answered.append((time.time(), kind, n))


def record(folder, dice):
    """A server that writes and merges for a while under the recorder; what it began with, the recording, and the writers."""
    data = folder / "data"
    with Server(data, "--quiet") as server:
        for name in ("counts", "docs", "left", "right"):
            server.client().power.create_collection(name)
        server.client().power.docs.create_index("pad")
        assert server.stop() == 0
    shutil.copytree(data, folder / "before")
    with Server(data, "--quiet", binary=wrapper(folder, harness.BIN)) as server:
        end = time.time() + RECORDED_S
        writers = [Writer(server.client(), i, type(dice)(dice.random()), end) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        while time.time() < end:
            time.sleep(dice.random() * RECORDED_S / 3)
            server.client().power.command("compact", "docs")
        for writer in writers:
            writer.join(60)
            assert writer.problem is None, writer.problem
        server.kill()
    return Recording(folder / "log", data), writers


def verify(db, writers, moment):
    ids = lambda name: {d["_id"] for d in db[name].find({}, {"_id": 1})}
    docs, left, right = ids("docs"), ids("left"), ids("right")
    counts = {d["_id"]: d["n"] for d in db.counts.find()}
    assert left == right, f"half a transaction: {left ^ right}"
    for writer in writers:
        answered = [(kind, n) for at, kind, n in writer.answered if at < moment]
        for kind, found in ("insert", docs), ("both", left):
            missing = [n for k, n in answered if k == kind and f"{writer.number}-{n}" not in found]
            assert not missing, f"{kind} {missing} of writer {writer.number} was acknowledged and is gone"
        count = counts.get(writer.number, 0)
        least = sum(kind == "inc" for kind, _ in answered)
        assert least <= count <= writer.begun["inc"], f"counted {count} of {least} acknowledged"


def test_loss_of_power(tmp_path, dice, seconds):
    if not can_record():
        pytest.skip("strace is not here, or may not trace")
    end = time.monotonic() + seconds
    states = lost = 0
    while time.monotonic() < end or not states:
        folder = tmp_path / f"recording-{states}"
        folder.mkdir()
        recording, writers = record(folder, dice)
        moments = [event.ended + 1e-6 for event in recording.events] + [at + 1e-6 for w in writers for at, _, _ in w.answered]
        kinds = {event.kind for event in recording.events}
        assert {"write", "sync"} <= kinds and len(recording.events) > 50, "the recording has what there was"
        for _ in range(200):
            if time.monotonic() > end and states:
                break
            moment = dice.choice(moments)
            state = folder / "state"
            lost += recording.leave(folder / "before", state, moment, dice)
            states += 1
            check(state)
            with Server(state, "--quiet") as server:
                verify(server.client().power, writers, moment)
                assert server.stop() == 0
            check(state)
            shutil.rmtree(state)
        shutil.rmtree(folder)
    print(f"{states} losses of power, {lost} changes lost, of {len(recording.events)} in the last recording")
