"""Both languages over the same documents at the same time: one transaction, one snapshot, one rule of conflicts."""

import random
import resource
import threading

import harness
import pymongo.errors
import pytest
from pymongo.read_concern import ReadConcern

from pgclient import Sql, port_of

ACCOUNTS, EACH = 20, 100
# What a client of SQL begins its transaction again for.
AGAIN = ("40001", "40P01")


@pytest.fixture
def both(start):
    server = start(None, "--sql-port", 0)
    client = server.client()
    client.shop.accounts.insert_many({"_id": n, "balance": EACH} for n in range(ACCOUNTS))
    return client, port_of(server)


def by_commands(client, dice, counts):
    accounts = client.shop.accounts

    def transfer(session):
        giver, taker = dice.sample(range(ACCOUNTS), 2)
        amount = dice.randrange(1, 20)
        accounts.update_one({"_id": giver}, {"$inc": {"balance": -amount}}, session=session)
        accounts.update_one({"_id": taker}, {"$inc": {"balance": amount}}, session=session)

    with client.start_session() as session:
        session.with_transaction(transfer)
    counts["commands"] += 1


def by_sql(sql, dice, counts):
    giver, taker = dice.sample(range(ACCOUNTS), 2)
    amount = dice.randrange(1, 20)
    try:
        sql.query("BEGIN ISOLATION LEVEL " + dice.choice(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]))
        sql.query(f"UPDATE accounts SET balance = balance - {amount} WHERE _id = {giver}")
        sql.query(f"UPDATE accounts SET balance = balance + {amount} WHERE _id = {taker}")
        sql.query("COMMIT")
        counts["sql"] += 1
    except RuntimeError as failure:
        if not any(code in str(failure) for code in AGAIN):
            raise
        sql.query("ROLLBACK")


def test_sums_are_exact_while_the_other_language_transfers(both):
    client, port = both
    done, failed, counts = threading.Event(), [], {"commands": 0, "sql": 0}

    def go_on(seed, work, first):
        dice = random.Random(seed)
        try:
            while not done.is_set():
                work(first, dice, counts)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test shall tell
            failed.append(failure)

    threads = [threading.Thread(target=go_on, args=(n, by_commands, client), daemon=True) for n in range(2)]
    threads += [threading.Thread(target=go_on, args=(n, by_sql, Sql(port)), daemon=True) for n in range(2, 4)]
    for thread in threads:
        thread.start()
    sql = Sql(port)
    reads = 0
    try:
        # Some transfers of each language are to fall between the sums.
        while not failed and (reads < 200 or min(counts.values()) < 50):
            assert sql.query("SELECT sum(balance) FROM accounts") == [[str(ACCOUNTS * EACH).encode()]]
            assert list(client.shop.accounts.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$balance"}}}])) == [{"_id": None, "sum": ACCOUNTS * EACH}]
            # Two statements of a transaction see the same.
            sql.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
            rows = sql.query("SELECT _id, balance FROM accounts ORDER BY _id")
            assert sql.query("SELECT sum(balance), count(*) FROM accounts") == [[str(ACCOUNTS * EACH).encode(), str(ACCOUNTS).encode()]]
            assert sql.query("SELECT _id, balance FROM accounts ORDER BY _id") == rows
            sql.query("COMMIT")
            reads += 1
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert not failed


@pytest.mark.parametrize("first", ["commands", "sql"])
def test_write_skew_between_languages(both, first):
    """Each sees two on call and takes one of them off: together they would leave nobody."""
    client, port = both
    doctors = client.shop.doctors
    doctors.insert_many([{"_id": name, "on_call": True} for name in ("ada", "bo")])
    sql = Sql(port)
    with client.start_session() as session:
        session.start_transaction(ReadConcern("serializable"))
        sql.query("BEGIN ISOLATION LEVEL SERIALIZABLE")
        assert doctors.count_documents({"on_call": True}, session=session) == 2
        assert sql.query("SELECT count(*) FROM doctors WHERE on_call") == [[b"2"]]
        doctors.update_one({"_id": "ada"}, {"$set": {"on_call": False}}, session=session)
        sql.query("UPDATE doctors SET on_call = false WHERE _id = 'bo'")
        if first == "commands":
            session.commit_transaction()
            with pytest.raises(RuntimeError, match="40001"):
                sql.query("COMMIT")
        else:
            sql.query("COMMIT")
            with pytest.raises(pymongo.errors.OperationFailure) as failure:
                session.commit_transaction()
            assert failure.value.has_error_label("TransientTransactionError")
    assert doctors.count_documents({"on_call": True}) == 1


def test_a_thousand_idle_connections(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    server = start(None, "--sql-port", 0)
    port = port_of(server)
    Sql(port).query("SELECT 1")
    before = harness.rss_bytes(server.pid)
    connections = [Sql(port) for _ in range(1000)]
    for connection in connections:
        assert connection.query("SELECT 1") == [[b"1"]]
    assert harness.rss_bytes(server.pid) - before < 50 << 20


# A row of each statement has a megabyte at a time; all rows of a chunk together would have a thousand.
LARGE = {
    "functions that repeat": "SELECT count(repeat('x', 1000000 + g)) FROM generate_series(1, 1000) g",
    "in a condition": "SELECT count(*) FROM generate_series(1, 1000) g WHERE length(lpad('x', 500000 + g)) > g",
    "in a key": "SELECT count(*) FROM (SELECT g % 2 AS h FROM generate_series(1, 600) g) t GROUP BY length(rpad('x', 1000000 + h))",
    "types that pad": "SELECT count(g::text::char(1000000)) FROM generate_series(1, 1000) g",
    "a large value beside each row": "SELECT count(g || (SELECT repeat('x', 1000000))) FROM generate_series(1, 1000) g",
    "a parameter beside each row": "SELECT count(coalesce(nullif(g, g)::text, s) || g) FROM generate_series(1, 1000) g, "
    "(SELECT repeat('x', 1000000) AS s) t",
    "pairs of a join": "SELECT count(upper(s) || g) FROM generate_series(1, 1000) g JOIN (SELECT 1 AS one, repeat('x', 1000000) AS s) t "
    "ON g / g = one",
}


@pytest.mark.parametrize("name", LARGE)
def test_large_values_of_many_rows_are_not_held_together(start, name):
    server = start(None, "--sql-port", 0)
    sql = Sql(port_of(server))
    sql.query("SELECT 1")
    before = harness.rss_bytes(server.pid)
    sql.query(LARGE[name])
    assert harness.peak_rss_bytes(server.pid) - before < 200 << 20


def test_only_an_index_is_said_to_have_the_keys_alone(start):
    """A clustered collection has its documents by the key, so that they are read."""
    server = start(None, "--sql-port", 0)
    shop = server.client().shop
    shop.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    for name in ["plain", "clustered"]:
        shop[name].insert_many({"_id": n} for n in range(5))
    sql = Sql(port_of(server))
    for name, is_alone in [("plain", True), ("clustered", False)]:
        query = f"SELECT _id FROM {name} WHERE _id = ANY ('{{1,3,9}}')"
        assert sql.query(query) == [[b"1"], [b"3"]]
        plan = str(sql.query(f"EXPLAIN {query}"))
        assert ("Index Only" in plan) == is_alone, plan
