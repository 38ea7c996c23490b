"""How long a read by `_id` takes while 200 connections scan a collection.

    benches/security/point_reads.py path/to/nestor [seconds]

Each of the 200 connections sends one aggregation over 100,000 documents after the other; one more connection reads by `_id` every 5 ms. Needs nothing but
Python 3.
"""

import multiprocessing
import selectors
import sys
import time

import figures

CONNECTIONS = 200
PROCESSES = 2
DOCUMENTS = 100_000
SCAN = {
    "aggregate": "big",
    "pipeline": [{"$match": {"pad": "none"}}, {"$group": {"_id": "$name", "n": {"$sum": 1}}}],
    "cursor": {},
    "$db": "bench",
}


def scan(port, over, scans):
    connections = [figures.Connection(port) for _ in range(CONNECTIONS // PROCESSES)]
    request = figures.message(SCAN)
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.socket.sendall(request)
    while not over.is_set():
        for key, _ in selector.select(0.2):
            key.data.reply()
            key.data.socket.sendall(request)
            with scans.get_lock():
                scans.value += 1


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    server = figures.Server(sys.argv[1])
    over, scans = multiprocessing.Event(), multiprocessing.Value("i", 0)
    processes = [multiprocessing.Process(target=scan, args=(server.port, over, scans)) for _ in range(PROCESSES)]
    try:
        reader = server.connect()
        for begin in range(0, DOCUMENTS, 1000):
            documents = [{"_id": i, "name": f"name {i % 50}", "pad": "x" * 100} for i in range(begin, begin + 1000)]
            reader.run({"insert": "big", "documents": documents, "$db": "bench"})
        for process in processes:
            process.start()
        time.sleep(2)
        took = []
        request = figures.message({"find": "c", "filter": {"_id": 7}, "limit": 1, "singleBatch": True, "$db": "bench"})
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            reader.socket.sendall(request)
            reader.reply()
            took.append(1000 * (time.perf_counter() - begun))
            time.sleep(0.005)
        took.sort()
        at = {name: took[int(len(took) * share)] for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
        figures_text = ", ".join(f"{name} {value:.2f} ms" for name, value in at.items())
        print(f"{len(took)} reads by _id beside {CONNECTIONS} scanning connections: {figures_text}, slowest {took[-1]:.2f} ms")
        print(f"{scans.value} scans of {DOCUMENTS} documents meanwhile")
    finally:
        over.set()
        for process in processes:
            if process.pid is not None:
                process.join(10)
                process.terminate()
        server.stop()


if __name__ == "__main__":
    main()
