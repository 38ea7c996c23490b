"""Parquet and Arrow as other programs read and write them: pyarrow and DuckDB on files, psycopg on COPY, `nestor import` and `export`."""

import datetime
import decimal
import io
import subprocess

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from bson import Decimal128, ObjectId

from harness import BIN
from pgclient import port_of

ID = ObjectId("0123456789abcdef01234567")
WHEN = datetime.datetime(2024, 1, 31, 10, tzinfo=datetime.timezone.utc)


@pytest.fixture
def orders(start, tmp_path):
    server = start(None, "--sql-port", 0, "--sql-files", tmp_path)
    docs = [
        {
            "_id": ID, "n": 1, "big": 5_000_000_000, "x": 1.5, "price": Decimal128("9.50"), "on": True, "at": WHEN,
            "to": {"city": "Köln", "zip": 5}, "lines": [{"sku": "a", "n": 2}, {"sku": "b"}], "tags": ["x", "y"], "raw": b"\x00\xff",
        },
        {"_id": ObjectId(), "n": 2, "price": Decimal128("-0.005"), "to": {"city": "Ulm"}, "lines": [], "tags": []},
    ]
    server.client().shop.orders.insert_many(docs)
    return server, tmp_path


def copied(server, statement):
    """What a COPY TO STDOUT sends."""
    with psycopg.connect(f"host=127.0.0.1 port={port_of(server)} user=tester dbname=shop") as connection:
        with connection.cursor().copy(statement) as copy:
            return b"".join(bytes(part) for part in copy)


def check(table):
    assert table.num_rows == 2
    first, second = table.sort_by("n").to_pylist()
    assert first["_id"] == str(ID) and first["big"] == 5_000_000_000 and first["at"] == WHEN
    assert first["price"] == decimal.Decimal("9.500") and second["price"] == decimal.Decimal("-0.005")
    assert first["to"] == {"city": "Köln", "zip": 5} and second["to"] == {"city": "Ulm", "zip": None}
    assert first["lines"] == [{"sku": "a", "n": 2}, {"sku": "b", "n": None}] and second["lines"] == []
    assert first["tags"] == ["x", "y"] and first["raw"] == b"\x00\xff" and second["on"] is None


def test_a_collection_as_record_batches(orders):
    server, _ = orders
    stream = copied(server, "COPY orders TO STDOUT (FORMAT arrow)")
    check(pa.ipc.open_stream(stream).read_all())
    check(pq.read_table(io.BytesIO(copied(server, "COPY (SELECT * FROM orders WHERE n < 5) TO STDOUT (FORMAT parquet)"))))
    empty = pa.ipc.open_stream(copied(server, "COPY (SELECT n, x FROM orders WHERE n > 5) TO STDOUT (FORMAT arrow)")).read_all()
    assert empty.num_rows == 0 and empty.schema.field("x").type == pa.float64()


def test_other_programs_read_what_is_written(orders):
    server, folder = orders
    with psycopg.connect(f"host=127.0.0.1 port={port_of(server)} user=tester dbname=shop", autocommit=True) as connection:
        assert connection.execute("COPY orders TO 'orders.parquet'").rowcount == 2
        connection.execute("COPY (SELECT n, n % 10 AS m FROM generate_series(1, 300000) n) TO 'many.parquet'")
        check(pq.read_table(folder / "orders.parquet"))
        beside = duckdb.connect()
        found = beside.execute(f"SELECT n, \"to\".city, len(lines), price FROM '{folder}/orders.parquet' ORDER BY n").fetchall()
        assert found == [(1, "Köln", 2, decimal.Decimal("9.500")), (2, "Ulm", 0, decimal.Decimal("-0.005"))]
        found = beside.execute(f"SELECT count(*), sum(n) FROM '{folder}/many.parquet' WHERE m = 3").fetchall()
        assert found == [(30000, sum(range(3, 300001, 10)))]
        assert pq.ParquetFile(folder / "many.parquet").num_row_groups > 1
        plan = "\n".join(row[0] for row in connection.execute("EXPLAIN (ANALYZE, BUFFERS) SELECT max(m) FROM 'many.parquet' WHERE n > 299990"))
        assert "FILE_SCAN" in plan and "skipped" in plan.lower(), plan


def test_what_other_programs_write(orders):
    server, folder = orders
    rows = {
        "i8": pa.array([1, None, -3], pa.int8()),
        "u64": pa.array([2**63, None, 1], pa.uint64()),
        "f32": pa.array([0.5, None, 2], pa.float32()),
        "name": pa.array(["a", None, "a"]).dictionary_encode(),
        "d": pa.array([datetime.date(1969, 12, 31), None, datetime.date(2024, 2, 29)]),
        "ns": pa.array([1, None, -1], pa.timestamp("ns")),
        "tz": pa.array([0, None, 1], pa.timestamp("s", "Europe/Berlin")),
        "t": pa.array([1, None, 2], pa.time32("s")),
        "dec": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-2.00")], pa.decimal128(9, 2)),
        "nested": pa.array([[{"k": [1, 2]}], None, []]),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "large": pa.array(["x", None, "z"], pa.large_string()),
        "view": pa.array(["x", None, "z"], pa.string_view()),
        "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    }
    table = pa.table(rows)
    pq.write_table(table.drop_columns(["view"]), folder / "one.parquet", row_group_size=2, compression="zstd")
    feather.write_feather(table, folder / "two.arrow", compression="lz4")
    with pa.OSFile(str(folder / "three.arrows"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    wanted = (
        1, decimal.Decimal(2**63), 0.5, "a", datetime.date(1969, 12, 31), datetime.datetime(1970, 1, 1), decimal.Decimal("1.10"),
        [{"k": [1, 2]}], {"a": 1}, "x", b"ab",
    )
    with psycopg.connect(f"host=127.0.0.1 port={port_of(server)} user=tester dbname=shop", autocommit=True) as connection:
        for name in ["one.parquet", "two.arrow", "three.arrows"]:
            read = f"SELECT i8, u64, f32, name, d, ns, dec, nested, map, large, fixed FROM '{name}'"
            found = connection.execute(read).fetchall()
            assert found[0] == wanted, name
            assert found[1] == (None,) * 11, name
            assert connection.execute(f"SELECT count(*), count(name), max(tz) FROM '{name}'").fetchone() == (
                3, 2, datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc),
            )
            assert connection.execute(f"SELECT i8 FROM '{name}' WHERE t > '00:00:01'").fetchall() == [(-3,)]
        connection.execute("CREATE TABLE made AS SELECT i8, dec, d FROM 'one.parquet'")
        assert connection.execute("SELECT count(*) FROM made").fetchone() == (3,)
        for damage in [lambda b: b[: len(b) // 2], lambda b: b[:40] + bytes(40) + b[80:], lambda b: b[:-200] + bytes(192) + b[-8:]]:
            (folder / "bad.parquet").write_bytes(damage((folder / "one.parquet").read_bytes()))
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("SELECT * FROM 'bad.parquet'")
            assert "bad.parquet" in str(caught.value) and caught.value.sqlstate == "22P04"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def nestor(*args):
    ran = subprocess.run([BIN, *map(str, args)], capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr


def test_export_and_import(orders):
    server, folder = orders
    uri = f"mongodb://127.0.0.1:{server.port}"
    db = server.client().shop
    for name in ["o.parquet", "o.arrow", "o.json", "o.ndjson", "o.bson"]:
        code, said = nestor("export", "shop.orders", folder / name, "--uri", uri)
        assert code == 0 and "2 documents" in said, said
        code, said = nestor("import", folder / name, "--into", "shop.back", "--drop", "--uri", uri)
        assert code == 0 and "2 documents" in said, said
        for before, after in zip(db.orders.find().sort("n"), db.back.find().sort("n")):
            if name.split(".")[1] in ("parquet", "arrow"):
                assert before.pop("price").to_decimal() == after.pop("price").to_decimal()
            assert before == after
    check(pq.read_table(folder / "o.parquet"))
    db.mixed.insert_many([{"v": n} for n in range(70000)] + [{"v": "text"}])
    code, said = nestor("export", "shop.mixed", folder / "mixed.parquet", "--uri", uri)
    assert code == 1 and "field v cannot hold a value of type string" in said, said
    assert not (folder / "mixed.parquet").exists() and not list(folder.glob(".*"))
    code, said = nestor("export", "shop.mixed", folder / "few.parquet", "--query", '{"v": {"$in": [1, "text"]}}', "--uri", uri)
    assert code == 0
    assert pq.read_table(folder / "few.parquet").sort_by("v").column("v").to_pylist() == ['"text"', "1"]
    (folder / "x.parquet").write_bytes(b"PAR1 nothing")
    code, said = nestor("import", folder / "x.parquet", "--into", "shop.x", "--uri", uri)
    assert code == 1 and "x.parquet" in said
