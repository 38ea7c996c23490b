import itertools
import os
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import harness  # noqa: E402


def pytest_report_header(config):
    return f"nestor: {harness.BIN}"


def pytest_sessionstart(session):
    if not os.path.exists(harness.BIN):
        pytest.exit(f"there is no binary {harness.BIN}: build it or name one in NESTOR_BIN", 2)


def pytest_terminal_summary(terminalreporter):
    if not os.environ.get("NESTOR_NODE_MODULES"):
        terminalreporter.write_line("Node.js is not here: its driver and mongosh were LEFT OUT")
    if not os.environ.get("NESTOR_MONGO_TOOLS"):
        terminalreporter.write_line("MongoDB's database tools could not be built (no Go, or no module): their tests were LEFT OUT")
    for variable, what in [("NESTOR_PGJDBC", "PostgreSQL's JDBC driver"), ("NESTOR_PGX", "pgx")]:
        if not os.environ.get(variable):
            terminalreporter.write_line(f"{what} could not be had: its test was LEFT OUT")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    end_threads(getattr(config, "status", 0))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    session.config.status = int(exitstatus)


def end_threads(status):
    """Threads of a test that failed may wait for ever, and the interpreter would wait for them."""
    left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    if left:
        print(f"threads that go on: {', '.join(left)}", flush=True)
        os._exit(status or 1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server all tests share; each takes a database of its own (`db`)."""
    with harness.Server(tmp_path_factory.mktemp("shared")) as server:
        yield server
        server.stop()


@pytest.fixture(scope="session")
def client(server):
    return server.client()


_numbers = itertools.count(1)


@pytest.fixture
def db(client, request):
    """A database nobody else uses, dropped afterwards."""
    name = f"e2e_{next(_numbers)}"
    yield client[name]
    client.drop_database(name)


@pytest.fixture
def start():
    """Starts servers that are gone when the test is over: `start(dbpath, *flags, **options)`."""
    servers = []

    def start(dbpath=None, *flags, **options):
        server = harness.Server(dbpath, *flags, **options)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        if server.process is not None:
            server.kill()


@pytest.fixture
def node_modules():
    folder = os.environ.get("NESTOR_NODE_MODULES")
    if not folder:
        if os.environ.get("NESTOR_CI"):
            pytest.fail("Node.js, its driver and mongosh are not here, and CI leaves nothing out")
        pytest.skip("Node.js is not here")
    return Path(folder)
