"""`nestor import`: formats, modes, bad records."""

import datetime
import gzip
import json

import bson
import pytest
from bson import Decimal128, Int64, ObjectId
from harness import ROOT, run


@pytest.fixture
def load(server, db, tmp_path):
    def load(name, content, *flags, ok=True):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        done = run("import", path, "--into", f"{db.name}.c", "--uri", server.uri, *flags)
        assert (done.returncode == 0) == ok, done.stdout
        return done.stdout

    return load


def stored(db):
    return list(db.c.find().sort("_id", 1))


def test_ndjson(load, db):
    said = load("a.ndjson", '{"_id":1,"a":{"b":[1,2.5,null,true]}}\n\n{"_id":2}\r\n{"_id":3,"x":"ü"}')
    assert stored(db) == [{"_id": 1, "a": {"b": [1, 2.5, None, True]}}, {"_id": 2}, {"_id": 3, "x": "ü"}]
    assert "3" in said


def test_json_array_and_concatenated_documents(load, db):
    load("a.json", ' [ {"_id": 1,\n "a": "]"} ,\n {"_id": 2} ]\n')
    load("b.json", '{"_id": 3,\n  "a": {"b":\n 1}}\n{"_id": 4}{"_id": 5}')
    assert [d["_id"] for d in stored(db)] == [1, 2, 3, 4, 5]


def test_byte_order_mark(load, db):
    load("a.json", b"\xef\xbb\xbf" + b'{"_id": 1}')
    assert stored(db) == [{"_id": 1}]


def test_extended_json(load, db):
    oid = "507f1f77bcf86cd799439011"
    load(
        "a.ndjson",
        f'{{"_id":{{"$oid":"{oid}"}},"l":{{"$numberLong":"5"}},"d":{{"$numberDecimal":"1.10"}},'
        '"i":{"$numberInt":"7"},"f":{"$numberDouble":"1.0"},"when":{"$date":"2020-01-02T03:04:05.006Z"},'
        '"then":{"$date":{"$numberLong":"0"}},"big":12345678901}\n',
    )
    (found,) = stored(db)
    assert found == {
        "_id": ObjectId(oid), "l": Int64(5), "d": Decimal128("1.10"), "i": 7, "f": 1.0,
        "when": datetime.datetime(2020, 1, 2, 3, 4, 5, 6000), "then": datetime.datetime(1970, 1, 1), "big": Int64(12345678901),
    }
    assert isinstance(found["f"], float) and isinstance(found["big"], Int64)


def test_csv(load, db):
    load("a.csv", '_id,name,n,price,home.city,empty\n1,"Smith, ""J""",5,2.50,Oslo,\n2,Ann,abc,1e3,"two\nlines",x\n')
    assert stored(db) == [
        {"_id": 1, "name": 'Smith, "J"', "n": 5, "price": 2.5, "home": {"city": "Oslo"}, "empty": ""},
        {"_id": 2, "name": "Ann", "n": "abc", "price": 1000.0, "home": {"city": "two\nlines"}, "empty": "x"},
    ]


def test_csv_flags(load, db):
    load("a.txt", "1;x\n2;\n", "--type", "csv", "--fields", "_id,a", "--delimiter", ";", "--ignoreBlanks")
    assert stored(db) == [{"_id": 1, "a": "x"}, {"_id": 2}]


def test_csv_numbers_that_are_none(load, db):
    load("a.csv", "_id,zip,phone,pi,price\n1,01234,+4930123,3.14159265358979323846,2.50\n")
    assert stored(db) == [{"_id": 1, "zip": "01234", "phone": "+4930123", "pi": "3.14159265358979323846", "price": 2.5}]


def test_csv_rows_of_other_lengths(load, db):
    load("a.csv", "_id,a,b\n1\n2,x\n3,x,y,z,7\n")
    assert stored(db) == [{"_id": 1}, {"_id": 2, "a": "x"}, {"_id": 3, "a": "x", "b": "y", "field3": "z", "field4": 7}]


def test_columns_have_types(load, db):
    header = "_id.int32(),n.int64(),x.double(),d.decimal(),yes.boolean(),zip.string(),b.binary(hex),born.date(2006-01-02),any.auto()"
    load("a.csv", f"{header}\n1,2,3,4.50,true,01234,0aff,2020-02-29,5\n", "--columnsHaveTypes")
    expected = {
        "_id": 1, "n": Int64(2), "x": 3.0, "d": Decimal128("4.50"), "yes": True, "zip": "01234", "b": b"\x0a\xff",
        "born": datetime.datetime(2020, 2, 29), "any": 5,
    }
    assert stored(db) == [expected]
    load("a.tsv", "2\t020\n", "--columnsHaveTypes", "--fields", "_id.int32(),home.zip.string()", "--drop")
    assert stored(db) == [{"_id": 2, "home": {"zip": "020"}}]


@pytest.mark.parametrize("grace, found", [
    ("skipRow", [{"_id": 1, "n": 5}]),
    ("skipField", [{"_id": 1, "n": 5}, {"_id": 2}]),
    ("autoCast", [{"_id": 1, "n": 5}, {"_id": 2, "n": "five"}]),
    ("stop", [{"_id": 1, "n": 5}]),
    (None, [{"_id": 1, "n": 5}]),
])
def test_a_field_of_another_type(load, db, grace, found):
    flags = ["--parseGrace", grace] if grace else []
    said = load("a.csv", "_id.int32(),n.int32()\n1,5\n2,five\n", "--columnsHaveTypes", *flags, ok=grace not in ("stop", None))
    assert stored(db) == found
    if grace in ("skipRow", "stop", None):
        assert "line 3" in said and "five" in said


def test_options_of_another_format_are_refused(load):
    assert "--fields" in load("a.ndjson", "{}", "--fields", "a", ok=False)
    assert "--delimiter" in load("a.tsv", "a\n1\n", "--delimiter", ";", ok=False)


def test_bson_dump(load, db):
    documents = [{"_id": i, "when": datetime.datetime(2020, 1, 1), "x": Int64(i)} for i in range(500)]
    load("dump.bson", b"".join(map(bson.encode, documents)))
    assert stored(db) == documents


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.ndjson", b'{"_id":1}\n{"_id":2}\n'),
        ("a.json", b'[{"_id":1},{"_id":2}]'),
        ("a.csv", b"_id\n1\n2\n"),
        ("a.bson", bson.encode({"_id": 1}) + bson.encode({"_id": 2})),
    ],
)
def test_gzip(load, db, name, content):
    load(f"{name}.gz", gzip.compress(content))
    assert stored(db) == [{"_id": 1}, {"_id": 2}]
    load("named-otherwise", gzip.compress(content), "--type", name[2:], "--gzip", "--drop")
    # Two members are one file.
    half = len(content) // 2
    load(f"{name}.gz", gzip.compress(content[:half]) + gzip.compress(content[half:]), "--drop")
    assert stored(db) == [{"_id": 1}, {"_id": 2}]


def test_gzip_that_is_cut_off_or_none_is_told(load):
    packed = gzip.compress("".join(json.dumps({"_id": i}) + "\n" for i in range(10_000)).encode())
    assert "a.ndjson.gz" in load("a.ndjson.gz", packed[:-20], ok=False)
    assert "gzip" in load("b.ndjson.gz", '{"_id":1}\n', ok=False)


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("a.ndjson", '{"_id":1}\n{"_id":2}\n{"_id":3,}\n', ["a.ndjson", "3"]),
        ("a.ndjson", '{"_id":1}\n\n\n[1]\n', ["a.ndjson", "4"]),
        ("a.json", '[{"_id":1},\n{"_id":2},\n{"_id":\n nope}]', ["a.json", "4"]),
        ("a.json", '[{"_id":1},\n{"_id":2}', ["a.json", "2"]),
        ("a.csv", "_id,field2\n1,2\n2,3,4\n", ["a.csv", "3", "field2"]),
        ("a.csv", "_id,a\n1,2\n2,\xff\n".encode("latin-1"), ["a.csv", "3", "UTF-8"]),
        ("a.ndjson", '{"_id":1,"d":{"$date":"not a date"}}\n', ["a.ndjson", "1", "date"]),
        ("a.bson", b"\x05\0\0\0\0" + b"\x20\0\0\0\x02", ["a.bson", "5"]),
    ],
    ids=lambda v: v if isinstance(v, str) and len(v) < 12 else None,
)
def test_a_bad_record_is_named(load, name, content, words):
    said = load(name, content, ok=False)
    for word in words:
        assert word in said, said
    assert "panicked" not in said


def test_a_refused_document_is_named_with_its_line(load, db):
    said = load("a.ndjson", '{"_id":1}\n{"_id":2}\n{"_id":1,"again":true}\n{"_id":4}\n', ok=False)
    assert "a.ndjson" in said and "line 3" in said and "E11000" in said
    assert [d["_id"] for d in stored(db)] == [1, 2, 4], "the others are in"
    assert "3" in said


def test_drop_and_upsert(load, db):
    load("a.ndjson", '{"_id":1,"a":1}\n{"_id":2}\n')
    load("b.ndjson", '{"_id":1,"b":1}\n{"_id":3}\n', "--mode", "upsert")
    assert stored(db) == [{"_id": 1, "b": 1}, {"_id": 2}, {"_id": 3}]
    load("c.ndjson", '{"_id":9}\n', "--drop")
    assert stored(db) == [{"_id": 9}]


def test_if_missing(load, db):
    load("a.ndjson", '{"_id":1}\n', "--if-missing")
    said = load("b.ndjson", '{"_id":2}\n', "--if-missing")
    assert stored(db) == [{"_id": 1}] and "already" in said
    assert db.list_collection_names() == ["c"], "no half-imported collection stays behind"


def test_more_than_one_batch(load, db):
    load("a.ndjson", "".join(json.dumps({"_id": i, "pad": "x" * 50}) + "\n" for i in range(25_000)))
    assert db.c.count_documents({}) == 25_000
    assert db.c.find_one(sort=[("_id", -1)])["_id"] == 24_999


def test_large_documents(load, db):
    load("a.ndjson", "".join(json.dumps({"_id": i, "pad": "x" * 9_000_000}) + "\n" for i in range(12)))
    assert db.c.count_documents({}) == 12


def test_nobody_there(tmp_path):
    (tmp_path / "a.ndjson").write_text("{}\n")
    done = run("import", tmp_path / "a.ndjson", "--into", "a.b", "--uri", "mongodb://127.0.0.1:1")
    assert done.returncode != 0 and "127.0.0.1:1" in done.stdout and "panicked" not in done.stdout
    done = run("import", tmp_path / "none.ndjson", "--into", "a.b", "--uri", "mongodb://127.0.0.1:1")
    assert done.returncode != 0 and "none.ndjson" in done.stdout


# -- the connection string --------------------------------------------------------------------


@pytest.fixture
def to(server, db, tmp_path):
    """Imports two documents through the server's address with these options; returns what was said."""
    (tmp_path / "two.ndjson").write_text('{"_id":1}\n{"_id":2}\n')

    def to(options, ok=True, host=f"127.0.0.1:{server.port}", path="", flags=()):
        uri = f"mongodb://{host}/{path}?{options}"
        done = run("import", tmp_path / "two.ndjson", "--into", f"{db.name}.c", "--uri", uri, "--drop", *flags)
        assert (done.returncode == 0) == ok, done.stdout
        assert "panicked" not in done.stdout
        if ok:
            assert [d["_id"] for d in stored(db)] == [1, 2]
        return done.stdout

    return to


@pytest.fixture
def commands(client, db):
    """The commands that came to the test's database, with the applications that sent them."""
    db.command("profile", 2)

    def commands():
        return [(entry["command"], entry.get("appName")) for entry in db["system.profile"].find({"op": {"$in": ["insert", "command"]}})]

    yield commands
    db.command("profile", 0)


def test_the_usual_options(to, db):
    to("retryWrites=true&w=majority&appName=x&readPreference=primary&tls=false")
    to("replicaSet=rs0", path=db.name)
    to("directConnection=true&connectTimeoutMS=2000&socketTimeoutMS=20000&serverSelectionTimeoutMS=0")


def test_write_concern_and_application(to, commands):
    to("w=1&journal=true&wtimeoutMS=900&appName=loader")
    sent = [(command, name) for command, name in commands() if "insert" in command or "drop" in command]
    assert sent and all(name == "loader" for _, name in sent)
    for command, _ in sent:
        assert command["writeConcern"] == {"w": 1, "j": True, "wtimeout": 900}


def test_a_write_concern_that_cannot_be_met_is_told(to):
    assert "write concern" in to("w=3", ok=False)


@pytest.mark.parametrize("compressor", [None, "snappy", "zlib", "zstd"])
def test_compressors(server, client, db, tmp_path, compressor):
    path = tmp_path / "pads.ndjson"
    path.write_text("".join(json.dumps({"_id": i, "pad": "x" * 100_000}) + "\n" for i in range(20)))

    def received():
        return client.admin.command("serverStatus")["network"]["bytesIn"]

    before = received()
    options = f"?compressors={compressor}" if compressor else ""
    done = run("import", path, "--into", f"{db.name}.c", "--uri", f"{server.uri}{options}")
    assert done.returncode == 0 and db.c.count_documents({}) == 20, done.stdout
    assert (received() - before < 1_000_000) == (compressor is not None)


def test_another_replica_set(to, start, tmp_path):
    said = to("replicaSet=other", ok=False)
    assert "rs0" in said and "other" in said
    alone = start(None, "--standalone")
    said = to("replicaSet=rs0", ok=False, host=f"127.0.0.1:{alone.port}")
    assert "replica set rs0" in said


def test_the_first_host_that_answers(to, server):
    to("replicaSet=rs0", host=f"127.0.0.1:1,127.0.0.1:{server.port}")


def test_the_database_of_the_uri_is_that_of_into(to):
    assert "elsewhere" in to("", ok=False, path="elsewhere")


@pytest.mark.parametrize("option", ["authSource=admin", "w=0", "maxPoolSize=3", "readPreference=secondary", "ssl=maybe"])
def test_an_option_without_effect_is_refused(to, option):
    assert option.split("=")[0] in to(option, ok=False)


def test_tls_is_spoken_when_it_is_asked_for(to):
    assert "TLS handshake" in to("tls=true", ok=False), "the server has no certificate"


@pytest.mark.parametrize("retry", [True, False])
def test_a_batch_is_sent_again_when_the_connection_breaks(start, tmp_path, retry):
    server = start()
    client = server.client()
    (tmp_path / "two.ndjson").write_text('{"_id":1}\n{"_id":2}\n')
    fault = {"failCommands": ["insert"], "closeConnection": True, "appName": "loader"}
    client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=fault)
    uri = f"{server.uri}?appName=loader&retryWrites={str(retry).lower()}"
    done = run("import", tmp_path / "two.ndjson", "--into", "test.c", "--uri", uri)
    assert (done.returncode == 0) == retry, done.stdout
    assert client.test.c.count_documents({}) == (2 if retry else 0)


def test_small_sample(server, db):
    for path in sorted((ROOT / "sample-data").glob("*.ndjson")):
        done = run("import", path, "--into", f"{db.name}.{path.stem}", "--uri", server.uri)
        assert done.returncode == 0, done.stdout
    # The queries of README.md find something.
    assert db.cities.count_documents({"country": "IS"}) > 30
    assert db.countries.count_documents({"languages.fra": "French", "landlocked": True}) == 9
    assert db.flights.count_documents({"origin": "SFO", "delay": {"$gt": 120}}) >= 5
    assert isinstance(db.flights.find_one()["date"], datetime.datetime)
