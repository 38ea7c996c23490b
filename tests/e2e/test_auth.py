"""Logging in with a password, and rights: `--auth` seen from a driver."""

import base64
import hashlib
import hmac
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
import zlib

import bson
import pymongo
import pytest
from harness import BIN, OP_COMPRESSED, OP_MSG, OP_QUERY, DidNotStart, Raw, eventually, message, op_msg, section
from harness import ROOT as REPO
from pymongo.errors import OperationFailure, PyMongoError

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}


def refused(code, act, *args, **kwargs):
    with pytest.raises(OperationFailure) as caught:
        act(*args, **kwargs)
    assert caught.value.code == code, caught.value


@pytest.fixture
def auth(start):
    """A server that asks for rights, with its first user made by the localhost exception."""
    server = start(None, "--auth")
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    return server


def user(server, name, *roles, db="test", **options):
    root = server.client(**ROOT)
    root[db].command("createUser", name, pwd=f"{name} password", roles=list(roles), **options)
    return server.client(username=name, password=f"{name} password", authSource=db)


def log_in(raw, name, password, db="test"):
    """SCRAM-SHA-256 by hand, on a socket whose commands no driver touches; returns the server's answer."""
    bare = f"n={name},r=rOprNGfwEbeRWgbNEkqO"
    start = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": f"n,,{bare}".encode()}
    answer = raw.command({**start, "options": {"skipEmptyExchange": True}, "$db": db})
    first = answer["payload"].decode()
    nonce, salt, iterations = (part.split("=", 1)[1] for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    without_proof = f"c=biws,r={nonce}"
    key = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(key).digest()
    signature = hmac.digest(stored, f"{bare},{first},{without_proof}".encode(), "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    last = f"{without_proof},p={proof}".encode()
    return raw.command({"saslContinue": 1, "conversationId": 1, "payload": last, "$db": db})


def as_user(server, name):
    """A raw socket on which `user` of that name is logged in."""
    raw = server.raw()
    answer = log_in(raw, name, f"{name} password")
    assert answer["ok"] == 1.0 and answer["done"], answer
    return raw


def test_the_first_user_is_made_from_this_machine_and_only_the_first(start):
    server = start(None, "--auth")
    anybody = server.client()
    refused(13, anybody.test.c.find_one)
    refused(13, anybody.test.command, "createUser", "u", pwd="p", roles=[])
    anybody.admin.command("createUser", "root", pwd="secret", roles=["root"])
    refused(13, anybody.admin.command, "createUser", "other", pwd="p", roles=["root"])
    refused(13, anybody.admin.command, "createRole", "other", privileges=[], roles=[])
    refused(13, anybody.admin.command, "usersInfo", 1)
    assert server.client(**ROOT).test.c.count_documents({}) == 0


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", None])
def test_mechanisms(auth, mechanism):
    options = {"authMechanism": mechanism} if mechanism else {}
    client = auth.client(**ROOT, **options)
    status = client.admin.command("connectionStatus")["authInfo"]
    assert status["authenticatedUsers"] == [{"user": "root", "db": "admin"}]
    assert status["authenticatedUserRoles"] == [{"role": "root", "db": "admin"}]
    wrong = auth.client(**{**ROOT, "password": "Secret"}, **options)
    refused(18, wrong.admin.command, "ping")


def test_unknown_user_and_wrong_password_look_alike(auth):
    def failure(name):
        with pytest.raises(OperationFailure) as caught:
            auth.client(username=name, password="wrong", authSource="admin").admin.command("ping")
        return caught.value.code, caught.value.details["errmsg"]

    assert failure("root") == failure("nobody") == (18, "Authentication failed.")
    hello = {"hello": 1, "$db": "admin"}
    with auth.raw() as raw:
        asked = [raw.command({**hello, "saslSupportedMechs": f"admin.{name}"}) for name in ("root", "nobody")]
    assert asked[0]["saslSupportedMechs"] == asked[1]["saslSupportedMechs"] == ["SCRAM-SHA-1", "SCRAM-SHA-256"]


def test_a_user_may_have_one_mechanism(auth):
    client = user(auth, "u", "read", mechanisms=["SCRAM-SHA-1"])
    assert client.test.c.find_one() is None
    modern = auth.client(
        username="u", password="u password", authSource="test", authMechanism="SCRAM-SHA-256"
    )
    refused(18, modern.test.command, "ping")


def test_passwords_are_prepared(auth):
    root = auth.client(**ROOT)
    root.admin.command("createUser", "IX", pwd="I\u00adX", roles=[])
    for password in ("IX", "\u2168", "I\u00adX"):
        client = auth.client(username="IX", password=password, authSource="admin", authMechanism="SCRAM-SHA-256")
        assert client.admin.command("ping")["ok"] == 1.0


def test_other_mechanisms_are_refused_by_name(auth):
    with auth.raw() as raw:
        for mechanism in ("PLAIN", "GSSAPI", "MONGODB-AWS"):
            answer = raw.command({"saslStart": 1, "mechanism": mechanism, "payload": b"x", "$db": "admin"})
            assert answer["code"] == 334 and mechanism in answer["errmsg"]
        answer = raw.command({"saslContinue": 1, "conversationId": 1, "payload": b"", "$db": "admin"})
        assert answer["code"] == 17


def test_logout(auth):
    with auth.raw() as raw:
        assert raw.command({"logout": 1, "$db": "admin"})["ok"] == 1.0
        assert raw.command({"find": "c", "$db": "test"})["code"] == 13


def test_read_and_write_end_where_the_role_does(auth):
    reader, writer = user(auth, "reader", "read"), user(auth, "writer", "readWrite")
    writer.test.c.insert_one({"_id": 1})
    assert reader.test.c.find_one() == {"_id": 1}
    refused(13, reader.test.c.insert_one, {"_id": 2})
    refused(13, reader.test.c.update_one, {}, {"$set": {"a": 1}})
    refused(13, reader.test.c.delete_one, {})
    refused(13, reader.test.c.create_index, "a")
    refused(13, reader.test.c.drop)
    refused(13, reader.other.c.find_one)
    refused(13, writer.other.c.insert_one, {})
    refused(13, writer.admin.system.users.find_one)
    refused(13, writer.test.command, "createUser", "x", pwd="x", roles=[])


def test_each_namespace_of_a_pipeline_is_asked_for(auth):
    client = user(auth, "u", "read")
    root = auth.client(**ROOT)
    root.other.c.insert_one({"_id": 1})
    root.test.c.insert_one({"_id": 1})
    into = {"db": "other", "coll": "d"}
    for stages in ([{"$out": into}], [{"$merge": {"into": into}}]):
        refused(13, client.test.c.aggregate, stages)
    refused(13, client.test.c.aggregate, [{"$merge": {"into": "d"}}])
    refused(13, client.admin.command, {"explain": {"aggregate": "c", "pipeline": [], "cursor": {}}})


def test_a_view_needs_no_right_on_what_it_is_on(auth):
    root = auth.client(**ROOT)
    root.test.c.insert_one({"_id": 1, "secret": 2})
    root.test.command("create", "v", viewOn="c", pipeline=[{"$project": {"secret": 0}}])
    on = {"db": "test", "collection": "v"}
    root.test.command("createRole", "onView", privileges=[{"resource": on, "actions": ["find"]}], roles=[])
    client = user(auth, "u", "onView")
    assert client.test.v.find_one() == {"_id": 1}
    refused(13, client.test.c.find_one)


def test_rights_change_while_logged_in(auth):
    client = user(auth, "u")
    root = auth.client(**ROOT)
    refused(13, client.test.c.find_one)
    root.test.command("grantRolesToUser", "u", roles=["read"])
    assert client.test.c.find_one() is None
    root.test.command("revokeRolesFromUser", "u", roles=["read"])
    refused(13, client.test.c.find_one)
    root.test.command("createRole", "r", privileges=[], roles=["read"])
    root.test.command("grantRolesToUser", "u", roles=["r"])
    assert client.test.c.find_one() is None
    root.test.command("dropRole", "r")
    refused(13, client.test.c.find_one)
    root.test.command("dropUser", "u")
    refused(13, client.test.c.find_one)


def test_users_are_stored_as_mongodb_does(auth):
    user(auth, "u", "read", {"role": "dbAdmin", "db": "other"}, customData={"a": 1})
    root = auth.client(**ROOT)
    stored = root.admin.system.users.find_one({"_id": "test.u"})
    assert list(stored) == ["_id", "userId", "user", "db", "credentials", "customData", "roles"]
    assert stored["roles"] == [{"role": "read", "db": "test"}, {"role": "dbAdmin", "db": "other"}]
    sha256 = stored["credentials"]["SCRAM-SHA-256"]
    assert list(sha256) == ["iterationCount", "salt", "storedKey", "serverKey"]
    assert sha256["iterationCount"] == 15000
    assert stored["credentials"]["SCRAM-SHA-1"]["iterationCount"] == 10000
    shown = root.test.command("usersInfo", "u")["users"][0]
    assert "credentials" not in shown and shown["mechanisms"] == ["SCRAM-SHA-1", "SCRAM-SHA-256"]


def test_cursors_are_of_who_opened_them(auth):
    root, other = auth.client(**ROOT), user(auth, "u", "read")
    root.test.c.insert_many([{"_id": i} for i in range(10)])
    cursor = root.test.command("find", "c", batchSize=2)["cursor"]["id"]
    refused(13, other.test.command, "getMore", cursor, collection="c")
    refused(13, other.test.command, "killCursors", "c", cursors=[cursor])
    assert len(root.test.command("getMore", cursor, collection="c")["cursor"]["nextBatch"]) == 8


def test_lists_show_what_there_are_rights_on(auth):
    root, client = auth.client(**ROOT), user(auth, "u", "read")
    root.test.c.insert_one({})
    root.other.c.insert_one({})
    assert client.list_database_names() == ["test"]
    assert set(root.list_database_names()) >= {"admin", "other", "test"}
    refused(13, client.other.list_collection_names)
    own = client.other.command("listCollections", nameOnly=True, authorizedCollections=True)
    assert own["cursor"]["firstBatch"] == []


def test_passwords_are_seen_nowhere(auth):
    root = auth.client(**ROOT)
    root.test.command("profile", 2)
    user(auth, "u", "read")
    assert root.test["system.profile"].count_documents({"command.pwd": {"$exists": True}}) == 0
    auth.log.seek(0)
    assert "u password" not in auth.log.read()


def test_listening_beyond_this_machine_needs_auth(start):
    with pytest.raises(DidNotStart) as caught:
        start(None, "--bind_ip_all")
    assert "--insecure-no-auth" in str(caught.value)
    for flag in ("--auth", "--insecure-no-auth"):
        server = start(None, "--bind_ip_all", flag)
        with Raw(("127.0.0.1", server.port)) as raw:
            assert raw.command({"ping": 1, "$db": "admin"})["ok"] == 1.0


def test_the_first_user_can_be_kept_from_being_made_by_whoever_is_here(start):
    server = start(None, "--auth", "--setParameter", "enableLocalhostAuthBypass=false")
    refused(13, server.client().admin.command, "createUser", "root", pwd="secret", roles=["root"])


def test_a_role_ends_the_exception_too(start):
    """Manual, "Localhost Exception": it applies as long as there are neither users nor roles."""
    anybody = start(None, "--auth").client()
    anybody.admin.command("createRole", "r", privileges=[], roles=["root"])
    refused(13, anybody.admin.command, "createUser", "root", pwd="secret", roles=["root"])


def test_the_environment_names_the_first_user(start, tmp_path):
    (tmp_path / "password").write_text("from a file\n")
    env = {
        "MONGO_INITDB_ROOT_USERNAME": "boss",
        "MONGO_INITDB_ROOT_PASSWORD_FILE": str(tmp_path / "password"),
    }
    server = start(tmp_path / "data", env=env)
    boss = {"username": "boss", "authSource": "admin"}
    refused(13, server.client().test.c.find_one)
    client = server.client(password="from a file", **boss)
    assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUserRoles"] == [
        {"role": "root", "db": "admin"}
    ]
    options = client.admin.command("getCmdLineOpts")
    assert options["parsed"]["security"]["authorization"] == "enabled"
    # It names the first user; what became of that user since is nobody's business.
    client.admin.command("updateUser", "boss", pwd="changed")
    server.restart()
    assert server.client(password="changed", **boss).test.c.count_documents({}) == 0
    assert "from a file" not in server.said()
    with pytest.raises(DidNotStart) as caught:
        start(None, env={"MONGO_INITDB_ROOT_USERNAME": "boss"})
    assert "MONGO_INITDB_ROOT_PASSWORD" in str(caught.value)


def test_what_a_container_runs_first(tmp_path):
    """The files of /docker-entrypoint-initdb.d run once, before anybody else can connect."""
    scripts, data = tmp_path / "initdb.d", tmp_path / "data"
    scripts.mkdir()
    (scripts / "10-fill.sh").write_text(
        f"{sys.executable} - <<'END'\n"
        "import os, pymongo\n"
        "client = pymongo.MongoClient('127.0.0.1', int(os.environ['NESTOR_PORT']))\n"
        "client[os.environ['MONGO_INITDB_DATABASE']].runs.insert_one({})\n"
        "END\n"
    )
    (scripts / "README").write_text("It is neither.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ,
        "PATH": f"{os.path.dirname(BIN)}:{os.environ['PATH']}",
        "NESTOR_INITDB_DIR": str(scripts),
        "MONGO_INITDB_ROOT_USERNAME": "root",
        "MONGO_INITDB_ROOT_PASSWORD": "secret",
        "MONGO_INITDB_DATABASE": "first",
    }
    command = [str(REPO / "scripts/docker-entrypoint"), "--dbpath", str(data), "--port", str(port), "--nounixsocket"]
    for _ in range(2):
        with open(tmp_path / "log", "a") as log:
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            options = {"directConnection": True, "serverSelectionTimeoutMS": 1000}
            client = pymongo.MongoClient("127.0.0.1", port, **ROOT, **options)

            def runs(client=client):
                assert process.poll() is None, (tmp_path / "log").read_text()
                try:
                    options = client.admin.command("getCmdLineOpts")
                    return "noauth" not in str(options["argv"]) and client.first.runs.count_documents({})
                except PyMongoError:
                    return 0

            eventually(runs, timeout=60, what="the server")
            assert runs() == 1
            with pymongo.MongoClient("127.0.0.1", port, **options) as anybody:
                refused(13, anybody.first.runs.find_one)
            client.close()
        finally:
            process.terminate()
            assert process.wait(30) == 0
    assert (tmp_path / "log").read_text().count("running ") == 1


def test_key_file(start, tmp_path):
    """Members of a cluster and tools log in by the key, as __system of database local, who may do everything."""
    file = tmp_path / "key"
    file.write_text("c2VjcmV0 IGtleQ==\n")
    file.chmod(0o644)
    with pytest.raises(DidNotStart) as caught:
        start(None, "--keyFile", file)
    assert "permissions" in str(caught.value)
    file.chmod(0o400)
    server = start(None, "--keyFile", file)
    refused(13, server.client().test.c.find_one)
    for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
        internal = {"username": "__system", "authSource": "local", "authMechanism": mechanism}
        client = server.client(password="c2VjcmV0IGtleQ==", **internal)
        client.test.c.insert_one({})
        client.admin.command("applyOps", [])
        refused(18, server.client(password="c2VjcmV0", **internal).admin.command, "ping")


def test_failures_take_their_time_and_others_do_not_wait(auth):
    client = auth.client(**ROOT)
    client.admin.command("ping")

    def fail(name):
        begun = time.monotonic()
        with auth.raw() as raw:
            answer = log_in(raw, name, "wrong", "admin")
        assert answer["code"] == 18 and answer["errmsg"] == "Authentication failed."
        return time.monotonic() - begun

    assert fail("root") > 0.19 and fail("nobody") > 0.19
    threads = [threading.Thread(target=fail, args=("root",)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        client.admin.command("ping")
    for thread in threads:
        thread.join(20)
    client.admin.command("setParameter", 1, authFailedDelayMs=0)
    assert client.admin.command("getParameter", 1, authFailedDelayMs=1)["authFailedDelayMs"] == 0


def test_a_failed_exchange_is_over(auth):
    with auth.raw() as raw:
        assert log_in(raw, "root", "wrong", "admin")["code"] == 18
        again = raw.command({"saslContinue": 1, "conversationId": 1, "payload": b"", "$db": "admin"})
        assert again["code"] == 17
        assert raw.command({"find": "c", "$db": "test"})["code"] == 13
        assert log_in(raw, "root", "secret", "admin")["done"]
        assert raw.command({"find": "c", "$db": "test"})["ok"] == 1.0


def test_only_one_user_at_a_time(auth):
    user(auth, "u", "read")
    with as_user(auth, "u") as raw:
        assert log_in(raw, "root", "secret", "admin")["code"] == 17
        raw.command({"logout": 1, "$db": "test"})
        assert log_in(raw, "root", "secret", "admin")["done"]


def test_restrictions(auth):
    """Manual, "createUser", "Authentication Restrictions": of the user and of all roles, inherited ones too."""
    root = auth.client(**ROOT)
    here, elsewhere = {"clientSource": ["127.0.0.0/8"]}, {"clientSource": ["10.0.0.0/8"]}
    test = root.test
    test.command("createUser", "u", pwd="p", roles=["read"], authenticationRestrictions=[elsewhere])
    options = {"username": "u", "password": "p", "authSource": "test"}
    refused(18, auth.client(**options).test.c.find_one)
    test.command("updateUser", "u", authenticationRestrictions=[elsewhere, here])
    client = auth.client(**options)
    assert client.test.c.find_one() is None
    test.command("createRole", "r", privileges=[], roles=[], authenticationRestrictions=[elsewhere])
    test.command("grantRolesToUser", "u", roles=["r"])
    # Who is logged in meanwhile is so no more.
    refused(13, client.test.c.find_one)
    refused(18, auth.client(**options).test.c.find_one)
    shown = test.command("usersInfo", "u", showAuthenticationRestrictions=True)["users"][0]
    assert shown["authenticationRestrictions"] == [elsewhere, here]
    assert shown["inheritedAuthenticationRestrictions"] == [[elsewhere, here], [elsewhere]]
    role = test.command("rolesInfo", "r", showAuthenticationRestrictions=True)["roles"][0]
    assert role["authenticationRestrictions"] == [elsewhere]
    test.command("updateRole", "r", authenticationRestrictions=[{**here, "serverAddress": ["127.0.0.1"]}])
    assert auth.client(**options).test.c.find_one() is None
    for wrong in ([{}], [{"clientSource": ["nowhere"]}], [{"from": []}], [1]):
        with pytest.raises(OperationFailure):
            test.command("updateUser", "u", authenticationRestrictions=wrong)
    test.command("dropRole", "r")
    test.command("updateUser", "u", authenticationRestrictions=[])
    assert "authenticationRestrictions" not in root.admin.system.users.find_one({"user": "u"})


def test_sessions_are_of_users(auth):
    """Two users who send the same id share no session, no transaction, no retried write."""
    user(auth, "a", "readWrite")
    user(auth, "b", "readWrite")
    lsid = {"id": bson.Binary.from_uuid(uuid.uuid4())}
    root = auth.client(**ROOT)
    root.test.create_collection("c")
    with as_user(auth, "a") as a, as_user(auth, "b") as b:
        number = {"lsid": lsid, "txnNumber": bson.Int64(1), "$db": "test"}
        begin = {**number, "autocommit": False, "startTransaction": True}
        end = {**number, "$db": "admin", "autocommit": False}
        assert a.command({"insert": "c", "documents": [{"_id": 1}], **begin})["ok"] == 1.0
        assert b.command({"find": "c", **number, "autocommit": False})["code"] == 251
        assert b.command({"commitTransaction": 1, **end})["code"] == 251
        assert b.command({"abortTransaction": 1, **end})["code"] == 251
        assert b.command({"insert": "c", "documents": [{"_id": 2}], **begin})["ok"] == 1.0
        for command in ("endSessions", "killSessions"):
            assert b.command({command: [lsid], "$db": "admin"})["ok"] == 1.0
        assert b.command({"commitTransaction": 1, **end})["code"] == 251
        assert b.command({"killSessions": [], "$db": "admin"})["ok"] == 1.0
        assert a.command({"commitTransaction": 1, **end})["ok"] == 1.0
        assert [doc["_id"] for doc in root.test.c.find()] == [1]
        # A retry answers what was done before; somebody else's statement of the same number is none.
        retried = {"insert": "c", "documents": [{"_id": "r"}], **number, "txnNumber": bson.Int64(9)}
        assert a.command(retried)["n"] == a.command(retried)["n"] == 1
        assert b.command(retried)["writeErrors"][0]["code"] == 11000
        stolen = {**lsid, "uid": hashlib.sha256(b"a@test").digest()}
        assert b.command({"ping": 1, "lsid": stolen, "$db": "test"})["code"] == 13
        assert b.command({"killSessions": [stolen], "$db": "admin"})["code"] == 13
        assert a.command({"ping": 1, "lsid": stolen, "$db": "test"})["ok"] == 1.0


def test_lists_of_sessions(auth):
    user(auth, "a", "read")
    user(auth, "b", "read")
    root = auth.client(**ROOT)
    digest = {name: hashlib.sha256(f"{name}@test".encode()).digest() for name in "ab"}
    lsid = {"id": bson.Binary.from_uuid(uuid.uuid4())}

    def listed(raw, **options):
        stage = {"$listLocalSessions": options}
        reply = raw.command({"aggregate": 1, "pipeline": [stage], "cursor": {}, "$db": "test"})
        return [(row["_id"]["uid"], row["user"]) for row in reply["cursor"]["firstBatch"]]

    with as_user(auth, "a") as a, as_user(auth, "b") as b:
        for raw in (a, b):
            raw.command({"refreshSessions": [lsid], "$db": "admin"})
        assert listed(a) == [(digest["a"], "a@test")]
        assert listed(b) == [(digest["b"], "b@test")]
        everybodys = {"aggregate": 1, "pipeline": [{"$listLocalSessions": {"allUsers": True}}], "cursor": {}}
        assert a.command({**everybodys, "$db": "test"})["code"] == 13

        def owners():
            return {row["_id"]["uid"] for row in root.test.aggregate(everybodys["pipeline"])}

        assert set(digest.values()) <= owners()
        root.admin.command("killAllSessions", [{"user": "a", "db": "test"}])
        assert digest["a"] not in owners() and digest["b"] in owners()
        root.admin.command("killAllSessionsByPattern", [{"uid": digest["b"]}])
        assert digest["b"] not in owners()
        refused(13, root.admin.command, "killAllSessionsByPattern", [{"users": [], "roles": []}])


def test_operations_are_of_users(auth):
    """currentOp and killOp need no right for one's own."""
    user(auth, "a", "read")
    other = user(auth, "b", "read")
    root = auth.client(**ROOT)
    root.test.c.insert_many([{"_id": i} for i in range(100)])
    slow = {"$match": {"$expr": {"$gt": [{"$sum": {"$range": [0, 100000]}}, 0]}}}
    ended = []
    with as_user(auth, "a") as victim, as_user(auth, "a") as same:

        def run():
            spin = {"aggregate": "c", "pipeline": [slow] * 50, "cursor": {}, "comment": "spin", "$db": "test"}
            ended.append(victim.command(spin))

        def own(raw, command):
            rows = raw.command(command)
            rows = rows["inprog"] if "inprog" in rows else rows["cursor"]["firstBatch"]
            return [row for row in rows if row.get("command", {}).get("comment") == "spin"]

        current = {"currentOp": 1, "$ownOps": True, "$db": "admin"}
        stage = {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "$db": "admin"}
        thread = threading.Thread(target=run)
        thread.start()
        try:
            eventually(lambda: own(same, current), what="the operation")
            (shown,) = own(same, stage)
            assert shown["effectiveUsers"] == [{"user": "a", "db": "test"}]
            assert other.admin.command("currentOp", 1, **{"$ownOps": True, "command.comment": "spin"})["inprog"] == []
            rows = other.admin.aggregate([{"$currentOp": {}}])
            assert all(row["effectiveUsers"] == [{"user": "b", "db": "test"}] for row in rows)
            refused(13, other.admin.command, "currentOp", 1)
            refused(13, other.admin.command, "killOp", 1, op=shown["opid"])
            refused(13, other.admin.command, "killOp", 1, op=123456789)
            assert thread.is_alive()
        finally:
            kill = {"killOp": 1, "op": shown["opid"], "$db": "admin"}
            assert same.command(kill)["ok"] == 1.0
            thread.join(60)
    assert ended[0]["code"] == 11601


def test_cursors_end_with_the_login(auth):
    root = auth.client(**ROOT)
    user(auth, "u", "read")
    root.test.c.insert_many([{"_id": i} for i in range(10)])
    more = {"collection": "c", "$db": "test"}
    with as_user(auth, "u") as raw:
        opened = raw.command({"find": "c", "batchSize": 2, "$db": "test"})["cursor"]["id"]
        assert raw.command({"getMore": opened, "batchSize": 1, **more})["ok"] == 1.0
        raw.command({"logout": 1, "$db": "test"})
        assert raw.command({"getMore": opened, **more})["code"] == 13
        assert raw.command({"killCursors": "c", "cursors": [opened], "$db": "test"})["code"] == 13
        log_in(raw, "u", "u password")
        # Another user of the same name is another user.
        root.test.command("dropUser", "u")
        root.test.command("createUser", "u", pwd="u password", roles=["read"])
        assert raw.command({"getMore": opened, **more})["code"] == 13


def test_nobody_says_much_before_logging_in(auth):
    """What is large, be it only once inflated, ends the connection of whoever has not logged in."""
    body = {"ping": 1, "$db": "admin", "comment": "x" * 100_000}
    plain = op_msg(body)
    inflated = struct.pack("<I", 0) + section(body)
    packed = struct.pack("<iiB", OP_MSG, len(inflated), 2) + zlib.compress(inflated)
    for data in (plain, message(OP_COMPRESSED, packed), struct.pack("<iiii", 48_000_000, 1, 0, OP_MSG)):
        with auth.raw() as raw:
            raw.send(data)
            assert raw.is_closed()
    user(auth, "u", "read")
    with as_user(auth, "u") as raw:
        raw.send(message(OP_COMPRESSED, packed))
        assert raw.receive()[0] == OP_COMPRESSED
        assert raw.command(body)["ok"] == 1.0


def test_nobody_gets_in_by_other_ways(auth):
    """OP_QUERY, exhaust, speculative authentication, document sequences: the same rules for all."""
    with auth.raw() as raw:
        query = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1)
        raw.send(message(OP_QUERY, query + bson.encode({"serverStatus": 1})))
        reply = bson.decode(raw.receive()[3][20:])
        assert reply["ok"] == 0.0
        assert raw.command({"find": "c", "$db": "test"}, flags=1 << 16)["code"] == 13
        assert raw.command({"insert": "c", "documents": [{}], "$db": "test"})["code"] == 13
        assert raw.command({"getMore": bson.Int64(1), "collection": "c", "$db": "test"})["code"] == 13
        assert raw.command({"listDatabases": 1, "$db": "admin"})["code"] == 13
        speculative = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=root,r=abc", "db": "admin"}
        hello = raw.command({"hello": 1, "speculativeAuthenticate": speculative, "$db": "admin"})
        assert not hello["speculativeAuthenticate"]["done"]
        empty = {"saslContinue": 1, "conversationId": 1, "payload": b"", "$db": "admin"}
        assert raw.command(empty)["code"] == 18
        assert raw.command({"find": "c", "$db": "test"})["code"] == 13
    for payload in (b"", b"n,,n=root", os.urandom(50), b"n,,n=root,r=" + b"x" * 5000):
        with auth.raw() as raw:
            start = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload, "$db": "admin"}
            assert raw.command(start)["code"] == 18
    # Sessions are of users: nobody makes one.
    root = auth.client(**ROOT)
    nobody = hashlib.sha256(b"").digest()
    with auth.raw() as raw:
        raw.command({"ping": 1, "lsid": {"id": bson.Binary.from_uuid(uuid.uuid4())}, "$db": "admin"})
    listed = root.test.aggregate([{"$listLocalSessions": {"allUsers": True}}])
    assert all(row["_id"]["uid"] != nobody for row in listed)


def test_messages_that_never_end_keep_nobody_out(auth):
    halves = [auth.raw() for _ in range(50)]
    try:
        for raw in halves:
            raw.send(op_msg({"ping": 1, "$db": "admin"})[:20])
        assert auth.client(**ROOT).admin.command("ping")["ok"] == 1.0
    finally:
        for raw in halves:
            raw.close()


def test_malformed_commands_do_not_show_passwords(auth):
    root = auth.client(**ROOT)
    root.admin.command("setParameter", 1, logLevel=5)
    root.admin.command("profile", 2)
    secret = "do not show me"
    for wrong in (
        {"createUser": "u", "pwd": secret, "roles": ["nothing"]},
        {"createUser": "u", "pwd": secret, "roles": [], "unknown": 1},
        {"createUser": "u", "pwd": secret},
        {"createUser": 1, "pwd": secret, "roles": []},
        {"createUser": "u", "pwd": {"x": secret}, "roles": []},
        {"createUser": "u", "pwd": secret, "roles": [], "maxTimeMS": "x"},
        {"updateUser": "nobody", "pwd": secret},
        {"explain": {"createUser": "u", "pwd": secret, "roles": []}},
        {"createUser": "u", "pwd": secret, "roles": [], "mechanisms": ["PLAIN"]},
    ):
        with pytest.raises(PyMongoError) as caught:
            root.test.command(wrong)
        assert secret not in str(caught.value), wrong
    assert secret not in auth.said()
    for row in root.admin["system.profile"].find():
        assert secret not in str(row)


def test_challenges_say_nothing_of_who_there_is(auth):
    """Whoever is asked for gets a salt of the same length and the iterations of passwords that are set now."""
    root = auth.client(**ROOT)
    counts = {"SCRAM-SHA-1": 6000, "SCRAM-SHA-256": 7000}
    root.admin.command("setParameter", 1, scramIterationCount=6000, scramSHA256IterationCount=7000)
    root.admin.command("createUser", "u", pwd="p", roles=[])

    def challenge(name, mechanism):
        with auth.raw() as raw:
            payload = f"n,,n={name},r=abcdef".encode()
            answer = raw.command({"saslStart": 1, "mechanism": mechanism, "payload": payload, "$db": "admin"})
            _, salt, iterations = answer["payload"].decode().split(",")
            return len(salt), iterations

    for mechanism, count in counts.items():
        assert challenge("u", mechanism) == challenge("nobody", mechanism)
        assert challenge("nobody", mechanism)[1] == f"i={count}"


def test_iterations_can_be_set(auth):
    root = auth.client(**ROOT)
    root.admin.command("setParameter", 1, scramIterationCount=6000, scramSHA256IterationCount=7000)
    user(auth, "u", "read")
    stored = root.admin.system.users.find_one({"user": "u"})["credentials"]
    assert stored["SCRAM-SHA-1"]["iterationCount"] == 6000
    assert stored["SCRAM-SHA-256"]["iterationCount"] == 7000
    refused(2, root.admin.command, "setParameter", 1, scramIterationCount=4999)
    assert root.admin.command("getParameter", 1, authenticationMechanisms=1)["authenticationMechanisms"] == [
        "SCRAM-SHA-1",
        "SCRAM-SHA-256",
    ]


def test_users_and_roles_can_be_copied_as_documents(auth, start):
    """mongorestore writes to admin.system.users and admin.system.roles; what it writes counts at once."""
    root = auth.client(**ROOT)
    root.test.command("createRole", "r", privileges=[], roles=["read"])
    user(auth, "u", "r")
    version = root.admin.system.version.find_one({"_id": "authSchema"})
    assert version == {"_id": "authSchema", "currentVersion": 5}
    users, roles = list(root.admin.system.users.find()), list(root.admin.system.roles.find())
    other = start(None, "--auth")
    other.client().admin.command("createUser", "root", pwd="other", roles=["root"])
    copying = other.client(username="root", password="other", authSource="admin")
    copying.admin.system.users.insert_many([row for row in users if row["user"] != "root"])
    # Nobody but the server itself writes to the collection of roles, unless a role of one's own says so.
    refused(13, copying.admin.system.roles.insert_many, roles)
    on = {"db": "admin", "collection": "system.roles"}
    copying.admin.command("createRole", "copier", privileges=[{"resource": on, "actions": ["insert"]}], roles=[])
    copying.admin.command("grantRolesToUser", "root", roles=["copier"])
    copying.admin.system.roles.insert_many(roles)
    client = other.client(username="u", password="u password", authSource="test")
    assert client.test.c.find_one() is None
    refused(13, client.test.c.insert_one, {})


def test_users_and_roles_are_merged_as_mongorestore_asks(auth):
    """It writes them to collections of its own and asks for `_mergeAuthzCollections`; role restore is enough."""
    root = auth.client(**ROOT)
    root.test.command("createRole", "r", privileges=[], roles=["read"])
    user(auth, "old", "r")
    root.admin.command("createUser", "restorer", pwd="p", roles=["restore"])
    temporary = {"tempUsersCollection": "admin.tempusers", "tempRolesCollection": "admin.temproles"}
    stored = root.admin.system.users.find_one({"_id": "test.old"})
    kept = [row for row in root.admin.system.users.find() if row["db"] == "admin"]
    restorer = auth.client(username="restorer", password="p", authSource="admin").admin
    restorer.tempusers.insert_many([*kept, {**stored, "_id": "test.new", "user": "new"}])
    restorer.temproles.insert_one({"_id": "test.s", "role": "s", "db": "test", "privileges": [], "roles": []})
    restorer.command("_mergeAuthzCollections", 1, **temporary, db="", drop=False)
    assert {row["_id"] for row in root.admin.system.users.find({"db": "test"})} == {"test.old", "test.new"}
    restorer.command("_mergeAuthzCollections", 1, **temporary, db="", drop=True)
    assert {row["_id"] for row in root.admin.system.users.find({"db": "test"})} == {"test.new"}
    assert {row["_id"] for row in root.admin.system.roles.find()} == {"test.s"}
    assert root.admin.command("ping")["ok"] == 1.0
    refused(13, user(auth, "u", "read").admin.command, "_mergeAuthzCollections", 1, **temporary)
    root.admin.tempusers.insert_one({"_id": "x"})
    refused(2, root.admin.command, "_mergeAuthzCollections", 1, **temporary)
