"""What sessions begin with: ALTER ROLE and ALTER DATABASE … SET."""

import psycopg
import pytest
from psycopg import errors

from test_sql_roles import Shop, rows


@pytest.fixture
def shop(start):
    return Shop(start)


def setting(connection, name):
    return rows(connection, f"SHOW {name}")[0][0]


def test_role_in_database_comes_before_role_before_database_before_all(shop):
    shop.root.execute("CREATE DATABASE shop")
    shop.root.execute("CREATE DATABASE other")
    shop.root.execute("CREATE USER ann PASSWORD 'x'")
    shop.root.execute("GRANT CREATE ON DATABASE shop TO ann")
    name = "application_name"
    layers = [("ROLE ALL", "all"), ("DATABASE shop", "database"), ("ROLE ann", "role"), ("ROLE ann IN DATABASE shop", "both")]
    for whose, value in layers:
        shop.root.execute(f"ALTER {whose} SET {name} = '{value}'")
        assert setting(shop.connect("ann"), name) == value
    assert setting(shop.connect("ann", database="other"), name) == "role"
    assert setting(shop.connect("root", "secret"), name) == "database"
    assert setting(shop.connect("root", "secret", "other"), name) == "all"
    # What the client says comes before all of them, and what it is reset to is what it began with.
    said = psycopg.connect(
        host="127.0.0.1", port=shop.port, user="ann", password="x", dbname="shop", autocommit=True, application_name="mine"
    )
    assert setting(said, name) == "mine"
    for reset in ["RESET application_name", "RESET ALL", "SET application_name TO DEFAULT", "DISCARD ALL"]:
        said.execute("SET application_name = 'meanwhile'")
        said.execute(reset)
        assert setting(said, name) == "mine", reset
    ann = shop.connect("ann")
    ann.execute("SET application_name = 'meanwhile'")
    ann.execute("RESET application_name")
    assert setting(ann, name) == "both"
    shop.root.execute("ALTER ROLE ann RESET ALL")
    assert setting(shop.connect("ann"), name) == "both"
    shop.root.execute("ALTER ROLE ann IN DATABASE shop RESET application_name")
    assert setting(shop.connect("ann"), name) == "database"


def test_settings_have_their_effects_from_the_first_statement_on(shop):
    shop.root.execute("CREATE USER ann PASSWORD 'x'")
    shop.root.execute("CREATE SCHEMA app")
    shop.root.execute("CREATE TABLE app.t (a int)")
    shop.root.execute("GRANT SELECT, INSERT ON app.t TO ann")
    for assigned in [
        "search_path = app, public",
        "timezone = 'Europe/Berlin'",
        "datestyle = 'German'",
        "statement_timeout = 200",
        "default_transaction_read_only = on",
    ]:
        shop.root.execute(f"ALTER ROLE ann SET {assigned}")
    ann = shop.connect("ann")
    assert rows(ann, "SELECT count(*) FROM t") == [(0,)]
    assert rows(ann, "SELECT timestamptz '2024-07-01 00:00+00'::text") == [("01.07.2024 02:00:00 CEST",)]
    assert ann.info.parameter_status("TimeZone") == "Europe/Berlin"
    with pytest.raises(errors.QueryCanceled):
        ann.execute("SELECT pg_sleep(5)")
    with pytest.raises(errors.ReadOnlySqlTransaction):
        ann.execute("INSERT INTO t VALUES (1)")
    # A role that it goes on as.
    shop.root.execute("CREATE ROLE keepers")
    shop.root.execute("GRANT keepers TO ann")
    shop.root.execute("ALTER ROLE ann SET role = 'keepers'")
    ann = shop.connect("ann")
    assert rows(ann, "SELECT current_user, session_user") == [("keepers", "ann")]
    # One that it may not become keeps nobody from coming in.
    shop.root.execute("REVOKE keepers FROM ann")
    assert rows(shop.connect("ann"), "SELECT current_user") == [("ann",)]


def test_rights(shop):
    for name in ["ann", "bob"]:
        shop.root.execute(f"CREATE USER {name} PASSWORD 'x'")
    shop.root.execute("CREATE DATABASE shop")
    shop.root.execute("CREATE DATABASE theirs OWNER bob")
    ann, bob = shop.connect("ann"), shop.connect("bob", database="theirs")
    ann.execute("ALTER ROLE ann SET work_mem = '1MB'")
    ann.execute("ALTER ROLE CURRENT_USER IN DATABASE shop SET work_mem = '2MB'")
    assert setting(shop.connect("ann"), "work_mem") == "2MB"
    bob.execute("ALTER DATABASE theirs SET work_mem = '1MB'")
    refused = [
        (ann, "ALTER ROLE bob SET work_mem = '1MB'", "permission denied"),
        (ann, "ALTER ROLE root SET search_path = 'trap'", "permission denied"),
        (ann, "ALTER ROLE ALL SET work_mem = '1MB'", "must be superuser to alter settings globally"),
        (ann, "ALTER DATABASE shop SET work_mem = '1MB'", "must be owner of database shop"),
        (ann, "ALTER DATABASE theirs RESET ALL", "must be owner of database theirs"),
        (bob, "ALTER ROLE ALL IN DATABASE shop SET work_mem = '1MB'", "must be owner of database shop"),
        (ann, "ALTER ROLE ann SET app.own = 1", 'permission denied to set parameter "app.own"'),
    ]
    for who, statement, message in refused:
        with pytest.raises(errors.InsufficientPrivilege, match=message):
            who.execute(statement)
    # By commands nobody but who may do everything comes near them, and they go with the user.
    shop.commands().admin.command("createUser", "near", pwd="x", roles=["readWriteAnyDatabase", "dbAdminAnyDatabase"])
    near = shop.commands("near", "x")
    for write in [
        lambda: near.admin["system.sqlSettings"].insert_one({"_id": 1}),
        lambda: near.admin["system.sqlSettings"].update_many({}, {"$set": {"settings.search_path": "trap"}}),
        lambda: near.admin["system.sqlSettings"].drop(),
    ]:
        with pytest.raises(Exception, match="not authorized|Unauthorized"):
            write()
    shop.commands().admin.command("dropUser", "ann")
    assert rows(shop.root, "SELECT count(*) FROM pg_db_role_setting WHERE setrole <> 0") == [(0,)]


def test_users_of_databases_have_settings_of_their_own(shop):
    """A user of a database and one of `admin` may have the same name: what one sets the other does not begin with."""
    shop.commands().shop.command("createUser", "root", pwd="own", roles=["readWrite"])
    own = shop.connect("root", "own")
    own.execute("ALTER ROLE root SET application_name = 'own'")
    assert setting(shop.connect("root", "own"), "application_name") == "own"
    assert setting(shop.connect("root", "secret", "other"), "application_name") == ""
