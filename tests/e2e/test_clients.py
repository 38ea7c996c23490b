"""Node's driver and mongosh, unmodified."""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent / "node"


def node(node_modules, arguments, tmp_path, timeout=180):
    done = subprocess.run(
        ["node", *map(str, arguments)],
        env={**os.environ, "NODE_PATH": str(node_modules), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_node_driver(node_modules, server, tmp_path):
    said = node(node_modules, [HERE / "driver.js", server.uri], tmp_path)
    steps = json.loads(said.splitlines()[-1])
    assert steps == ["connect", "insert", "find", "cursors", "update", "bulk", "errors", "sessions", "replica set", "types"]


def shell(node_modules, tmp_path, *arguments):
    mongosh = node_modules / "mongosh" / "bin" / "mongosh.js"
    return node(node_modules, [mongosh, "--norc", "--quiet", *arguments], tmp_path)


def test_mongosh(node_modules, server, tmp_path):
    said = shell(node_modules, tmp_path, server.uri, "--file", HERE / "shell.js")
    steps = json.loads(said.splitlines()[-1])
    assert steps == ["connect", "crud", "cursors", "errors", "collections", "helpers", "sessions"]


def test_mongosh_greets_without_complaint(node_modules, server, tmp_path):
    """An interactive start asks for more than a script does: its banner and start-up warnings."""
    mongosh = node_modules / "mongosh" / "bin" / "mongosh.js"
    done = subprocess.run(
        ["node", mongosh, "--norc", server.uri],
        input="show dbs\nuse e2e_greeting\ndb.c.insertOne({_id: 1})\nshow collections\nit\ndb.dropDatabase()\nexit\n",
        env={**os.environ, "HOME": str(tmp_path), "TERM": "dumb"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert "Using MongoDB" in done.stdout and "8." in done.stdout
    assert "acknowledged: true" in done.stdout and "ok: 1" in done.stdout
    assert "Error" not in done.stdout, done.stdout
