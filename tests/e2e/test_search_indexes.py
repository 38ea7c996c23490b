"""Search indexes with a driver: exact for the snapshot that is read while others write, there again after a crash, and within their memory."""

import random
import threading
import time

import pymongo
import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

DYNAMIC = {"mappings": {"dynamic": True}}
VECTORS = {"fields": [{"type": "vector", "path": "v", "numDimensions": 2, "similarity": "euclidean"}, {"type": "filter", "path": "side"}]}


def text_index(collection, name="default", definition=DYNAMIC):
    collection.create_search_index(SearchIndexModel(definition=definition, name=name))


def vector_index(collection, name="vectors", definition=VECTORS):
    collection.create_search_index(SearchIndexModel(definition=definition, name=name, type="vectorSearch"))


def ids(collection, *stages):
    return [doc["_id"] for doc in collection.aggregate(list(stages))]


def text(query, path="text", **options):
    return {"$search": {"text": {"query": query, "path": path}, **options}}


def nearest(vector, limit, **options):
    return {"$vectorSearch": {"index": "vectors", "path": "v", "queryVector": vector, "limit": limit, "exact": True, **options}}


def test_what_is_written_is_found_at_once(db):
    c = db.c
    c.insert_one({"_id": 1, "text": "a quick fox", "v": [0.0, 0.0]})
    text_index(c)
    vector_index(c)
    assert ids(c, text("fox")) == [1]
    assert ids(c, nearest([1.0, 1.0], 5)) == [1]
    c.insert_one({"_id": 2, "text": "two foxes and a fox", "v": [1.0, 1.0]})
    assert sorted(ids(c, text("fox"))) == [1, 2]
    assert ids(c, nearest([1.0, 1.0], 5)) == [2, 1]
    c.update_one({"_id": 1}, {"$set": {"text": "a slow turtle", "v": [2.0, 2.0]}})
    assert ids(c, text("fox")) == [2]
    assert ids(c, text("turtle")) == [1]
    assert ids(c, nearest([3.0, 3.0], 1)) == [1]
    c.delete_one({"_id": 2})
    assert ids(c, text("fox")) == []
    assert ids(c, nearest([1.0, 1.0], 5)) == [1]
    c.delete_many({})
    assert ids(c, text("turtle")) == []


def test_searches_see_one_snapshot_while_others_write(db):
    """Pairs of documents of which always one is on the left: transactions move them. Each search has to find one of each pair."""
    c, pairs = db.c, 40
    for pair in range(pairs):
        c.insert_many([side(pair, 0, "left"), side(pair, 1, "right")])
    text_index(c)
    vector_index(c)
    stop, failures, searches = threading.Event(), [], [0]

    def write(seed):
        dice = random.Random(seed)
        client = c.database.client
        while not stop.is_set():
            pair = dice.randrange(pairs)

            def swap(session, pair=pair):
                where = {doc["_id"]: doc["side"] for doc in c.find({"pair": pair}, session=session)}
                for number in (0, 1):
                    name = f"{pair}-{number}"
                    other = {"left": "right", "right": "left"}[where[name]]
                    c.replace_one({"_id": name}, side(pair, number, other), session=session)

            with client.start_session() as session:
                session.with_transaction(swap)

    def search(seed):
        dice = random.Random(seed)
        while not stop.is_set():
            stages = dice.choice([
                [text("left")],
                [nearest([0.0, 0.0], 2 * pairs, filter={"side": "left"})],
                # The documents are read at the same snapshot as the index.
                [nearest([-1.0, -1.0], pairs), {"$match": {"side": "left"}}],
                [text("left"), {"$lookup": {"from": c.name, "pipeline": [text("left"), {"$count": "n"}], "as": "same"}},
                 {"$match": {"same.0.n": pairs, "side": "left"}}],
            ])
            found = [doc["pair"] for doc in c.aggregate(stages)]
            searches[0] += 1
            if sorted(found) != list(range(pairs)):
                failures.append((stages, sorted(found)))
                stop.set()

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    threads += [threading.Thread(target=search, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while searches[0] < 120 and not stop.is_set() and time.monotonic() < deadline:
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures and searches[0] >= 20


def side(pair, number, name):
    return {"_id": f"{pair}-{number}", "pair": pair, "side": name, "text": f"the {name} one", "v": [-1.0, -1.0] if name == "left" else [1.0, 1.0]}


def test_an_older_snapshot_finds_what_it_shows(start):
    server = start()
    client = server.client()
    c = client.test.c
    c.insert_many([{"_id": n, "text": "old"} for n in range(5)])
    text_index(c)
    assert len(ids(c, text("old"))) == 5
    # The cursor of an aggregate that began before goes on with its own list of documents.
    cursor = c.aggregate([text("old"), {"$project": {"text": 1}}], batchSize=2)
    first = [next(cursor)["_id"], next(cursor)["_id"]]
    c.delete_one({"_id": 4})
    c.insert_one({"_id": 9, "text": "old"})
    rest = [doc["_id"] for doc in cursor]
    assert sorted(first + rest) in ([0, 1, 2, 3], [0, 1, 2, 3, 4])
    with client.start_session() as session:
        session.start_transaction()
        with pytest.raises(OperationFailure) as refused:
            list(c.aggregate([text("old")], session=session))
        session.abort_transaction()
    assert refused.value.code == 263


def test_an_index_is_there_after_a_crash(start, tmp_path):
    server = start(tmp_path / "data")
    c = server.client().test.c
    journaled = c.with_options(write_concern=pymongo.WriteConcern(w=1, j=True))
    journaled.insert_many([{"_id": n, "text": "fox" if n % 3 == 0 else "turtle", "v": [float(n), 0.0]} for n in range(300)])
    text_index(journaled)
    vector_index(journaled)
    assert len(ids(c, text("fox"))) == 100
    server.kill()
    c = start(tmp_path / "data").client().test.c
    assert [index["name"] for index in c.list_search_indexes()] == ["default", "vectors"]
    assert len(ids(c, text("fox"))) == 100
    assert ids(c, nearest([7.2, 0.0], 2)) == [7, 8]
    # Another definition is another index, and what is dropped is gone.
    c.update_search_index("default", {"mappings": {"dynamic": False, "fields": {"other": {"type": "string"}}}})
    assert ids(c, text("fox")) == []
    c.drop_search_index("default")
    assert ids(c, text("fox")) == []
    assert [index["name"] for index in c.list_search_indexes()] == ["vectors"]
    c.drop()
    assert ids(c, nearest([7.2, 0.0], 2)) == []


def test_rights(start):
    server = start(None, "--auth")
    admin = server.client().admin
    admin.command("createUser", "root", pwd="p", roles=["root"])
    root = server.client(username="root", password="p")
    root.test.c.insert_one({"_id": 1, "text": "fox"})
    text_index(root.test.c)
    root.test.command("createUser", "reader", pwd="p", roles=["read"])
    root.test.command("createUser", "stranger", pwd="p", roles=[{"role": "read", "db": "other"}])
    reader = server.client(username="reader", password="p", authSource="test").test.c
    assert ids(reader, text("fox")) == [1]
    assert len(list(reader.list_search_indexes())) == 1
    for call in (lambda: text_index(reader, "mine"), lambda: reader.drop_search_index("default")):
        with pytest.raises(OperationFailure) as refused:
            call()
        assert refused.value.code == 13
    stranger = server.client(username="stranger", password="p", authSource="test").test.c
    for call in (lambda: ids(stranger, text("fox")), lambda: list(stranger.list_search_indexes())):
        with pytest.raises(OperationFailure) as refused:
            call()
        assert refused.value.code == 13


def test_synonyms_are_those_that_their_collection_has_now(db):
    c = db.c
    c.insert_many([{"_id": 1, "text": "a car"}, {"_id": 2, "text": "an automobile"}, {"_id": 3, "text": "a bicycle"}])
    mapping = {"name": "words", "source": {"collection": "words"}, "analyzer": "lucene.standard"}
    text_index(c, definition=DYNAMIC | {"synonyms": [mapping]})
    asked = {"$search": {"text": {"query": "car", "path": "text", "synonyms": "words"}}}
    assert ids(c, asked) == [1]
    db.words.insert_one({"mappingType": "equivalent", "synonyms": ["car", "automobile"]})
    assert sorted(ids(c, asked)) == [1, 2]
    assert ids(c, text("car")) == [1]
    db.words.insert_one({"mappingType": "explicit", "input": ["bike"], "synonyms": ["bicycle"]})
    assert ids(c, {"$search": {"text": {"query": "bike", "path": "text", "synonyms": "words"}}}) == [3]
    db.words.insert_one({"mappingType": "other"})
    with pytest.raises(OperationFailure) as refused:
        ids(c, asked)
    assert refused.value.code == 8


def test_highlights_and_tokens_are_of_the_documents_that_are_given(db):
    c = db.c
    c.insert_many([{"_id": number, "text": "fox " * number} for number in range(1, 6)])
    text_index(c)
    asked = {"text": {"query": "fox", "path": "text"}, "highlight": {"path": "text"}}
    shown = {"$project": {"found": {"$meta": "searchHighlights"}, "token": {"$meta": "searchSequenceToken"}}}
    first = list(c.aggregate([{"$search": asked}, {"$limit": 2}, shown]))
    assert [doc["found"][0]["texts"][0] for doc in first] == [{"value": "fox", "type": "hit"}] * 2
    after = ids(c, {"$search": asked | {"searchAfter": first[-1]["token"]}})
    assert [doc["_id"] for doc in first] + after == ids(c, {"$search": asked})
