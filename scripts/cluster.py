"""A laboratory: three members of a replica set on this machine, and commands to break them.

    scripts/cluster.py NESTOR FOLDER PORT [LOG]

Without LOG the log is in a double of S3 in this process (tests/e2e/s3.py), by which delay, loss and partitions of the store are made; it ends with
the process. Clients reach members through proxies (tests/histories/proxy.py), by which those of the network are made, and syncs of members' disks go
through a library (tests/e2e/disk.c). Reads commands from standard input; without one it runs until it is interrupted. A page at the port after the members' shows how they are.
"""

import html
import http.server
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pymongo
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

for folder in ("e2e", "histories"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / folder))

from clock import environment as clock_environment  # noqa: E402
from proxy import Cuts, Proxy  # noqa: E402
from s3 import Faults, Store  # noqa: E402

SET = "rs0"
MEMBERS = 3
HELP = """\
  status      who is primary, in which term, how far each member is, and requests to the store
  table       how long writes and reads take by their concerns, beside what arithmetic expects of the delay
  delay MS    each request to the store takes so much longer; 0 ends it
  loss SHARE  such a share of the requests to the store gets no answer (0.05), half of them are not done either; 0 ends it
  net MS      each round trip between clients and members takes so much longer (100); 0 ends it
  netloss SHARE  such a share of clients' requests ends with its connection, half of them before the member has it; 0 ends it
  disk MS     each sync of the members' disks takes so much longer (50; needs a C compiler); 0 ends it
  cut N       member N does not reach the store
  part N      clients do not reach member N
  heal N      it and they do again
  clock N S   the clock of member N is S seconds off (-3600)
  kill N      kill -9 member N
  stop N      SIGSTOP member N: it hangs, and its lease runs out
  go N        SIGCONT member N
  down N      SIGTERM member N: it hands the lease over
  start N     start member N
  step        have the primary step down
  quit        end all of them"""


class Laboratory:
    def __init__(self, nestor, folder, port, log):
        self.nestor, self.folder = nestor, Path(folder).resolve()
        self.hosts = [f"127.0.0.1:{port + n}" for n in range(MEMBERS)]
        # Members listen at other ports than those under which they are known.
        self.ports = [port + 100 + n for n in range(MEMBERS)]
        self.proxies = [Proxy(("127.0.0.1", self.ports[n]), port=port + n).start() for n in range(MEMBERS)]
        self.disk_ms = 0
        self.log = log or "s3://bucket/set"
        # A door to the double for each member, unless the log is elsewhere.
        self.store = None if log else Store().__enter__()
        self.doors = [self.store.door() for _ in range(MEMBERS)] if self.store else []
        self.members = [None] * MEMBERS
        self.uri = f"mongodb://{','.join(self.hosts)}/?replicaSet={SET}"

    def start(self, n):
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.members[n] is not None and self.members[n].poll() is None:
            return
        home = self.folder / f"member{n}"
        home.mkdir(parents=True, exist_ok=True)
        host = self.hosts[n]
        command = [self.nestor, "serve", "--dbpath", home / "data", "--port", str(self.ports[n]), "--nounixsocket"]
        command += ["--replSet", SET, "--log", self.log, "--host", host, "--logpath", home / "log", "--logappend"]
        env = {**os.environ, **clock_environment(home / "clock", self.folder / "disk"), **(self.doors[n].environment if self.doors else {})}
        # Ctrl-C is for the laboratory, which ends them.
        self.members[n] = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, env=env)

    def send(self, n, how):
        if self.members[n] is not None and self.members[n].poll() is None:
            self.members[n].send_signal(how)
            if how == signal.SIGKILL:
                self.members[n].wait()

    def direct(self, n):
        return pymongo.MongoClient(self.hosts[n], directConnection=True, serverSelectionTimeoutMS=700, socketTimeoutMS=700)

    def status(self):
        print("\n".join(f"  {line}" for line in self.lines()))

    def lines(self):
        newest = 0
        for n, host in enumerate(self.hosts):
            try:
                with self.direct(n) as client:
                    hello = client.admin.command("hello")
                role = "primary" if hello["isWritablePrimary"] else "secondary"
                term = int.from_bytes(bytes(hello["electionId"].binary[4:]), "big")
                written, sure = hello["lastWrite"]["opTime"]["ts"], hello["lastWrite"]["majorityOpTime"]["ts"]
                lag = hello["lastWrite"]["lastWriteDate"].timestamp()
                newest = max(newest, lag)
                yield (
                    f"{n}  {host}  {role:9}  term {term}  last {written.time}.{written.inc}  majority {sure.time}.{sure.inc}"
                    f"  last write {newest - lag:.0f} s behind{self.requests(n)}"
                )
            except pymongo.errors.PyMongoError as error:
                yield f"{n}  {host}  gone: {str(error).split(',')[0][:60]}{self.requests(n)}"

    def requests(self, n):
        if not self.doors:
            return ""
        door = self.doors[n]
        asked = sum(door.requests.values())
        is_cut = ", cut off" if door.is_shut else ""
        return f"  store: {door.requests['PUT']} puts of {asked} requests, {sum(door.fates.values())} faults{is_cut}"

    def page(self, port):
        """Serves a page that shows `lines`, anew each second."""
        laboratory = self

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = html.escape("\n".join([laboratory.uri, "", *laboratory.lines()]))
                body = f'<meta http-equiv="refresh" content="1"><title>{SET}</title><pre>{body}</pre>'.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{port}/"

    def client(self):
        return pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=30_000)

    def table(self):
        concerns = {
            "majority": (WriteConcern(w="majority"), 100),
            "w: 1, j: true": (WriteConcern(w=1, j=True), 100),
            "w: 1": (WriteConcern(w=1), 100),
            "w: 2": (WriteConcern(w=2), 50),
            "w: 0": (WriteConcern(w=0), 100),
        }
        # How many requests to the store one after the other a write waits for: the put of the commit; a member that reads it, with a request
        # before that, the put by which it says so, and the list of members with two of them.
        waits = {"majority": 1, "w: 2": 7}
        with self.client() as client:
            trip = self.row("ping", lambda: client.admin.command("ping"), 100)
            put = self.row("put of the store", self.put, 50) if self.doors else 0
            for name, (concern, count) in concerns.items():
                things = client.laboratory.get_collection("things", write_concern=concern)
                things.insert_one({"x": 1})
                expected = (0 if name == "w: 0" else trip) + waits.get(name, 0) * put + (self.disk_ms if "j" in name and name != "majority" else 0)
                self.row(name, lambda: things.insert_one({"x": 1}), count, expected)  # noqa: B023
            for name, preference in [("primary", ReadPreference.PRIMARY), ("secondary", ReadPreference.SECONDARY)]:
                things = client.laboratory.get_collection("things", read_preference=preference)
                things.find_one({"x": 1})
                self.row(f"read, {name}", lambda: things.find_one({"x": 1}), 100, trip)  # noqa: B023

    def put(self):
        url = f"{self.doors[0].environment['AWS_ENDPOINT_URL']}/bucket/probe"
        urllib.request.urlopen(urllib.request.Request(url, data=b"x" * 500, method="PUT")).read()

    def row(self, name, work, count, expected=None):
        took = []
        for _ in range(count):
            begun = time.monotonic()
            work()
            took.append((time.monotonic() - begun) * 1000)
        took.sort()
        beside = f"   arithmetic {expected:8.2f} ms" if expected is not None else ""
        print(f"  {name:17} p50 {statistics.median(took):8.2f} ms   p99 {took[count * 99 // 100 - 1]:8.2f} ms{beside}", flush=True)
        return statistics.median(took)

    def fault(self, word, rest):
        """Changes how the store behaves. False if that is no such command."""
        try:
            if word == "clock" and len(rest) == 2:
                (self.folder / f"member{int(rest[0])}" / "clock").write_text(str(int(rest[1])))
            elif word == "disk" and len(rest) == 1:
                self.disk_ms = int(rest[0])
                (self.folder / "disk").write_text(str(self.disk_ms))
            elif word == "net" and len(rest) == 1:
                for proxy in self.proxies:
                    proxy.latency_s = float(rest[0]) / 2000
            elif word == "netloss" and len(rest) == 1:
                half = float(rest[0]) / 2
                for proxy in self.proxies:
                    proxy.cuts = Cuts(request_lost=half, reply_lost=half)
            elif word in ("part", "heal") and len(rest) == 1:
                n = int(rest[0])
                self.proxies[n].target = ("127.0.0.1", 1 if word == "part" else self.ports[n])
                self.proxies[n].cut_all()
                if self.doors and word == "heal":
                    self.doors[n].is_shut = False
            elif not self.doors or len(rest) != 1:
                return False
            elif word == "cut":
                self.doors[int(rest[0])].is_shut = True
            elif word in ("delay", "loss"):
                amount = float(rest[0])
                for door in self.doors:
                    now = door.faults
                    delay = amount / 1000 if word == "delay" else now.delay_s
                    half = amount / 2 if word == "loss" else now.lost
                    door.faults = Faults(lost=half, unanswered=half, delay_s=delay)
            else:
                return False
        except (ValueError, IndexError):
            return False
        return True

    def obey(self, line):
        """Does what a line says. False when it is the last one."""
        word, *rest = line.split()
        if word == "quit":
            return False
        if word in ("status", "table") and not rest:
            getattr(self, word)()
        elif word == "step" and not rest:
            with self.client() as client:
                client.admin.command("replSetStepDown", 30)
        elif word in ("kill", "stop", "go", "down", "start") and len(rest) == 1 and rest[0] in "012":
            n = int(rest[0])
            signals = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "go": signal.SIGCONT, "down": signal.SIGTERM}
            if word == "start":
                self.start(n)
            else:
                self.send(n, signals[word])
        elif not self.fault(word, rest):
            print(HELP)
        return True

    def end(self):
        for n in range(MEMBERS):
            self.send(n, signal.SIGCONT)
            self.send(n, signal.SIGTERM)
        for proxy in self.proxies:
            proxy.stop()
        for member in filter(None, self.members):
            try:
                member.wait(20)
            except subprocess.TimeoutExpired:
                member.kill()


def main():
    nestor, folder, port, log = [*sys.argv[1:], ""][:4]
    # Ended in any way, it ends its members.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    laboratory = Laboratory(nestor, folder, int(port), log)
    try:
        for n in range(MEMBERS):
            laboratory.start(n)
        page = laboratory.page(int(port) + MEMBERS)
        where = f"the log is at {laboratory.log}, members are in {laboratory.folder}"
        print(f"\n{laboratory.uri}\n{page}\n{where}\n\n{HELP}\n", flush=True)
        for line in sys.stdin:
            if not line.strip():
                continue
            try:
                if not laboratory.obey(line):
                    return
            except pymongo.errors.PyMongoError as error:
                print(f"  {error}"[:300])
            sys.stdout.flush()
        if not os.isatty(0):
            signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        laboratory.end()


if __name__ == "__main__":
    main()
