"""A TCP proxy between drivers and a server that cuts connections where it hurts.

    with Proxy(("127.0.0.1", 27017), Cuts(reply_lost=0.01), seed=7) as proxy:
        client = pymongo.MongoClient(*proxy.address, directConnection=True)

The proxy knows messages of the wire protocol by their length, so that it can cut at the places that differ for
a driver: before the server has the request, in the middle of it, or when the server has done the work and the reply is
lost. It needs nothing but Python's standard library, and runs by itself, too:

    python proxy.py 127.0.0.1:27017 --port 27018 --reply-lost 0.01 --seed 7
"""

import argparse
import asyncio
import collections
import dataclasses
import random
import struct
import threading

HEADER = struct.Struct("<iiii")
OP_MSG = 2013
MESSAGE_BYTES_MAX = 48_000_000 + 16 * 1024


@dataclasses.dataclass
class Cuts:
    """How likely each request meets each fate. They exclude each other, so together they are at most 1."""

    # The connection ends, and the server never hears of the request.
    request_lost: float = 0.0
    # The server gets half of the request, then the connection ends.
    request_halved: float = 0.0
    # The server gets the request; when its reply comes, the connection ends instead.
    reply_lost: float = 0.0
    # The same, but the driver gets half of the reply.
    reply_halved: float = 0.0
    # The connection ends once the server has the request: the server may find its client gone while it works.
    client_gone: float = 0.0
    # The server gets the request `delay_s` later.
    delayed: float = 0.0
    delay_s: float = 0.05
    # Names of commands to which all of this happens more often or less, by a factor.
    factors: dict = dataclasses.field(default_factory=lambda: {"hello": 0, "ismaster": 0, "isMaster": 0})

    FATES = ("request_lost", "request_halved", "reply_lost", "reply_halved", "client_gone", "delayed")

    def fate(self, command, dice):
        """What becomes of one request: one of `FATES`, or None."""
        roll = dice.random()
        for fate in self.FATES:
            roll -= getattr(self, fate) * self.factors.get(command, 1)
            if roll < 0:
                return fate
        return None


def command_name(message):
    """The name of the command in an OP_MSG whose body section comes first, else None."""
    if len(message) < 27 or HEADER.unpack_from(message)[3] != OP_MSG or message[20] != 0:
        return None
    end = message.find(b"\0", 26)
    return None if end < 0 else message[26:end].decode("utf-8", "replace")


class Proxy:
    """Listens on `port` (0: any free one) and passes messages on to `target`, a pair of host and port.

    `target`, `cuts` and `latency_s` may be set while the proxy runs; each connection looks when it is opened, or at each request.
    What becomes of the requests of the n-th connection depends on `seed` and n alone.
    """

    def __init__(self, target, cuts=None, seed=0, port=0):
        self.target = target
        self.cuts = cuts or Cuts()
        self.seed = seed
        # So long takes each message, in either direction.
        self.latency_s = 0.0
        self.address = ("127.0.0.1", port)
        # How many requests met which fate.
        self.fates = collections.Counter()
        self._accepted = 0
        self._open = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._listening = threading.Event()
        self._failure = None

    # -- for whoever uses it --------------------------------------------------------------------

    def start(self):
        self._thread.start()
        self._listening.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def cut_all(self):
        """Ends all connections that there are, as a network that goes away does."""
        self._loop.call_soon_threadsafe(self._close_all)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # -- the event loop's thread ----------------------------------------------------------------

    def _run(self):
        asyncio.set_event_loop(self._loop)
        try:
            server = self._loop.run_until_complete(asyncio.start_server(self._serve, *self.address))
            self.address = server.sockets[0].getsockname()[:2]
        except OSError as failure:
            self._failure = failure
            return
        finally:
            self._listening.set()
        self._loop.run_forever()
        server.close()
        self._close_all()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _close_all(self):
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, from_client, to_client):
        self._accepted += 1
        dice = random.Random(f"{self.seed} {self._accepted}")
        self._open.add(to_client)
        to_server = None
        try:
            from_server, to_server = await asyncio.open_connection(*self.target)
            self._open.add(to_server)
            # What becomes of the next reply: decided with its request.
            replies = {"fate": None}
            pumps = [
                asyncio.ensure_future(self._pass_requests(from_client, to_server, dice, replies)),
                asyncio.ensure_future(self._pass_replies(from_server, to_client, replies)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # The server is not there, or the proxy stops: the client's connection ends.
        finally:
            for writer in (to_client, to_server):
                if writer is not None:
                    self._open.discard(writer)
                    writer.close()

    async def _pass_requests(self, reader, writer, dice, replies):
        """Returns when the connection is to end."""
        while (message := await read_message(reader)) is not None:
            fate = self.cuts.fate(command_name(message), dice)
            if fate is not None:
                self.fates[fate] += 1
            if fate == "request_lost":
                return
            if fate == "request_halved":
                await write(writer, message[: len(message) // 2])
                return
            if fate == "delayed":
                await asyncio.sleep(self.cuts.delay_s)
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if fate in ("reply_lost", "reply_halved"):
                replies["fate"] = fate
            if not await write(writer, message) or fate == "client_gone":
                return

    async def _pass_replies(self, reader, writer, replies):
        while (message := await read_message(reader)) is not None:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if replies["fate"] == "reply_lost":
                return
            if replies["fate"] == "reply_halved":
                await write(writer, message[: len(message) // 2])
                return
            if not await write(writer, message):
                return


async def read_message(reader):
    """One message with its header; None at the end of the connection and for what is no message."""
    try:
        header = await reader.readexactly(HEADER.size)
        length = HEADER.unpack(header)[0]
        if not HEADER.size <= length <= MESSAGE_BYTES_MAX:
            return None
        return header + await reader.readexactly(length - HEADER.size)
    except (asyncio.IncompleteReadError, OSError):
        return None


async def write(writer, data):
    """False when the connection is gone."""
    try:
        writer.write(data)
        await writer.drain()
    except OSError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="HOST:PORT of the server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", default="0")
    for fate in Cuts.FATES:
        parser.add_argument(f"--{fate.replace('_', '-')}", type=float, default=0.0, metavar="PROBABILITY")
    arguments = parser.parse_args()
    host, _, port = arguments.target.rpartition(":")
    cuts = Cuts(**{fate: getattr(arguments, fate) for fate in Cuts.FATES})
    proxy = Proxy((host, int(port)), cuts, arguments.seed, arguments.port).start()
    print("listening on {}:{}".format(*proxy.address), flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print(dict(proxy.fates))


if __name__ == "__main__":
    main()
