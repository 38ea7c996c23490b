"""Messages of PostgreSQL's protocol in orders and with bytes that no driver sends: each connection is answered or ends, what is refused is
refused for a reason, and no other connection suffers."""

import contextlib
import socket
import struct
import time

from harness import rss_bytes
from pgclient import Sql, port_of

MIB = 1 << 20
ANSWER_MAX_S = 20
GROWTH_MAX = 400 * MIB
TAGS = b"Q" * 6 + b"PBDE" * 3 + b"S" * 8 + b"HCdcfX"
STATEMENTS = [
    "SELECT 1", "SELECT $1::int, $2::text[]", "SELECT * FROM t", "SELECT * FROM t WHERE id = $1", "INSERT INTO t (v) VALUES ($1)", "", ";", "SELECT 1; SELECT 2",
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "COPY t FROM STDIN", "COPY t (v) FROM STDIN (FORMAT binary)", "COPY t TO STDOUT",
    "DECLARE c CURSOR FOR SELECT * FROM t", "FETCH 3 c", "MOVE 1 c", "CLOSE c", "PREPARE p AS SELECT $1::int", "EXECUTE p(1)", "DEALLOCATE ALL", "DISCARD ALL",
    "SET search_path = app", "RESET ALL", "SELECT generate_series(1, 1000)", "ALTER TABLE t ADD COLUMN IF NOT EXISTS w int", "ALTER TABLE t DROP COLUMN IF EXISTS w",
    "SELECT 1 / 0", "SELECT nothing", "SELEC", "EXPLAIN SELECT * FROM t", "SHOW ALL", "CREATE TABLE IF NOT EXISTS u (id int)", "DROP TABLE IF EXISTS u",
    "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DO NOTHING", "LOCK TABLE t IN ACCESS SHARE MODE", "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1, 'x')",
]
# What begins a connection, beside the usual: TLS, GSS, a cancellation, old and new versions of the protocol.
BEGINNINGS = [80877103, 80877104, 80877102, 196608, 196608, 196608, 196610, 131072, 0, -1]


def text(dice):
    return dice.choice(["", "", "s", "p", "c", "a" * 64, "ä"]).encode() + b"\0"


def values(dice):
    some = [dice.choice([None, b"", b"1", b"\0\0\0\1", b"x", b"{1,2}", b"\xff\xfe", b"y" * 3000]) for _ in range(dice.choice([0, 1, 1, 2, 5]))]
    body = struct.pack("!h", len(some))
    for value in some:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body


def formats(dice):
    some = [dice.choice([0, 1, 1, 0, 2, -1]) if dice.random() < 0.1 else dice.choice([0, 1]) for _ in range(dice.choice([0, 0, 1, 2]))]
    return struct.pack(f"!h{len(some)}h", len(some), *some)


def message(dice):
    """One that is as it should be, whether it belongs here or not."""
    tag = bytes([dice.choice(TAGS)])
    statement = dice.choice(STATEMENTS).encode() + b"\0"
    if tag == b"Q":
        body = statement
    elif tag == b"P":
        types = [dice.choice([0, 23, 25, 1007, 2278, 90001, 4_000_000_000]) for _ in range(dice.choice([0, 0, 1, 2]))]
        body = text(dice) + statement + struct.pack(f"!h{len(types)}I", len(types), *types)
    elif tag == b"B":
        body = text(dice) + text(dice) + formats(dice) + values(dice) + formats(dice)
    elif tag in b"DC":
        body = dice.choice([b"S", b"P", b"P", b"x"]) + text(dice)
    elif tag == b"E":
        body = text(dice) + struct.pack("!i", dice.choice([0, 1, 7, -1, 2**31 - 1]))
    elif tag == b"d":
        body = dice.choice([b"1\tx\n", b"1\t", b"\\.\n", b"PGCOPY\n\xff\r\n\0" + bytes(8), struct.pack("!hi", 1, 1) + b"x", dice.randbytes(40), b""])
    elif tag == b"f":
        body = b"given up\0"
    elif dice.random() < 0.02:
        body = dice.randbytes(dice.choice([0, 8, 200]))
    else:
        body = b""
    return tag + struct.pack("!i", len(body) + 4) + body


def damaged(data, dice):
    """The same with something wrong, or not."""
    data = bytearray(data)
    kind = dice.choice(["whole"] * 20 + ["length", "flip", "cut", "garbage"])
    if kind == "length":
        struct.pack_into("!i", data, 1, dice.choice([0, 1, 3, 4, 5, -1, -(2**31), 2**31 - 1, len(data), len(data) + 40, 900 * MIB]))
    elif kind == "flip":
        for _ in range(dice.choice([1, 3])):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif kind == "cut":
        del data[dice.randrange(len(data)) :]
    elif kind == "garbage":
        data = bytearray(dice.randbytes(dice.choice([1, 8, 300])))
    return kind, bytes(data)


def beginning(dice):
    code = dice.choice(BEGINNINGS)
    body = struct.pack("!i", code)
    if code in (196608, 196610, 131072):
        body += dice.choice([b"user\0tester\0database\0shop\0\0"] * 6 + [b"\0", b"user\0\0", b"user", b"user\0tester\0options\0-c x=1\0\0", dice.randbytes(30)])
    elif code == 80877102:
        body += struct.pack("!ii", dice.choice([1, 2, 3, -1]), dice.choice([0, 1, -1]))
    length = len(body) + 4 if dice.random() < 0.95 else dice.choice([0, 4, 7, -1, 2**31 - 1])
    return struct.pack("!i", length) + body


def outcome(client):
    """What comes back until nothing does: the codes of errors, whether the connection ended, and how it framed what it said."""
    got, ended = b"", False
    try:
        while len(got) < 4 * MIB:
            piece = client.recv(65536)
            if not piece:
                ended = True
                break
            got += piece
    except TimeoutError:
        pass
    except ConnectionError:
        ended = True
    states, at = [], 1 if got[:1] in (b"S", b"N") and got[1:2] in (b"", b"R", b"E") else 0
    while at + 5 <= len(got):
        (length,) = struct.unpack_from("!i", got, at + 1)
        assert length >= 4 and got[at] in b"RSKZTDCIE123tnsNGH AWdcv", got[at : at + 40]
        if got[at] == ord("E") and at + 1 + length <= len(got):
            fields = dict((part[:1], part[1:]) for part in got[at + 5 : at + 1 + length].split(b"\0") if part)
            states.append(fields[b"C"].decode())
        at += 1 + length
    return states, ended


def test_messages_in_any_order(start, dice, turns):
    server = start(None, "--quiet", "--sql-port", "0")
    port = port_of(server)
    steady = Sql(port, "shop")
    steady.query("CREATE TABLE t (id serial PRIMARY KEY, v text)")
    steady.query("INSERT INTO t (v) SELECT 'row ' || g FROM generate_series(1, 50) g")
    before = rss_bytes(server.pid)
    counted, ends, number = {}, 0, 0
    for turn in turns(300):
        number = turn + 1
        usual = b"user\0tester\0database\0shop\0options\0-c statement_timeout=2s\0\0"
        sent = beginning(dice) if dice.random() < 0.15 else struct.pack("!ii", len(usual) + 8, 196608) + usual
        for _ in range(dice.choice([1, 3, 10, 40])):
            sent += damaged(message(dice), dice)[1]
        if dice.random() < 0.7:
            sent += b"S\0\0\0\4"
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_MAX_S) as client:
            with contextlib.suppress(ConnectionError):
                at = 0
                while at < len(sent):
                    step = dice.choice([1, 7, 100, 5000, 5000, 5000])
                    client.sendall(sent[at : at + step])
                    at += step
            if dice.random() < 0.2:
                continue  # It goes in the middle of everything.
            client.settimeout(0.15)
            states, ended = outcome(client)
        ends += ended
        for state in states:
            counted[state] = counted.get(state, 0) + 1
            assert not state.startswith("XX"), (state, sent)
        if number % 20 == 0:
            begun = time.monotonic()
            assert steady.query("SELECT count(*) > 0 FROM pg_class") == [[b"t"]]
            assert time.monotonic() - begun < ANSWER_MAX_S
            assert rss_bytes(server.pid) - before < GROWTH_MAX, f"grew to {rss_bytes(server.pid) // MIB} MiB"
    print(f"{number} connections, {ends} ended: {dict(sorted(counted.items()))}")
    assert server.is_running and "panic" not in server.said()
    assert server.stop() == 0
