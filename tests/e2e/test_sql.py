"""SQL over PostgreSQL's wire protocol: psql, if it is there, and the messages themselves."""

import concurrent.futures
import contextlib
import shutil
import socket
import struct
import subprocess
import threading
import time

import harness
import psycopg
import pytest

from pgclient import Sql, port_of


@pytest.fixture
def shop(start):
    server = start(None, "--sql-port", 0)
    port = port_of(server)
    server.client()["shop"]["items"].insert_many({"_id": n, "name": f"n{n}", "price": n * 1.5} for n in range(1000))
    return port


def test_simple_and_extended_protocol(shop):
    sql = Sql(shop)
    assert sql.query("SELECT name FROM items WHERE _id = 7") == [[b"n7"]]
    assert sql.prepared("SELECT _id, price FROM items WHERE _id = $1", [b"3"], binary=1) == [
        [struct.pack("!i", 3), struct.pack("!d", 4.5)]
    ]
    assert len(sql.query("SELECT a._id FROM items a, items b WHERE b._id < 100")) == 100_000
    with pytest.raises(RuntimeError, match="42703"):
        sql.prepared("SELECT nothing FROM items", [])
    assert sql.query("SELECT 1; SELECT 2") == [[b"1"], [b"2"]]


def test_cancel(shop):
    sql = Sql(shop)
    done = []

    def run():
        with pytest.raises(RuntimeError, match="57014"):
            sql.query("SELECT count(*) FROM items a, items b, items c")
        done.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # A cancel that comes before the statement has begun finds nothing to end.
    for _ in range(600):
        with socket.create_connection(("127.0.0.1", shop), timeout=60) as other:
            other.sendall(struct.pack("!iiii", 16, 80877102, *sql.key))
        thread.join(0.1)
        if done:
            break
    assert done
    assert sql.query("SELECT 1") == [[b"1"]]


def test_ended_by_another(shop):
    busy, idle, other = Sql(shop), Sql(shop), Sql(shop)
    told = []

    def run():
        with pytest.raises(RuntimeError) as ended:
            busy.query("SELECT count(*) FROM items a, items b, items c")
        told.append(str(ended.value))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    for ends in [idle, busy]:
        assert other.query(f"SELECT pg_terminate_backend({ends.key[0]})") == [[b"t"]]
    with pytest.raises(RuntimeError, match="57P01"):
        idle.query("SELECT 1")
    thread.join(60)
    assert "57P01" in told[0]
    for gone in [idle, busy]:
        for _ in range(100):
            if other.query(f"SELECT pg_terminate_backend({gone.key[0]})") == [[b"f"]]:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the connection is still there")
    with pytest.raises(RuntimeError, match="57P01"):
        other.query("SELECT pg_terminate_backend(pg_backend_pid())")


def test_clients_that_send_nonsense(shop):
    for bytes_sent in [b"\0\0\0\x04", b"GET / HTTP/1.1\r\n\r\n", struct.pack("!ii", 8, 1), b"\x7f\xff\xff\xff" + b"x" * 100]:
        with socket.create_connection(("127.0.0.1", shop), timeout=60) as other:
            other.sendall(bytes_sent)
            other.shutdown(socket.SHUT_WR)
            # Whoever is not heard to the end sees a reset instead of an end.
            with contextlib.suppress(ConnectionResetError):
                while other.recv(4096):
                    pass
    for tag, body in [(b"P", b"x"), (b"?", b""), (b"B", b"\0\0\0\1")]:
        sql = Sql(shop)
        sql.send(tag, body)
        assert sql.read(1) == b"E"
    assert Sql(shop).query("SELECT count(*) FROM items") == [[b"1000"]]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not here")
def test_psql(shop):
    def psql(*commands):
        args = ["psql", "-XAt", "-h", "127.0.0.1", "-p", str(shop), "-U", "tester", "shop"]
        for command in commands:
            args += ["-c", command]
        done = subprocess.run(args, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert psql("SELECT count(*), max(price) FROM items") == "1000|1498.5\n"
    assert "items|table|" in psql("\\dt")
    assert "public" in psql("\\dn")
    assert "shop" in psql("\\l")
    assert "tester" in psql("\\du")
    assert "price|double precision" in psql("\\d items")
    assert "items_pkey|index|tester|items" in psql("\\di")
    assert "pg_catalog|upper|text|text|func" in psql("\\dfS upper")
    psql("CREATE MATERIALIZED VIEW dear AS SELECT _id, price FROM items WHERE price > 1400", "CREATE UNIQUE INDEX ON dear (_id)")
    assert "dear|materialized view|tester" in psql("\\dm")
    assert "price|double precision" in psql("\\d+ dear")
    assert "price > 1400" in psql("SELECT pg_get_viewdef('dear'::regclass)")
    psql("DROP MATERIALIZED VIEW dear")
    # None of the others may fail; what each prints depends on psql's version.
    others = (
        "d d+ dt+ di+ dv dv+ dm ds dE dn+ l+ df df+ du+ dg da dA dA+ dAc dAf dAp db db+ dc dC dconfig dd dD dD+ ddp des det deu dew "
        "dF dFd dFp dFt dL do dO dO+ dp z dP drds dRp dRs dT dT+ dx dX dy dS dtS"
    )
    for command in [*others.split(), "d+ items", "d items_pkey", "d pg_class", "dTS int4", "doS +", "daS sum", "dconfig *"]:
        psql("\\" + command)



def test_statements_are_seen_like_commands(start):
    """The profiler, currentOp, killOp, serverStatus and the limits of traffic see statements of SQL."""
    server = start(None, "--sql-port", 0)
    client = server.client()
    client.shop.items.insert_many({"_id": n, "g": n % 3} for n in range(100))
    client.shop.command("profile", 2)
    sql = Sql(port_of(server))
    before = client.admin.command("serverStatus")
    assert sql.query("SELECT _id FROM items WHERE _id >= 90 AND g = 0") == [[b"90"], [b"93"], [b"96"], [b"99"]]
    sql.query("UPDATE items SET g = 7 WHERE _id < 5")
    records = {record["command"]["sql"].split()[0]: record for record in client.shop["system.profile"].find({"command.sql": {"$exists": True}})}
    read, written = records["SELECT"], records["UPDATE"]
    assert (read["ns"], read["protocol"], read["planSummary"]) == ("shop.$cmd.sql", "postgresql", "IXSCAN { _id: 1 }")
    assert (read["keysExamined"], read["docsExamined"], read["nreturned"]) == (10, 10, 4)
    assert (written["op"], written["nModified"], written["docsExamined"]) == ("update", 5, 5)
    after = client.admin.command("serverStatus")
    assert after["opcounters"]["update"] == before["opcounters"]["update"] + 1
    assert after["opLatencies"]["writes"]["ops"] == before["opLatencies"]["writes"]["ops"] + 1
    list(client.shop.aggregate([{"$sql": "SELECT count(*) FROM items WHERE g = 1"}]))
    assert client.shop["system.profile"].find_one({"command.pipeline.$sql": {"$exists": True}})["docsExamined"] == 100

    failed = []

    def long():
        try:
            Sql(port_of(server)).query("SELECT count(*) FROM items a, items b, items c, items d, items e")
        except RuntimeError as failure:
            failed.append(failure)

    thread = threading.Thread(target=long, daemon=True)
    thread.start()
    running = {"command.sql": {"$regex": "items e"}}
    end = time.monotonic() + 60
    while not (found := client.admin.command({"currentOp": 1, **running})["inprog"]) and time.monotonic() < end:
        time.sleep(0.05)
    client.admin.command("killOp", op=found[0]["opid"])
    thread.join(60)
    assert "57014" in str(failed[0])


def test_advisory_locks(shop):
    """Held by a session or a transaction, waited for, given up when the connection ends; circles are told."""
    one, two = Sql(shop), Sql(shop)
    answer = {True: [[b"t"]], False: [[b"f"]]}
    assert one.query("SELECT pg_advisory_lock(7)") == [[b""]]
    assert two.query("SELECT pg_try_advisory_lock(7)") == answer[False]
    assert two.query("SELECT pg_try_advisory_lock(0, 7)") == answer[True]
    done = []
    waits = threading.Thread(target=lambda: done.append(two.query("SELECT pg_advisory_lock(7), 1")), daemon=True)
    waits.start()
    time.sleep(0.2)
    assert not done
    with pytest.raises(RuntimeError, match="40P01"):
        one.query("SELECT pg_advisory_lock(0, 7)")
    assert one.query("SELECT pg_advisory_unlock(7)") == answer[True]
    waits.join(60)
    assert done == [[[b"", b"1"]]]
    # A transaction's ends with it, whether it commits or not; without a block with the statement.
    one.query("BEGIN")
    one.query("SELECT pg_advisory_xact_lock_shared(9)")
    assert two.query("SELECT pg_try_advisory_lock(9), pg_try_advisory_lock_shared(9)") == [[b"f", b"t"]]
    one.query("ROLLBACK")
    assert two.query("SELECT pg_try_advisory_lock(9)") == answer[True]
    one.query("SELECT pg_advisory_xact_lock(11)")
    assert two.query("SELECT pg_try_advisory_lock(11)") == answer[True]
    one.query("SET statement_timeout = 200")
    with pytest.raises(RuntimeError, match="57014"):
        one.query("SELECT pg_advisory_lock(7)")
    two.socket.close()
    one.query("SET statement_timeout = 0")
    assert one.query("SELECT pg_advisory_lock(7), pg_advisory_lock(9)") == [[b"", b""]]


def copied(sql, statement, *pieces, end=b"c"):
    """A COPY FROM STDIN; what came of it."""
    sql.send(b"Q", statement.encode() + b"\0")
    tag, _ = messages = sql.message()
    if tag != b"G":
        sql.rows([messages, *sql.until_ready()])
        raise AssertionError(messages)
    for piece in pieces:
        sql.send(b"d", piece)
    sql.send(end[:1], end[1:])
    messages = sql.until_ready()
    sql.rows(messages)
    return next(body.rstrip(b"\0") for tag, body in messages if tag == b"C")


def copied_out(sql, statement):
    sql.send(b"Q", statement.encode() + b"\0")
    messages = sql.until_ready()
    sql.rows(messages)
    return b"".join(body for tag, body in messages if tag == b"d")


def test_copy(shop):
    """Files of each form come in and go out the same; what fails leaves nothing, and the connection goes on."""
    sql = Sql(shop)
    sql.query("CREATE TABLE t (id int PRIMARY KEY, name text, n numeric, at timestamptz, tags text[])")
    rows = b"1\ta\\tb\t1.50\t2026-11-23 01:02:03+00\t{x,\"y z\"}\n2\t\\N\t\\N\t\\N\t\\N\n3\t\t-7\t\\N\t{}\n"
    assert copied(sql, "COPY t FROM STDIN", rows[:5], rows[5:40], rows[40:]) == b"COPY 3"
    assert copied_out(sql, "COPY t TO STDOUT") == rows
    assert sql.query("SELECT n, tags[2] FROM t WHERE id = 1") == [[b"1.50", b"y z"]]
    for options in ("(FORMAT csv, HEADER, FORCE_QUOTE (name))", "(FORMAT binary)", "CSV HEADER NULL 'none'", "(DELIMITER '|', NULL '')"):
        file = copied_out(sql, f"COPY t TO STDOUT {options}")
        sql.query("DELETE FROM t")
        assert copied(sql, f"COPY t FROM STDIN {options.replace(', FORCE_QUOTE (name)', '')}", file) == b"COPY 3", options
        if "|" not in options:
            assert copied_out(sql, "COPY t TO STDOUT") == rows, options
    # An empty text is null in the last of them.
    assert copied_out(sql, "COPY (SELECT name FROM t ORDER BY id) TO STDOUT (FORMAT csv, HEADER)") == b"name\na\tb\n\n\n"
    many = b"".join(b"%d,n%d\n" % (n, n) for n in range(100, 5100))
    assert copied(sql, "COPY t (id, name) FROM STDIN CSV", *[many[at : at + 1000] for at in range(0, len(many), 1000)]) == b"COPY 5000"
    for statement, file, end, state in (
        ("COPY t (id) FROM STDIN", many.replace(b",", b"\t"), b"c", "22P04"),
        ("COPY t (id, name) FROM STDIN CSV", b"7000,x\n7001,y\n7000,z\n", b"c", "23505"),
        ("COPY t (id, name) FROM STDIN CSV", b"".join(b"%d,n\n" % n for n in range(7000, 12000)) + b"x,y\n", b"c", "22P02"),
        ("COPY t (id) FROM STDIN", b"7000\n", b"fno more\0", "57014"),
        ("COPY t (nothing) FROM STDIN", b"", b"c", "42703"),
        ("COPY nowhere FROM STDIN", b"", b"c", "42P01"),
        ("COPY t FROM '/etc/passwd'", b"", b"c", "42501"),
        ("COPY t TO PROGRAM 'id'", b"", b"c", "42501"),
        ("COPY t FROM STDIN (QUOTE 'x')", b"", b"c", "0A000"),
    ):
        with pytest.raises(RuntimeError, match=state):
            copied(sql, statement, file, end=end)
        assert sql.query("SELECT count(*) FROM t") == [[b"5003"]], statement
    # In a block it is part of it.
    sql.query("BEGIN")
    assert copied(sql, "COPY t (id) FROM STDIN", b"9000\n") == b"COPY 1"
    sql.query("ROLLBACK")
    assert sql.query("SELECT count(*) FROM t") == [[b"5003"]]


def test_copy_with_conditions_and_names(shop):
    """Rows come of which a condition is true, a first line has the names of the columns, and all values are quoted, as in PostgreSQL 15."""
    sql = Sql(shop)
    sql.query('CREATE TABLE t (id int PRIMARY KEY, name text, "N n" numeric)')
    assert copied(sql, "COPY t FROM STDIN WHERE id > 1 AND t.name <> 'it''s'", b"1\ta\t1\n2\tb\t2\n3\tit's\t3\n4\t\\N\t4\n") == b"COPY 1"
    header = b'id,name,"N n"\n'
    assert copied(sql, "COPY t FROM STDIN (FORMAT csv, HEADER match) WHERE \"N n\" < 10", header + b"5,e,5\n6,f,60\n") == b"COPY 1"
    assert copied(sql, "COPY t (name, id) FROM STDIN WITH (HEADER MATCH)", b"name\tid\ng\t7\n") == b"COPY 1"
    assert copied(sql, "COPY t FROM STDIN WITH CSV HEADER WHERE id = 8", b"x,y,z\n8,h,8\n9,i,9\n") == b"COPY 1"
    assert copied(sql, "COPY t FROM STDIN (FORMAT csv, HEADER on)", b"x,y,z\n") == b"COPY 0"
    assert copied_out(sql, "COPY t TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *)") == (
        b'id,name,N n\n"2","b","2"\n"5","e","5"\n"7","g",\n"8","h","8"\n'
    )
    for statement, file, state in (
        ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"id,Name,N n\n", "22P04"),
        ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"id,name\n", "22P04"),
        ("COPY t FROM STDIN (HEADER match)", b"id\t\\N\tN n\n", "22P04"),
        ("COPY t FROM STDIN WHERE id IN (SELECT 1)", b"", "0A000"),
        ("COPY t FROM STDIN WHERE count(*) > 1", b"", "42803"),
        ("COPY t FROM STDIN WHERE id", b"", "42804"),
        ("COPY t FROM STDIN WHERE nothing", b"", "42703"),
        ("COPY t TO STDOUT WHERE id = 1", b"", "42601"),
        ("COPY t TO STDOUT (HEADER match)", b"", "0A000"),
    ):
        with pytest.raises(RuntimeError, match=state):
            copied(sql, statement, file)
        assert sql.query("SELECT count(*) FROM t") == [[b"4"]], statement


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not here")
def test_copy_of_psql_and_of_the_shell(shop, tmp_path):
    file = tmp_path / "a file.csv"
    file.write_text("id,name\n1,ann\n2,\"b,ob\"\n")
    sql = Sql(shop)
    sql.query("CREATE TABLE t (id int PRIMARY KEY, name text)")
    psql = ["psql", "-h", "127.0.0.1", "-p", str(shop), "-U", "tester", "-d", "shop", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run([*psql, "-c", f"\\copy t from '{file}' csv header"], capture_output=True, text=True, check=False)
    assert done.stdout == "COPY 2\n", done.stderr
    shell = [str(harness.BIN), "sql", "--uri", f"postgres://127.0.0.1:{shop}/shop"]
    out = tmp_path / "out.csv"
    text = f"\\copy t to '{out}' csv header\ntruncate t;\n\\copy t from '{file}' csv header\n\\copy t from /nowhere\nselect count(*) from t;\n"
    done = subprocess.run([*shell, "--keepGoing"], input=text, capture_output=True, text=True, check=False)
    assert out.read_text() == file.read_text()
    assert "/nowhere" in done.stderr and "     2" in done.stdout, (done.stdout, done.stderr)


def test_statements_up_to_a_sync_are_one_transaction(shop):
    """What stands before a statement that fails is undone, what stands behind it is passed over; then all goes on."""
    sql = Sql(shop)
    sql.query("CREATE TABLE piped (id int PRIMARY KEY)")

    def insert(*ids):
        for n in ids:
            sql.send(b"P", b"\0INSERT INTO piped VALUES (" + str(n).encode() + b")\0" + bytes(2))
            sql.send(b"B", bytes(8))
            sql.send(b"E", bytes(5))
        sql.send(b"S")
        return sql.until_ready()

    with pytest.raises(RuntimeError, match="23505"):
        sql.rows(insert(1, 2, 1, 3))
    assert sql.query("SELECT count(*) FROM piped") == [[b"0"]]
    sql.rows(insert(1, 2, 3))
    assert sql.query("SELECT count(*) FROM piped") == [[b"3"]]
    sql.socket.close()


def test_merges_at_the_same_time_count_each_row(shop):
    """Each of them finds the row of the others, or makes it."""
    sql = Sql(shop)
    sql.query("CREATE TABLE hits (page text PRIMARY KEY, n int)")
    merge = "MERGE INTO hits h USING (VALUES ('a'), ('b')) AS s (page) ON h.page = s.page WHEN MATCHED THEN UPDATE SET n = h.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.page, 1)"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [Sql(shop).query(merge) for _ in range(10)], range(4)))
    assert sql.query("SELECT page, n FROM hits ORDER BY page") == [[b"a", b"40"], [b"b", b"40"]]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not here")
def test_definitions_as_psql_shows_them(shop):
    def psql(*commands):
        args = ["psql", "-XAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(shop), "-U", "tester", "shop"]
        for command in commands:
            args += ["-c", command]
        return subprocess.run(args, capture_output=True, text=True, timeout=60, check=True).stdout

    psql(
        "CREATE SCHEMA app; CREATE TYPE app.level AS ENUM ('low', 'high')",
        "BEGIN; CREATE TABLE app.alarms (id serial PRIMARY KEY, l app.level NOT NULL)",
        "BEGIN; ALTER TABLE app.alarms ADD COLUMN note text DEFAULT 'none'; COMMENT ON COLUMN app.alarms.l IS 'how loud'; COMMIT",
        "COMMENT ON TABLE app.alarms IS 'all of them'",
        "SET search_path TO app; INSERT INTO alarms (l) VALUES ('high'), ('low')",
    )
    assert psql("SELECT id, l, note FROM app.alarms ORDER BY l") == "2|low|none\n1|high|none\n"
    shown = psql("\\d+ app.alarms")
    assert "how loud" in shown and "note|text" in shown
    assert "app|" in psql("\\dn")
    assert "all of them" in psql("\\dt+ app.*")
    shown = psql("\\dT+ app.*")
    assert "level" in shown and "low" in shown and "high" in shown
    assert "alarms_id_seq" in psql("\\ds app.*")


def test_enums_in_prepared_statements(shop):
    sql = Sql(shop)
    sql.query("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    sql.query("CREATE TABLE people (id int PRIMARY KEY, m mood)")
    sql.prepared("INSERT INTO people VALUES ($1, $2)", [b"1", b"happy"])
    assert sql.prepared("SELECT m FROM people WHERE m > $1", [b"sad"], binary=1) == [[b"happy"]]
    sql.query("ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad'")
    sql.prepared("INSERT INTO people VALUES ($1, $2)", [b"2", b"awful"])
    assert sql.prepared("SELECT m FROM people WHERE m < $1", [b"sad"], binary=1) == [[b"awful"]]
    with pytest.raises(RuntimeError, match="22P02"):
        sql.prepared("SELECT m FROM people WHERE m = $1", [b"angry"])


def test_sessions_that_rest_too_long(start):
    server = start(None, "--sql-port", 0)
    for setting, state in [("idle_in_transaction_session_timeout", "25P03"), ("idle_session_timeout", "57P05")]:
        resting = psycopg.connect(host="127.0.0.1", port=port_of(server), user="tester", dbname="shop", autocommit=True)
        resting.execute(f"SET {setting} = '150ms'")
        if setting.startswith("idle_in"):
            # Outside of a transaction it may rest.
            time.sleep(0.4)
            resting.execute("CREATE TABLE t (a int)")
            resting.execute("BEGIN; INSERT INTO t VALUES (1)")
        time.sleep(0.6)
        with pytest.raises(psycopg.Error) as ended:
            resting.execute("SELECT 1")
        assert ended.value.sqlstate == state
    with psycopg.connect(host="127.0.0.1", port=port_of(server), user="tester", dbname="shop") as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
        other.execute("SET synchronous_commit = off")
        other.execute("INSERT INTO t VALUES (2)")
    with psycopg.connect(host="127.0.0.1", port=port_of(server), user="tester", dbname="shop") as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_explain_has_the_parameters_of_its_statement(start):
    server = start(None, "--sql-port", 0)
    with psycopg.connect(host="127.0.0.1", port=port_of(server), user="tester", dbname="shop", autocommit=True) as client:
        client.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        for statement, params in [("SELECT * FROM t WHERE id = %s", [1]), ("INSERT INTO t VALUES (%s, %s)", [1, "a"])]:
            assert client.execute(f"EXPLAIN {statement}", params, prepare=True).fetchall()


def test_fetch_has_the_columns_of_the_cursor_that_is_there_when_it_is_bound(shop):
    sql = Sql(shop)
    sql.send(b"P", b"fetch\0" + b"FETCH ALL IN some\0" + struct.pack("!h", 0))
    sql.send(b"S")
    sql.rows(sql.until_ready())
    for query, names in [("SELECT 1 AS a, 2 AS b", [b"a", b"b"]), ("SELECT 'x' AS c", [b"c"])]:
        sql.query(f"BEGIN; DECLARE some CURSOR FOR {query}")
        sql.send(b"B", b"\0fetch\0" + struct.pack("!hhh", 0, 0, 0))
        sql.send(b"D", b"P\0")
        sql.send(b"E", b"\0" + struct.pack("!i", 0))
        sql.send(b"S")
        messages = sql.until_ready()
        described = [body for tag, body in messages if tag == b"T"]
        assert len(described) == 1
        assert [name for name in names if name + b"\0" in described[0]] == names
        assert len(sql.rows(messages)[0]) == len(names)
        sql.query("ROLLBACK")


def test_an_error_is_told_before_a_sync(shop):
    """Who sends the rest of its messages once it knows of the error would wait for ever."""
    sql = Sql(shop)
    sql.send(b"P", b"\0SELECT nothing FROM items\0" + bytes(2))
    tag, body = sql.message()
    assert tag == b"E" and b"C42703\0" in body
    sql.send(b"E", bytes(5))
    sql.send(b"S")
    assert [tag for tag, _ in sql.until_ready()] == [b"Z"]


def portal(sql, text, name=b""):
    sql.send(b"P", b"\0" + text.encode() + b"\0" + bytes(2))
    sql.send(b"B", name + b"\0\0" + bytes(6))


def execute(sql, name=b"", rows=0):
    sql.send(b"E", name + b"\0" + struct.pack("!i", rows))
    sql.send(b"S")
    return sql.until_ready()


def test_portals_in_parts_call_functions(shop):
    sql = Sql(shop)
    sql.query(
        "CREATE FUNCTION counts(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'n is %', n; RETURN n; END $$"
    )
    for begin in ["SELECT 1", "BEGIN"]:
        sql.query(begin)
        portal(sql, "SELECT counts(n) FROM generate_series(1, 3) n")
        messages = execute(sql, rows=2)
        assert sql.rows(messages) == [[b"1"], [b"2"]]
        assert [body.count(b"Mn is") for tag, body in messages if tag == b"N"] == [1, 1, 1]
    sql.query("ROLLBACK")


def test_a_portal_that_failed_is_there_until_its_transaction_ends(shop):
    sql = Sql(shop)
    sql.query("BEGIN")
    portal(sql, "SELECT 1 / (_id - 5) FROM items", b"p")
    for code in ["22012", "25P02"]:
        with pytest.raises(RuntimeError, match=code):
            sql.rows(execute(sql, b"p", 3))
    sql.query("ROLLBACK")
    with pytest.raises(RuntimeError, match="34000"):
        sql.rows(execute(sql, b"p", 3))


def test_notices_tell_where_they_were_raised(shop):
    sql = Sql(shop)
    sql.query(
        "CREATE FUNCTION says() RETURNS void LANGUAGE plpgsql AS $$ BEGIN\n DROP TABLE IF EXISTS never; RAISE NOTICE 'here'; END $$"
    )
    sql.send(b"Q", b"DO $$ BEGIN\n PERFORM says();\n IF true THEN\n  RAISE WARNING 'there'; END IF; END $$\0")
    notices = [body for tag, body in sql.until_ready() if tag == b"N"]
    outer = b'SQL statement "SELECT says()"\nPL/pgSQL function inline_code_block line 2 at PERFORM'
    dropped = b'SQL statement "DROP TABLE IF EXISTS never"\nPL/pgSQL function says() line 2 at SQL statement'
    contexts = [
        dropped + b"\n" + outer,
        b"PL/pgSQL function says() line 2 at RAISE\n" + outer,
        b"PL/pgSQL function inline_code_block line 4 at RAISE",
    ]
    assert [next(f[1:] for f in body.split(b"\0") if f[:1] == b"W") for body in notices] == contexts


def test_a_type_that_was_altered_is_the_same_type_to_prepared_statements(shop):
    """It has the same OID; drivers find out by its values."""
    sql = Sql(shop)
    sql.query("CREATE TYPE pair AS (x int, y int)")
    sql.query("CREATE TABLE pairs (p pair)")
    sql.query("INSERT INTO pairs VALUES ((2, 3))")
    sql.send(b"P", b"s\0SELECT * FROM pairs\0" + bytes(2))
    sql.send(b"S")
    sql.rows(sql.until_ready())
    for given in [b"(2,3)", b"(2,3,)"]:
        for rows in [0, 5]:
            sql.send(b"B", b"\0s\0" + bytes(6))
            assert sql.rows(execute(sql, rows=rows)) == [[given]]
        if given == b"(2,3)":
            sql.query("ALTER TYPE pair ADD ATTRIBUTE z text")


def test_no_text_has_a_character_of_zero(shop):
    sql = Sql(shop)
    for value in [b"a\0b", b"\xff", b"\xc3("]:
        with pytest.raises(RuntimeError, match="22021 invalid byte sequence for encoding \"UTF8\": 0x"):
            sql.prepared("SELECT $1::text", [value])
    assert sql.prepared("SELECT $1::text", ["é".encode()]) == [["é".encode()]]
    # A "char" without a character is that byte in binary.
    sql.send(b"P", b"\0SELECT $1::\"char\", $1::text = ''\0" + bytes(2))
    sql.send(b"B", b"\0\0" + struct.pack("!hhhi", 1, 1, 1, 1) + b"\0" + struct.pack("!hh", 1, 1))
    assert sql.rows(execute(sql)) == [[b"\0", b"\1"]]


def test_tables_of_queries_with_parameters(shop):
    sql = Sql(shop)
    assert sql.prepared("CREATE TABLE dear AS SELECT _id, $2 AS why FROM items WHERE price > $1", [b"1497", b"x"]) == []
    assert sql.query("SELECT * FROM dear") == [[b"999", b"x"]]


def test_what_is_refused_for_its_columns_writes_nothing(shop):
    """A prepared statement whose columns are others by now is not done, and then told to have failed."""
    sql = Sql(shop)
    sql.query("CREATE TABLE noted (a int)")
    for text in ["INSERT INTO noted VALUES (1) RETURNING *", "WITH w AS (INSERT INTO noted VALUES (1) RETURNING *) SELECT * FROM w"]:
        sql.query("DELETE FROM noted")
        sql.send(b"P", b"n\0" + text.encode() + b"\0" + bytes(2))
        sql.send(b"S")
        sql.rows(sql.until_ready())
        sql.query(f"ALTER TABLE noted ADD COLUMN c{len(text)} text")
        sql.send(b"B", b"\0n\0" + bytes(6))
        with pytest.raises(RuntimeError, match="0A000 cached plan must not change result type"):
            sql.rows(execute(sql))
        assert sql.query("SELECT count(*) FROM noted") == [[b"0"]]
        sql.query("DEALLOCATE n")


def test_a_portal_is_suspended_behind_as_many_rows_as_were_wanted(shop):
    """That these were all is told to who asks for more."""
    sql = Sql(shop)
    sql.query("BEGIN")
    portal(sql, "SELECT _id FROM items WHERE _id < 4 ORDER BY 1", b"p")
    answers = [[(tag, body) for tag, body in execute(sql, b"p", 2) if tag in (b"s", b"C")] for _ in range(3)]
    assert answers == [[(b"s", b"")], [(b"s", b"")], [(b"C", b"SELECT 0\0")]]
    portal(sql, "SELECT 1", b"q")
    assert [body for tag, body in execute(sql, b"q", 2) if tag == b"C"] == [b"SELECT 1\0"]
    sql.query("ROLLBACK")


def test_errors_name_the_routines_that_drivers_look_for(shop):
    sql = Sql(shop)
    sql.query("CREATE TABLE typed (a text[])")
    for text, state, routine in [
        ("INSERT INTO typed VALUES (('a', 'b'))", b"42804", b"transformAssignedExpr"),
        ("EXECUTE nobody", b"26000", b"FetchPreparedStatement"),
    ]:
        sql.send(b"Q", text.encode() + b"\0")
        told = [body for tag, body in sql.until_ready() if tag == b"E"]
        assert len(told) == 1 and b"C" + state + b"\0" in told[0] and b"R" + routine + b"\0" in told[0], told


def test_parameters_are_values_of_domains(shop):
    """Whoever prepares a statement is told of the domain that a parameter is of; what is given is looked at as its values are."""
    with psycopg.connect(host="127.0.0.1", port=shop, user="tester", dbname="shop", autocommit=True) as client:
        client.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN short AS varchar(3)")
        client.execute("CREATE TABLE of_domains (a positive, b short, c positive[], d int)")
        names = dict(client.execute("SELECT oid::int8, typname FROM pg_type").fetchall())
        positive = next(oid for oid, name in names.items() if name == "positive")
        protocol = client.pgconn
        for text, given, expected in [
            ("SELECT $1::positive + 1", None, ["positive"]),
            ("SELECT $1::positive[]", None, ["_positive"]),
            ("SELECT $1::int::positive", None, ["int4"]),
            ("SELECT $1", [positive], ["positive"]),
            ("INSERT INTO of_domains VALUES ($1, $2, $3, $4)", None, ["positive", "short", "_positive", "int4"]),
            ("INSERT INTO of_domains (a) SELECT $1", None, ["positive"]),
            ("UPDATE of_domains SET a = $1 WHERE a = $2 AND d = $3", None, ["positive", "int4", "int4"]),
            ("INSERT INTO of_domains (d) VALUES ($1::positive)", None, ["positive"]),
            ("INSERT INTO of_domains (b) VALUES ($1::text)", None, ["text"]),
        ]:
            protocol.prepare(b"", text.encode(), given)
            told = protocol.describe_prepared(b"")
            assert [names[told.param_type(at)] for at in range(told.nparams)] == expected, text
        for values, state in [
            ([b"1", b"abc", b"{1}", b"2"], None),
            ([b"-1", b"abc", b"{1}", b"2"], b"23514"),
            ([b"1", b"abcd", b"{1}", b"2"], b"22001"),
            ([b"1", b"abc", b"{-1}", b"2"], b"23514"),
        ]:
            done = protocol.exec_params(b"INSERT INTO of_domains VALUES ($1, $2, $3, $4)", values)
            assert done.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == state, values
