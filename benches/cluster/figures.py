"""Figures of a replica set of three members on this machine (docs/cluster.md).

    NESTOR_BIN=target/release/nestor python benches/cluster/figures.py [--failovers 200] [--log file] [--only failovers,commits]

The log is in a double of S3 in memory (tests/e2e/s3.py), or with `--log file` in a directory. Beside each figure stands what it is to be
compared with.
"""

import argparse
import concurrent.futures
import contextlib
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))

import cluster  # noqa: E402
import harness  # noqa: E402
import pymongo  # noqa: E402
from bson.codec_options import CodecOptions  # noqa: E402
from bson.raw_bson import RawBSONDocument  # noqa: E402
from pymongo.errors import PyMongoError  # noqa: E402
from pymongo.read_preferences import ReadPreference  # noqa: E402
from pymongo.write_concern import WriteConcern  # noqa: E402
from s3 import Store  # noqa: E402

RAW = CodecOptions(document_class=RawBSONDocument)
MAJORITY = WriteConcern(w="majority")


def shown(name, seconds, more=""):
    seconds = sorted(seconds)
    at = lambda share: seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1000  # noqa: E731
    print(f"{name:34} p50 {at(0.5):9.2f} ms   p99 {at(0.99):9.2f} ms   n {len(seconds)} {more}", flush=True)
    return at(0.5)


def timed(work, count):
    took = []
    for _ in range(count):
        begun = time.monotonic()
        work()
        took.append(time.monotonic() - begun)
    return took


def first_write(client):
    """Until a majority write is acknowledged."""
    begun = time.monotonic()
    things = client.test.get_collection("failovers", write_concern=MAJORITY)
    while True:
        try:
            things.insert_one({})
            return time.monotonic() - begun
        except PyMongoError:
            time.sleep(0.01)


def failovers(members, arguments):
    client = members.client(heartbeatFrequencyMS=500)
    took = []
    for _ in range(arguments.failovers):
        primary = members.primary()
        first_write(client)
        members.members[primary].process.send_signal(signal.SIGKILL)
        took.append(first_write(client))
        members.kill(primary)
        members.start(primary)
    shown("kill -9 to the first majority write", took)
    took = []
    for _ in range(20):
        first_write(client)
        begun = time.monotonic()
        with contextlib.suppress(PyMongoError):
            client.admin.command("replSetStepDown", 1)
        first_write(client)
        took.append(time.monotonic() - begun)
        time.sleep(2)
    shown("replSetStepDown to the first write", took)


def commits(members, arguments):
    client = members.client()
    put = None
    if arguments.store:
        url = f"{arguments.door.environment['AWS_ENDPOINT_URL']}/bucket/probe"
        send = lambda: urllib.request.urlopen(urllib.request.Request(url, data=b"x" * 500, method="PUT")).read()  # noqa: E731
        put = shown("one put of the store", timed(send, 200))
    for name, concern in [
        ("majority", MAJORITY),
        ("w: 1, j: true", WriteConcern(w=1, j=True)),
        ("w: 1", WriteConcern(w=1)),
        ("w: 2", WriteConcern(w=2)),
        ("w: 3", WriteConcern(w=3)),
    ]:
        things = client.test.get_collection("things", write_concern=concern)
        things.insert_one({"x": 1})
        # Members learn within a quarter of a second that somebody waits for them.
        timed(lambda: things.insert_one({"x": 1}), 5)  # noqa: B023
        took = timed(lambda: things.insert_one({"x": 1}), 200)  # noqa: B023
        shown(name, took, f"({put:.2f} ms for a put)" if put and name == "majority" else "")
    with tempfile.TemporaryDirectory() as folder, harness.Server(Path(folder) / "alone") as alone:
        things = alone.client().test.get_collection("things", write_concern=WriteConcern(w=1))
        things.insert_one({"x": 1})
        shown("w: 1 of a set of one", timed(lambda: things.insert_one({"x": 1}), 1000))
    things = client.test.get_collection("things", write_concern=WriteConcern(w=1))
    shown("w: 1 again", timed(lambda: things.insert_one({"x": 1}), 1000))
    uri = f"mongodb://{','.join(members.hosts)}/?replicaSet={cluster.SET}"
    rates = {}
    for threads in (1, 16):
        with concurrent.futures.ProcessPoolExecutor(min(4, threads)) as pool:
            processes = min(4, threads)
            work = [pool.submit(insert_for, uri, threads // processes, 5) for _ in range(processes)]
            rates[threads] = sum(done.result() for done in work) / 5
    print(f"majority: {rates[1]:.0f}/s with one client, {rates[16]:.0f}/s with 16: {rates[16] / rates[1]:.1f} times", flush=True)


def insert_for(uri, threads, seconds):
    client = pymongo.MongoClient(uri)
    things = client.test.get_collection("things", write_concern=MAJORITY)
    things.insert_one({"x": 1})
    end = time.monotonic() + seconds

    def run():
        count = 0
        while time.monotonic() < end:
            things.insert_one({"x": 1})
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return sum(done.result() for done in [pool.submit(run) for _ in range(threads)])


def reads(members, arguments):
    client = members.client()
    client.test.reads.with_options(write_concern=WriteConcern(w=3)).insert_many([{"_id": n} for n in range(1000)])
    primary = members.primary()
    p50 = {}
    for _ in range(2):
        for name, at in [("primary", primary), ("secondary", (primary + 1) % 3)]:
            things = members.direct(at).test.get_collection("reads", read_preference=ReadPreference.PRIMARY_PREFERRED)
            things.find_one({"_id": 1})
            p50[name] = shown(f"find by _id, {name}", timed(lambda: things.find_one({"_id": 500}), 2000))  # noqa: B023
    print(f"secondary / primary: {p50['secondary'] / p50['primary']:.3f}")


def lag(members, arguments):
    """5,000 documents a second, a hundred at a time."""
    client = members.client()
    things = client.test.get_collection("lag", write_concern=WriteConcern(w=1))
    things.insert_one({"t": time.monotonic()})
    primary = members.primary()
    near = members.direct((primary + 1) % 3).test.lag
    stop = threading.Event()
    seen = []

    def watch():
        last = 0
        while not stop.is_set():
            newest = near.find_one(sort=[("$natural", -1)])
            now = time.monotonic()
            if newest and newest["t"] != last:
                last = newest["t"]
                seen.append(now - last)
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    begun, written = time.monotonic(), 0
    watcher.start()
    while time.monotonic() - begun < 20:
        at = time.monotonic()
        things.insert_many([{"t": at, "n": n, "text": "x" * 100} for n in range(100)])
        written += 100
        time.sleep(max(0, begun + written / 5000 - time.monotonic()))
    stop.set()
    watcher.join()
    rate = written / (time.monotonic() - begun)
    shown("lag of what a secondary shows", seen[10:], f"at {rate:.0f} documents/s")
    print(f"  median {statistics.median(seen) * 1000:.0f} ms")


def beginning(members, arguments):
    """How long a new member takes with so much data, beside writing as much to the disk."""
    client = members.client()
    # Those who write faster than the double takes the log keep it from renewing the lease.
    things = client.test.get_collection("things", write_concern=MAJORITY)
    pad = random.Random(1)
    documents = int(arguments.gigabytes * 1e9 / 1000)
    for first in range(0, documents, 1_000):
        things.insert_many([{"_id": n, "text": pad.randbytes(950)} for n in range(first, min(documents, first + 1_000))])
    client.test.get_collection("things", write_concern=WriteConcern(w=2)).insert_one({})
    new = (members.primary() + 1) % 2
    records = lambda: sum("/records/checkpoints/" in path for path in list(arguments.store.objects))  # noqa: E731
    begun = time.monotonic()
    while not records():
        time.sleep(0.2)
    print(f"the first checkpoint was whole after {time.monotonic() - begun:.1f} s more", flush=True)
    uploaded = sum(len(entry[0]) for path, entry in list(arguments.store.objects.items()) if "/files/" in path)
    members.kill(new)
    folder = members.members[new].dbpath
    shutil.rmtree(folder)
    begun = time.monotonic()
    with open(folder.parent / "probe", "wb") as probe:
        noise = os.urandom(1 << 20)
        for _ in range(uploaded >> 20):
            probe.write(noise)
        os.fsync(probe.fileno())
    disk = time.monotonic() - begun
    (folder.parent / "probe").unlink()
    begun = time.monotonic()
    members.start(new)
    took = time.monotonic() - begun
    there = members.direct(new).test.things.estimated_document_count()
    print(
        f"a new member with {uploaded / 1e9:.2f} GB of a checkpoint and {there} documents accepts clients after {took:.1f} s;"
        f" writing as much to the disk takes {disk:.1f} s",
        flush=True,
    )
    # The same by way of documents: what a member would do that reads those of another one.
    with harness.Server(folder.parent / "copied") as server:
        to = server.client().test.get_collection("things", codec_options=RAW)
        begun = time.monotonic()
        reading = members.direct(new).test.get_collection("things", codec_options=RAW)
        many = []
        for document in reading.find(batch_size=10_000):
            many.append(document)
            if len(many) == 10_000:
                to.insert_many(many, ordered=False)
                many = []
        if many:
            to.insert_many(many, ordered=False)
        print(f"copying the documents with PyMongo to a single node takes {time.monotonic() - begun:.1f} s", flush=True)
    shutil.rmtree(server.dbpath)
    # Another checkpoint after a thousandth of the documents has changed.
    known = records()
    sizes = {path: len(entry[0]) for path, entry in list(arguments.store.objects.items()) if "/files/" in path}
    for n in range(0, documents, 1_000):
        things.update_one({"_id": n}, {"$set": {"text": pad.randbytes(950)}})
    client.admin.command("fsync", 1)
    begun = time.monotonic()
    while records() == known and time.monotonic() - begun < 120:
        things.insert_one({})
    more = sum(len(entry[0]) for path, entry in list(arguments.store.objects.items()) if "/files/" in path and path not in sizes)
    print(f"the next checkpoint, after {documents // 1000} of them were changed, uploads {more / 1e6:.0f} MB", flush=True)


def indexes(members, arguments):
    """What an index costs the log, and how far behind the others are when the primary has built it."""
    client = members.client()
    things = client.test.get_collection("things", write_concern=WriteConcern(w=1))
    documents = int(arguments.gigabytes * 1e9 / 1000)
    for first in range(0, documents, 2_000):
        many = range(first, min(documents, first + 2_000))
        things.insert_many([{"_id": n, "x": n * 7919 % documents, "text": f"{n:07}" * 134} for n in many])
    third = client.test.get_collection("things", write_concern=WriteConcern(w=3))
    third.insert_one({"_id": "before"})
    for keys in ([("x", 1)], [("x", 1), ("_id", 1)]):
        time.sleep(3)
        sent = arguments.door.bytes["PUT"]
        begun = time.monotonic()
        things.create_index(keys)
        built = time.monotonic() - begun
        third.insert_one({"_id": str(keys)})
        everywhere = time.monotonic() - begun
        time.sleep(1)
        sent = arguments.door.bytes["PUT"] - sent
        print(f"an index over {documents} documents: {sent / 1e6:.2f} MB to the store, built after {built:.2f} s, everywhere {everywhere - built:.2f} s later", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failovers", type=int, default=200)
    parser.add_argument("--log", choices=["s3", "file"], default="s3")
    parser.add_argument("--delay-ms", type=float, default=0, help="each request to the store takes so much longer")
    parser.add_argument("--only", default="commits,reads,lag,failovers", help="also: beginning, indexes")
    parser.add_argument("--gigabytes", type=float, default=2, help="data of the set that a new member comes to")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        arguments.store = stack.enter_context(Store()) if arguments.log == "s3" else None
        arguments.door = arguments.store and arguments.store.door()
        if arguments.door:
            arguments.door.faults.delay_s = arguments.delay_ms / 1000
        env = arguments.door.environment if arguments.door else {}
        log = "s3://bucket/set" if arguments.door else None
        for name in arguments.only.split(","):
            below = folder / name
            below.mkdir()
            # The first checkpoint is due when all documents are there.
            commits = str(int(arguments.gigabytes * 1000))
            flags = ["--logCheckpoints", commits, "--oplogSize", "990"] if name == "beginning" else []
            # Of as many gigabytes there is to be room for two.
            size = 2 if name == "beginning" else 3
            with cluster.Set(below, size, log=f"{log}-{name}" if log else None, env=env, flags=flags) as members:
                globals()[name](members, arguments)


if __name__ == "__main__":
    main()
