"""Random transactions. What comes out depends on the dice alone, not on what the server answers.

Each worker draws from dice of its own. The objects it asks for move on while it goes: all workers pass through the same keys at
about the same time, so there is contention, and lists and sets stay short.
"""

import dataclasses
import random

LISTS, REGISTERS, GROUPS, TOKENS, ACCOUNTS = 5, 4, 3, 6, 5
BALANCE = 1000
# How many transactions a worker stays with one generation of lists and sets.
GENERATION = 150
# How many it stays with one unique key.
UNIQUE = 12


@dataclasses.dataclass
class Plan:
    """What a worker is to do: requests in one transaction, or one request without."""

    is_transaction: bool
    # The read concern level of the transaction.
    level: str
    # False: the transaction is aborted in the end.
    commits: bool
    # How often the commit is sent while its outcome is unknown.
    tries: int
    requests: list
    # Seconds to wait before each request but the first, so that transactions overlap.
    pause_s: float = 0.0


WEIGHTS = {
    "append": 8, "list": 8, "write": 4, "value": 4, "add": 4, "members": 4, "move": 3, "tokens": 3,
    "insert": 2, "find": 2, "transfer": 3, "balances": 2,
}  # fmt: skip
READS = {"list", "value", "members", "tokens", "find", "balances"}


class Generator:
    def __init__(self, seed, worker, is_set=False):
        self.worker = worker
        # In a replica set a primary that was deposed without knowing it may answer reads of what was, until it is asked for the order of time:
        # statements do so by `linearizable`, transactions by writing.
        self.is_set = is_set
        self.dice = random.Random(f"{seed} {worker}")
        self.plans = 0
        self.values = 0

    def next(self):
        dice = self.dice
        self.plans += 1
        if dice.random() < 0.3:
            plan = Plan(False, "linearizable" if self.is_set else "majority", True, 1, [self._request()])
        else:
            requests = [self._request() for _ in range(dice.randint(1, 5))]
            if self.is_set and all(request[0] in READS for request in requests):
                requests.append(("write", f"register {dice.randrange(REGISTERS)}", self._value()))
            # Only a commit makes sure that what a transaction read at "local" is there to stay.
            writes = not all(request[0] in READS for request in requests)
            level = dice.choice(["snapshot", "snapshot", "majority", "local"]) if writes else "snapshot"
            plan = Plan(True, level, dice.random() > 0.05, dice.randint(1, 5), requests)
            if dice.random() < 0.5:
                plan.pause_s = dice.uniform(0, 0.02)
        return plan

    def _value(self):
        self.values += 1
        return f"{self.worker}.{self.values}"

    def _request(self):
        dice = self.dice
        kind = dice.choices(list(WEIGHTS), WEIGHTS.values())[0]
        generation = self.plans // GENERATION
        if kind in ("append", "list"):
            key = f"list {generation}.{dice.randrange(LISTS)}"
            return (kind, key, self._value()) if kind == "append" else (kind, key)
        if kind in ("write", "value"):
            key = f"register {dice.randrange(REGISTERS)}"
            return (kind, key, self._value()) if kind == "write" else (kind, key)
        if kind in ("add", "members"):
            key = f"group {generation}.{dice.randrange(GROUPS)}"
            return (kind, key, self._value()) if kind == "add" else (kind, key)
        if kind == "move":
            return kind, f"token {dice.randrange(TOKENS)}", self._value(), dice.randrange(100)
        if kind in ("insert", "find"):
            key = f"unique {self.plans // UNIQUE}"
            return (kind, key, self._value()) if kind == "insert" else (kind, key)
        if kind == "transfer":
            source, target = dice.sample(range(ACCOUNTS), 2)
            return kind, source, target, dice.randint(1, 9), self._value()
        return (kind,)
