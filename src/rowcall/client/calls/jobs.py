"""The part of the client that is about jobs: files that become them, and what becomes of them."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import msgspec

from rowcall.client.answers import Fingerprint, ImportConfig, Job, Preview, Receipt, Summary
from rowcall.client.calls.calls import AnyFile, AnyJob, Calls, name_of, nobody, number_in
from rowcall.client.uploading import Sent, opened, send_unsized, upload
from rowcall.client.waiting import looks_at, not_done_yet
from rowcall.decoding import from_json


class JobCalls(Calls):
    """What `Client` can be asked of jobs."""

    def import_file(
        self,
        file: AnyFile,
        importer: str,
        config: ImportConfig | None = None,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
        progress: Sent | None = None,
    ) -> Job:
        """Bring a file: a path, bytes, or a stream. The job that this begins; `wait` for it.

        After a cut the rest is sent, but for a stream that can't be read again. `progress` is told how many bytes are
        sent, and of how many, 0 where that isn't known.
        """
        told = {"importer": importer, "config": msgspec.json.encode(config or ImportConfig()).decode()}
        name = name or name_of(file)
        key = idempotency_key or str(uuid4())
        with opened(file) as stream:
            if not stream.seekable():
                answer = send_unsized(self._asking, stream, name, told, key, progress or nobody)
                return from_json(answer.content, Job)
            place = upload(self._asking, stream, {**told, "filename": name, "idempotencyKey": key}, progress or nobody)
        return self._asking.ask(Job, "GET", place)

    def import_url(
        self, url: str, importer: str, config: ImportConfig | None = None, *, idempotency_key: str | None = None
    ) -> Job:
        """Have the server fetch a file. The job that this begins; `wait` for it."""
        order = {"url": url, "importer": importer, "config": config or ImportConfig()}
        return self._create(Job, "/v1/imports", order, idempotency_key)

    def job(self, job: AnyJob) -> Job:
        """A job as it is now."""
        if isinstance(job, str) and (number := number_in(job)):
            return self._numbered(number)
        return self._asking.ask(Job, "GET", self._path(job))

    def jobs(
        self,
        *,
        state: str | None = None,
        importer: str | None = None,
        scope: str | None = None,
        most: int | None = None,
    ) -> Iterator[Job]:
        """The jobs, the newest first; pages are asked for as they are needed."""
        return self._pages(Job, "/v1/imports", {"state": state, "importer": importer, "scope": scope}, most)

    def wait(self, job: AnyJob, *, timeout: float | None = None, progress: Callable[[Job], None] | None = None) -> Job:
        """The job when nothing more happens by itself: it has ended, is paused, or waits to be submitted.

        A job that has failed is returned, too: see its `state` and `error`. Past `timeout` seconds
        `ServerUnavailable` is raised, with the code NOT_DONE_YET; the job goes on.
        """
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        for now in looks_at(self._asking, self._path(job), deadline):
            if progress:
                progress(now)
            if now.rests:
                return now
            if time.monotonic() >= deadline:
                raise not_done_yet(f"Job {now.number}", timeout or 0)
        raise AssertionError("there is always another look")

    def preview(self, job: AnyJob) -> Preview:
        """What a job that was previewed would do."""
        return self._asking.ask(Preview, "GET", f"{self._path(job)}/preview")

    def receipt(self, job: AnyJob) -> Receipt:
        """A job on one page."""
        return self._asking.ask(Receipt, "GET", f"{self._path(job)}/receipt")

    def fingerprint(self, job: AnyJob) -> Fingerprint:
        """Whether its file is about the same things as the target, and what differs."""
        return self._asking.ask(Fingerprint, "GET", f"{self._path(job)}/fingerprint")

    def summary(self, job: AnyJob) -> Summary:
        """How many rows came to what, and what was wrong with how many."""
        return self._asking.ask(Summary, "GET", f"{self._path(job)}/results/summary")
