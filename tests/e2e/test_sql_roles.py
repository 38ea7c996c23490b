"""CREATE ROLE, GRANT and their kin over SQL: they are the users and roles of commands, and rights that hold at once."""

import json

import psycopg
import pymongo
import pytest
from psycopg import errors

from pgclient import port_of


class Shop:
    """A server where everybody logs in, with the user `root`."""

    def __init__(self, start, *flags):
        self.server = start(None, "--sql-port", 0, "--auth", "--setParameter", "authFailedDelayMs=0", *flags)
        self.server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        self.port = port_of(self.server)
        self.root = self.connect("root", "secret")

    def connect(self, user, password="x", database="shop"):
        return psycopg.connect(host="127.0.0.1", port=self.port, user=user, password=password, dbname=database, autocommit=True)

    def commands(self, user="root", password="secret"):
        return self.server.client(username=user, password=password, authSource="admin")


@pytest.fixture
def shop(start):
    return Shop(start)


def rows(connection, query, *params):
    return connection.execute(query, params or None).fetchall()


def test_the_usual_beginning_of_an_application(shop):
    """What init scripts do: a database, a user of its own, who then makes tables."""
    shop.root.execute("CREATE DATABASE app")
    shop.root.execute("CREATE USER app WITH ENCRYPTED PASSWORD 'x'")
    shop.root.execute("GRANT ALL PRIVILEGES ON DATABASE app TO app")
    shop.connect("root", "secret", "app").execute("GRANT ALL ON SCHEMA public TO app")
    shop.root.execute("CREATE USER other PASSWORD 'x'")
    app = shop.connect("app", database="app")
    app.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
    app.execute("INSERT INTO t (v) VALUES ('a'), ('b')")
    app.execute("UPDATE t SET v = 'c' WHERE id = 1")
    app.execute("CREATE INDEX ON t (v)")
    app.execute("ALTER TABLE t ADD COLUMN n int DEFAULT 1")
    app.execute("CREATE VIEW w AS SELECT v FROM t")
    app.execute("CREATE TABLE copied AS SELECT * FROM t")
    assert rows(app, "SELECT v FROM w ORDER BY v") == [("b",), ("c",)]
    assert rows(app, "SELECT count(*) FROM copied") == [(2,)]
    with app.transaction():
        app.execute("CREATE TABLE within (a int)")
    # Whose it is holds from the commit on.
    app.execute("INSERT INTO within VALUES (1)")
    # By commands it is the same user.
    assert shop.commands("app", "x").app.t.count_documents({}) == 2
    other = shop.connect("other", database="app")
    for statement in ["SELECT * FROM t", "INSERT INTO t (v) VALUES ('z')", "DROP TABLE t", "CREATE TABLE u (a int)"]:
        with pytest.raises(errors.InsufficientPrivilege):
            other.execute(statement)
    # Who makes it again does not find that the one before may read it.
    app.execute("DROP TABLE copied")
    shop.connect("root", "secret", "app").execute("CREATE TABLE copied (secret text)")
    with pytest.raises(errors.InsufficientPrivilege):
        app.execute("SELECT * FROM copied")
    # An owner has all.
    shop.root.execute("CREATE DATABASE theirs OWNER other")
    theirs = shop.connect("other", database="theirs")
    theirs.execute("CREATE TABLE t (a int)")
    theirs.execute("DROP TABLE t")


def test_grants_hold_at_once_and_are_taken(shop):
    shop.root.execute("CREATE TABLE items (id int PRIMARY KEY, price int)")
    shop.root.execute("CREATE TABLE secrets (id int)")
    shop.root.execute("CREATE SEQUENCE numbers")
    shop.root.execute("INSERT INTO items VALUES (1, 5)")
    shop.root.execute("CREATE ROLE clerks; CREATE ROLE ann LOGIN PASSWORD 'x' IN ROLE clerks")
    ann = shop.connect("ann")

    def may(statement):
        try:
            ann.execute(statement)
        except errors.InsufficientPrivilege:
            return False
        return True

    tries = {
        "SELECT": "SELECT * FROM items",
        "INSERT": "INSERT INTO items VALUES (2, 2) ON CONFLICT DO NOTHING",
        "UPDATE": "UPDATE items SET price = 1",
        "DELETE": "DELETE FROM items",
    }
    assert not any(map(may, tries.values()))
    for given, then in [("SELECT", ["SELECT"]), ("INSERT", ["SELECT", "INSERT"]), ("UPDATE, DELETE", list(tries))]:
        shop.root.execute(f"GRANT {given} ON items TO clerks")
        assert [name for name, statement in tries.items() if may(statement)] == then
    assert not may("SELECT * FROM secrets") and not may("SELECT nextval('numbers')")
    shop.root.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ann")
    assert may("SELECT nextval('numbers')")
    shop.root.execute("REVOKE ALL ON TABLE items FROM clerks")
    assert not any(map(may, tries.values()))
    shop.root.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerks")
    assert may("SELECT * FROM items") and may("SELECT * FROM secrets")
    # Rights follow a table that gets another name, and do not stay where it was.
    shop.root.execute("ALTER TABLE secrets RENAME TO hidden")
    shop.root.execute("CREATE TABLE secrets (id int)")
    assert may("SELECT * FROM hidden") and not may("SELECT * FROM secrets")
    shop.root.execute("REVOKE clerks FROM ann")
    assert not may("SELECT * FROM items")
    shop.root.execute("GRANT pg_read_all_data TO ann")
    assert may("SELECT * FROM secrets") and not may("DELETE FROM secrets")
    shop.root.execute("ALTER ROLE ann SUPERUSER")
    assert may("DELETE FROM secrets")
    shop.root.execute("ALTER ROLE ann NOSUPERUSER")
    assert not may("DELETE FROM secrets")
    # Nobody gives what is not theirs to give.
    for statement in ["CREATE ROLE x", "GRANT SELECT ON secrets TO ann", "GRANT clerks TO ann", "ALTER USER root PASSWORD 'y'", "DROP ROLE clerks",
                      "ALTER ROLE ann SUPERUSER", "DROP OWNED BY clerks", "REVOKE pg_read_all_data FROM ann"]:
        assert not may(statement), statement


def test_passwords_change_and_roles_go(shop):
    shop.root.execute("CREATE USER bob")
    with pytest.raises(psycopg.OperationalError):
        shop.connect("bob", "")
    shop.root.execute("ALTER USER bob WITH PASSWORD 'first'")
    bob = shop.connect("bob", "first")
    with pytest.raises(errors.InsufficientPrivilege):
        bob.execute("ALTER USER bob PASSWORD 'mine'")
    shop.commands().admin.command("createRole", "mayChange", roles=[], privileges=[
        {"resource": {"db": "admin", "collection": ""}, "actions": ["changeOwnPassword"]}])
    shop.root.execute('GRANT "mayChange" TO bob')
    bob.execute("ALTER USER bob PASSWORD 'mine'")
    with pytest.raises(psycopg.OperationalError):
        shop.connect("bob", "first")
    shop.connect("bob", "mine")
    # A verifier that PostgreSQL's tools make; one of too few iterations is refused.
    stored = shop.commands().admin["system.users"].find_one({"user": "bob"})["credentials"]["SCRAM-SHA-256"]
    verifier = f"SCRAM-SHA-256${stored['iterationCount']}:{stored['salt']}${stored['storedKey']}:{stored['serverKey']}"
    shop.root.execute(f"CREATE USER twin PASSWORD '{verifier}'")
    shop.connect("twin", "mine")
    with pytest.raises(errors.FeatureNotSupported):
        shop.root.execute("CREATE USER third PASSWORD 'SCRAM-SHA-256$4096:AAAA$AAAA:AAAA'")
    shop.root.execute("CREATE TABLE t (a int); GRANT SELECT ON t TO twin")
    with pytest.raises(errors.DependentObjectsStillExist):
        shop.root.execute("DROP ROLE twin")
    shop.root.execute("DROP OWNED BY twin; DROP ROLE twin")
    with pytest.raises(psycopg.OperationalError):
        shop.connect("twin", "mine")
    with pytest.raises(errors.ObjectInUse):
        shop.root.execute("DROP USER root")
    # What is dropped within a transaction that is rolled back is there.
    shop.root.execute("BEGIN; DROP ROLE bob; ROLLBACK")
    shop.connect("bob", "mine")


def test_catalogs_of_roles(shop):
    shop.root.execute("CREATE ROLE staff; CREATE USER eve PASSWORD 'x' CREATEDB IN ROLE staff; CREATE TABLE t (a int)")
    shop.root.execute("GRANT SELECT, DELETE ON t TO staff")
    shown = rows(shop.root, "SELECT rolname, rolsuper, rolcreatedb, rolcanlogin FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1")
    assert shown == [("eve", False, True, True), ("root", True, True, True), ("staff", False, False, False)]
    of = """SELECT m.rolname, g.rolname FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles g ON g.oid = a.roleid"""
    assert rows(shop.root, of) == [("eve", "staff")]
    assert rows(shop.root, "SELECT relacl FROM pg_class WHERE relname = 't'") == [(["staff=rdD/root"],)]
    grants = "SELECT grantee, privilege_type FROM information_schema.role_table_grants WHERE table_name = 't' ORDER BY 2"
    assert rows(shop.root, grants) == [("staff", "DELETE"), ("staff", "SELECT"), ("staff", "TRUNCATE")]
    eve = shop.connect("eve")
    assert rows(eve, "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_'") == [("eve",)], "others are not shown to everybody"
    eve.execute("CREATE DATABASE hers")
    hers = shop.connect("eve", database="hers")
    hers.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    with pytest.raises(errors.InsufficientPrivilege):
        eve.execute("CREATE DATABASE theirs OWNER staff")
    shop.root.execute("CREATE USER kim PASSWORD 'x'; ALTER DATABASE hers OWNER TO kim")
    assert rows(shop.connect("kim", database="hers"), "SELECT a FROM t") == [(1,)]


def test_no_password_is_shown(tmp_path, start):
    """In operations that are listed, in the profile, in the log and in the audit log."""
    audit = tmp_path / "audit.json"
    shop = Shop(start, "--auditDestination", "file", "--auditFormat", "JSON", "--auditPath", audit,
                "--setParameter", "auditAuthorizationSuccess=true")
    shop.commands().shop.command("profile", 2)
    shop.root.execute("CREATE USER zoe PASSWORD 'hunter2'")
    shop.root.execute("SELECT 1; ALTER USER zoe PASSWORD $$hunter2$$")
    with pytest.raises(errors.DuplicateObject):
        shop.root.execute("CREATE USER zoe PASSWORD 'hunter2'", prepare=True)
    profile = list(shop.commands().shop["system.profile"].find())
    assert any("CREATE USER zoe PASSWORD '***'" in str(entry) for entry in profile)
    assert "hunter2" not in str(profile)
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {"createUser", "updateUser"} <= {record["atype"] for record in records}
    assert "hunter2" not in audit.read_text()


def test_what_is_refused(shop):
    """Options that would be ignored, and rights that everybody has."""
    shop.root.execute("CREATE ROLE r; CREATE TABLE t (a int)")
    for statement in [
        "CREATE ROLE x CREATEROLE", "CREATE ROLE x LOGIN CONNECTION LIMIT 5", "CREATE ROLE x LOGIN VALID UNTIL '2030-01-01'", "CREATE ROLE x NOINHERIT",
        "CREATE ROLE x PASSWORD 'p'", "ALTER ROLE r RENAME TO s", "GRANT SELECT ON t TO r WITH GRANT OPTION",
        "GRANT SELECT (a) ON t TO r", "GRANT EXECUTE ON FUNCTION f() TO r", "REVOKE CONNECT ON DATABASE shop FROM PUBLIC",
        "REVOKE GRANT OPTION FOR SELECT ON t FROM r", "GRANT TRIGGER ON t TO r", "GRANT TRUNCATE ON t TO r", "REASSIGN OWNED BY r TO root",
        "CREATE USER x PASSWORD 'md5d41d8cd98f00b204e9800998ecf8427e'",
    ]:
        with pytest.raises(errors.FeatureNotSupported):
            shop.root.execute(statement)
    for statement, state in [
        ("CREATE ROLE r", "42710"), ("CREATE ROLE pg_mine", "42939"), ("DROP ROLE nobody", "42704"), ("GRANT SELECT ON nothing TO r", "42P01"),
        ("GRANT SELECT ON t TO nobody", "42704"), ("GRANT USAGE ON SCHEMA nothing TO r", "3F000"), ("GRANT ALL ON DATABASE nothing TO r", "3D000"),
        ("GRANT EXECUTE ON t TO r", "0LP01"), ("GRANT FLY ON t TO r", "42601"), ("GRANT r TO r", "0LP01"), ("CREATE ROLE a b c", "42601"),
    ]:
        with pytest.raises(psycopg.Error) as refused:
            shop.root.execute(statement)
        assert refused.value.sqlstate == state, statement
    for statement in ["DROP ROLE IF EXISTS nobody", "REVOKE ALL ON SCHEMA public FROM PUBLIC", "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
                      "GRANT USAGE ON SCHEMA public TO r", "GRANT CONNECT, TEMP ON DATABASE shop TO PUBLIC", "GRANT ALL ON t TO r", "REVOKE ALL ON t FROM PUBLIC"]:
        shop.root.execute(statement)


def test_without_logins(start):
    server = start(None, "--sql-port", 0)
    with psycopg.connect(host="127.0.0.1", port=port_of(server), user="postgres", dbname="shop", autocommit=True) as anybody:
        anybody.execute("CREATE TABLE t (a int); CREATE USER app PASSWORD 'x'; GRANT ALL ON t TO app, postgres, CURRENT_USER")
        assert rows(anybody, "SELECT relacl FROM pg_class WHERE relname = 't'") == [(["app=arwdD/postgres"],)]
        user = server.client().admin.command("usersInfo", "app")["users"][0]
        assert user["roles"] == [{"role": "app", "db": "admin"}]
    with pytest.raises(pymongo.errors.OperationFailure):
        server.client(username="app", password="y", authSource="admin").admin.command("ping")


def test_a_gateway_acts_as_its_callers(shop):
    """What gateways to tables do for each request: they take the role of who asks, and no more, until the transaction ends."""
    shop.root.execute("CREATE ROLE anonymous; CREATE ROLE member; CREATE ROLE gateway LOGIN PASSWORD 'x'; GRANT anonymous, member TO gateway")
    shop.root.execute("CREATE TABLE open (a int); CREATE TABLE closed (a int); INSERT INTO closed VALUES (1)")
    shop.root.execute("GRANT SELECT ON open TO PUBLIC; GRANT SELECT ON closed TO member")
    gateway = shop.connect("gateway")
    prepared = "SELECT count(*) FROM closed"
    for _ in range(3):
        with gateway.transaction():
            gateway.execute("SELECT set_config('role', %s, true)", ["member"])
            assert rows(gateway, "SELECT current_user, session_user") == [("member", "gateway")]
            assert gateway.execute(prepared, prepare=True).fetchall() == [(1,)]
        with pytest.raises(errors.InsufficientPrivilege), gateway.transaction():
            gateway.execute("SET LOCAL ROLE anonymous")
            assert rows(gateway, "SELECT count(*) FROM open") == [(0,)]
            gateway.execute(prepared, prepare=True)
        assert rows(gateway, "SELECT current_user") == [("gateway",)]
    for statement in ["SET ROLE root", "SET SESSION AUTHORIZATION member"]:
        with pytest.raises(errors.InsufficientPrivilege):
            gateway.execute(statement)
    # Rights that go are gone for who acts already.
    gateway.execute("SET ROLE member")
    shop.root.execute("REVOKE SELECT ON closed FROM member")
    with pytest.raises(errors.InsufficientPrivilege):
        gateway.execute(prepared)
    shop.root.execute("DROP ROLE member")
    with pytest.raises(psycopg.Error):
        gateway.execute(prepared)
    gateway.execute("RESET ROLE")
    # By commands PUBLIC is everybody as well.
    assert shop.commands("gateway", "x").shop.open.count_documents({}) == 0
    shop.root.execute("REVOKE SELECT ON open FROM PUBLIC")
    with pytest.raises(pymongo.errors.OperationFailure):
        shop.commands("gateway", "x").shop.open.count_documents({})


def test_who_becomes_a_role_is_no_user_of_that_name_elsewhere(shop):
    shop.root.execute("CREATE ROLE ops; CREATE ROLE member LOGIN PASSWORD 'x'; GRANT ops TO member")
    shop.root.execute("CREATE TABLE open (a int); CREATE TABLE closed (a int); GRANT SELECT ON open TO ops")
    shop.commands().shop.command("createUser", "ops", pwd="x", roles=["dbOwner"])
    member = shop.connect("member")
    member.execute("SET ROLE ops")
    assert rows(member, "SELECT count(*) FROM open") == [(0,)]
    for statement in ["SELECT count(*) FROM closed", "DROP TABLE closed"]:
        with pytest.raises(errors.InsufficientPrivilege):
            member.execute(statement)
