"""Ways by which somebody might find out what rows have that policies hide, one a line. None may succeed.

Each attempt is made in two databases that differ in hidden rows only, and every byte that the server answers has to be the same, and so has
what the statements leave behind for those from whom the rows are hidden. Source: `docs/row-security.md`.
"""

import harness
import pytest
from pgclient import Sql, port_of

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
DATABASES = ("shop_a", "shop_b")
# Of each database: hidden rows 3 and 4 have other values.
HIDDEN = ([("x", 1, "111", "alpha beta"), ("y", 50, "222", "gamma")], [("y", 7, "333", "delta"), ("z", 2, "444", "alpha")])
TABLES = """
CREATE TABLE people (id int PRIMARY KEY, owner text, city text, n int, ssn text, note text, doc jsonb);
CREATE TABLE guesses (id int PRIMARY KEY, n int, ssn text);
CREATE TABLE logged (what text);
CREATE SEQUENCE counted;
CREATE INDEX ON people (n);
CREATE INDEX ON people (city, n);
CREATE INDEX ON people (lower(ssn));
CREATE VIEW seen AS SELECT id, city, ssn, n FROM people;
CREATE VIEW low AS SELECT id FROM people WHERE n < 20;
CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO logged VALUES ($1); RAISE NOTICE 'saw %', $1; RETURN true; END $$;
CREATE FUNCTION told(n int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 1 / (n - 50) $$;
INSERT INTO people VALUES (1, 'reader', 'x', 3, '555', 'one', '{"a": [1]}'), (2, 'reader', 'y', 30, '666', 'two', '{"a": [2]}');
INSERT INTO guesses VALUES (1, 1, '111'), (2, 7, '333'), (3, 50, '222'), (4, 2, '444');
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON people USING (owner = current_user);
GRANT SELECT, INSERT, UPDATE, DELETE ON people, guesses, logged, seen, low TO reader;
GRANT USAGE ON SEQUENCE counted TO reader;
"""

READS = [
    ["SELECT * FROM people ORDER BY id"],
    ["SELECT id, _doc FROM people ORDER BY id"],
    ["SELECT id FROM people WHERE ssn = '111'"],
    ["SELECT id FROM people WHERE n < 20 ORDER BY n"],
    ["SELECT id FROM people WHERE lower(ssn) = '111'"],
    ["SELECT id FROM people WHERE _doc->>'ssn' = '111'"],
    ["SELECT id FROM people ORDER BY n LIMIT 1"],
    ["SELECT id FROM people ORDER BY n DESC LIMIT 1"],
    ["SELECT min(n), max(n), sum(n), count(*), count(DISTINCT city) FROM people"],
    ["SELECT count(*) FROM people WHERE n = 50"],
    ["SELECT DISTINCT city FROM people ORDER BY 1"],
    ["SELECT city, count(*) FROM people GROUP BY city ORDER BY 1"],
    ["SELECT g.id, p.id FROM guesses g JOIN people p ON p.n = g.n ORDER BY 1, 2"],
    ["SELECT g.id, p.id FROM guesses g LEFT JOIN people p ON p.ssn = g.ssn ORDER BY 1, 2"],
    ["SELECT g.id, p.id FROM guesses g FULL JOIN people p ON p.ssn = g.ssn ORDER BY 1, 2"],
    ["SELECT g.id FROM guesses g WHERE EXISTS (SELECT FROM people p WHERE p.n = g.n) ORDER BY 1"],
    ["SELECT g.id FROM guesses g WHERE g.n IN (SELECT n FROM people) ORDER BY 1"],
    ["SELECT g.id FROM guesses g WHERE g.n NOT IN (SELECT n FROM people) ORDER BY 1"],
    ["SELECT g.id, (SELECT p.id FROM people p WHERE p.n = g.n) FROM guesses g ORDER BY 1"],
    ["SELECT * FROM guesses g, LATERAL (SELECT id FROM people p WHERE p.ssn = g.ssn) x"],
    ["SELECT n FROM guesses EXCEPT SELECT n FROM people ORDER BY 1"],
    ["TABLE seen ORDER BY id", "TABLE low ORDER BY id", "SELECT count(*) FROM low"],
    # An error that only some values make.
    ["SELECT id FROM people WHERE 1 / (n - 50) <> 7 ORDER BY 1"],
    ["SELECT id FROM people WHERE 1 / (n - 7) <> 7 AND n > 0 ORDER BY 1"],
    ["SELECT id FROM people WHERE told(n) <> 7 ORDER BY 1"],
    ["SELECT id FROM people WHERE note::int = 1"],
    ["SELECT id FROM people WHERE (ssn || 'x')::int = 1"],
    ["SELECT id FROM people WHERE CASE WHEN ssn = '111' THEN 1 / 0 > 0 ELSE true END ORDER BY 1"],
    ["SELECT id FROM seen WHERE 1 / (n - 50) <> 7 ORDER BY 1"],
    ["SELECT id FROM low WHERE id / (id - 3) <> 7 ORDER BY 1"],
    ["SELECT x.id FROM people x JOIN people y ON 1 / (x.n - 50) <> 7 AND x.id = y.id ORDER BY 1"],
    ["SELECT g.id FROM guesses g JOIN people p ON 1 / (p.n - g.n) <> 7 ORDER BY 1"],
    ["SELECT g.id FROM guesses g JOIN people p ON (g.id = 1 AND 1 / (p.n - 50) <> 7) OR (g.id = 2 AND 1 / (p.n - 7) <> 7) ORDER BY 1"],
    ["SELECT g.id FROM guesses g LEFT JOIN people p ON p.id = g.id AND 1 / (p.n - 50) <> 7 ORDER BY 1"],
    ["SELECT g.id FROM guesses g WHERE EXISTS (SELECT FROM people p WHERE p.n <> g.n AND 1 / (p.n - 50) <> 7) ORDER BY 1"],
    ["SELECT sum(1 / (n - 50)) FROM people", "SELECT count(*) FILTER (WHERE 1 / (n - 7) <> 7) FROM people"],
    ["SELECT city FROM people GROUP BY city HAVING min(1 / (n - 50)) <> 7 ORDER BY 1"],
    ["SELECT id FROM people WHERE id = ANY (ARRAY[1, 1 / (SELECT count(*)::int FROM people WHERE n = 77)])"],
    ["SELECT p.id, x.a FROM people p, jsonb_to_recordset(jsonb_build_array(p.doc)) AS x (a text) ORDER BY 1"],
    ["SELECT p.id, x FROM people p, jsonb_array_elements(p.doc->'a') x ORDER BY 1"],
    ["SELECT p.id, x FROM people p, jsonb_array_elements(p.doc) x ORDER BY 1"],
    ["SELECT id FROM people WHERE note LIKE '%a\\' ORDER BY 1"],
    ["SELECT id FROM people WHERE note ~ 'a' AND 1 / (n - 50) <> 7"],
    # What a function does.
    ["SELECT id FROM people WHERE spy(ssn) ORDER BY 1", "SELECT * FROM logged ORDER BY 1"],
    ["SELECT id FROM people WHERE spy(ssn) AND owner = 'reader' ORDER BY 1", "SELECT * FROM logged ORDER BY 1"],
    ["SELECT id FROM seen WHERE spy(ssn) ORDER BY 1", "SELECT * FROM logged ORDER BY 1"],
    ["SELECT spy(ssn) FROM people ORDER BY 1", "SELECT * FROM logged ORDER BY 1"],
    ["SELECT g.id FROM guesses g JOIN people p ON spy(p.ssn) ORDER BY 1", "SELECT * FROM logged ORDER BY 1"],
    ["SELECT id FROM people WHERE CASE WHEN n = 50 THEN nextval('counted') > 0 ELSE true END ORDER BY 1", "SELECT last_value, is_called FROM counted"],
    ["SELECT id FROM people WHERE n = 50 AND pg_advisory_lock(7) IS NULL", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"],
    ["SELECT id FROM people WHERE set_config('application_name', ssn, false) = ''", "SHOW application_name"],
    ["CREATE FUNCTION pg_temp.mine(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1::int / ($1::int - 111) > 0 $$", "SELECT id FROM people WHERE pg_temp.mine(ssn) ORDER BY 1"],
    # Plans.
    ["EXPLAIN SELECT id FROM people WHERE n = 50"],
    ["EXPLAIN SELECT id FROM people WHERE city = 'x' ORDER BY n LIMIT 1"],
    ["EXPLAIN ANALYZE SELECT id FROM people WHERE n = 50"],
    ["EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS) SELECT * FROM low"],
    ["EXPLAIN UPDATE people SET note = 'x' WHERE n = 50"],
    # What the catalogs say.
    ["SELECT * FROM pg_stats WHERE tablename = 'people'"],
    ["SELECT reltuples FROM pg_class WHERE relname LIKE 'people%' ORDER BY relname"],
    ["SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'people'"],
    ["ANALYZE people", "SELECT * FROM pg_stats WHERE tablename = 'people'"],
    # Cursors, prepared statements, copies.
    ["BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT id FROM people ORDER BY n", "FETCH ALL FROM c", "MOVE FIRST FROM c", "COMMIT"],
    ["PREPARE p(int) AS SELECT id FROM people WHERE n = $1", "EXECUTE p(50)", "EXECUTE p(3)", "EXPLAIN EXECUTE p(50)"],
    ["PREPARE p(int) AS SELECT id FROM people WHERE $1 / (n - 50) <> 7 ORDER BY 1", "EXECUTE p(1)", "SET plan_cache_mode = force_custom_plan", "EXECUTE p(1)"],
    ["COPY people TO STDOUT"],
    ["COPY (SELECT id FROM people WHERE 1 / (n - 50) <> 7) TO STDOUT"],
    ["WITH RECURSIVE r(i) AS (SELECT n FROM people WHERE id = 3 UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT count(*) FROM r"],
    ["WITH x AS MATERIALIZED (SELECT * FROM people) SELECT count(*) FROM x WHERE 1 / (n - 50) <> 7"],
    ["SELECT id, rank() OVER (ORDER BY n), lag(id) OVER (ORDER BY ssn) FROM people ORDER BY id"],
    ["SELECT id FROM people TABLESAMPLE BERNOULLI (100) WHERE 1 / (n - 50) <> 7 ORDER BY 1"],
    ["SELECT id FROM people WHERE n = 50 FOR UPDATE"],
    ["SELECT id FROM people WHERE 1 / (n - 50) <> 7 ORDER BY 1 FOR UPDATE SKIP LOCKED"],
    ["DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM people ORDER BY id LOOP RAISE NOTICE '%', r; END LOOP; END $$"],
    ["SET enable_seqscan = off", "SELECT id FROM people WHERE n = 50", "SELECT id FROM people WHERE told(n) <> 7 AND n > 0 ORDER BY 1"],
    ["SET nestor.columns = on", "SELECT count(*), sum(n) FROM people", "SELECT id FROM people WHERE 1 / (n - 50) <> 7 ORDER BY 1"],
]

WRITES = [
    ["UPDATE people SET note = 'z' WHERE n = 50"],
    ["UPDATE people SET note = 'z' WHERE 1 / (n - 50) <> 7"],
    ["UPDATE people SET note = ssn WHERE id = 3 RETURNING *"],
    ["UPDATE people SET n = 1 / (n - 50)"],
    ["UPDATE people p SET note = 'z' FROM guesses g WHERE p.n = g.n"],
    ["UPDATE people p SET note = 'z' FROM guesses g WHERE 1 / (p.n - g.n) <> 7"],
    ["UPDATE guesses g SET ssn = p.ssn FROM people p WHERE p.id = g.id", "TABLE guesses ORDER BY id"],
    ["UPDATE people SET note = 'z' WHERE spy(ssn)", "SELECT * FROM logged ORDER BY 1"],
    ["DELETE FROM people WHERE n = 50"],
    ["DELETE FROM people WHERE 1 / (n - 50) <> 7 RETURNING *"],
    ["DELETE FROM people USING guesses g WHERE people.ssn = g.ssn"],
    ["DELETE FROM guesses g USING people p WHERE p.n = g.n", "TABLE guesses ORDER BY id"],
    ["DELETE FROM people WHERE spy(ssn)", "SELECT * FROM logged ORDER BY 1"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED THEN DELETE"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED AND 1 / (p.n - 50) <> 7 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, owner, n) VALUES (g.id + 10, 'reader', g.n)"],
    ["MERGE INTO guesses g USING people p ON p.n = g.n WHEN MATCHED THEN DELETE", "TABLE guesses ORDER BY id"],
    ["INSERT INTO people VALUES (3, 'reader', 'x', 1)"],
    ["INSERT INTO people VALUES (3, 'reader', 'x', 1) ON CONFLICT DO NOTHING RETURNING *"],
    ["INSERT INTO people VALUES (3, 'reader', 'x', 1) ON CONFLICT (id) DO UPDATE SET note = people.ssn RETURNING *"],
    ["INSERT INTO people VALUES (3, 'reader', 'x', 1) ON CONFLICT (id) DO UPDATE SET note = 'x' WHERE 1 / (people.n - 50) <> 7"],
    ["INSERT INTO people VALUES (3, 'reader', 'x', 1) ON CONFLICT (id) DO UPDATE SET note = 'x' WHERE people.n = 50"],
    ["INSERT INTO people VALUES (9, 'other', 'x', 1)", "INSERT INTO people VALUES (9, 'reader', 'x', 1) RETURNING *"],
    ["INSERT INTO guesses SELECT id + 10, n, ssn FROM people", "TABLE guesses ORDER BY id"],
    ["CREATE TABLE made AS SELECT * FROM people", "TABLE made ORDER BY id"],
    ["CREATE VIEW made AS SELECT * FROM people WHERE 1 / (n - 50) <> 7", "TABLE made ORDER BY id"],
    ["CREATE MATERIALIZED VIEW made AS SELECT * FROM people", "TABLE made ORDER BY id"],
    ["CREATE TEMP TABLE made AS TABLE people", "TABLE made ORDER BY id"],
    ["CREATE UNIQUE INDEX ON people (n)"],
    ["CREATE INDEX ON people ((1 / (n - 50)))"],
    ["ALTER TABLE people ADD CHECK (n < 20)"],
    ["ALTER TABLE people ALTER note TYPE int USING note::int"],
    ["ALTER TABLE people DISABLE ROW LEVEL SECURITY", "TABLE people ORDER BY id"],
    ["ALTER TABLE people RENAME TO persons", "TABLE persons ORDER BY id"],
    ["CREATE POLICY all_of_it ON people USING (true)", "TABLE people ORDER BY id"],
    ["DROP POLICY own ON people", "TABLE people ORDER BY id"],
    ["TRUNCATE people"],
    ["SET row_security = off", "TABLE people"],
    ["SET ROLE root", "TABLE people"],
    ["SET SESSION AUTHORIZATION root", "TABLE people"],
    ["SELECT set_config('session_authorization', 'root', false)", "TABLE people"],
    ["COPY people (id, owner, n) FROM STDIN"],
    ["WITH w AS (DELETE FROM people WHERE n > 0 RETURNING *) SELECT * FROM w ORDER BY id"],
    ["BEGIN", "UPDATE people SET note = 'z'", "SELECT * FROM people ORDER BY id", "ROLLBACK"],
]


def columns(body):
    """Of a description of rows: name and type of each column, without the table's number, which differs."""
    out, at = [], 2
    while at < len(body):
        end = body.index(b"\0", at)
        out.append((body[at:end], body[end + 7 : end + 19]))
        at = end + 19
    return out


class World:
    def __init__(self, server):
        server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
        self.root = server.client(**ROOT)
        self.port = port_of(server)
        sql = Sql(self.port, database="admin", user="root", password="secret")
        sql.query("CREATE USER reader PASSWORD 'p'")
        sql.query("CREATE USER maker PASSWORD 'p'")
        sql.socket.close()

    def fill(self):
        for db, hidden in zip(DATABASES, HIDDEN, strict=True):
            self.root.drop_database(db)
            sql = Sql(self.port, database=db, user="root", password="secret")
            for statement in filter(str.strip, TABLES.split(";\n")):
                sql.query(statement)
            for key, (city, n, ssn, note) in enumerate(hidden, start=3):
                sql.query(f"""INSERT INTO people VALUES ({key}, 'other', '{city}', {n}, '{ssn}', '{note}', '{{"a": {n}}}')""")
            sql.socket.close()

    def told(self, db, statements, user="reader"):
        """Everything that somebody is told: by the statements, and by what is there afterwards."""
        sql = Sql(self.port, database=db, user=user, password="secret" if user == "root" else "p")
        out = []
        for statement in [*statements, "SELECT * FROM people ORDER BY id", "SELECT * FROM logged ORDER BY 1"]:
            sql.send(b"Q", statement.encode() + b"\0")
            if statement.endswith("FROM STDIN"):
                sql.send(b"d", b"9\treader\t1\n")
                sql.send(b"c")
            out.append([statement, sql.until_ready()])
        sql.socket.close()
        return [[statement, [(tag, columns(body) if tag == b"T" else body) for tag, body in messages if tag != b"S"]] for statement, messages in out]


@pytest.fixture(scope="module")
def world():
    with harness.Server(None, "--auth", "--sql-port", 0) as server:
        yield World(server)
        server.stop()


@pytest.mark.parametrize("statements", READS + WRITES, ids="; ".join)
def test_nothing_is_told(world, statements):
    world.fill()
    # The names of the databases have the same length, and what is said may name them.
    first, second = (repr(world.told(db, statements)).replace(db, "shop") for db in DATABASES)
    assert first == second


def test_these_rows_differ_for_who_may_see_them(world):
    """Else the test above would hold whatever is hidden."""
    world.fill()
    for statements in [["TABLE people ORDER BY id"], ["SELECT id FROM people WHERE 1 / (n - 50) <> 7 ORDER BY 1"], ["SELECT id FROM people WHERE spy(ssn) ORDER BY 1"]]:
        first, second = (repr(world.told(db, statements, "root")).replace(db, "shop") for db in DATABASES)
        assert first != second


def test_who_makes_tables_is_not_the_owner_of_others(world):
    """Rights to make tables and views let nobody see more."""
    world.fill()
    for db in DATABASES:
        root = Sql(world.port, database=db, user="root", password="secret")
        root.query("GRANT CREATE ON SCHEMA public TO reader")
        root.socket.close()
    for statements in [
        ["CREATE TABLE made AS SELECT * FROM people", "TABLE made ORDER BY id"],
        ["CREATE VIEW made AS SELECT * FROM people WHERE 1 / (n - 50) <> 7", "TABLE made ORDER BY id"],
        ["CREATE MATERIALIZED VIEW made AS SELECT * FROM people", "TABLE made ORDER BY id"],
        ["CREATE TABLE made (id int REFERENCES people (id))", "INSERT INTO made VALUES (3), (1)"],
        ["CREATE FUNCTION made(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1::int / ($1::int - 111) > 0; END $$", "SELECT id FROM people WHERE made(ssn) ORDER BY 1"],
        ["CREATE ASSERTION made CHECK (NOT EXISTS (SELECT FROM people WHERE n = 50))"],
    ]:
        first, second = (repr(world.told(db, statements)).replace(db, "shop") for db in DATABASES)
        assert first == second, statements


# What a read of whole columns could compute of rows that are hidden: there 1 / n is an error, and so is the number that s is.
WHOLE = [
    ("SELECT count(*), sum(n) FROM big", (5000, 5000)),
    ("SELECT count(*) FROM big WHERE 1 / n = 1", (5000,)),
    ("SELECT sum(1 / n) FROM big", (5000,)),
    ("SELECT max(s::int), count(DISTINCT s::int) FROM big", (12, 1)),
    ("SELECT count(*) FROM big WHERE n BETWEEN 0 AND 5 AND s::int > 0", (5000,)),
    ("SELECT n, count(*) FROM big WHERE 10 / n > 1 GROUP BY n", (1, 5000)),
    ("SELECT count(*) FROM big a JOIN big b USING (id) WHERE a.s::int / b.n > 0", (5000,)),
    ("SELECT count(*) FROM (SELECT s::int FROM big ORDER BY 1 / n LIMIT 10000) x", (5000,)),
    ("SELECT count(*) FILTER (WHERE 1 / n = 1) FROM big", (5000,)),
]


@pytest.mark.parametrize(
    "policy",
    [
        "owner = current_user",
        # Joins in plans, through which conditions on the rows themselves would go down.
        "owner IN (SELECT name FROM friends)",
        "EXISTS (SELECT FROM friends WHERE name = owner)",
        "(SELECT count(*) FROM friends WHERE name = owner) = 1",
    ],
)
def test_nothing_is_computed_of_hidden_rows_of_large_tables(world, policy):
    root = Sql(world.port, database="shop_a", user="root", password="secret")
    for statement in [
        "DROP TABLE IF EXISTS big, friends",
        "CREATE TABLE friends (name text)",
        "INSERT INTO friends VALUES ('reader')",
        "GRANT SELECT ON friends TO reader",
        "CREATE TABLE big (id int PRIMARY KEY, owner text, n int, s text)",
        "INSERT INTO big SELECT i, CASE i % 2 WHEN 0 THEN 'reader' ELSE 'other' END, 1 - i % 2, CASE i % 2 WHEN 0 THEN '12' ELSE 'no' END FROM generate_series(1, 10000) i",
        "ALTER TABLE big ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY own ON big USING ({policy})",
        "GRANT SELECT ON big TO reader",
    ]:
        root.query(statement)
    with pytest.raises(RuntimeError, match="division by zero"):
        root.query("SELECT sum(1 / n) FROM big")
    reader = Sql(world.port, database="shop_a", user="reader", password="p")
    for mode in ("off", "auto", "on"):
        reader.query(f"SET nestor.columns = {mode}")
        for statement, row in WHOLE:
            for _ in range(2):
                assert reader.query(statement) == [[str(value).encode() for value in row]], (mode, statement)
    root.query("DROP TABLE big, friends")
