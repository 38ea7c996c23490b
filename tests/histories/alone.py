"""One server as what an episode runs against: it is killed now and then."""

import contextlib
import random
import socket

import pymongo
from harness import Server, check
from proxy import Cuts, Proxy

CUTS = Cuts(
    request_lost=0.004, request_halved=0.002, reply_lost=0.008, reply_halved=0.002, client_gone=0.004, delayed=0.01,
    # A driver sends a commit twice: so that some outcomes stay unknown, both have to be cut.
    factors={"hello": 0, "isMaster": 0, "ismaster": 0, "commitTransaction": 15},
)  # fmt: skip


class Alone:
    is_set = False
    # How long it is left alone in between.
    every_s = (1.5, 6)

    def __init__(self, folder, seed, fault=None):
        self.env = {"NESTOR_FAULT": fault} if fault else {}
        # It comes back where the clients know it.
        self.server = Server(
            folder / "data", "--setParameter", "transactionLifetimeLimitSeconds=3", env=self.env, port=quiet_port()
        )
        self.seed = seed
        self.proxy = None
        self.kills = 0

    def __enter__(self):
        self.server.start()
        self.proxy = Proxy(self.server.address, CUTS, self.seed).start()
        return self

    def __exit__(self, *_):
        self.proxy.stop()
        self.server.__exit__()

    def client(self):
        return self.server.client()

    def connect(self, number, retries):
        """The client of a worker."""
        host, port = self.proxy.address if number % 2 else self.server.address
        return connect(host, port, retries=retries)

    def watchers(self, stop):
        """More that runs beside the workers, until `stop`."""
        return []

    def compact(self):
        self.client().histories.command("compact", "lists")

    def disturb(self, dice):
        self.server.kill()
        if not self.env:
            # With a deliberate fault, the history is to show it.
            check(self.server.dbpath)
        self.server.start()
        self.kills += 1

    def relent(self):
        """Nothing is disturbed any more."""

    def settle(self):
        """What is left of the workers' time is over."""
        self.disturb(None)

    def anomalies(self):
        """What is wrong and not in the history; the system is stopped in good order."""
        self.server.stop()
        return []

    @property
    def cuts(self):
        return sum(self.proxy.fates.values())

    def summary(self):
        return f"{self.kills} kills, cuts {self.cuts}"


def quiet_port():
    """A free port that the system gives nobody: a client that connects to one of those while nobody listens may be given it as
    its own, and then it talks to itself, and the server cannot come back."""
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def connect(host, port, retries):
    return pymongo.MongoClient(
        host, port, directConnection=True, serverSelectionTimeoutMS=15_000, socketTimeoutMS=20_000, maxPoolSize=2,
        heartbeatFrequencyMS=1000, retryWrites=retries,
    )  # fmt: skip
