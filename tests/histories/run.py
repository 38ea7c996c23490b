"""Many clients, random transactions, kill -9 in between, and the verdict.

    python run.py --seconds 20             one episode, its seed from the dice
    python run.py --hours 2                episodes of a minute, one after the other
    python run.py --seconds 20 --seed 7    the same transactions again; how they meet is up to the scheduler

    python run.py --seconds 40 --set       against a replica set of three members, and worse happens than kill -9 (several.py)

An episode has a server and a database of its own. Half of the clients reach it through a proxy that cuts connections. Every few
seconds the server is killed, its files are checked, and it starts again; the clients go on as drivers do. In the end one
transaction reads everything, and the history is verified. A history with anomalies is kept in a file and named.
"""

import argparse
import collections
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from alone import Alone  # noqa: E402
from client import Recorder, Worker, read_everything, set_up  # noqa: E402
from events import verify_events  # noqa: E402
from follow import END, Follower  # noqa: E402
from generate import Generator  # noqa: E402
from history import OK, UNKNOWN, save  # noqa: E402
from pymongo.errors import OperationFailure  # noqa: E402
from several import Several  # noqa: E402
from verify import verify  # noqa: E402

WORKERS = 10
EPISODE_S = 60
COMMAND_NOT_SUPPORTED = 115
# How long a worker may take to come to an end.
JOIN_S = 90


class Episode:
    """`seconds` of transactions; `fault` is NESTOR_FAULT of a server with deliberate faults. `system` makes what they run against: `Alone` or
    `Several`."""

    def __init__(self, folder, seed, seconds, workers=WORKERS, serializable=False, fault=None, system=Alone):
        self.seed = seed
        self.seconds = seconds
        self.workers = workers
        self.serializable = serializable
        self.recorder = Recorder()
        self.follower = None
        self.system = system(Path(folder), seed, fault)

    @property
    def history(self):
        return self.recorder.history

    def run(self):
        """Returns the anomalies."""
        with self.system as system:
            set_up(system.client())
            self._follow()
            stop = threading.Event()
            workers = []
            for number in range(self.workers):
                # Some do not try again: what became of a plain write that was cut is unknown then.
                client = system.connect(number, retries=number % 4 < 3)
                dice = Generator(self.seed, number, system.is_set)
                workers.append(Worker(f"w{number}", client, dice, self.recorder, stop, self.serializable))
            workers += system.watchers(stop)
            for worker in workers:
                worker.start()
            try:
                self._disturb_now_and_then(workers)
            finally:
                stop.set()
                system.relent()
            for worker in workers:
                self._end(worker)
            system.settle()
            # After a long episode this takes longer than transactions may otherwise.
            system.client().admin.command("setParameter", 1, transactionLifetimeLimitSeconds=3600)
            read_everything(system.client(), self.history, self.recorder)
            if self.follower:
                system.client().histories[END].insert_one({})
                self._end(self.follower)
            anomalies = system.anomalies()
        anomalies += verify(self.history, self.serializable)
        if self.follower:
            anomalies += verify_events(self.history, self.follower.events)
        return anomalies

    def _follow(self):
        client = self.system.client()
        if not has_change_streams(client):
            print("change streams are not there yet: nobody follows")
            return
        since = client.admin.command("ping")["operationTime"]
        self.follower = Follower(self.system.connect(1, retries=True), since, self.seed)
        self.follower.start()

    def _end(self, thread):
        """Waits for the end of a worker or follower, and closes its client while there is a server that can end its sessions."""
        thread.join(JOIN_S)
        thread.client.close()
        assert not thread.is_alive(), f"{thread.name} does not come to an end"
        if thread.problem is not None:
            raise thread.problem

    def _disturb_now_and_then(self, workers):
        dice = random.Random(f"{self.seed} kills")
        end = time.monotonic() + self.seconds
        while (left := end - time.monotonic()) > 0:
            if dice.random() < 0.3:
                self.system.compact()
            time.sleep(min(left, dice.uniform(*self.system.every_s)))
            if any(worker.problem is not None for worker in workers):
                return
            if end - time.monotonic() > 1:
                self.system.disturb(dice)

    def summary(self):
        outcomes = [txn.outcome for txn in self.history]
        return (
            f"{len(outcomes)} transactions, {outcomes.count(OK)} acknowledged, {outcomes.count(UNKNOWN)} unknown, {self.system.summary()}"
            + (f", {len(self.follower.events)} events in {self.follower.resumes} parts" if self.follower else "")
        )


def has_change_streams(client):
    try:
        client.histories.watch().close()
    except OperationFailure as error:
        if error.code != COMMAND_NOT_SUPPORTED:
            raise
        return False
    return True


def run_episode(seed, seconds, keep, **options):
    """One episode; prints what happened and returns whether the history was clean. Histories with anomalies go to `keep`."""
    with tempfile.TemporaryDirectory(prefix="nestor-histories-") as folder:
        episode = Episode(folder, seed, seconds, **options)
        begun = time.monotonic()
        anomalies = episode.run()
        took = time.monotonic() - begun
    print(f"seed {seed}: {episode.summary()}, {len(anomalies)} anomalies, {took:.0f} s", flush=True)
    if anomalies:
        path = Path(keep) / f"history-{str(seed).replace('/', '-')}.jsonl"
        save(episode.history, path)
        for kind, count in collections.Counter(anomaly.kind for anomaly in anomalies).items():
            example = next(anomaly for anomaly in anomalies if anomaly.kind == kind)
            print(f"  {count} x {str(example)[:600]}")
        print(f"  the history is in {path}", flush=True)
    return anomalies


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="one episode of so many seconds")
    parser.add_argument("--hours", type=float, default=0.0, help="episodes for so long")
    parser.add_argument("--seed", default=os.environ.get("NESTOR_HISTORIES_SEED"))
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--set", action="store_true", help="against a replica set")
    parser.add_argument("--serializable", action="store_true", help="transactions ask for it, and G2 is an anomaly")
    parser.add_argument("--fault", help="NESTOR_FAULT of a server built with deliberate faults")
    parser.add_argument("--keep", default=tempfile.gettempdir(), help="where histories with anomalies go")
    parser.add_argument("--until-found", action="store_true", help="succeed with the first anomaly, fail without")
    arguments = parser.parse_args()
    seed = arguments.seed or str(random.SystemRandom().randrange(1 << 32))
    print(f"histories: seed {seed} (NESTOR_HISTORIES_SEED or --seed)", flush=True)
    end = time.monotonic() + arguments.hours * 3600
    found = episodes = 0
    while episodes == 0 or time.monotonic() < end:
        anomalies = run_episode(
            f"{seed}/{episodes}" if episodes else seed, arguments.seconds or EPISODE_S, arguments.keep,
            workers=arguments.workers, serializable=arguments.serializable, fault=arguments.fault,
            system=Several if arguments.set else Alone,
        )  # fmt: skip
        episodes += 1
        found += bool(anomalies)
        if anomalies and arguments.until_found:
            break
    print(f"{found} of {episodes} histories have anomalies")
    sys.exit(found == 0 if arguments.until_found else found > 0)


if __name__ == "__main__":
    main()
