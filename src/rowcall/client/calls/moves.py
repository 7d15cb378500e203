"""The part of the client that moves jobs: start, pause, submit and so on."""

from typing import Any

from rowcall.client.answers import Job, Preview, Reprocessed, View
from rowcall.client.calls.calls import AnyJob, Calls, which


class MoveCalls(Calls):
    """The moves that `Client` can ask for."""

    def start(self, job: AnyJob) -> Job:
        """Begin a job that was held back."""
        return self._move(job, "start")

    def submit(self, job: AnyJob, plan: Preview | str | None = None) -> Job:
        """Commit a job that waits after its preview: this plan, or its digest, and no other; None: whatever it is.

        Another plan by now is refused, with the code PLAN_STALE.
        """
        digest = plan.digest if isinstance(plan, Preview) else plan
        match = {"If-Match": "*" if digest is None else f'"{digest}"'}
        return self._asking.ask(Job, "POST", f"{self._path(job)}/submit", safe=digest is not None, headers=match)

    def acknowledge(self, job: AnyJob) -> Job:
        """Let a job go on though some of its rows differ from the target."""
        return self._move(job, "fingerprint/acknowledge")

    def pause(self, job: AnyJob) -> Job:
        """Stop a job for now."""
        return self._move(job, "pause")

    def resume(self, job: AnyJob) -> Job:
        """Let a paused job go on."""
        return self._move(job, "resume")

    def kickoff(self, job: AnyJob, *, milliseconds: int = 10_000) -> Job:
        """Let a held or paused job work for a while; then it pauses by itself."""
        return self._move(job, "kickoff", params={"durationMs": milliseconds})

    def cancel(self, job: AnyJob) -> Job:
        """Stop a job for good; what is done stays."""
        return self._move(job, "cancel")

    def reprocess(self, job: AnyJob, view: View | None = None, *, rows: list[int] | None = None) -> Reprocessed:
        """Try rows again that failed, or those of a view: by status, corrected ones, or those with these numbers."""
        view = view or View()
        order = {**which(view), "edited": view.edited, "rows": rows}
        return self._tell(Reprocessed, "POST", f"{self._path(job)}/reprocess", order)

    def _move(self, job: AnyJob, name: str, **more: Any) -> Job:
        return self._asking.ask(Job, "POST", f"{self._path(job)}/{name}", safe=False, **more)
