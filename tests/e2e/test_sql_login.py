"""Who may come over the port for SQL, and what is seen there: the users, rights and masks that commands have."""

import os
import shutil
import ssl
import subprocess

import pytest

from certificates import Authority
from harness import eventually
from pgclient import Sql, port_of

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}


@pytest.fixture
def shop(start):
    server = start(None, "--sql-port", 0, "--auth", "--setParameter", "authFailedDelayMs=0")
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    root = server.client(**ROOT)
    db = root.shop
    db.create_collection("people", masking={"ssn": "hide", "name": "hash", "email": "email"})
    db.people.insert_many({"_id": n, "ssn": f"number {n}", "name": "ann", "email": f"ann{n}@example.org"} for n in range(3))
    db.create_collection("all_of_them", viewOn="people", pipeline=[])
    db.people.create_index("ssn")
    db.items.insert_one({"_id": 1, "price": 5})
    root.other.things.insert_one({"_id": 1})
    db.command("createUser", "reader", pwd="x", roles=["read"])
    db.command(
        "createRole", "itemsOnly", roles=[],
        privileges=[{"resource": {"db": "shop", "collection": "items"}, "actions": ["find"]}],
    )
    db.command("createUser", "clerk", pwd="x", roles=["itemsOnly"])
    db.command("createUser", "old", pwd="x", roles=["read"], mechanisms=["SCRAM-SHA-1"])
    db.command(
        "createUser", "elsewhere", pwd="x", roles=["read"],
        authenticationRestrictions=[{"clientSource": ["10.9.8.7"]}],
    )
    return server, root, port_of(server)


def refused(state, act, *args, **kwargs):
    with pytest.raises(RuntimeError, match=f"^{state} ") as caught:
        act(*args, **kwargs)
    return str(caught.value)


def test_passwords(shop):
    _, _, port = shop
    assert Sql(port, user="reader", password="x").query("SELECT price FROM items") == [[b"5"]]
    assert Sql(port, user="root", password="secret").query("SELECT current_user") == [[b"root"]]
    said = {
        refused("28P01", Sql, port, user=user, password="wrong").replace(user, "?")
        for user in ["reader", "root", "nobody"]
    }
    assert len(said) == 1, "nobody learns who exists"
    refused("28P01", Sql, port, user="old", password="x")
    refused("28P01", Sql, port, user="elsewhere", password="x")
    # A user of another database is none of this one's.
    refused("28P01", Sql, port, database="other", user="reader", password="x")


def test_nothing_is_said_before_the_login(shop):
    _, _, port = shop
    for tag, body in [(b"Q", b"SELECT 1\0"), (b"p", b"PLAIN\0\0\0\0\0"), (b"p", b"x"), (b"p", b"SCRAM-SHA-256\0\x7f\0\0\0")]:
        raw = Sql.__new__(Sql)
        raw.begin(port, "shop", "reader")
        assert raw.asked()[0] == 10
        raw.send(tag, body)
        assert raw.message()[0] == b"E"
        assert raw.socket.recv(1) == b""


def test_rights(shop):
    _, root, port = shop
    clerk = Sql(port, user="clerk", password="x")
    assert clerk.query("SELECT price FROM items") == [[b"5"]]
    for table in ["people", "all_of_them", "other.things", "nothing_there"]:
        refused("42501", clerk.query, f"SELECT * FROM {table}")
        refused("42501", clerk.query, f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {table})")
        refused("42501", clerk.query, f"EXPLAIN SELECT * FROM {table}")
    assert clerk.query("SELECT relname FROM pg_class WHERE relname IN ('items', 'people')") == [[b"items"]]
    assert clerk.query("SELECT indexname FROM pg_indexes") == [], "that takes a right of its own"
    assert len(Sql(port, user="reader", password="x").query("SELECT indexname FROM pg_indexes")) == 3
    assert clerk.query("SELECT rolname, rolsuper FROM pg_roles") == [[b"clerk", b"f"], [b"pg_database_owner", b"f"]]
    assert clerk.query("SELECT table_name FROM information_schema.columns WHERE column_name = 'ssn'") == []
    assert clerk.query("SELECT datname FROM pg_database") == [[b"shop"]]
    # Rights go while the connection stays.
    root.shop.command("revokeRolesFromUser", "clerk", roles=["itemsOnly"])
    refused("42501", clerk.query, "SELECT price FROM items")
    root.shop.command("dropUser", "clerk")
    refused("28000", clerk.query, "SELECT 1")


def test_rights_to_change_tables(shop):
    """Each statement takes the action that the command for it takes; `read` has none of them."""
    _, root, port = shop
    reader = Sql(port, user="reader", password="x")
    for statement in [
        "CREATE TABLE t (a int)", "DROP TABLE items", "DROP TABLE nothing_there", "DROP VIEW all_of_them", "TRUNCATE items",
        "CREATE INDEX ON items (price)", "DROP INDEX people_ssn_1",
    ]:
        refused("42501", reader.query, statement)
    actions = {
        "CREATE TABLE t (a int)": "createCollection", "CREATE INDEX i ON t (a)": "createIndex",
        "DROP INDEX i": "dropIndex", "TRUNCATE t": "remove", "DROP TABLE t": "dropCollection",
    }
    some = [{"resource": {"db": "shop", "collection": "t"}, "actions": ["find"]}]
    root.shop.command("createRole", "ofT", roles=[], privileges=some)
    root.shop.command("createUser", "maker", pwd="x", roles=["ofT"])
    maker = Sql(port, user="maker", password="x")
    Sql(port, user="root", password="secret").query("CREATE TABLE declared (_id bigint PRIMARY KEY)")
    # A key of another table tells what is in there.
    some[0]["actions"].append("createCollection")
    root.shop.command("updateRole", "ofT", privileges=some)
    for table in ["declared", "nothing_there"]:
        refused("42501", maker.query, f"CREATE TABLE t (_id bigint PRIMARY KEY, a bigint REFERENCES {table} (_id))")
    some[0]["actions"].remove("createCollection")
    root.shop.command("updateRole", "ofT", privileges=some)
    for statement, action in actions.items():
        refused("42501", maker.query, statement)
        some[0]["actions"].append(action)
        root.shop.command("updateRole", "ofT", privileges=some)
        maker.query(statement)


def test_rights_to_merge(shop):
    """What the clauses do has to be allowed, and no more than that."""
    _, root, port = shop
    Sql(port, user="root", password="secret").query("CREATE TABLE t (_id bigint PRIMARY KEY, v bigint)")
    some = [{"resource": {"db": "shop", "collection": "t"}, "actions": ["find"]}]
    root.shop.command("createRole", "ofT", roles=[], privileges=some)
    root.shop.command("createUser", "merger", pwd="x", roles=["ofT"])
    merger = Sql(port, user="merger", password="x")
    merge = "MERGE INTO t USING (VALUES (1), (2)) AS s (id) ON t._id = s.id "
    merger.query(merge + "WHEN MATCHED THEN DO NOTHING")
    for action, clause in {
        "insert": "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)",
        "update": "WHEN MATCHED AND s.id = 1 THEN UPDATE SET v = v + 1",
        "remove": "WHEN MATCHED AND s.id = 2 THEN DELETE",
    }.items():
        # Whether there is a row for it or not.
        refused("42501", merger.query, merge + clause)
        refused("42501", merger.query, merge.replace("ON ", "ON false AND ") + clause)
        some[0]["actions"].append(action)
        root.shop.command("updateRole", "ofT", privileges=some)
        merger.query(merge + clause)
    assert merger.query("SELECT * FROM t") == [[b"1", b"2"]]
    refused("42501", merger.query, "MERGE INTO t USING people p ON p._id = t._id WHEN MATCHED THEN DELETE")


def test_masks(shop):
    _, _, port = shop
    reader = Sql(port, user="reader", password="x")
    plain = Sql(port, user="root", password="secret")
    assert plain.query("SELECT ssn FROM people WHERE ssn = 'number 1'") == [[b"number 1"]]
    for table in ["people", "all_of_them"]:
        shown = repr(reader.query(f"SELECT _doc, * FROM {table}"))
        assert "number" not in shown and "'ann'" not in shown and "ann1" not in shown, shown
        assert reader.query(f"SELECT _id FROM {table} WHERE email = 'ann1@example.org'") == []
        # A column that is hidden is none.
        refused("42703", reader.query, f"SELECT _id FROM {table} WHERE ssn = 'number 1'")
        assert reader.query(f"SELECT _id FROM {table} WHERE _doc->>'ssn' = 'number 1'") == []
    assert reader.query("SELECT count(*) FROM people a JOIN people b ON a.email = b.email AND b.email LIKE 'ann1@%'") == [[b"0"]]


def test_masks_whatever_way_rows_are_read(shop):
    """Index entries, their order, minima, counts and rows looked up by key tell nothing that reading the documents does not."""
    _, root, port = shop
    root.shop.people.create_index("email")
    root.shop.people.create_index("name")
    root.shop.people.insert_one({"_id": 9, "ssn": "number 9", "name": "zoe", "email": "zoe9@example.org"})
    # So that no document of the collection has to be looked at to know what columns there are.
    root.shop.items.insert_many({"_id": n, "who": n - 10, "email": f"ann{n % 3}@example.org"} for n in range(10, 20))
    reader = Sql(port, user="reader", password="x")
    asked = [
        "SELECT email FROM people ORDER BY email LIMIT 3",
        "SELECT email FROM people ORDER BY email DESC LIMIT 1",
        "SELECT min(email), max(email), min(name), max(name) FROM people",
        "SELECT DISTINCT email FROM people",
        "SELECT DISTINCT ON (email) email, name FROM people ORDER BY email",
        "SELECT email FROM people WHERE email > 'a'",
        "SELECT name FROM people WHERE name > ''",
        "SELECT email, name FROM people WHERE _id = 9",
        "SELECT * FROM people WHERE _id IN (1, 9)",
        "SELECT * FROM people WHERE _id = ANY (ARRAY[1, 9])",
        "SELECT _doc FROM people WHERE _id BETWEEN 1 AND 9",
        "SELECT p.email, p.name FROM items i JOIN people p ON p._id = i.who",
        "SELECT p.email FROM items i LEFT JOIN LATERAL (SELECT email FROM people p WHERE p._id = i.who) p ON true",
        "SELECT (SELECT max(p.email) FROM people p WHERE p._id = i.who) FROM items i",
        "SELECT string_agg(email, ',') FROM people",
        "SELECT lag(email) OVER (ORDER BY email) FROM people",
        "SELECT email FROM people UNION SELECT name FROM people",
        "WITH p AS MATERIALIZED (SELECT * FROM people) SELECT email FROM p",
        "TABLE people",
        "SELECT row_to_json(p) FROM people p",
        "SELECT most_common_vals FROM pg_stats WHERE tablename = 'people'",
        "EXPLAIN (ANALYZE, BUFFERS) SELECT email FROM people ORDER BY email LIMIT 1",
    ]
    for statement in asked:
        for prepared in [False, True]:
            try:
                shown = repr(reader.prepared(statement, []) if prepared else reader.query(statement))
            except RuntimeError as failure:
                shown = str(failure)
            assert not any(secret in shown for secret in ["number", "ann0", "ann1", "zoe", "'ann'"]), (statement, shown)
    nothing = [
        "SELECT _id FROM people WHERE email = 'zoe9@example.org'",
        "SELECT _id FROM people WHERE _id = 9 AND email = 'zoe9@example.org'",
        "SELECT _id FROM people WHERE email > 'zoe8' AND email < 'zoe9~'",
        "SELECT _id FROM people WHERE name IN ('zoe', 'ann')",
        "SELECT p._id FROM items i JOIN people p ON p.email = i.email",
        "SELECT 1 FROM people WHERE email LIKE 'zoe9%'",
    ]
    for statement in nothing:
        assert reader.query(statement) == [], statement
    assert reader.query("SELECT count(*) FROM people WHERE email >= 'zoe'") == [[b"0"]]
    assert reader.query("SELECT count(*) FROM people") == [[b"4"]]
    # The order of rows is that of what is shown: all addresses of the same form, then by key.
    assert reader.query("SELECT _id FROM people ORDER BY email DESC, _id LIMIT 1") == [[b"9"]], "z comes last in what is shown, too"
    copied = b""
    reader.send(b"Q", b"COPY people TO STDOUT\0")
    for tag, body in reader.until_ready():
        copied += body if tag == b"d" else b""
    assert b"ann1" not in copied and b"zoe" not in copied and b"number" not in copied


def test_tls(start, tmp_path):
    authority = Authority(tmp_path)
    pem = authority.issue("server.pem", CN="localhost")[0]
    tls = ssl.create_default_context(cafile=str(authority.file))
    for mode, plain in [("allowTLS", True), ("requireTLS", False)]:
        server = start(None, "--sql-port", 0, "--tlsMode", mode, "--tlsCertificateKeyFile", pem)
        port = port_of(server)
        sql = Sql(port, tls=tls)
        assert sql.query("SELECT 1") == [[b"1"]]
        assert len(sql.query("SELECT repeat('x', 1000) FROM generate_series(1, 2000)")) == 2000
        if plain:
            assert Sql(port).query("SELECT 1") == [[b"1"]]
        else:
            refused("28000", Sql, port)
    with pytest.raises(RuntimeError, match="no TLS"):
        Sql(port_of(start(None, "--sql-port", 0)), tls=tls)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not here")
def test_psql(shop):
    server, root, port = shop
    args = ["psql", "-XAtc", "SELECT price FROM items", "-h", "127.0.0.1", "-p", str(port), "-U", "reader", "shop"]
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, env={**os.environ, "PGPASSWORD": "x"})
    assert (done.stdout, done.stderr) == ("5\n", "")
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, env={**os.environ, "PGPASSWORD": "y"})
    assert 'password authentication failed for user "reader"' in done.stderr
    eventually(lambda: '"Failed to authenticate"' in server.said() and '"Successfully authenticated"' in server.said())
