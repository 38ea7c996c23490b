"""A double of an S3 store in memory, for tests and for the laboratory of `make cluster`: what object stores do to their clients on bad days
it does when it is told to.

    with Store() as store:
        door = store.door()
        env = door.environment          # AWS_ENDPOINT_URL and the like for a process that enters by it
        door.faults = Faults(unanswered=0.01)
        door.is_shut = True             # nobody gets through

All doors lead to the same objects, and each has faults of its own, so a member that has a door for itself can be cut off alone. Creates on a
condition (`If-None-Match: *`), replacing on one (`If-Match`), ranges, listing, deleting and multipart uploads are what it knows; signatures are
not looked at. Everything happens in one thread, request by request.
"""

import asyncio
import collections
import dataclasses
import email.utils
import hashlib
import random
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

REASONS = {200: "OK", 204: "No Content", 206: "Partial Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
           409: "Conflict", 412: "Precondition Failed", 416: "Range Not Satisfiable", 500: "Internal Server Error",
           503: "Slow Down"}  # fmt: skip
KEYS_MAX = 1000


@dataclasses.dataclass
class Faults:
    """How likely each request meets each fate, all together at most 1, and how long everything takes."""

    # The connection ends and nothing has happened.
    lost: float = 0.0
    # It happens, and the connection ends without an answer.
    unanswered: float = 0.0
    # The connection ends, and it happens later.
    late: float = 0.0
    late_s: float = 1.0
    # It happens twice; the second answer is given.
    doubled: float = 0.0
    # It is answered 500, 503 or, if it has a condition, 409, and nothing has happened, or it has.
    refused: float = 0.0
    refused_but_done: float = 0.0
    # It is answered 409 if it is a create on a condition, as when another request for the object is under way; nothing has happened.
    conflict: float = 0.0
    # It happens after `slow_s`.
    slow: float = 0.0
    slow_s: float = 0.5
    # The first so many requests for each object are lost whose name has this in it.
    lost_first: int = 0
    lost_of: str = ""
    # Each request's bytes, there and back, come at this rate; 0: at once.
    bytes_per_s: float = 0.0
    # So long takes each request, and each that writes in addition.
    delay_s: float = 0.0
    write_delay_s: float = 0.0
    # All requests that write are answered 403, as with credentials that ran out, or 507 of a full store.
    status: int = 0

    FATES = ("lost", "unanswered", "late", "doubled", "refused", "refused_but_done", "conflict", "slow")

    def fate(self, dice):
        roll = dice.random()
        for fate in self.FATES:
            roll -= getattr(self, fate)
            if roll < 0:
                return fate
        return None


@dataclasses.dataclass
class Request:
    method: str
    path: str
    query: dict
    headers: dict
    body: bytes

    @property
    def writes(self):
        return self.method in ("PUT", "POST", "DELETE")


@dataclasses.dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict = dataclasses.field(default_factory=dict)


class Door:
    """A port of the store with faults of its own."""

    def __init__(self, store, seed):
        self.store = store
        self.faults = Faults()
        # Nothing gets through: connections end.
        self.is_shut = False
        # Requests hang instead.
        self.is_silent = False
        self.dice = random.Random(seed)
        self.port = 0
        # Requests by method, and what became of those that met a fate.
        self.requests = collections.Counter()
        # Bytes that arrived, by method.
        self.bytes = collections.Counter()
        self.fates = collections.Counter()
        # Requests by object, for `lost_first`.
        self.lost = collections.Counter()

    @property
    def environment(self):
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1",
        }

    async def _serve(self, reader, writer):
        try:
            while (request := await read_request(reader)) is not None:
                answer = await self._meet(request)
                if answer is None:
                    break
                if rate := self.faults.bytes_per_s:
                    await asyncio.sleep((len(request.body) + len(answer.body)) / rate)
                writer.write(rendered(request, answer))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _meet(self, request):
        """The answer; None if the connection is to end."""
        faults = self.faults
        fate = faults.fate(self.dice)
        delay = faults.delay_s + (faults.write_delay_s if request.writes else 0) + (faults.slow_s if fate == "slow" else 0)
        if delay:
            await asyncio.sleep(delay)
        while self.is_silent:
            await asyncio.sleep(0.05)
        if self.is_shut:
            return None
        if faults.lost_first and faults.lost_of in request.path:
            self.lost[request.path] += 1
            if self.lost[request.path] <= faults.lost_first:
                return None
        self.requests[request.method] += 1
        self.bytes[request.method] += len(request.body)
        if faults.status and request.writes:
            return error(faults.status, "Refused")
        if fate == "conflict" and "if-none-match" not in request.headers:
            fate = None
        if fate is None or fate == "slow":
            return self.store.perform(request)
        self.fates[fate] += 1
        if fate == "conflict":
            return error(409, "ConditionalRequestConflict")
        if fate == "lost":
            return None
        if fate == "late":
            asyncio.get_running_loop().call_later(faults.late_s, self.store.perform, request)
            return None
        if fate == "refused":
            return self._refusal(request)
        answer = self.store.perform(request)
        if fate == "unanswered":
            return None
        if fate == "refused_but_done":
            return self._refusal(request)
        return self.store.perform(request)

    def _refusal(self, request):
        answers = [error(500, "InternalError"), error(503, "SlowDown")]
        # Only requests that have a condition hear of a conflict.
        if "if-none-match" in request.headers or "if-match" in request.headers:
            answers.append(error(409, "ConditionalRequestConflict"))
        return self.dice.choice(answers)


class Store:
    def __init__(self, seed=0):
        self.seed = seed
        # By bucket and key: the body, when it was written, and its metadata as headers.
        self.objects = {}
        self.uploads = {}
        # As older stores do: what is to be created if it is not there is written in any case.
        self.ignores_conditions = False
        self.doors = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def door(self, port=0):
        door = Door(self, f"{self.seed} {len(self.doors)}")
        self.doors.append(door)

        async def listen():
            server = await asyncio.start_server(door._serve, "127.0.0.1", port)
            door.port = server.sockets[0].getsockname()[1]

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result()
        return door

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    # -- what an object store does --------------------------------------------------------------

    def perform(self, request):
        path, query = request.path, request.query
        if "/" not in path.strip("/") and request.method == "GET":
            return self._list(path.strip("/"), query)
        if request.method == "POST" and "delete" in query:
            return self._delete_many(path.strip("/"), request.body)
        if "uploadId" in query or "uploads" in query:
            return self._multipart(request)
        if request.method == "PUT":
            return self._put(path, request.headers, request.body)
        if request.method in ("GET", "HEAD"):
            return self._get(request)
        if request.method == "DELETE":
            self.objects.pop(path, None)
            return Answer(204)
        return error(400, "NotSupported")

    def _put(self, path, headers, body):
        known = self.objects.get(path)
        if headers.get("if-none-match") == "*" and known is not None and not self.ignores_conditions:
            return error(412, "PreconditionFailed")
        if "if-match" in headers and (known is None or etag(known[0]) != headers["if-match"]):
            return error(412, "PreconditionFailed")
        self.objects[path] = (body, time.time(), metadata(headers))
        return Answer(200, headers={"ETag": etag(body)})

    def _get(self, request):
        known = self.objects.get(request.path)
        if known is None:
            return error(404, "NoSuchKey")
        body, written, noted = known
        headers = {
            **noted,
            "ETag": etag(body),
            "Last-Modified": email.utils.formatdate(written, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if not asked:
            return Answer(200, body, headers)
        first, last = asked.groups()
        if not first:
            begin, end = max(0, len(body) - int(last)), len(body)
        else:
            begin, end = int(first), min(len(body), int(last) + 1 if last else len(body))
        if begin >= end:
            return error(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
        return Answer(206, body[begin:end], headers)

    def _list(self, bucket, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        head = f"/{bucket}/"
        keys = sorted(path[len(head) :] for path in self.objects if path.startswith(head + prefix))
        found, folders, last, is_cut = [], [], "", False
        for key in keys:
            if key <= after:
                continue
            rest = key[len(prefix) :]
            folder = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
            if folder and (folder in folders or folder <= after):
                continue
            if len(found) + len(folders) == int(query.get("max-keys", KEYS_MAX)):
                is_cut = True
                break
            if folder:
                folders.append(folder)
                # What is below it sorts before this.
                last = folder + "\U0010ffff"
            else:
                found.append(key)
                last = key
        out = ['<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>']
        out.append(f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(found)}</KeyCount>")
        out.append(f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>")
        if is_cut:
            out.append(f"<NextContinuationToken>{escape(last)}</NextContinuationToken>")
        for key in found:
            body, written, _ = self.objects[head + key]
            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(written)) + ".000Z"
            out.append(f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>")
            out.append(f"<ETag>{escape(etag(body))}</ETag><Size>{len(body)}</Size></Contents>")
        out += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        out.append("</ListBucketResult>")
        return Answer(200, "".join(out).encode(), {"Content-Type": "application/xml"})

    def _delete_many(self, bucket, body):
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        out = ['<?xml version="1.0" encoding="UTF-8"?><DeleteResult>']
        for key in keys:
            self.objects.pop(f"/{bucket}/{key}", None)
            out.append(f"<Deleted><Key>{key}</Key></Deleted>")
        out.append("</DeleteResult>")
        return Answer(200, "".join(out).encode(), {"Content-Type": "application/xml"})

    def _multipart(self, request):
        if "uploads" in request.query:
            name = f"upload{len(self.uploads)}"
            self.uploads[name] = (metadata(request.headers), {})
            body = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            return Answer(200, body.encode())
        if request.query["uploadId"] not in self.uploads:
            return error(404, "NoSuchUpload")
        noted, parts = self.uploads[request.query["uploadId"]]
        if request.method == "PUT":
            parts[int(request.query["partNumber"])] = request.body
            return Answer(200, headers={"ETag": etag(request.body)})
        if request.method == "DELETE":
            parts.clear()
            return Answer(204)
        if request.headers.get("if-none-match") == "*" and request.path in self.objects:
            return error(412, "PreconditionFailed")
        self.objects[request.path] = (b"".join(parts[n] for n in sorted(parts)), time.time(), noted)
        body = f"<CompleteMultipartUploadResult><ETag>{escape(etag(self.objects[request.path][0]))}</ETag></CompleteMultipartUploadResult>"
        return Answer(200, body.encode())


def etag(body):
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def metadata(headers):
    """What clients note at an object, by which they know their own writes again."""
    return {name: value for name, value in headers.items() if name.startswith("x-amz-meta-")}


def error(status, code):
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


async def read_request(reader):
    """None at the end of the connection."""
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode().split(" ", 2)
    headers = {}
    while (line := (await reader.readline()).decode().strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path, _, query = target.partition("?")
    query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    return Request(method, urllib.parse.unquote(path), query, headers, body)


def rendered(request, answer):
    body = answer.body
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Other')}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return head if request.method == "HEAD" else head + body
