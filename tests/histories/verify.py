"""All that can be wrong with a history.

    python verify.py HISTORY.jsonl [--serializable]
"""

import argparse
import sys

from graph import find_cycles
from history import load
from observe import observe


def verify(history, serializable=False):
    """The anomalies of a history under snapshot isolation in real time, or under serializability.

    Snapshot isolation is what it is checked against because it is what transactions with read concern "snapshot" and write
    concern "majority" promise; that a transaction sees everything acknowledged before it began is what a single node adds.
    """
    facts = observe(history)
    return facts.anomalies + find_cycles(facts, serializable)


def main():
    parser = argparse.ArgumentParser(description="Looks for anomalies in a recorded history.")
    parser.add_argument("history")
    parser.add_argument("--serializable", action="store_true")
    arguments = parser.parse_args()
    anomalies = verify(load(arguments.history), arguments.serializable)
    for anomaly in anomalies:
        print(anomaly)
    sys.exit(bool(anomalies))


if __name__ == "__main__":
    main()
