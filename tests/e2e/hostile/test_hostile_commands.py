"""Random commands, well-formed and mutated: each is answered in time, with a result or with an error that tells something."""

import collections
import time

import bson
from bson.codec_options import DatetimeConversion
from generate import Generator, Mismatched, Pairs, encode
from harness import OP_MSG, check, message, op_msg

# What these do is to disturb, or they change what the test itself relies on.
LEFT_OUT = {
    "shutdown", "fsync", "fsyncUnlock", "configureFailPoint", "setParameter", "setDefaultRWConcern", "setUserWriteBlockMode", "replSetStepDown", "replSetFreeze",
    "replSetMaintenance", "replSetReconfig", "dropConnections", "killOp", "killAllSessions", "killAllSessionsByPattern", "logRotate", "setClusterParameter",
    "setFeatureCompatibilityVersion", "dropDatabase",
}
# InternalError and UnknownError: nobody foresaw what happened.
UNFORESEEN = {1, 8}
ANSWER_MAX_S = 60


def faults(reply):
    """What is wrong with a reply, whatever the command was."""
    if reply.get("ok") not in (0, 1):
        yield f"ok is {reply.get('ok')}"
    entries = [("the reply", reply)] if reply.get("ok") == 0 else []
    for name in ("writeErrors", "writeConcernError"):
        found = reply.get(name, [])
        entries += [(name, entry) for entry in (found if isinstance(found, list) else [found])]
    for where, entry in entries:
        if not isinstance(entry.get("code"), int) or not isinstance(entry.get("errmsg"), str) or not entry["errmsg"]:
            yield f"{where} has no code or no message"
        elif entry["code"] in UNFORESEEN:
            yield f"{where} has code {entry['code']}"
        if where == "the reply" and not isinstance(entry.get("codeName"), str):
            yield f"{where} has no codeName"


# Dates that Python does not have, halves of characters.
ANY = bson.CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO, unicode_decode_error_handler="ignore")


def ask(raw, body):
    raw.send(message(OP_MSG, b"\0\0\0\0\0" + body))
    opcode, _, _, content = raw.receive()
    assert opcode == OP_MSG and content[4] == 0
    return bson.decode(content[5:], ANY)


def test_random_commands(start, tmp_path, dice, turns):
    server = start(tmp_path / "data", "--setParameter", "enableTestCommands=1", "--quiet")
    steady = server.raw(ANSWER_MAX_S)
    listed = steady.command({"listCommands": 1, "$db": "admin"})["commands"]
    names = [name for name in listed if name not in LEFT_OUT]
    of_admin = {name for name in names if listed[name]["adminOnly"]}
    generator = Generator(dice)
    seen = collections.Counter()
    answered = collections.Counter()
    raw = server.raw(ANSWER_MAX_S)
    for _ in turns(3000):
        command = generator.command(names)
        if dice.random() < 0.5:
            command = generator.mutated(command, dice.choice([0.01, 0.05, 0.2]))
        if not isinstance(command, Pairs) or not command:
            continue
        if dice.random() < 0.02:
            command.append(("x", Mismatched(dice)))
        name = str(command[0][0])
        if name in LEFT_OUT or name.lower() == "explain" and dice.random() < 0.1:
            continue
        usual = "admin" if name in of_admin else "fuzz"
        database = usual if dice.random() < 0.95 else dice.choice(["admin", "fuzz", "local", "config", "", "a.b", "x" * 70])
        command = Pairs([pair for pair in command if pair[0] not in ("maxTimeMS", "$db")] + [("$db", database), ("maxTimeMS", 2000)])
        try:
            body = encode(command)
        except (bson.errors.InvalidDocument, OverflowError, ValueError):
            continue
        begun = time.monotonic()
        try:
            reply = ask(raw, body)
        except Exception as error:
            # Bytes that are no BSON may end their connection, and nothing but that.
            broken = "<kind" in repr(command) or not bson_valid(body)
            assert broken and server.is_running, f"{type(error).__name__} {error} after {command!r}"
            raw.close()
            raw = server.raw(ANSWER_MAX_S)
            continue
        took = time.monotonic() - begun
        answered[name if name in names else "other"] += 1
        seen[reply.get("codeName", "ok")] += 1
        wrong = list(faults(reply))
        if reply.get("errmsg", "").startswith("Failed to apply update due to missing _id"):
            wrong = []  # An error of applyOps that has code 8 in MongoDB, too.
        assert not wrong, f"{wrong}: {str(reply)[:500]} to {command!r}; the server said {server.said()[-600:]!r}"
        assert took < 30, f"{took:.1f} s for {command!r}"
        if sum(answered.values()) % 100 == 0:
            assert steady.command({"ping": 1, "$db": "admin"})["ok"] == 1
    print(f"{sum(answered.values())} commands, answers {seen.most_common(12)}")
    assert seen["ok"] > 0.1 * sum(seen.values()) and len(seen) > 5, "the generator makes commands of sense and of none"
    raw.close()
    steady.close()
    fuzz = server.client().get_database("fuzz", ANY)
    # Names alone: the options may be such that Python has no value for them.
    listed = fuzz.command("listCollections", nameOnly=True, filter={"type": "collection"}, cursor={"batchSize": 1 << 30}, codec_options=ANY)
    for name in (entry["name"] for entry in listed["cursor"]["firstBatch"]):
        if not name.startswith("system."):
            found = fuzz.command("validate", name, codec_options=ANY)
            assert found["valid"], found
    assert server.stop() == 0
    assert "panic" not in server.said()
    check(tmp_path / "data")


def bson_valid(body):
    try:
        bson.decode(body, ANY)
    except Exception:
        return False
    return True


def test_the_generator_is_repeatable():
    import random

    def commands(seed):
        generator = Generator(random.Random(seed))
        return [encode(generator.mutated(generator.command(["ping"]), 0.05) or Pairs()) for _ in range(30)]

    assert op_msg({"ping": 1})
    assert [len(c) for c in commands(5)] == [len(c) for c in commands(5)]
