"""Files of the server that SQL reads as tables: who may, and where they are."""

import gzip

import pytest
from pymongo.errors import OperationFailure

from pgclient import Sql, port_of


def refused(state, act, *args, **kwargs):
    with pytest.raises(RuntimeError, match=f"^{state} ") as caught:
        act(*args, **kwargs)
    return str(caught.value)


@pytest.fixture
def files(tmp_path):
    own = tmp_path / "files"
    own.mkdir()
    (own / "a.csv").write_text("id,name\n1,Ada\n2,Grace\n")
    (own / "b.json.gz").write_bytes(gzip.compress(b'{"id": 3, "at": {"$date": "2024-01-31T00:00:00Z"}}\n{"id": 4}\n'))
    (tmp_path / "secret.csv").write_text("password\nx\n")
    (own / "link.csv").symlink_to(tmp_path / "secret.csv")
    (own / "up").symlink_to(tmp_path)
    return own


def test_a_server_reads_no_files_unless_told(start, files):
    server = start(None, "--sql-port", 0)
    sql = Sql(port_of(server))
    assert "reads no files" in refused("42501", sql.query, f"SELECT * FROM '{files}/a.csv'")
    refused("42501", sql.query, "SELECT * FROM read_csv('a.csv')")
    refused("42501", sql.query, "SELECT * FROM '/etc/*'")


def test_files_below_one_directory(start, files):
    server = start(None, "--sql-port", 0, "--sql-files", files)
    sql = Sql(port_of(server))
    assert sql.query("SELECT id, name FROM 'a.csv' WHERE id > 1") == [[b"2", b"Grace"]]
    assert sql.query(f"SELECT count(*) FROM '{files}/a.csv'") == [[b"2"]]
    assert sql.query("SELECT id FROM 'b.json.gz' WHERE at IS NULL") == [[b"4"]]
    for path in ["../secret.csv", "link.csv", "up/secret.csv", "/etc/passwd", "*/secret.csv", str(files.parent / "secret.csv")]:
        text = refused("(42501|58P01)", sql.query, f"SELECT * FROM read_csv('{path}')")
        assert "password" not in text
    sql.query("CREATE TABLE t (line text)")
    refused("42501", sql.query, "COPY t FROM '/etc/passwd'")
    refused("42501", sql.query, "COPY t TO '/tmp/t.csv'")
    refused("42501", sql.query, "COPY t TO 'up/t.csv'")
    assert sql.query("SELECT count(*) FROM t") == [[b"0"]]
    refused("42501", sql.query, "COPY t FROM PROGRAM 'id'")


def test_only_root_reads_them(start, files):
    server = start(None, "--sql-port", 0, "--auth", "--setParameter", "authFailedDelayMs=0", "--sql-files", files)
    server.client().admin.command("createUser", "root", pwd="secret", roles=["root"])
    client = server.client(username="root", password="secret", authSource="admin")
    db = client.shop
    db.command("createUser", "owner", pwd="x", roles=["dbOwner"])
    port = port_of(server)
    root = Sql(port, user="root", password="secret")
    assert root.query("SELECT name FROM 'a.csv' ORDER BY id") == [[b"Ada"], [b"Grace"]]
    root.query("CREATE VIEW of_file AS SELECT * FROM 'a.csv'")
    assert root.query("SELECT count(*) FROM of_file") == [[b"2"]]
    owner = Sql(port, user="owner", password="x")
    refused("42501", owner.query, "SELECT name FROM 'a.csv'")
    refused("42501", owner.query, "SELECT name FROM read_csv('nothing.csv')")
    refused("42501", owner.query, "SELECT * FROM of_file")
    owner.query("CREATE TABLE t (line text)")
    refused("42501", owner.query, "COPY t FROM 'a.csv'")
    refused("42501", owner.query, "COPY t TO 't.csv'")
    refused("42501", owner.query, "COPY nothing FROM 'a.csv'")
    assert not (files / "t.csv").exists()
    refused("42501", owner.query, "CREATE VIEW mine AS SELECT * FROM 'a.csv'")
    asked = [{"$sql": "SELECT name FROM 'a.csv'"}]
    assert len(list(db.aggregate(asked))) == 2
    theirs = server.client(username="owner", password="x", authSource="shop").shop
    with pytest.raises(OperationFailure) as caught:
        list(theirs.aggregate(asked))
    assert caught.value.details["sqlState"] == "42501"


def test_a_row_that_does_not_end_is_no_memory(start, files):
    (files / "open.csv").write_text('a,b\n1,"' + "x\n" * (40 << 20))
    server = start(None, "--sql-port", 0, "--sql-files", files)
    sql = Sql(port_of(server))
    assert "open.csv, line 2" in refused("22P04", sql.query, "SELECT count(*) FROM read_csv('open.csv', header => true)")
    (files / "open.csv").unlink()
