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
    assert clerk.query("SELECT rolsuper FROM pg_roles") == [[b"f"]]
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
    for statement, action in actions.items():
        refused("42501", maker.query, statement)
        some[0]["actions"].append(action)
        root.shop.command("updateRole", "ofT", privileges=some)
        maker.query(statement)


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
