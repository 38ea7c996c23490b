"""The port for those who look after the server."""

import os
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

import harness


@pytest.fixture
def watched(start):
    """A server that asks for logins, and the address of its metrics."""
    server = start(None, "--metricsPort", 0, "--auth")
    address = re.search(r'"Metrics and health".*?"address":"(127\.0\.0\.1:\d+)"', server.said())[1]
    return server, f"http://{address}"


def get(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(text):
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def test_metrics_count(watched):
    """In the form that Prometheus reads, without a login: counts and no data."""
    server, base = watched
    status, text = get(f"{base}/metrics")
    assert status == 200
    before = samples(text)
    assert before["mongodb_up"] == 1 and before["mongodb_ss_mem_resident"] > 0
    client = server.client()
    for _ in range(7):
        client.admin.command("ping")
    after = samples(get(f"{base}/metrics")[1])
    assert after['mongodb_ss_metrics_commands_total{cmd_name="ping"}'] >= before['mongodb_ss_metrics_commands_total{cmd_name="ping"}'] + 7
    assert after['mongodb_ss_connections{conn_type="current"}'] >= 1
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) > 100
    for line in text.splitlines():
        assert re.fullmatch(r"# TYPE \w+ (untyped|gauge)|\w+(\{\w+=\"[^\"]*\"\})? (-?[0-9.e+]+|NaN|[+-]Inf)", line), line


def test_health(watched):
    server, base = watched
    assert get(f"{base}/healthz") == (200, "ok\n")
    assert get(f"{base}/readyz") == (200, "ready\n")
    assert get(f"{base}/healthz", "HEAD") == (200, "")
    assert get(f"{base}/elsewhere")[0] == 404
    assert get(f"{base}/metrics", "POST")[0] == 405
    host, port = base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as rude:
        rude.sendall(b"\x00\xff" * 50_000)
        assert get(f"{base}/healthz") == (200, "ok\n")
    assert server.stop() == 0


def test_systemd_is_told(tmp_path):
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(path))
        told.settimeout(30)
        server = subprocess.Popen(
            [harness.BIN, "serve", "--ephemeral", "--port", "0"],
            env={**os.environ, "NOTIFY_SOCKET": str(path)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            assert told.recv(100) == b"READY=1"
            server.terminate()
            assert told.recv(100) == b"STOPPING=1"
            assert server.wait(30) == 0
        finally:
            server.kill()
            server.wait()


def addresses_of(server):
    return set(re.findall(r'"Metrics and health".*?"address":"([^"]+):\d+"', server.said()))


def test_it_is_for_this_machine_unless_addresses_are_named(start):
    open_to_all = ("--bind_ip_all", "--auth", "--metricsPort", 0)
    assert addresses_of(start(None, *open_to_all)) == {"127.0.0.1"}
    assert addresses_of(start(None, *open_to_all, "--ipv6")) == {"127.0.0.1", "[::1]"}
    assert addresses_of(start(None, *open_to_all, "--metricsBindIp", "0.0.0.0")) == {"0.0.0.0"}
    with pytest.raises(harness.DidNotStart) as refused:
        start(None, "--metricsBindIp", "0.0.0.0")
    assert "--metricsPort" in refused.value.output
