#!/usr/bin/env python3
"""Runs the statements of PostgreSQL's regression scripts on PostgreSQL and on Nestor, and compares what they answer.

    scripts/postgres-regress.py --postgres "host=127.0.0.1 port=5432 user=postgres" --nestor "host=127.0.0.1 port=5433 user=postgres" \\
        --scripts DIRECTORY [--verbose] [name ...]

DIRECTORY holds PostgreSQL's `src/test/regress/sql/*.sql` (public; not part of this repository). Both servers run `test_setup` first,
then each script, statement by statement in a database of its own; rows that no ORDER BY puts in order are compared as sets, columns by
type and text, errors by SQLSTATE. Data that the scripts read from files are made here. What both refuse in the same way counts as the same.
"""

import argparse
import collections
import pathlib
import re
import sys

import psycopg
from psycopg import pq

SKIPPED = re.compile(r"\s*(vacuum|analyze|grant|revoke|create (role|user|tablespace|extension|function|procedure|operator|type|domain|rule|trigger|"
                     r"event|statistics|aggregate|cast|or replace function|schema|collation)|drop (role|user|function|type|operator|domain|aggregate|rule|trigger|schema|cast)|"
                     r"copy|explain|do |set session|reset session|alter (function|type|operator|role|domain)|notify|listen|comment|select pg_)", re.I)

ROWS = "unique1, unique2, two, four, ten, twenty, hundred, thousand, twothousand, fivethous, tenthous, odd, even, stringu1, stringu2, string4"


def made(table, count):
    """Rows for the tables that PostgreSQL fills from a file: numbers from 0 in an order that is no order, and texts of them."""
    n = f"(i * 7919) % {count}"
    text = f"chr(65 + ({n}) % 26) || chr(65 + ({n}) / 26 % 26) || 'AAAA'"
    return (f"INSERT INTO {table} ({ROWS}) SELECT {n}, i, ({n}) % 2, ({n}) % 4, ({n}) % 10, ({n}) % 20, ({n}) % 100, ({n}) % 1000, "
            f"({n}) % 2000, ({n}) % 5000, ({n}), ({n}) % 100 * 2 + 1, ({n}) % 100 * 2, {text}, chr(65 + i % 26) || 'AAAAA', "
            f"(ARRAY['AAAAxx', 'HHHHxx', 'OOOOxx', 'VVVVxx'])[i % 4 + 1] FROM generate_series(0, {count - 1}) i")


def statements(text):
    """The statements of a script; lines for psql and data of COPY are left out."""
    lines, skips = [], False
    for line in text.splitlines():
        if skips:
            skips = line != "\\."
            continue
        if line.startswith("\\"):
            continue
        line = re.sub(r"\\(gset|gexec|g|crosstabview|watch).*$", ";", line)
        if re.match(r"\s*copy\b.*\bfrom\s+stdin\b.*;", line, re.I):
            skips = True
            continue
        lines.append(line)
    text, out, start, at = "\n".join(lines), [], 0, 0
    depth = 0
    token = re.compile(r"--[^\n]*|/\*|'(?:[^']|'')*'|\"[^\"]*\"|\$([A-Za-z_]\w*)?\$|[();]|[Ee]'(?:[^'\\]|\\.|'')*'|\w+|.", re.S)
    while at < len(text):
        found = token.match(text, at)
        word = found.group()
        if word == "/*":
            level, at = 1, at + 2
            while level and at < len(text):
                if text.startswith("/*", at):
                    level, at = level + 1, at + 2
                elif text.startswith("*/", at):
                    level, at = level - 1, at + 2
                else:
                    at += 1
            continue
        if word.startswith("$") and word.endswith("$") and len(word) > 1:
            end = text.find(word, at + len(word))
            at = len(text) if end < 0 else end + len(word)
            continue
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
        elif word == ";" and depth <= 0:
            depth = 0
            statement = re.sub(r"^(\s|--[^\n]*\n)+", "", text[start:at])
            if statement:
                out.append(statement)
            start = at + 1
        at = found.end()
    return out


class Server:
    def __init__(self, how, names):
        self.how, self.names, self.connection = how, names, None

    def start(self, database):
        if self.connection:
            self.connection.close()
        self.connection = psycopg.connect(self.how, dbname=database, autocommit=True)
        for setting in ("timezone = 'America/Los_Angeles'", "client_min_messages = 'error'", "statement_timeout = '20s'"):
            self.connection.pgconn.exec_(f"SET {setting}".encode())
        self.database = database

    def ask(self, statement):
        try:
            result = self.connection.pgconn.exec_(statement.encode())
        except psycopg.Error as error:
            self.start(self.database)
            return "lost", str(error)
        if self.connection.pgconn.status != pq.ConnStatus.OK:
            self.start(self.database)
            return "lost", "connection"
        if result.status == pq.ExecStatus.TUPLES_OK:
            columns = range(result.nfields)
            types = [self.names.get(result.ftype(column), str(result.ftype(column))) for column in columns]
            rows = [tuple(result.get_value(row, column) for column in columns) for row in range(result.ntuples)]
            return "rows", (types, rows)
        if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
            return "ok", None
        if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT):
            self.start(self.database)
            return "copy", None
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        return "error", ((state or b"?").decode(), (message or b"").decode("utf-8", "replace"))


def reason(wanted, given):
    if given[0] == "lost":
        return "connection lost"
    if given[0] == "error":
        state, message = given[1]
        shown = re.sub(r"\"[^\"]*\"|'[^']*'|\d+", "_", message)
        return f"{state} {shown[:70]}"
    if wanted[0] == "error":
        return f"no error where {wanted[1][0]} is wanted"
    if wanted[0] == given[0] == "rows" and wanted[1][0] != given[1][0]:
        return "other types"
    return "other rows"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--nestor", required=True)
    parser.add_argument("--scripts", required=True, type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with psycopg.connect(options.postgres, autocommit=True) as root:
        names = dict(root.execute("SELECT oid, format_type(oid, NULL) FROM pg_type").fetchall())
        root.execute("DROP DATABASE IF EXISTS regress_compared")
        root.execute("CREATE DATABASE regress_compared TEMPLATE template0 ENCODING utf8 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
    servers = [Server(options.postgres, names), Server(options.nestor, names)]
    for server in servers:
        server.start("regress_compared")
    setup = options.scripts / "test_setup.sql"
    for statement in statements(setup.read_text()) if setup.exists() else []:
        if SKIPPED.match(statement):
            continue
        for server in servers:
            server.ask(statement)
    for table, count in (("onek", 1000), ("tenk1", 2000)):
        for server in servers:
            server.ask(made(table, count))
    totals, reasons = [], collections.Counter()
    for name in options.names or sorted(path.stem for path in options.scripts.glob("*.sql") if path.stem != "test_setup"):
        same = other = 0
        for server in servers:
            server.start("regress_compared")
        for statement in statements((options.scripts / f"{name}.sql").read_text()):
            if SKIPPED.match(statement):
                continue
            wanted, given = (server.ask(statement) for server in servers)
            if "order by" not in statement.lower():
                for answer in (wanted, given):
                    if answer[0] == "rows":
                        answer[1][1].sort(key=repr)
            # Of errors the code counts and not the words.
            compared = [(kind, answer[0] if kind == "error" else answer) for kind, answer in (wanted, given)]
            if compared[0] == compared[1]:
                same += 1
                continue
            other += 1
            why = reason(wanted, given)
            reasons[why] += 1
            if options.verbose:
                print(f"{name}: {statement}\n    {why}\n    wanted {str(wanted)[:300]}\n    given  {str(given)[:300]}")
        totals.append((name, same, other))
        print(f"| `{name}` | {same} | {other} |", flush=True)
    print(f"| all | {sum(t[1] for t in totals)} | {sum(t[2] for t in totals)} |")
    for why, count in reasons.most_common(40):
        print(f"{count:6} {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
