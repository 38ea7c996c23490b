"""FOR UPDATE and its kin between two sessions: what is held, who waits, who fails and who does without."""

import concurrent.futures
import itertools
import threading

import pytest

from harness import eventually
from pgclient import Sql, port_of


@pytest.fixture
def shop(start):
    server = start(None, "--sql-port", 0)
    port = port_of(server)
    sql = Sql(port)
    sql.query("CREATE TABLE items (id int PRIMARY KEY, v int)")
    sql.query("INSERT INTO items SELECT i, 0 FROM generate_series(1, 5) i")
    return server, port


def refused(state, act, *args):
    with pytest.raises(RuntimeError, match=f"^{state} ") as caught:
        act(*args)
    return str(caught.value)


def waits(pool, act, *args):
    """Begins what is to wait for others."""
    done = pool.submit(act, *args)
    with pytest.raises(concurrent.futures.TimeoutError):
        done.result(0.3)
    return done


def test_rows_that_are_held_do_not_change(shop):
    server, port = shop
    one, two, three = Sql(port), Sql(port), Sql(port)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        one.query("BEGIN")
        assert one.query("SELECT v FROM items WHERE id = 1 FOR UPDATE") == [[b"0"]]
        writes = waits(pool, two.query, "UPDATE items SET v = v + 1 WHERE id = 1")
        commands = waits(pool, server.client().shop.items.update_one, {"_id": 1}, {"$inc": {"v": 1}})
        deletes = waits(pool, three.query, "SELECT v FROM items WHERE id = 1 FOR SHARE")
        # Other rows are free, and everybody reads.
        assert Sql(port).query("UPDATE items SET v = 5 WHERE id = 2 RETURNING v") == [[b"5"]]
        assert Sql(port).query("SELECT v FROM items WHERE id = 1") == [[b"0"]]
        one.query("UPDATE items SET v = v + 10 WHERE id = 1")
        one.query("COMMIT")
        writes.result(30)
        commands.result(30)
        # Who waited outside of transactions sees what was written.
        assert int(deletes.result(30)[0][0]) >= 10
    assert Sql(port).query("SELECT v FROM items WHERE id = 1") == [[b"12"]]


def test_nowait_and_skip_locked(shop):
    _, port = shop
    one, two = Sql(port), Sql(port)
    one.query("BEGIN")
    one.query("SELECT id FROM items WHERE id IN (1, 3) FOR UPDATE")
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE", None]:
        if begin:
            two.query(begin)
        assert two.query("SELECT id FROM items ORDER BY id FOR UPDATE SKIP LOCKED") == [[b"2"], [b"4"], [b"5"]]
        assert two.query("SELECT id FROM items ORDER BY id LIMIT 1 FOR SHARE SKIP LOCKED") == [[b"2"]]
        assert two.query("SELECT id FROM items WHERE id = 2 FOR UPDATE NOWAIT") == [[b"2"]]
        said = refused("55P03", two.query, "SELECT id FROM items ORDER BY id FOR UPDATE NOWAIT")
        assert 'could not obtain lock on row in relation "items"' in said
        if begin:
            two.query("ROLLBACK")
    # No more is held than the rows that come out, whatever had to be sorted for them.
    one.query("ROLLBACK")
    one.query("BEGIN")
    assert one.query("SELECT id FROM items ORDER BY v, id LIMIT 2 FOR UPDATE") == [[b"1"], [b"2"]]
    assert two.query("SELECT id FROM items ORDER BY v, id DESC LIMIT 9 FOR UPDATE SKIP LOCKED") == [[b"5"], [b"4"], [b"3"]]
    # What was held is free again, and what an aborted transaction held as well.
    one.query("ROLLBACK")
    assert len(two.query("SELECT id FROM items FOR UPDATE NOWAIT")) == 5


def test_the_row_is_read_again_after_waiting(shop):
    _, port = shop
    one, two = Sql(port), Sql(port)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        one.query("BEGIN")
        one.query("UPDATE items SET v = 1 WHERE id = 1")
        two.query("BEGIN")
        found = waits(pool, two.query, "SELECT id, v FROM items WHERE v = 0 ORDER BY id FOR UPDATE")
        one.query("COMMIT")
        assert found.result(30) == [[b"%d" % n, b"0"] for n in range(2, 6)]
        refused("55P03", one.query, "SELECT id FROM items WHERE id = 2 FOR UPDATE NOWAIT")
        two.query("COMMIT")
        # A snapshot cannot see what was changed meanwhile.
        two.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
        two.query("SELECT 1 FROM items")
        one.query("UPDATE items SET v = 2 WHERE id = 1")
        refused("40001", two.query, "SELECT id FROM items WHERE id = 1 FOR UPDATE")
        two.query("ROLLBACK")


def test_those_who_wait_for_each_other_are_told(shop):
    _, port = shop
    one, two = Sql(port), Sql(port)
    one.query("BEGIN")
    two.query("BEGIN")
    one.query("SELECT 1 FROM items WHERE id = 1 FOR UPDATE")
    two.query("SELECT 1 FROM items WHERE id = 2 FOR UPDATE")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = waits(pool, one.query, "SELECT 1 FROM items WHERE id = 2 FOR UPDATE")
        refused("40P01", two.query, "SELECT 1 FROM items WHERE id = 1 FOR UPDATE")
        two.query("ROLLBACK")
        assert waiting.result(30) == [[b"1"]]


def test_who_waits_can_be_stopped(shop):
    _, port = shop
    one, two = Sql(port), Sql(port)
    one.query("BEGIN")
    one.query("SELECT 1 FROM items WHERE id = 1 FOR UPDATE")
    two.query("SET statement_timeout = 200")
    refused("57014", two.query, "SELECT 1 FROM items WHERE id = 1 FOR UPDATE")
    # A connection that goes lets go.
    one.socket.close()
    eventually(lambda: Sql(port).query("SELECT 1 FROM items WHERE id = 1 FOR UPDATE SKIP LOCKED") == [[b"1"]])


JOBS = [
    "WITH next AS (SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE jobs SET done = true, by = {me} FROM next WHERE jobs.id = next.id RETURNING jobs.id",
    "UPDATE jobs SET done = true, by = {me} WHERE id = (SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
    None,
]


@pytest.mark.parametrize("take", JOBS)
def test_a_queue_of_jobs(shop, take):
    """Each job is done once, whoever takes it, and nobody waits for who is at work."""
    _, port = shop
    root = Sql(port)
    root.query("CREATE TABLE jobs (id int PRIMARY KEY, done boolean NOT NULL DEFAULT false, by int)")
    root.query("INSERT INTO jobs (id) SELECT * FROM generate_series(1, 60)")
    slow = Sql(port)
    slow.query("BEGIN")
    assert slow.query("SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED") == [[b"1"]]
    begun = threading.Barrier(4)

    def work(me):
        sql, mine = Sql(port), []
        begun.wait()
        while True:
            sql.query("BEGIN")
            if take:
                got = sql.query(take.format(me=me))
            else:
                got = sql.query("SELECT id FROM jobs WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
                for row in got:
                    sql.query(f"UPDATE jobs SET done = true, by = {me} WHERE id = {row[0].decode()}")
            sql.query("COMMIT")
            if not got:
                return mine
            mine += [int(row[0]) for row in got]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [job for jobs in pool.map(work, range(4)) for job in jobs]
    assert sorted(done) == list(range(2, 61))
    assert root.query("SELECT count(*), count(by) FROM jobs WHERE done") == [[b"59", b"59"]]
    slow.query("COMMIT")
    assert work_alone(port) == [1]


def work_alone(port):
    rows = Sql(port).query("UPDATE jobs SET done = true WHERE id = (SELECT id FROM jobs WHERE NOT done LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id")
    return [int(row[0]) for row in rows]


def test_holding_takes_the_right_to_update(start):
    server = start(None, "--sql-port", 0, "--auth")
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    root = server.client(username="root", password="secret", authSource="admin")
    root.shop.items.insert_one({"_id": 1})
    root.shop.command("createUser", "reader", pwd="x", roles=["read"])
    root.shop.command("createUser", "writer", pwd="x", roles=["readWrite"])
    port = port_of(server)
    assert Sql(port, user="writer", password="x").query("SELECT _id FROM items FOR UPDATE") == [[b"1"]]
    reader = Sql(port, user="reader", password="x")
    for query in ["SELECT _id FROM items FOR UPDATE", "SELECT _id FROM items WHERE false FOR KEY SHARE", "SELECT 1 WHERE EXISTS (SELECT FROM items FOR SHARE)"]:
        refused("42501", reader.query, query)


def test_lock_timeout(shop):
    """Nobody waits for others for longer, within transactions and outside, for rows, keys and advisory locks; what waits for nothing goes on."""
    _, port = shop
    one, two = Sql(port), Sql(port)
    two.query("CREATE TABLE places (id int PRIMARY KEY, pos int UNIQUE DEFERRABLE)")
    one.query("BEGIN")
    one.query("UPDATE items SET v = 1 WHERE id = 1")
    one.query("INSERT INTO places VALUES (1, 7)")
    one.query("SELECT pg_advisory_xact_lock(5)")
    two.query("SET lock_timeout = '200ms'")
    statements = [
        "UPDATE items SET v = 2 WHERE id = 1",
        "SELECT v FROM items WHERE id = 1 FOR UPDATE",
        "INSERT INTO places VALUES (2, 7)",
        "SELECT pg_advisory_lock(5)",
    ]
    for statement in statements:
        assert "lock timeout" in refused("55P03", two.query, statement)
        two.query("BEGIN")
        refused("55P03", two.query, statement)
        two.query("ROLLBACK")
    two.query("UPDATE items SET v = 2 WHERE id = 2")
    two.query("SET lock_timeout = 0")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        late = waits(pool, two.query, "INSERT INTO places VALUES (2, 7)")
        one.query("COMMIT")
        assert "places_pos_key" in refused("23505", late.result, 30)


def test_a_key_may_be_given_up(shop):
    """Who wants a key that another transaction has deleted waits: whether it is free is known when that one has ended."""
    _, port = shop
    one, two = Sql(port), Sql(port)
    one.query("CREATE TABLE codes (id int PRIMARY KEY, code text UNIQUE); INSERT INTO codes SELECT i, 'c' || i FROM generate_series(1, 9) i")
    one.query(
        """CREATE FUNCTION add(key int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO codes VALUES (key, 'c' || key); RETURN 'added'; EXCEPTION WHEN unique_violation THEN RETURN 'there'; END $$"""
    )
    gone = ["DELETE FROM codes WHERE id = {}", "UPDATE codes SET id = id + 100, code = code || '!' WHERE id = {}"]
    wanted = ["INSERT INTO codes VALUES ({0}, 'c{0}')", "INSERT INTO codes VALUES ({0} + 1000, 'c{0}')", "UPDATE codes SET id = {0} WHERE id = 9"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for n, (give, want, block) in enumerate(itertools.product(gone, wanted, [False, True])):
            key = n % 8 + 1
            for end in ["ROLLBACK", "COMMIT"]:
                one.query("BEGIN")
                one.query(give.format(key))
                if block:
                    two.query("BEGIN")
                done = waits(pool, two.query, want.format(key))
                one.query(end)
                if end == "COMMIT":
                    done.result(30)
                    two.query("COMMIT") if block else None
                else:
                    refused("23505", done.result, 30)
                    two.query("ROLLBACK") if block else None
            two.query("DELETE FROM codes; INSERT INTO codes SELECT i, 'c' || i FROM generate_series(1, 9) i")
        for want, free, taken in [
            ("INSERT INTO codes VALUES ({0}, 'c{0}') ON CONFLICT DO NOTHING RETURNING id", [[b"1"]], []),
            ("INSERT INTO codes VALUES ({0}, 'c{0}') ON CONFLICT (id) DO UPDATE SET code = 'met' RETURNING code", [[b"c1"]], [[b"met"]]),
            ("SELECT add({0})", [[b"added"]], [[b"there"]]),
        ]:
            for end, expected in [("ROLLBACK", taken), ("COMMIT", free)]:
                one.query("BEGIN; DELETE FROM codes WHERE id = 1")
                done = waits(pool, two.query, want.format(1))
                one.query(end)
                assert done.result(30) == expected, (want, end)
                two.query("UPDATE codes SET code = 'c1' WHERE id = 1")
        # One that waits for this one is told of it.
        one.query("BEGIN; DELETE FROM codes WHERE id = 1")
        two.query("BEGIN; DELETE FROM codes WHERE id = 2")
        done = waits(pool, one.query, "INSERT INTO codes VALUES (2, 'c2')")
        refused("40P01", two.query, "INSERT INTO codes VALUES (1, 'c1')")
        two.query("ROLLBACK")
        refused("23505", done.result, 30)
