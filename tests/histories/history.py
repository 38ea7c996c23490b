"""What clients saw, as data: a history is a list of transactions, each with its operations and their results.

A statement outside of a transaction is a transaction of one operation. Values that are written are unique in a history, so
that whoever reads one knows who wrote it. There are three kinds of objects, told apart by who is asked for them:

| operation | meaning |
|---|---|
| `["append", key, v]` | `v` went to the end of a list |
| `["list", key, [v, ...]]` | the whole list was read |
| `["write", key, v, before]` | a register got `v` and had `before` (None: nothing), which the same operation told |
| `["blind", key, v]` | a register may have got `v`, and no reply told what it had before |
| `["link", key, v, before]` | a register had `v` and says that `v` replaced `before` |
| `["value", key, v]` | a register was read; None: there was nothing |
| `["add", key, v]` | `v` went into a set |
| `["members", key, [v, ...]]` | all members of a set were read |
| `["taken", key]` | a register was to get its first value, and the server said that it has one |
| `["broken", text]` | a result that no order of transactions explains, as the client found it |

A register whose `before` is None was made by an insert under a unique key.
"""

import dataclasses
import json

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


@dataclasses.dataclass
class Txn:
    """One transaction. Times are nanoseconds of one clock for all clients."""

    id: int
    process: str
    # Before the first request was sent.
    begin: int
    # After the last reply came; of no meaning while the outcome is unknown.
    end: int
    # OK: acknowledged. FAILED: it has certainly left nothing. UNKNOWN: either may be.
    outcome: str
    ops: list

    def __str__(self):
        return f"T{self.id}"


def save(history, path):
    with open(path, "w", encoding="utf-8") as file:
        for txn in sorted(history, key=lambda txn: txn.begin):
            file.write(json.dumps(dataclasses.asdict(txn)) + "\n")


def load(path):
    with open(path, encoding="utf-8") as file:
        return [Txn(**json.loads(line)) for line in file]
