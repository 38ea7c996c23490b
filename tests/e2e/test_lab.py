"""The laboratory (`nestor bench run` and `report`), tiny: that every answer is right and what is reported, never how fast."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import BIN, ROOT, Server, run


def micro(*arguments, **options):
    quick = ["--suite", "micro", "--rows", 4000, "--seconds", 0.05, "--warm-seconds", 0]
    return run("bench", "run", *quick, *arguments, **options)


def test_the_insert_benchmark_by_both_protocols(tmp_path):
    path = tmp_path / "insert.json"
    quick = ["--suite", "insert", "--rows", 3000, "--seconds", 0.2, "--warm-seconds", 0]
    done = run("bench", "run", *quick, "--target", "A=nestor:", "--target", "B=nestor+sql:", "--output", path)
    assert done.returncode == 0, done.stdout
    steps = ["l.i0", "l.x", "l.i1", "l.i2", *(q + n for n in ("100", "500", "1000") for q in ("qr", "qp"))]
    for label in ("A", "B"):
        found = {r["test"]: r for r in results(path) if r["label"] == label}
        assert list(found) == steps
        assert all("failure" not in r for r in found.values())
        assert found["l.i0"]["work"] == 3000 and found["l.x"]["work"] == 9000
        assert found["qr500"]["sla"]["wanted"] == 500 and found["qr500"]["operations"] > 0
    shown = run("bench", "report", path).stdout
    assert "background rate reached" in shown, shown


@pytest.mark.parametrize("suite", ["documents", "events", "hits", "storage", "concerns"])
def test_other_workloads(tmp_path, suite):
    path = tmp_path / "run.json"
    quick = ["--suite", suite, "--rows", 3000, "--seconds", 0.05, "--warm-seconds", 0, "--clients", 2, "--oversubscribe"]
    labels = ["mongo"] if suite in ("documents", "concerns") else ["mongo", "sql"]
    # Temporary files may lie in memory, which not every system reads directly; the program lies on a disk.
    folder = Path(BIN).resolve().parent
    started = {"mongo": f"nestor:{BIN} --dir {folder}", "sql": f"nestor+sql:{BIN} --dir {folder}"}
    targets = [word for label in labels for word in ("--target", f"{label}={started[label]}")]
    done = run("bench", "run", *quick, *targets, "--output", path)
    assert done.returncode == 0, done.stdout
    names = [line.split()[1] for line in run("bench", "list").stdout.splitlines() if line.startswith(f"{suite} ")]
    for label in labels:
        found = [r for r in results(path) if r["label"] == label]
        assert [r["test"] for r in found] == ["load", *names]
        assert all("failure" not in r and r["operations"] > 0 for r in found)


def test_delays_are_felt(tmp_path):
    """Only what waits for the disk feels a slow one, and all feel a long network: medians are at least the delay, whatever the machine."""
    path = tmp_path / "slow.json"
    delays = ["--sync-delay", 20000, "--network-delay", 3000]
    quick = ["--suite", "concerns", "--seconds", 0.5, "--warm-seconds", 0, "--rows", 1000]
    done = run("bench", "run", *quick, *delays, "--target", "A=nestor:", "--output", path)
    assert done.returncode == 0, done.stdout
    median = {r["test"]: r["figures"]["median, µs"] for r in results(path) if "figures" in r}
    assert all(median[test] >= 2900 for test in ("ping", "w:0", "w:1")), median
    assert all(median[test] >= 22000 for test in ("j:true", "majority")), median


def test_history(tmp_path):
    path, history = tmp_path / "run.json", tmp_path / "history.json"
    done = micro("--target", "A=nestor:", "--tests", "point-query", "--output", path)
    assert done.returncode == 0, done.stdout
    assert run("bench", "history", history, "--add", path, "--release", "1.0").returncode == 0
    slower = [dict(result, rate=result["rate"] / 2) for result in results(path)]
    path.write_text("".join(json.dumps(result) + "\n" for result in slower))
    done = run("bench", "history", history, "--add", path, "--release", "1.1")
    assert done.returncode == 0 and "micro point-query: 1.1 does 0.50 of what 1.0 did" in done.stdout, done.stdout
    done = run("bench", "history", history, "--add", path, "--release", "1.1")
    assert done.returncode == 1 and "already" in done.stdout, done.stdout


def test_more_clients_and_a_profile(server, tmp_path):
    path, page = tmp_path / "up.json", tmp_path / "up.html"
    flags = ["--clients", "1,2,4", "--tests", "point-query", "--oversubscribe", "--profile", "--target", f"A={server.uri}"]
    done = micro(*flags, "--output", path)
    assert done.returncode == 0, done.stdout
    found = [r for r in results(path) if r["test"] == "point-query"]
    assert [r["clients"] for r in found] == [1, 2, 4]
    done = run("bench", "report", path, "--html", page)
    assert "point-query × 4" in done.stdout, done.stdout
    text = page.read_text()
    assert "relative to one client" in text
    # A run this short may have met no thread that runs.
    assert text.count('class="flame"') == sum(bool(r.get("profile")) for r in found)


def results(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """All tests of a small run by both protocols."""
    path = tmp_path_factory.mktemp("lab") / "run.json"
    done = micro("--target", "A=nestor:", "--target", "B=nestor+sql:", "--tables", 2, "--output", path)
    assert done.returncode == 0, done.stdout
    return path


def test_all_microbenchmarks_by_both_protocols(measured):
    listed = run("bench", "list").stdout.split("\n")
    names = [line.split()[1] for line in listed if line.startswith("micro ")]
    assert len(names) == 32
    for label in ("A", "B"):
        of_label = [result for result in results(measured) if result["label"] == label]
        assert [result["test"] for result in of_label][:1] == ["load"]
        assert sorted(result["test"] for result in of_label[1:]) == sorted(names)
        for result in of_label:
            assert result["format"] == 1 and "failure" not in result, result
            assert {"server", "client", "host"} <= set(result["used"]), result["used"]
        work = {result["test"]: result["operations"] for result in of_label}
        assert work["point-query"] > 0 and work["update-index"] > 0, work


def test_rounds_take_turns_at_a_rate(server, tmp_path):
    path = tmp_path / "turns.json"
    tests = ["--tests", "point-query,update-zipf", "--rounds", 2, "--rate", 200, "--clients", 2, "--oversubscribe"]
    done = micro("--target", f"A={server.uri}", "--target", "B=nestor:", *tests, "--output", path)
    assert done.returncode == 0, done.stdout
    order = [(r["test"], r["label"], r["round"]) for r in results(path) if r["test"] != "load"]
    turns = [("A", 0), ("B", 0), ("B", 1), ("A", 1)]
    assert order == [(test, *turn) for test in ("point-query", "update-zipf") for turn in turns]


def test_the_report(measured, tmp_path):
    page = tmp_path / "page.html"
    done = run("bench", "report", measured, "--html", page, "--title", "A & B")
    assert done.returncode == 0, done.stdout
    for part in ("throughput relative to A", "server CPU", "response time, p99", "read-only_range=100"):
        assert part in done.stdout, done.stdout
    text = page.read_text()
    assert "A &amp; B" in text and "<svg" in text
    # It needs nothing else.
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", text) and "url(" not in text and "<script" not in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_in_a_browser(measured, tmp_path, width):
    page = tmp_path / "page.html"
    assert run("bench", "report", measured, "--html", page).returncode == 0
    # What the browser made of it is written into the page, which is printed then.
    probe = """<script>document.querySelectorAll('details').forEach(d => d.open = true);
    const charts = [...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect());
    document.body.dataset.wide = document.documentElement.scrollWidth <= window.innerWidth;
    document.body.dataset.charts = charts.length;
    document.body.dataset.empty = charts.filter(r => r.width < 100 || r.height < 40).length;
    document.body.dataset.serious = [...document.querySelectorAll('polyline')].filter(p => /NaN|inf/.test(p.getAttribute('points'))).length;
    </script></body>"""
    page.write_text(page.read_text().replace("</body>", probe))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile"]
    # The window of a browser without one is at least 500 wide.
    seen = subprocess.run(
        ["chromium", *flags, f"--window-size={width},900", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    ).stdout  # fmt: skip
    body = re.search(r"<body[^>]*>", seen)
    assert body, seen[-2000:]
    facts = dict(re.findall(r'data-(\w+)="([^"]*)"', body[0]))
    assert facts["wide"] == "true" and facts["empty"] == "0" and facts["serious"] == "0", facts
    assert int(facts["charts"]) > 60, facts


def test_bad_input(server, tmp_path):
    out = tmp_path / "x.json"
    for arguments, reason in [
        (["--target", "http://a"], "not by http:"),
        (["--target", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"], "127.0.0.1:1"),
        (["--target", "mysql://127.0.0.1:1/x"], "127.0.0.1:1"),
        (["--target", server.uri, "--tests", "point-queries"], "no test point-queries"),
        (["--target", server.uri, "--rows", 10], "at least 1000 rows"),
        (["--target", server.uri, "--clients", 500], "--oversubscribe"),
    ]:
        done = run("bench", "run", *arguments, "--output", out)
        assert done.returncode == 1 and reason in done.stdout, done.stdout
    done = run("bench", "run", "--target", server.uri, "--output", "/dev/full", "--rows", 2000)
    assert done.returncode == 1 and "/dev/full" in done.stdout and "measured before" in done.stdout, done.stdout
    out.write_text('{"format": 99}\n')
    done = run("bench", "report", out)
    assert done.returncode == 1 and "format 99" in done.stdout and "line 1" in done.stdout, done.stdout


def test_a_server_that_dies(tmp_path):
    """What was measured before is in the file, and so is the test that it died in."""
    path = tmp_path / "dies.json"
    with Server(None) as dying:
        flags = ["--rows", 2000, "--seconds", 60, "--warm-seconds", 0, "--tests", "point-query", "--output", path]
        command = [BIN, "bench", "run", "--target", f"A={dying.uri}", *flags]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        assert "load" in process.stdout.readline()
        dying.kill()
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 1
    assert "closed the connection" in rest or "broke" in rest or "Connection" in rest, rest
    kept = results(path)
    assert kept[0]["test"] == "load" and "failure" not in kept[0]
