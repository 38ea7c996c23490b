"""What a BI tool asks while it looks at a database and then draws: tables, columns with keys and comments, references, rights, questions."""

import datetime
from decimal import Decimal

import harness
import pytest

from pgclient import port_of

psycopg = pytest.importorskip("psycopg")

MADE = [
    "CREATE TYPE state AS ENUM ('open', 'paid')",
    "CREATE TABLE orders (id serial PRIMARY KEY, state state NOT NULL DEFAULT 'open', placed timestamptz NOT NULL, total numeric(10,2), meta jsonb)",
    "COMMENT ON TABLE orders IS 'what was ordered'",
    "COMMENT ON COLUMN orders.total IS 'with tax'",
    'CREATE TABLE "OrderLines" (no int, order_id int REFERENCES orders ON DELETE CASCADE, sku text UNIQUE, PRIMARY KEY (order_id, no))',
    'CREATE VIEW "Big orders" AS SELECT * FROM orders WHERE total > 100',
    "INSERT INTO orders (state, placed, total, meta) VALUES ('paid', '2024-01-31 23:30+00', 150, '{\"a\": {\"b\": \"x\"}, \"n\": 5}'), "
    "('open', '2024-02-01 10:00+00', 50, '{\"a\": {\"b\": \"y\"}}'), ('paid', '2024-02-15 10:00+00', 20.5, NULL)",
    "CREATE MATERIALIZED VIEW daily AS SELECT date_trunc('day', placed) AS day, sum(total) AS total FROM orders GROUP BY 1",
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with harness.Server(tmp_path_factory.mktemp("bi"), "--sql-port", "0") as server:
        with psycopg.connect(f"host=127.0.0.1 port={port_of(server)} user=tester dbname=shop", autocommit=True) as connection:
            for statement in MADE:
                connection.execute(statement)
            yield connection


def rows(connection, query):
    return connection.execute(query).fetchall()


def test_tables(connection):
    found = rows(connection, """
        SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'kept' END AS kind, d.description, s.n_live_tup
        FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        LEFT JOIN pg_stat_user_tables AS s ON s.schemaname = n.nspname AND s.relname = c.relname
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
        ORDER BY kind, 1""")
    assert [row[:3] for row in found] == [
        ("daily", "kept", None), ("OrderLines", "table", None), ("orders", "table", "what was ordered"), ("Big orders", "view", None),
    ]
    assert {row[0]: row[3] for row in found} == {"daily": 3, "OrderLines": 0, "orders": 3, "Big orders": None}


def test_columns(connection):
    found = rows(connection, """
        SELECT c.table_name, c.column_name, c.udt_name, k.column_name IS NOT NULL,
               col_description(format('%I.%I', c.table_schema::text, c.table_name::text)::regclass::oid, c.ordinal_position),
               c.is_nullable = 'NO' AND c.column_default IS NULL,
               coalesce(c.column_default LIKE '%nextval(%', false) OR c.is_identity = 'YES'
        FROM information_schema.columns AS c
        LEFT JOIN (SELECT t.table_schema, t.table_name, u.column_name
                   FROM information_schema.table_constraints AS t
                   JOIN information_schema.key_column_usage AS u USING (constraint_name, table_schema, table_name)
                   WHERE t.constraint_type = 'PRIMARY KEY') AS k
          ON k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name
        WHERE c.table_schema = 'public' AND c.table_name IN ('orders', 'OrderLines')
        ORDER BY 1, c.ordinal_position""")
    assert found == [
        ("OrderLines", "no", "int4", True, None, True, False),
        ("OrderLines", "order_id", "int4", True, None, True, False),
        ("OrderLines", "sku", "text", False, None, False, False),
        ("orders", "id", "int4", True, None, False, True),
        ("orders", "state", "state", False, None, False, False),
        ("orders", "placed", "timestamptz", False, None, True, False),
        ("orders", "total", "numeric", False, "with tax", False, False),
        ("orders", "meta", "jsonb", False, None, False, False),
    ]
    kept = rows(connection, """
        SELECT a.attname, t.typname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE c.relkind = 'm' AND a.attnum > 0 ORDER BY a.attnum""")
    assert kept == [("day", "timestamptz"), ("total", "numeric")]


def test_references_and_rights(connection):
    assert rows(connection, """
        SELECT f.relname, fa.attname, p.relname, pa.attname
        FROM pg_constraint AS c
        JOIN pg_class AS f ON f.oid = c.conrelid JOIN pg_attribute AS fa ON fa.attrelid = f.oid AND fa.attnum = ANY (c.conkey)
        JOIN pg_class AS p ON p.oid = c.confrelid JOIN pg_attribute AS pa ON pa.attrelid = p.oid AND pa.attnum = ANY (c.confkey)
        WHERE c.contype = 'f'::"char" """) == [("OrderLines", "order_id", "orders", "id")]
    assert rows(connection, """
        SELECT i.relname, trim(BOTH '"' FROM pg_get_indexdef(i.oid, (information_schema._pg_expandarray(x.indkey)).n, false))
        FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
        WHERE x.indrelid = '"OrderLines"'::regclass AND x.indexprs IS NULL AND x.indpred IS NULL ORDER BY 1, 2""") == [
        ("OrderLines_pkey", "no"), ("OrderLines_pkey", "order_id"), ("OrderLines_sku_key", "sku"),
    ]
    assert rows(connection, """
        SELECT t.name, has_any_column_privilege(current_user, quote_ident(t.schema) || '.' || quote_ident(t.name), 'update'),
               has_table_privilege(current_user, '"' || t.schema || '"."' || t.name || '"', 'delete')
        FROM (SELECT schemaname, tablename FROM pg_tables UNION SELECT schemaname, viewname FROM pg_views) AS t (schema, name)
        WHERE t.schema !~ '^(pg_|information_schema)' AND has_schema_privilege(current_user, t.schema, 'usage') ORDER BY 1""") == [
        ("Big orders", True, True), ("OrderLines", True, True), ("orders", True, True),
    ]


def test_questions(connection):
    assert rows(connection, """
        SELECT date_trunc('month', "public"."orders"."placed" AT TIME ZONE 'Europe/Berlin') AS "placed", sum("public"."orders"."total") AS "sum"
        FROM "public"."orders" WHERE "public"."orders"."placed" >= date_trunc('year', timestamptz '2024-05-05 00:00Z')
        GROUP BY date_trunc('month', "public"."orders"."placed" AT TIME ZONE 'Europe/Berlin') ORDER BY 1""") == [
        (datetime.datetime(2024, 2, 1), Decimal("220.50")),
    ]
    assert rows(connection, """
        SELECT ("public"."orders"."meta" #>> ARRAY['a', 'b']::text[])::text AS "meta → a → b", avg(("public"."orders"."meta" #>> ARRAY['n'])::bigint)
        FROM "public"."orders" GROUP BY 1 ORDER BY 1 NULLS FIRST""") == [(None, None), ("x", Decimal(5)), ("y", None)]
    assert rows(connection, """
        SELECT "source"."state", round("source"."share", 2)
        FROM (SELECT "state", count(*) * 1.0 / sum(count(*)) OVER () AS "share" FROM "orders" GROUP BY "state") AS "source"
        ORDER BY "source"."share" DESC LIMIT 2000""") == [("paid", Decimal("0.67")), ("open", Decimal("0.33"))]
    assert rows(connection, 'SELECT "id" FROM "public"."Big orders" LIMIT 1048575') == [(1,)]
    with psycopg.ServerCursor(connection, "asked", withhold=True) as cursor:
        assert cursor.execute("SELECT day, total FROM daily ORDER BY day").fetchmany(2)[0][1] == Decimal("150.00")
