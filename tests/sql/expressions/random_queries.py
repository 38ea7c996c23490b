#!/usr/bin/env python3
"""Makes random queries over a few tables and compares what Nestor answers with PostgreSQL's answers.

    tests/sql/expressions/random_queries.py --postgres "..." --nestor "..." --seed 1 --count 5000
    tests/sql/expressions/random_queries.py --postgres "..." --seed 1 --count 300 --write

Queries have joins of all kinds, groups, windows, set operations and subqueries; each is ordered by all of its columns. `--write` makes
`random.golden` of them, which is replayed as the other files of this folder are. A seed always makes the same queries.
"""

import argparse
import random

import expressions
from psycopg import pq

TABLES = {
    "a": {"id": "int", "k": "int", "v": "num", "s": "text", "d": "date"},
    "b": {"id": "int", "a_id": "int", "w": "float", "t": "text", "f": "bool"},
    "c": {"x": "int", "y": "int", "z": "text"},
}
SETUP = [
    "CREATE TABLE a (id int PRIMARY KEY, k int, v numeric(6,2), s text, d date)",
    "CREATE TABLE b (id int PRIMARY KEY, a_id int, w float8, t text, f bool)",
    "CREATE TABLE c (id int PRIMARY KEY, x int, y int, z text)",
    "INSERT INTO a SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE i % 4 END, CASE WHEN i % 7 = 0 THEN NULL ELSE i * 1.25 - 10 END, "
    "CASE WHEN i % 6 = 0 THEN NULL ELSE chr(97 + i % 5) || (i % 3) END, CASE WHEN i % 8 = 0 THEN NULL ELSE date '2020-01-01' + i * 11 END "
    "FROM generate_series(1, 24) i",
    "INSERT INTO b SELECT i, CASE WHEN i % 9 = 0 THEN NULL ELSE i % 11 END, CASE WHEN i % 6 = 0 THEN NULL ELSE i * 0.5 - 4 END, "
    "CASE WHEN i % 7 = 0 THEN NULL ELSE chr(97 + i % 4) END, CASE WHEN i % 4 = 0 THEN NULL ELSE i % 3 = 0 END FROM generate_series(1, 20) i",
    "INSERT INTO c SELECT i, CASE WHEN i % 4 = 0 THEN NULL ELSE i % 5 END, i % 3, chr(97 + i % 3) FROM generate_series(1, 12) i",
]


class Maker:
    """Makes queries. A column in scope is its name and its type."""

    def __init__(self, seed):
        self.pick = random.Random(seed)
        self.names = 0

    def chance(self, p):
        return self.pick.random() < p

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def literal(self, ty):
        pick = self.pick
        if self.chance(0.05):
            return f"NULL::{ {'int': 'int', 'num': 'numeric', 'text': 'text', 'date': 'date', 'float': 'float8', 'bool': 'bool'}[ty]}"
        return {
            "int": lambda: str(pick.randint(-3, 12)),
            "num": lambda: f"{pick.randint(-500, 2000) / 100:.2f}",
            "float": lambda: f"'{pick.randint(-8, 12) / 2}'::float8",
            "text": lambda: "'" + pick.choice(["a", "b", "c1", "d", "e0", ""]) + "'",
            "date": lambda: f"date '2020-{pick.randint(1, 12):02}-{pick.randint(1, 28):02}'",
            "bool": lambda: pick.choice(["true", "false"]),
        }[ty]()

    def column(self, scope, ty):
        fitting = [name for name, own in scope if own == ty]
        return self.pick.choice(fitting) if fitting else self.literal(ty)

    def value(self, scope, ty, depth=2):
        pick = self.pick
        if depth <= 0 or self.chance(0.35):
            return self.column(scope, ty) if self.chance(0.8) else self.literal(ty)
        inner = lambda ty: self.value(scope, ty, depth - 1)
        forms = {
            "int": [
                lambda: f"({inner('int')} {pick.choice('+-*')} {inner('int')})",
                lambda: f"({inner('int')} % nullif({inner('int')}, 0))",
                lambda: f"({inner('int')} / nullif({inner('int')}, 0))",
                lambda: f"abs({inner('int')})",
                lambda: f"length({inner('text')})",
                lambda: f"({inner('date')} - {inner('date')})",
                lambda: f"extract({pick.choice(['month', 'day', 'dow', 'doy'])} FROM {inner('date')})::int",
            ],
            "num": [
                lambda: f"({inner('num')} {pick.choice('+-')} {inner('num')})",
                lambda: f"({inner('num')} * {inner('int')})",
                lambda: f"round({inner('num')}, {pick.randint(-1, 2)})",
                lambda: f"({inner('int')}::numeric / nullif({inner('num')}, 0))",
            ],
            "float": [lambda: f"({inner('float')} {pick.choice('+-')} {inner('float')})", lambda: f"{inner('int')}::float8"],
            "text": [
                lambda: f"({inner('text')} || {inner('text')})",
                lambda: f"upper({inner('text')})",
                lambda: f"left({inner('text')}, {pick.randint(-1, 2)})",
                lambda: f"replace({inner('text')}, 'a', 'xy')",
                lambda: f"{inner('int')}::text",
            ],
            "date": [lambda: f"({inner('date')} + {inner('int')})", lambda: f"({inner('date')} + interval '1 month')::date"],
            "bool": [lambda: f"({self.condition(scope, depth - 1)})"],
        }[ty]
        common = [
            lambda: f"coalesce({inner(ty)}, {inner(ty)})",
            lambda: f"CASE WHEN {self.condition(scope, depth - 1)} THEN {inner(ty)} ELSE {inner(ty)} END",
            lambda: f"{pick.choice(['greatest', 'least'])}({inner(ty)}, {inner(ty)})",
            lambda: f"nullif({inner(ty)}, {inner(ty)})",
        ]
        return pick.choice(forms + (common if self.chance(0.4) else []))()

    def condition(self, scope, depth=2):
        pick = self.pick
        ty = pick.choice(["int", "int", "num", "text", "date", "float"])
        value = lambda: self.value(scope, ty, depth - 1)
        forms = [
            lambda: f"{value()} {pick.choice(['=', '<>', '<', '<=', '>', '>='])} {value()}",
            lambda: f"{value()} IS {pick.choice(['', 'NOT '])}NULL",
            lambda: f"{value()} {pick.choice(['', 'NOT '])}BETWEEN {value()} AND {value()}",
            lambda: f"{value()} {pick.choice(['', 'NOT '])}IN ({', '.join(self.literal(ty) for _ in range(3))})",
            lambda: f"{value()} IS {pick.choice(['', 'NOT '])}DISTINCT FROM {value()}",
            lambda: f"{self.value(scope, 'text', 1)} {pick.choice(['', 'NOT '])}LIKE '{pick.choice(['a%', '%1', '_', '%b%'])}'",
            lambda: self.column([c for c in scope if c[1] == "bool"] or [("true", "bool")], "bool"),
        ]
        if depth > 0:
            forms += [
                lambda: f"({self.condition(scope, depth - 1)} {pick.choice(['AND', 'OR'])} {self.condition(scope, depth - 1)})",
                lambda: f"NOT ({self.condition(scope, depth - 1)})",
            ]
            if self.chance(0.3):
                forms += [lambda: self.subquery_condition(scope, depth - 1)]
        return pick.choice(forms)()

    def table(self):
        name = self.pick.choice(list(TABLES))
        alias = self.name("t")
        return f"{name} {alias}", [(f"{alias}.{column}", ty) for column, ty in TABLES[name].items()]

    def subquery_condition(self, scope, depth):
        pick = self.pick
        table, own = self.table()
        ty = pick.choice([ty for _, ty in own if ty != "bool"])
        where = f" WHERE {self.condition(own + scope, min(depth, 1))}" if self.chance(0.7) else ""
        column = self.column(own, ty)
        return pick.choice([
            lambda: f"{pick.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table}{where})",
            lambda: f"{self.value(scope, ty, 1)} {pick.choice(['', 'NOT '])}IN (SELECT {column} FROM {table}{where})",
            lambda: f"{self.value(scope, ty, 1)} {pick.choice(['<', '>=', '='])} {pick.choice(['ANY', 'ALL'])} (SELECT {column} FROM {table}{where})",
            lambda: f"{self.value(scope, ty, 1)} {pick.choice(['<', '>='])} (SELECT {pick.choice(['min', 'max'])}({column}) FROM {table}{where})",
        ])()

    def source(self, outer, depth):
        """An item of FROM and its columns."""
        pick = self.pick
        if depth > 0 and self.chance(0.2):
            alias = self.name("q")
            query, types = self.query(depth - 1)
            return f"({query}) AS {alias}", [(f"{alias}.c{i + 1}", ty) for i, ty in enumerate(types)]
        return self.table()

    def sources(self, depth):
        text, scope = self.source([], depth)
        for _ in range(self.pick.choice([0, 0, 1, 1, 2])):
            other, own = self.source(scope, depth)
            kind = self.pick.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
            both = scope + own
            if kind == "CROSS JOIN":
                text = f"{text} CROSS JOIN {other}"
            else:
                ty = self.pick.choice(["int", "text"])
                on = f"{self.column(scope, ty)} = {self.column(own, ty)}"
                if kind != "FULL JOIN" and self.chance(0.4):
                    on += f" AND {self.plain_condition(both)}"
                text = f"{text} {kind} {other} ON {on}"
            scope = both
        return text, scope

    def plain_condition(self, scope):
        ty = self.pick.choice(["int", "num", "text"])
        return f"{self.column(scope, ty)} {self.pick.choice(['<', '>', '<>', '='])} {self.value(scope, ty, 1)}"

    def aggregate(self, scope):
        pick = self.pick
        filtered = f" FILTER (WHERE {self.condition(scope, 1)})" if self.chance(0.2) else ""
        text, ty = pick.choice([
            lambda: ("count(*)", "big"),
            lambda: (f"count({self.value(scope, 'text', 1)})", "big"),
            lambda: (f"count(DISTINCT {self.value(scope, 'int', 1)})", "big"),
            lambda: (f"sum({self.value(scope, 'int', 1)})", "big"),
            lambda: (f"sum({self.value(scope, 'num', 1)})", "num"),
            lambda: (f"avg({self.value(scope, 'int', 1)})", "num"),
            lambda: (f"min({self.value(scope, 'text', 1)})", "text"),
            lambda: (f"max({self.value(scope, 'date', 1)})", "date"),
            lambda: (f"max({self.value(scope, 'int', 1)})", "int"),
            lambda: (f"bool_or({self.condition(scope, 1)})", "bool"),
            lambda: (lambda v: (f"string_agg({v}, ',' ORDER BY {v})", "text"))(self.value(scope, "text", 1)),
            lambda: (lambda v: (f"array_agg(DISTINCT {v} ORDER BY {v})::text", "text"))(self.value(scope, "int", 1)),
        ])()
        return (text.replace(")::text", f"){filtered}::text") if text.endswith("::text") else text + filtered), ty

    def window(self, scope):
        pick = self.pick
        ids = [name for name, ty in scope]
        part = f"PARTITION BY {self.value(scope, pick.choice(['int', 'text']), 1)} " if self.chance(0.6) else ""
        first = self.value(scope, "int", 1)
        order = "ORDER BY " + ", ".join([f"{first} {pick.choice(['', 'DESC', 'NULLS FIRST'])}"] + ids)
        frame = pick.choice([
            "", "", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW", " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        ])
        if self.chance(0.3):
            order, frame = f"ORDER BY {first}", pick.choice(["", " RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", " RANGE UNBOUNDED PRECEDING EXCLUDE TIES"])
            call, ty = pick.choice([("rank()", "big"), ("dense_rank()", "big"), (f"sum({self.value(scope, 'int', 1)})", "big"), ("count(*)", "big")])
        else:
            call, ty = pick.choice([
                ("row_number()", "big"), ("ntile(3)", "int"), (f"lag({self.value(scope, 'int', 1)})", "int"),
                (f"lead({self.value(scope, 'text', 1)}, 2, 'none')", "text"), (f"first_value({self.value(scope, 'num', 1)})", "num"),
                (f"sum({self.value(scope, 'int', 1)})", "big"), (f"max({self.value(scope, 'date', 1)})", "date"), ("cume_dist()", "float"),
            ])
        return f"{call} OVER ({part}{order}{frame})", ty

    def query(self, depth=1, types=None):
        """A query without an order, and the types of its columns."""
        pick = self.pick
        if types is None and depth > 0 and self.chance(0.12):
            left, types = self.query(depth - 1)
            right, _ = self.query(depth - 1, types)
            return f"({left}) {pick.choice(['UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL', 'INTERSECT ALL'])} ({right})", types
        source, scope = self.sources(depth)
        where = f" WHERE {self.condition(scope, 2)}" if self.chance(0.6) else ""
        base = ["int", "num", "text", "date", "float"]
        if types is None and self.chance(0.35):
            keys = [(self.value(scope, ty, 1), ty) for ty in pick.sample(["int", "text", "date"], pick.randint(1, 2))]
            keys = [(f"coalesce({text}, NULL)" if "." not in text else text, ty) for text, ty in keys]
            aggregates = [self.aggregate(scope) for _ in range(pick.randint(1, 2))]
            columns = keys + aggregates
            names = ", ".join(f"{text} AS c{i + 1}" for i, (text, _) in enumerate(columns))
            numbers = ", ".join(str(i + 1) for i in range(len(keys)))
            having = f" HAVING count(*) > {pick.randint(1, 2)}" if self.chance(0.3) else ""
            return f"SELECT {names} FROM {source}{where} GROUP BY {numbers}{having}", [ty for _, ty in columns]
        if types is None:
            columns = [(self.value(scope, ty, 2), ty) for ty in (pick.choice(base) for _ in range(pick.randint(1, 3)))]
            if self.chance(0.3):
                columns.append(self.window(scope))
            if depth > 0 and self.chance(0.15):
                table, own = self.table()
                columns.append((f"(SELECT max({self.column(own, 'int')}) FROM {table} WHERE {self.condition(own + scope, 1)})", "int"))
        else:
            columns = [(self.value(scope, ty if ty != "big" else "int", 1) + ("::bigint" if ty == "big" else ""), ty) for ty in types]
        names = ", ".join(f"{text} AS c{i + 1}" for i, (text, _) in enumerate(columns))
        distinct = "DISTINCT " if self.chance(0.15) else ""
        return f"SELECT {distinct}{names} FROM {source}{where}", [ty for _, ty in columns]

    def statement(self):
        query, types = self.query(self.pick.choice([0, 1, 1, 2]))
        order = ", ".join(str(i + 1) for i in range(len(types)))
        limit = f" LIMIT {self.pick.randint(1, 9)}" if self.chance(0.2) else ""
        if self.chance(0.1):
            name = self.name("w")
            return f"WITH {name} AS ({query}) SELECT * FROM {name} ORDER BY {order}{limit}"
        return f"SELECT * FROM ({query}) AS found ORDER BY {order}{limit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--nestor")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    postgres = expressions.connect(options.postgres)
    nestor = expressions.connect(options.nestor) if options.nestor else None
    names = dict(postgres.execute("SELECT oid, format_type(oid, NULL) FROM pg_type").fetchall())
    for connection in filter(None, (postgres, nestor)):
        connection.pgconn.exec_(b"SET statement_timeout = '20s'")
        for table in TABLES:
            connection.pgconn.exec_(f"DROP TABLE IF EXISTS {table}".encode())
        for statement in SETUP:
            assert expressions.answer(connection, statement, names) == "ok", statement
    out = [f"{statement}\n= ok\n" for statement in SETUP]
    maker, wrong, refused = Maker(options.seed), 0, 0
    for _ in range(options.count):
        line = maker.statement()
        wanted = expressions.answer(postgres, line, names)
        refused += wanted.startswith("!")
        if len(wanted) < 1500 and not wanted.startswith("! 0A000"):
            out.append(f"{line}\n= {wanted}\n")
        if nestor:
            try:
                given = expressions.answer(nestor, line, names)
            except Exception as error:
                given = f"lost: {error}"
            if nestor.pgconn.status != pq.ConnStatus.OK:
                nestor = expressions.connect(options.nestor)
            # What PostgreSQL cannot join is no difference.
            if given != wanted and wanted != "! 0A000":
                wrong += 1
                print(f"{line}\n    wanted {wanted[:600]}\n    given  {given[:600]}")
    if options.write:
        (expressions.FOLDER / "random.golden").write_text("\n".join(out))
    print(f"seed {options.seed}: {options.count} queries, {wrong} differ, PostgreSQL refuses {refused}")


if __name__ == "__main__":
    main()
