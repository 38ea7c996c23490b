"""Row level security over SQL: policies, who is subject to them, and what commands do with such collections.

What PostgreSQL 15 answers to the same statements stands beside them; differences are those of `docs/row-security.md`.
"""

import psycopg
import pymongo
import pytest
from psycopg import errors

from pgclient import port_of

VIOLATES = 'new row violates row-level security policy for table "t"'


class Shop:
    """A server where everybody logs in: root, a table `t` of three rows with row security, and two users of it."""

    def __init__(self, start):
        self.server = start(None, "--sql-port", 0, "--auth", "--setParameter", "authFailedDelayMs=0")
        self.server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        self.port = port_of(self.server)
        self.root = self.connect("root", "secret")
        self.root.execute("CREATE TABLE t (id int PRIMARY KEY, o text, v int)")
        self.root.execute("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'a', 3)")
        self.root.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        for user in "ab":
            self.root.execute(f"CREATE USER {user} PASSWORD 'x'")
            self.root.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON t TO {user}")
        self.a, self.b = self.connect("a"), self.connect("b")

    def connect(self, user, password="x", database="shop"):
        return psycopg.connect(host="127.0.0.1", port=self.port, user=user, password=password, dbname=database, autocommit=True)

    def commands(self, user, password="x"):
        return self.server.client(username=user, password=password, authSource="admin").shop


@pytest.fixture
def shop(start):
    return Shop(start)


def rows(connection, query, *params):
    return connection.execute(query, params or None).fetchall()


def ids(connection, query="SELECT id FROM t"):
    return sorted(row[0] for row in rows(connection, query))


def refused(connection, statement, state, message=None):
    with pytest.raises(psycopg.Error) as error:
        connection.execute(statement)
    assert error.value.sqlstate == state, (statement, error.value)
    if message is not None:
        assert error.value.diag.message_primary == message, statement
    return error.value.diag


def test_without_policies_nothing_is_there(shop):
    assert ids(shop.a) == []
    refused(shop.a, "INSERT INTO t VALUES (4, 'a', 4)", "42501", VIOLATES)
    assert shop.a.execute("UPDATE t SET v = 1").rowcount == 0
    assert shop.a.execute("DELETE FROM t").rowcount == 0
    assert ids(shop.root) == [1, 2, 3]
    assert rows(shop.a, "SELECT row_security_active('t')") == [(True,)]
    assert rows(shop.root, "SELECT row_security_active('t')") == [(False,)]
    shop.root.execute("ALTER TABLE t DISABLE ROW LEVEL SECURITY")
    assert ids(shop.a) == [1, 2, 3]


def test_policies_of_each_command(shop):
    for policy in [
        "sel ON t FOR SELECT USING (o = current_user)",
        "ins ON t FOR INSERT WITH CHECK (v < 100)",
        "upd ON t FOR UPDATE USING (v < 50) WITH CHECK (v < 60)",
        "del ON t FOR DELETE USING (v <> 3)",
    ]:
        shop.root.execute(f"CREATE POLICY {policy}")
    a = shop.a
    assert ids(a) == [1, 3] and ids(shop.b) == [2]
    # What is inserted need not be seen, unless it is returned.
    a.execute("INSERT INTO t VALUES (5, 'b', 5)")
    refused(a, "INSERT INTO t VALUES (6, 'b', 6) RETURNING id", "42501", VIOLATES)
    refused(a, "INSERT INTO t VALUES (7, 'a', 700)", "42501", VIOLATES)
    assert a.execute("INSERT INTO t VALUES (5, 'a', 5) ON CONFLICT DO NOTHING").rowcount == 0
    refused(a, "INSERT INTO t VALUES (8, 'b', 5) ON CONFLICT (id) DO NOTHING", "42501", VIOLATES)
    using = 'new row violates row-level security policy (USING expression) for table "t"'
    refused(a, "INSERT INTO t VALUES (5, 'a', 5) ON CONFLICT (id) DO UPDATE SET v = 9", "42501", using)
    a.execute("INSERT INTO t VALUES (1, 'a', 5) ON CONFLICT (id) DO UPDATE SET v = 9")
    refused(a, "INSERT INTO t VALUES (1, 'a', 5) ON CONFLICT (id) DO UPDATE SET v = 90", "42501", VIOLATES)
    refused(a, "INSERT INTO t VALUES (1, 'a', 5) ON CONFLICT (id) DO UPDATE SET o = 'b'", "42501", VIOLATES)
    refused(a, "UPDATE t SET v = 70 WHERE id = 1", "42501", VIOLATES)
    refused(a, "UPDATE t SET o = 'b' WHERE id = 1", "42501", VIOLATES)
    assert a.execute("UPDATE t SET v = 8 WHERE id = 2").rowcount == 0
    # An UPDATE that reads nothing is for rows that are not seen, too.
    assert a.execute("UPDATE t SET v = 10").rowcount == 4
    assert sorted(rows(a, "TABLE t")) == [(1, "a", 10), (3, "a", 10)]
    assert a.execute("DELETE FROM t WHERE id = 3 RETURNING o").fetchall() == [("a",)]
    assert a.execute("DELETE FROM t").rowcount == 3
    assert ids(shop.root) == []


def test_merge(shop):
    shop.root.execute("INSERT INTO t VALUES (4, 'a', 55)")
    shop.root.execute("CREATE POLICY sel ON t FOR SELECT USING (o = current_user)")
    shop.root.execute("CREATE POLICY ins ON t FOR INSERT WITH CHECK (v < 100)")
    shop.root.execute("CREATE POLICY upd ON t FOR UPDATE USING (v < 50) WITH CHECK (v < 60)")
    shop.root.execute("CREATE POLICY del ON t FOR DELETE USING (v <> 3)")
    target = 'target row violates row-level security policy (USING expression) for table "t"'
    both = "WHEN MATCHED THEN UPDATE SET v = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.i, 'b', s.x)"

    def merge(values, clauses=both):
        return f"MERGE INTO t USING (VALUES {values}) s (i, x) ON t.id = s.i {clauses}"

    refused(shop.a, merge("(1, 5), (4, 1), (9, 9)"), "42501", target)
    assert shop.a.execute(merge("(1, 5), (9, 9)")).rowcount == 2
    refused(shop.a, merge("(3, 5)", "WHEN MATCHED THEN DELETE"), "42501", target)
    refused(shop.a, merge("(1, 70)", "WHEN MATCHED THEN UPDATE SET v = s.x"), "42501", VIOLATES)
    refused(shop.a, merge("(1, 7)", "WHEN MATCHED THEN UPDATE SET o = 'b'"), "42501", VIOLATES)
    # What is not seen is not met.
    assert shop.a.execute(merge("(2, 7)", "WHEN MATCHED THEN DELETE")).rowcount == 0
    assert ids(shop.root) == [1, 2, 3, 4, 9]


def test_rows_that_are_held_are_to_be_changed(shop):
    shop.root.execute("CREATE POLICY sel ON t FOR SELECT USING (true)")
    shop.root.execute("CREATE POLICY upd ON t FOR UPDATE USING (v < 3)")
    assert ids(shop.a) == [1, 2, 3]
    assert ids(shop.a, "SELECT id FROM t FOR UPDATE") == [1, 2]
    assert ids(shop.a, "SELECT x.id FROM t x JOIN t y ON x.id = y.id FOR UPDATE OF y") == [1, 2]
    assert ids(shop.a, "SELECT id FROM (SELECT id FROM t) x FOR SHARE") == [1, 2]


def test_policies_that_take_away(shop):
    shop.root.execute("CREATE POLICY one ON t USING (o = 'a')")
    shop.root.execute("CREATE POLICY two ON t TO b USING (id = 2)")
    assert ids(shop.a) == [1, 3] and ids(shop.b) == [1, 2, 3]
    shop.root.execute("CREATE POLICY r1 ON t AS RESTRICTIVE USING (id < 1000) WITH CHECK (id < 500)")
    shop.root.execute("CREATE POLICY r0 ON t AS RESTRICTIVE FOR INSERT WITH CHECK (v <> 77)")
    shop.root.execute("CREATE POLICY r2 ON t AS RESTRICTIVE FOR SELECT TO b USING (id > 1)")
    assert ids(shop.a) == [1, 3] and ids(shop.b) == [2, 3]

    def named(name):
        return f'new row violates row-level security policy "{name}" for table "t"'

    refused(shop.a, "INSERT INTO t VALUES (700, 'a', 1)", "42501", named("r1"))
    refused(shop.a, "INSERT INTO t VALUES (70, 'a', 77)", "42501", named("r0"))
    refused(shop.a, "INSERT INTO t VALUES (701, 'a', 77)", "42501", named("r0"))
    refused(shop.a, "INSERT INTO t VALUES (701, 'b', 77)", "42501", VIOLATES)
    refused(shop.a, "UPDATE t SET id = 600 WHERE id = 1", "42501", named("r1"))
    # Where nothing permits, what takes away gives nothing.
    shop.root.execute("DROP POLICY one ON t")
    assert ids(shop.a) == []


def test_whom_policies_are_for(shop):
    shop.root.execute("CREATE ROLE team")
    shop.root.execute("CREATE POLICY p ON t TO team USING (true)")
    assert ids(shop.a) == []
    shop.root.execute("GRANT team TO a")
    assert ids(shop.a) == [1, 2, 3] and ids(shop.b) == []
    shop.root.execute("ALTER POLICY p ON t TO b, CURRENT_USER")
    assert ids(shop.a) == [] and ids(shop.b) == [1, 2, 3]
    detail = refused(shop.root, "DROP ROLE b", "2BP01").message_detail
    assert "target of policy p on table t" in detail
    # Names of users of other databases are those of other people.
    shop.server.client(username="root", password="secret", authSource="admin").elsewhere.command(
        "createUser", "b", pwd="y", roles=[{"role": "read", "db": "shop"}]
    )
    other = shop.connect("b", "y", "elsewhere")
    refused(other, "SELECT * FROM shop.t", "42501")


def test_who_is_not_subject_to_policies(shop):
    shop.root.execute("CREATE ROLE owner1 LOGIN PASSWORD 'x'")
    shop.root.execute("GRANT CREATE ON SCHEMA public TO owner1")
    owner = shop.connect("owner1")
    owner.execute("CREATE TABLE own (id int PRIMARY KEY)")
    owner.execute("INSERT INTO own VALUES (1)")
    owner.execute("ALTER TABLE own ENABLE ROW LEVEL SECURITY")
    shop.root.execute("GRANT SELECT ON own TO a")
    assert ids(owner, "SELECT id FROM own") == [1] and ids(shop.a, "SELECT id FROM own") == []
    owner.execute("ALTER TABLE own FORCE ROW LEVEL SECURITY")
    assert ids(owner, "SELECT id FROM own") == [] and ids(shop.root, "SELECT id FROM own") == [1]
    owner.execute("CREATE POLICY p ON own FOR SELECT USING (id = 1)")
    owner.execute("ALTER TABLE own ADD COLUMN x int")
    assert ids(owner, "SELECT id FROM own") == [1] and ids(shop.a, "SELECT id FROM own") == [1]
    # Nobody else changes them.
    for statement in [
        "CREATE POLICY q ON own USING (true)",
        "ALTER POLICY p ON own USING (true)",
        "DROP POLICY p ON own",
        "ALTER TABLE own DISABLE ROW LEVEL SECURITY",
        "TRUNCATE own",
        "CREATE INDEX ON own (x)",
    ]:
        refused(shop.a, statement, "42501")
    # BYPASSRLS is for one role alone.
    shop.root.execute("CREATE ROLE service NOLOGIN BYPASSRLS")
    shop.root.execute("CREATE USER reporter PASSWORD 'x' BYPASSRLS")
    shop.root.execute("GRANT SELECT ON t TO service, reporter")
    assert ids(shop.connect("reporter")) == [1, 2, 3]
    assert rows(shop.root, "SELECT rolname FROM pg_roles WHERE rolbypassrls ORDER BY 1") == [("reporter",), ("root",), ("service",)]
    shop.root.execute("GRANT service TO a")
    a = shop.connect("a")
    a.execute("SET ROLE service")
    assert ids(a) == [1, 2, 3]
    shop.root.execute("REVOKE service FROM a")
    shop.root.execute("ALTER ROLE reporter NOBYPASSRLS")
    assert ids(shop.connect("reporter")) == []
    refused(shop.a, "CREATE ROLE z BYPASSRLS", "42501")


def test_an_application_with_one_login_and_many_tenants(shop):
    """As PostgREST does it: settings say who asks, and plans are kept over changes of roles and settings."""
    root = shop.root
    root.execute("CREATE ROLE anon")
    root.execute("CREATE ROLE web")
    root.execute("CREATE USER authenticator PASSWORD 'x'")
    root.execute("GRANT anon, web TO authenticator")
    root.execute("CREATE TABLE notes (id int PRIMARY KEY, tenant int NOT NULL, body text)")
    root.execute("CREATE INDEX ON notes (tenant, id)")
    root.execute("CREATE TABLE members (tenant int, login text)")
    root.execute("INSERT INTO notes SELECT n, n % 4, 'note ' || n FROM generate_series(1, 2000) n")
    root.execute("INSERT INTO members VALUES (1, 'ann'), (2, 'bob'), (3, 'bob')")
    root.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
    root.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO web")
    root.execute("GRANT SELECT ON notes TO anon")
    root.execute("GRANT SELECT ON members TO web")
    root.execute("CREATE SCHEMA auth")
    root.execute("CREATE FUNCTION auth.login() RETURNS text LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('request.jwt.claim.sub', true), '') $$")
    root.execute("CREATE POLICY own ON notes TO web USING (tenant IN (SELECT m.tenant FROM members m WHERE m.login = (SELECT auth.login())))")
    root.execute("CREATE POLICY open ON notes FOR SELECT TO anon USING (tenant = 0)")
    client = shop.connect("authenticator")
    client.prepare_threshold = 0
    count = "SELECT count(*)::int, min(tenant), max(tenant) FROM notes WHERE id > %s"

    def asked(role, login, statement=count, params=(0,)):
        with client.transaction():
            client.execute(f"SET LOCAL ROLE {role}")
            client.execute("SELECT set_config('request.jwt.claim.sub', %s, true)", (login,))
            done = client.execute(statement, params)
            return done.fetchall() if done.description else done.rowcount

    for _ in range(3):
        assert asked("web", "ann") == [(500, 1, 1)]
        assert asked("web", "bob") == [(1000, 2, 3)]
        assert asked("anon", "") == [(500, 0, 0)]
        assert asked("web", "") == [(0, None, None)]
    assert asked("web", "ann", "SELECT id FROM notes WHERE id = %s", (1,)) == [(1,)]
    assert asked("web", "ann", "SELECT id FROM notes WHERE id = %s", (2,)) == []
    update = "UPDATE notes SET body = 'x' WHERE id <= %s"
    assert asked("web", "ann", update, (8,)) == 2 and asked("web", "bob", update, (8,)) == 4
    insert = "INSERT INTO notes VALUES (%s, %s, 'new')"
    for _ in range(2):
        assert asked("web", "ann", insert, (3001, 1)) == 1
        with pytest.raises(errors.InsufficientPrivilege):
            asked("web", "ann", insert, (3002, 2))
        assert asked("web", "bob", insert, (3002, 2)) == 1
        assert asked("web", "bob", "DELETE FROM notes WHERE id > 3000", None) == 1
        assert asked("web", "ann", "DELETE FROM notes WHERE id > 3000", None) == 1
    with pytest.raises(errors.InsufficientPrivilege):
        asked("web", "ann", "UPDATE notes SET tenant = 2 WHERE id = %s", (1,))
    with pytest.raises(errors.InsufficientPrivilege):
        asked("anon", "", insert, (3003, 0))
    joined = "SELECT count(*)::int FROM notes a JOIN notes b ON a.id = b.id + %s"
    assert asked("web", "bob", joined, (1,)) == [(500,)]


def test_names_in_policies_are_not_those_of_who_asks(shop):
    root = shop.root
    root.execute("CREATE TABLE allowed (login text)")
    root.execute("CREATE FUNCTION may(text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$")
    root.execute("CREATE POLICY p ON t USING (o IN (SELECT login FROM allowed) OR may(o))")
    root.execute("GRANT SELECT ON allowed TO a")
    root.execute("CREATE SCHEMA mine")
    root.execute("GRANT CREATE ON SCHEMA mine TO a")
    a = shop.a
    a.execute("CREATE TABLE mine.allowed (login text)")
    a.execute("INSERT INTO mine.allowed VALUES ('a'), ('b')")
    a.execute("CREATE TEMPORARY TABLE allowed AS SELECT * FROM mine.allowed")
    a.execute("CREATE FUNCTION mine.may(text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$")
    a.execute("SET search_path = mine, public")
    assert rows(a, "SELECT may('x')") == [(True,)]
    assert ids(a) == []
    root.execute("INSERT INTO allowed VALUES ('a')")
    assert ids(a) == [1, 3]


def test_views_functions_triggers_and_copy(shop):
    root, a = shop.root, shop.a
    root.execute("CREATE POLICY p ON t USING (o = current_user)")
    root.execute("CREATE VIEW v AS SELECT id, o FROM t")
    root.execute("CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM t $$")
    root.execute("CREATE FUNCTION g() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$")
    root.execute("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
    root.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON v TO a")
    root.execute("GRANT SELECT ON m TO a")
    assert ids(a, "SELECT id FROM v") == [1, 3]
    assert rows(a, "SELECT f(), g()") == [(2, 2)]
    # It keeps what whoever filled it saw.
    assert ids(a, "SELECT id FROM m") == [1, 2, 3]
    refused(a, "INSERT INTO v VALUES (9, 'b')", "42501", VIOLATES)
    assert a.execute("UPDATE v SET id = id + 10").rowcount == 2
    assert a.execute("DELETE FROM v").rowcount == 2
    assert ids(root) == [2]
    root.execute("INSERT INTO t VALUES (1, 'a', 1), (3, 'a', 3)")
    with a.cursor().copy("COPY t TO STDOUT") as copy:
        assert sorted(copy.rows()) == [("1", "a", "1"), ("3", "a", "3")]
    with pytest.raises(errors.FeatureNotSupported, match="COPY FROM not supported with row-level security"):
        with a.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write_row((8, "a", 8))
    a.execute("SET row_security = off")
    refused(a, "TABLE t", "42501", 'query would be affected by row-level security policy for table "t"')
    a.execute("RESET row_security")
    # A trigger makes the row what is looked at.
    root.execute("CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.o := 'b'; RETURN NEW; END $$")
    root.execute("CREATE TRIGGER own BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION own()")
    refused(a, "INSERT INTO t VALUES (8, 'a', 8)", "42501", VIOLATES)
    # Keys of tables are looked for among all rows, and actions reach all.
    root.execute("DROP TRIGGER own ON t")
    root.execute("CREATE TABLE kids (id int PRIMARY KEY, t int REFERENCES t (id) ON DELETE CASCADE)")
    root.execute("GRANT SELECT, INSERT ON kids TO a")
    a.execute("INSERT INTO kids VALUES (1, 2)")
    refused(a, "INSERT INTO kids VALUES (2, 77)", "23503")
    root.execute("ALTER TABLE kids ENABLE ROW LEVEL SECURITY")
    root.execute("INSERT INTO kids VALUES (3, 3)")
    a.execute("DELETE FROM t WHERE id = 3")
    assert ids(root, "SELECT id FROM kids") == [1]


def test_partitions(shop):
    root = shop.root
    root.execute("CREATE TABLE p (id int, tenant int, v text, PRIMARY KEY (tenant, id)) PARTITION BY LIST (tenant)")
    root.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)")
    root.execute("CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)")
    root.execute("INSERT INTO p VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 2, 'c')")
    root.execute("ALTER TABLE p ENABLE ROW LEVEL SECURITY")
    root.execute("CREATE POLICY own ON p USING (tenant = current_setting('app.tenant')::int)")
    root.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON p TO a")
    a = shop.a
    a.execute("SET app.tenant = '2'")
    assert ids(a, "SELECT id FROM p") == [2, 3]
    message = 'new row violates row-level security policy for table "p"'
    refused(a, "INSERT INTO p VALUES (4, 1, 'd')", "42501", message)
    refused(a, "UPDATE p SET tenant = 1 WHERE id = 2", "42501", message)
    a.execute("INSERT INTO p VALUES (4, 2, 'd')")
    assert a.execute("UPDATE p SET v = 'x'").rowcount == 3
    a.execute("SET app.tenant = '1'")
    assert a.execute("DELETE FROM p").rowcount == 1
    assert ids(root, "SELECT id FROM p") == [2, 3, 4]


def test_what_policies_may_not_be(shop):
    root = shop.root
    root.execute("CREATE POLICY sel ON t FOR SELECT USING (true)")
    root.execute("CREATE POLICY ins ON t FOR INSERT WITH CHECK (true)")
    root.execute("CREATE VIEW vw AS SELECT 1 AS x")
    for statement, state, message in [
        ("CREATE POLICY sel ON t USING (true)", "42710", 'policy "sel" for table "t" already exists'),
        ("CREATE POLICY x ON t FOR INSERT USING (true)", "42601", "only WITH CHECK expression allowed for INSERT"),
        ("CREATE POLICY x ON t FOR SELECT WITH CHECK (true)", "42601", "WITH CHECK cannot be applied to SELECT or DELETE"),
        ("CREATE POLICY x ON t FOR DELETE WITH CHECK (true)", "42601", "WITH CHECK cannot be applied to SELECT or DELETE"),
        ("CREATE POLICY x ON t USING (v)", "42804", "argument of POLICY must be type boolean, not type integer"),
        ("CREATE POLICY x ON t USING (nope = 1)", "42703", 'column "nope" does not exist'),
        ("CREATE POLICY x ON t TO nobody USING (true)", "42704", 'role "nobody" does not exist'),
        ("CREATE POLICY x ON t USING (sum(v) > 1)", "42803", None),
        ("CREATE POLICY x ON t USING (generate_series(1, 2) = 1)", "0A000", "set-returning functions are not allowed in policy expressions"),
        ("CREATE POLICY x ON nope USING (true)", "42P01", 'relation "nope" does not exist'),
        ("CREATE POLICY x ON vw USING (true)", "42809", '"vw" is not a table'),
        ("CREATE POLICY x ON t USING (id IN (SELECT id FROM nope))", "42P01", None),
        ("CREATE POLICY x ON t USING (id = $1)", "42P02", None),
        ("ALTER POLICY nope ON t USING (true)", "42704", 'policy "nope" for table "t" does not exist'),
        ("ALTER POLICY sel ON t RENAME TO ins", "42710", 'policy "ins" for table "t" already exists'),
        ("ALTER POLICY ins ON t USING (true)", "42601", "only WITH CHECK expression allowed for INSERT"),
        ("ALTER POLICY sel ON t WITH CHECK (true)", "42601", "only USING expression allowed for SELECT, DELETE"),
        ("DROP POLICY nope ON t", "42704", 'policy "nope" for table "t" does not exist'),
    ]:
        refused(root, statement, state, message)
    root.execute("DROP POLICY IF EXISTS nope ON t")
    root.execute("DROP POLICY IF EXISTS nope ON nope")
    root.execute("CREATE POLICY rec ON t FOR SELECT USING (id IN (SELECT id FROM t))")
    refused(shop.a, "TABLE t", "42P17", 'infinite recursion detected in policy for relation "t"')
    assert ids(root) == [1, 2, 3]


def test_catalogs_and_changes_of_tables(shop):
    root = shop.root
    root.execute("CREATE POLICY del ON t FOR DELETE USING (v <> 3)")
    root.execute("CREATE POLICY many ON t TO a, b USING (v > 0 AND o = 'a')")
    root.execute("CREATE POLICY r0 ON t AS RESTRICTIVE FOR INSERT WITH CHECK (v <> 77)")
    expected = [
        ("public", "t", "del", "PERMISSIVE", ["public"], "DELETE", "(v <> 3)", None),
        ("public", "t", "many", "PERMISSIVE", ["a", "b"], "ALL", "((v > 0) AND (o = 'a'::text))", None),
        ("public", "t", "r0", "RESTRICTIVE", ["public"], "INSERT", None, "(v <> 77)"),
    ]
    assert rows(root, "SELECT * FROM pg_policies ORDER BY policyname") == expected
    shown = """SELECT polname, polcmd, polpermissive, CASE WHEN polroles = '{0}' THEN NULL ELSE
        array(SELECT rolname::text FROM pg_roles WHERE oid = ANY (polroles) ORDER BY 1) END, pg_get_expr(polqual, polrelid),
        pg_get_expr(polwithcheck, polrelid) FROM pg_policy WHERE polrelid = 't'::regclass ORDER BY 1"""
    assert rows(root, shown) == [
        ("del", "d", True, None, "(v <> 3)", None),
        ("many", "*", True, ["a", "b"], "((v > 0) AND (o = 'a'::text))", None),
        ("r0", "a", False, None, None, "(v <> 77)"),
    ]
    diag = refused(root, "ALTER TABLE t DROP COLUMN o", "2BP01")
    assert diag.message_detail == "policy many on table t depends on column o of table t"
    refused(root, "ALTER TABLE t ALTER v TYPE bigint", "0A000", "cannot alter type of a column used in a policy definition")
    root.execute("ALTER TABLE t RENAME v TO vv")
    assert [row[6:] for row in rows(root, "SELECT * FROM pg_policies ORDER BY policyname")] == [
        ("(vv <> 3)", None), ("((vv > 0) AND (o = 'a'::text))", None), (None, "(vv <> 77)"),
    ]
    assert ids(shop.a) == [1, 3]
    root.execute("ALTER TABLE t DROP COLUMN o CASCADE")
    assert [row[2] for row in rows(root, "SELECT * FROM pg_policies ORDER BY policyname")] == ["del", "r0"]
    root.execute("ALTER TABLE t RENAME TO u")
    root.execute("CREATE POLICY all_of_it ON u USING (true)")
    assert ids(shop.a, "SELECT id FROM u") == [1, 2, 3]
    root.execute("ALTER TABLE u FORCE ROW LEVEL SECURITY")
    assert rows(root, "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'u'") == [(True, True)]


def test_commands_refuse_who_is_subject_to_policies(shop):
    root = shop.commands("root", "secret")
    shop.root.execute("CREATE POLICY p ON t USING (o = current_user)")
    root.command("createRole", "reader", privileges=[
        {"resource": {"db": "shop", "collection": ""}, "actions": ["changeStream", "find", "insert", "update", "remove", "createIndex", "collMod", "collStats"]},
    ], roles=[])
    root.client.admin.command("grantRolesToUser", "a", roles=[{"role": "reader", "db": "shop"}, {"role": "readWrite", "db": "shop"}])
    root.create_collection("view", viewOn="t", pipeline=[])
    root.other.insert_one({"_id": 1})
    db = shop.commands("a")
    attempts = {
        "find": lambda: list(db.t.find()),
        "find by _id": lambda: db.t.find_one({"_id": 1}),
        "count": lambda: db.t.estimated_document_count() or db.command("count", "t"),
        "count of some": lambda: db.t.count_documents({"o": "b"}),
        "distinct": lambda: db.t.distinct("o"),
        "aggregate": lambda: list(db.t.aggregate([{"$match": {}}])),
        "view": lambda: list(db.view.find()),
        "lookup": lambda: list(db.other.aggregate([{"$lookup": {"from": "t", "pipeline": [], "as": "x"}}])),
        "graphLookup": lambda: list(db.other.aggregate([{"$graphLookup": {"from": "t", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "x"}}])),
        "unionWith": lambda: list(db.other.aggregate([{"$unionWith": "t"}])),
        "facet": lambda: list(db.t.aggregate([{"$facet": {"a": [{"$count": "n"}]}}])),
        "out": lambda: list(db.other.aggregate([{"$out": "t"}])),
        "merge": lambda: list(db.other.aggregate([{"$merge": "t"}])),
        "from out": lambda: list(db.t.aggregate([{"$out": "copy"}])),
        "mapReduce": lambda: db.command("mapReduce", "t", map="function() { emit(1, 1) }", reduce="function() { return 1 }", out={"inline": 1}),
        "explain": lambda: db.command("explain", {"find": "t", "filter": {"o": "b"}}),
        "explain of a pipeline": lambda: db.command("aggregate", "t", pipeline=[], explain=True),
        "insert": lambda: db.t.insert_one({"_id": 9, "o": "a", "v": 1}),
        "update": lambda: db.t.update_one({"_id": 2}, {"$set": {"v": 9}}),
        "upsert": lambda: db.t.update_one({"_id": 12}, {"$set": {"v": 9}}, upsert=True),
        "replace": lambda: db.t.replace_one({"_id": 1}, {"o": "a", "v": 1}),
        "delete": lambda: db.t.delete_one({"_id": 2}),
        "findAndModify": lambda: db.t.find_one_and_update({"_id": 2}, {"$set": {"v": 9}}),
        "findAndRemove": lambda: db.t.find_one_and_delete({"_id": 2}),
        "bulkWrite": lambda: db.t.bulk_write([pymongo.DeleteOne({"_id": 2})]),
        "createIndexes": lambda: db.t.create_index("v", unique=True),
        "collMod": lambda: db.command("collMod", "t", validator={"v": 1}),
        "rowSecurity": lambda: db.command("collMod", "t", rowSecurity={}),
        "rename": lambda: db.t.rename("mine"),
        "convertToCapped": lambda: db.command("convertToCapped", "t", size=4096),
        "dataSize": lambda: db.command("dataSize", "shop.t", keyPattern={"_id": 1}, min={"_id": 1}, max={"_id": 2}),
    }
    for name, attempt in attempts.items():
        with pytest.raises((pymongo.errors.OperationFailure, pymongo.errors.BulkWriteError)) as error:
            attempt()
        code = error.value.code if error.value.code != 65 else error.value.details["writeErrors"][0]["code"]
        assert code == 13, (name, error.value)
    assert sorted(rows(shop.root, "TABLE t")) == [(1, "a", 1), (2, "b", 2), (3, "a", 3)]
    # $sql is SQL.
    found = list(db.aggregate([{"$sql": "SELECT id FROM t ORDER BY id"}]))
    assert [row["id"] for row in found] == [1, 3]
    with pytest.raises(pymongo.errors.OperationFailure, match="row security"):
        list(db.aggregate([{"$sql": 'SELECT * FROM "view"'}]))
    # Who is not subject to them goes on as ever.
    assert root.t.count_documents({}) == 3
    listed = root.command("listCollections", filter={"name": "t"})["cursor"]["firstBatch"][0]["options"]["rowSecurity"]
    assert listed == {"enabled": True, "forced": False, "policies": [{"name": "p", "command": "ALL", "using": "o = current_user"}]}
    # As a dump is restored.
    root.command("collMod", "other", rowSecurity=listed)
    with pytest.raises(pymongo.errors.OperationFailure):
        db.other.find_one()
    with pytest.raises(pymongo.errors.OperationFailure):
        root.command("collMod", "other", rowSecurity={"policies": [{"name": "x", "for": "ALL"}]})
    # Nobody declared what that has.
    refused(shop.a, "SELECT * FROM other", "0A000")


def test_streams_of_changes(shop):
    root = shop.commands("root", "secret")
    root.client.admin.command("grantRolesToUser", "a", roles=[{"role": "read", "db": "shop"}])
    db = shop.commands("a")
    shop.root.execute("CREATE POLICY p ON t USING (true)")
    with pytest.raises(pymongo.errors.OperationFailure) as error:
        db.t.watch()
    assert error.value.code == 13
    root.t.insert_one({"_id": 7, "o": "b", "v": 7})
    with pytest.raises(pymongo.errors.OperationFailure) as error:
        with db.watch() as stream:
            root.t.update_one({"_id": 7}, {"$set": {"v": 8}})
            stream.next()
    assert error.value.code == 13
    with root.t.watch() as stream:
        root.t.delete_one({"_id": 7})
        assert stream.next()["operationType"] == "delete"
