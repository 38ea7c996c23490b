"""Every argument of the commands of users and roles with a value of every BSON type: the types that it has are taken, all others are
TypeMismatch (14), null is as if nothing were said, and what is refused changes nothing.

Source: manual, "User Management Commands" and "Role Management Commands", for the types; the functional suite's results for flags
(numbers of any kind besides booleans) and for null.
"""

import datetime

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import OperationFailure

VALUES = {
    "double": 1.5,
    "string": "x",
    "object": {"zz": 1},
    "array": ["zz"],
    "binData": Binary(b"x"),
    "objectId": ObjectId(),
    "bool": True,
    "date": datetime.datetime(2026, 1, 1),
    "null": None,
    "regex": Regex("x"),
    "javascript": Code("x"),
    "int": 1,
    "timestamp": Timestamp(1, 1),
    "long": Int64(1),
    "decimal": Decimal128("1"),
    "minKey": MinKey(),
    "maxKey": MaxKey(),
}
ANY = set(VALUES)
STRING, OBJECT, ARRAY, BOOL = {"string"}, {"object"}, {"array"}, {"bool"}
FLAG = {"bool", "int", "long", "double", "decimal"}
# Users and roles by name, by names, or a number for all of the database.
WHICH = {"string", "object", "array", "int", "long", "double", "decimal"}
READ = [{"role": "read", "db": "d"}]
PRIVILEGES = [{"resource": {"db": "d", "collection": "c"}, "actions": ["find"]}]
CONCERN = {"writeConcern": OBJECT}
OF_USER = {
    "pwd": STRING,
    "customData": OBJECT,
    "roles": ARRAY,
    "digestPassword": BOOL,
    "authenticationRestrictions": ARRAY,
    "mechanisms": ARRAY,
    "comment": ANY,
    **CONCERN,
}
OF_ROLE = {"privileges": ARRAY, "roles": ARRAY, "authenticationRestrictions": ARRAY, **CONCERN}
# The command, and of each argument the types that it may have.
COMMANDS = [
    ({"createUser": "n", "pwd": "p", "roles": READ}, {"createUser": STRING, **OF_USER}),
    ({"updateUser": "u", "pwd": "p2"}, {"updateUser": STRING, **OF_USER}),
    ({"dropUser": "u"}, {"dropUser": STRING, **CONCERN}),
    ({"dropAllUsersFromDatabase": 1}, {"dropAllUsersFromDatabase": ANY, **CONCERN}),
    ({"grantRolesToUser": "u", "roles": READ}, {"grantRolesToUser": STRING, "roles": ARRAY, **CONCERN}),
    ({"revokeRolesFromUser": "u", "roles": READ}, {"revokeRolesFromUser": STRING, "roles": ARRAY, **CONCERN}),
    (
        {"usersInfo": 1},
        {
            "usersInfo": WHICH,
            "showCredentials": FLAG,
            "showCustomData": FLAG,
            "showPrivileges": FLAG,
            "showAuthenticationRestrictions": FLAG,
            "filter": OBJECT,
        },
    ),
    ({"createRole": "n", "privileges": PRIVILEGES, "roles": []}, {"createRole": STRING, **OF_ROLE}),
    ({"updateRole": "r", "privileges": PRIVILEGES}, {"updateRole": STRING, **OF_ROLE}),
    ({"dropRole": "r"}, {"dropRole": STRING, **CONCERN}),
    ({"dropAllRolesFromDatabase": 1}, {"dropAllRolesFromDatabase": ANY, **CONCERN}),
    ({"grantPrivilegesToRole": "r", "privileges": PRIVILEGES}, {"grantPrivilegesToRole": STRING, "privileges": ARRAY, **CONCERN}),
    ({"revokePrivilegesFromRole": "r", "privileges": PRIVILEGES}, {"revokePrivilegesFromRole": STRING, "privileges": ARRAY, **CONCERN}),
    ({"grantRolesToRole": "r", "roles": READ}, {"grantRolesToRole": STRING, "roles": ARRAY, **CONCERN}),
    ({"revokeRolesFromRole": "r", "roles": READ}, {"revokeRolesFromRole": STRING, "roles": ARRAY, **CONCERN}),
    (
        {"rolesInfo": 1},
        {"rolesInfo": WHICH, "showPrivileges": FLAG, "showBuiltinRoles": FLAG, "showAuthenticationRestrictions": FLAG},
    ),
    ({"connectionStatus": 1}, {"connectionStatus": ANY, "showPrivileges": FLAG}),
    ({"logout": 1}, {"logout": ANY}),
]
MISSING = 40414
# Which users and roles are meant has several forms, and a password may be left out for users of elsewhere: wrong ones are bad values.
BAD_VALUES = {"usersInfo", "rolesInfo"}
# Nobody foresaw what happened.
UNFORESEEN = {1, 8}


def state(client):
    return list(client.admin["system.users"].find({}, {"credentials": 0}).sort("_id")), list(client.admin["system.roles"].find().sort("_id"))


def begin(db):
    db.command("dropAllUsersFromDatabase")
    db.command("dropAllRolesFromDatabase")
    # Cheap: these passwords are derived hundreds of times.
    db.command("createUser", "u", pwd="p", roles=["read"], mechanisms=["SCRAM-SHA-256"])
    db.command("createRole", "r", privileges=[], roles=["read"])


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=[next(iter(command)) for command, _ in COMMANDS])
def test_types_of_arguments(start, command, arguments):
    client = start(None, "--setParameter", "scramSHA256IterationCount=5000", "--setParameter", "scramIterationCount=5000").client()
    db = client.d
    wrong = []
    begin(db)
    before = state(client)
    for argument, types in arguments.items():
        for name, value in VALUES.items():
            try:
                db.command({**command, argument: value})
                code = 0
            except OperationFailure as error:
                code = error.code
            if name in types or name == "null":
                # What the value says may be refused, but not its type.
                fits = code not in UNFORESEEN | {14} and (name == "null" or code != MISSING)
            else:
                fits = code == (2 if argument in BAD_VALUES else 14)
            if not fits:
                wrong.append((argument, name, code))
            if code == 0:
                begin(db)
                before = state(client)
            else:
                assert state(client) == before, (argument, name)
    assert not wrong
