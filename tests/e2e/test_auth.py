"""Logging in with a password, and rights: `--auth` seen from a driver."""

import pytest
from harness import DidNotStart, Raw
from pymongo.errors import OperationFailure

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


def test_the_first_user_is_made_from_this_machine_and_only_the_first(start):
    server = start(None, "--auth")
    anybody = server.client()
    refused(13, anybody.test.c.find_one)
    refused(13, anybody.test.command, "createUser", "u", pwd="p", roles=[])
    anybody.admin.command("createUser", "root", pwd="secret", roles=["root"])
    refused(13, anybody.admin.command, "createUser", "other", pwd="p", roles=["root"])
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
