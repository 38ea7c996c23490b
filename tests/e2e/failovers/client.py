"""PyMongo through failovers, as test_failovers.py says: client.py URI NAME, until standard input ends."""

import json
import sys
import threading
import time

import pymongo
from pymongo.errors import PyMongoError

PATIENCE_S = 60


def main():
    uri, name = sys.argv[1:]
    client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=PATIENCE_S * 1000)
    db = client.failovers
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    db.counters.insert_one({"_id": name, "n": 0})
    db.accounts.insert_many([{"_id": f"{name} {side}", "n": 0} for side in "ab"])
    seen, is_open = [], threading.Event()
    threading.Thread(target=watch, args=(db.things, name, seen, is_open), daemon=True).start()
    assert is_open.wait(PATIENCE_S)
    print("running", flush=True)
    acknowledged, unknown, increments, lost, moved, at = [], 0, 0, 0, 0, 0
    while not stop.is_set():
        at += 1
        try:
            db.things.insert_one({"_id": f"{name} {at}", "by": name})
            acknowledged.append(f"{name} {at}")
        except PyMongoError as error:
            unknown += 1
            print(f"{name} insert: {error}", file=sys.stderr)
        try:
            db.counters.update_one({"_id": name}, {"$inc": {"n": 1}})
            increments += 1
        except PyMongoError as error:
            lost += 1
            print(f"{name} update: {error}", file=sys.stderr)
        if at % 5 == 0:

            def move(session):
                db.accounts.update_one({"_id": f"{name} a"}, {"$inc": {"n": -1}}, session=session)
                db.accounts.update_one({"_id": f"{name} b"}, {"$inc": {"n": 1}}, session=session)

            with client.start_session() as session:
                session.with_transaction(move)
            moved += 1
    begun = time.monotonic()
    while acknowledged and acknowledged[-1] not in seen and time.monotonic() - begun < PATIENCE_S:
        time.sleep(0.05)
    there = {found["_id"] for found in db.things.find({"by": name})}
    accounts = [db.accounts.find_one({"_id": f"{name} {side}"})["n"] for side in "ab"]
    print(
        json.dumps(
            {
                "acknowledged": len(acknowledged),
                "unknown": unknown,
                "missing": [one for one in acknowledged if one not in there],
                "unseen": [one for one in acknowledged if one not in seen],
                "seenTwice": len(seen) - len(set(seen)),
                "increments": increments,
                "unknownIncrements": lost,
                "counter": db.counters.find_one({"_id": name})["n"],
                "moved": moved,
                "accounts": accounts,
            }
        ),
        flush=True,
    )


def watch(things, name, seen, is_open):
    """Change streams resume by themselves once; after that with their token."""
    token = None
    while True:
        try:
            with things.watch([{"$match": {"fullDocument.by": name}}], resume_after=token) as stream:
                is_open.set()
                while True:
                    change = stream.try_next()
                    token = stream.resume_token or token
                    if change is not None:
                        seen.append(change["fullDocument"]["_id"])
        except PyMongoError as error:
            print(f"{name} watch: {error}", file=sys.stderr)


main()
