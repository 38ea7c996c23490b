"""What logging in, authorization and TLS cost: CPU of the server for each operation, and the time of a login.

    benches/security/figures.py path/to/nestor [--quick]

Server and client are on this machine. CPU is that of all threads of the server, as the kernel counts it, in nanoseconds. Two servers are
measured in turns, a round each, and of each the median round counts, so that what else the machine does strikes both. Needs nothing but Python 3
and `openssl` for a certificate.
"""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# So few that the figures mean nothing: to see that all of it works.
QUICK = "--quick" in sys.argv
ROUNDS = 1 if QUICK else 9
FINDS = 200 if QUICK else 20_000
PIPELINED = 50
LOGINS = 4 if QUICK else 40
DOCUMENTS = 100
USER, PASSWORD = "bench", "bench-password"


# -- BSON, as far as these commands need it ----------------------------------------------------


def encode(document):
    out = b""
    for name, value in document.items():
        key = name.encode() + b"\0"
        if isinstance(value, bool):
            out += b"\x08" + key + bytes([value])
        elif isinstance(value, int):
            out += b"\x10" + key + struct.pack("<i", value)
        elif isinstance(value, str):
            text = value.encode() + b"\0"
            out += b"\x02" + key + struct.pack("<i", len(text)) + text
        elif isinstance(value, bytes):
            out += b"\x05" + key + struct.pack("<i", len(value)) + b"\0" + value
        elif isinstance(value, list):
            out += b"\x04" + key + encode({str(i): item for i, item in enumerate(value)})
        else:
            out += b"\x03" + key + encode(value)
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def message(document):
    body = struct.pack("<i", 0) + b"\0" + encode(document)
    return struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body


def field(reply, name, kind):
    """Bytes behind a field of that name and kind, wherever it stands."""
    at = reply.index(kind + name.encode() + b"\0") + len(name) + 2
    return reply[at:]


# -- A connection ------------------------------------------------------------------------------


class Connection:
    def __init__(self, port, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)
        self.buffer = b""

    def reply(self):
        while len(self.buffer) < 4 or len(self.buffer) < struct.unpack_from("<i", self.buffer)[0]:
            received = self.socket.recv(1 << 20)
            if not received:
                raise SystemExit("the server closed the connection")
            self.buffer += received
        length = struct.unpack_from("<i", self.buffer)[0]
        reply, self.buffer = self.buffer[:length], self.buffer[length:]
        return reply

    def run(self, document):
        self.socket.sendall(message(document))
        reply = self.reply()
        if b"\x01ok\0" + struct.pack("<d", 1.0) not in reply:
            raise SystemExit(f"{document}: {reply}")
        return reply

    def log_in(self):
        """SCRAM-SHA-256 (RFC 5802, RFC 7677)."""
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = f"n={USER},r={nonce}"
        command = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": f"n,,{first}".encode(), "$db": "admin",
                   "options": {"skipEmptyExchange": True}}
        reply = self.run(command)
        payload = field(reply, "payload", b"\x05")
        payload = payload[5 : 5 + struct.unpack_from("<i", payload)[0]].decode()
        conversation = struct.unpack_from("<i", field(reply, "conversationId", b"\x10"))[0]
        parts = dict(part.split("=", 1) for part in payload.split(","))
        salted = salted_password(parts["s"], int(parts["i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c=biws,r={parts['r']}"
        signature = hmac.digest(hashlib.sha256(client_key).digest(), f"{first},{payload},{final}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature))).decode()
        self.run({"saslContinue": 1, "conversationId": conversation, "payload": f"{final},p={proof}".encode(), "$db": "admin"})


_salted = {}


def salted_password(salt, iterations):
    """Kept, as drivers do: what the client computes is not the server's time."""
    if salt not in _salted:
        _salted[salt] = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), base64.b64decode(salt), iterations)
    return _salted[salt]


# -- A server ----------------------------------------------------------------------------------


class Server:
    def __init__(self, binary, *flags, tls=None, user=False):
        command = [binary, "serve", "--ephemeral", "--port", "0", "--print-uri", "--nounixsocket", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        uri = self.process.stdout.readline()
        self.port = int(uri.split("//")[1].split("/")[0].rsplit(":", 1)[1])
        self.tls = tls
        setup = self.connect()
        if user:
            setup.run({"createUser": USER, "pwd": PASSWORD, "roles": ["root"], "$db": "admin"})
            setup.log_in()
        documents = [{"_id": i, "name": f"name {i}", "pad": "x" * 200} for i in range(DOCUMENTS)]
        setup.run({"insert": "c", "documents": documents, "$db": "bench"})
        self.user = user

    def connect(self, logged_in=False):
        connection = Connection(self.port, self.tls)
        if logged_in:
            connection.log_in()
        return connection

    def cpu_ns(self):
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                pass
        return total

    def stop(self):
        self.process.kill()
        self.process.wait()


def per_operation(server, connection, command, count, pipelined):
    """CPU of the server in microseconds for each of so many operations."""
    batch = message(command) * pipelined
    before = server.cpu_ns()
    for _ in range(count // pipelined):
        connection.socket.sendall(batch)
        for _ in range(pipelined):
            connection.reply()
    return (server.cpu_ns() - before) / 1000 / (count // pipelined * pipelined)


def compare(name, servers, command, count, pipelined):
    connections = [server.connect(server.user) for server in servers]
    rounds = [[], []]
    for turn in range(ROUNDS + 1):
        for i, server in enumerate(servers):
            cost = per_operation(server, connections[i], command, count, pipelined)
            if turn > 0:
                rounds[i].append(cost)
    plain, other = (statistics.median(costs) for costs in rounds)
    print(f"{name}: {plain:.2f} and {other:.2f} µs of CPU an operation: {other - plain:+.2f} µs, {100 * (other / plain - 1):+.0f} %")


def main():
    binary = sys.argv[1]
    point = {"find": "c", "filter": {"_id": 7}, "limit": 1, "singleBatch": True, "$db": "bench"}
    many = {"find": "c", "filter": {}, "batchSize": DOCUMENTS, "singleBatch": True, "$db": "bench"}
    with tempfile.TemporaryDirectory() as folder:
        key, certificate, both = (f"{folder}/{name}" for name in ("key", "certificate", "both"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        Path(both).write_text(Path(key).read_text() + Path(certificate).read_text())
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        servers = []
        try:
            plain = Server(binary)
            servers.append(plain)
            auth = Server(binary, "--auth", user=True)
            servers.append(auth)
            tls = Server(binary, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", both, tls=context)
            servers.append(tls)
            compare("find by _id, without and with --auth", [plain, auth], point, FINDS, PIPELINED)
            compare(f"find of {DOCUMENTS} documents, without and with --auth", [plain, auth], many, FINDS // 10, 1)
            compare("find by _id, one at a time, without and with TLS", [plain, tls], point, FINDS // 4, 1)
            compare(f"find of {DOCUMENTS} documents, without and with TLS", [plain, tls], many, FINDS // 10, 1)
            times, before = [], auth.cpu_ns()
            for _ in range(LOGINS):
                connection = auth.connect()
                begun = time.perf_counter()
                connection.log_in()
                times.append(1000 * (time.perf_counter() - begun))
            cpu = (auth.cpu_ns() - before) / 1000 / LOGINS
            times.sort()
            print(
                f"login by SCRAM-SHA-256: {statistics.median(times):.2f} ms, of {LOGINS} the slowest {times[-1]:.2f} ms; "
                f"{cpu:.0f} µs of CPU of the server, connection included"
            )
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
