"""Follows everything by a change stream, and begins anew from its last token now and then, as after cuts and restarts."""

import random
import threading

from client import expect
from events import Event
from pymongo.errors import ConnectionFailure, OperationFailure

# An insert that tells followers that nothing more comes.
END = "end"


class Follower(threading.Thread):
    """Follows the database `histories` from the operation time `since` until an insert into its collection `END`.

    `problem` is an error that nobody expected.
    """

    def __init__(self, client, since, seed):
        super().__init__(daemon=True, name="follower")
        self.client = client
        self.db = client.histories
        self.since = since
        self.dice = random.Random(f"{seed} follower")
        self.events = []
        self.resumes = 0
        self.token = None
        self.problem = None
        self.is_done = False

    def run(self):
        try:
            while not self.is_done:
                self._follow()
                self.resumes += 1
        except Exception as problem:  # noqa: BLE001: reported by the main thread
            self.problem = problem

    def _follow(self):
        """Until it is time to resume, or a connection ends for longer than the driver bears with."""
        start = {"start_at_operation_time": self.since}
        if self.token is not None:
            start = {self.dice.choice(["resume_after", "start_after"]): self.token}
        left = self.dice.randint(20, 400)
        try:
            with self.db.watch(max_await_time_ms=300, batch_size=self.dice.choice([0, 1, 10]), **start) as stream:
                while left > 0 and not self.is_done:
                    change = stream.try_next()
                    self.token = stream.resume_token
                    left -= 1
                    if change is not None:
                        self._note(change)
        except (ConnectionFailure, OperationFailure) as error:
            # Whatever came before has its token.
            expect(error)

    def _note(self, change):
        collection = change["ns"]["coll"]
        if collection == END:
            self.is_done = True
            return
        written = written_by(change)
        if written is None:
            return
        time = change["clusterTime"]
        txn = (bytes(change["lsid"]["id"]), change["txnNumber"]) if "txnNumber" in change else None
        self.events.append(Event(change["_id"]["_data"], (time.time, time.inc), *written, txn))


def written_by(change):
    """What a change wrote, in the terms of histories; None for what made the objects in the beginning."""
    collection, key = change["ns"]["coll"], change["documentKey"]["_id"]
    fields = change["fullDocument"] if "fullDocument" in change else change["updateDescription"]["updatedFields"]
    if collection == "members":
        return "set", fields["group"], key
    if collection == "unique":
        return "register", fields["key"], key
    kind, name = ("list", "last") if collection == "lists" else ("register", "v")
    return (kind, key, fields[name]) if name in fields else None
