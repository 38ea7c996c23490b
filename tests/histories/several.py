"""A replica set of three members as what an episode runs against, over a double of an object store. What happens to it:

kill -9 of the primary, of any member, of all; SIGSTOP past the lease and back; a member without the store; nobody with the store; a member that
clients do not reach; stepping down; SIGTERM; clocks that jump; a member whose directory is gone; and all the time single requests to the store are lost, late, doubled,
slow, answered 500, 503 or 409, or done without an answer, and connections of clients are cut.
"""

import collections
import contextlib
import functools
import random
import shutil
import signal
import subprocess
import threading
import time

import clock
import pymongo
from alone import CUTS, quiet_port
from client import expect
from harness import DidNotStart, Server, check
from observe import Anomaly
from proxy import Cuts, Proxy
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Nearest
from pymongo.write_concern import WriteConcern
from s3 import Faults, Store

MEMBERS = 3
# Every twentieth request to the store has a bad day.
FAULTS = Faults(
    lost=0.008, unanswered=0.008, late=0.004, doubled=0.008, refused=0.008, refused_but_done=0.004, slow=0.01, slow_s=0.3, late_s=1.5
)
# How long the set may take to have a primary and be alike, once nothing disturbs it.
PATIENCE_S = 60


class Several:
    is_set = True
    every_s = (0.5, 4)

    def __init__(self, folder, seed, fault=None):
        self.folder = folder
        self.seed = seed
        self.env = {"NESTOR_FAULT": fault} if fault else {}
        self.store = Store(seed)
        self.members = []
        self.kills = 0
        self.happened = collections.Counter()
        self.own = None
        self.watching = []
        # What is to be undone, by when.
        self.later = []
        self.diary = []
        self.begun = time.monotonic()

    # -- life -----------------------------------------------------------------------------------

    def __enter__(self):
        self.store.__enter__()
        for number in range(MEMBERS):
            self.members.append(Member(self, number))
        for member in self.members:
            member.start()
            # One after the other: each is in the set then.
            member.started()
        self.primary()
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._tell()
        for member in self.members:
            member.end()
        self.store.__exit__()

    @property
    def uri(self):
        return f"mongodb://{','.join(member.host for member in self.members)}/?replicaSet=rs0"

    def client(self):
        # Whoever sets up or reads everything is not to be cut off.
        if self.own is None:
            self.own = pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=PATIENCE_S * 1000, socketTimeoutMS=120_000)
        return self.own

    def connect(self, number, retries):
        return pymongo.MongoClient(
            self.uri, serverSelectionTimeoutMS=15_000, socketTimeoutMS=20_000, connectTimeoutMS=2_000, maxPoolSize=2,
            heartbeatFrequencyMS=1000, retryWrites=retries,
        )  # fmt: skip

    def watchers(self, stop):
        # What was set up has to be there; bad days begin now.
        for member in self.members:
            member.door.faults = FAULTS
            member.proxy.cuts = CUTS
        self.watching = [Causal(self.connect(0, True), number, self.seed, stop) for number in range(2)]
        return self.watching

    def compact(self):
        with contextlib.suppress(PyMongoError), pymongo.timeout(1):
            self.client().histories.command("compact", "lists")

    # -- what happens ---------------------------------------------------------------------------

    def disturb(self, dice):
        self._undo(all_of_it=False)
        what = dice.choice(
            ["kill_primary", "kill_primary", "kill_any", "kill_all", "stop", "stop", "cut_off", "cut_off", "store_down", "silence",
             "unreachable", "step_down", "terminate", "clock", "replace"]
        )  # fmt: skip
        primary = self._primary_now()
        member = primary if primary and dice.random() < 0.7 else dice.choice(self.members)
        for_s = dice.choice([0.3, 1.0, 2.0, 4.0, 6.0])
        self.happened[what] += 1
        self._note(f"{what} of {self.members.index(member)} for {for_s} s, primary {primary and self.members.index(primary)}")
        getattr(self, f"_{what}")(member, for_s, dice)

    def _kill_primary(self, member, for_s, dice):
        self._kill(self._primary_now() or member, for_s)

    def _kill_any(self, member, for_s, dice):
        self._kill(dice.choice(self.members), for_s)

    def _kill_all(self, member, for_s, dice):
        for each in self.members:
            self._kill(each, 0)

    def _kill(self, member, for_s):
        member.kill()
        self.kills += 1
        self._after(for_s, member.start)

    def _stop(self, member, for_s, dice):
        member.signal(signal.SIGSTOP)
        self._after(for_s, functools.partial(member.signal, signal.SIGCONT))

    def _cut_off(self, member, for_s, dice):
        member.door.is_shut = True
        self._after(for_s, functools.partial(setattr, member.door, "is_shut", False))

    def _silence(self, member, for_s, dice):
        member.door.is_silent = True
        self._after(for_s, functools.partial(setattr, member.door, "is_silent", False))

    def _store_down(self, member, for_s, dice):
        for each in self.members:
            self._cut_off(each, for_s, dice)

    def _unreachable(self, member, for_s, dice):
        member.proxy.target = ("127.0.0.1", 1)
        member.proxy.cut_all()
        self._after(for_s, functools.partial(setattr, member.proxy, "target", member.address))

    def _step_down(self, member, for_s, dice):
        with contextlib.suppress(PyMongoError), pymongo.timeout(5):
            self.client().admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=3, force=dice.random() < 0.5)

    def _terminate(self, member, for_s, dice):
        member.signal(signal.SIGTERM)
        self._after(for_s, member.start)

    def _replace(self, member, for_s, dice):
        """A new member with the name of an old one: it has nothing and begins from a checkpoint."""
        self._kill(member, for_s)
        shutil.rmtree(member.server.dbpath, ignore_errors=True)

    def _clock(self, member, for_s, dice):
        member.set_clock(dice.choice([-3600, -10, 10, 3600]))

    def _note(self, what):
        """Told if something goes wrong."""
        self.diary.append(f"{time.monotonic() - self.begun:.1f} {what}")

    def _after(self, for_s, undo):
        self.later.append((time.monotonic() + for_s, undo))

    def _undo(self, all_of_it):
        """Undoes what is due."""
        while self.later and (all_of_it or self.later[0][0] <= time.monotonic() or len(self.later) > 3):
            _, undo = self.later.pop(0)
            self._note(f"undone: {undo}")
            undo()

    def relent(self):
        for member in self.members:
            member.door.faults = Faults()
            member.proxy.cuts = Cuts()
        self._undo(all_of_it=True)

    def settle(self):
        self.relent()
        for member in self.members:
            member.started()
            # A new member does not wait for a store that it never reached.
            if not member.server.is_running and not (member.server.dbpath / "base.nestor").exists():
                member.start()
                member.started()
        self.primary()

    # -- what is seen ---------------------------------------------------------------------------

    def _tell(self):
        print("\n".join([*self.diary, *(member.said() for member in self.members)]), flush=True)

    def _primary_now(self):
        return next((member for member in self.members if member.hello().get("isWritablePrimary")), None)

    def primary(self):
        """Waits for one."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE_S:
            found = self._primary_now()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError("nobody is primary")

    def anomalies(self):
        """Members that do not become alike, and indexes that are not what the documents are."""
        found = [Anomaly(*seen) for watcher in self.watching for seen in watcher.found]
        self.own.close()
        begun = time.monotonic()
        while True:
            hashes = [member.hashes() for member in self.members]
            if all(each == hashes[0] for each in hashes) and "error" not in hashes[0]:
                break
            if time.monotonic() - begun > PATIENCE_S:
                found.append(Anomaly("members differ", str(hashes)))
                self._tell()
                break
            time.sleep(0.2)
        for member in self.members:
            member.kill()
            said = check(member.server.dbpath)
            if "damaged" in said:
                found.append(Anomaly("check", said))
        return found

    @property
    def cuts(self):
        return sum(sum(member.proxy.fates.values()) for member in self.members)

    def summary(self):
        fates = sum((member.door.fates for member in self.members), collections.Counter())
        what = ", ".join(f"{count} x {name.replace('_', ' ')}" for name, count in sorted(self.happened.items()))
        reads = sum(watcher.reads for watcher in self.watching)
        return f"cuts {self.cuts}, {what}; store: {sum(fates.values())} faults; {reads} causal reads"


class Member:
    """A member: its process, its door to the store, and the proxy by which clients reach it."""

    def __init__(self, system, number):
        self.door = system.store.door()
        self.address = ("127.0.0.1", quiet_port())
        self.proxy = Proxy(self.address, Cuts(), f"{system.seed} {number}", quiet_port()).start()
        self.host = f"127.0.0.1:{self.proxy.address[1]}"
        self.clock = system.folder / f"clock{number}"
        env = {**system.env, **self.door.environment, **clock.environment(self.clock)}
        flags = ["--replSet", "rs0", "--log", "s3://bucket/set", "--host", self.host]
        flags += ["--setParameter", "transactionLifetimeLimitSeconds=3", "--logCheckpoints", "100"]
        self.server = Server(system.folder / f"member{number}", *flags, env=env, port=self.address[1])
        self.was_said = ""
        self.starting = None

    def start(self):
        """Begins to start it. A member waits for the store."""
        if self.server.is_running or (self.starting is not None and self.starting.is_alive()):
            return
        self.starting = threading.Thread(target=self._start, daemon=True)
        self.starting.start()

    def _start(self):
        try:
            self.server.start()
        except DidNotStart as failure:
            # Killed meanwhile, or for a reason that whoever waits for it will tell.
            self.was_said += f"{failure}\n"

    def started(self):
        if self.starting is not None:
            self.starting.join()
            self.starting = None

    def signal(self, how):
        if self.server.is_running:
            self.server.process.send_signal(how)
            if how == signal.SIGTERM:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.server.process.wait(30)
                self.kill()

    def kill(self):
        while self.server.is_running or (self.starting is not None and self.starting.is_alive()):
            # It may be about to start.
            if self.server.is_running:
                self.server.process.kill()
                self.server.process.wait()
            time.sleep(0.01)
        self.started()
        if self.server.process is not None:
            self.was_said += self.server.said()
            self.server.log.truncate(0)

    def end(self):
        if self.server.process is not None:
            self.signal(signal.SIGCONT)
            self.kill()
        self.proxy.stop()

    def said(self):
        """What its log says of more than connections."""
        lines = (self.was_said + self.server.said()).splitlines()
        lines = [line for line in lines if '"c":"NETWORK"' not in line and '"c":"COMMAND"' not in line]
        return "\n".join([self.host, *lines[-40:]])

    def set_clock(self, seconds):
        self.clock.write_text(str(seconds))

    def direct(self):
        """A client past the proxy."""
        return pymongo.MongoClient(
            *self.address, directConnection=True, serverSelectionTimeoutMS=700, connectTimeoutMS=700, socketTimeoutMS=20_000
        )

    def hello(self):
        if not self.server.is_running:
            return {}
        try:
            with pymongo.timeout(1), self.direct() as client:
                return client.admin.command("hello")
        except PyMongoError:
            return {}

    def hashes(self):
        try:
            with self.direct() as client:
                return client.histories.command("dbHash")["collections"]
        except PyMongoError as error:
            return {"error": str(error)}


class Causal(threading.Thread):
    """Writes a number that only grows and reads it in the same causally consistent session from any member: what it wrote, and what it saw
    before, is there. A second session that is told the times of the first sees the same."""

    def __init__(self, client, number, seed, stop):
        super().__init__(daemon=True, name=f"causal{number}")
        self.client = client
        self.key = f"causal {number}"
        self.dice = random.Random(f"{seed} {self.key}")
        self.stop = stop
        self.reads = 0
        self.found = []
        self.problem = None

    def run(self):
        try:
            number = 0
            while not self.stop.is_set():
                with self.client.start_session(causal_consistency=True) as one, self.client.start_session() as two:
                    least = 0
                    for _ in range(20):
                        number += 1
                        least = self._round(one, two, number, least)
        except Exception as problem:  # noqa: BLE001: reported by the main thread
            self.problem = problem

    def _round(self, one, two, number, least):
        if self.stop.is_set():
            return least
        numbers = self.client.causal.get_collection("numbers", write_concern=WriteConcern("majority"))
        near = numbers.with_options(read_preference=Nearest(), read_concern=ReadConcern("majority"))
        try:
            numbers.update_one({"_id": self.key}, {"$max": {"n": number}}, upsert=True, session=one)
            least = number
        except (ConnectionFailure, OperationFailure) as error:
            expect(error)
        for session in (one, two):
            try:
                found = near.find({"_id": self.key}, session=session).limit(-1)
                seen = next((document["n"] for document in found), 0)
            except (ConnectionFailure, OperationFailure) as error:
                expect(error)
                continue
            self.reads += 1
            if seen < least:
                where = f"{self.key} at {found.address} after {session.operation_time}"
                self.found.append(("causal read", f"{where} is {seen}, and it was {least}"))
            least = seen
            if session is one and one.operation_time is not None:
                two.advance_cluster_time(one.cluster_time)
                two.advance_operation_time(one.operation_time)
        return least
