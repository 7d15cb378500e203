"""The parts of a resumable upload, sent to the bucket while more of it comes.

The upload's file on this host stays the truth. Each part is sent from it as soon as it is whole, and noted in a journal
beside it: whoever has the file and its lock goes on from there, after a kill too. Bytes behind those that are known to
be durable may come anew, and may be others then, so parts that have any of them are struck out before.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from rowcall.formats.output import sync_folder
from rowcall.store.files.filestore import Ahead, gone
from rowcall.store.files.multipart import AT_ONCE, LARGE, MISSING, Multipart, asking, code_of, part_size, sending

_EACH_TIME = 2
"""Parts that go with each block that comes: what could not be sent for a while is made up for, and nobody waits."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Journal:
    """What S3 has of an upload: where, under which id until it is an object, and each part's tag."""

    path: Path
    location: str = ""
    id: str = ""
    tags: dict[int, str] = field(default_factory=dict[int, str])

    @classmethod
    def of(cls, upload: Path) -> "_Journal":
        """As it was written; what a kill cut off doesn't count."""
        journal = cls(upload.with_name(f"{upload.name}.parts"))
        try:
            first, *others, rest = journal.path.read_text().split("\n")
        except (FileNotFoundError, ValueError):
            return journal
        journal.location, _, journal.id = first.partition(" ")
        for number, _, tag in (line.partition(" ") for line in others):
            if not number.isdecimal():
                break
            journal.tags[int(number)] = tag
        if rest or len(journal.tags) < len(others):
            journal.write()
        return journal

    def note(self, number: int, tag: str) -> None:
        """Add a part. If the line is lost, the part is sent again."""
        self.tags[number] = tag
        with self.path.open("a") as file:
            file.write(f"{number} {tag}\n")

    def write(self) -> None:
        """Write all of it anew, durably: what was struck out stays so."""
        lines = [f"{self.location} {self.id}", *(f"{number} {tag}" for number, tag in self.tags.items())]
        new = self.path.with_suffix(".new")
        with new.open("w") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        sync_folder(self.path.parent)

    def forget(self) -> None:
        self.location, self.id, self.tags = "", "", {}
        self.path.unlink(missing_ok=True)


class Parts(Ahead):
    """The parts of one upload of a known length, for whoever has its lock."""

    def __init__(self, s3: Any, where: str, key: Callable[[str], Mapping[str, str]], path: Path, length: int) -> None:
        self._s3, self._where, self._key, self._path, self._length = s3, where, key, path, length
        self._size = part_size(length)
        self._count = -(-length // self._size)
        self._journal = _Journal.of(path)
        self._next = 1
        self._under_way: deque[tuple[int, Future[str]]] = deque()
        self._stopped = False
        self._lock = threading.Lock()  # a request that is cancelled ends this while a thread still writes

    def keep(self, received: int) -> None:
        self.settle()
        with self._lock:
            known = {n: tag for n, tag in self._journal.tags.items() if self._end(n) <= received}
            if known != self._journal.tags:
                self._journal.tags = known
                self._journal.write()
            self._next = 1

    def _end(self, number: int) -> int:
        return min(number * self._size, self._length)

    def come(self, size: int) -> None:
        with self._lock:
            if self._stopped:
                return
            try:
                for number in islice(self._missing(size), _EACH_TIME):
                    self._send(number)
                    self._next = number + 1
            except (BotoCoreError, ClientError, OSError) as error:
                self._stop(error)

    def _missing(self, size: int) -> Iterator[int]:
        """Parts that are whole when so much has come, and were not sent."""
        for number in range(self._next, self._count + 1):
            if self._end(number) > size:
                return
            if number not in self._journal.tags:
                yield number

    def _send(self, number: int) -> None:
        """Have a part sent, as soon as not too many are."""
        self._collect(AT_ONCE - 1)
        if not self._journal.id:
            self._begin()
        self._under_way.append((number, sending.submit(self._sent, self._multipart(), number)))

    def _begin(self) -> None:
        location = f"{LARGE}{uuid4()}"
        begun = Multipart.begin(self._s3, self._key(location))
        self._journal.location, self._journal.id, self._journal.tags = location, begun.id, {}
        self._journal.write()

    def _multipart(self) -> Multipart:
        return Multipart(self._s3, self._key(self._journal.location), self._journal.id)

    def _sent(self, multipart: Multipart, number: int) -> str:
        start = (number - 1) * self._size
        with self._path.open("rb") as file:
            file.seek(start)
            part = file.read(self._end(number) - start)
        if len(part) != self._end(number) - start:
            raise gone(self._path)
        return multipart.send(number, part)

    def _collect(self, left: int) -> None:
        """Note what was sent, until no more are under way than this."""
        while len(self._under_way) > left:
            number, future = self._under_way.popleft()
            self._journal.note(number, future.result())

    def _stop(self, error: Exception) -> None:
        """Send no more until somebody comes again: an upload goes on without its bucket."""
        self._stopped = True
        self._drop_under_way()
        _log.warning("what comes of upload %s stays here for now: %s", self._path.name, error)
        with suppress(BotoCoreError, ClientError):  # it is away altogether
            if self._journal.id and not self._multipart().is_known():
                self._journal.forget()

    def _drop_under_way(self) -> None:
        wait([future for _, future in self._under_way])
        self._under_way.clear()

    def settle(self) -> None:
        with self._lock:
            try:
                self._collect(0)
            except (BotoCoreError, ClientError, OSError) as error:
                self._stop(error)

    def close(self) -> None:
        self.settle()
        with self._lock:
            self._stopped = True

    def stored(self) -> str:
        """Send what is missing and have all of it at its location, which is told; the same after a kill."""
        with asking(self._where), self._lock:
            try:
                return self._complete()
            except ClientError as error:
                if code_of(error) != "InvalidPart" and self._multipart().is_known():
                    raise
                if self._is_there():
                    return self._journal.location
                self.abandon()
                return self._complete()

    def _complete(self) -> str:
        if not self._journal.id and self._is_there():
            return self._journal.location
        if not self._path.is_file():
            raise gone(self._path)
        try:
            for number in list(self._missing(self._length)):
                self._send(number)
            self._collect(0)
        finally:
            self._drop_under_way()
        self._multipart().complete(self._journal.tags)
        self._journal.id = ""
        self._journal.write()
        return self._journal.location

    def _is_there(self) -> bool:
        if not self._journal.location:
            return False
        try:
            found = self._s3.head_object(**self._key(self._journal.location))
        except ClientError as error:
            if code_of(error) in MISSING:
                return False
            raise
        return found["ContentLength"] == self._length

    def abandon(self) -> None:
        """Give up what is not an object yet."""
        if self._journal.id:
            self._multipart().abort()
        self._journal.forget()
