"""A laboratory: three members of a replica set on this machine, and commands to break them.

    scripts/cluster.py NESTOR FOLDER PORT [LOG]

Reads commands from standard input; without one it runs until it is interrupted.
"""

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pymongo
from pymongo.write_concern import WriteConcern

SET = "rs0"
MEMBERS = 3
HELP = """\
  status      who is primary, in which term, how far each member is
  table       how long a write takes by its write concern
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
        self.log = log or f"file://{self.folder}/log"
        self.members = [None] * MEMBERS
        self.uri = f"mongodb://{','.join(self.hosts)}/?replicaSet={SET}"

    def start(self, n):
        if self.members[n] is not None and self.members[n].poll() is None:
            return
        home = self.folder / f"member{n}"
        home.mkdir(parents=True, exist_ok=True)
        host = self.hosts[n]
        command = [self.nestor, "serve", "--dbpath", home / "data", "--port", host.split(":")[1], "--nounixsocket"]
        command += ["--replSet", SET, "--log", self.log, "--host", host, "--logpath", home / "log", "--logappend"]
        # Ctrl-C is for the laboratory, which ends them.
        self.members[n] = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)

    def send(self, n, how):
        if self.members[n] is not None and self.members[n].poll() is None:
            self.members[n].send_signal(how)
            if how == signal.SIGKILL:
                self.members[n].wait()

    def direct(self, n):
        return pymongo.MongoClient(self.hosts[n], directConnection=True, serverSelectionTimeoutMS=700, socketTimeoutMS=700)

    def status(self):
        for n, host in enumerate(self.hosts):
            try:
                with self.direct(n) as client:
                    hello = client.admin.command("hello")
                role = "primary" if hello["isWritablePrimary"] else "secondary"
                term = int.from_bytes(bytes(hello["electionId"].binary[4:]), "big")
                written, sure = hello["lastWrite"]["opTime"]["ts"], hello["lastWrite"]["majorityOpTime"]["ts"]
                print(f"  {n}  {host}  {role:9}  term {term}  last {written.time}.{written.inc}  majority {sure.time}.{sure.inc}")
            except pymongo.errors.PyMongoError as error:
                print(f"  {n}  {host}  gone: {str(error).split(',')[0][:60]}")

    def client(self):
        return pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=30_000)

    def table(self):
        concerns = {
            "majority": (WriteConcern(w="majority"), 200),
            "w: 1, j: true": (WriteConcern(w=1, j=True), 200),
            "w: 1": (WriteConcern(w=1), 200),
            # Members say how far they are twice a second.
            "w: 2": (WriteConcern(w=2), 10),
        }
        with self.client() as client:
            for name, (concern, count) in concerns.items():
                things = client.laboratory.get_collection("things", write_concern=concern)
                took = []
                for _ in range(count):
                    begun = time.monotonic()
                    things.insert_one({"x": 1})
                    took.append((time.monotonic() - begun) * 1000)
                took.sort()
                print(f"  {name:14} p50 {statistics.median(took):8.2f} ms   p99 {took[count * 99 // 100 - 1]:8.2f} ms")

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
        else:
            print(HELP)
        return True

    def end(self):
        for n in range(MEMBERS):
            self.send(n, signal.SIGCONT)
            self.send(n, signal.SIGTERM)
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
        print(f"\n{laboratory.uri}\nthe log is at {laboratory.log}, members are in {laboratory.folder}\n\n{HELP}\n", flush=True)
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
