"""A log of what a server does with its files, and the disks that a loss of power could leave at any moment of it.

The log comes from strace. The model of a disk is that of POSIX, taken at its word: data that was written and not synced is there
or not, by sectors, in any order; names in directories change in order, and are certain when the directory was synced.
"""

import dataclasses
import re
import shutil
from pathlib import Path

CALLS = "openat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,mmap"
SECTOR = 512
LINE = re.compile(rb"^(?:(?P<pid>\d+) +)?(?P<at>\d+\.\d+) (?P<rest>.*)$")
CALL = re.compile(rb"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+)(?P<after>.*?)(?: <(?P<took>[\d.]+)>)?$", re.S)
RESUMED = re.compile(rb"^<\.\.\. \w+ resumed>(?P<rest>.*)$", re.S)


def wrapper(folder, binary):
    """A script in place of `binary` that records into `folder`/log; the process that it becomes is the server itself."""
    script = Path(folder) / "recorded"
    script.write_text(f'#!/bin/sh\nexec strace -D -f -y -ttt -T -xx -s 100000000 -e trace={CALLS} -o "{folder}/log" "{binary}" "$@"\n')
    script.chmod(0o700)
    return script


@dataclasses.dataclass
class Event:
    """One call that changed something below the directory. `begun` and `ended` are seconds since the epoch."""

    begun: float
    ended: float
    kind: str  # write, truncate, sync, create, rename, unlink
    path: str
    offset: int = 0
    data: bytes = b""
    target: str = ""


def _text(quoted):
    return bytes.fromhex(quoted.replace(b"\\x", b"").decode()).decode("utf-8", "surrogateescape")


class Recording:
    """What happened below `directory` according to `log`."""

    def __init__(self, log, directory):
        self.directory = str(Path(directory).resolve())
        self.events = []
        self._positions = {}
        unfinished = {}
        for line in Path(log).read_bytes().split(b"\n"):
            found = LINE.match(line)
            if not found:
                continue
            pid, at, rest = found["pid"], float(found["at"]), found["rest"]
            if rest.endswith(b"<unfinished ...>"):
                unfinished[pid] = (at, rest[: -len(b"<unfinished ...>")].rstrip())
                continue
            begun = at
            resumed = RESUMED.match(rest)
            if resumed:
                if pid not in unfinished:
                    continue
                begun, start = unfinished.pop(pid)
                rest = start + resumed["rest"]
            call = CALL.match(rest)
            if call and not call["result"].startswith(b"-"):
                self._take(begun, begun + float(call["took"] or 0), call["name"].decode(), call["arguments"], call["result"], call["after"])
        # A call that the end of the recording cut off may have had its effect; nobody was told.
        self.events.sort(key=lambda event: event.ended)

    def _inside(self, path):
        return path.startswith(self.directory) and not path.endswith("(deleted)")

    def _fd(self, text):
        quoted = re.search(rb"<([^>]*)>", text)
        if not quoted:
            return ""
        return _text(quoted[1]) if quoted[1].startswith(b"\\x") else quoted[1].decode("utf-8", "surrogateescape")

    def _paths(self, arguments):
        return [_text(quoted) for quoted in re.findall(rb'"((?:\\x[0-9a-f]{2})*)"', arguments)]

    def _take(self, begun, ended, name, arguments, result, after):
        add = lambda kind, path, **more: self.events.append(Event(begun, ended, kind, path, **more))
        if name in ("pwrite64", "write", "writev", "pwritev", "pwritev2"):
            path = self._fd(arguments.split(b",")[0])
            if self._inside(path):
                written = int(result)
                data = b"".join(bytes.fromhex(q.replace(b"\\x", b"").decode()) for q in re.findall(rb'"((?:\\x[0-9a-f]{2})*)"', arguments))[:written]
                if name.startswith("pwrite"):
                    offset = int(re.findall(rb", (\d+)", arguments)[-1])
                else:
                    offset = self._positions.get(path, 0)
                    self._positions[path] = offset + written
                assert len(data) == written, f"{name} of {written} bytes was recorded as {len(data)}"
                add("write", path, offset=offset, data=data)
        elif name in ("fsync", "fdatasync"):
            path = self._fd(arguments)
            if self._inside(path):
                add("sync", path)
        elif name == "ftruncate":
            path = self._fd(arguments.split(b",")[0])
            if self._inside(path):
                add("truncate", path, offset=int(arguments.rsplit(b", ", 1)[1]))
        elif name == "fallocate":
            path = self._fd(arguments.split(b",")[0])
            if self._inside(path) and b"KEEP_SIZE" not in arguments:
                offset, length = re.findall(rb", (\d+)", arguments)[-2:]
                add("extend", path, offset=int(offset) + int(length))
        elif name == "openat":
            path = self._fd(after)
            if self._inside(path):
                assert b"O_SYNC" not in arguments and b"O_DSYNC" not in arguments, "the model does not know such files"
                if b"O_CREAT" in arguments or b"O_TRUNC" in arguments:
                    self._positions[path] = 0
                if b"O_CREAT" in arguments:
                    add("create", path)
                elif b"O_TRUNC" in arguments:
                    add("truncate", path)
        elif name in ("rename", "renameat", "renameat2"):
            source, target = self._paths(arguments)
            if self._inside(target):
                add("rename", source, target=target)
        elif name in ("unlink", "unlinkat"):
            if self._inside(self._paths(arguments)[-1]):
                add("unlink", self._paths(arguments)[-1])
        elif name == "mmap" and b"MAP_SHARED" in arguments and b"PROT_WRITE" in arguments:
            assert not self._inside(self._fd(arguments)), "what is written through a mapping is not recorded"

    def leave(self, before, target, moment, dice):
        """Writes to `target` what the disk may have when the power goes at `moment`; `before` is a copy of the directory as the
        recording began. Returns how many changes were lost."""
        shutil.copytree(before, target)
        names = {str(path.relative_to(target)): {"ops": [], "start": path.read_bytes()} for path in Path(target).rglob("*") if path.is_file()}
        changes = []  # Of names, in order: (event, function)
        done = [event for event in self.events if event.ended <= moment]
        running = [event for event in self.events if event.begun <= moment < event.ended and event.kind in ("write", "truncate", "extend")]
        relative = lambda path: path[len(self.directory) :].lstrip("/")
        syncs = {}
        for event in done:
            if event.kind == "sync":
                syncs.setdefault(relative(event.path), []).append(event)
        live = dict(names)  # As the processes see it: names to contents.
        for event in done + running:
            name = relative(event.path)
            if event.kind == "create":
                if name not in live:
                    live[name] = {"ops": [], "start": b""}
                    changes.append((event, name, ("put", name, live[name])))
            elif event.kind == "rename":
                moved = live.pop(name)
                live[relative(event.target)] = moved
                changes.append((event, name, ("move", name, relative(event.target), moved)))
            elif event.kind == "unlink":
                live.pop(name, None)
                changes.append((event, name, ("drop", name)))
            elif event.kind == "sync":
                if name in live:
                    live[name].setdefault("syncs", []).append(event)
            elif name in live:
                live[name]["ops"].append(event)
        lost = 0
        # Names: all up to the last that a synced directory has, and of the others a beginning.
        certain = 0
        for i, (event, name, _) in enumerate(changes):
            folder = str(Path(name).parent)
            folder = "" if folder == "." else folder
            if any(sync.begun >= event.ended for sync in syncs.get(folder, [])):
                certain = i + 1
        kept = dice.randint(certain, len(changes))
        lost += len(changes) - kept
        disk = dict(names)
        for _, _, change in changes[:kept]:
            if change[0] == "put":
                disk[change[1]] = change[2]
            elif change[0] == "move":
                disk.pop(change[1], None)
                disk[change[2]] = change[3]
            else:
                disk.pop(change[1], None)
        for path in Path(target).rglob("*"):
            if path.is_file():
                path.unlink()
        fate = dice.choice(["none", "all", "some", "sectors", "sectors"])
        for name, file in disk.items():
            content = bytearray(file["start"])
            for event in file["ops"]:
                durable = event.ended <= moment and any(sync.begun >= event.ended for sync in file.get("syncs", []))
                lost += self._apply(content, event, "all" if durable else fate, dice)
            place = Path(target) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o600)
        return lost

    def _apply(self, content, event, fate, dice):
        if fate == "none" or fate == "some" and dice.random() < 0.5:
            return 1
        if event.kind == "truncate":
            del content[event.offset :]
            content.extend(bytes(event.offset - len(content)))
            return 0
        if event.kind == "extend":
            content.extend(bytes(max(event.offset - len(content), 0)))
            return 0
        end = event.offset + len(event.data)
        if fate != "sectors":
            content.extend(bytes(max(end - len(content), 0)))
            content[event.offset : end] = event.data
            return 0
        lost = 0
        at = event.offset
        while at < end:
            until = min(at - at % SECTOR + SECTOR, end)
            if dice.random() < 0.5:
                content.extend(bytes(max(until - len(content), 0)))
                content[at:until] = event.data[at - event.offset : until - event.offset]
            else:
                lost = 1
            at = until
        return lost
