"""What is looked at while bombs go off: that others are answered, and how much memory the server takes."""

import time

from harness import rss_bytes

MIB = 1 << 20


def watched(server, threads, end, grace):
    """Starts `threads` and pings on a connection of its own until all have ended, `grace` seconds after `end` at the latest. Returns the time of
    the slowest ping in seconds, and the most bytes that the server took."""
    for thread in threads:
        thread.start()
    with server.raw(60) as steady:
        slowest = highest = 0
        while any(thread.is_alive() for thread in threads):
            begun = time.monotonic()
            assert steady.command({"ping": 1, "$db": "admin"})["ok"] == 1
            slowest = max(slowest, time.monotonic() - begun)
            highest = max(highest, rss_bytes(server.pid))
            assert time.monotonic() < end + grace, "a statement does not end"
            time.sleep(0.05)
    return slowest, highest


def tell(results, slowest, highest):
    """Prints how often each outcome came; `results` are outcomes, statements and seconds."""
    counts = {}
    for outcome, _, _ in results:
        counts[outcome] = counts.get(outcome, 0) + 1
    print(f"{len(results)} statements: {counts}; at most {highest // MIB} MiB, slowest ping {slowest:.2f} s, slowest statement {max(took for _, _, took in results):.1f} s")
