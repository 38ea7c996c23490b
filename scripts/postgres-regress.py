#!/usr/bin/env python3
"""Runs the statements of PostgreSQL's regression scripts on PostgreSQL and on Nestor, and compares what they answer.

    scripts/postgres-regress.py --postgres "host=127.0.0.1 port=5432 user=postgres" --nestor "host=127.0.0.1 port=5433 user=postgres" \\
        --scripts DIRECTORY [--verbose] [name ...]
    scripts/postgres-regress.py ... --records DIRECTORY [--verbose] [folder ...]

DIRECTORY holds PostgreSQL's `src/test/regress/sql/*.sql` (public; not part of this repository). Both servers run `test_setup` first,
then each script, statement by statement in a database of its own; rows that no ORDER BY puts in order are compared as sets, columns by
type and text, errors by SQLSTATE. Data that the scripts read from files are made here. What both refuse in the same way counts as the same.

With `--records`, DIRECTORY holds files in the form of sqllogictest (`*.test` of DuckDB's `test/sql`, `*.slt` of DataFusion), whose statements are
run in the same way. They are written for other dialects: what PostgreSQL refuses, and not as an error that the file expects, is left out on
both servers and counted apart, and what it answers is what counts, not the answer in the file. Totals are by folder.
"""

import argparse
import collections
import os
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


def records(text):
    """The statements of a file in the form of sqllogictest, and whether each is to fail; loops run once for each of their first values."""
    def unrolled(lines):
        out, at = [], 0
        while at < len(lines):
            words = lines[at].split()
            if words[:1] not in (["loop"], ["foreach"]):
                out.append(lines[at])
                at += 1
                continue
            level, end = 1, at + 1
            while end < len(lines) and level:
                first = lines[end].split()[:1]
                level += (first in (["loop"], ["foreach"])) - (first == ["endloop"])
                end += 1
            values = range(int(words[2]), min(int(words[3]), int(words[2]) + 4)) if words[0] == "loop" else words[2:6]
            for value in values:
                out += unrolled([line.replace("${" + words[1] + "}", str(value)) for line in lines[at + 1:end - 1]])
            at = end
        return out

    for group in "\n".join(line.rstrip() for line in unrolled(text.splitlines())).split("\n\n"):
        lines = [line for line in group.splitlines() if not line.startswith("#")]
        while lines and lines[0].split()[:1] and lines[0].split()[0] in ("skipif", "onlyif"):
            lines.pop(0)
        words = lines[0].split() if lines else []
        if words[:1] in (["statement"], ["query"]):
            body = lines[1:lines.index("----")] if "----" in lines else lines[1:]
            for statement in statements("\n".join(body) + "\n;"):
                yield statement, words[1] == "error"


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


def compared(servers, statement, left_out=lambda answer: False):
    """What both answered, and whether it is the same; nothing where the first one's answer says that the statement is left out."""
    wanted = servers[0].ask(statement)
    if left_out(wanted) and servers[0].connection.info.transaction_status != pq.TransactionStatus.INERROR:
        return None
    given = servers[1].ask(statement)
    if left_out(wanted):
        return None
    if "order by" not in statement.lower():
        for answer in (wanted, given):
            if answer[0] == "rows":
                answer[1][1].sort(key=repr)
    # Of errors the code counts and not the words.
    plain = [(kind, answer[0] if kind == "error" else answer) for kind, answer in (wanted, given)]
    return wanted, given, plain[0] == plain[1]


class Totals:
    """Totals by name, and how often there was each reason."""

    def __init__(self, verbose):
        self.verbose, self.reasons, self.totals = verbose, collections.Counter(), {}

    def add(self, name, place, statement, found):
        total = self.totals.setdefault(name, [0, 0, 0])
        if found is None:
            total[2] += 1
        elif found[2]:
            total[0] += 1
        else:
            total[1] += 1
            wanted, given, _ = found
            why = reason(wanted, given)
            self.reasons[why] += 1
            if self.verbose:
                print(f"{place}: {statement}\n    {why}\n    wanted {str(wanted)[:300]}\n    given  {str(given)[:300]}")

    def show(self, name, columns):
        total = self.totals.get(name, [0, 0, 0])
        print(f"| `{name}` | {' | '.join(str(n) for n in total[:columns])} |", flush=True)

    def end(self, columns):
        print(f"| all | {' | '.join(str(sum(total[i] for total in self.totals.values())) for i in range(columns))} |")
        for why, count in self.reasons.most_common(60):
            print(f"{count:6} {why}", file=sys.stderr)


def run_scripts(options, servers):
    setup = options.scripts / "test_setup.sql"
    for statement in statements(setup.read_text()) if setup.exists() else []:
        if not SKIPPED.match(statement):
            for server in servers:
                server.ask(statement)
    for table, count in (("onek", 1000), ("tenk1", 2000)):
        for server in servers:
            server.ask(made(table, count))
    totals = Totals(options.verbose)
    for name in options.names or sorted(path.stem for path in options.scripts.glob("*.sql") if path.stem != "test_setup"):
        for server in servers:
            server.start(options.database)
        for statement in statements((options.scripts / f"{name}.sql").read_text()):
            if not SKIPPED.match(statement):
                totals.add(name, name, statement, compared(servers, statement))
        totals.show(name, 2)
    totals.end(2)


# What says that a statement is not in PostgreSQL's language: syntax, and names that it does not know.
OTHER_LANGUAGE = {"42601", "42883", "42704", "0A000", "42P01", "42703", "3F000", "58P01", "42804", "42846", "42725", "42P18", "22P02", "42611"}


def run_records(options, servers):
    totals, number = Totals(options.verbose), 0
    paths = sorted(path for kind in ("*.test", "*.slt") for path in options.records.rglob(kind))
    chosen = [path for path in paths if not options.names or str(path.relative_to(options.records)).startswith(tuple(options.names))]
    for path in chosen:
        relative = path.relative_to(options.records)
        folder = relative.parts[0]
        number += 1
        servers[0].start(options.database)
        servers[0].ask("DROP SCHEMA public CASCADE")
        servers[0].ask("CREATE SCHEMA public")
        servers[1].start(f"{options.database}_{os.getpid()}_{number}")
        for statement, fails in records(path.read_text(errors="replace")):
            if not SKIPPED.match(statement):
                # A statement that is to fail, and fails for its words, says nothing.
                def left_out(answer):
                    return answer[0] in ("copy", "lost") or answer[0] == "error" and (not fails or answer[1][0] in OTHER_LANGUAGE)
                totals.add(folder, relative, statement, compared(servers, statement, left_out))
    for folder in totals.totals:
        totals.show(folder, 3)
    totals.end(3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--nestor", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--scripts", type=pathlib.Path)
    source.add_argument("--records", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--database", default="regress_compared", help="a database of this name is made anew")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with psycopg.connect(options.postgres, autocommit=True) as root:
        names = dict(root.execute("SELECT oid, format_type(oid, NULL) FROM pg_type").fetchall())
        root.execute(f"DROP DATABASE IF EXISTS {options.database}")
        root.execute(f"CREATE DATABASE {options.database} TEMPLATE template0 ENCODING utf8 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
    servers = [Server(options.postgres, names), Server(options.nestor, names)]
    for server in servers:
        server.start(options.database)
    (run_scripts if options.scripts else run_records)(options, servers)


if __name__ == "__main__":
    main()
