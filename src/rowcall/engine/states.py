"""The moves between a job's states: one table for the engine, the API and the documentation."""

from rowcall.model import State

MOVES: dict[State, frozenset[State]] = {
    State.UPLOADED: frozenset({State.COLUMN_MAPPING, State.FAILED}),
    State.COLUMN_MAPPING: frozenset({State.VALIDATING, State.PROCESSING, State.FAILED}),
    State.VALIDATING: frozenset({State.VALIDATED, State.INVALID, State.PROCESSING, State.FAILED}),
    State.VALIDATED: frozenset({State.PROCESSING}),
    State.PROCESSING: frozenset({State.COMPLETED, State.COMPLETED_WITH_ERRORS, State.VALIDATING, State.FAILED}),
    State.INVALID: frozenset(),
    State.COMPLETED: frozenset(),
    State.COMPLETED_WITH_ERRORS: frozenset(),
    State.FAILED: frozenset(),
}
