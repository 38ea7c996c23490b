"""Clients of PostgreSQL, unmodified: JDBC, pgx, node-postgres, asyncpg, psycopg 2 and 3, Django.

scripts/test fetches pgjdbc (NESTOR_PGJDBC), builds pgx's program (NESTOR_PGX) and fetches node-postgres (NESTOR_NODE_MODULES); without Java, Go and
Node.js they are left out. `sql_clients` has what runs in other languages; each prints the steps that went well.
"""

import asyncio
import datetime
import decimal
import enum
import io
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import harness
import pytest

from pgclient import port_of

HERE = Path(__file__).parent / "sql_clients"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with harness.Server(tmp_path_factory.mktemp("clients"), "--sql-port", "0") as server:
        yield port_of(server)


def steps(*command, timeout=180, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def need(variable, what):
    value = os.environ.get(variable)
    if not value and os.environ.get("NESTOR_CI"):
        pytest.fail(f"{what} could not be had, and CI leaves nothing out")
    if not value:
        pytest.skip(f"{what} could not be had")
    return value


def test_jdbc(port):
    jar = need("NESTOR_PGJDBC", "pgjdbc")
    found = steps("java", "-cp", jar, HERE / "Jdbc.java", f"jdbc:postgresql://127.0.0.1:{port}/jdbc")
    assert found == ["types", "keys", "batches", "cursors", "updates", "copy", "transactions", "calls", "errors", "metadata", "rewriting"]


def test_pgx(port):
    found = steps(need("NESTOR_PGX", "pgx"), f"postgres://tester@127.0.0.1:{port}/pgx")
    assert found == ["types", "rows", "modes", "copies", "batches", "transactions", "enums", "notices", "cancels", "pools"]


def test_node_postgres(port, node_modules):
    if not (node_modules / "pg").exists():
        pytest.skip("node-postgres could not be had")
    found = steps("node", HERE / "node.js", f"postgres://tester@127.0.0.1:{port}/node", NODE_PATH=str(node_modules))
    assert found == ["types", "prepared", "errors", "streams", "copies", "told", "transactions", "pools"]


def test_asyncpg(port):
    asyncpg = pytest.importorskip("asyncpg")
    asyncio.run(with_asyncpg(asyncpg, port))


async def with_asyncpg(asyncpg, port):
    url = f"postgres://tester@127.0.0.1:{port}/asyncpg"
    notices = []
    c = await asyncpg.connect(url)
    c.add_log_listener(lambda _, notice: notices.append(notice.message))
    await c.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    await c.execute(
        """CREATE TABLE kinds (id int PRIMARY KEY, t text, n numeric(10,3), z timestamptz, d date, j jsonb, ts text[], b bytea, o bool, f float8,
           i interval, u uuid, h time, m mood, ms mood[], r int4range)"""
    )
    zone = datetime.timezone.utc
    row = (
        1, "text", decimal.Decimal("1.250"), datetime.datetime(2020, 1, 2, 3, 4, 5, 678000, zone), datetime.date(2020, 1, 2), '{"a": [1, null]}',
        ["a", None, 'b"'], b"\0\xff", True, 1.5, datetime.timedelta(days=1, seconds=7), uuid.UUID(int=7), datetime.time(1, 2, 3), "ok", ["sad", "ok"],
        asyncpg.Range(1, 5),
    )
    places = ", ".join(f"${at + 1}" for at in range(len(row)))
    await c.execute(f"INSERT INTO kinds VALUES ({places})", *row)
    found = await c.fetchrow("SELECT * FROM kinds WHERE id = $1", 1)
    assert tuple(found) == row
    await c.executemany("INSERT INTO kinds (id, t) VALUES ($1, $2)", [(n, str(n)) for n in range(10, 60)])
    # Records and files in binary.
    assert await c.copy_records_to_table("kinds", records=[(n, [str(n)]) for n in range(100, 400)], columns=["id", "ts"]) == "COPY 300"
    out = io.BytesIO()
    await c.copy_from_query("SELECT id, t FROM kinds WHERE id < $1 ORDER BY id", 12, output=out, format="csv")
    assert out.getvalue() == b"1,text\n10,10\n11,11\n"
    # Cursors and savepoints.
    async with c.transaction(isolation="repeatable_read"):
        seen = [record["id"] async for record in c.cursor("SELECT id FROM kinds WHERE id >= 100 ORDER BY id", prefetch=7)]
        assert seen == list(range(100, 400))
        # A portal is a cursor that goes forward, before its first row is fetched and after.
        cursor = await c.cursor("SELECT id FROM kinds WHERE id >= $1 ORDER BY id", 100)
        assert await cursor.forward(5) == 5
        assert [(await cursor.fetchrow())["id"], await cursor.forward(2), [r["id"] for r in await cursor.fetch(2)]] == [105, 2, [108, 109]]
        assert await cursor.forward(1000) == 290
        assert await cursor.fetchrow() is None
        with pytest.raises(ZeroDivisionError):
            async with c.transaction():
                await c.execute("DELETE FROM kinds")
                raise ZeroDivisionError
    assert await c.fetchval("SELECT count(*) FROM kinds") == 351
    with pytest.raises(asyncpg.UniqueViolationError) as twice:
        await c.execute("INSERT INTO kinds (id) VALUES (1)")
    assert (twice.value.constraint_name, twice.value.table_name) == ("kinds_pkey", "kinds")
    with pytest.raises(asyncio.TimeoutError):
        await c.execute("SELECT pg_sleep(60)", timeout=0.2)
    # A table that is altered under a prepared statement.
    prepared = await c.prepare("SELECT * FROM kinds WHERE id = 1")
    await c.execute("ALTER TABLE kinds DROP COLUMN r")
    with pytest.raises(asyncpg.InvalidCachedStatementError):
        await prepared.fetch()
    assert len(await c.fetchrow("SELECT * FROM kinds WHERE id = $1", 1)) == len(row) - 1
    await c.execute("DROP TABLE IF EXISTS nothing")
    assert notices == ['table "nothing" does not exist, skipping']
    await c.reset()
    await c.close()
    async with asyncpg.create_pool(url, min_size=2, max_size=4) as pool:
        assert await asyncio.gather(*(pool.fetchval("SELECT $1::int", n) for n in range(40))) == list(range(40))


def test_psycopg(port):
    psycopg = pytest.importorskip("psycopg")
    from psycopg.types.enum import EnumInfo, register_enum
    from psycopg.types.json import Jsonb
    from psycopg.types.range import Range

    with psycopg.connect(f"host=127.0.0.1 port={port} user=tester dbname=psycopg") as c:
        notices = []
        c.add_notice_handler(lambda notice: notices.append((notice.severity, notice.sqlstate)))
        c.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        c.execute("CREATE TABLE kinds (id int PRIMARY KEY, n numeric, z timestamptz, j jsonb, ts text[], b bytea, r int4range)")
        c.commit()
        assert EnumInfo.fetch(c, "mood").labels == ["sad", "ok"]
        row = (1, decimal.Decimal("1.25"), datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), {"a": [1, None]}, ["a", None], b"\0\xff", Range(1, 5))
        for binary in [False, True]:
            kind = "b" if binary else "s"
            places = ", ".join(["%" + kind] * len(row))
            given = [Jsonb(value) if isinstance(value, dict) else value for value in row]
            c.execute(f"INSERT INTO kinds VALUES ({places}) ON CONFLICT DO NOTHING", given)
            assert c.execute("SELECT * FROM kinds WHERE id = 1", binary=binary).fetchone() == row
        with c.cursor() as cursor:
            cursor.executemany("INSERT INTO kinds (id, ts) VALUES (%s, %s) RETURNING id", [(n, [str(n)]) for n in range(10, 20)], returning=True)
            assert [result.fetchone()[0] for result in cursor.results()] == list(range(10, 20))
            with cursor.copy("COPY kinds (id, z) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "timestamptz"])
                for n in range(100, 200):
                    copy.write_row((n, row[2]))
            with cursor.copy("COPY (SELECT id, n FROM kinds WHERE id < 11 ORDER BY id) TO STDOUT") as copy:
                copy.set_types(["int4", "numeric"])
                assert list(copy.rows()) == [(1, row[1]), (10, None)]
        # A parameter that a client declares by the number of an enum is one of its values, and so is what is made of it.
        Mood = enum.Enum("Mood", ["sad", "ok"])
        register_enum(EnumInfo.fetch(c, "mood"), c, Mood)
        for binary in [False, True]:
            assert c.execute("SELECT %t, %b, %t", [Mood.ok, Mood.sad, [Mood.ok]], binary=binary).fetchone() == (Mood.ok, Mood.sad, [Mood.ok])
        c.commit()
        # Statements that are sent ahead of the answers of those before them; one that fails ends those behind it.
        with c.pipeline():
            sent = [c.execute("SELECT %s::int", [n]) for n in range(20)]
            assert [cursor.fetchone()[0] for cursor in sent] == list(range(20))
        c.commit()
        with pytest.raises(psycopg.errors.UniqueViolation), c.pipeline():
            c.execute("INSERT INTO kinds (id) VALUES (500)")
            c.execute("INSERT INTO kinds (id) VALUES (1)")
            c.execute("INSERT INTO kinds (id) VALUES (501)")
        c.rollback()
        assert c.execute("SELECT count(*) FROM kinds WHERE id >= 500").fetchone() == (0,)
        with c.cursor("named", scrollable=True) as named:
            named.execute("SELECT id FROM kinds WHERE id BETWEEN %s AND 199 ORDER BY id", [100])
            assert [r[0] for r in named.fetchmany(10)] == list(range(100, 110))
            named.scroll(-5)
            assert named.fetchone() == (105,)
        c.rollback()
        with pytest.raises(psycopg.errors.QueryCanceled):
            c.execute("SET LOCAL statement_timeout = '100ms'")
            c.execute("SELECT pg_sleep(60)")
        c.rollback()
        with c.transaction():
            c.execute("DROP TABLE IF EXISTS nothing")
        assert notices == [("NOTICE", "00000")]


def test_psycopg2(port):
    psycopg2 = pytest.importorskip("psycopg2")
    import psycopg2.extras

    c = psycopg2.connect(host="127.0.0.1", port=port, user="tester", dbname="psycopg2")
    with c, c.cursor() as cursor:
        cursor.execute("CREATE TABLE kinds (id int PRIMARY KEY, n numeric, z timestamptz, j jsonb, ts text[], b bytea)")
        row = (1, decimal.Decimal("1.25"), datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc), {"a": [1, None]}, ["a", None], b"\0\xff")
        given = [psycopg2.extras.Json(value) if isinstance(value, dict) else value for value in row]
        cursor.execute("INSERT INTO kinds VALUES (%s, %s, %s, %s, %s, %s)", given)
        cursor.execute("SELECT * FROM kinds")
        found = cursor.fetchone()
        assert (*found[:5], bytes(found[5])) == row
        assert cursor.description[1].table_column == 2
        psycopg2.extras.execute_values(cursor, "INSERT INTO kinds (id, n) VALUES %s", [(n, n) for n in range(10, 1010)], page_size=300)
        cursor.copy_expert("COPY kinds (id) FROM STDIN WITH (FREEZE on)", io.StringIO("2000\n2001\n"))
        out = io.StringIO()
        cursor.copy_expert("COPY (SELECT count(*), sum(n) FROM kinds) TO STDOUT CSV", out)
        assert out.getvalue() == "1003,509501.25\n"
        cursor.execute("DROP TABLE IF EXISTS nothing")
    assert c.notices == ['NOTICE:  table "nothing" does not exist, skipping\n']
    with c, c.cursor("named", cursor_factory=psycopg2.extras.DictCursor) as named:
        named.itersize = 100
        named.execute("SELECT id FROM kinds WHERE id >= 10 ORDER BY id")
        assert sum(1 for _ in named) == 1002
    with pytest.raises(psycopg2.errors.UniqueViolation) as twice, c, c.cursor() as cursor:
        cursor.execute("INSERT INTO kinds (id) VALUES (1)")
    told = twice.value.diag
    assert (told.schema_name, told.table_name, told.constraint_name) == ("public", "kinds", "kinds_pkey")
    with c, c.cursor() as cursor:
        cursor.execute("CREATE SCHEMA apart")
        cursor.execute("CREATE TABLE apart.checked (id int NOT NULL, t text, j jsonb, at timestamp, CONSTRAINT long CHECK (length(t) < 90))")
    for (row, column, constraint, detail) in [
        ("NULL, 'a', '{}', NULL", "id", None, "(null, a, {}, null)"),
        (f"1, '{'é' * 95}', NULL, '2024-01-02'", None, "long", f"(1, {'é' * 32}..., null, 2024-01-02 00:00:00)"),
    ]:
        with pytest.raises(psycopg2.errors.IntegrityError) as refused, c, c.cursor() as cursor:
            cursor.execute(f"INSERT INTO apart.checked VALUES ({row})")
        told = refused.value.diag
        assert (told.schema_name, told.table_name) == ("apart", "checked")
        assert (told.column_name, told.constraint_name, told.message_detail) == (column, constraint, f"Failing row contains {detail}.")
    c.close()


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not here")
def test_notices_in_psql(port):
    done = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "psql"],
        input="DROP TABLE IF EXISTS nothing;\nCOMMIT;\n", capture_output=True, text=True, timeout=60, check=True,
    )
    assert done.stdout == "DROP TABLE\nCOMMIT\n"
    assert done.stderr == 'NOTICE:  table "nothing" does not exist, skipping\nWARNING:  there is no transaction in progress\n'
