"""Statements of SQL that would take gigabytes or never end, under a hard limit of memory: none ends the process, and none keeps others
waiting. Beside them clients that send a message's half, read nothing, or keep thousands of statements."""

import contextlib
import resource
import socket
import struct
import threading
import time

from pgclient import Sql, port_of
from watch import MIB, tell, watched

LIMIT = 4 << 30
AT_ONCE = 4
PING_MAX_S = 30
STATEMENT_MAX_S = 60
# Classes of SQLSTATE that a client may meet: data, syntax, resources, program limits, cancelled; not XX, which nobody foresaw.
EXPECTED = ("0A", "21", "22", "23", "25", "40", "42", "53", "54", "57")


class Bombs:
    """All that is random comes from `dice`. `docs.data` is 1 MiB."""

    def __init__(self, dice):
        self.dice = dice

    def many(self):
        return self.dice.choice([30, 1000, 100_000, 5_000_000, 2_000_000_000])

    def text(self, depth):
        if depth == 0:
            return self.dice.choice(["data", "repeat(data, 5)", f"repeat('x', {self.many()})", "g::text"])
        inner = self.text(depth - 1)
        return self.dice.choice([
            f"({inner} || {self.text(depth - 1)})", f"repeat({inner}, {self.dice.choice([2, 50, 100_000])})",
            f"replace({inner}, 'x', {self.text(depth - 1)})", f"lpad({inner}, {self.many()}, 'y')", f"array_to_string({self.array(depth - 1)}, 'x')",
            f"regexp_replace({inner}, '(x+)+y', '\\\\1\\\\1', 'g')", f"encode(decode({inner}, 'escape'), 'hex')", f"upper({inner})",
            f"to_json({self.array(depth - 1)})::text", f"quote_literal({inner})", f"format('%s%s%s', {inner}, {inner}, {inner})",
        ])

    def array(self, depth):
        if depth == 0:
            return self.dice.choice([f"array_fill(1, ARRAY[{self.many()}])", "ARRAY[data, data]", "string_to_array(data, NULL)"])
        inner = self.array(depth - 1)
        return self.dice.choice([f"({inner} || {inner})", f"regexp_split_to_array({self.text(depth - 1)}, '')", inner,
                                 f"string_to_array({self.text(depth - 1)}, 'x')"])

    def aggregate(self):
        text = self.text(self.dice.randrange(2))
        return self.dice.choice([
            f"string_agg({text}, ',')", f"array_agg({text})", f"jsonb_agg({text})", f"count(DISTINCT {text})", f"string_agg({text}, ',' ORDER BY {text})",
            f"max({text})", f"json_object_agg(g, {text})", f"mode() WITHIN GROUP (ORDER BY {text})",
        ])

    def statement(self):
        dice, n, m = self.dice, self.many(), self.many()
        rows = f"generate_series(1, {n}) g, docs"
        recursive = dice.choice(["SELECT g + 1 FROM r", "SELECT g FROM r", "SELECT r.g + 1 FROM r, docs", "SELECT r.g + s FROM r, generate_series(1, 3) s"])
        return dice.choice([
            f"SELECT {self.text(2)} FROM {rows}",
            f"SELECT {self.aggregate()} FROM {rows}",
            f"SELECT g, {self.aggregate()} FROM {rows} GROUP BY g",
            f"SELECT count(*) FROM generate_series(1, {n}) a, generate_series(1, {m}) b",
            f"SELECT * FROM {rows} ORDER BY {self.text(1)}",
            f"SELECT DISTINCT {self.text(1)} FROM {rows}",
            f"SELECT {self.text(1)} FROM {rows} UNION SELECT {self.text(1)} FROM {rows}",
            f"WITH RECURSIVE r(g) AS (SELECT 1 UNION ALL {recursive}) SELECT count(*) FROM r",
            f"WITH RECURSIVE r(g) AS (SELECT 1 UNION {recursive}) SELECT * FROM r ORDER BY 1",
            f"WITH RECURSIVE r(g) AS (SELECT data FROM docs UNION ALL SELECT r.g || r.g FROM r) SELECT length(g) FROM r",
            f"WITH t AS MATERIALIZED (SELECT g, data FROM {rows}) SELECT count(*) FROM t a JOIN t b ON a.data = b.data",
            f"SELECT a.g FROM generate_series(1, {n}) a(g) JOIN generate_series(1, {m}) b(g) ON a.g = b.g",
            f"SELECT sum(length({self.text(1)})) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM {rows}",
            f"SELECT array_agg(data) OVER (ORDER BY g) FROM {rows}",
            f"SELECT unnest({self.array(1)}) FROM {rows}",
            f"SELECT (SELECT {self.aggregate()} FROM {rows}) FROM generate_series(1, 100) h",
            f"SELECT * FROM docs a, docs b, docs c, docs d, docs e, docs f ORDER BY a.data, b.data",
            f"INSERT INTO filled (_id, t) SELECT g, {self.text(1)} FROM {rows}",
            f"UPDATE filled SET t = {self.text(1).replace('data', 't').replace('g::text', 't')}",
            f"COPY (SELECT {self.text(1)} FROM {rows}) TO STDOUT",
            f"EXPLAIN ANALYZE SELECT {self.aggregate()} FROM {rows}",
            f"SELECT '{'(' * 1000}'::jsonb", f"SELECT {'(' * 20_000}1{')' * 20_000}", f"SELECT {'+'.join(['1'] * 20_000)}",
            f"SELECT -{'NOT ' * 20_000} true", f"SELECT 1 WHERE 1 IN ({','.join(map(str, range(100_000)))})",
            f"SELECT {n}::numeric ^ {m}", f"SELECT factorial({min(n, 100_000)})", f"SELECT '{'a' * 1000}' ~ '{'(a*)*' * 20}b'",
            f"SELECT '{'[' * 100_000}'::jsonb", f"SELECT to_char(1, '{'9' * 1000}')", f"SELECT pg_sleep({n})",
            f"SELECT {', '.join(f'data AS c{i}' for i in range(1500))} FROM docs",
        ])


def throw(port, bombs, end, results):
    sql = None
    while time.monotonic() < end:
        statement = bombs.statement()
        begun = time.monotonic()
        try:
            if sql is None:
                sql = Sql(port, database="bombs")
                sql.socket.settimeout(STATEMENT_MAX_S + 20)
                sql.query("SET statement_timeout = 3000")
            if bombs.dice.random() < 0.3 and not statement.startswith("COPY"):
                sql.prepared(statement, [])
            else:
                sql.query(statement)
            state = "ok"
        except RuntimeError as failure:
            state = str(failure)[:5]
        except (OSError, EOFError, struct.error) as failure:
            state, sql = type(failure).__name__, None
        results.append((state, statement, time.monotonic() - begun))


def misbehave(port, dice, end, kept):
    """A client that never does what comes next."""
    while time.monotonic() < end:
        with contextlib.suppress(OSError, RuntimeError, EOFError, struct.error):
            kind = dice.randrange(5)
            sql = Sql(port, database="bombs")
            if kind == 0:
                # Half a message, of a gigabyte.
                sql.socket.sendall(b"Q" + struct.pack("!i", 1 << 30) + b"SELECT 1" * 1000)
                kept.append(sql)
            elif kind == 1:
                # Asks for much and reads nothing.
                sql.send(b"Q", b"SELECT data FROM docs, generate_series(1, 100000)\0")
                kept.append(sql)
            elif kind == 2:
                for n in range(5000):
                    sql.send(b"P", f"s{n}".encode() + b"\0SELECT $1::text || data FROM docs\0" + struct.pack("!h", 0))
                sql.send(b"S", b"")
                sql.until_ready()
                kept.append(sql)
            elif kind == 3:
                # A COPY that never ends.
                sql.send(b"Q", b"COPY filled FROM STDIN\0")
                for n in range(200):
                    sql.send(b"d", f"{dice.randrange(1 << 40)}\t{'x' * 1_000_000}\n".encode())
                sql.socket.close()
            else:
                for _ in range(50):
                    with socket.create_connection(("127.0.0.1", port), timeout=10) as other:
                        other.sendall(struct.pack("!iiii", 16, 80877102, dice.randrange(1 << 16), dice.randrange(1 << 31)))
        while len(kept) > 20:
            kept.pop(0).socket.close()
        time.sleep(0.2)


def test_sql_bombs(start, tmp_path, dice, seconds):
    server = start(tmp_path / "data", "--quiet", "--sql-port", 0, limits={resource.RLIMIT_AS: LIMIT})
    port = port_of(server)
    docs = server.client().bombs.docs
    docs.insert_many([{"_id": i, "data": "x" * MIB} for i in range(12)])
    Sql(port, database="bombs").query("CREATE TABLE filled (_id bigint PRIMARY KEY, t text)")
    results, kept = [], []
    end = time.monotonic() + seconds
    make = type(dice)
    threads = [threading.Thread(target=throw, args=(port, Bombs(make(dice.random())), end, results), daemon=True) for _ in range(AT_ONCE)]
    threads.append(threading.Thread(target=misbehave, args=(port, make(dice.random()), end, kept), daemon=True))
    slowest, highest = watched(server, threads, end, 180)
    tell(results, slowest, highest)
    last = [statement[:300] for _, statement, _ in results[-12:]]
    assert server.is_running and "panic" not in server.said(), f"{server.said()[-2000:]}\nafter {last}"
    for state, statement, took in results:
        assert state == "ok" or state.startswith(EXPECTED) or not state[0].isdigit() and not state.startswith("XX"), f"{state} for {statement[:2000]}"
        assert took < STATEMENT_MAX_S, f"{took:.1f} s for {statement[:2000]}"
    assert slowest < PING_MAX_S
    assert Sql(port, database="bombs").query("SELECT count(*) FROM docs") == [[b"12"]]
    for sql in kept:
        sql.socket.close()
    assert server.stop() == 0


def nested(levels, chain, wrap):
    inner = "1"
    for _ in range(levels):
        inner = wrap(inner, chain)
    return inner


def deep():
    """Statements whose trees are as deep as they may be, and deeper; and expressions that stand for columns of each other."""
    for n in [780, 20_000]:
        for behind in [" is null", " at time zone 'utc'", ' collate "C"', " in (1)", " operator(pg_catalog.+) 1", " like 'a'", " overlaps (1, 2)", " = 1", "::int",
                       "->'a'", " + 1", " or not true", "[1]", ".a", " between 1 and 2"]:
            yield f"SELECT a{behind * n} FROM (SELECT 1 a) t"
        yield f"SELECT {'+'.join(['g'] * n)} FROM generate_series(1, 3) g ORDER BY {'+'.join(['g'] * n)}"
        yield f"SELECT 1 FROM {', '.join(f'generate_series(1, 1) t{at}' for at in range(n))}"
        yield f"SELECT {', '.join(f'(SELECT g + {at})' for at in range(n))} FROM generate_series(1, 2) g"
        yield f"WITH c0 AS (SELECT 1 a){''.join(f', c{at} AS (SELECT a + 1 a FROM c{at - 1})' for at in range(1, n))} SELECT * FROM c{n - 1}"
        yield " UNION ALL ".join(["SELECT 1"] * n)
        yield " EXCEPT ".join(["SELECT 1"] * n)
        yield f"SELECT 1{', 1' * n}"
    for levels in [2, 10, 40]:
        yield "SELECT " + nested(levels, 70, lambda inner, chain: f"({inner} + {' + '.join(['1'] * chain)})")
        yield "SELECT " + nested(levels, 700, lambda inner, chain: f"({' || '.join(['chr(65)'] * chain)} || {inner})")
    # What stands several times in what is made of it.
    for levels in [10, 22, 45, 200]:
        for once in ["(%s BETWEEN 1 AND 2)::int", "(%s BETWEEN SYMMETRIC 1 AND 2)::int", "nullif(%s, 1)", "((%s, 1) IN ((1, 1), (2, 2)))::int",
                     "CASE %s WHEN 1 THEN 2 WHEN 2 THEN 3 END", "(%s IS DISTINCT FROM 1)::int", "coalesce(%s, 1)"]:
            query = "a"
            for _ in range(levels):
                query = once % query
            yield f"SELECT {query} FROM (SELECT 1 a) t"
    # Each column thirty times the one below: nobody writes that out.
    query = "SELECT g AS a FROM generate_series(1, 2) g"
    for _ in range(9):
        query = f"SELECT {' - '.join(['a'] * 30)} AS a FROM ({query}) t"
    yield f"SELECT * FROM ({query}) q WHERE a > -5 ORDER BY a"
    yield f"SELECT a, count(*) FROM ({query}) q GROUP BY a HAVING a > -5"
    yield f"SELECT (SELECT max(a) FROM ({query}) q WHERE a < g) FROM generate_series(1, 2) g"


def test_deep_statements(start):
    server = start(None, "--sql-port", 0)
    port = port_of(server)
    for statement in deep():
        begun, sql = time.monotonic(), Sql(port, database="bombs")
        sql.socket.settimeout(STATEMENT_MAX_S)
        try:
            sql.query(statement)
        except RuntimeError as refused:
            # They are statements: no syntax is wrong.
            assert str(refused)[:2] in ("42", "54", "22") and not str(refused).startswith("42601"), f"{refused} for {statement[:200]}"
        assert time.monotonic() - begun < STATEMENT_MAX_S, statement[:200]
        sql.socket.close()
    views = Sql(port, database="bombs")
    views.query("CREATE TABLE v0 (a int)")
    for at in range(1, 12):
        views.query(f"CREATE VIEW v{at} AS SELECT {' - '.join(['a'] * 700)} AS a FROM v{at - 1}")
    assert views.query("SELECT a FROM v11 WHERE a > -5 ORDER BY a") == []
    assert server.is_running and "panic" not in server.said()
