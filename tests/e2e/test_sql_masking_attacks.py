"""Ways by which somebody masked might find a masked value out in SQL, one a line. None may succeed.

Each attempt is made in two databases that differ in masked fields only, and every byte that the server answers has to be the same, and so
has what the statements leave behind for those who are masked. Source: `docs/masking.md`.
"""

import harness
import pytest
from pgclient import Sql, port_of

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
POLICY = {"ssn": "hide", "note": "null", "n": "null", "email": "email"}
# Documents 1 and 2 have their secrets exchanged in the second database.
SECRETS = [
    ("111", "alpha beta", 1, "anna@example.org"),
    ("222", "gamma", 50, "ava@example.org"),
    ("333", "delta", 7, "delta@example.org"),
]
DATABASES = ("shop_a", "shop_b")
CITIES = [(1, "a", 10), (2, "a", 20), (3, "b", 30)]
TABLES = """
CREATE TABLE people (_id bigint PRIMARY KEY, city text, age int, ssn text, note text, n int, email text);
CREATE TABLE guesses (_id bigint PRIMARY KEY, ssn text, note text, n int, email text);
CREATE SEQUENCE counted;
CREATE INDEX people_ssn ON people (ssn);
CREATE INDEX people_n ON people (n);
CREATE INDEX people_city_n ON people (city, n);
CREATE UNIQUE INDEX people_age ON people (age);
CREATE VIEW seen AS SELECT _id, city, ssn, note, n, email FROM people;
CREATE VIEW low AS SELECT _id FROM people WHERE n < 20;
CREATE TABLE cards (_id bigint PRIMARY KEY, number text UNIQUE);
CREATE TABLE kids (_id bigint PRIMARY KEY, parent bigint REFERENCES guesses (_id));
"""

READS = [
    ["SELECT * FROM people ORDER BY _id"],
    ["SELECT _id FROM people WHERE ssn = '111'"],
    ["SELECT _id FROM people WHERE n < 20"],
    ["SELECT _id FROM people WHERE n IS NULL"],
    ["SELECT _id FROM people WHERE n IS NOT NULL"],
    ["SELECT _id FROM people ORDER BY n, ssn, note, email, _id"],
    ["SELECT _id FROM people ORDER BY n LIMIT 1"],
    ["SELECT _id FROM people ORDER BY ssn DESC LIMIT 1"],
    ["SELECT city, n FROM people WHERE city = 'a' ORDER BY city, n"],
    ["SELECT _id FROM people WHERE city = 'a' AND n > 20"],
    ["SELECT _id FROM people WHERE _doc->>'ssn' = '111'"],
    ["SELECT _id FROM people WHERE _doc @> '{\"n\": 1}'"],
    ["SELECT length(_doc::text), pg_column_size(_doc) FROM people WHERE _id = 1"],
    ["SELECT pg_column_size(ssn), pg_column_size(n), pg_column_size(email), pg_column_size(p) FROM people p ORDER BY _id"],
    ["SELECT md5(_doc::text), md5(p::text) FROM people p ORDER BY _id"],
    ["SELECT min(n), max(n), sum(n), count(n), count(DISTINCT n), count(ssn), min(email), max(ssn) FROM people"],
    ["SELECT n, count(*) FROM people GROUP BY n ORDER BY 1"],
    ["SELECT g._id, p._id FROM guesses g JOIN people p ON p.n = g.n ORDER BY 1, 2"],
    ["SELECT g._id, p._id FROM guesses g JOIN people p ON p.ssn = g.ssn ORDER BY 1, 2"],
    ["SELECT g._id, (SELECT p._id FROM people p WHERE p.email = g.email) FROM guesses g ORDER BY 1"],
    ["SELECT g._id FROM guesses g WHERE EXISTS (SELECT FROM people p WHERE p.city = 'a' AND p.n = g.n AND p._id = 1) ORDER BY 1"],
    ["SELECT g._id FROM guesses g WHERE (g.n, 1) IN (SELECT p.n, p._id FROM people p) ORDER BY 1"],
    ["SELECT n FROM people EXCEPT SELECT n FROM guesses ORDER BY 1"],
    ["SELECT * FROM seen ORDER BY _id"],
    ["SELECT * FROM low ORDER BY _id"],
    ["SELECT count(*) FROM low"],
    ["SELECT _id FROM seen WHERE n = 50"],
    # An error that only some values make.
    ["SELECT 1 / (n - 1) FROM people WHERE _id = 1"],
    ["SELECT ssn::int / (ssn::int - 111) FROM people WHERE _id = 1"],
    ["SELECT note::int FROM people WHERE _id = 1"],
    ["SELECT (_doc->>'note')::int FROM people WHERE _id = 1"],
    ["SELECT _id FROM people WHERE CASE WHEN n = 1 THEN 1 / 0 > 0 ELSE true END ORDER BY _id"],
    ["SELECT CASE WHEN n = 1 THEN pg_sleep(0) END FROM people WHERE _id = 1"],
    ["SELECT CASE WHEN n = 1 THEN nextval('counted') END FROM people WHERE _id = 1", "SELECT last_value FROM counted"],
    ["SELECT CASE WHEN n = 1 THEN pg_advisory_lock(7) END FROM people WHERE _id = 1", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"],
    ["SELECT CASE WHEN n = 1 THEN set_config('application_name', 'told', false) END FROM people WHERE _id = 1", "SHOW application_name"],
    ["SELECT _id FROM people ORDER BY _id OFFSET (SELECT count(*) FROM people WHERE n = 1 AND _id = 1)"],
    ["SELECT _id FROM people ORDER BY _id LIMIT (SELECT n FROM people WHERE _id = 1)"],
    # Plans.
    ["EXPLAIN SELECT _id FROM people WHERE n < 20"],
    ["EXPLAIN SELECT _id FROM people WHERE city = 'a' AND n < 20"],
    ["EXPLAIN SELECT _id FROM people WHERE ssn = '111' ORDER BY n LIMIT 1"],
    ["EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT _id FROM people WHERE n < 20"],
    ["EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT _id FROM people WHERE ssn = '111'"],
    ["EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT _id FROM low"],
    ["EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) SELECT p._id FROM guesses g JOIN people p ON p.n = g.n"],
    # What the catalogs say.
    ["SELECT * FROM pg_stats WHERE tablename = 'people'"],
    ["SELECT reltuples, relpages FROM pg_class WHERE relname IN ('people', 'people_n', 'people_ssn') ORDER BY relname"],
    ["SELECT attname, attnotnull, atttypid FROM pg_attribute WHERE attrelid = 'people'::regclass AND attnum > 0 ORDER BY 1"],
    ["SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people' ORDER BY 1"],
    ["SELECT n_live_tup, idx_scan FROM pg_stat_user_tables WHERE relname = 'people'"],
    ["ANALYZE people", "SELECT * FROM pg_stats WHERE tablename = 'people'"],
    # Cursors, prepared statements, copies.
    ["BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT _id FROM people ORDER BY n", "FETCH ALL FROM c", "COMMIT"],
    ["PREPARE p(int) AS SELECT _id FROM people WHERE n = $1", "EXECUTE p(1)"],
    ["COPY people TO STDOUT"],
    ["COPY (SELECT _id FROM people WHERE n < 20 ORDER BY _id) TO STDOUT"],
    ["COPY people (n, ssn) TO STDOUT (FORMAT csv, HEADER)"],
    ["WITH RECURSIVE r(i) AS (SELECT n FROM people WHERE _id = 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT count(*) FROM r"],
    ["SELECT _id, rank() OVER (ORDER BY n), lag(_id) OVER (ORDER BY ssn) FROM people ORDER BY _id"],
    ["SELECT * FROM people p, LATERAL generate_series(1, p.n) s ORDER BY 1"],
]

WRITES = [
    ["UPDATE people SET city = 'x' WHERE n < 20"],
    ["UPDATE people SET city = 'x' WHERE ssn = '111'"],
    ["UPDATE people SET city = ssn WHERE _id = 1"],
    ["UPDATE people SET city = n::text"],
    ["UPDATE people SET city = 'x' WHERE _id = 1 RETURNING *"],
    ["UPDATE people SET city = 'x' WHERE _id = 1 RETURNING ssn, n, note, email, _doc"],
    ["UPDATE people SET n = 1 WHERE _id = 1"],
    ["UPDATE people SET n = n WHERE _id = 1"],
    ["UPDATE people SET n = n + 1 RETURNING n"],
    ["UPDATE people SET age = age / (n - 1) WHERE _id = 1"],
    ["UPDATE people p SET city = 'x' FROM guesses g WHERE p.n = g.n"],
    ["UPDATE guesses g SET note = p.note FROM people p WHERE p._id = g._id", "SELECT * FROM guesses ORDER BY _id"],
    ["UPDATE guesses g SET n = p.n, email = p.email FROM people p WHERE p._id = g._id RETURNING *"],
    ["UPDATE guesses SET note = (SELECT ssn FROM people WHERE _id = 1)", "SELECT * FROM guesses ORDER BY _id"],
    ["UPDATE people SET age = 20 WHERE _id = 1"],
    ["DELETE FROM people WHERE n < 20"],
    ["DELETE FROM people WHERE ssn = '111' RETURNING _id"],
    ["DELETE FROM people WHERE _id = 1 RETURNING *"],
    ["DELETE FROM people p USING guesses g WHERE p.ssn = g.ssn"],
    ["DELETE FROM guesses g USING people p WHERE p.n = g.n AND p._id = 1", "SELECT * FROM guesses ORDER BY _id"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED THEN UPDATE SET city = 'x'"],
    ["MERGE INTO people p USING guesses g ON p._id = g._id WHEN MATCHED AND p.n < 20 THEN DELETE"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (_id, city) VALUES (g._id + 100, 'x')"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED THEN DO NOTHING"],
    ["MERGE INTO guesses g USING people p ON p.n = g.n WHEN MATCHED THEN UPDATE SET note = p.note", "SELECT * FROM guesses ORDER BY _id"],
    ["DELETE FROM low"],
    ["UPDATE low SET _id = 1"],
    ["INSERT INTO seen (_id, n) VALUES (9, 9)"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99)"],
    ["INSERT INTO people (_id, city, age) VALUES (9, 'z', 10)"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99) ON CONFLICT DO NOTHING RETURNING *"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99) ON CONFLICT (_id) DO UPDATE SET city = 'x' WHERE people.n = 1"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99) ON CONFLICT (_id) DO UPDATE SET city = people.ssn RETURNING *"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99) ON CONFLICT (_id) DO UPDATE SET age = 1 / (people.n - 1)"],
    ["INSERT INTO people (_id, city, age) VALUES (9, 'z', 10) ON CONFLICT (age) DO UPDATE SET city = 'x' RETURNING *"],
    ["INSERT INTO people (_id, city, age) VALUES (1, 'z', 99) ON CONFLICT (n) DO NOTHING"],
    ["INSERT INTO people (_id, n, age) VALUES (9, 1, 90)"],
    ["INSERT INTO guesses (_id, note) SELECT _id + 10, ssn FROM people WHERE n = 1", "SELECT * FROM guesses ORDER BY _id"],
    ["INSERT INTO guesses (_id, n) SELECT n + 10, n FROM people ORDER BY _id", "SELECT * FROM guesses ORDER BY _id"],
    ["MERGE INTO people p USING guesses g ON p.n = g.n WHEN MATCHED THEN UPDATE SET city = 'x'"],
    ["MERGE INTO guesses g USING people p ON p.n = g.n WHEN MATCHED THEN DELETE", "SELECT * FROM guesses ORDER BY _id"],
    ["CREATE TABLE made AS SELECT * FROM people", "SELECT * FROM made ORDER BY _id"],
    ["CREATE TABLE made AS TABLE people", "SELECT _doc FROM made ORDER BY _id"],
    ["CREATE TABLE made AS SELECT _id, ssn, n + 1 AS n FROM seen", "SELECT * FROM made ORDER BY _id"],
    ["CREATE VIEW made AS SELECT _id, ssn, n FROM people WHERE n < 20", "SELECT * FROM made"],
    ["CREATE VIEW made AS SELECT _id FROM people WHERE ssn = '111'", "SELECT count(*) FROM made"],
    ["CREATE TABLE made (_id bigint PRIMARY KEY, p bigint REFERENCES people (_id))", "INSERT INTO made VALUES (1, 1), (2, 77)"],
    ["CREATE TABLE made (_id bigint PRIMARY KEY, n int REFERENCES people (n))", "INSERT INTO made VALUES (1, 1)"],
    ["CREATE TABLE made (_id bigint PRIMARY KEY, ssn text REFERENCES people (ssn))", "INSERT INTO made VALUES (1, '111')"],
    ["INSERT INTO cards VALUES (7, '111')"],
    ["INSERT INTO cards VALUES (7, '111') ON CONFLICT DO NOTHING"],
    ["INSERT INTO cards VALUES (7, '111') ON CONFLICT (number) DO NOTHING"],
    ["INSERT INTO cards VALUES (7, '111') ON CONFLICT (number) DO UPDATE SET _id = 8"],
    ["CREATE TABLE made (_id bigint PRIMARY KEY, c text REFERENCES cards (number))", "INSERT INTO made VALUES (1, '111')"],
    ["CREATE TABLE made (_id bigint PRIMARY KEY, c bigint REFERENCES cards (_id))", "INSERT INTO made VALUES (1, 1)"],
    ["DELETE FROM guesses WHERE _id = 1"],
    ["UPDATE guesses SET _id = 9 WHERE _id = 1"],
    ["CREATE TABLE made (LIKE people INCLUDING ALL)", "SELECT * FROM made"],
    ["COPY people (_id, n) FROM STDIN"],
    ["SELECT _id FROM people WHERE n < 20 FOR UPDATE"],
    ["BEGIN", "UPDATE people SET city = 'x' WHERE _id = 1", "SELECT * FROM people WHERE n = 1", "ROLLBACK"],
    ["WITH w AS (UPDATE people SET city = 'x' WHERE _id = 1 RETURNING *) SELECT * FROM w"],
    ["WITH w AS (DELETE FROM people WHERE city = 'a' RETURNING *) SELECT * FROM w WHERE n = 1"],
    ["EXPLAIN ANALYZE UPDATE people SET city = 'x' WHERE n < 20"],
]

KEEPS = [
    ["CREATE UNIQUE INDEX ON people (n)"],
    ["CREATE UNIQUE INDEX ON people (city, ssn)"],
    ["CREATE UNIQUE INDEX ON people (email)"],
    ["CREATE UNIQUE INDEX ON people (city) WHERE n < 20"],
    ["INSERT INTO kids VALUES (9, 1)", "CREATE UNIQUE INDEX ON kids (parent)"],
    ["CREATE INDEX made ON people ((1 / (n - 1)))"],
    ["CREATE INDEX made ON people (note)", "SELECT _id FROM people ORDER BY note LIMIT 1"],
    ["CREATE UNIQUE INDEX made ON people (lower(ssn))"],
    ["ALTER TABLE people ADD CONSTRAINT c CHECK (n < 20)"],
    ["ALTER TABLE people ADD CONSTRAINT c CHECK (_id <> 1 OR n = 1)"],
    ["ALTER TABLE people ADD CONSTRAINT c CHECK (_id <> 1 OR n = 1) NOT VALID", "UPDATE people SET city = 'x' WHERE _id = 1"],
    ["ALTER TABLE people ADD CONSTRAINT c CHECK (_id <> 1 OR ssn = '111') NOT VALID", "ALTER TABLE people VALIDATE CONSTRAINT c"],
    ["ALTER TABLE people ADD UNIQUE (n)"],
    ["ALTER TABLE people ADD CONSTRAINT u UNIQUE (ssn)"],
    ["ALTER TABLE people ADD PRIMARY KEY (n)"],
    ["ALTER TABLE people ADD FOREIGN KEY (n) REFERENCES guesses (n)"],
    ["ALTER TABLE people ADD FOREIGN KEY (n) REFERENCES guesses (_id)"],
    ["ALTER TABLE guesses ADD FOREIGN KEY (n) REFERENCES people (n)"],
    ["ALTER TABLE people ALTER COLUMN n SET NOT NULL"],
    ["ALTER TABLE people ALTER COLUMN note TYPE int USING note::int"],
    ["ALTER TABLE people ALTER COLUMN ssn TYPE int USING ssn::int"],
    ["ALTER TABLE people ALTER COLUMN age TYPE int USING n"],
    ["ALTER TABLE people ALTER COLUMN age TYPE int USING age / (n - 1)", "SELECT * FROM people ORDER BY _id"],
    ["ALTER TABLE people ALTER COLUMN n TYPE smallint"],
    ["ALTER TABLE people RENAME COLUMN ssn TO open", "SELECT * FROM people ORDER BY _id"],
    ["ALTER TABLE people RENAME COLUMN n TO m", "SELECT * FROM people ORDER BY _id"],
    ["ALTER TABLE people RENAME TO persons", "SELECT * FROM persons ORDER BY _id"],
    ["ALTER TABLE people DROP COLUMN n", "SELECT * FROM people ORDER BY _id"],
    ["ALTER TABLE people ADD COLUMN copy int GENERATED ALWAYS AS (n) STORED", "SELECT * FROM people ORDER BY _id"],
    ["ALTER TABLE people ADD COLUMN copy int DEFAULT 1", "SELECT * FROM people ORDER BY _id"],
    ["DROP VIEW seen", "CREATE VIEW seen AS SELECT * FROM people WHERE n = 1", "SELECT * FROM seen"],
    ["CREATE OR REPLACE VIEW seen AS SELECT _id FROM people WHERE n = 1", "SELECT * FROM seen"],
    ["ANALYZE people", "SELECT * FROM pg_stats WHERE tablename = 'people'", "EXPLAIN SELECT * FROM people WHERE n = 1"],
    ["SELECT pg_relation_size('people'), pg_relation_size('people_ssn')"],
    ["SELECT idx_scan, idx_tup_read FROM pg_stat_user_indexes ORDER BY indexrelname"],
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
        for db in DATABASES:
            for name, roles in {"reader": ["read"], "writer": ["readWrite"], "keeper": ["readWrite", "dbAdmin"]}.items():
                self.root[db].command("createUser", name, pwd="p", roles=roles)

    def fill(self):
        for db, order in zip(DATABASES, ([0, 1, 2], [1, 0, 2]), strict=True):
            for name in self.root[db].list_collection_names(filter={"name": {"$not": {"$regex": "^system"}}}):
                self.root[db].drop_collection(name)
            sql = Sql(self.port, database=db, user="root", password="secret")
            for statement in filter(str.strip, TABLES.split(";")):
                sql.query(statement)
            for (key, city, age), at in zip(CITIES, order, strict=True):
                ssn, note, n, email = SECRETS[at]
                sql.query(f"INSERT INTO people VALUES ({key}, '{city}', {age}, '{ssn}', '{note}', {n}, '{email}')")
            for key, (ssn, note, n, email) in enumerate(SECRETS, start=1):
                sql.query(f"INSERT INTO guesses VALUES ({key}, '{ssn}', '{note}', {n}, '{email}')")
            # These have other values in the other database.
            sql.query(f"INSERT INTO cards VALUES (1, '{SECRETS[order[0]][0]}')")
            sql.query(f"INSERT INTO kids VALUES (1, {order[0] + 1})")
            sql.socket.close()
            for name, policy in {"people": POLICY, "cards": {"number": "null"}, "kids": {"parent": "null"}}.items():
                self.root[db].command("collMod", name, masking=policy)

    def told(self, user, db, statements):
        """Everything that somebody is told: by the statements, and by what is there afterwards."""
        sql = Sql(self.port, database=db, user=user, password="p")
        out = []
        for statement in [*statements, "SELECT * FROM people ORDER BY _id", "SELECT relname FROM pg_class WHERE relname !~ '^(pg|sql)_' ORDER BY 1"]:
            sql.send(b"Q", statement.encode() + b"\0")
            if statement.endswith("FROM STDIN"):
                sql.send(b"d", b"9\t1\n1\t1\n")
                sql.send(b"c")
            out.append([statement, sql.until_ready()])
        sql.socket.close()
        return [[statement, [(tag, columns(body) if tag == b"T" else body) for tag, body in messages if tag != b"S"]] for statement, messages in out]


@pytest.fixture(scope="module")
def world():
    with harness.Server(None, "--auth", "--sql-port", 0) as server:
        yield World(server)
        server.stop()


def attempt(world, user, statements):
    world.fill()
    # The names of the databases have the same length, and what is said may name them.
    first, second = (repr(world.told(user, db, statements)).replace(db, "shop") for db in DATABASES)
    assert first == second


@pytest.mark.parametrize("statements", READS, ids="; ".join)
def test_reading_tells_nothing(world, statements):
    attempt(world, "reader", statements)


@pytest.mark.parametrize("statements", WRITES, ids="; ".join)
def test_writing_tells_nothing(world, statements):
    attempt(world, "writer", statements)


@pytest.mark.parametrize("statements", KEEPS, ids="; ".join)
def test_keeping_tables_tells_nothing(world, statements):
    attempt(world, "keeper", statements)


def test_keys_of_masked_tables_stay_whole(world):
    """A key is there or not, whatever the user sees of the tables; who may not be told is refused."""
    world.fill()
    writer = Sql(world.port, database="shop_a", user="writer", password="p")
    root = Sql(world.port, database="shop_a", user="root", password="secret")
    writer.query("CREATE TABLE made (_id bigint PRIMARY KEY, p bigint REFERENCES people (_id))")
    writer.query("INSERT INTO made VALUES (1, 1)")
    for statement, state in {
        "INSERT INTO made VALUES (2, 77)": "23503",
        "DELETE FROM guesses WHERE _id = 1": "42501",
        "INSERT INTO people (_id, city) VALUES (1, 'z') ON CONFLICT (_id) DO UPDATE SET city = people.ssn": "42501",
        "UPDATE people SET city = 'x' WHERE n = 77": "42501",
        "DELETE FROM people WHERE n = 77": "42501",
    }.items():
        with pytest.raises(RuntimeError, match=f"^{state} "):
            writer.query(statement)
    keeper = Sql(world.port, database="shop_a", user="keeper", password="p")
    with pytest.raises(RuntimeError, match="^42501 "):
        keeper.query("CREATE UNIQUE INDEX ON people (n)")
    keeper.query("CREATE INDEX ON people (city, age)")
    assert root.query("SELECT g._id FROM kids k JOIN guesses g ON g._id = k.parent") == [[b"1"]]
    root.query("UPDATE people SET city = 'x' WHERE n = 1")
    with pytest.raises(RuntimeError, match="^23503 "):
        root.query("DELETE FROM guesses WHERE _id = 1")


def test_these_rows_differ_for_who_may_see_them(world):
    """Else the tests above would hold whatever is masked."""
    world.fill()
    rows = [Sql(world.port, database=db, user="root", password="secret").query("SELECT * FROM people ORDER BY _id") for db in DATABASES]
    assert rows[0] != rows[1]
