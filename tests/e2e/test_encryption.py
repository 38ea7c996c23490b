"""Encryption at rest: no file holds what was stored, and without the right key nothing is touched."""

import base64
import os
import re
import subprocess

import pytest
from harness import BIN, DidNotStart, Server, run

SECRET = "Kremlin-Nightingale-7731"


@pytest.fixture
def keys(tmp_path):
    """Two files with master keys."""
    made = []
    for i in range(2):
        path = tmp_path / f"master{i}"
        path.write_text(base64.b64encode(os.urandom(32)).decode() + "\n")
        path.chmod(0o600)
        made.append(path)
    return made


def encrypted(dbpath, key, *flags):
    return Server(dbpath, "--enableEncryption", "--encryptionKeyFile", key, *flags)


def contents(dbpath):
    return {path: path.read_bytes() for path in sorted(dbpath.rglob("*")) if path.is_file()}


def assert_nothing_is_plain(dbpath, *more):
    files = contents(dbpath)
    assert len(files) >= 6, files.keys()
    for path, data in [*files.items(), *more]:
        assert SECRET.encode() not in data, path


def open_spill_files(pid):
    """What the temporary files hold that the process has open; they have no names."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = f"/proc/{pid}/fd/{fd}"
            if "/tmp/spill-" in os.readlink(path):
                with open(path, "rb") as file:
                    found.append((path, file.read()))
        except OSError:
            pass
    return found


def refused(dbpath, *flags):
    with pytest.raises(DidNotStart) as refusal:
        Server(dbpath, *flags).start()
    return refusal.value.output


def test_no_file_holds_what_was_stored(tmp_path, keys):
    dbpath = tmp_path / "data"
    server = encrypted(dbpath, keys[0]).start()
    try:
        coll = server.client()[SECRET][SECRET]
        coll.insert_many([{"_id": i, "name": f"{SECRET}-{i}", "pad": SECRET * 40} for i in range(3000)])
        coll.insert_one({"_id": -1, "long": SECRET * 100_000})
        coll.create_index(SECRET)
        coll.create_index("name")
        coll.update_many({"_id": {"$lt": 500}}, {"$set": {"pad": SECRET * 50}})
        coll.database.create_collection("seen", changeStreamPreAndPostImages={"enabled": True})
        coll.database.seen.insert_one({"_id": 1, "a": SECRET})
        coll.database.seen.update_one({"_id": 1}, {"$set": {"a": SECRET + "!"}})
        assert_nothing_is_plain(dbpath)

        # A sort that does not fit into memory. Its files are there as long as its cursor.
        server.client().admin.command("setParameter", 1, internalQueryMaxBlockingSortMemoryUsageBytes=1 << 20)
        cursor = coll.aggregate([{"$sort": {"pad": 1, "name": -1}}], allowDiskUse=True, batchSize=2)
        cursor.next()
        spilled = open_spill_files(server.pid)
        assert sum(len(data) for _, data in spilled) > 1 << 20
        assert_nothing_is_plain(dbpath, *spilled)
        assert len(list(cursor)) == 3000

        server.client().admin.command("fsync")
        assert_nothing_is_plain(dbpath)
        server.kill()
        assert_nothing_is_plain(dbpath)
        server.start()
        coll = server.client()[SECRET][SECRET]
        assert coll.count_documents({}) == 3001
        assert coll.find_one({"name": f"{SECRET}-7"})["pad"] == SECRET * 50
        assert len(coll.find_one({"_id": -1})["long"]) == len(SECRET) * 100_000
        parsed = server.client().admin.command("getCmdLineOpts")["parsed"]["security"]
        assert parsed["enableEncryption"] is True
        server.stop()
    finally:
        server.kill()
    assert_nothing_is_plain(dbpath)
    checked = run("check", dbpath, "--encryptionKeyFile", keys[0])
    assert checked.returncode == 0, checked.stdout
    assert "encrypted: 1 data keys" in checked.stdout
    assert "not verified: whether the whole directory was set back" in checked.stdout
    for line in keys[0].read_text().split():
        assert line not in checked.stdout


def test_without_the_right_key_nothing_is_touched(tmp_path, keys):
    dbpath, plain = tmp_path / "data", tmp_path / "plain"
    for server in (encrypted(dbpath, keys[0]), Server(plain)):
        with server:
            server.client().test.c.insert_one({"_id": 1})
    before = contents(dbpath), contents(plain)
    key, other = keys
    said = refused(dbpath)
    assert f"the data directory {dbpath} is encrypted, and no master key was given" in said, said
    said = refused(dbpath, "--enableEncryption", "--encryptionKeyFile", other)
    assert "is encrypted with another master key" in said and str(other) in said, said
    said = refused(plain, "--enableEncryption", "--encryptionKeyFile", key)
    assert "is not encrypted, and a master key was given" in said, said
    said = refused(dbpath, "--enableEncryption", "--encryptionKeyFile", tmp_path / "missing")
    assert f"cannot read encryption key file {tmp_path / 'missing'}" in said, said
    key.chmod(0o640)
    said = refused(dbpath, "--enableEncryption", "--encryptionKeyFile", key)
    assert f"permissions on encryption key file {key} are too open" in said, said
    key.chmod(0o600)
    for args in ([], ["--encryptionKeyFile", other]):
        checked = run("check", dbpath, *args)
        assert checked.returncode == 2, checked.stdout
        assert "is encrypted" in checked.stdout
    assert (contents(dbpath), contents(plain)) == before


def test_the_master_key_is_replaced(tmp_path, keys):
    dbpath, config = tmp_path / "data", tmp_path / "nestor.conf"
    with encrypted(dbpath, keys[0]) as server:
        server.client().test.c.insert_one({"_id": 1})
    rotate = [BIN, "serve", "--dbpath", dbpath, "--enableEncryption", "--encryptionKeyFile", keys[0]]
    rotate += ["--encryptionRotateMasterKey", keys[1]]
    done = subprocess.run(rotate, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"the master key of .* is that in .*master1 now", done.stdout)
    done = subprocess.run(rotate, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "another master key" in done.stderr
    assert "another master key" in refused(dbpath, "--enableEncryption", "--encryptionKeyFile", keys[0])
    # The same by the configuration file.
    config.write_text(f"security: {{enableEncryption: true, encryptionKeyFile: {keys[1]}}}\n")
    with Server(dbpath, "--config", config) as server:
        assert server.client().test.c.find_one() == {"_id": 1}
