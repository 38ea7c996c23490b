#!/usr/bin/env python3
"""Runs a checkout of SQLite's sqllogictest files through PostgreSQL's wire protocol.

    scripts/sqllogictest.py --port 5432 --checkout ~/sqllogictest/test select1.test random/expr

Prints for each folder how many records passed, and under each folder the reasons of the others, the commonest
first. The format of the files is that of https://www.sqlite.org/sqllogictest/doc/trunk/about.wiki; records for
other databases are left out as `skipif postgresql` and `onlyif` say. Every file has a database of its own, whose
tables are dropped at its end. The exit code says whether every record passed.
"""

import argparse
import collections
import hashlib
import pathlib
import re
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))
from pgclient import Sql  # noqa: E402

ENGINE = "postgresql"


def records(path):
    """The records of a file: its lines in groups, without comments."""
    group = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("#"):
            continue
        if line.strip():
            group.append(line.rstrip())
        elif group:
            yield group
            group = []
    if group:
        yield group


def applies(group):
    """Takes conditions off the front of a record, and says whether it is for this engine."""
    wanted = True
    while group and group[0].startswith(("skipif", "onlyif")):
        kind, engine = group.pop(0).split()[:2]
        wanted &= (engine == ENGINE) == (kind == "onlyif")
    return wanted and bool(group)


def shown(value, kind):
    """A value as the files write it, from the text that the protocol sends."""
    if value is None:
        return "NULL"
    text = value.decode()
    if kind == "I":
        if re.fullmatch(r"-?\d+(\.\d*)?", text):
            return text.split(".")[0]
        return {"t": "1", "f": "0"}.get(text, text)
    if kind == "R":
        try:
            return f"{float(text):.3f}"
        except ValueError:
            return text
    printable = "".join(c if " " <= c <= "~" else "@" for c in text)
    return printable or "(empty)"


def arranged(rows, types, sort):
    """The values of a result in the order in which a record lists them."""
    rows = [[shown(value, kind) for value, kind in zip(row, types)] for row in rows]
    if sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if sort == "valuesort":
        values.sort()
    return values


def reason(message):
    """An error's message without what differs from case to case, so that equal reasons are counted together."""
    message = re.sub(r'"[^"]*"', '"…"', message)
    message = re.sub(r"'[^']*'", "'…'", message)
    return re.sub(r"\d{2,}(?!\S*: )|(?<= )\d+", "N", message)[:120]


class File:
    """One file on one connection."""

    def __init__(self, port, number, timeout, verbose):
        self.port, self.database, self.timeout, self.verbose = port, f"slt_{number}", timeout, verbose
        self.reasons = collections.Counter()
        self.passed = 0
        self.threshold = 0
        self.labels = {}
        self.connect()

    def connect(self):
        self.sql = Sql(self.port, database=self.database)
        self.sql.socket.settimeout(self.timeout)

    def ask(self, text):
        """Rows, or the message of an error."""
        try:
            return self.sql.query(text), None
        except RuntimeError as error:
            return None, str(error)
        except (EOFError, OSError, struct.error) as error:
            self.connect()
            return None, f"connection: {type(error).__name__}"

    def failed(self, why, text, detail=""):
        self.reasons[reason(why)] += 1
        if self.verbose:
            print(f"-- {why} {detail}\n{text}\n", file=sys.stderr)

    def run(self, path):
        for group in records(path):
            if not applies(group):
                continue
            words = group[0].split()
            if words[0] == "halt":
                break
            if words[0] == "hash-threshold":
                self.threshold = int(words[1])
            elif words[0] == "statement":
                self.statement(words[1] == "ok", "\n".join(group[1:]))
            elif words[0] == "query":
                self.query(words[1:], group[1:])
            else:
                self.failed(f"unknown record {words[0]}", "\n".join(group))
        self.clean()

    def clean(self):
        tables, _ = self.ask("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public'")
        for name, kind in sorted(tables or [], key=lambda row: row[1] != b"VIEW"):
            self.ask(f'DROP {"VIEW" if kind == b"VIEW" else "TABLE"} "{name.decode()}"')
        self.sql.socket.close()

    def statement(self, good, text):
        _, error = self.ask(text)
        if (error is None) == good:
            self.passed += 1
        else:
            self.failed(error or "no error", text)

    def query(self, words, lines):
        types = words[0]
        sort = words[1] if len(words) > 1 else "nosort"
        label = words[2] if len(words) > 2 else None
        cut = lines.index("----") if "----" in lines else len(lines)
        text, expected = "\n".join(lines[:cut]), lines[cut + 1 :]
        rows, error = self.ask(text)
        if error is not None:
            return self.failed(error, text)
        if rows and len(rows[0]) != len(types):
            return self.failed("wrong number of columns", text)
        values = arranged(rows, types, sort)
        digest = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
        if label and self.labels.setdefault(label, digest) != digest:
            return self.failed("differs from a query with the same label", text)
        hashed = re.fullmatch(r"(\d+) values hashing to ([0-9a-f]{32})", expected[0]) if len(expected) == 1 else None
        right = (len(values), digest) == (int(hashed[1]), hashed[2]) if hashed else values == expected
        if right or (cut == len(lines) and not expected):
            self.passed += 1
        else:
            self.failed("wrong result", text, f"{values[:12]} instead of {expected[:12]}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, required=True, help="where the server speaks SQL")
    options.add_argument("--checkout", type=pathlib.Path, required=True, help="the folder that the paths are in")
    options.add_argument("--timeout", type=float, default=120, help="seconds that one statement may take")
    options.add_argument("--reasons", type=int, default=8, help="how many reasons to print for each folder")
    options.add_argument("--verbose", action="store_true", help="print every record that fails")
    options.add_argument("paths", nargs="*", default=["."], help="files and folders; all of them without any")
    chosen = options.parse_args()
    files = sorted(
        {file for path in chosen.paths for file in (
            [chosen.checkout / path] if (chosen.checkout / path).is_file() else (chosen.checkout / path).rglob("*.test"))}
    )
    if not files:
        sys.exit("no files there")
    folders = {}
    for number, path in enumerate(files):
        relative = path.relative_to(chosen.checkout)
        folder = str(relative) if len(relative.parts) == 1 else "/".join(relative.parts[:2])
        entry = folders.setdefault(folder, [0, 0, collections.Counter(), 0.0])
        started = time.monotonic()
        file = File(chosen.port, number, chosen.timeout, chosen.verbose)
        file.run(path)
        entry[0] += file.passed
        entry[1] += sum(file.reasons.values())
        entry[2] += file.reasons
        entry[3] += time.monotonic() - started
    for folder, (passed, missed, reasons, seconds) in folders.items():
        print(f"{folder:28} {passed:7} passed {missed:6} failed {seconds:7.1f} s")
        for why, times in reasons.most_common(chosen.reasons):
            print(f"    {times:6}  {why}")
    sys.exit(any(entry[1] for entry in folders.values()))


if __name__ == "__main__":
    main()
