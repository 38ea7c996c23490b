"""EXCLUDE constraints between sessions: of rows that exclude each other one is committed, whoever comes first."""

import concurrent.futures

import pytest

from pgclient import Sql, port_of
from test_sql_locks import refused, waits

ROOMS = "CREATE TABLE bookings (id int PRIMARY KEY, room int, span int4range, EXCLUDE USING gist (room WITH =, span WITH &&){})"
SPANS = "CREATE TABLE bookings (id int PRIMARY KEY, room int, span int4range, EXCLUDE USING gist (span WITH &&){})"


@pytest.fixture
def port(start):
    return port_of(start(None, "--sql-port", 0))


@pytest.mark.parametrize("table", [ROOMS, SPANS])
def test_rows_that_exclude_each_other_are_not_both_committed(port, table):
    one, two = Sql(port), Sql(port)
    one.query(table.format(""))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for block in [False, True]:
            for end in ["COMMIT", "ROLLBACK"]:
                one.query("BEGIN; INSERT INTO bookings VALUES (1, 1, '[1,5)')")
                two.query("BEGIN") if block else None
                done = waits(pool, two.query, "INSERT INTO bookings VALUES (2, 1, '[3,7)')")
                one.query(end)
                if end == "COMMIT":
                    refused("23P01", done.result, 30)
                else:
                    done.result(30)
                two.query("COMMIT") if block else None
                assert len(one.query("SELECT id FROM bookings")) == 1
                one.query("DELETE FROM bookings")
        # What waits looks anew, and leaves out what is there by then.
        one.query("BEGIN; INSERT INTO bookings VALUES (1, 1, '[1,5)')")
        done = waits(pool, two.query, "INSERT INTO bookings VALUES (2, 1, '[3,7)') ON CONFLICT DO NOTHING RETURNING id")
        one.query("COMMIT")
        assert done.result(30) == []
        # A row that is about to go may be in nobody's way.
        for want in ["INSERT INTO bookings VALUES (2, 1, '[3,7)')", "INSERT INTO bookings VALUES (2, 1, '[3,7)') ON CONFLICT DO NOTHING"]:
            for give in ["DELETE FROM bookings WHERE id = 1", "UPDATE bookings SET span = '[1,2)' WHERE id = 1"]:
                one.query(f"BEGIN; {give}")
                done = waits(pool, two.query, want)
                one.query("COMMIT")
                done.result(30)
                assert two.query("SELECT span FROM bookings WHERE id = 2") == [[b"[3,7)"]]
                one.query("DELETE FROM bookings; INSERT INTO bookings VALUES (1, 1, '[1,5)')")
        # Each waits for the other.
        one.query("BEGIN; INSERT INTO bookings VALUES (3, 1, '[11,12)')")
        two.query("BEGIN")
        done = waits(pool, two.query, "INSERT INTO bookings VALUES (4, 1, '[11,12)')")
        one.query("ROLLBACK")
        done.result(30)
        two.query("ROLLBACK")


def test_rows_of_other_keys_are_in_nobodys_way(port):
    one, two = Sql(port), Sql(port)
    one.query(ROOMS.format(""))
    one.query("BEGIN; INSERT INTO bookings VALUES (1, 1, '[1,5)')")
    two.query("BEGIN; INSERT INTO bookings VALUES (2, 2, '[1,5)')")
    two.query("INSERT INTO bookings VALUES (3, NULL, '[1,5)')")
    one.query("COMMIT")
    two.query("COMMIT")
    assert len(one.query("SELECT id FROM bookings")) == 3


@pytest.mark.parametrize("table", [ROOMS, SPANS])
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_constraints_that_wait(port, table, level):
    """Looked at when their transactions end, of which one fails then."""
    one, two = Sql(port), Sql(port)
    one.query(table.format(" DEFERRABLE INITIALLY DEFERRED"))
    for session, row in [(one, "(1, 1, '[1,5)')"), (two, "(2, 1, '[3,7)')")]:
        session.query(f"BEGIN ISOLATION LEVEL {level}")
        session.query(f"INSERT INTO bookings VALUES {row}")
    one.query("COMMIT")
    with pytest.raises(RuntimeError, match="^(23P01|40001) "):
        two.query("COMMIT")
    assert one.query("SELECT id FROM bookings") == [[b"1"]]


def test_many_writers_leave_no_two_rows_that_overlap(port):
    one = Sql(port)
    one.query(ROOMS.format(""))

    def writes(worker):
        sql, written = Sql(port), 0
        for n in range(40):
            at = (n * 7 + worker * 3) % 50
            row = f"({worker * 1000 + n}, {n % 2}, '[{at},{at + 4})')"
            try:
                written += len(sql.query(f"INSERT INTO bookings VALUES {row} ON CONFLICT DO NOTHING RETURNING id"))
            except RuntimeError as error:
                assert str(error).startswith("40001 ")
        return written

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        written = sum(pool.map(writes, range(1, 5)))
    assert one.query("SELECT count(*) FROM bookings") == [[str(written).encode()]]
    overlap = "SELECT a.id FROM bookings a JOIN bookings b ON a.id < b.id AND a.room = b.room AND a.span && b.span"
    assert one.query(overlap) == []
