"""Runs generated transactions with pymongo and records what came of them."""

import itertools
import threading
import time

import pymongo
from bson import SON
from generate import ACCOUNTS, BALANCE, TOKENS
from history import FAILED, OK, UNKNOWN, Txn
from pymongo.errors import ConnectionFailure, OperationFailure
from pymongo.read_concern import ReadConcern

MAJORITY = pymongo.WriteConcern("majority")
DUPLICATE_KEY = 11000
# What a transaction may be told without anything being wrong: conflicts, its end by the server, a server that stops.
EXPECTED = {24, 50, 91, 112, 189, 251, 262, 290, 10107, 11600, 11602, 13435, 13436, DUPLICATE_KEY}
TOKEN_INDEX, GROUP_INDEX = "at_1", "group_1"


def set_up(client):
    db = client.get_database("histories", write_concern=MAJORITY)
    db.lists.insert_many([{"_id": f"list {n}.0", "n": 0, "v": []} for n in range(5)])
    db.create_collection("registers")
    db.tokens.insert_many([{"_id": f"token {n}", "at": n} for n in range(TOKENS)])
    db.tokens.create_index("at", name=TOKEN_INDEX)
    db.members.create_index("group", name=GROUP_INDEX)
    db.unique.create_index("key", unique=True)
    db.accounts.insert_many([{"_id": f"account {n}", "n": BALANCE} for n in range(ACCOUNTS)])


class Objects:
    """The operations on one database; each returns the operations of the history that it amounts to."""

    def __init__(self, client, level=None):
        concern = ReadConcern(level) if level else None
        self.db = client.get_database("histories", read_concern=concern, write_concern=MAJORITY)

    def run(self, request, session):
        return getattr(self, "_" + request[0])(session, *request[1:])

    def _append(self, session, key, value):
        # The event of a change stream has `last`, where the list itself may be there in part or as a whole.
        change = {"$push": {"v": value}, "$inc": {"n": 1}, "$set": {"last": value}}
        self.db.lists.update_one({"_id": key}, change, upsert=True, session=session)
        return [["append", key, value]]

    def _list(self, session, key):
        return list_read(key, self.db.lists.find_one({"_id": key}, session=session))

    def _write(self, session, key, value):
        before = self.db.registers.find_one_and_update({"_id": key}, replaced(value), upsert=True, session=session)
        return register_written(key, value, before or {})

    def _value(self, session, key):
        found = self.db.registers.find_one({"_id": key}, session=session)
        return register_read(key, found or {})

    def _add(self, session, group, value):
        self.db.members.insert_one({"_id": value, "group": group}, session=session)
        return [["add", group, value]]

    def _members(self, session, group):
        found = self.db.members.find({"group": group}, {"_id": 1}, session=session).hint(GROUP_INDEX)
        return [["members", group, sorted(member["_id"] for member in found)]]

    def _move(self, session, token, value, to):
        before = self.db.tokens.find_one_and_update({"_id": token}, replaced(value, at=to), session=session)
        if before is None:
            return [["broken", f"{token} is not there"]]
        return register_written(token, value, before)

    def _tokens(self, session, batch=2):
        """All tokens by the index on which they move: in small batches, so that the scan goes on with getMore."""
        scan = self.db.tokens.find({"at": {"$gte": 0}}, session=session, batch_size=batch if session else 0)
        return tokens_read(list(scan.hint(TOKEN_INDEX)))

    def _insert(self, session, key, value):
        try:
            self.db.unique.insert_one({"_id": value, "key": key}, session=session)
        except OperationFailure as error:
            if error.code == DUPLICATE_KEY:
                raise Taken(key, error) from error
            raise
        return [["write", key, value, None]]

    def _find(self, session, key):
        found = list(self.db.unique.find({"key": key}, session=session))
        if len(found) > 1:
            return [["broken", f"{key} is there more than once: {found}"]]
        return [["value", key, found[0]["_id"] if found else None]]

    def _transfer(self, session, source, target, amount, value):
        if session is None:
            # Both changes or none needs a transaction; alone, money moves from an account to itself.
            return self._account(None, source, 0, value)
        return self._account(session, source, -amount, value + "-") + self._account(session, target, amount, value + "+")

    def _account(self, session, number, amount, value):
        key = f"account {number}"
        change = replaced(value, n={"$add": ["$n", amount]})
        before = self.db.accounts.find_one_and_update({"_id": key}, change, session=session)
        if before is None:
            return [["broken", f"{key} is not there"]]
        return register_written(key, value, before)

    def _balances(self, session):
        return balances_read(list(self.db.accounts.find(session=session)))


class Taken(Exception):
    def __init__(self, key, error):
        super().__init__(str(error))
        self.key = key


def replaced(value, **more):
    """An update that gives a register `value` and leaves in it what it had before."""
    return [{"$set": {"v": value, "before": {"$ifNull": ["$v", None]}, **more}}]


def register_written(key, value, before):
    return [*link(key, before), ["write", key, value, before.get("v")]]


def register_read(key, found):
    return [*link(key, found), ["value", key, found.get("v")]]


def link(key, found):
    return [["link", key, found["v"], found["before"]]] if found.get("v") else []


def list_read(key, found):
    found = found or {"n": 0, "v": []}
    if found["n"] != len(found["v"]):
        return [["broken", f"half an update of {key}: {found}"]]
    return [["list", key, found["v"]]]


def tokens_read(found):
    if len(found) != TOKENS or len({token["_id"] for token in found}) != TOKENS:
        return [["broken", f"a scan finds {len(found)} tokens instead of {TOKENS}: {found}"]]
    return [op for token in found for op in register_read(token["_id"], token)]


def balances_read(found):
    total = sum(account["n"] for account in found)
    if len(found) != ACCOUNTS or total != ACCOUNTS * BALANCE:
        return [["broken", f"the balances are {total} together instead of {ACCOUNTS * BALANCE}: {found}"]]
    return [op for account in found for op in register_read(account["_id"], account)]


class Recorder:
    """The history so far, and numbers for transactions."""

    def __init__(self):
        self.history = []
        self._numbers = itertools.count(1)

    def add(self, process, begin, outcome, ops):
        # Appending and counting are atomic.
        self.history.append(Txn(next(self._numbers), process, begin, now(), outcome, ops))


def now():
    return time.monotonic_ns()


class Worker(threading.Thread):
    """Does what its generator says until `stop` is set. `problem` is an error that nobody expected."""

    def __init__(self, name, client, generator, recorder, stop, serializable=False):
        super().__init__(daemon=True, name=name)
        self.process = name
        self.client = client
        self.generator = generator
        self.recorder = recorder
        self.stop = stop
        self.serializable = serializable
        self.problem = None

    def run(self):
        try:
            while not self.stop.is_set():
                plan = self.generator.next()
                (self._transaction if plan.is_transaction else self._statement)(plan)
        except Exception as problem:  # noqa: BLE001: reported by the main thread
            self.problem = problem

    def _statement(self, plan):
        request, begin = plan.requests[0], now()
        try:
            ops = Objects(self.client, plan.level).run(request, None)
            outcome = OK
        except Taken as taken:
            ops, outcome = [["taken", taken.key], *written(request)], FAILED
        except (ConnectionFailure, OperationFailure) as error:
            expect(error)
            # A write whose retry failed, too, may have been done; a read has told nothing.
            ops, outcome = written(request), UNKNOWN
        self.recorder.add(self.process, begin, outcome, ops)

    def _transaction(self, plan):
        begin, ops, outcome = now(), [], FAILED
        objects = Objects(self.client)
        pending = []
        try:
            with self.client.start_session() as session:
                level = "serializable" if self.serializable else plan.level
                session.start_transaction(ReadConcern(level), MAJORITY)
                for number, request in enumerate(plan.requests):
                    if number and plan.pause_s:
                        time.sleep(plan.pause_s)
                    pending = written(request)
                    ops += objects.run(request, session)
                    pending = []
                if plan.commits:
                    outcome = self._commit(session, plan.tries)
                else:
                    session.abort_transaction()
        except Taken as taken:
            ops.append(["taken", taken.key])
        except (ConnectionFailure, OperationFailure) as error:
            # It was not committed, as nobody asked for it.
            expect(error)
        self.recorder.add(self.process, begin, outcome, ops + pending)

    def _commit(self, session, tries):
        for _ in range(tries):
            try:
                session.commit_transaction()
                return OK
            except (ConnectionFailure, OperationFailure) as error:
                if error.has_error_label("UnknownTransactionCommitResult"):
                    continue
                if isinstance(error, OperationFailure) and error.has_error_label("TransientTransactionError"):
                    return FAILED
                expect(error)
                return UNKNOWN
        return UNKNOWN


def expect(error):
    """Raises errors that nothing of what goes on here can explain."""
    if isinstance(error, OperationFailure) and error.code not in EXPECTED:
        raise error


def written(request):
    """What a request writes if it is done, for one whose reply never came. What it replaced is not known then."""
    kind, *arguments = request
    if kind in ("append", "add"):
        return [[kind, *arguments]]
    if kind in ("write", "move"):
        return [["blind", arguments[0], arguments[1]]]
    if kind == "insert":
        return [["write", *arguments, None]]
    if kind == "transfer":
        source, target, _, value = arguments
        return [
            ["blind", f"account {source}", value],
            ["blind", f"account {source}", value + "-"],
            ["blind", f"account {target}", value + "+"],
        ]
    return []


def read_everything(client, history, recorder):
    """One transaction that reads each object that the history knows, by scans and by indexes."""
    begin = now()
    keys = {(op[0], op[1]) for txn in history for op in txn.ops if op[0] not in ("broken", "taken")}
    objects = Objects(client)
    with client.start_session() as session:
        session.start_transaction(ReadConcern("snapshot"), MAJORITY)
        db = objects.db
        scans = {
            name: list(db[name].find(session=session, hint=SON([("$natural", 1)])))
            for name in ("lists", "registers", "tokens", "members", "unique", "accounts")
        }
        ops = tokens_read(scans["tokens"]) + balances_read(scans["accounts"]) + objects.run(("tokens",), session)
        lists = {document["_id"]: document for document in scans["lists"]}
        for document in scans["registers"]:
            ops += register_read(document["_id"], document)
        values = {document["key"]: document["_id"] for document in scans["unique"]}
        if len(scans["unique"]) != len({document["key"] for document in scans["unique"]}):
            ops.append(["broken", "a unique key is there more than once"])
        groups = {}
        for document in scans["members"]:
            groups.setdefault(document["group"], []).append(document["_id"])
        for kind, key in sorted(keys):
            if kind in ("append", "list"):
                ops += list_read(key, lists.get(key))
            elif kind in ("add", "members"):
                ops.append(["members", key, sorted(groups.get(key, []))])
                ops += objects.run(("members", key), session)
            elif key.startswith("unique"):
                ops.append(["value", key, values.get(key)])
                ops += objects.run(("find", key), session)
        session.commit_transaction()
    recorder.add("final", begin, OK, ops)
