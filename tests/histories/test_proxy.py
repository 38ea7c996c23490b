"""The cutting proxy against a server that echoes messages and notes what it got."""

import socket
import threading

import pytest
from proxy import HEADER, OP_MSG, Cuts, Proxy, command_name


class Echo:
    """Sends each message back and keeps what came, also what came in part."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.messages = []
        self.parts = []
        self.changed = threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        data = b""
        while True:
            try:
                part = connection.recv(65536)
            except OSError:
                part = b""
            if not part:
                break
            data += part
            while len(data) >= 16 and len(data) >= HEADER.unpack_from(data)[0]:
                length = HEADER.unpack_from(data)[0]
                with self.changed:
                    self.messages.append(data[:length])
                    self.changed.notify_all()
                try:
                    connection.sendall(data[:length])
                except OSError:
                    pass
                data = data[length:]
        with self.changed:
            self.parts.append(data)
            self.changed.notify_all()

    def wait(self, condition):
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), 10)


def message(name, filler=b""):
    document = b"\x10" + name.encode() + b"\0" + b"\1\0\0\0" + filler
    body = b"\0\0\0\0" + b"\0" + (len(document) + 5).to_bytes(4, "little") + document + b"\0"
    return HEADER.pack(16 + len(body), 1, 0, OP_MSG) + body


def receive(connection):
    data = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return data, True
        if not part:
            return data, True
        data += part
        if len(data) >= 16 and len(data) == HEADER.unpack_from(data)[0]:
            return data, False


@pytest.fixture
def echo():
    return Echo()


def exchange(echo, cuts, sent, **options):
    with Proxy(echo.address, cuts, **options) as proxy, socket.create_connection(proxy.address, 10) as connection:
        connection.sendall(sent)
        return *receive(connection), dict(proxy.fates)


def test_messages_pass_whole(echo):
    for sent in message("ping"), message("insert", b"x" * 300_000):
        assert exchange(echo, Cuts(), sent) == (sent, False, {})


def test_a_request_is_lost(echo):
    assert exchange(echo, Cuts(request_lost=1), message("insert")) == (b"", True, {"request_lost": 1})
    echo.wait(lambda echo: echo.parts == [b""])
    assert echo.messages == []


def test_a_request_is_halved(echo):
    sent = message("insert")
    assert exchange(echo, Cuts(request_halved=1), sent) == (b"", True, {"request_halved": 1})
    echo.wait(lambda echo: echo.parts == [sent[: len(sent) // 2]])


def test_a_reply_is_lost_after_the_server_did_the_work(echo):
    sent = message("insert")
    assert exchange(echo, Cuts(reply_lost=1), sent) == (b"", True, {"reply_lost": 1})
    assert echo.messages == [sent]


def test_a_reply_is_halved(echo):
    sent = message("insert")
    assert exchange(echo, Cuts(reply_halved=1), sent) == (sent[: len(sent) // 2], True, {"reply_halved": 1})


def test_a_client_goes_away_when_the_server_has_its_request(echo):
    sent = message("insert")
    assert exchange(echo, Cuts(client_gone=1), sent)[0] in (b"", sent)
    echo.wait(lambda echo: echo.messages == [sent])


def test_a_delayed_request_arrives(echo):
    sent = message("insert")
    assert exchange(echo, Cuts(delayed=1, delay_s=0.01), sent) == (sent, False, {"delayed": 1})


def test_nothing_happens_to_what_a_driver_asks_about_the_server(echo):
    sent = message("hello")
    assert exchange(echo, Cuts(request_lost=1), sent) == (sent, False, {})


def test_some_commands_are_cut_more_often(echo):
    cuts = Cuts(request_lost=0.01, factors={"commitTransaction": 100})
    assert exchange(echo, cuts, message("commitTransaction")) == (b"", True, {"request_lost": 1})


def test_the_same_seed_has_the_same_fates(echo):
    def fates(seed):
        lost = []
        with Proxy(echo.address, Cuts(reply_lost=0.5), seed) as proxy:
            for _ in range(20):
                with socket.create_connection(proxy.address, 10) as connection:
                    connection.sendall(message("insert"))
                    lost.append(receive(connection)[1])
        return lost

    assert fates(1) == fates(1) != fates(2)


def test_all_connections_can_be_cut_and_new_ones_reach_another_target(echo):
    other = Echo()
    with Proxy(echo.address) as proxy:
        with socket.create_connection(proxy.address, 10) as connection:
            connection.sendall(message("ping"))
            receive(connection)
            proxy.target = other.address
            proxy.cut_all()
            assert receive(connection) == (b"", True)
        with socket.create_connection(proxy.address, 10) as connection:
            connection.sendall(message("ping"))
            assert receive(connection) == (message("ping"), False)
    assert other.messages == [message("ping")]


def test_a_server_that_is_not_there_ends_the_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = listener.getsockname()
    with Proxy(nobody) as proxy, socket.create_connection(proxy.address, 10) as connection:
        assert receive(connection) == (b"", True)


def test_names_of_commands():
    assert command_name(message("insert")) == "insert"
    assert command_name(HEADER.pack(16, 1, 0, 2012)) is None
    assert command_name(message("insert")[:25]) is None
