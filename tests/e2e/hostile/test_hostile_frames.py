"""Messages with something wrong about their bytes: each is answered or ends its connection, and no other suffers."""

import contextlib
import functools
import struct
import time
import zlib

import bson
from harness import CHECKSUM_PRESENT, OP_COMPRESSED, OP_MSG, OP_QUERY, Closed, Raw, crc32c, message, op_msg, rss_bytes, section, sequence

MIB = 1 << 20
ANSWER_MAX_S = 20
GROWTH_MAX = 700 * MIB
SNAPPY, ZLIB, ZSTD = 1, 2, 3


def compressors():
    made = {ZLIB: zlib.compress}
    with contextlib.suppress(ImportError):
        import snappy

        made[SNAPPY] = snappy.compress
    with contextlib.suppress(ImportError):
        import zstandard

        made[ZSTD] = zstandard.ZstdCompressor().compress
    return made


COMPRESSORS = compressors()


def compressed(inner, dice, opcode=OP_MSG, size=None, kind=None):
    kind = kind or dice.choice(list(COMPRESSORS))
    return message(OP_COMPRESSED, struct.pack("<iiB", opcode, len(inner) if size is None else size, kind) + COMPRESSORS[kind](inner))


@functools.cache
def zeros(kind, count):
    return COMPRESSORS[kind](b"\0" * count)


def bomb(dice):
    """Little that becomes much, or says that it does."""
    kind = dice.choice(list(COMPRESSORS))
    count = dice.choice([MIB, 40 * MIB, 100 * MIB])
    size = dice.choice([count, 10, 47 * MIB, 2**31 - 1, -1])
    return message(OP_COMPRESSED, struct.pack("<iiB", OP_MSG, size, kind) + zeros(kind, count))


def whole(dice, number):
    """A message that is as it should be; each inserts a document of its own, so that one can see what was run."""
    insert = {"insert": "docs", "$db": "frames"}
    document = {"_id": number, "pad": "x" * dice.choice([0, 0, 100, 2000])}
    kind = dice.randrange(6)
    if kind < 2:
        document["pad"] *= 30
    if kind == 0:
        return op_msg({**insert, "documents": [document]}, request_id=number)
    if kind == 1:
        return op_msg(insert, sequence("documents", [document]), request_id=number)
    if kind == 2:
        return op_msg({**insert, "documents": [document]}, flags=CHECKSUM_PRESENT, request_id=number)
    if kind == 3:
        return message(OP_QUERY, struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, 1) + bson.encode({"hello": 1}), number)
    body = struct.pack("<I", 0) + section({**insert, "documents": [document]})
    return message(OP_COMPRESSED, compressed(body, dice)[16:], number)


def damaged(data, dice):
    """The same with one thing wrong, and what that is. `None` for the length of what was sent: the connection has to end."""
    kind = dice.choice(["length", "length", "opcode", "flags", "flip", "flip", "checksum", "cut", "nested", "size", "garbage", "bomb", "sections", "depth"])
    data = bytearray(data)
    if kind == "length":
        struct.pack_into("<i", data, 0, dice.choice([0, 1, 15, 16, 17, 20, -1, -(2**31), 2**31 - 1, 48_000_001, 50 * MIB, len(data) - 1, len(data) + 1, len(data) + 100]))
    elif kind == "opcode":
        struct.pack_into("<i", data, 12, dice.choice([0, 1, 2001, 2002, 2004, 2005, 2006, 2007, 2010, 2011, 2012, 2013, 2014, -1]))
    elif kind == "flags":
        struct.pack_into("<I", data, 16, dice.choice([1, 2, 3, 4, 0x8000, 1 << 16, 1 << 17, 1 << 31, 0xFFFFFFFF]))
    elif kind == "flip":
        for _ in range(dice.choice([1, 1, 3, 20])):
            data[dice.randrange(16, len(data))] ^= 1 << dice.randrange(8)
    elif kind == "checksum":
        struct.pack_into("<I", data, 16, CHECKSUM_PRESENT)
        struct.pack_into("<i", data, 0, len(data) + 4)
        struct.pack_into("<i", data, 12, OP_MSG)
        data += struct.pack("<I", crc32c(bytes(data)) ^ (1 << dice.randrange(32)))
    elif kind == "cut":
        data = data[: dice.randrange(1, len(data))]
    elif kind == "nested":
        inner = bytes(data[16:])
        for _ in range(dice.choice([1, 2, 50])):
            inner = compressed(inner, dice, opcode=OP_COMPRESSED)[16:]
        data = bytearray(message(OP_COMPRESSED, inner))
    elif kind == "size" and len(data) > 30:
        struct.pack_into("<i", data, dice.choice([20, 21, 22, 24]), dice.choice([0, 4, 5, -1, 2**31 - 1, len(data)]))
    elif kind == "garbage":
        data = bytearray(dice.randbytes(dice.choice([1, 16, 300, 5000])))
    elif kind == "bomb":
        data = bytearray(bomb(dice))
    elif kind == "sections":
        body = struct.pack("<I", 0) + b"".join(dice.choice([section({"ping": 1, "$db": "admin"}), sequence("documents", [{}] * 3), b"\2", b"\1\4\0\0\0", sequence("", []), b"\0"]) for _ in range(dice.randrange(5)))
        data = bytearray(message(OP_MSG, body))
    elif kind == "depth":
        deep = b"\5\0\0\0\0"
        for _ in range(dice.choice([100, 210, 20_000])):
            deep = struct.pack("<i", len(deep) + 8) + b"\3a\0" + deep + b"\0"
        data = bytearray(op_msg(deep))
    return kind, bytes(data)


def send_split(raw, data, dice):
    """In pieces, as networks do."""
    cuts = sorted(dice.randrange(len(data) + 1) for _ in range(dice.choice([0, 0, 1, 5, 30])))
    for begin, end in zip([0, *cuts], [*cuts, len(data)]):
        raw.send(data[begin:end])
        if dice.random() < 0.05:
            time.sleep(0.002)


def outcome(raw, answers_max=3):
    """What comes back: 'closed', 'silence', or the number of messages."""
    got = 0
    try:
        while got < answers_max:
            opcode, _, _, body = raw.receive()
            assert opcode in (1, OP_MSG, OP_COMPRESSED), opcode
            got += 1
            raw.socket.settimeout(0.01)
    except Closed:
        return "closed"
    except TimeoutError:
        return got or "silence"
    return got


def test_damaged_messages(start, dice, turns):
    server = start(None, "--quiet")
    steady = server.raw(ANSWER_MAX_S)
    before = rss_bytes(server.pid)
    counted, number = {}, 0
    for turn in turns(200):
        number = turn + 1
        kind, data = damaged(whole(dice, number), dice)
        with Raw(server.address, 0.03) as raw:
            with contextlib.suppress(Closed):
                raw.send(data) if len(data) > MIB else send_split(raw, data, dice)
            result = outcome(raw)
        counted.setdefault(kind, {}).setdefault(result, 0)
        counted[kind][result] += 1
        if kind in ("checksum", "bomb"):
            assert steady.command({"count": "docs", "query": {"_id": number}, "$db": "frames"})["n"] == 0, f"a message with a wrong {kind} was run"
        if number % 20 == 0:
            begun = time.monotonic()
            assert steady.command({"ping": 1, "$db": "admin"})["ok"] == 1
            assert time.monotonic() - begun < ANSWER_MAX_S / 2
            assert rss_bytes(server.pid) - before < GROWTH_MAX, f"grew to {rss_bytes(server.pid) // MIB} MiB: {counted}"
    print(f"{number} messages: {counted}")
    assert server.is_running and "panic" not in server.said()
    assert server.stop() == 0


def test_whole_messages_in_pieces(start, dice, turns):
    """However a message is cut up, it is answered once, and answers keep the order of the questions."""
    server = start(None, "--quiet")
    number = 0
    with server.raw(ANSWER_MAX_S) as raw:
        for _ in turns(100):
            numbers = range(number + 1, number + 1 + dice.randrange(1, 6))
            send_split(raw, b"".join(whole(dice, n) for n in numbers), dice)
            for expected in numbers:
                _, _, response_to, _ = raw.receive()
                assert response_to == expected
            number = numbers[-1]
    inserted = server.client().frames.docs.count_documents({})
    print(f"{number} messages, {inserted} of them inserts")
    assert 0.6 * number < inserted < number
