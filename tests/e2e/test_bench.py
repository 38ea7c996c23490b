"""`nestor bench`, tiny: that it works and what it prints, never how fast."""

from harness import run


def test_bench_runs(server):
    done = run("bench", "--quick")
    assert done.returncode == 0, done.stdout
    single = ("ping", "find by _id", "range of 100", "$inc by _id", "insert one", "insertMany 1000")
    aggregated = ("$match, $group", "$sort,", "$unwind,", "$lookup,", "$lookup, $unwind")
    for case in ("responder", *single, *aggregated):
        assert case in done.stdout, done.stdout
    for figure in ("idle RSS", "start to ping", "longest pause"):
        assert figure in done.stdout, done.stdout


def test_bench_against_a_running_server(server):
    done = run("bench", "--quick", "--uri", server.uri, "--pid", server.pid, "--cases", "ping")
    assert done.returncode == 0, done.stdout
    cases = [line for line in done.stdout.splitlines() if "documents" not in line]
    assert any(line.startswith("ping ") for line in cases), done.stdout
    assert not any(line.startswith("find by _id") for line in cases), done.stdout


def test_bench_of_transactions():
    done = run("bench", "--quick", "--transactions")
    assert done.returncode == 0, done.stdout
    for figure in ("a transaction of one find", "append and fdatasync", "1 clients", "16 clients", "8 clients over 100 accounts"):
        assert figure in done.stdout, done.stdout
