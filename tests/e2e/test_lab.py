"""The laboratory (`nestor bench run` and `report`), tiny: that every answer is right and what is reported, never how fast."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import zlib
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


def test_a_sequence_begins_anew_for_each_round_and_number_of_clients(tmp_path):
    path = tmp_path / "turns.json"
    quick = ["--suite", "insert", "--rows", 1000, "--seconds", 0.05, "--warm-seconds", 0, "--tests", "l.i1", "--note", "cached"]
    turns = ["--rounds", 2, "--clients", "1,2", "--oversubscribe"]
    done = run("bench", "run", *quick, *turns, "--target", "A=nestor:", "--target", "B=nestor:", "--output", path)
    assert done.returncode == 0, done.stdout
    order = [(r["test"], r["clients"], r["round"], r["label"]) for r in results(path)]
    rounds = [(clients, *turn) for clients in (1, 2) for turn in [(0, "A"), (0, "B"), (1, "B"), (1, "A")]]
    assert order == [
        (test, *turn) for begin in range(0, 8, 2) for test in ("l.i0", "l.x", "l.i1") for turn in rounds[begin : begin + 2]
    ]
    # Each user has a table of its own.
    assert {r["work"] for r in results(path) if (r["test"], r["clients"]) == ("l.x", 2)} == {6000}
    shown = run("bench", "report", path).stdout
    assert "insert, cached: throughput relative to A" in shown and "l.i1 × 2" in shown, shown


def test_what_fails_is_noted_and_the_rest_is_measured(tmp_path):
    """A server that is alone has no transactions and no change streams."""
    path = tmp_path / "some.json"
    quick = ["--suite", "documents", "--rows", 2000, "--seconds", 0.05, "--warm-seconds", 0, "--keep-going"]
    tests = ["--tests", "inc,two-document-transaction,change-stream,lookup"]
    done = run("bench", "run", *quick, *tests, "--target", f"A=nestor:{BIN} --standalone", "--output", path)
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout
    failed = {r["test"]: "failure" in r for r in results(path)}
    assert failed == {"load": False, "inc": False, "lookup": False, "two-document-transaction": True, "change-stream": True}
    shown = run("bench", "report", path).stdout
    assert "documents change-stream failed" in shown, shown


@pytest.mark.parametrize("suite", ["documents", "events", "hits", "storage", "concerns"])
def test_other_workloads(tmp_path, suite):
    path = tmp_path / "run.json"
    quick = ["--suite", suite, "--rows", 3000, "--seconds", 0.05, "--warm-seconds", 0]
    if suite != "concerns":
        quick += ["--clients", 2, "--oversubscribe"]
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


def can_unshare():
    done = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    return done is not None and done.returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="a network of its own needs rights")
@pytest.mark.parametrize("knows_netem", [True, False])
def test_a_longer_network_is_netems_where_it_may_be(tmp_path, knows_netem):
    """Kernels without netem are many, so `tc` is one that notes what it is asked for, within which network, and says whether that was possible."""
    tools, path = tmp_path / "tools", tmp_path / "far.json"
    tools.mkdir()
    tc = tools / "tc"
    own = os.readlink("/proc/self/ns/net")
    tc.write_text(f"#!/bin/sh\necho \"$@ in $(readlink /proc/self/ns/net)\" >> {tmp_path}/asked\nexit {0 if knows_netem else 2}\n")
    tc.chmod(0o755)
    quick = ["--suite", "concerns", "--seconds", 0.05, "--warm-seconds", 0, "--rows", 1000, "--network-delay", 3000]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    command = [BIN, "bench", "run", *quick, "--target", f"A=nestor:{BIN}", "--output", path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = (tmp_path / "asked").read_text()
    assert "qdisc add dev lo root netem delay 1500us" in asked and own not in asked, asked
    assert {r["config"]["networkDelayBy"] for r in results(path)} == {"netem" if knows_netem else "load generator"}
    median = {r["test"]: r["figures"]["median, µs"] for r in results(path) if "figures" in r}
    # This netem delays nothing, so whoever waited can only have been a client.
    assert (median["ping"] >= 2900) is not knows_netem, median
    shown = run("bench", "report", path).stdout
    assert "longer by the run's " + ("netem" if knows_netem else "load generator") in shown, shown
    assert "w:1, network +3000 µs" in shown, shown


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
    assert "relative to the fewest clients" in text
    # A run this short may have met no thread that runs.
    assert text.count('class="flame"') == sum(bool(r.get("profile")) for r in results(path))


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


CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
in_a_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium")


def browse(tmp_path, page, *flags):
    command = [*CHROMIUM, f"--user-data-dir={tmp_path}/profile", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout


def pixels(path):
    """How often each colour comes in a PNG of 8 bits a channel, as browsers write them."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colours in (2, 6)
            step = 3 if colours == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    raw, above, counts = zlib.decompress(packed), bytearray(width * step), {}
    for row in range(height):
        begin = row * (width * step + 1)
        line = bytearray(raw[begin + 1 : begin + 1 + width * step])
        for i in range(len(line)):
            a, b, c = (line[i - step] if i >= step else 0), above[i], (above[i - step] if i >= step else 0)
            nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (line[i] + [0, a, b, (a + b) // 2, nearest][raw[begin]]) & 255
        for x in range(0, len(line), step):
            colour = bytes(line[x : x + 3]).hex()
            counts[colour] = counts.get(colour, 0) + 1
        above = line
    return counts


@in_a_browser
def test_the_page_is_seen(measured, tmp_path):
    """Paper, ink, the colours of both servers and those of what is better and worse: a screenshot has them all, each on more than some pixels."""
    # A copy with a planted loss and a planted gain, so that both colours are there.
    path, page, image = tmp_path / "run.json", tmp_path / "page.html", tmp_path / "page.png"
    few = [r for r in results(measured) if r["label"] == "A" and r["test"] in ("load", "point-query", "scan", "insert")]
    changed = [dict(r, rate=r["rate"] * {"scan": 0.5, "insert": 2}.get(r["test"], 1), label="B") for r in few]
    path.write_text("".join(json.dumps(r) + "\n" for r in few + changed))
    assert run("bench", "report", path, "--html", page).returncode == 0
    browse(tmp_path, page, "--window-size=700,1500", f"--screenshot={image}")
    counts = pixels(image)
    for what, colour in {"paper": "ffffff", "server B": "d1632f", "worse": "f4a99c", "better": "a5d9ad", "band": "f5f7fa"}.items():
        assert counts.get(colour, 0) > 200, (what, sorted(counts.items(), key=lambda c: -c[1])[:12])


@in_a_browser
def test_the_page_prints_whole(measured, tmp_path):
    """What is folded up on the screen is there on paper."""
    page, pages = tmp_path / "page.html", {}
    assert run("bench", "report", measured, "--html", page).returncode == 0
    text = page.read_text()
    assert text.count("<details>") > 10
    for name, content in {"as it is": text, "opened": text.replace("<details>", "<details open>")}.items():
        page.write_text(content)
        printed = tmp_path / "page.pdf"
        browse(tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
        pages[name] = len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))
    assert pages["as it is"] == pages["opened"] > 5, pages


@in_a_browser
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
    # The window of a browser without one is at least 500 wide.
    seen = browse(tmp_path, page, f"--window-size={width},900", "--dump-dom")
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
        (["--target", server.uri, "--suite", "insert", "--rate", 5], "takes no --rate"),
        (["--target", server.uri, "--suite", "hits", "--tables", 8], "takes no --tables"),
        (["--target", server.uri, "--suite", "concerns", "--clients", 2, "--oversubscribe"], "takes no --clients"),
    ]:
        done = run("bench", "run", *arguments, "--output", out)
        assert done.returncode == 1 and reason in done.stdout, done.stdout
    done = run("bench", "run", "--target", server.uri, "--output", "/dev/full", "--rows", 2000)
    assert done.returncode == 1 and "/dev/full" in done.stdout and "measured before" in done.stdout, done.stdout
    out.write_text('{"format": 99}\n')
    done = run("bench", "report", out)
    assert done.returncode == 1 and "format 99" in done.stdout and "line 1" in done.stdout, done.stdout


def test_a_server_that_hangs(tmp_path):
    """It is alive and says nothing: the run ends when it has waited for as long as the URI says."""
    path = tmp_path / "hangs.json"
    with Server(None) as hanging:
        uri = hanging.uri + ("&" if "?" in hanging.uri else "/?") + "socketTimeoutMS=1500"
        flags = ["--rows", 2000, "--seconds", 60, "--warm-seconds", 0, "--tests", "point-query", "--output", path]
        command = [BIN, "bench", "run", "--target", f"A={uri}", *flags]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        try:
            assert "load" in process.stdout.readline()
            hanging.process.send_signal(signal.SIGSTOP)
            rest = process.stdout.read()
            assert process.wait(timeout=60) == 1
        finally:
            hanging.process.send_signal(signal.SIGCONT)
    # It may hang in an operation or in the connecting of the next.
    assert "does not answer" in rest or "no answer within" in rest, rest
    assert [r["test"] for r in results(path) if "failure" not in r] == ["load"]


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
