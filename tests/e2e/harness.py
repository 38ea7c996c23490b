"""Starting and stopping the real binary, and a client that speaks raw bytes."""

import contextlib
import os
import queue
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import bson
import pymongo

ROOT = Path(__file__).resolve().parents[2]


def _binary():
    named = os.environ.get("NESTOR_BIN")
    if named:
        return named
    target = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/nestor/target"))
    return os.path.join(target, "debug", "nestor")


BIN = _binary()
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60


class DidNotStart(Exception):
    """The server ended instead of listening. `status` is its exit status, `output` all it said."""

    def __init__(self, status, output):
        super().__init__(f"exit status {status}:\n{output}")
        self.status = status
        self.output = output


class Server:
    """One `nestor serve` process on a free port.

    `dbpath=None` means `--ephemeral`. `limits` maps resource.RLIMIT_* to limits of the child, hard ones too.
    """

    def __init__(self, dbpath=None, *flags, limits=None, user=None, env=None, binary=BIN, port=0, cwd=None):
        self.dbpath = dbpath
        self.flags = list(map(str, flags))
        self.limits = limits or {}
        self.user = user
        self.env = env or {}
        self.binary = binary
        self.port_flag = port
        self.cwd = cwd
        self.process = None
        self.uri = None
        self._clients = []

    # -- life ---------------------------------------------------------------------------------

    def start(self):
        command = [self.binary, "serve", "--port", str(self.port_flag), "--print-uri"]
        command += ["--ephemeral"] if self.dbpath is None else ["--dbpath", str(self.dbpath)]
        if "--unixSocketPrefix" not in self.flags:
            # What a killed server leaves in a folder that all share may stop another user's server.
            command.append("--nounixsocket")
        self.log = tempfile.TemporaryFile(mode="w+")
        begun = time.monotonic()
        self.process = subprocess.Popen(
            command + self.flags,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "RUST_BACKTRACE": "0", **self.env},
            preexec_fn=self._restrict,
            cwd=self.cwd,
        )
        lines = queue.Queue()
        threading.Thread(target=self._read_output, args=(self.process.stdout, lines), daemon=True).start()
        self.printed = []
        while True:
            left = START_TIMEOUT_S - (time.monotonic() - begun)
            try:
                line = lines.get(timeout=max(left, 0.01))
            except queue.Empty:
                self.kill()
                raise DidNotStart("timed out", self.said()) from None
            if line is None:
                status = self.process.wait()
                raise DidNotStart(status, "".join(self.printed) + self.said())
            self.printed.append(line)
            if line.startswith("mongodb://"):
                self.uri = line.strip()
                self.started_in_s = time.monotonic() - begun
                return self

    def _restrict(self):
        for which, limit in self.limits.items():
            if which == resource.RLIMIT_FSIZE:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(which, (limit, limit))
        if self.user is not None:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)

    def _read_output(self, pipe, lines):
        for line in pipe:
            lines.put(line)
        lines.put(None)

    def said(self):
        """What the process wrote to standard error."""
        self.log.seek(0)
        return self.log.read()

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return pymongo.uri_parser.parse_uri(self.uri)["nodelist"][0]

    @property
    def port(self):
        return self.address[1]

    @property
    def set_uri(self):
        """The URI that makes a driver look for the primary of the replica set."""
        host, port = self.address
        return f"mongodb://{host}:{port}/?replicaSet=rs0"

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, how=signal.SIGTERM):
        """Asks the server to stop and returns its exit status."""
        self.close_clients()
        if self.is_running:
            self.process.send_signal(how)
        try:
            return self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not stop within {STOP_TIMEOUT_S} s") from None

    def kill(self):
        """kill -9."""
        # Closed afterwards, a client would look for the server in vain to end its sessions.
        self.close_clients()
        if self.is_running:
            self.process.kill()
        self.process.wait()

    def restart(self):
        self.stop()
        return self.start()

    # -- clients ------------------------------------------------------------------------------

    def client(self, uri=None, **options):
        """A pymongo client, closed with the server; by default through the URI the server printed."""
        # A server that hangs fails the test, and its teardown ends as well.
        options = {"serverSelectionTimeoutMS": 60_000, "socketTimeoutMS": 120_000, **options}
        client = pymongo.MongoClient(uri or self.uri, **options)
        self._clients.append(client)
        return client

    def close_clients(self):
        while self._clients:
            with contextlib.suppress(Exception):
                self._clients.pop().close()

    def raw(self, timeout=20):
        return Raw(self.address, timeout)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process is not None:
            self.kill()


def run(*arguments, timeout=300, **options):
    """`nestor ARGUMENTS` to its end; standard output and error come together."""
    return subprocess.run(
        [BIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **options,
    )


def check(dbpath):
    """`nestor check DIR` must find nothing wrong; returns what it printed."""
    done = run("check", dbpath)
    assert done.returncode == 0, done.stdout
    return done.stdout


# -- raw wire ---------------------------------------------------------------------------------

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def message(opcode, body, request_id=1, length=None):
    total = 16 + len(body) if length is None else length
    return struct.pack("<iiii", total, request_id, 0, opcode) + body


def section(document):
    return b"\0" + (document if isinstance(document, bytes) else bson.encode(document))


def sequence(identifier, documents):
    payload = identifier.encode() + b"\0" + b"".join(bson.encode(d) for d in documents)
    return b"\1" + struct.pack("<i", len(payload) + 4) + payload


def op_msg(document, *sequences, flags=0, request_id=1):
    body = struct.pack("<I", flags) + section(document) + b"".join(sequences)
    if flags & CHECKSUM_PRESENT:
        head = struct.pack("<iiii", 16 + len(body) + 4, request_id, 0, OP_MSG)
        return head + body + struct.pack("<I", crc32c(head + body))
    return message(OP_MSG, body, request_id)


class Closed(Exception):
    """The server closed the connection."""


class Raw:
    """A socket on which a test says exactly which bytes go out."""

    def __init__(self, address, timeout=20):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionResetError:
                raise Closed from None
            if not part:
                raise Closed
            data += part
        return data

    def receive(self):
        """One message: (opcode, request id, response to, body)."""
        length, request_id, response_to, opcode = struct.unpack("<iiii", self._exactly(16))
        return opcode, request_id, response_to, self._exactly(length - 16)

    def reply(self):
        """The document of one OP_MSG reply, and its flags as attribute `flags` of this object."""
        opcode, _, self.response_to, body = self.receive()
        assert opcode == OP_MSG, f"opcode {opcode}"
        (self.flags,) = struct.unpack_from("<I", body)
        assert body[4] == 0, "the reply's first section is of kind 0"
        end = len(body) - (4 if self.flags & CHECKSUM_PRESENT else 0)
        return bson.decode(body[5:end])

    def command(self, document, *sequences, flags=0):
        self.send(op_msg(document, *sequences, flags=flags))
        return self.reply()

    def is_closed(self):
        """True when the server has closed (waits for it)."""
        try:
            self._exactly(1)
        except Closed:
            return True
        except TimeoutError:
            return False
        return False

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def rss_bytes(pid):
    return status_bytes(pid, "VmRSS")


def peak_rss_bytes(pid):
    """The most that it ever had."""
    return status_bytes(pid, "VmHWM")


def status_bytes(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name}")


def eventually(condition, timeout=60, what="the condition"):
    """Waits until `condition()` is true; the only kind of waiting these tests do."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"{what} did not come true within {timeout} s"
        time.sleep(0.02)
