"""Each command needs its rights, all of them, on every namespace that it touches: with exactly these it runs, without one it does not.

Source: manual, "Required Access" or "Access Control" of each command and stage.
"""

import harness
import pytest
from pymongo import DeleteOne, InsertOne, UpdateOne
from pymongo.errors import OperationFailure

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
# So that hashing passwords takes no time.
FLAGS = ("--auth", "--setParameter", "scramIterationCount=5000", "--setParameter", "scramSHA256IterationCount=5000")


@pytest.fixture(scope="module")
def rights(tmp_path_factory):
    """The server, a client of root, and one of a user whose only role is admin.r."""
    env = {"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD": "secret"}
    with harness.Server(None, *FLAGS, env=env) as server:
        root = server.client(**ROOT)
        root.admin.command("createRole", "r", privileges=[], roles=[])
        root.admin.command("createUser", "u", pwd="p", roles=["r"])
        user = server.client(username="u", password="p", authSource="admin", retryWrites=False)
        user.admin.command("ping")
        yield server, root, user
        server.stop()


def fill(root):
    for name in ("t", "o"):
        root.drop_database(name)
        for coll in ("c", "x", "y"):
            root[name][coll].insert_many([{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 2, "b": 1}])
    root.t.command("create", "v", viewOn="c", pipeline=[{"$lookup": {"from": "x", "as": "x", "pipeline": []}}])
    root.t.c.create_index("a")


def grant(root, privileges):
    given = []
    for on, action in privileges:
        resource = {"cluster": True} if on == "cluster" else dict(zip(("db", "collection"), on.split(".", 1), strict=True))
        given.append({"resource": resource, "actions": [action]})
    root.admin.command("updateRole", "r", privileges=given)


def aggregate(*stages, coll="c", **options):
    return lambda client: list(client.t[coll].aggregate(list(stages), **options))


def command(*words, db="t", **options):
    return lambda client: client[db].command(*words, **options)


def write(*requests, coll="c", **options):
    return lambda client: client.t[coll].bulk_write(list(requests), **options)


def in_transaction(client):
    with client.start_session() as session, session.start_transaction():
        client.t.c.insert_one({"_id": 3}, session=session)
        client.t.x.find_one({}, session=session)


def watch(target):
    def act(client):
        with target(client).watch() as stream:
            stream.try_next()

    return act


def lookup(coll, *stages):
    return {"$lookup": {"from": coll, "as": "z", "pipeline": list(stages)}}


GRAPH = {"from": "x", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "z"}
C, X, Y, V, O, N = "t.c", "t.x", "t.y", "t.v", "o.out", "t.n"

CASES = {
    "find": ([(C, "find")], command("find", "c")),
    "count": ([(C, "find")], command("count", "c")),
    "distinct": ([(C, "find")], command("distinct", "c", key="a")),
    "aggregate": ([(C, "find")], aggregate({"$match": {}})),
    "a view": ([(V, "find")], command("find", "v")),
    "aggregate of a view": ([(V, "find")], aggregate({"$match": {}}, coll="v")),
    "count of a view": ([(V, "find")], command("count", "v")),
    "$sql": (
        [(C, "find"), (X, "find")],
        command("aggregate", 1, pipeline=[{"$sql": "SELECT c._id FROM c JOIN x ON x._id = c._id"}], cursor={}),
    ),
    "$lookup": ([(C, "find"), (X, "find")], aggregate(lookup("x"))),
    "$lookup of a view": ([(C, "find"), (V, "find")], aggregate(lookup("v"))),
    "$lookup within": ([(C, "find"), (X, "find"), (Y, "find")], aggregate(lookup("x", lookup("y")))),
    "$lookup without find": ([(C, "find")], aggregate(lookup("x"))),
    "$unionWith": ([(C, "find"), (X, "find")], aggregate({"$unionWith": "x"})),
    "$unionWith of a view": ([(C, "find"), (V, "find")], aggregate({"$unionWith": "v"})),
    "$graphLookup": ([(C, "find"), (X, "find")], aggregate({"$graphLookup": GRAPH})),
    "$facet": ([(C, "find"), (X, "find")], aggregate({"$facet": {"z": [lookup("x")]}})),
    "$out": (
        [(C, "find"), (O, "insert"), (O, "remove")],
        aggregate({"$out": {"db": "o", "coll": "out"}}),
    ),
    "$out without validation": (
        [(C, "find"), (O, "insert"), (O, "remove"), (O, "bypassDocumentValidation")],
        aggregate({"$out": {"db": "o", "coll": "out"}}, bypassDocumentValidation=True),
    ),
    "$merge": (
        [(C, "find"), (O, "insert"), (O, "update")],
        aggregate({"$merge": {"into": {"db": "o", "coll": "out"}}}),
    ),
    "$merge that only inserts": (
        [(C, "find"), (O, "insert")],
        aggregate({"$merge": {"into": {"db": "o", "coll": "out"}, "whenMatched": "keepExisting"}}),
    ),
    "$merge that only updates": (
        [(C, "find"), (O, "update")],
        aggregate({"$merge": {"into": {"db": "o", "coll": "out"}, "whenNotMatched": "discard"}}),
    ),
    "$collStats": ([(C, "collStats")], aggregate({"$collStats": {"count": {}}})),
    "$indexStats": ([(C, "indexStats")], aggregate({"$indexStats": {}})),
    "$planCacheStats": ([(C, "planCacheRead")], aggregate({"$planCacheStats": {}})),
    "$currentOp of all": (
        [("cluster", "inprog")],
        lambda client: list(client.admin.aggregate([{"$currentOp": {"allUsers": True}}])),
    ),
    "$listLocalSessions of all": (
        [("cluster", "listSessions")],
        lambda client: list(client.t.aggregate([{"$listLocalSessions": {"allUsers": True}}])),
    ),
    "insert": ([(C, "insert")], write(InsertOne({"_id": 3}))),
    "insert without validation": (
        [(C, "insert"), (C, "bypassDocumentValidation")],
        write(InsertOne({"_id": 3}), bypass_document_validation=True),
    ),
    "update": ([(C, "update")], write(UpdateOne({"_id": 1}, {"$set": {"d": 1}}))),
    "upsert": ([(C, "update"), (C, "insert")], write(UpdateOne({"_id": 9}, {"$set": {"d": 1}}, upsert=True))),
    "a late upsert": (
        [(C, "update"), (C, "insert")],
        write(UpdateOne({"_id": 1}, {"$set": {"d": 1}}), UpdateOne({"_id": 9}, {"$set": {"d": 1}}, upsert=True)),
    ),
    "delete": ([(C, "remove")], write(DeleteOne({"_id": 1}))),
    "findAndModify": (
        [(C, "find"), (C, "update")],
        command("findAndModify", "c", query={"_id": 1}, update={"$set": {"d": 1}}),
    ),
    "findAndModify that inserts": (
        [(C, "find"), (C, "update"), (C, "insert")],
        command("findAndModify", "c", query={"_id": 9}, update={"$set": {"d": 1}}, upsert=True),
    ),
    "findAndModify that removes": (
        [(C, "find"), (C, "remove")],
        command("findAndModify", "c", query={"_id": 1}, remove=True),
    ),
    "bulkWrite": (
        [(C, "insert"), (X, "remove"), (Y, "update")],
        command(
            "bulkWrite",
            1,
            db="admin",
            ops=[
                {"insert": 0, "document": {"_id": 3}},
                {"delete": 1, "filter": {"_id": 1}},
                {"update": 2, "filter": {"_id": 1}, "updateMods": {"$set": {"d": 1}}},
            ],
            nsInfo=[{"ns": "t.c"}, {"ns": "t.x"}, {"ns": "t.y"}],
        ),
    ),
    "explain find": ([(C, "find")], command("explain", {"find": "c"})),
    "explain $lookup": (
        [(C, "find"), (X, "find")],
        command("explain", {"aggregate": "c", "pipeline": [lookup("x")], "cursor": {}}),
    ),
    "explain update": (
        [(C, "update")],
        command("explain", {"update": "c", "updates": [{"q": {}, "u": {"$set": {"d": 1}}}]}),
    ),
    "a transaction": ([(C, "insert"), (X, "find")], in_transaction),
    "changes of a collection": ([(C, "find"), (C, "changeStream")], watch(lambda client: client.t.c)),
    "changes of a database": ([("t.", "find"), ("t.", "changeStream")], watch(lambda client: client.t)),
    "changes of all": ([(".", "find"), (".", "changeStream")], watch(lambda client: client)),
    "create": ([(N, "createCollection")], command("create", "n")),
    "create by the right to insert": ([(N, "insert")], command("create", "n")),
    "create a capped collection": (
        [(N, "createCollection"), (N, "convertToCapped")],
        command("create", "n", capped=True, size=4096),
    ),
    "create a view that cannot be read": ([(N, "createCollection")], command("create", "n", viewOn="c", pipeline=[])),
    "collMod": ([(C, "collMod")], command("collMod", "c", validator={})),
    "drop": ([(C, "dropCollection")], command("drop", "c")),
    "dropDatabase": ([("t.", "dropDatabase")], command("dropDatabase", 1)),
    "rename": ([("t.", "renameCollectionSameDB")], command("renameCollection", C, db="admin", to=N)),
    "rename to another database": (
        [(C, "find"), (C, "dropCollection"), (O, "insert"), (O, "createIndex")],
        command("renameCollection", C, db="admin", to=O),
    ),
    "rename over another": (
        [("t.", "renameCollectionSameDB"), (X, "dropCollection")],
        command("renameCollection", C, db="admin", to=X, dropTarget=True),
    ),
    "cloneCollectionAsCapped": (
        [(C, "find"), (N, "insert"), (N, "createIndex"), (N, "convertToCapped")],
        command("cloneCollectionAsCapped", "c", toCollection="n", size=4096),
    ),
    "convertToCapped": ([(C, "convertToCapped")], command("convertToCapped", "c", size=4096)),
    "createIndexes": ([(C, "createIndex")], command("createIndexes", "c", indexes=[{"key": {"b": 1}, "name": "b"}])),
    "dropIndexes": ([(C, "dropIndex")], command("dropIndexes", "c", index="a_1")),
    "listIndexes": ([(C, "listIndexes")], command("listIndexes", "c")),
    "listCollections": ([("t.", "listCollections")], command("listCollections", 1)),
    "collStats": ([(C, "collStats")], command("collStats", "c")),
    "validate": ([(C, "validate")], command("validate", "c")),
    "dbStats": ([("t.", "dbStats")], command("dbStats", 1)),
    "dbHash": ([("t.", "dbHash")], command("dbHash", 1)),
    "serverStatus": ([("cluster", "serverStatus")], command("serverStatus", 1, db="admin")),
    "users": ([("t.", "viewUser")], command("usersInfo", 1)),
    "createUser": (
        [("t.", "createUser"), ("o.", "grantRole")],
        command("createUser", "new", pwd="p", roles=[{"role": "read", "db": "o"}]),
    ),
    "documents of users": ([("admin.system.users", "find")], command("find", "system.users", db="admin")),
}
# What the name says must fail with the rights that it lists.
NOT_ENOUGH = {"$lookup without find"}


@pytest.mark.parametrize("name", CASES)
def test_exactly_these_rights_are_needed(rights, name):
    _, root, user = rights
    privileges, act = CASES[name]
    fill(root)
    root.t.command("dropAllUsersFromDatabase", 1)
    for left_out in range(len(privileges)):
        grant(root, privileges[:left_out] + privileges[left_out + 1 :])
        with pytest.raises(OperationFailure) as caught:
            act(user)
        assert caught.value.code == 13, (privileges[left_out], caught.value)
    grant(root, privileges)
    if name in NOT_ENOUGH:
        with pytest.raises(OperationFailure) as caught:
            act(user)
        assert caught.value.code == 13
    else:
        act(user)


def test_whoever_may_read_a_view_makes_it_of_what_can_be_read_only(rights):
    """Else `create` would show what the maker may not read."""
    _, root, user = rights
    fill(root)
    create = command("create", "n", viewOn="c", pipeline=[{"$unionWith": "x"}])
    own = [(N, "createCollection"), (N, "find")]
    for given in (own, [*own, (C, "find")], [*own, (X, "find")]):
        grant(root, given)
        with pytest.raises(OperationFailure) as caught:
            create(user)
        assert caught.value.code == 13
    grant(root, [*own, (C, "find"), (X, "find")])
    create(user)
    assert user.t.n.count_documents({}) == 4


def test_a_rename_must_not_make_readable(rights):
    """Whoever may read the new name needs the right to read the old one."""
    _, root, user = rights
    fill(root)
    rename = command("renameCollection", C, db="admin", to=N)
    grant(root, [("t.", "renameCollectionSameDB"), (N, "find")])
    with pytest.raises(OperationFailure) as caught:
        rename(user)
    assert caught.value.code == 13
    grant(root, [("t.", "renameCollectionSameDB"), (N, "find"), (C, "find")])
    rename(user)


def test_a_right_on_a_database_is_none_on_system_collections(rights):
    _, root, user = rights
    fill(root)
    root.t["system.js"].insert_one({"_id": "f", "value": 1})
    grant(root, [("t.", "find")])
    with pytest.raises(OperationFailure) as caught:
        user.t["system.js"].find_one()
    assert caught.value.code == 13
    grant(root, [(".system.js", "find")])
    assert user.t["system.js"].find_one() == {"_id": "f", "value": 1}


def test_names_of_collections_are_of_those_that_there_are_rights_on(rights):
    _, root, user = rights
    fill(root)
    grant(root, [(C, "find"), ("o.x", "insert")])

    def names(db):
        reply = user[db].command("listCollections", 1, nameOnly=True, authorizedCollections=True)
        return [row["name"] for row in reply["cursor"]["firstBatch"]]

    assert names("t") == ["c"] and names("o") == ["x"]
    assert set(user.list_database_names()) == {"t", "o"}
    with pytest.raises(OperationFailure) as caught:
        user.admin.command("listDatabases", 1, authorizedDatabases=False)
    assert caught.value.code == 13
    grant(root, [("cluster", "listDatabases")])
    assert {"admin", "o", "t"} <= set(user.list_database_names())


def test_batches_need_the_rights_that_the_cursor_was_opened_by(rights):
    _, root, user = rights
    fill(root)
    root.t.c.insert_many([{"_id": i} for i in range(3, 8)])
    grant(root, [(C, "find"), (X, "find")])
    plain = user.t.command("find", "c", batchSize=1)["cursor"]["id"]
    joined = user.t.command("aggregate", "c", pipeline=[lookup("x")], cursor={"batchSize": 1})["cursor"]["id"]
    grant(root, [(C, "find")])
    more = {"collection": "c", "batchSize": 1}
    with pytest.raises(OperationFailure) as caught:
        user.t.command("getMore", joined, **more)
    assert caught.value.code == 13
    user.t.command("getMore", plain, **more)
    grant(root, [])
    with pytest.raises(OperationFailure) as caught:
        user.t.command("getMore", plain, **more)
    assert caught.value.code == 13
    grant(root, [(C, "find"), (X, "find")])
    for cursor, left in ((plain, 5), (joined, 6)):
        assert len(user.t.command("getMore", cursor, collection="c")["cursor"]["nextBatch"]) == left


def test_roles_inherit(rights):
    """user -> r -> test.middle -> read."""
    _, root, user = rights
    fill(root)
    grant(root, [])
    root.t.command("createRole", "middle", privileges=[], roles=["read"])
    root.admin.command("grantRolesToRole", "r", roles=[{"role": "middle", "db": "t"}])
    assert user.t.c.count_documents({}) == 2
    shown = root.admin.command("usersInfo", "u", showPrivileges=True)["users"][0]
    names = {(role["role"], role["db"]) for role in shown["inheritedRoles"]}
    assert names == {("r", "admin"), ("middle", "t"), ("read", "t")}
    assert {"resource": {"db": "t", "collection": ""}} in [
        {"resource": privilege["resource"]} for privilege in shown["inheritedPrivileges"]
    ]
    status = user.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
    assert {(role["role"], role["db"]) for role in status["authenticatedUserRoles"]} == names
    root.t.command("dropRole", "middle")
    with pytest.raises(OperationFailure) as caught:
        user.t.c.find_one()
    assert caught.value.code == 13


def test_user_roles_in_expressions(rights):
    """Source: manual, "$$USER_ROLES"; "$redact"."""
    _, root, user = rights
    fill(root)
    root.t.x.delete_many({})
    root.t.x.insert_many([{"_id": 1, "for": ["r"]}, {"_id": 2, "for": ["other"]}])
    redact = {
        "$redact": {
            "$cond": [
                {"$ne": [{"$setIntersection": ["$for", "$$USER_ROLES.role"]}, []]},
                "$$KEEP",
                "$$PRUNE",
            ]
        }
    }
    root.t.command("create", "redacted", viewOn="x", pipeline=[redact])
    grant(root, [("t.redacted", "find"), (C, "find")])
    assert [doc["_id"] for doc in user.t.redacted.find()] == [1]
    assert list(root.t.redacted.find()) == []
    shown = next(user.t.c.aggregate([{"$limit": 1}, {"$project": {"roles": "$$USER_ROLES"}}]))
    assert shown["roles"] == [{"_id": "admin.r", "role": "r", "db": "admin"}]
    # Plans that are kept of one user's queries must not show another what that one sees.
    query = {"$expr": {"$in": ["r", "$$USER_ROLES.role"]}, "a": {"$gt": 0}}
    for _ in range(5):
        assert user.t.c.count_documents(query) == 2
        assert root.t.c.count_documents(query) == 0
