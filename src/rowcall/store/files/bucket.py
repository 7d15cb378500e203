"""Files in an S3 bucket.

What fits into one request is named by its content. A larger file is sent in parts while it still comes, and S3 wants to
know the name before the first part, and copies an object to give it another: for as long as it is large. So these get a
name by chance, and `rowcall.file` alone knows which content it has.
"""

import hashlib
import shutil
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

from rowcall.config import BUCKET
from rowcall.formats.reading import MIB
from rowcall.store.files.filestore import (
    ABANDONED,
    MARK,
    FileStore,
    Incoming,
    Reader,
    StoredFile,
    by_content,
    changed,
    gone,
    is_ours,
)
from rowcall.store.files.multipart import (
    AT_ONCE,
    LARGE,
    MISSING,
    MOST_PARTS,
    PART,
    Multipart,
    asking,
    code_of,
    part_size,
    sending,
)
from rowcall.store.files.parts import Parts

_EXPORTS = "exports/"


class BucketStore(FileStore):
    """Files under a prefix of a bucket. Credentials and region are the usual ones of AWS."""

    def __init__(self, where: str, endpoint: str | None, uploads: Path) -> None:
        super().__init__(where.rstrip("/"), uploads)
        match = BUCKET.fullmatch(where)
        assert match is not None, where  # noqa: S101 (the settings made sure)
        self.bucket = match["bucket"]
        self._prefix = f"{match['prefix']}/" if match["prefix"] else ""
        style: Any = {"addressing_style": "path"} if endpoint else {}
        config = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "max_attempts": 4}, s3=style)
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint, config=config)  # pyright: ignore[reportUnknownMemberType] (has no types)

    def key(self, location: str) -> dict[str, str]:
        """What S3 knows it by."""
        return {"Bucket": self.bucket, "Key": self._prefix + location}

    def mark(self) -> str | None:
        with asking(self.where):
            try:
                return self.s3.get_object(**self.key(MARK))["Body"].read().decode().strip()
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise

    def set_mark(self, mark: str) -> str:
        with asking(self.where):
            try:
                self.s3.put_object(**self.key(MARK), Body=mark.encode(), IfNoneMatch="*")
            except ClientError as error:
                if code_of(error) not in ("PreconditionFailed", "ConditionalRequestConflict"):
                    raise
        return self.mark() or mark

    def begin(self, *, most: int | None = None) -> Incoming:
        return _IntoBucket(self, most)

    def ahead(self, path: Path, length: int) -> Parts | None:
        return Parts(self.s3, self.where, self.key, path, length) if length > PART else None

    def adopt(self, path: Path, sha256: str, size: int) -> StoredFile:
        if parts := self.ahead(path, size):
            location = parts.stored()
            return StoredFile(sha256, size, location, lambda known: self.older(known, location), held=True)
        location = by_content(sha256)

        def put_back(_: str) -> str:
            if not self.has(location):
                self._send_file(path, location)
            return location

        if path.is_file():
            self._send_file(path, location)
        elif not self.has(location):
            raise gone(path)
        return StoredFile(sha256, size, location, put_back, held=True)

    def abandon(self, path: Path) -> None:
        Parts(self.s3, self.where, self.key, path, 0).abandon()
        super().abandon(path)

    def older(self, known: str, location: str) -> str:
        """Of two names that the same content has by chance, the one that has been there for longer."""
        return known if known != location and self.has(known) else location

    def _send_file(self, path: Path, location: str) -> None:
        size = part_size(path.stat().st_size)
        parts = TransferConfig(multipart_chunksize=size, multipart_threshold=PART, max_concurrency=4)
        with asking(self.where):
            self.s3.upload_file(str(path), **self.key(location), Config=parts)

    def _fetched(self, file: StoredFile, copies: Path) -> Path:
        copies.mkdir(parents=True, exist_ok=True)
        target, digest, size = copies / file.sha256, hashlib.sha256(), 0
        with target.open("wb") as out:
            for block in self._stored(file.location):
                digest.update(block)
                size += out.write(block)
        if digest.hexdigest() != file.sha256:
            raise changed(f"{self.where}/{file.location}", file, size, digest.hexdigest())
        return target

    def _stored(self, location: str) -> Iterator[bytes]:
        with asking(self.where):
            try:
                answer = self.s3.get_object(**self.key(location))
            except ClientError as error:
                if code_of(error) in MISSING:
                    self.require_own()
                    raise gone(f"{self.where}/{location}") from error
                raise
            yield from _blocks(answer["Body"])

    def has(self, location: str) -> bool:
        if Path(location).is_absolute():
            return Path(location).is_file()
        with asking(self.where):
            try:
                self.s3.head_object(**self.key(location))
            except ClientError as error:
                if code_of(error) in MISSING:
                    return False
                raise
            return True

    def remove(self, location: str) -> None:
        if not is_ours(location):
            return
        if Path(location).is_absolute():
            Path(location).unlink(missing_ok=True)
            return
        self._delete(location)

    def _delete(self, location: str) -> None:
        with asking(self.where):
            self.s3.delete_object(**self.key(location))

    def check(self) -> str:
        location = f"check-{uuid4()}"
        with asking(self.where):
            self.s3.put_object(**self.key(location), Body=b"rowcall")
        self._delete(location)
        return self.where

    def locations(self, *, older_than: float = 0) -> Iterator[str]:
        for found in self._below("", older_than=older_than):
            if found != MARK and not found.startswith(_EXPORTS) and (not older_than or is_ours(found)):
                yield found

    def _below(self, folder: str, *, older_than: float = 0) -> Iterator[str]:
        prefix = self._prefix + folder
        with asking(self.where):
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
                for found in page.get("Contents", []):
                    if not older_than or time.time() - found["LastModified"].timestamp() > older_than:
                        yield found["Key"][len(prefix) :]

    def sweep(self) -> int:
        """Give up files that came half. Only their age tells those of a process that was killed from others."""
        count = 0
        with asking(self.where):
            pages = self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=self._prefix)
            for found in (each for page in pages for each in page.get("Uploads", [])):
                if time.time() - found["Initiated"].timestamp() > ABANDONED:
                    given = {"Bucket": self.bucket, "Key": found["Key"], "UploadId": found["UploadId"]}
                    self.s3.abort_multipart_upload(**given)
                    count += 1
        return count

    def export_folder(self, export_id: UUID, *, copies: Path) -> Path:
        folder = copies / str(export_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def publish(self, path: Path, location: str) -> None:
        self._send_file(path, _EXPORTS + location)
        shutil.rmtree(path.parent, ignore_errors=True)

    def export_file(self, location: str) -> Path | Reader:
        if not self.has(_EXPORTS + location):
            raise FileNotFoundError(location)

        def read(first: int, last: int) -> Iterator[bytes]:
            with asking(self.where):
                answer = self.s3.get_object(**self.key(_EXPORTS + location), Range=f"bytes={first}-{last}")
            return _blocks(answer["Body"])

        return read

    def exports(self) -> Iterator[str]:
        return self._below(_EXPORTS)

    def remove_export(self, location: str) -> None:
        self._delete(_EXPORTS + location)


class _IntoBucket(Incoming):
    """Sends parts while more comes; with the last byte, all but the last part is there."""

    def __init__(self, store: BucketStore, most: int | None) -> None:
        super().__init__(most)
        self._store, self._part = store, part_size(most or PART * MOST_PARTS)
        self._waiting = bytearray()
        self._location = f"{LARGE}{uuid4()}"
        self._multipart: Multipart | None = None
        self._under_way: deque[Future[str]] = deque()
        self._tags: list[str] = []
        self._count = 0

    def _put(self, piece: bytes) -> None:
        self._waiting += piece
        while len(self._waiting) > self._part:  # the last one may be as long as any
            self._send(bytes(self._waiting[: self._part]))
            del self._waiting[: self._part]

    def _send(self, part: bytes) -> None:
        with asking(self._store.where):
            if self._multipart is None:
                self._multipart = Multipart.begin(self._store.s3, self._store.key(self._location))
            while len(self._under_way) >= AT_ONCE:
                self._tags.append(self._under_way.popleft().result())
            self._count += 1
            self._under_way.append(sending.submit(self._multipart.send, self._count, part))

    def _settle(self, sha256: str) -> str:
        if self._multipart is None:
            self._location = by_content(sha256)
            self._put_whole()
            return self._location
        self._send(bytes(self._waiting))
        with asking(self._store.where):
            self._tags += [each.result() for each in self._under_way]
            self._multipart.complete(dict(enumerate(self._tags, 1)))
        self._multipart = None
        return self._location

    def _put_whole(self) -> None:
        with asking(self._store.where):
            self._store.s3.put_object(**self._store.key(self._location), Body=bytes(self._waiting))

    def _put_back(self, known: str) -> str:
        """What has been there for longer stays; by content, there is one place only."""
        if self._location.startswith(LARGE):
            return self._store.older(known, self._location)
        if not self._store.has(self._location):
            self._put_whole()
        return self._location

    def close(self) -> None:
        if self._multipart is None:
            return
        wait(self._under_way)  # a part that comes after the end would stay for ever
        self._multipart.abort()


def _blocks(body: Any) -> Iterator[bytes]:
    with body:
        yield from body.iter_chunks(MIB)
