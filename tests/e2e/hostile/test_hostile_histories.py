"""Exactly once, all or nothing: clients that repeat what they got no answer to, behind a proxy that cuts connections, while
the server is killed again and again.

Each worker repeats a command under the same transaction number until it is answered, as the drivers' specifications have it,
only more stubbornly. What was answered has happened once in the end, whatever was cut; nothing else has happened.
"""

import random
import threading
import time
import uuid

from bson import Binary, Int64
from harness import Closed, Raw, Server, check
from proxy import Cuts, Proxy

ACCOUNTS, OPENING = 6, 1000
DURABLE = {"w": "majority"}
CUTS = Cuts(request_lost=0.02, request_halved=0.02, reply_lost=0.06, reply_halved=0.02, client_gone=0.03, delayed=0.02, delay_s=0.005)
GIVE_UP_S = 120


class Worker(threading.Thread):
    """One session. `run` goes on until `stop`; `problem` is what must not have come."""

    def __init__(self, number, address, dice, stop):
        super().__init__(daemon=True)
        self.number, self.address, self.dice, self.stop = number, address, dice, stop
        self.lsid = {"id": Binary(uuid.UUID(int=dice.getrandbits(128)).bytes, 4)}
        self.txn = 0
        self.raw = None
        self.problem = None
        self.repeated = 0

    def run(self):
        try:
            while not self.stop.is_set():
                self.step()
        except Exception as problem:  # noqa: BLE001: told by the main thread
            self.problem = problem

    def once(self, command):
        """One attempt; None without an answer."""
        try:
            if self.raw is None:
                self.raw = Raw(self.address, 10)
            return self.raw.command(command)
        except (OSError, Closed, AssertionError):
            if self.raw is not None:
                self.raw.close()
            self.raw = None
            return None

    def until_answered(self, command):
        """The same command until an answer comes that tells what became of it."""
        end = time.monotonic() + GIVE_UP_S
        first = True
        while time.monotonic() < end:
            reply = self.once(command)
            if reply is not None and not retryable(reply):
                return reply
            self.repeated += not first
            first = False
            time.sleep(0.01)
        raise AssertionError(f"no answer within {GIVE_UP_S} s to {command}")

    def close(self):
        if self.raw is not None:
            self.raw.close()


def retryable(reply):
    labels = reply.get("errorLabels", [])
    return "RetryableWriteError" in labels or "RetryableWriteError" in reply.get("writeConcernError", {}).get("errorLabels", [])


class Writer(Worker):
    """Retryable writes of all kinds on documents of its own, and what they must have come to."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.counts = {}
        self.made = 0

    def step(self):
        self.txn += 1
        key = f"{self.number}-{self.dice.randrange(4)}"
        kind = self.dice.choice(["inc", "inc", "modify", "insert", "many", "delete", "bulk"])
        common = {"lsid": self.lsid, "txnNumber": Int64(self.txn), "writeConcern": DURABLE, "$db": "exact"}
        if kind == "inc":
            reply = self.until_answered({"update": "counts", "updates": [{"q": {"_id": key}, "u": {"$inc": {"n": 1}}, "upsert": True}], **common})
            assert reply["ok"] == 1 and reply["n"] == 1 and "writeErrors" not in reply, reply
            self.add(key)
        elif kind == "modify":
            reply = self.until_answered({"findAndModify": "counts", "query": {"_id": key}, "update": {"$inc": {"n": 1}}, "upsert": True, "new": True, **common})
            self.add(key)
            assert reply["ok"] == 1 and reply["value"]["n"] == self.counts[key], (reply, self.counts[key])
        elif kind == "insert":
            ids = [f"{self.number}-{self.made + i}" for i in range(self.dice.choice([1, 3]))]
            reply = self.until_answered({"insert": "made", "documents": [{"_id": i} for i in ids], **common})
            assert reply["ok"] == 1 and reply["n"] == len(ids) and "writeErrors" not in reply, reply
            self.made += len(ids)
        elif kind == "many":
            keys = [f"{self.number}-{i}" for i in range(4)]
            updates = [{"q": {"_id": k}, "u": [{"$set": {"n": {"$add": [{"$ifNull": ["$n", 0]}, 1]}}}], "upsert": True} for k in keys]
            reply = self.until_answered({"update": "counts", "updates": updates, "ordered": self.dice.random() < 0.5, **common})
            assert reply["ok"] == 1 and reply["n"] == 4, reply
            for k in keys:
                self.add(k)
        elif kind == "delete":
            reply = self.until_answered({"delete": "counts", "deletes": [{"q": {"_id": key}, "limit": 1}], **common})
            assert reply["ok"] == 1 and reply["n"] == (key in self.counts), (reply, key)
            self.counts.pop(key, None)
        else:
            other = f"{self.number}-{self.made}"
            ops = [{"insert": 0, "document": {"_id": other}}, {"update": 1, "filter": {"_id": key}, "updateMods": {"$inc": {"n": 1}}, "upsert": True}]
            reply = self.until_answered({"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": "exact.made"}, {"ns": "exact.counts"}], **common, "$db": "admin"})
            assert reply["ok"] == 1 and reply["nErrors"] == 0 and reply["nInserted"] == 1, reply
            self.made += 1
            self.add(key)

    def add(self, key):
        self.counts[key] = self.counts.get(key, 0) + 1


class Teller(Worker):
    """Moves money between accounts in transactions, and books each move."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.booked = 0
        self.conflicts = 0

    def step(self):
        source, target = self.dice.sample(range(ACCOUNTS), 2)
        amount = self.dice.randrange(1, 10)
        while not self.attempt(source, target, amount):
            if self.stop.is_set():
                return

    def attempt(self, source, target, amount):
        """One transaction: whether it was committed."""
        self.txn += 1
        common = {"lsid": self.lsid, "txnNumber": Int64(self.txn), "autocommit": False}
        change = lambda account, by: {"q": {"_id": account}, "u": {"$inc": {"balance": by}}}
        statements = [
            {"update": "accounts", "updates": [change(source, -amount), change(target, amount)], "$db": "exact"},
            {"insert": "booked", "documents": [{"_id": f"{self.number}-{self.booked}", "amount": amount}], "$db": "exact"},
        ]
        if self.dice.random() < 0.5:
            statements.reverse()
        for i, statement in enumerate(statements):
            begin = {"startTransaction": True, "readConcern": {"level": "snapshot"}} if i == 0 else {}
            reply = self.once({**statement, **common, **begin})
            if reply is None:
                return False
            if reply["ok"] != 1 or "writeErrors" in reply:
                assert "TransientTransactionError" in reply.get("errorLabels", []), reply
                self.conflicts += 1
                return False
        ending = {"commitTransaction": 1, **common, "writeConcern": DURABLE, "$db": "admin"}
        reply = self.until_answered(ending)
        if reply["ok"] == 1:
            assert "writeConcernError" not in reply, reply
            self.booked += 1
            return True
        assert "TransientTransactionError" in reply.get("errorLabels", []), reply
        return False


class Auditor(Worker):
    """Reads all accounts at one time: their sum never changes."""

    def step(self):
        self.txn += 1
        read = {"aggregate": "accounts", "pipeline": [{"$group": {"_id": None, "sum": {"$sum": "$balance"}, "n": {"$sum": 1}}}], "cursor": {}, "$db": "exact"}
        if self.dice.random() < 0.5:
            read |= {"lsid": self.lsid, "txnNumber": Int64(self.txn), "autocommit": False, "startTransaction": True}
        reply = self.once({**read, "readConcern": {"level": "snapshot"}})
        if reply is not None and reply["ok"] == 1:
            assert reply["cursor"]["firstBatch"] == [{"_id": None, "sum": ACCOUNTS * OPENING, "n": ACCOUNTS}], reply


def history(server, dice, seconds, kills):
    with Proxy(server.address, CUTS, seed=dice.random()) as proxy:
        stop = threading.Event()
        workers = [kind(i, proxy.address, random.Random(dice.random()), stop) for i, kind in enumerate([Writer] * 4 + [Teller] * 3 + [Auditor])]
        for worker in workers:
            worker.start()
        end = time.monotonic() + seconds
        killed = 0
        while time.monotonic() < end:
            time.sleep(min(dice.random() * 1.5, max(end - time.monotonic(), 0)))
            if kills and not any(worker.problem for worker in workers):
                server.kill()
                server.start()
                killed += 1
        proxy.cuts = Cuts()
        stop.set()
        for worker in workers:
            worker.join(GIVE_UP_S + 30)
            assert not worker.is_alive(), "a worker hangs"
            worker.close()
            assert worker.problem is None, f"{type(worker).__name__} {worker.number}: {worker.problem!r}"
        print(f"killed {killed} times, {sum(proxy.fates.values())} cuts, repeated {sum(w.repeated for w in workers)}, "
              f"written {sum(w.txn for w in workers[:4])}, booked {sum(w.booked for w in workers[4:7])}")
    return workers


def verify(db, workers):
    writers, tellers = workers[:4], workers[4:7]
    counts = {d["_id"]: d["n"] for d in db.counts.find()}
    assert counts == {key: n for writer in writers for key, n in writer.counts.items()}
    made = sorted(d["_id"] for d in db.made.find())
    assert made == sorted(f"{w.number}-{i}" for w in writers for i in range(w.made))
    booked = sorted(d["_id"] for d in db.booked.find())
    assert booked == sorted(f"{t.number}-{i}" for t in tellers for i in range(t.booked))
    assert sum(d["balance"] for d in db.accounts.find()) == ACCOUNTS * OPENING


def test_histories(tmp_path, dice, seconds):
    with Server(tmp_path / "data", "--quiet") as server:
        server.client().exact.accounts.insert_many([{"_id": i, "balance": OPENING} for i in range(ACCOUNTS)])
        for name in ("counts", "made", "booked"):
            server.client().exact.create_collection(name)
        server.port_flag = server.port
        workers = history(server, dice, seconds, kills=True)
        assert sum(worker.repeated for worker in workers) > 0 and sum(worker.txn for worker in workers) > 50
        verify(server.client().exact, workers)
        assert server.stop() == 0
        check(tmp_path / "data")
