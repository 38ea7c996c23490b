"""`nestor backup` logs in: by a password from wherever it comes, by a certificate, over TLS; and no password is shown."""

import os
import pty
import select
import signal
import subprocess
import time

import pytest

from certificates import Authority
from harness import BIN, Server

PATIENCE_S = 60


def backup(directory, uri, *flags, env=None, **options):
    """What `nestor backup` did, and all that it said."""
    return subprocess.run(
        [BIN, "backup", str(directory), "--uri", uri, *map(str, flags)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **(env or {})},
        start_new_session=True,
        **options,
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority):
    """A server with logins that encrypts on demand."""
    pem = authority.issue("server.pem", O="Nestor tests", CN="localhost")[0]
    flags = ("--auth", "--tlsMode", "allowTLS", "--tlsCertificateKeyFile", pem, "--tlsCAFile", authority.file)
    flags += ("--tlsAllowConnectionsWithoutCertificates",)
    with Server(tmp_path_factory.mktemp("server"), *flags) as server:
        first = server.client()
        first.admin.command("createUser", "root", pwd="root", roles=["root"])
        root = server.client(username="root", password="root")
        for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256"):
            root.admin.command("createUser", mechanism, pwd="s3:cr@t", roles=["backup"], mechanisms=[mechanism])
        root.admin.command("createUser", "reader", pwd="s3cret", roles=["read"])
        subject = "CN=backups,OU=Clients,O=Nestor tests"
        root["$external"].command("createUser", subject, roles=[{"role": "backup", "db": "admin"}])
        server.root = root
        yield server
        server.stop()


def uri(server, login="", options="", host="localhost"):
    port = server.uri.split(":")[2].split("/")[0]
    return f"mongodb://{login}{host}:{port}/?{options}"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_by_a_password(server, tmp_path, mechanism):
    done = backup(tmp_path / "a", uri(server, f"{mechanism}:s3%3Acr%40t@"))
    assert done.returncode == 0 and "backup " in done.stdout, done.stdout
    done = backup(tmp_path / "b", uri(server, f"{mechanism}@", f"authMechanism={mechanism}"), env={"NESTOR_PASSWORD": "s3:cr@t"})
    assert done.returncode == 0, done.stdout
    file = tmp_path / "password"
    file.write_text("s3:cr@t\n")
    done = backup(tmp_path / "c", uri(server, f"{mechanism}@"), "--passwordFile", file)
    assert done.returncode == 0, done.stdout


def test_what_goes_wrong_is_told_without_the_password(server, tmp_path):
    for login, options, what in [
        ("SCRAM-SHA-256:s3wrong@", "", "Authentication failed."),
        ("nobody:s3cret@", "", "Authentication failed."),
        ("reader:s3cret@", "", "not authorized"),
        ("", "", "requires authentication"),
        ("u:s3cret@", "nosuch=1", "nosuch"),
        ("u:s3/cret@", "", "mongodb://"),
        ("u@", "", "terminal"),
    ]:
        done = backup(tmp_path / "x", uri(server, login, options))
        assert done.returncode != 0 and what in done.stdout, (login, done.stdout)
        assert "s3" not in done.stdout, done.stdout
    assert "s3cret" not in server.said() and "s3wrong" not in server.said()


def test_over_tls(server, authority, tmp_path):
    encrypted = f"tls=true&tlsCAFile={authority.file}"
    done = backup(tmp_path / "a", uri(server, "SCRAM-SHA-256:s3%3Acr%40t@", encrypted))
    assert done.returncode == 0, done.stdout
    # The name in the certificate has to be the server's, and the authority one that is trusted.
    other = Authority(tmp_path)
    for options in (f"tls=true&tlsCAFile={other.file}", "tls=true"):
        done = backup(tmp_path / "b", uri(server, "SCRAM-SHA-256:s3%3Acr%40t@", options))
        assert done.returncode != 0 and "certificate" in done.stdout, done.stdout


def test_by_a_certificate(server, authority, tmp_path):
    pem = authority.issue("backups.pem", O="Nestor tests", OU="Clients", CN="backups")[0]
    stranger = authority.issue("stranger.pem", O="Nestor tests", OU="Clients", CN="stranger")[0]
    options = f"authMechanism=MONGODB-X509&tls=true&tlsCAFile={authority.file}&tlsCertificateKeyFile="
    done = backup(tmp_path / "a", uri(server, "", options + str(pem)))
    assert done.returncode == 0, done.stdout
    done = backup(tmp_path / "b", uri(server, "", options + str(stranger)))
    assert done.returncode != 0 and "Authentication failed." in done.stdout, done.stdout


def test_a_password_is_asked_for_and_not_shown(server, tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(BIN, [BIN, "backup", str(tmp_path / "a"), "--uri", uri(server, "SCRAM-SHA-256@")])
    said = b""
    typed = False
    status = None
    end = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < end and select.select([terminal], [], [], PATIENCE_S)[0]:
            said += os.read(terminal, 1000)
            if not typed and b"password of SCRAM-SHA-256: " in said:
                os.write(terminal, b"s3:cr@t\n")
                typed = True
    except OSError:
        # The other end is closed: the program is over.
        _, status = os.waitpid(pid, 0)
    finally:
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)
    assert status is not None and os.waitstatus_to_exitcode(status) == 0, said
    assert b"s3:cr@t" not in said and b"backup " in said
