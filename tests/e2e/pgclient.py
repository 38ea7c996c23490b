"""A small client of PostgreSQL's wire protocol, for tests that must not depend on one being installed."""

import base64
import hashlib
import hmac
import os
import re
import socket
import struct


class Sql:
    """A connection that speaks the simple and the extended protocol, and no more than the tests need."""

    def __init__(self, port, database="shop", user="tester", password=None, tls=None):
        self.begin(port, database, user, tls)
        self.key = None
        if password is not None:
            self.log_in(password)
        messages = self.until_ready()
        self.rows(messages)
        for tag, body in messages:
            if tag == b"K":
                self.key = struct.unpack("!ii", body)

    def begin(self, port, database, user, tls=None):
        """Says who comes, and waits for nothing."""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        if tls is not None:
            self.socket.sendall(struct.pack("!ii", 8, 80877103))
            if self.socket.recv(1) != b"S":
                raise RuntimeError("no TLS")
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        body = struct.pack("!i", 196608)
        body += b"user\0" + user.encode() + b"\0database\0" + database.encode() + b"\0\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)

    def log_in(self, password):
        """SCRAM-SHA-256, RFC 7677."""
        nonce = base64.b64encode(os.urandom(18)).decode()
        kind, offered = self.asked()
        assert (kind, offered) == (10, b"SCRAM-SHA-256\0\0")
        bare = f"n=,r={nonce}"
        hello = f"n,,{bare}".encode()
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(hello)) + hello)
        kind, challenge = self.asked()
        assert kind == 11
        parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c=biws,r={parts['r']}"
        signed = f"{bare},{challenge.decode()},{final}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
        self.send(b"p", f"{final},p={proof}".encode())
        kind, answer = self.asked()
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        assert (kind, answer) == (12, b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha256")))

    def asked(self):
        """The next message of a login."""
        tag, body = self.message()
        self.rows([(tag, body)])
        assert tag == b"R", tag
        return struct.unpack_from("!i", body)[0], body[4:]

    def message(self):
        tag = self.read(1)
        (length,) = struct.unpack("!i", self.read(4))
        return tag, self.read(length - 4)

    def read(self, n):
        out = b""
        while len(out) < n:
            part = self.socket.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def until_ready(self):
        out = []
        while True:
            out.append(self.message())
            # A fatal error is the last that a server says.
            if out[-1][0] == b"Z" or out[-1][0] == b"E" and b"SFATAL\0" in out[-1][1]:
                return out

    def send(self, tag, body=b""):
        self.socket.sendall(tag + struct.pack("!i", len(body) + 4) + body)

    @staticmethod
    def rows(messages):
        out = []
        for tag, body in messages:
            if tag == b"E":
                parts = dict((part[:1], part[1:].decode()) for part in body.split(b"\0") if part)
                raise RuntimeError(parts[b"C"] + " " + parts[b"M"])
            if tag == b"D":
                at, row = 2, []
                while at < len(body):
                    (length,) = struct.unpack_from("!i", body, at)
                    at += 4
                    row.append(None if length < 0 else body[at : at + length])
                    at += max(length, 0)
                out.append(row)
        return out

    def query(self, text):
        self.send(b"Q", text.encode() + b"\0")
        return self.rows(self.until_ready())

    def prepared(self, text, params, binary=0):
        self.send(b"P", b"\0" + text.encode() + b"\0" + struct.pack("!h", 0))
        values = b"".join(struct.pack("!i", len(p)) + p for p in params)
        self.send(b"B", b"\0\0" + struct.pack("!hh", 0, len(params)) + values + struct.pack("!hh", 1, binary))
        self.send(b"E", b"\0" + struct.pack("!i", 0))
        self.send(b"S")
        return self.rows(self.until_ready())


def port_of(server):
    return int(re.search(r'"Waiting for SQL connections".*?"address":"127\.0\.0\.1:(\d+)"', server.said())[1])
