"""Unmodified drivers through failovers: PyMongo, Node's, Go's and Java's, all at once against one set.

Each program of `failovers` inserts documents, increments a counter, moves between two accounts in transactions and follows a change stream,
until its standard input ends; then it says what it was acknowledged and what is there. NESTOR_FAILOVERS is how many failovers they go through
(`make failovers` makes it 50). Drivers repeat a write once; a second failure during that is the application's, and told as unknown.

scripts/test fetches the Java driver (NESTOR_MONGO_JAVA, a class path) and builds the Go program (NESTOR_MONGO_GO).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cluster
import pytest
from s3 import Store

HERE = Path(__file__).parent / "failovers"
FAILOVERS = int(os.environ.get("NESTOR_FAILOVERS", "3"))
HOW = ["kill", "step down", "terminate", "stop"]


def programs(node_modules):
    yield "python", [sys.executable, HERE / "client.py"], {}
    if node_modules is not None:
        yield "node", ["node", HERE / "client.js"], {"NODE_PATH": str(node_modules)}
    for variable, name, command in [
        ("NESTOR_MONGO_GO", "go", lambda program: [program]),
        ("NESTOR_MONGO_JAVA", "java", lambda path: ["java", "-cp", path, HERE / "Client.java"]),
    ]:
        if os.environ.get(variable):
            yield name, command(os.environ[variable]), {}
        elif os.environ.get("NESTOR_CI"):
            pytest.fail(f"{variable} is not set, and CI leaves nothing out")


def fail_over(members, how):
    primary = members.primary()
    member = members.members[primary]
    if how == "kill":
        member.kill()
    elif how == "terminate":
        member.process.send_signal(signal.SIGTERM)
    elif how == "stop":
        member.process.send_signal(signal.SIGSTOP)
    else:
        members.direct(primary).admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=5)
    members.primary(but=primary)
    if how == "stop":
        member.process.send_signal(signal.SIGCONT)
    elif how != "step down":
        member.process.wait(cluster.PATIENCE_S)
        members.start(primary)


def test_drivers_go_through_failovers(tmp_path, node_modules):
    cluster.needs_cluster(tmp_path)
    with Store() as store, cluster.Set(tmp_path, log="s3://bucket/set", env=store.door().environment) as members:
        uri = f"mongodb://{','.join(members.hosts)}/?replicaSet={cluster.SET}"
        running = {}
        for name, command, env in programs(node_modules):
            said = open(tmp_path / f"{name}.err", "w+")
            running[name] = subprocess.Popen(
                [*command, uri, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env={**os.environ, **env}
            ), said  # fmt: skip
        try:
            for name, (program, said) in running.items():
                assert program.stdout.readline() == "running\n", (name, said.seek(0), said.read())
            for at in range(FAILOVERS):
                fail_over(members, HOW[at % len(HOW)])
                time.sleep(0.5)
            for name, (program, said) in running.items():
                left, _ = program.communicate(timeout=300)
                assert program.returncode == 0, (name, said.seek(0), said.read()[-3000:])
                told = json.loads(left)
                print(f"\n{name}: {FAILOVERS} failovers, {told}")
                assert told["acknowledged"] > FAILOVERS and told["moved"] > 0, name
                assert told["missing"] == [] and told["unseen"] == [] and told["seenTwice"] == 0, name
                least = told["increments"]
                assert least <= told["counter"] <= least + told["unknownIncrements"], name
                given, taken = told["accounts"]
                assert given == -taken and told["moved"] <= taken <= told["moved"] + told.get("unknownMoves", 0), name
        finally:
            for program, said in running.values():
                program.kill()
                program.wait()
                said.close()
