"""Ways by which somebody might get rights that nobody gave: each is refused, and leaves no trace."""

import threading

import harness
import pytest
from bson import Code
from pymongo.errors import OperationFailure

ROOT = {"username": "root", "password": "secret", "authSource": "admin"}
# So that hashing passwords takes no time.
FLAGS = ("--auth", "--setParameter", "scramIterationCount=5000", "--setParameter", "scramSHA256IterationCount=5000")
ANY_ROLE = {"role": "root", "db": "admin"}
EVERYTHING = {"resource": {"anyResource": True}, "actions": ["anyAction"]}
USERS = {
    # name: (database, roles)
    "reader": ("t", ["read"]),
    "writer": ("t", ["readWrite"]),
    "keeper": ("t", ["dbAdmin"]),
    "warden": ("t", ["userAdmin"]),
    "admin_writer": ("admin", ["readWrite"]),
    "admin_keeper": ("admin", ["dbAdminAnyDatabase"]),
    "reader_of_all": ("admin", ["readAnyDatabase"]),
    "writer_of_all": ("admin", ["readWriteAnyDatabase"]),
    "operator": ("admin", ["clusterMonitor", "hostManager"]),
    "view_changer": ("t", ["view_changer"]),
}


@pytest.fixture(scope="module")
def world():
    env = {"MONGO_INITDB_ROOT_USERNAME": "root", "MONGO_INITDB_ROOT_PASSWORD": "secret"}
    with harness.Server(None, *FLAGS, env=env) as server:
        root = server.client(**ROOT)
        root.t.c.insert_many([{"_id": i} for i in range(10)])
        root.t.secret.insert_one({"_id": 1})
        root.o.c.insert_one({"_id": 1})
        root.admin.x.insert_one({"_id": 1})
        root.t.create_collection("v", viewOn="c", pipeline=[])
        root.t.create_collection("ts", timeseries={"timeField": "t"})
        on_view = {"resource": {"db": "t", "collection": "v"}, "actions": ["find", "collMod"]}
        root.t.command("createRole", "view_changer", privileges=[on_view], roles=[])
        clients = {"root": root}
        for name, (db, roles) in USERS.items():
            root[db].command("createUser", name, pwd="p", roles=roles)
            clients[name] = server.client(username=name, password="p", authSource=db, retryWrites=False)
        yield clients
        server.stop()


def command(on, *words, **options):
    return lambda client: client[on].command(*words, **options)


def pipeline(db, coll, *stages):
    return lambda client: list(client[db][coll].aggregate(list(stages)))


def explain(what, db="t"):
    return command(db, "explain", what)


def insert(db, coll, document):
    return lambda client: client[db][coll].insert_one(document)


def find(db, coll):
    return lambda client: client[db][coll].find_one()


def lookup(coll):
    return {"$lookup": {"from": coll, "pipeline": [], "as": "z"}}


def privileges(*resources):
    return [{"resource": resource, "actions": ["find"]} for resource in resources]


EVIL = {"_id": "t.evil", "user": "evil", "db": "t", "credentials": {}, "roles": [ANY_ROLE]}
UPDATE = {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}
DELETE = {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}
MAP_REDUCE = {"mapReduce": "c", "map": Code("function() {}"), "reduce": Code("function() {}")}
WAYS = [
    # Documents of users and roles, by any way around the commands of users.
    *[
        (user, f"{way} of admin.{coll}", act)
        for user in ("admin_writer", "writer_of_all", "admin_keeper")
        for coll in ("system.users", "system.roles")
        for way, act in (
            ("find", find("admin", coll)),
            ("insert", insert("admin", coll, EVIL)),
            ("update", lambda client, coll=coll: client.admin[coll].update_one({}, {"$set": {"roles": [ANY_ROLE]}})),
            ("delete", lambda client, coll=coll: client.admin[coll].delete_many({})),
            ("lookup", pipeline("admin", "x", lookup(coll))),
            ("lookup in a facet", pipeline("admin", "x", {"$facet": {"f": [lookup(coll)]}})),
            ("union", pipeline("admin", "x", {"$unionWith": coll})),
            ("view", command("admin", "create", "view", viewOn=coll, pipeline=[])),
            ("view with a union", command("admin", "create", "view", viewOn="x", pipeline=[{"$unionWith": coll}])),
            ("view with a lookup within", command("admin", "create", "view", viewOn="x", pipeline=[{"$facet": {"f": [lookup(coll)]}}])),
            ("rename", command("admin", "renameCollection", f"admin.{coll}", to="admin.y")),
            ("rename away", command("admin", "renameCollection", f"admin.{coll}", to="t.y")),
            ("rename onto", command("admin", "renameCollection", "admin.x", to=f"admin.{coll}", dropTarget=True)),
            ("drop", command("admin", "drop", coll)),
            ("index", command("admin", "createIndexes", coll, indexes=[{"key": {"z": 1}, "name": "z", "unique": True}])),
            ("validator", command("admin", "collMod", coll, validator={"nobody": True})),
            ("copy", command("admin", "cloneCollectionAsCapped", coll, toCollection="copy", size=4096)),
            ("bulkWrite", command("admin", "bulkWrite", 1, ops=[{"insert": 0, "document": EVIL}], nsInfo=[{"ns": f"admin.{coll}"}])),
        )
    ],
    ("writer", "applyOps", command("admin", "applyOps", [{"op": "i", "ns": "admin.system.users", "o": EVIL}])),
    ("writer_of_all", "applyOps", command("admin", "applyOps", [{"op": "i", "ns": "t.c", "o": {"_id": 99}}])),
    ("writer_of_all", "merging users", command("admin", "_mergeAuthzCollections", 1, tempUsersCollection="t.c", drop=False, db="")),
    # Roles beyond those that one may grant.
    ("warden", "grant root", command("t", "grantRolesToUser", "warden", roles=[ANY_ROLE])),
    ("warden", "update with root", command("t", "updateUser", "warden", roles=[ANY_ROLE])),
    ("warden", "create with root", command("t", "createUser", "evil", pwd="p", roles=[ANY_ROLE])),
    ("warden", "create elsewhere", command("o", "createUser", "evil", pwd="p", roles=[])),
    ("warden", "password of another database's", command("admin", "updateUser", "root", pwd="p")),
    ("warden", "role on all", command("t", "createRole", "evil", privileges=privileges({"db": "", "collection": ""}), roles=[])),
    ("warden", "role on another database", command("t", "createRole", "evil", privileges=privileges({"db": "o", "collection": "c"}), roles=[])),
    ("warden", "role on a name everywhere", command("t", "createRole", "evil", privileges=privileges({"db": "", "collection": "c"}), roles=[])),
    ("warden", "role on both", command("t", "createRole", "evil", privileges=privileges({"db": "t", "collection": ""}, {"db": "o", "collection": ""}), roles=[])),
    ("warden", "role on the cluster", command("t", "createRole", "evil", privileges=[{"resource": {"cluster": True}, "actions": ["shutdown"]}], roles=[])),
    ("warden", "role that inherits", command("t", "createRole", "evil", privileges=[], roles=[ANY_ROLE])),
    ("warden", "rights for one's role", command("t", "grantPrivilegesToRole", "view_changer", privileges=[EVERYTHING])),
    ("warden", "roles for one's role", command("t", "grantRolesToRole", "view_changer", roles=[ANY_ROLE])),
    ("warden", "another role of one's own", command("t", "updateRole", "view_changer", roles=[ANY_ROLE])),
    ("warden", "other rights of one's own", command("t", "updateRole", "view_changer", privileges=[EVERYTHING])),
    ("reader", "a role for oneself", command("t", "grantRolesToUser", "reader", roles=["readWrite"])),
    ("reader", "one's roles", command("t", "updateUser", "reader", roles=["readWrite"])),
    ("reader", "one's password", command("t", "updateUser", "reader", pwd="q")),
    ("reader", "one's data", command("t", "updateUser", "reader", customData={"a": 1})),
    ("reader", "others' credentials", command("t", "usersInfo", {"user": "root", "db": "admin"}, showCredentials=True)),
    # Views.
    ("view_changer", "another source", command("t", "collMod", "v", viewOn="secret", pipeline=[])),
    ("view_changer", "another pipeline", command("t", "collMod", "v", viewOn="c", pipeline=[{"$unionWith": "secret"}])),
    ("view_changer", "another pipeline alone", command("t", "collMod", "v", pipeline=[{"$unionWith": "secret"}])),
    ("view_changer", "what is beneath", find("t", "c")),
    # Other databases.
    ("writer", "$out", pipeline("t", "c", {"$out": {"db": "o", "coll": "z"}})),
    ("writer", "$merge", pipeline("t", "c", {"$merge": {"into": {"db": "o", "coll": "c"}}})),
    ("writer", "rename", command("admin", "renameCollection", "t.c", to="o.z")),
    ("writer", "rename here", command("admin", "renameCollection", "o.c", to="t.z")),
    ("writer", "mapReduce", lambda client: client.t.command({**MAP_REDUCE, "out": {"replace": "z", "db": "o"}})),
    ("writer", "bulkWrite", command("admin", "bulkWrite", 1, ops=[{"insert": 0, "document": {"_id": 9}}, {"insert": 1, "document": {"_id": 9}}], nsInfo=[{"ns": "t.c"}, {"ns": "o.c"}])),
    # Explain of what one may not run.
    ("reader", "explain update", explain(UPDATE)),
    ("reader", "explain delete", explain(DELETE)),
    ("reader", "explain findAndModify", explain({"findAndModify": "c", "remove": True})),
    ("reader", "explain $out", explain({"aggregate": "c", "pipeline": [{"$out": "z"}], "cursor": {}})),
    ("reader", "explain mapReduce", explain({**MAP_REDUCE, "out": "z"})),
    ("reader", "explain explain", explain({"explain": UPDATE})),
    ("reader", "explain bulkWrite", explain({"bulkWrite": 1, "ops": [{"delete": 0, "filter": {}}], "nsInfo": [{"ns": "t.c"}]}, db="admin")),
    # What is told of the server and of others.
    ("reader", "operations", lambda client: list(client.admin.aggregate([{"$currentOp": {"allUsers": True}}]))),
    ("reader", "query stats", lambda client: list(client.admin.aggregate([{"$queryStats": {}}]))),
    ("reader", "local sessions", lambda client: list(client.t.aggregate([{"$listLocalSessions": {"allUsers": True}}]))),
    ("reader", "another's sessions", pipeline("config", "system.sessions", {"$listSessions": {"users": [{"user": "root", "db": "admin"}]}})),
    ("reader", "all sessions", pipeline("config", "system.sessions", {"$listSessions": {"allUsers": True}})),
    ("reader", "killing all sessions", command("admin", "killAllSessions", [])),
    ("reader", "killing another's", command("admin", "killAllSessionsByPattern", [{"users": [{"user": "root", "db": "admin"}]}])),
    ("reader", "index statistics", pipeline("t", "c", {"$indexStats": {}})),
    ("reader", "the profiler", find("t", "system.profile")),
    ("writer", "the profiler", command("t", "profile", 2)),
    ("reader", "another database", find("o", "c")),
    ("reader_of_all", "the oplog", find("local", "oplog.rs")),
    ("reader_of_all", "sessions", find("config", "system.sessions")),
    ("operator", "documents", find("t", "c")),
    ("operator", "users", command("admin", "usersInfo", 1)),
    # System collections.
    ("writer", "views", find("t", "system.views")),
    ("writer", "a view by its document", insert("t", "system.views", {"_id": "t.w", "viewOn": "secret", "pipeline": []})),
    ("writer", "buckets", find("t", "system.buckets.ts")),
    ("writer", "a bucket", insert("t", "system.buckets.ts", {"_id": 1})),
    ("writer", "dropping buckets", command("t", "drop", "system.buckets.ts")),
    ("reader", "a script", insert("t", "system.js", {"_id": "f", "value": Code("function() {}")})),
]


@pytest.mark.parametrize(("user", "act"), [(user, act) for user, _, act in WAYS], ids=[f"{user}: {way}" for user, way, _ in WAYS])
def test_nobody_gets_further_than_they_may(world, user, act):
    def state():
        root = world["root"]
        users, roles = ([*root.admin[name].find().sort("_id", 1)] for name in ("system.users", "system.roles"))
        names = {db: sorted(root[db].list_collection_names()) for db in ("admin", "t", "o")}
        return users, roles, names, [*root.t.c.find()], [*root.o.c.find()]

    before = state()
    with pytest.raises(OperationFailure) as caught:
        act(world[user])
    # $out and $merge say so by codes of their own, whoever asks; so does what cannot be explained.
    assert caught.value.code in (13, 17385, 31319), caught.value
    assert state() == before


def test_batches_and_ends_of_cursors_are_for_who_opened_them(world):
    root = world["root"]
    cursor = root.t.command("find", "c", batchSize=1)["cursor"]["id"]
    for user in ("reader", "writer", "keeper", "reader_of_all"):
        for act in (command("t", "getMore", cursor, collection="c"), command("t", "killCursors", "c", cursors=[cursor])):
            with pytest.raises(OperationFailure) as caught:
                act(world[user])
            assert caught.value.code == 13
    assert len(root.t.command("getMore", cursor, collection="c")["cursor"]["nextBatch"]) == 9


def test_rights_that_go_while_a_transaction_is_open(world):
    """What a statement needs is asked for at each statement; whoever is nobody any more commits nothing."""
    root, keeper = world["root"], world["keeper"]
    root.t.command("grantRolesToUser", "keeper", roles=["readWrite"])
    try:
        with keeper.start_session() as session:
            session.start_transaction()
            keeper.t.c.insert_one({"_id": 100}, session=session)
            root.t.command("revokeRolesFromUser", "keeper", roles=["readWrite"])
            with pytest.raises(OperationFailure) as caught:
                keeper.t.c.find_one({}, session=session)
            assert caught.value.code == 13
            session.abort_transaction()
    finally:
        root.t.command("revokeRolesFromUser", "keeper", roles=["readWrite"])
    assert root.t.c.count_documents({"_id": 100}) == 0
    root.t.command("createUser", "leaver", pwd="p", roles=["readWrite"])
    host, port = root.address
    leaver = harness.pymongo.MongoClient(host, port, username="leaver", password="p", authSource="t", retryWrites=False)
    with leaver, leaver.start_session() as session:
        session.start_transaction()
        leaver.t.c.insert_one({"_id": 101}, session=session)
        root.t.command("dropUser", "leaver")
        with pytest.raises(OperationFailure) as caught:
            session.commit_transaction()
        assert caught.value.code == 13
    assert root.t.c.count_documents({"_id": 101}) == 0


@pytest.mark.parametrize("way", ["127.0.0.1", "::1", "socket"])
def test_of_many_first_users_one_is_made(start, tmp_path, way):
    """The exception is for the first user or role, whoever else comes at the same moment from this machine."""
    server = start(None, *FLAGS, "--ipv6", "--bind_ip", "127.0.0.1,::1", "--unixSocketPrefix", tmp_path)
    address = str(tmp_path / f"mongodb-{server.port}.sock") if way == "socket" else (way, server.port)
    made = []
    rest = 12
    together = threading.Barrier(rest, timeout=60)

    def create(i):
        with harness.Raw(address, 60) as raw:
            together.wait()
            user = {"createUser": f"user{i}", "pwd": "p", "roles": ["root"], "$db": "admin"}
            role = {"createRole": f"role{i}", "privileges": [], "roles": [], "$db": "admin"}
            reply = raw.command(role if i % 4 == 0 else user)
            assert reply["ok"] == 1.0 or reply["code"] == 13, reply
            if reply["ok"] == 1.0:
                made.append(i)

    threads = [threading.Thread(target=create, args=(i,)) for i in range(rest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(made) == 1, made
