"""What drivers do on the wire: options of the startup packet, formats of arrays, files of COPY, moves of cursors."""

import struct

import harness
import pytest

from pgclient import Sql, port_of


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with harness.Server(tmp_path_factory.mktemp("drivers"), "--sql-port", "0") as server:
        yield port_of(server)


def fields(body):
    return dict((part[:1], part[1:].decode()) for part in body.split(b"\0") if part)


def failed(sql, statement):
    """The fields of the error that a statement ends with."""
    sql.send(b"Q", statement.encode() + b"\0")
    [body] = [body for tag, body in sql.until_ready() if tag == b"E"]
    return fields(body)


def test_options_of_the_startup_packet(port):
    class WithOptions(Sql):
        options = b"-c statement_timeout=90s --application-name=a\\ b"

        def begin(self, port, database, user, tls=None):
            super().begin(port, database + "\0options\0" + self.options.decode(), user, tls)

    sql = WithOptions(port)
    assert sql.query("SELECT current_setting('statement_timeout'), current_setting('application_name')") == [
        [b"90s", b"a b"]
    ]
    WithOptions.options = b"-c nothing=1"
    with pytest.raises(RuntimeError, match="42704"):
        WithOptions(port)
    WithOptions.options = b"-o x"
    with pytest.raises(RuntimeError, match="0A000"):
        WithOptions(port)


def test_arrays_of_several_dimensions_in_binary(port):
    sql = Sql(port)
    items = b"".join(struct.pack("!ii", 4, n) for n in range(1, 7))
    array = struct.pack("!iiiiiii", 2, 0, 23, 2, 1, 3, 1) + items
    [[shown]] = sql.prepared("SELECT '{{1,2,3},{4,5,6}}'::int[]", [], binary=1)
    assert shown == array
    sql.send(b"P", b"\0SELECT $1::int[]\0" + struct.pack("!h", 0))
    sql.send(b"B", b"\0\0" + struct.pack("!hhhi", 1, 1, 1, len(array)) + array + struct.pack("!h", 0))
    sql.send(b"E", b"\0" + struct.pack("!i", 0))
    sql.send(b"S")
    assert sql.rows(sql.until_ready()) == [[b"{{1,2,3},{4,5,6}}"]]
    # More elements than there are bytes for are none.
    huge = struct.pack("!iiiiiii", 2, 0, 23, 1 << 30, 1, 1 << 30, 1) + items
    sql.send(b"P", b"\0SELECT $1::int[]\0" + struct.pack("!h", 0))
    sql.send(b"B", b"\0\0" + struct.pack("!hhhi", 1, 1, 1, len(huge)) + huge + struct.pack("!h", 0))
    sql.send(b"S")
    assert [fields(body)[b"C"] for tag, body in sql.until_ready() if tag == b"E"] == ["22P03"]


def test_a_binary_file_of_copy_may_end_behind_a_row(port):
    sql = Sql(port)
    sql.query("CREATE TABLE copied (_id int PRIMARY KEY)")
    head = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
    sql.send(b"Q", b"COPY copied FROM STDIN BINARY\0")
    assert sql.read(1) == b"G"
    sql.read(struct.unpack("!i", sql.read(4))[0] - 4)
    sql.send(b"d", head + struct.pack("!hii", 1, 4, 7) + struct.pack("!hii", 1, 4, 8))
    sql.send(b"c")
    assert any(tag == b"C" and body == b"COPY 2\0" for tag, body in sql.until_ready())
    assert sql.query("SELECT sum(_id) FROM copied") == [[b"15"]]


def copied(sql, statement):
    """The messages with pieces of the file that a COPY gives."""
    sql.send(b"Q", statement.encode() + b"\0")
    return [body for tag, body in sql.until_ready() if tag == b"d"]


def test_pieces_of_a_binary_file_are_its_rows(port):
    """psycopg reads a row from each; what stands before the rows goes with the first."""
    sql = Sql(port)
    head = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
    row = [struct.pack("!hii", 1, 4, n) for n in (1, 2)]
    assert copied(sql, "COPY (SELECT generate_series(1, 2)) TO STDOUT BINARY") == [head + row[0], row[1], b"\xff\xff"]
    assert copied(sql, "COPY (SELECT 1 WHERE false) TO STDOUT BINARY") == [head + b"\xff\xff"]
    assert copied(sql, "COPY (SELECT 1 AS n) TO STDOUT CSV HEADER") == [b"n\n", b"1\n"]


def test_spaces_in_arrays(port):
    """Six characters are spaces there; others are letters like any."""
    sql = Sql(port)
    for letter in "\t\n\v\f\r ":
        shown = '{"' + letter + '","a' + letter + '"}'
        assert sql.prepared("SELECT ARRAY[$1::text, 'a' || $1]", [letter.encode()]) == [[shown.encode()]]
        assert sql.prepared("SELECT $1::text[] = ARRAY['a', 'b']", [("{" + letter + "a," + letter + "b}").encode()]) == [[b"t"]]
    for letter in "\x1c\x85\xa0\u2003":
        text = ("{" + letter + "," + letter + "}").encode()
        assert sql.prepared("SELECT $1::text[]", [text]) == [[text]]


def test_parameters_of_cursors(port):
    """psycopg's server-side cursors have them."""
    sql = Sql(port)
    sql.query("BEGIN")
    sql.prepared("DECLARE c CURSOR FOR SELECT generate_series(1, $1::int) + $2", [b"3", b"10"])
    assert sql.query("FETCH ALL c") == [[b"11"], [b"12"], [b"13"]]
    sql.query("COMMIT")


def test_types_asked_for_by_a_parameter(port):
    sql = Sql(port)
    sql.query("CREATE TYPE asked AS ENUM ('a', 'b')")
    query = "SELECT to_regtype($1) IS NULL, array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = to_regtype($1)"
    assert sql.prepared(query, [b"asked"]) == [[b"f", b"{a,b}"]]
    assert sql.prepared("SELECT to_regtype($1)::oid = 'asked'::regtype::oid", [b"public.asked"]) == [[b"t"]]
    assert sql.prepared("SELECT to_regtype($1) = 'ASKED'::regtype", [b"Asked"]) == [[b"t"]]
    assert sql.prepared("SELECT to_regtype($1) IS NULL", [b'"Asked"']) == [[b"t"]]
    assert sql.prepared("SELECT to_regtype($1)", [b"int"]) == [[b"integer"]]
    assert sql.prepared("SELECT to_regtype($1)", [b"nothing"]) == [[None]]


def test_errors_name_what_they_are_about(port):
    sql = Sql(port)
    sql.query("CREATE TABLE named (_id int PRIMARY KEY, v int CHECK (v > 0))")
    sql.query("INSERT INTO named VALUES (1, 1)")
    error = failed(sql, "INSERT INTO named VALUES (1, 2)")
    assert (error[b"C"], error[b"s"], error[b"t"], error[b"n"]) == ("23505", "public", "named", "named_pkey")
    error = failed(sql, "INSERT INTO named VALUES (2, -2)")
    assert (error[b"C"], error[b"s"], error[b"t"], error[b"n"]) == ("23514", "public", "named", "named_v_check")


def test_a_parameter_of_no_type_is_no_argument(port):
    """pgjdbc's CallableStatement registers its result so."""
    sql = Sql(port)
    sql.send(b"P", b"\0SELECT * FROM upper($1, $2) AS result\0" + struct.pack("!hii", 2, 2278, 1043))
    sql.send(b"B", b"\0\0" + struct.pack("!hhii", 0, 2, -1, 3) + b"abc" + struct.pack("!h", 0))
    sql.send(b"E", b"\0" + struct.pack("!i", 0))
    sql.send(b"S")
    assert sql.rows(sql.until_ready()) == [[b"ABC"]]


def test_moves_of_cursors(port):
    sql = Sql(port)
    sql.query("BEGIN")
    sql.query("DECLARE c CURSOR FOR SELECT generate_series(1, 9)")
    sql.send(b"Q", b"MOVE 3 c\0")
    assert [(tag, body) for tag, body in sql.until_ready() if tag in b"TDC"] == [(b"C", b"MOVE 3\0")]
    assert sql.query("FETCH c") == [[b"4"]]
    # It says beforehand that there are no rows.
    sql.send(b"P", b"m\0MOVE 1 c\0" + struct.pack("!h", 0))
    sql.send(b"D", b"Sm\0")
    sql.send(b"S")
    assert b"n" in [tag for tag, _ in sql.until_ready()]
    sql.query("COMMIT")


@pytest.mark.parametrize(
    "statement, state, place",
    [
        ("SELECT nothing FROM pg_class", "42703", "nothing"),
        ("SELECT relname,\n  pg_class.nothing FROM pg_class", "42703", "pg_class.nothing"),
        ("SELECT 'ä', nothing", "42703", "nothing"),
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ('SELECT "Nothing"', "42703", '"Nothing"'),
        ("SELECT nofunction(1)", "42883", "nofunction"),
        ("SELECT nofunction(upper('a'))", "42883", "nofunction"),
        ("SELECT true + 1", "42883", "+"),
        ("SELECT 1 + (true)", "42883", "+"),
        ("SELECT count(*) < current_date FROM pg_class", "42883", "<"),
        ("SELECT 1 WHERE count(*) > 1", "42803", "count"),
        ("SELECT 'x'::int", "22P02", "'x'"),
        ("SELECT 1 + 'x'", "22P02", "'x'"),
        ("SELECT date '2024-13-01'", "22008", "'2024-13-01'"),
        ("INSERT INTO placed (_id, nothing) VALUES (1, 2)", "42703", "nothing"),
        ("UPDATE placed SET nothing = 1", "42703", "nothing"),
        ("SELECT 1 1", "42601", " 1"),
        ("SELECT (1", "42601", ""),
    ],
)
def test_errors_say_where(port, statement, state, place):
    sql = Sql(port)
    sql.query("CREATE TABLE IF NOT EXISTS placed (_id int PRIMARY KEY)")
    error = failed(sql, statement)
    at = statement.rindex(place) + 1 if place else len(statement) + 1
    if place == " 1":
        at += 1
    assert (error[b"C"], int(error[b"P"])) == (state, at)


def test_errors_of_other_texts_have_no_place(port):
    sql = Sql(port)
    sql.query("CREATE TABLE going (_id int PRIMARY KEY, v int)")
    sql.query("CREATE VIEW of_going AS SELECT v FROM going")
    sql.query("DROP TABLE going")
    error = failed(sql, "SELECT * FROM of_going")
    assert error[b"C"] == "42P01" and b"P" not in error


def test_errors_say_what_to_do(port):
    sql = Sql(port)
    sql.query("CREATE TABLE hinted (_id int PRIMARY KEY, name text, number int GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (_id * 2) STORED)")
    for statement, state, field, said in [
        ("SELECT nme FROM hinted", "42703", b"H", 'Perhaps you meant to reference the column "hinted.name".'),
        ("SELECT h.nam FROM hinted h", "42703", b"H", 'Perhaps you meant to reference the column "h.name".'),
        ("SELECT zzzzzzz FROM hinted", "42703", b"H", None),
        ("SELECT name - 1 FROM hinted", "42883", b"H", "No operator matches the given name and argument types. You might need to add explicit type casts."),
        ("SELECT nofunction()", "42883", b"H", "No function matches the given name and argument types. You might need to add explicit type casts."),
        ("INSERT INTO hinted (_id, number) VALUES (1, 1)", "428C9", b"H", "Use OVERRIDING SYSTEM VALUE to override."),
        ("UPDATE hinted SET number = 1", "428C9", b"D", 'Column "number" is an identity column defined as GENERATED ALWAYS.'),
        ("UPDATE hinted SET twice = 1", "428C9", b"D", 'Column "twice" is a generated column.'),
    ]:
        error = failed(sql, statement)
        assert (error[b"C"], error.get(field)) == (state, said), statement
    assert failed(sql, "SELECT 1 WHERE count(*) > 1")[b"M"] == "aggregate functions are not allowed in WHERE"


def told(sql, statement):
    """The severities, states and messages of the notices of a statement, and the tag it ends with."""
    sql.send(b"Q", statement.encode() + b"\0")
    messages = sql.until_ready()
    sql.rows(messages)
    notices = [fields(body) for tag, body in messages if tag == b"N"]
    tags = [body[:-1].decode() for tag, body in messages if tag == b"C"]
    return [(notice[b"S"], notice[b"C"], notice[b"M"]) for notice in notices], tags[-1]


def test_notices(port):
    sql = Sql(port)
    sql.query("CREATE TABLE noted (_id int PRIMARY KEY, v int)")
    sql.query("CREATE TYPE noted_mood AS ENUM ('sad')")
    missing = "does not exist, skipping"
    for statement, tag, state, message in [
        ("DROP TABLE IF EXISTS nothing", "DROP TABLE", "00000", f'table "nothing" {missing}'),
        ("DROP VIEW IF EXISTS nothing", "DROP VIEW", "00000", f'view "nothing" {missing}'),
        ("DROP MATERIALIZED VIEW IF EXISTS nothing", "DROP MATERIALIZED VIEW", "00000", f'materialized view "nothing" {missing}'),
        ("DROP INDEX IF EXISTS nothing", "DROP INDEX", "00000", f'index "nothing" {missing}'),
        ("DROP SEQUENCE IF EXISTS nothing", "DROP SEQUENCE", "00000", f'sequence "nothing" {missing}'),
        ("DROP TYPE IF EXISTS nothing", "DROP TYPE", "00000", f'type "nothing" {missing}'),
        ("DROP SCHEMA IF EXISTS nothing", "DROP SCHEMA", "00000", f'schema "nothing" {missing}'),
        ("ALTER TABLE IF EXISTS nothing ADD COLUMN x int", "ALTER TABLE", "00000", f'relation "nothing" {missing}'),
        ("ALTER TABLE noted DROP COLUMN IF EXISTS x", "ALTER TABLE", "00000", f'column "x" of relation "noted" {missing}'),
        ("ALTER TABLE noted DROP CONSTRAINT IF EXISTS x", "ALTER TABLE", "00000", f'constraint "x" of relation "noted" {missing}'),
        ("ALTER TABLE noted ADD COLUMN IF NOT EXISTS v int", "ALTER TABLE", "42701", 'column "v" of relation "noted" already exists, skipping'),
        ("CREATE TABLE IF NOT EXISTS noted (_id int PRIMARY KEY)", "CREATE TABLE", "42P07", 'relation "noted" already exists, skipping'),
        ("CREATE SCHEMA IF NOT EXISTS public", "CREATE SCHEMA", "42P06", 'schema "public" already exists, skipping'),
        ("ALTER TYPE noted_mood ADD VALUE IF NOT EXISTS 'sad'", "ALTER TYPE", "42710", 'enum label "sad" already exists, skipping'),
    ]:
        assert told(sql, statement) == ([("NOTICE", state, message)], tag), statement
    warning = ("WARNING", "25P01", "there is no transaction in progress")
    assert told(sql, "COMMIT") == ([warning], "COMMIT")
    assert told(sql, "ROLLBACK") == ([warning], "ROLLBACK")
    assert told(sql, "START TRANSACTION; BEGIN; COMMIT")[0] == [("WARNING", "25001", "there is already a transaction in progress")]
    assert told(sql, "SET LOCAL statement_timeout = '1s'")[0] == [("WARNING", "25P01", "SET LOCAL can only be used in transaction blocks")]
    # They come in the extended protocol as well, and only as far as a client wants them.
    sql.send(b"P", b"\0DROP TABLE IF EXISTS nothing\0" + struct.pack("!h", 0))
    sql.send(b"B", b"\0\0" + struct.pack("!hhh", 0, 0, 0))
    sql.send(b"E", b"\0" + struct.pack("!i", 0))
    sql.send(b"S")
    assert [tag for tag, _ in sql.until_ready()] == [b"1", b"2", b"N", b"C", b"Z"]
    sql.query("SET client_min_messages = warning")
    assert told(sql, "DROP TABLE IF EXISTS nothing; COMMIT") == ([warning], "COMMIT")
    sql.query("SET client_min_messages = error")
    assert told(sql, "COMMIT") == ([], "COMMIT")


def test_settings_of_scripts(port):
    """What pg_dump's scripts and pools of connections set."""
    sql = Sql(port)
    for statement in [
        "SET statement_timeout = 0",
        "SET lock_timeout = 0",
        "SET idle_in_transaction_session_timeout = 0",
        "SET check_function_bodies = false",
        "SET xmloption = content",
        "SET row_security = off",
        "SET synchronize_seqscans TO off",
        "SET default_table_access_method = heap",
        "SET ROLE NONE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "RESET SESSION AUTHORIZATION",
        "RESET ALL",
        "DISCARD SEQUENCES",
    ]:
        sql.query(statement)
    for given, shown in [("5s", "5s"), ("90000", "90s"), ("60000 ms", "1min"), ("120min", "2h"), ("0", "0"), ("1500", "1500ms")]:
        sql.query(f"SET statement_timeout = '{given}'")
        assert sql.query("SHOW statement_timeout") == [[shown.encode()]]
    for statement, state, message in [
        ("SET statement_timeout = 'x'", "22023", 'invalid value for parameter "statement_timeout": "x"'),
        ("SET row_security = perhaps", "22023", 'parameter "row_security" requires a Boolean value'),
        ("SET client_min_messages = loud", "22023", 'invalid value for parameter "client_min_messages": "loud"'),
        ("SET default_tablespace = 'fast'", "0A000", 'setting "default_tablespace" to "fast" is not supported'),
        ("SET ROLE somebody", "22023", "role \"somebody\" does not exist"),
    ]:
        error = failed(sql, statement)
        assert (error[b"C"], error[b"M"]) == (state, message), statement


def test_owners(port):
    sql = Sql(port)
    for statement in [
        "CREATE TABLE owned (id serial PRIMARY KEY)",
        "ALTER TABLE owned OWNER TO tester",
        "ALTER TABLE public.owned_id_seq OWNER TO tester",
        "CREATE VIEW owned_view AS SELECT id FROM owned",
        "ALTER VIEW owned_view OWNER TO CURRENT_USER",
        "CREATE TYPE owned_type AS ENUM ('a')",
        "ALTER TYPE public.owned_type OWNER TO tester",
        "ALTER SCHEMA public OWNER TO tester",
        "ALTER TABLE IF EXISTS nothing OWNER TO tester",
        "ALTER TABLE owned ADD COLUMN owner text",
        "ALTER TABLE owned RENAME COLUMN owner TO x",
    ]:
        sql.query(statement)
    for statement, state in [
        ("ALTER TABLE nothing OWNER TO tester", "42P01"),
        ("ALTER TYPE nothing OWNER TO tester", "42704"),
        ("ALTER SCHEMA nothing OWNER TO tester", "3F000"),
        ("ALTER TABLE owned OWNER TO somebody", "0A000"),
    ]:
        assert failed(sql, statement)[b"C"] == state, statement


def test_columns_know_their_tables(port):
    """By these JDBC updates rows of its results, and tools show tables and tell which columns take nulls."""
    sql = Sql(port)
    sql.query("CREATE TABLE origins (_id int PRIMARY KEY, name text)")
    sql.query("CREATE VIEW of_origins AS SELECT name, _id FROM origins")
    oids = dict(sql.query("SELECT relname, oid FROM pg_class WHERE relname IN ('origins', 'of_origins')"))
    table, view = int(oids[b"origins"]), int(oids[b"of_origins"])

    def origins(query):
        sql.send(b"P", b"\0" + query.encode() + b"\0" + struct.pack("!h", 0))
        sql.send(b"D", b"S\0")
        sql.send(b"S")
        [body] = [body for tag, body in sql.until_ready() if tag == b"T"]
        at, found = 2, []
        while at < len(body):
            at = body.index(b"\0", at) + 1
            found.append(struct.unpack_from("!IH", body, at))
            at += 18
        return found

    for query, expected in [
        ("SELECT * FROM origins", [(table, 1), (table, 2)]),
        ("SELECT name AS n, upper(name), o._id FROM origins o", [(table, 2), (0, 0), (table, 1)]),
        ("SELECT name, count(*) FROM origins GROUP BY name", [(table, 2), (0, 0)]),
        ("SELECT * FROM (SELECT _id AS x FROM origins) AS d", [(table, 1)]),
        ("WITH w AS (SELECT name FROM origins) SELECT name FROM w", [(table, 2)]),
        ("SELECT * FROM of_origins", [(view, 1), (view, 2)]),
        ("SELECT name FROM origins UNION SELECT name FROM origins", [(0, 0)]),
        ("SELECT relname FROM pg_class", [(1259, 2)]),
        ("INSERT INTO origins VALUES (1, 'a') RETURNING name", [(table, 2)]),
    ]:
        assert origins(query) == expected, query


def test_catalogs_that_tools_look_at(port):
    """They are there, whatever is in them: what DBeaver, Metabase, Grafana, Power BI and monitoring read beside the usual ones."""
    sql = Sql(port)
    for name in [
        "pg_catalog.pg_stat_bgwriter",
        "pg_catalog.pg_stat_archiver",
        "pg_catalog.pg_statio_user_indexes",
        "pg_catalog.pg_shadow",
        "pg_catalog.pg_prepared_statements",
        "pg_catalog.pg_available_extension_versions",
        "pg_catalog.pg_largeobject",
        "information_schema.role_table_grants",
        "information_schema.constraint_table_usage",
        "information_schema.element_types",
        "information_schema.sql_features",
        "information_schema.view_table_usage",
        "information_schema.user_defined_types",
        "information_schema.attributes",
        "information_schema.usage_privileges",
    ]:
        sql.query(f"SELECT * FROM {name} LIMIT 1")


def in_bytes(sql, statement):
    """A statement whose bytes are sent as they are; rows, or the state of the error."""
    sql.send(b"Q", statement + b"\0")
    messages = sql.until_ready()
    states = [part[1:].decode() for tag, body in messages if tag == b"E" for part in body.split(b"\0") if part[:1] == b"C"]
    return states[0] if states else sql.rows(messages)


@pytest.mark.parametrize(
    "name, special, byte", [("LATIN1", "¤", b"\xa4"), ("LATIN9", "€", b"\xa4"), ("WIN1252", "€", b"\x80")]
)
def test_encodings_of_clients(port, name, special, byte):
    sql, plain = Sql(port), Sql(port)
    plain.query("DROP TABLE IF EXISTS encoded; CREATE TABLE encoded (_id int PRIMARY KEY, t text, j jsonb, a text[])")
    sql.query(f"SET client_encoding = '{name}'")
    umlaut = "ü".encode("latin1")
    assert in_bytes(sql, b"INSERT INTO encoded VALUES (1, '" + umlaut + byte + b"', '{\"k\": \"" + umlaut + b"\"}', NULL)") == []
    text = ("ü" + special).encode()
    assert plain.query("SELECT t, j ->> 'k' FROM encoded") == [[text, "ü".encode()]]
    # Rows, in text and in binary, with parameters, of arrays and JSON.
    for binary in (0, 1):
        rows = sql.prepared("SELECT $1 || t, upper(t) FROM encoded WHERE t LIKE $2", [umlaut, b"%" + byte], binary)
        assert rows == [[umlaut + umlaut + byte, "Ü".encode("latin1") + byte]]
    assert sql.query("SELECT array[t], j FROM encoded") == [[b"{" + umlaut + byte + b"}", b'{"k": "' + umlaut + b'"}']]
    # Names, and errors with them.
    sql.send(b"Q", b'SELECT 1 AS "' + umlaut + b'"\0')
    assert any(tag == b"T" and umlaut + b"\0" in body for tag, body in sql.until_ready())
    sql.send(b"Q", b'SELECT "' + umlaut + b'" FROM encoded\0')
    assert any(tag == b"E" and b'"' + umlaut + b'" does not exist' in body for tag, body in sql.until_ready())
    # Files that come and go.
    sql.send(b"Q", b"COPY encoded (_id, t) FROM STDIN\0")
    assert sql.message()[0] == b"G"
    for piece in [b"2\t" + umlaut, byte + b"\n3\tplain\n"]:
        sql.send(b"d", piece)
    sql.send(b"c")
    sql.rows(sql.until_ready())
    assert plain.query("SELECT t FROM encoded WHERE _id = 2") == [[text]]
    sql.send(b"Q", b"COPY (SELECT t FROM encoded ORDER BY _id LIMIT 1) TO STDOUT\0")
    assert [body for tag, body in sql.until_ready() if tag == b"d"] == [umlaut + byte + b"\n"]
    assert in_bytes(sql, b"COPY (SELECT t FROM encoded WHERE _id = 1) TO STDOUT (ENCODING 'UTF8')") == []
    sql.send(b"Q", b"COPY (SELECT t FROM encoded WHERE _id = 1) TO STDOUT (ENCODING 'UTF8', FORMAT binary)\0")
    assert any(tag == b"d" and text in body for tag, body in sql.until_ready())
    # What it does not have is an error, in rows and in files, and the connection goes on.
    plain.query("UPDATE encoded SET t = 'ж' WHERE _id = 2")
    assert in_bytes(sql, b"SELECT t FROM encoded WHERE _id = 2") == "22P05"
    assert in_bytes(sql, b"COPY (SELECT t FROM encoded WHERE _id = 2) TO STDOUT") == "22P05"
    assert sql.query("SELECT t = 'x' FROM encoded WHERE _id = 2") == [[b"f"]]
    if name == "WIN1252":
        assert in_bytes(sql, b"SELECT '\x81'") == "22P05"
    sql.query("SET client_encoding = 'UTF8'")
    assert in_bytes(sql, b"SELECT '\xff'") == "22021"
    with pytest.raises(RuntimeError, match="^22021"):
        sql.prepared("SELECT $1::text", [b"\xff"])
    assert sql.query("SELECT t FROM encoded WHERE _id = 1") == [[text]]
