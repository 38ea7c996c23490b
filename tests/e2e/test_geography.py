"""Geographic indexes with a driver: the nearest first, over several batches, after a restart, and checked on disk."""

import math
import random

from harness import Server, check
from pymongo import GEO2D, GEOSPHERE


def point(lng, lat):
    return {"type": "Point", "coordinates": [lng, lat]}


def metres(a, b):
    lng, lat = math.radians(a[0] - b[0]), math.radians(a[1] - b[1])
    h = math.sin(lat / 2) ** 2 + math.cos(math.radians(a[1])) * math.cos(math.radians(b[1])) * math.sin(lng / 2) ** 2
    return 2 * 6378100 * math.asin(math.sqrt(h))


def test_the_nearest_first(tmp_path):
    dice = random.Random(14)
    places = [(dice.uniform(9, 11), dice.uniform(44, 46)) for _ in range(500)]
    near = {"at": {"$near": {"$geometry": point(10, 45), "$maxDistance": 60_000}}}
    expected = sorted((metres(at, (10, 45)), i) for i, at in enumerate(places))
    expected = [i for far, i in expected if far <= 60_000]
    with Server(tmp_path / "data") as server:
        shops = server.client().test.shops
        # One index is there before the documents, the other one is built over them.
        shops.create_index([("at", GEOSPHERE)])
        shops.insert_many([{"_id": i, "at": point(*at), "flat": list(at)} for i, at in enumerate(places)])
        shops.create_index([("flat", GEO2D)], bits=20)
        assert [shop["_id"] for shop in shops.find(near, batch_size=7)] == expected
        assert shops.count_documents({"at": {"$geoWithin": {"$centerSphere": [[10, 45], 60 / 6378.1]}}}) == len(expected)
        assert server.stop() == 0
    check(tmp_path / "data")
    with Server(tmp_path / "data") as server:
        shops = server.client().test.shops
        shops.delete_one({"_id": expected[0]})
        shops.update_one({"_id": expected[1]}, {"$set": {"at": point(-170, -45)}})
        assert [shop["_id"] for shop in shops.find(near)] == expected[2:]
        stage = {"near": point(10, 45), "distanceField": "far", "key": "at"}
        first = next(shops.aggregate([{"$geoNear": stage}, {"$limit": 1}]))
        assert abs(first["far"] - metres(places[expected[2]], (10, 45))) < 0.01
        assert shops.find_one({"flat": {"$near": [-170, -45]}}, {"_id": 1}) is not None
        assert shops.database.validate_collection("shops")["valid"]
