"""Encrypted connections, with Python's and Node's TLS."""

import os
import signal
import socket
import ssl
import subprocess
import time

import bson
import pymongo
import pytest
from pymongo import monitoring
from pymongo.errors import AutoReconnect, ConnectionFailure, OperationFailure

from certificates import Authority
from harness import DidNotStart

FAST = {"serverSelectionTimeoutMS": 3_000}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server_pem(authority):
    return authority.issue("server.pem", O="Nestor tests", CN="localhost")[0]


@pytest.fixture(scope="module")
def client_pem(authority):
    return authority.issue("client.pem", O="Nestor tests", OU="Clients", CN="ann")[0]


def ping(server, **options):
    with pymongo.MongoClient(server.uri, **{**FAST, **options}) as client:
        return client.admin.command("ping")["ok"] == 1


def refused(server, **options):
    with pytest.raises((ConnectionFailure, AutoReconnect)):
        ping(server, **options)
    return True


def test_modes(start, authority, server_pem):
    tls = {"tls": True, "tlsCAFile": str(authority.file)}
    for mode, plain, encrypted in [
        ("disabled", True, False),
        ("allowTLS", True, True),
        ("preferTLS", True, True),
        ("requireTLS", False, True),
    ]:
        flags = [] if mode == "disabled" else ["--tlsMode", mode, "--tlsCertificateKeyFile", server_pem]
        server = start(None, *flags)
        assert (ping if plain else refused)(server)
        assert (ping if encrypted else refused)(server, **tls)
        server.stop()


def test_everything_goes_through(start, authority, server_pem):
    """Large documents, many rows, compression, many connections; the counters and the log's options tell of it."""
    server = start(None, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem)
    tls = {"tls": True, "tlsCAFile": str(authority.file)}
    with pymongo.MongoClient(server.uri, compressors="zstd,snappy,zlib", **tls) as client:
        c = client.e2e_tls.c
        c.insert_many([{"_id": n, "pad": os.urandom(1000)} for n in range(5000)])
        c.insert_one({"_id": "large", "pad": os.urandom(15_000_000)})
        assert sum(1 for _ in c.find()) == 5001
        assert len(c.find_one({"_id": "large"})["pad"]) == 15_000_000
        status = client.admin.command("serverStatus")
        versions = status["transportSecurity"]
        assert versions["1.3"] >= 1 and versions["1.0"] == versions["1.1"] == versions["unknown"] == 0
        assert status["security"]["SSLServerSubjectName"] == "CN=localhost,O=Nestor tests"
        assert status["security"]["SSLServerHasCertificateAuthority"] is False
        parsed = client.admin.command("getCmdLineOpts")["parsed"]["net"]["tls"]
        assert parsed == {"mode": "requireTLS", "certificateKeyFile": str(server_pem)}
    clients = [pymongo.MongoClient(server.uri, **tls) for _ in range(20)]
    assert all(client.admin.command("ping")["ok"] for client in clients)
    for client in clients:
        client.close()


def test_versions(start, authority, server_pem):
    def versions(server):
        spoken = set()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=str(authority.file))
            context.minimum_version = context.maximum_version = version
            try:
                with socket.create_connection(server.address, 10) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
                        spoken.add(encrypted.version())
            except (ssl.SSLError, OSError):
                pass
        return spoken

    flags = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem]
    assert versions(start(None, *flags)) == {"TLSv1.2", "TLSv1.3"}
    assert versions(start(None, *flags, "--tlsDisabledProtocols", "TLS1_2")) == {"TLSv1.3"}
    assert versions(start(None, *flags, "--tlsDisabledProtocols", "TLS1_0,TLS1_3")) == {"TLSv1.2"}


def test_the_cheapest_good_cipher_is_taken(start, authority, server_pem):
    """The server's order counts: clients list keys of 256 bits first, which cost more and protect no better here."""
    server = start(None, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=str(authority.file))
        context.minimum_version = context.maximum_version = version
        with socket.create_connection(server.address, 10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
                name, _, bits = encrypted.cipher()
                assert "GCM" in name and bits == 128, name


def test_certificates_of_clients(start, authority, server_pem, client_pem, tmp_path):
    flags = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem, "--tlsCAFile", authority.file]
    tls = {"tls": True, "tlsCAFile": str(authority.file)}
    expired, _ = authority.issue("expired.pem", expired=True, CN="late")
    revoked, certificate = authority.issue("revoked.pem", CN="gone")
    stranger, _ = Authority(tmp_path / "other", "Another").issue("stranger.pem", CN="ann")
    crl = authority.revoke("crl.pem", certificate)

    server = start(None, *flags)
    assert ping(server, **tls, tlsCertificateKeyFile=str(client_pem))
    assert ping(server, **tls, tlsCertificateKeyFile=str(revoked)), "nobody said that it is revoked"
    assert refused(server, **tls)
    assert refused(server, **tls, tlsCertificateKeyFile=str(expired))
    assert refused(server, **tls, tlsCertificateKeyFile=str(stranger))

    server = start(None, *flags, "--tlsCRLFile", crl, "--tlsAllowConnectionsWithoutCertificates")
    assert ping(server, **tls, tlsCertificateKeyFile=str(client_pem))
    assert ping(server, **tls)
    assert refused(server, **tls, tlsCertificateKeyFile=str(revoked))
    assert refused(server, **tls, tlsCertificateKeyFile=str(expired))


def test_certificates_are_read_anew(start, authority, tmp_path):
    pem = tmp_path / "server.pem"
    first, _ = authority.issue("first.pem", CN="first")
    second, _ = authority.issue("second.pem", CN="second")
    pem.write_bytes(first.read_bytes())
    server = start(None, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", pem)
    tls = {"tls": True, "tlsCAFile": str(authority.file)}

    def subject():
        with pymongo.MongoClient(server.uri, **tls) as client:
            return client.admin.command("serverStatus")["security"]["SSLServerSubjectName"]

    with pymongo.MongoClient(server.uri, maxPoolSize=1, **tls) as client:
        assert subject() == "CN=first"
        opened = client.admin.command("whatsmyuri")["you"]
        pem.write_bytes(second.read_bytes())
        assert client.admin.command("rotateCertificates", 1, message="new ones")["ok"] == 1
        assert subject() == "CN=second"
        pem.write_text("no certificate")
        with pytest.raises(OperationFailure) as refused:
            client.admin.command("rotateCertificates", 1)
        assert refused.value.code == 140 and "server.pem" in refused.value.details["errmsg"]
        assert subject() == "CN=second"
        pem.write_bytes(first.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 20
        while subject() != "CN=first":
            assert time.monotonic() < end, "SIGHUP reads certificates anew"
        assert client.admin.command("whatsmyuri")["you"] == opened, "the connection that was there goes on"


def test_bad_files_are_refused_by_name(start, authority, server_pem, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    encrypted, _ = authority.issue("encrypted.pem", password=b"secret", CN="x")
    both = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile"]
    for flags, said in [
        ([*both, tmp_path / "nowhere.pem"], "nowhere.pem"),
        ([*both, empty], "no certificate"),
        ([*both, authority.file], "no private key"),
        ([*both, encrypted], "is encrypted"),
        ([*both, server_pem, "--tlsCAFile", empty], "empty.pem"),
        ([*both, server_pem, "--tlsCAFile", authority.file, "--tlsCRLFile", empty], "empty.pem"),
    ]:
        with pytest.raises(DidNotStart) as refused:
            start(None, *flags)
        assert said in refused.value.output, refused.value.output


def hello_message():
    body = bson.encode({"hello": 1, "$db": "admin"})
    message = b"\0\0\0\0\0" + body
    return (16 + len(message)).to_bytes(4, "little") + (7).to_bytes(4, "little") + bytes(4) + (2013).to_bytes(4, "little") + message


def test_bad_greetings(start, authority, server_pem):
    """Half a greeting, rubbish after a good beginning, a message byte by byte: nobody else notices."""
    server = start(None, "--tlsMode", "allowTLS", "--tlsCertificateKeyFile", server_pem)
    halves = []
    for begin in [b"\x16", b"\x16\x03\x01\x02", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]:
        half = socket.create_connection(server.address, 10)
        half.sendall(begin)
        halves.append(half)
    for rubbish in [b"\x16\x03\x01\x00\x10\x01\x00\x00\x0c\x03\x03" + b"\xff" * 64, b"\x16\x03\x01\xff\xff\x01\xff\xff\xff\x03\x03" + os.urandom(70_000)]:
        with socket.create_connection(server.address, 10) as s:
            s.settimeout(10)
            try:
                s.sendall(rubbish)
                while s.recv(4096):
                    pass
            except ConnectionError:
                pass
    with socket.create_connection(server.address, 10) as s:
        s.settimeout(10)
        for byte in hello_message():
            s.sendall(bytes([byte]))
        assert int.from_bytes(s.recv(4), "little") > 100
    assert ping(server) and ping(server, tls=True, tlsCAFile=str(authority.file))
    for half in halves:
        half.close()
    assert server.stop() == 0


def test_stopping_does_not_wait_for_greetings(start, server_pem):
    server = start(None, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem)
    with socket.create_connection(server.address, 10) as half:
        half.sendall(b"\x16\x03\x01\x02")
        assert server.stop() == 0


def test_node(start, authority, server_pem, client_pem, node_modules, tmp_path):
    flags = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem, "--tlsCAFile", authority.file]
    server = start(None, *flags)
    mongosh = node_modules / "mongosh" / "bin" / "mongosh.js"
    done = subprocess.run(
        ["node", str(mongosh), "--norc", "--quiet", server.uri, "--tls", "--tlsCAFile", str(authority.file),
         "--tlsCertificateKeyFile", str(client_pem), "--eval", "db.c.insertOne({_id: 1}); print(db.c.countDocuments())"],
        env={**os.environ, "HOME": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180,
    )
    assert done.returncode == 0 and done.stdout.split()[-1] == "1", done.stdout


@pytest.fixture
def guarded(start, authority, server_pem):
    """A server that asks for logins and for TLS, with a root user and one known by certificate."""
    flags = ["--auth", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", server_pem, "--tlsCAFile", authority.file]
    server = start(None, *flags, "--tlsAllowConnectionsWithoutCertificates")
    tls = {"tls": True, "tlsCAFile": str(authority.file)}
    with pymongo.MongoClient(server.uri, **tls) as client:
        client.admin.command("createUser", "root", pwd="geheim", roles=["root"])
    with pymongo.MongoClient(server.uri, username="root", password="geheim", **tls) as client:
        subject = "CN=ann,OU=Clients,O=Nestor tests"
        client["$external"].command("createUser", subject, roles=[{"role": "readWrite", "db": "e2e_x509"}])
    return server


def test_login_by_certificate(guarded, authority, client_pem):
    x509 = {"tls": True, "tlsCAFile": str(authority.file), "authMechanism": "MONGODB-X509"}
    with pymongo.MongoClient(guarded.uri, tlsCertificateKeyFile=str(client_pem), **x509) as client:
        client.e2e_x509.c.insert_one({"_id": 1})
        with pytest.raises(OperationFailure) as refused:
            client.e2e_other.c.insert_one({"_id": 1})
        assert refused.value.code == 13
        who = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
        assert who == [{"user": "CN=ann,OU=Clients,O=Nestor tests", "db": "$external"}]
    class Told(monitoring.CommandListener):
        def __init__(self):
            self.names = []

        def started(self, event):
            self.names.append(event.command_name)

        def succeeded(self, event):
            pass

        def failed(self, event):
            pass

    # The handshake logs in already, though PyMongo names no database there (its own suite, test_mongodb_x509_auth).
    told = Told()
    with pymongo.MongoClient(guarded.uri, tlsCertificateKeyFile=str(client_pem), event_listeners=[told], **x509) as client:
        client.e2e_x509.c.find_one()
        assert told.names == ["find"]
    stranger, _ = authority.issue("nobody.pem", CN="ann")
    for options in [
        {"tlsCertificateKeyFile": str(stranger)},
        {},
        {"tlsCertificateKeyFile": str(client_pem), "username": "CN=root"},
    ]:
        with pymongo.MongoClient(guarded.uri, **x509, **options) as client:
            with pytest.raises(OperationFailure) as refused:
                client.e2e_x509.c.find_one()
            assert refused.value.code == 18, options


def test_login_with_the_password_itself(guarded, start, authority, server_pem, tmp_path):
    plain = {"tls": True, "tlsCAFile": str(authority.file), "authMechanism": "PLAIN", "authSource": "admin"}
    with pymongo.MongoClient(guarded.uri, username="root", password="geheim", **plain) as client:
        assert client.e2e_plain.c.count_documents({}) == 0
    for user, password in [("root", "Geheim"), ("nobody", "geheim")]:
        with pymongo.MongoClient(guarded.uri, username=user, password=password, **plain) as client:
            with pytest.raises(OperationFailure) as refused:
                client.e2e_plain.c.find_one()
            assert refused.value.code == 18 and refused.value.details["errmsg"] == "Authentication failed."
    # Not in the clear.
    server = start(None, "--auth", "--tlsMode", "allowTLS", "--tlsCertificateKeyFile", server_pem)
    with pymongo.MongoClient(server.uri) as client:
        client.admin.command("createUser", "root", pwd="geheim", roles=["root"])
    with pymongo.MongoClient(server.uri, username="root", password="geheim", authMechanism="PLAIN", authSource="admin") as client:
        with pytest.raises(OperationFailure) as refused:
            client.e2e_plain.c.find_one()
        assert refused.value.code == 334
