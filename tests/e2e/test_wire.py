"""Bytes no driver would send: each answers an error or closes that one connection, and nothing else."""

import http.client
import json
import ssl
import struct

import bson
import pytest
from harness import (
    OP_COMPRESSED, OP_MSG, OP_QUERY, Closed, eventually, message, op_msg, section, sequence,
)

PING = {"ping": 1, "$db": "admin"}
FLAGS = struct.pack("<I", 0)


def document(elements):
    return struct.pack("<i", len(elements) + 5) + elements + b"\0"


def nested(depth):
    inner = document(b"")
    for _ in range(depth):
        inner = document(b"\x03a\0" + inner)
    return inner


def with_db(elements):
    return section(document(b"\x10ping\0\1\0\0\0" + elements + b"\x02$db\0\6\0\0\0admin\0"))


def bodies_of_op_msg():
    good = section(PING)
    yield "no flags", b""
    yield "flags only", FLAGS
    yield "unknown required flag", struct.pack("<I", 1 << 5) + good
    yield "no section of kind 0", FLAGS + sequence("documents", [{}])
    yield "two sections of kind 0", FLAGS + good + good
    yield "unknown section kind", FLAGS + good + b"\7" + good
    yield "document cut off", FLAGS + good[:-3]
    yield "document longer than the message", FLAGS + b"\0" + struct.pack("<i", 5000) + good[5:]
    yield "document of negative length", FLAGS + b"\0" + struct.pack("<i", -5) + good[5:]
    yield "document of length 0", FLAGS + b"\0" + struct.pack("<i", 0) + good[5:]
    yield "document without its last zero", FLAGS + good[:-1] + b"\1"
    yield "trailing bytes", FLAGS + good + b"\0"
    yield "sequence longer than the message", FLAGS + good + b"\1" + struct.pack("<i", 9999) + b"documents\0"
    yield "sequence of negative length", FLAGS + good + b"\1" + struct.pack("<i", -1) + b"documents\0"
    yield "sequence without a name", FLAGS + good + b"\1" + struct.pack("<i", 8) + b"docu"
    yield "the same sequence twice", FLAGS + good + sequence("documents", [{}]) + sequence("documents", [{}])
    yield "unknown BSON type", FLAGS + with_db(b"\x20x\0")
    yield "name that never ends", FLAGS + b"\0" + document(b"\x10" + b"x" * 50)
    yield "string of negative length", FLAGS + with_db(b"\x02x\0\xff\xff\xff\xff\0")
    yield "string longer than the document", FLAGS + with_db(b"\x02x\0\xff\xff\0\0a\0")
    yield "string of length 0", FLAGS + with_db(b"\x02x\0\0\0\0\0\0")
    yield "string without its zero", FLAGS + with_db(b"\x02x\0\2\0\0\0ab")
    yield "text that is not UTF-8", FLAGS + with_db(b"\x02x\0\3\0\0\0\xff\xfe\0")
    yield "binary of negative length", FLAGS + with_db(b"\x05x\0\xff\xff\xff\xff\0")
    yield "bool that is neither", FLAGS + with_db(b"\x08x\0\2")
    yield "nested document longer than its parent", FLAGS + with_db(b"\x03x\0\xff\0\0\0\0")
    yield "code with scope of a wrong length", FLAGS + with_db(b"\x0fx\0\5\0\0\0\1\0\0\0\0\5\0\0\0\0")
    yield "nested 10,000 deep", FLAGS + with_db(b"\x03x\0" + nested(10_000))
    yield "no $db", FLAGS + section({"ping": 1})
    yield "empty command", FLAGS + section({})
    yield "$db of a wrong type", FLAGS + section({"ping": 1, "$db": 5})
    yield "$db with a bad name", FLAGS + section({"ping": 1, "$db": "a b/c"})


BODIES = dict(bodies_of_op_msg())


def messages():
    good = op_msg(PING)
    for name, body in BODIES.items():
        yield name, message(OP_MSG, body)
    yield "length below 16", message(OP_MSG, b"", length=15)
    yield "length 0", message(OP_MSG, b"", length=0)
    yield "negative length", message(OP_MSG, b"", length=-1)
    yield "length over 48 MB", message(OP_MSG, b"", length=48_000_001)
    yield "largest length", message(OP_MSG, b"", length=0x7FFFFFFF)
    yield "unknown opcode", message(9999, FLAGS)
    yield "OP_INSERT, long gone", message(2002, FLAGS + b"a.b\0" + bson.encode({}))
    yield "OP_QUERY cut off", message(OP_QUERY, FLAGS + b"admin.$cm")
    yield "OP_QUERY without a zero in its namespace", message(OP_QUERY, FLAGS + b"a" * 100)
    yield "OP_QUERY without a document", message(OP_QUERY, FLAGS + b"admin.$cmd\0" + b"\0" * 8)
    head = struct.pack("<ii", OP_MSG, 100)
    yield "compressed, cut off", message(OP_COMPRESSED, struct.pack("<i", OP_MSG))
    yield "compressed with an unknown compressor", message(OP_COMPRESSED, head + b"\x09" + b"xxx")
    for number, name in ((1, "snappy"), (2, "zlib"), (3, "zstd")):
        yield f"{name} garbage", message(OP_COMPRESSED, head + bytes([number]) + b"\xff\x00garbage" * 5)
        bomb = struct.pack("<ii", OP_MSG, 0x7FFFFFFF) + bytes([number])
        yield f"{name} that claims 2 GiB", message(OP_COMPRESSED, bomb + b"\xff\xff\xff\xff\x07")
    yield "compressed of negative size", message(OP_COMPRESSED, struct.pack("<ii", OP_MSG, -1) + b"\0" + good[16:])
    yield "compressed compressed", message(OP_COMPRESSED, struct.pack("<ii", OP_COMPRESSED, 20) + b"\0" + b"\0" * 20)


MESSAGES = dict(messages())


@pytest.mark.parametrize("name", MESSAGES)
def test_malformed_message(server, name):
    with server.raw() as bystander, server.raw() as raw:
        assert bystander.command(PING)["ok"] == 1.0
        try:
            raw.send(MESSAGES[name])
            raw.socket.shutdown(1)
            opcode, _, _, body = raw.receive()
            if opcode == OP_MSG:
                reply = bson.decode(body[5:])
                assert reply["ok"] == 0 and reply["code"] > 0 and reply["codeName"], reply
        except Closed:
            pass
        assert bystander.command(PING)["ok"] == 1.0, "other connections go on"
    assert server.is_running


@pytest.mark.parametrize("upto", [1, 4, 15, 16, 20, 30])
def test_truncated_message(server, upto):
    with server.raw() as raw:
        raw.send(op_msg(PING)[:upto])
        raw.socket.shutdown(1)
        assert raw.is_closed()
    with server.raw() as raw:
        assert raw.command(PING)["ok"] == 1.0


def test_a_message_may_come_byte_by_byte(server):
    with server.raw() as raw:
        for byte in op_msg(PING):
            raw.send(bytes([byte]))
        assert raw.reply()["ok"] == 1.0


@pytest.fixture
def logging(start):
    """A server of the test's own, and what it says of why it ends connections."""
    server = start()

    def reasons():
        lines = [json.loads(line) for line in server.said().splitlines() if line.startswith("{")]
        return [line["attr"]["error"] for line in lines if line["id"] == 22988]

    return server, reasons


def test_a_tls_client_is_sent_away_at_once(logging):
    server, reasons = logging
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with server.raw(timeout=10) as raw, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(raw.socket)
    eventually(lambda: reasons(), what="a log line")
    assert "TLS" in reasons()[0], reasons()


def test_a_browser_is_told_what_this_is(logging):
    server, reasons = logging
    with server.raw() as raw:
        raw.send(b"GE")
        raw.send(b"T / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = http.client.HTTPResponse(raw.socket)
        answer.begin()
        assert answer.status == 200 and answer.getheader("Content-Type") == "text/plain"
        text = answer.read().decode()
        assert text == "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"
        assert raw.is_closed()
    assert "HTTP" in reasons()[0], reasons()


@pytest.mark.parametrize("opcode", [0, 1, 2002, -1])
def test_an_unknown_opcode_is_refused_before_its_body_comes(server, opcode):
    with server.raw(timeout=10) as raw:
        raw.send(message(opcode, b"", length=40_000_000))
        assert raw.is_closed()


def test_documents_nest_200_deep_and_no_deeper(server, db):
    def insert(depth):
        # The document itself is level 1.
        stored = document(b"\x10_id\0\1\0\0\0" + b"\x03a\0" + nested(depth - 2))
        payload = b"documents\0" + stored
        part = b"\1" + struct.pack("<i", len(payload) + 4) + payload
        with server.raw() as raw:
            return raw.command({"insert": "c", "$db": db.name}, part)

    reply = insert(150)
    assert reply["ok"] == 1.0 and reply["n"] == 1
    with server.raw() as raw:
        found = raw.command({"find": "c", "$db": db.name})
        assert len(found["cursor"]["firstBatch"]) == 1
    refused = insert(250)
    assert refused["ok"] == 0 or refused["writeErrors"]


def test_a_malformed_document_is_not_stored(server, db):
    bad = document(b"\x02a\0\3\0\0\0\xff\xfe\0")
    payload = b"documents\0" + bad
    with server.raw() as raw:
        try:
            reply = raw.command({"insert": "c", "$db": db.name}, b"\1" + struct.pack("<i", len(payload) + 4) + payload)
            assert reply["ok"] == 0
        except Closed:
            pass
    assert db.c.count_documents({}) == 0
