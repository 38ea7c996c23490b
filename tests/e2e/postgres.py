"""PostgreSQL's own programs, if they are on this machine, and a server of it to compare with."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import harness
import pytest

# PostgreSQL refuses to run as root.
NOBODY = 65534


def program(name):
    """The path of one of its programs; Debian keeps most of them off the PATH. None where it is not here."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return str(beside[-1]) if beside else shutil.which(name)


def need(*names):
    """Skips the test where programs are not here, which CI leaves nothing out for."""
    missing = [name for name in names if program(name) is None]
    if missing and os.environ.get("NESTOR_CI"):
        pytest.fail(f"{', '.join(missing)} of PostgreSQL are not here, and CI leaves nothing out")
    if missing:
        pytest.skip(f"{', '.join(missing)} of PostgreSQL are not here")


def run(name, *arguments, port, database, text=None, binary=False):
    """What a client program prints when it goes well."""
    done = subprocess.run(
        [program(name), "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "-d", database, *map(str, arguments)],
        input=text, capture_output=True, text=not binary, timeout=120, check=False, env={**os.environ, "PAGER": "", "PSQLRC": "/dev/null"},
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def psql(*arguments, **options):
    return run("psql", "-X", "-v", "ON_ERROR_STOP=1", *arguments, **options)


class Cluster:
    """A PostgreSQL server in a folder, until `stop`. Everybody is trusted; `tester` may do everything."""

    def __init__(self, folder):
        need("initdb", "postgres")
        self.data = Path(folder) / "postgres"
        self.data.mkdir()
        as_nobody = {}
        if os.geteuid() == 0:
            for path in [self.data, *self.data.parents]:
                if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
                    path.chmod(path.stat().st_mode | 0o011)
            os.chown(self.data, NOBODY, NOBODY)
            as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": self.data, **as_nobody}
        subprocess.run(
            [program("initdb"), "-D", self.data, "-A", "trust", "-U", "tester", "--no-sync", "-E", "UTF8", "--locale=C"],
            check=True, timeout=120, **quiet,
        )
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self.process = subprocess.Popen(
            [program("postgres"), "-D", self.data, "-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
             "-c", "fsync=off", "-c", "timezone=UTC"],
            **quiet,
        )
        harness.eventually(self.answers, what="PostgreSQL")

    def answers(self):
        assert self.process.poll() is None, "PostgreSQL did not start"
        # It takes connections, and sends them away, before it is ready.
        asked = subprocess.run([program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], timeout=60, check=False)
        return asked.returncode == 0

    def stop(self):
        self.process.kill()
        self.process.wait()
