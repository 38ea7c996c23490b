"""SQL over PostgreSQL's wire protocol: psql, if it is there, and the messages themselves."""

import contextlib
import re
import shutil
import socket
import struct
import subprocess
import threading

import harness
import pytest


class Sql:
    """A connection that speaks the simple and the extended protocol, and no more than the tests need."""

    def __init__(self, port, database="shop"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        body = struct.pack("!i", 196608) + b"user\0tester\0database\0" + database.encode() + b"\0\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        self.key = None
        for tag, body in self.until_ready():
            if tag == b"K":
                self.key = struct.unpack("!ii", body)

    def read(self, n):
        out = b""
        while len(out) < n:
            part = self.socket.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def until_ready(self):
        out = []
        while True:
            tag = self.read(1)
            (length,) = struct.unpack("!i", self.read(4))
            out.append((tag, self.read(length - 4)))
            if tag == b"Z":
                return out

    def send(self, tag, body=b""):
        self.socket.sendall(tag + struct.pack("!i", len(body) + 4) + body)

    @staticmethod
    def rows(messages):
        out = []
        for tag, body in messages:
            if tag == b"E":
                parts = dict((part[:1], part[1:].decode()) for part in body.split(b"\0") if part)
                raise RuntimeError(parts[b"C"] + " " + parts[b"M"])
            if tag == b"D":
                at, row = 2, []
                while at < len(body):
                    (length,) = struct.unpack_from("!i", body, at)
                    at += 4
                    row.append(None if length < 0 else body[at : at + length])
                    at += max(length, 0)
                out.append(row)
        return out

    def query(self, text):
        self.send(b"Q", text.encode() + b"\0")
        return self.rows(self.until_ready())

    def prepared(self, text, params, binary=0):
        self.send(b"P", b"\0" + text.encode() + b"\0" + struct.pack("!h", 0))
        values = b"".join(struct.pack("!i", len(p)) + p for p in params)
        self.send(b"B", b"\0\0" + struct.pack("!hh", 0, len(params)) + values + struct.pack("!hh", 1, binary))
        self.send(b"E", b"\0" + struct.pack("!i", 0))
        self.send(b"S")
        return self.rows(self.until_ready())


def port_of(server):
    return int(re.search(r'"Waiting for SQL connections".*?"address":"127\.0\.0\.1:(\d+)"', server.said())[1])


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


def test_it_is_refused_where_clients_log_in(start):
    with pytest.raises(harness.DidNotStart) as refused:
        start(None, "--sqlPort", 0, "--auth")
    assert "--sql-port" in refused.value.output
