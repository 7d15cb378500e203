"""Refusals of what a job can't be asked for now: with its state, and all that can truly be asked of it instead."""

import psycopg
from psycopg_pool import PoolTimeout
from starlette.requests import Request

from rowcall.api.service import Caller, Service
from rowcall.engine import moves
from rowcall.errors import RowcallError, WrongState
from rowcall.store import jobs


def as_of_now(request: Request, error: RowcallError) -> RowcallError:
    """The error of a request about a job, with what the job is now. Who raised it may know the state alone."""
    job_id = request.path_params.get("job_id")
    if job_id is None:
        return error
    at: Service = request.app.state.service
    caller: Caller = request.state.caller
    try:
        with at.connection(caller) as connection:
            now = jobs.get_job(connection, str(job_id), organisation=caller.organisation)
            may = moves.possible(now, jobs.counts_of(connection, now), at.registry.find(now.importer))
    except (psycopg.Error, PoolTimeout, RowcallError):
        return error
    hint, over_http, job = error.hint, error.over_http, None
    if isinstance(error, WrongState):
        job = error.job
        if (over_http or hint) == moves.hint_of(error.allowed):
            if error.state != now.state:  # it has moved on: what is possible now doesn't go with why it was refused
                return error
            hint, over_http = moves.hint_of(may), ""
    return WrongState(error.code, error.message, hint=hint, over_http=over_http, state=now.state, allowed=may, job=job)
