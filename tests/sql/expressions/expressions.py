#!/usr/bin/env python3
"""Writes the golden files of this folder: expressions of the manual's chapters on types and on functions, with PostgreSQL's answers.

    tests/sql/expressions/expressions.py --postgres "host=127.0.0.1 port=5499 user=postgres dbname=expressions" [--nestor "..."] [area ...]

`lists/AREA.txt` has expressions, one a line; lines that begin with `pairs` or `each` stand for many (see `expanded`). Each is run
as `SELECT <line>` (statements that begin with a word of SQL as they are) with PostgreSQL 15, whose answer goes to `AREA.golden`: the
types of the columns and the rows as text, or the SQLSTATE. With `--nestor` the same is asked of a server of Nestor, and what differs
is printed. `crates/testkit/tests/shared/expressions.rs` replays the golden files without PostgreSQL.
"""

import argparse
import itertools
import pathlib
import re
import sys

import psycopg
from psycopg import pq

FOLDER = pathlib.Path(__file__).parent
WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "SET", "RESET", "CREATE", "DROP", "INSERT")


def shown(text):
    """A value on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def statement(line):
    return line if line.split(None, 1)[0] in WORDS else "SELECT " + line


def answer(connection, line, names):
    result = connection.pgconn.exec_(statement(line).encode())
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
        return "ok"
    if result.status != pq.ExecStatus.TUPLES_OK:
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        return "! " + (state.decode() if state else "lost: " + result.error_message.decode())
    columns = range(result.nfields)
    types = ", ".join(names.get(result.ftype(column), str(result.ftype(column))) for column in columns)
    rows = []
    for row in range(result.ntuples):
        values = (result.get_value(row, column) for column in columns)
        rows.append(" | ".join("NULL" if value is None else shown(value.decode("utf-8", "replace")) for value in values))
    return types + ": " + " / ".join(rows)


def expanded(lines):
    """The expressions that lines stand for.

    `each EXPRESSION WITH @ :: a ;; b` puts each of the values at the place of `@`; `pairs ... ` puts each of them at `@1` with each at `@2`.
    """
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word in ("each", "pairs"):
            form, _, values = rest.partition(" :: ")
            values = [value.strip() for value in values.split(";;")]
            for form in form.split(" ;; "):
                if word == "each":
                    yield from (form.replace("@@", value) for value in values)
                else:
                    yield from (form.replace("@1", a).replace("@2", b) for a, b in itertools.product(values, values))
        else:
            yield line


def connect(how):
    connection = psycopg.connect(how, autocommit=True)
    for setting in ("timezone = 'UTC'", "client_min_messages = 'error'", "extra_float_digits = 1"):
        connection.pgconn.exec_(f"SET {setting}".encode())
    return connection


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--nestor")
    parser.add_argument("areas", nargs="*")
    options = parser.parse_args()
    postgres = connect(options.postgres)
    nestor = connect(options.nestor) if options.nestor else None
    found = postgres.execute("SELECT oid, format_type(oid, NULL) FROM pg_type").fetchall()
    names = dict(found)
    total = wrong = 0
    for path in sorted((FOLDER / "lists").glob("*.txt")):
        area = path.stem
        if options.areas and area not in options.areas:
            continue
        out, seen = [], set()
        for line in expanded(path.read_text().splitlines()):
            if line in seen and not line.startswith(("SET", "RESET")):
                continue
            seen.add(line)
            wanted = answer(postgres, line, names)
            out.append(f"{line}\n= {wanted}\n")
            total += 1
            if nestor:
                try:
                    given = answer(nestor, line, names)
                except psycopg.Error as error:
                    given = "lost: " + str(error)
                if nestor.pgconn.status != pq.ConnStatus.OK:
                    nestor = connect(options.nestor)
                    given = "lost"
                if given != wanted:
                    wrong += 1
                    print(f"{area}\t{line}\n    wanted {wanted}\n    given  {given}")
        (FOLDER / f"{area}.golden").write_text("\n".join(out))
    print(f"{total} expressions, {wrong} differ", file=sys.stderr)


if __name__ == "__main__":
    main()
