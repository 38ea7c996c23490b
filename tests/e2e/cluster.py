"""A replica set of several processes on this machine, over a log in a directory or an S3 server."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid

import harness
import pymongo
import pytest

SET = "rs0"
PATIENCE_S = 60


def needs_cluster(tmp_path):
    """Skips the test where the binary has no log of a replica set; CI builds one that has."""
    probe = [harness.BIN, "serve", "--port", "0", "--nounixsocket", "--dbpath", str(tmp_path / "probe")]
    said = subprocess.run(probe + ["--log", "nowhere", "--host", "a:1"], capture_output=True, text=True)
    if "this build has no log" in said.stderr + said.stdout:
        if os.environ.get("NESTOR_CI"):
            pytest.fail("the binary is built without the feature cluster, and CI leaves nothing out")
        pytest.skip("the binary is built without --features cluster")


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Set:
    """Members by number; `with Set(folder) as set:` starts them."""

    def __init__(self, folder, size=3, log=None, flags=(), env=None):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        # A store of one's own, `s3://bucket/path`, with its credentials in the environment.
        named = os.environ.get("NESTOR_CLUSTER_LOG")
        self.log = log or (f"{named}/{uuid.uuid4()}" if named else f"file://{folder}/log")
        self.flags = flags
        self.env = env or {}
        # Of members that start from now on.
        self.binary = harness.BIN
        self.ports = [free_port() for _ in range(size)]
        self.members = [None] * size
        self.clients = []

    def __enter__(self):
        for at in range(len(self.ports)):
            self.start(at)
        # The primary learns of them within a second.
        begun = time.monotonic()
        while len(self.hello(self.primary()).get("hosts", [])) < len(self.ports):
            assert time.monotonic() - begun < PATIENCE_S
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        for member in self.members:
            if member is not None and member.process is not None:
                # One that is stopped cannot end by itself.
                if member.is_running:
                    member.process.send_signal(signal.SIGCONT)
                member.kill()

    @property
    def hosts(self):
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start(self, at):
        host = self.hosts[at]
        flags = ["--replSet", SET, "--log", self.log, "--host", host, *self.flags]
        # One environment for all, or one for each.
        env = self.env[at] if isinstance(self.env, list) else self.env
        member = harness.Server(self.folder / f"member{at}", *flags, port=self.ports[at], env=env, binary=self.binary)
        self.members[at] = member.start()

    def kill(self, at):
        self.members[at].kill()

    def client(self, **options):
        uri = f"mongodb://{','.join(self.hosts)}/?replicaSet={SET}"
        client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=PATIENCE_S * 1000, **options)
        self.clients.append(client)
        return client

    def direct(self, at, **options):
        """A client of one member, whatever it is."""
        options = {"directConnection": True, "serverSelectionTimeoutMS": PATIENCE_S * 1000, **options}
        client = pymongo.MongoClient(f"mongodb://{self.hosts[at]}/", **options)
        self.clients.append(client)
        return client

    def hello(self, at):
        try:
            with pymongo.MongoClient(
                f"mongodb://{self.hosts[at]}/",
                directConnection=True,
                serverSelectionTimeoutMS=500,
                connectTimeoutMS=500,
                socketTimeoutMS=1000,
            ) as client:
                return client.admin.command("hello")
        except pymongo.errors.PyMongoError:
            return {}

    def primary(self, but=None):
        """Waits for a primary, another one than `but`."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE_S:
            for at in range(len(self.members)):
                if at != but and self.members[at] is not None and self.members[at].is_running:
                    if self.hello(at).get("isWritablePrimary"):
                        return at
            time.sleep(0.05)
        raise AssertionError("nobody is primary")

    def wait_equal(self, collection, at_least=None):
        """Waits until all members that run show the same documents, and returns these."""
        begun = time.monotonic()
        while True:
            seen = []
            for at, member in enumerate(self.members):
                if member is None or not member.is_running:
                    continue
                try:
                    with pymongo.MongoClient(
                        f"mongodb://{self.hosts[at]}/", directConnection=True, serverSelectionTimeoutMS=2000
                    ) as client:
                        seen.append(list(client.test[collection].find().sort("_id", 1)))
                except pymongo.errors.PyMongoError:
                    seen.append(None)
            if all(documents == seen[0] for documents in seen) and seen[0] is not None:
                return seen[0]
            if time.monotonic() - begun > PATIENCE_S:
                raise AssertionError([None if s is None else len(s) for s in seen])
            time.sleep(0.1)
