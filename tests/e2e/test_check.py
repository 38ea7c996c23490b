"""`nestor check`: finds what is damaged, tells what a crash may leave, and changes nothing.

Exit status 0: no fault; 1: faults, each with file and offset or namespace and record; 2: it cannot be checked.
"""

import os
import shutil
import subprocess

import harness
import pytest
from harness import Server, check, run
from test_bad_days import JOURNALED, LEAF, PAGE, base_file, extents, flip, journal_files, public_directory, tear_mark

INTERIOR, FREE_LIST = 3, 5


def state(folder):
    """Name, contents and times of all there is."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in paths
    }


def checked(dbpath, status):
    """What `nestor check` prints; it ends with that status and has changed nothing."""
    before = state(dbpath)
    done = run("check", dbpath)
    assert done.returncode == status, done.stdout
    assert "panicked" not in done.stdout
    assert state(dbpath) == before
    return done.stdout


def faults(dbpath):
    return [line for line in checked(dbpath, 1).splitlines() if line.startswith("FAULT: ")]


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A directory after a clean stop: a base with several leaves, an interior node and a free list."""
    dbpath = tmp_path_factory.mktemp("check") / "data"
    with Server(dbpath) as server:
        collection = server.client().test.get_collection("c", write_concern=JOURNALED)
        collection.create_index([("tags", 1), ("n", -1)])
        for first in range(0, 3000, 500):
            collection.insert_many(
                [{"_id": i, "n": i % 7, "tags": ["a", i], "pad": os.urandom(80)} for i in range(first, first + 500)]
            )
            server.client().test.command("compact", "c")
        assert server.stop() == 0
    return dbpath


@pytest.fixture
def data(closed, tmp_path):
    """A copy of that directory."""
    return shutil.copytree(closed, tmp_path / "data")


def test_counts(data):
    said = checked(data, 0)
    assert "test.c: 3000 documents, " in said and "3000 entries in _id_, 6000 entries in tags_1_n_-1" in said, said
    assert said.endswith("\nno faults found\n") and "note:" not in said, said


@pytest.mark.parametrize("kind", [LEAF, INTERIOR, FREE_LIST])
def test_flipped_byte_in_a_page(data, kind):
    found = 0
    for at in extents(data, kind)[-4:]:
        flip(base_file(data), at + 100)
        done = run("check", data)
        flip(base_file(data), at + 100)
        if done.returncode == 0:
            continue  # a free page
        found += 1
        assert done.returncode == 1, done.stdout
        assert f"FAULT: {base_file(data)} is corrupt at byte {at}: checksum is " in done.stdout, done.stdout
    assert found, "one of them is in use"
    check(data)


def test_what_is_behind_a_damaged_page_is_checked_too(data):
    leaves = extents(data, LEAF)
    for at in leaves:
        flip(base_file(data), at + 100)
    said = checked(data, 1)
    assert said.count("is corrupt at byte") >= 10, said
    assert f"\nfaults found: {len(faults(data))}\n" in said


@pytest.mark.parametrize("slot", [0, 1])
def test_flipped_byte_in_a_meta_page(data, slot):
    """The other one is enough to start, and the server mends it; but a disk that forgets should be known."""
    flip(base_file(data), slot * PAGE + 40)
    [fault] = faults(data)
    assert f"is corrupt at byte {slot * PAGE}: meta page has checksum" in fault
    assert "test.c: 3000 documents" in checked(data, 1)
    with Server(data) as server:
        assert server.client().test.c.count_documents({}) == 3000
        assert server.stop() == 0
    check(data)


def test_both_meta_extents(data):
    for slot in (0, 1):
        flip(base_file(data), slot * PAGE + 40)
    assert "is corrupt at byte 0: " in faults(data)[0]


def test_flipped_byte_in_an_old_segment(data):
    """The server does not read it when it starts; it is the oplog."""
    flip(journal_files(data)[0], 5000)
    [fault] = faults(data)
    assert f"{journal_files(data)[0]} is corrupt at byte " in fault and "frame checksum does not match" in fault


@pytest.mark.parametrize("missing", ["base.nestor", "nestor.format", "journal"])
def test_a_missing_part(data, missing):
    if missing == "journal":
        shutil.rmtree(data / missing)
    else:
        (data / missing).unlink()
    assert missing in faults(data)[0]


def test_a_file_that_is_cut_short(data):
    os.truncate(base_file(data), base_file(data).stat().st_size - PAGE)
    assert "bytes, " in faults(data)[0]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A directory after kill -9 with everything still in the journal."""
    dbpath = tmp_path_factory.mktemp("check") / "killed"
    with Server(dbpath) as server:
        collection = server.client().test.get_collection("c", write_concern=JOURNALED)
        for i in range(30):
            collection.insert_one({"_id": i, "pad": "x" * 200})
        server.kill()
    return dbpath


@pytest.fixture
def crashed(killed, tmp_path):
    return shutil.copytree(killed, tmp_path / "killed")


def test_what_the_journal_holds_is_checked(crashed):
    said = checked(crashed, 0)
    assert "test.c: 30 documents" in said and "30 entries in _id_" in said, said


@pytest.mark.parametrize("tear", ["cut", "garbage"])
def test_torn_tail(crashed, tear):
    """A crash may leave it: a note, no fault. The server cuts it off; the check does not."""
    last = journal_files(crashed)[-1]
    tear_mark(crashed)
    whole = len(last.read_bytes().rstrip(b"\0"))
    if tear == "cut":
        os.truncate(last, whole - 5)
    else:
        with open(last, "r+b") as file:
            # Behind the frame, which may end in zeros itself.
            file.seek(whole + 8)
            file.write(os.urandom(500))
    said = checked(crashed, 0)
    [note] = [line for line in said.splitlines() if line.startswith("note: ")]
    assert f"{last} at byte " in note and "that the next start cuts off" in note, said
    kept = 29 if tear == "cut" else 30
    assert f"test.c: {kept} documents" in said, said
    with Server(crashed) as server:
        assert server.client().test.c.count_documents({}) == kept
        assert server.stop() == 0
    assert "note:" not in checked(crashed, 0)


def test_damage_before_the_tail(crashed):
    """Frames behind it say that it was on disk: that is no torn tail."""
    last = journal_files(crashed)[-1]
    flip(last, len(last.read_bytes().rstrip(b"\0")) // 2)
    assert f"{last} is corrupt at byte " in faults(crashed)[0]


def test_what_is_no_data_directory(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no nestor.format" in checked(empty, 2)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "WiredTiger").write_text("")
    checked(foreign, 2)
    for path in (tmp_path / "missing", foreign / "WiredTiger"):
        assert run("check", path).returncode == 2


def test_under_a_running_server(start, data):
    start(data)
    done = run("check", data)
    assert done.returncode == 2 and "in use" in done.stdout, done.stdout


def test_without_write_permission():
    with public_directory() as folder:
        data = folder / "data"
        with Server(data) as server:
            server.client().test.c.insert_one({"_id": 1})
            server.kill()
        (data / "nestor.lock").unlink()  # as in a copy
        subprocess.run(["chmod", "-R", "a+rX,a-w", data], check=True)
        command, options = [harness.BIN, "check", str(data)], {}
        if os.getuid() == 0:  # root writes everywhere: be nobody
            binary = folder / "nestor"
            shutil.copy(harness.BIN, binary)
            binary.chmod(0o755)
            command[0] = str(binary)
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        before = state(data)
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "test.c: 1 documents" in done.stdout
        assert state(data) == before


@pytest.mark.parametrize("name", ["WiredTiger", "storage.bson", "notes.txt"])
def test_a_server_does_not_start_among_the_files_of_others(tmp_path, name):
    """An empty database beside them would look as if all were lost."""
    (tmp_path / name).write_text("")
    with pytest.raises(harness.DidNotStart) as error:
        Server(tmp_path).start()
    assert error.value.status == 1 and name in error.value.output and str(tmp_path) in error.value.output
    assert [path.name for path in tmp_path.iterdir()] == [name], "nothing was made"


def test_a_server_starts_beside_its_own_log(start, tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".hidden").write_text("")
    server = start(tmp_path, "--logpath", tmp_path / "nestor.log")
    server.client().test.c.insert_one({})
    assert server.stop() == 0
    check(tmp_path)
