"""`nestor sql`: files, commands, forms of rows, what ends it, and a session at a terminal."""

import os
import pty
import select
import subprocess
import time

import harness
import pytest
from pgclient import port_of


@pytest.fixture(scope="module")
def served():
    with harness.Server(None, "--sql-port", 0) as server:
        server.client().shop.orders.insert_many({"_id": n, "who": "ann" if n % 2 else "bob", "total": n * 1.5} for n in range(4))
        yield f"postgres://127.0.0.1:{port_of(server)}/shop"


def shell(uri, *args, text=None):
    command = [str(harness.BIN), "sql", "--uri", uri, *map(str, args)]
    return subprocess.run(command, input=text or "", capture_output=True, text=True, timeout=60, check=False)


def test_forms_of_rows(served):
    query = "select _id, who, total from orders where _id < 2 order by _id"
    assert shell(served, "-c", query).stdout.splitlines() == [
        " _id | who | total",
        "-----+-----+-------",
        "   0 | bob |     0",
        "   1 | ann |   1.5",
        "(2 rows)",
        "",
    ]
    assert shell(served, "--format", "csv", "-c", query).stdout == "_id,who,total\n0,bob,0\n1,ann,1.5\n"
    assert shell(served, "--format", "json", "-c", query).stdout.splitlines()[1] == '{"_id": 1, "who": "ann", "total": 1.5}'


def test_files_end_at_the_first_failure_unless_told(served, tmp_path):
    file = tmp_path / "some.sql"
    file.write_text("select 1 as a;\nselect nothing\n  from orders;\n\\timing\nselect ';' as b, -- ;\n 2 as c")
    done = shell(served, "--format", "tsv", file)
    assert (done.returncode, done.stdout) == (1, "a\n1\n")
    assert '42703: column "nothing" does not exist' in done.stderr
    done = shell(served, "--format", "tsv", "--keepGoing", file)
    assert done.returncode == 1 and "b\tc\n;\t2\n" in done.stdout and "time: " in done.stdout
    assert shell(served, "-", text="select 5;\n\\q\nselect nothing;").returncode == 0
    assert shell(served, text="\\nothing\n").returncode == 1
    assert shell("postgres://127.0.0.1:1/x", "-c", "select 1").returncode == 1


def test_commands_of_the_shell(served):
    said = shell(served, text="\\dt\n\\d orders\n\\l\n\\x\nselect 7 as x;\n").stdout
    for part in (" public | orders | table", " total  | ", " shop", "x | 7"):
        assert part in said, said
    assert "42P01" in shell(served, text="\\c other\nselect * from orders;").stderr


def test_a_session_at_a_terminal(served, tmp_path):
    """Prompts, a statement of two lines, completion, Ctrl-C in a statement that takes long, history."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(HOME=str(tmp_path), TERM="xterm")
        os.execv(harness.BIN, [str(harness.BIN), "sql", "--uri", served])
    seen = b""

    def until(what, timeout=30):
        nonlocal seen
        end = time.monotonic() + timeout
        while what not in seen:
            assert select.select([terminal], [], [], max(0, end - time.monotonic()))[0], seen
            seen += os.read(terminal, 4096)
        seen = seen.split(what, 1)[1]

    try:
        until(b"shop=> ")
        os.write(terminal, b"select count(*) as n\r")
        until(b"shop-> ")
        os.write(terminal, b"from ord\t;\r")
        until(b"(1 row)")
        until(b"shop=> ")
        os.write(terminal, b"select count(*) from generate_series(1, 1000000000) a, generate_series(1, 1000) b;\r")
        until(b"Ctrl-C ends it")
        os.write(terminal, b"\x03")
        until(b"57014")
        until(b"shop=> ")
        os.write(terminal, b"begin;\r")
        until(b"shop=*> ")
        os.write(terminal, b"\\q\r")
        assert os.waitpid(pid, 0)[1] == 0
        pid = 0
    finally:
        if pid:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(terminal)
    assert "from orders;" in (tmp_path / ".nestor_sql_history").read_text()
