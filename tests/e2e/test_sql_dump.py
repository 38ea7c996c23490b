"""pg_dump, pg_restore and COPY, unmodified, from Nestor into PostgreSQL and back."""

import re

import harness
import pytest

import postgres
from pgclient import port_of

SCHEMA = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'so, so');
CREATE SCHEMA app;
CREATE SEQUENCE counter START 100 INCREMENT 10 MAXVALUE 1000 CYCLE;
CREATE TABLE customers (id serial PRIMARY KEY, name varchar(40) NOT NULL, email text UNIQUE, balance numeric(12,2) DEFAULT 0,
    created timestamptz, tags text[], profile jsonb, CONSTRAINT positive CHECK (balance >= 0));
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5) PRIMARY KEY,
    customer_id int NOT NULL REFERENCES customers(id) ON DELETE CASCADE, placed date, total double precision,
    twice double precision GENERATED ALWAYS AS (total * 2) STORED, m mood DEFAULT 'ok', ms mood[]);
CREATE INDEX orders_placed ON orders (placed DESC, customer_id);
CREATE TABLE app.lines (order_id bigint, line int, "Odd Name" text, sku char(8), qty smallint, price real, u uuid, b bytea, t time, i interval,
    r int4range, bt bit(5), PRIMARY KEY (order_id, line), FOREIGN KEY (order_id) REFERENCES public.orders(id),
    UNIQUE (u) INCLUDE (qty, price));
CREATE UNIQUE INDEX lines_sku ON app.lines (sku) INCLUDE ("Odd Name");
CREATE VIEW rich AS SELECT id, name, balance FROM customers WHERE balance > 100;
CREATE MATERIALIZED VIEW totals AS SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id;
CREATE UNIQUE INDEX totals_customer ON totals (customer_id);
COMMENT ON TABLE customers IS 'who buys';
COMMENT ON COLUMN customers.name IS 'as on the card';
INSERT INTO customers (name, email, balance, created, tags, profile) VALUES
    ('Ada', 'ada@x', 120.50, '2024-01-01 00:00+00', '{a,"b c",NULL}', '{"k": [1, null]}'), (E'B\\tb\\n\\\\', NULL, 3, NULL, '{}', NULL);
INSERT INTO orders (customer_id, placed, total, ms) VALUES (1, '2024-02-01', 10, '{sad,"so, so"}'), (1, '2024-02-02', 1e300, NULL), (2, NULL, NULL, NULL);
INSERT INTO app.lines VALUES (10, 1, 'x', 'sku1', 2, 1.5, '6ba7b810-9dad-11d1-80b4-00c04fd430c8', '\\x00ff', '01:02:03', '1 day 02:00', '[1,5)', '10101'),
    (10, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
REFRESH MATERIALIZED VIEW totals;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.tags := NEW.tags || TG_ARGV[0]; RETURN NEW; END $$;
CREATE TRIGGER touched BEFORE UPDATE OF balance ON customers FOR EACH ROW WHEN (OLD.balance IS DISTINCT FROM NEW.balance) EXECUTE FUNCTION touch('it''s');
CREATE FUNCTION app.customer(wanted int, OUT label text) LANGUAGE plpgsql STABLE STRICT AS $$ BEGIN SELECT name INTO label FROM customers WHERE id = wanted; END $$;
CREATE FUNCTION buyers(VARIADIC ids int[]) RETURNS SETOF customers LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT * FROM customers WHERE id = ANY (ids) ORDER BY id; END $$;
CREATE PROCEDURE pay(who int, INOUT amount numeric DEFAULT 1) LANGUAGE plpgsql AS $$ BEGIN UPDATE customers SET balance = balance + amount WHERE id = who RETURNING balance INTO amount; END $$;
SELECT nextval('counter'), nextval('counter');
"""

# What a database answers, whichever it is.
ASKED = [
    "SELECT * FROM customers ORDER BY id",
    "SELECT * FROM orders ORDER BY id",
    "SELECT * FROM app.lines ORDER BY order_id, line",
    "SELECT * FROM rich",
    "SELECT * FROM totals ORDER BY customer_id",
    "SELECT last_value, is_called FROM counter",
    "SELECT obj_description('customers'::regclass), col_description('customers'::regclass, 2)",
    "SELECT indexdef FROM pg_indexes WHERE tablename = 'lines' ORDER BY indexname",
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'app.lines'::regclass AND contype <> 'f' ORDER BY conname",
    # What was declared holds, and numbers go on where they were.
    "INSERT INTO customers (name) VALUES ('next') RETURNING id, balance",
    "INSERT INTO orders (customer_id, total) VALUES (3, 4) RETURNING id, twice, m",
    "SELECT nextval('counter')",
    "SELECT app.customer(1), app.customer(NULL)",
    "CALL pay(2, 5)",
    "CALL pay(2, 0)",
    "SELECT id, name, balance, tags FROM buyers(1, 2)",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'touched'",
    "SELECT proname, provolatile, proisstrict, prokind, proargmodes FROM pg_proc WHERE proname IN ('customer', 'buyers', 'pay', 'touch') ORDER BY 1",
]
REFUSED = [
    ("INSERT INTO customers (name, balance) VALUES ('x', -1)", "23514"),
    ("INSERT INTO customers (name, email) VALUES ('x', 'ada@x')", "23505"),
    ("INSERT INTO orders (customer_id) VALUES (99)", "23503"),
    ("INSERT INTO app.lines (order_id, line) VALUES (10, 1)", "23505"),
    ("INSERT INTO totals VALUES (1, 1)", "42809"),
]


@pytest.fixture(scope="module")
def nestor(tmp_path_factory):
    postgres.need("psql", "pg_dump", "pg_restore")
    with harness.Server(tmp_path_factory.mktemp("dumped"), "--sql-port", "0") as server:
        yield port_of(server)


@pytest.fixture(scope="module")
def other(nestor, tmp_path_factory):
    cluster = postgres.Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster.port
    cluster.stop()


@pytest.fixture
def databases(nestor, other, request):
    """The ports, and the name of a database that is in both."""
    name = f"d{request.node.name.split('_')[-1]}"
    postgres.psql("-q", "-c", f'CREATE DATABASE "{name}"', port=other, database="postgres")
    return nestor, other, name


def answers(port, database):
    return [postgres.psql("-At", "-c", query, port=port, database=database) for query in ASKED]


def refusals(port, database):
    said = [f"{statement};\n\\echo :SQLSTATE" for statement, _ in REFUSED]
    out = postgres.run("psql", "-X", "-q", text="\n".join(said), port=port, database=database)
    return re.findall(r"^(\w{5})$", out, re.MULTILINE)


def test_a_dump_of_nestor_is_one_of_postgresql(databases):
    """As SQL into PostgreSQL, which answers the same."""
    nestor, other, name = databases
    postgres.psql("-q", text=SCHEMA, port=nestor, database=name)
    dump = postgres.run("pg_dump", port=nestor, database=name)
    postgres.psql("-q", text=dump, port=other, database=name)
    # Asking writes: the original is asked once the copy was taken.
    assert answers(other, name) == answers(nestor, name)
    states = [state for _, state in REFUSED]
    assert refusals(nestor, name) == states
    # PostgreSQL says another thing of materialized views than of other objects that take no rows.
    assert refusals(other, name)[:4] == states[:4]


def test_a_dump_of_postgresql_comes_and_goes(databases, tmp_path):
    """By pg_restore, and from Nestor back into PostgreSQL."""
    nestor, other, name = databases
    postgres.psql("-q", text=SCHEMA, port=other, database=name)
    first = tmp_path / "first.dump"
    postgres.run("pg_dump", "-Fc", "-f", first, port=other, database=name)
    postgres.run("pg_restore", "--exit-on-error", "--no-owner", first, port=nestor, database=name)
    again = tmp_path / "again.dump"
    postgres.run("pg_dump", "-Fc", "-f", again, port=nestor, database=name)
    postgres.psql("-q", "-c", "CREATE DATABASE back", port=other, database="postgres")
    postgres.run("pg_restore", "--exit-on-error", again, port=other, database="back")
    expected = answers(other, name)
    assert answers(nestor, name) == expected
    assert answers(other, "back") == expected


def test_rows_as_statements(databases):
    """pg_dump --inserts overrides the numbers of columns GENERATED ALWAYS."""
    nestor, other, name = databases
    postgres.psql("-q", text=SCHEMA, port=nestor, database=name)
    dump = postgres.run("pg_dump", "--inserts", port=nestor, database=name)
    assert "OVERRIDING SYSTEM VALUE" in dump
    copy = f"{name}_copy"
    postgres.psql("-q", text=dump, port=nestor, database=copy)
    assert answers(nestor, copy) == answers(nestor, name)


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_files_of_copy(databases, form, tmp_path):
    nestor, other, name = databases
    for port in [nestor, other]:
        postgres.psql("-q", text=SCHEMA, port=port, database=name)
    for table in ["customers", "app.lines"]:
        file = tmp_path / table
        query = "SELECT * FROM {} ORDER BY 1, 2".format(table)
        files = []
        for port in [nestor, other]:
            postgres.psql("-c", f"\\copy ({query}) TO '{file}' (FORMAT {form})", port=port, database=name)
            files.append(file.read_bytes())
        assert files[0] == files[1]
        for port in [nestor, other]:
            postgres.psql("-q", "-c", f"CREATE TABLE copied AS SELECT * FROM {table} WHERE false", port=port, database=name)
            postgres.psql("-q", "-c", f"\\copy copied FROM '{file}' (FORMAT {form})", port=port, database=name)
            shown = postgres.psql("-At", "-c", "SELECT * FROM copied ORDER BY 1, 2", port=port, database=name)
            assert shown == postgres.psql("-At", "-c", query, port=port, database=name)
            postgres.psql("-q", "-c", "DROP TABLE copied", port=port, database=name)
