"""Temporary tables: each session has its own, which go with it, whatever becomes of it."""

import pytest

from harness import eventually
from pgclient import Sql, port_of


def left(server, **login):
    """The collections of temporary tables, and the entries of their schemas."""
    with server.client(**login) as client:
        return [name for name in client["shop"].list_collection_names() if "pg_temp" in name]


def test_each_session_has_its_own(start):
    server = start(None, "--sql-port", 0)
    one, two = Sql(port_of(server)), Sql(port_of(server))
    for number, sql in enumerate([one, two]):
        sql.query("CREATE TEMP TABLE own (a int)")
        sql.query(f"INSERT INTO own VALUES ({number})")
    assert one.query("SELECT a FROM own") == [[b"0"]]
    assert two.query("SELECT a FROM own") == [[b"1"]]
    [[schema]] = two.query("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
    with pytest.raises(RuntimeError, match="42501|42P01"):
        one.query(f"SELECT a FROM {schema.decode()}.own")
    with pytest.raises(RuntimeError, match="42501|42P01"):
        one.query(f"DROP TABLE {schema.decode()}.own")
    assert one.query("SELECT count(*) FROM pg_class WHERE relname = 'own'") == [[b"1"]]
    one.socket.close()
    eventually(lambda: len(left(server)) == 2)
    assert two.query("SELECT a FROM own") == [[b"1"]]
    two.socket.close()
    eventually(lambda: left(server) == [])


def test_a_server_that_is_killed_leaves_none(start, tmp_path):
    server = start(tmp_path, "--sql-port", 0)
    sql = Sql(port_of(server))
    sql.query("CREATE TABLE kept (a int)")
    sql.query("CREATE TEMP TABLE gone (a int)")
    sql.query("INSERT INTO gone VALUES (1)")
    assert left(server)
    server.kill()
    # Also one that speaks no SQL.
    server = start(tmp_path)
    assert left(server) == []
    assert server.client()["shop"].list_collection_names(filter={"name": "kept"}) == ["kept"]


def test_a_session_may_do_anything_with_its_own_and_others_nothing(start):
    server = start(None, "--sql-port", 0, "--auth", "--setParameter", "authFailedDelayMs=0")
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    root = {"username": "root", "password": "secret", "authSource": "admin"}
    db = server.client(**root)["shop"]
    db.items.insert_one({"_id": 1})
    db.command("createUser", "reader", pwd="x", roles=["read"])
    reader = Sql(port_of(server), user="reader", password="x")
    with pytest.raises(RuntimeError, match="42501"):
        reader.query("CREATE TABLE own (a int)")
    reader.query("CREATE TEMP TABLE own AS SELECT _id AS a FROM items")
    reader.query("UPDATE own SET a = a + 1")
    reader.query("CREATE INDEX ON own (a)")
    assert reader.query("SELECT a FROM own") == [[b"2"]]
    [[schema]] = reader.query("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
    boss = Sql(port_of(server), user="root", password="secret")
    with pytest.raises(RuntimeError, match="42501|42P01"):
        boss.query(f"SELECT a FROM {schema.decode()}.own")
    reader.query("DROP TABLE own")
    reader.socket.close()
    eventually(lambda: left(server, **root) == [])
