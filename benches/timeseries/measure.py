"""What time series cost: inserts in batches, the size of buckets, and averages by windows of time, in processor time of the server.

    nestor serve --port 28000 --dbpath DIR --nounixsocket &
    python3 benches/timeseries/measure.py --uri mongodb://localhost:28000 --pid $! --points 10000000

With --plain the points are ordinary documents that are read by columns, for comparison.

Needs pymongo. A point is `{t, m: {sensor}, v}`, a temperature with one decimal, a second after the one before of its sensor. Each figure is processor
time of the server's process, user and system, so that other work on the machine counts little.
"""

import argparse
import os
import random
import time
from datetime import datetime, timedelta

import bson
import pymongo
from bson.raw_bson import RawBSONDocument

TICKS = os.sysconf("SC_CLK_TCK")
BEGIN = datetime(2024, 1, 1)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Measured:
    """Processor time of the server, or the time that passed when nobody says which process it is."""

    def __init__(self, pid):
        self.now = (lambda: cpu_s(pid)) if pid else time.monotonic

    def __enter__(self):
        self.begun = self.now()
        return self

    def __exit__(self, *_):
        self.took_s = self.now() - self.begun


def points(count, sensors):
    """Points in the order of their times: each sensor reports each second."""
    dice = random.Random(14)
    values = [20.0] * sensors
    for at in range(count):
        sensor = at % sensors
        values[sensor] = round(values[sensor] + dice.choice((-0.1, 0, 0, 0.1)), 1)
        yield {"t": BEGIN + timedelta(seconds=at // sensors), "m": {"sensor": sensor}, "v": values[sensor]}


def insert(coll, documents, batch, measured):
    sent, took_s, rows_bytes, held = 0, 0.0, 0, []

    def send():
        nonlocal took_s
        with measured as one:
            coll.insert_many(held, ordered=False)
        took_s += one.took_s
        held.clear()

    for document in documents:
        document["_id"] = bson.ObjectId()
        raw = RawBSONDocument(bson.encode(document))
        rows_bytes += len(raw.raw)
        held.append(raw)
        sent += 1
        if len(held) == batch:
            send()
    if held:
        send()
    return sent, took_s, rows_bytes


QUERIES = {
    "a day's average per sensor": [
        {"$group": {"_id": {"s": "$m.sensor", "d": {"$dateTrunc": {"date": "$t", "unit": "day"}}}, "avg": {"$avg": "$v"}}},
    ],
    "an hour's least, most and count per sensor": [
        {"$group": {
            "_id": {"s": "$m.sensor", "d": {"$dateTrunc": {"date": "$t", "unit": "hour"}}},
            "low": {"$min": "$v"}, "high": {"$max": "$v"}, "n": {"$sum": 1},
        }},
    ],
    "a minute's average per sensor": [
        {"$group": {"_id": {"s": "$m.sensor", "d": {"$dateTrunc": {"date": "$t", "unit": "minute"}}}, "avg": {"$avg": "$v"}}},
    ],
    "a day's average per sensor, of half the time": [
        {"$match": {"t": {"$gte": None}}},
        {"$group": {"_id": {"s": "$m.sensor", "d": {"$dateTrunc": {"date": "$t", "unit": "day"}}}, "avg": {"$avg": "$v"}}},
    ],
}


def make_columns(db):
    pipeline = [{"$group": {"_id": "$m.sensor"}}]
    explain = {"aggregate": "series", "pipeline": pipeline, "cursor": {}}
    while "COLUMN_SCAN" not in str(db.command("explain", explain, verbosity="queryPlanner")):
        list(db.series.aggregate(pipeline))
        time.sleep(0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--pid", type=int, help="the server's process; without it time that passes is measured")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--sensors", type=int, default=100)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="use the points that are there, and leave them")
    parser.add_argument("--plain", action="store_true", help="points are ordinary documents, read by columns")
    options = parser.parse_args()
    db = pymongo.MongoClient(options.uri).timeseries_bench
    measured = Measured(options.pid)
    if not options.keep:
        db.drop_collection("series")
        if not options.plain:
            db.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})
        sent, took_s, rows_bytes = insert(db.series, points(options.points, options.sensors), options.batch, measured)
        print(f"insert, batches of {options.batch}: {sent / took_s:,.0f} points/s ({took_s * 1e6 / sent:.2f} us each)")
        if options.plain:
            print("restart the server, so that all is on disk, and go on with --plain --keep")
            return
        buckets = db.command("collStats", "series")
        print(f"buckets: {buckets['size'] / rows_bytes:.1%} of the documents' bytes, {buckets['timeseries']['bucketCount']} of them")
    elif options.plain:
        make_columns(db)
        columns = db.command("serverStatus")["nestor"]["columns"]
        print(f"columns: {columns['diskBytes'] / db.command('collStats', 'series')['size']:.1%} of the documents' bytes")
    count = options.points
    middle = BEGIN + timedelta(seconds=count // options.sensors // 2)
    for name, pipeline in QUERIES.items():
        pipeline = [{"$match": {"t": {"$gte": middle}}} if "$match" in stage else stage for stage in pipeline]
        best = None
        for _ in range(options.rounds):
            with measured as one:
                groups = list(db.series.aggregate(pipeline, batchSize=100_000))
            best = min(best or one.took_s, one.took_s)
        looked_at = count // 2 if "half" in name else count
        print(f"{name}: {looked_at / max(best, 1 / TICKS):,.0f} points/s ({len(groups)} groups)")
    if not options.keep:
        db.drop_collection("series")


if __name__ == "__main__":
    main()
