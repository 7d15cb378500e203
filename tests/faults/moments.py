"""Moments at which an importer of parcels can be met (FAULTS.md, K4 to K12)."""

from typing import LiteralString

_BEFORE: dict[str, LiteralString] = {
    "K4 mid-COPY into row": "TRIGGER stop BEFORE INSERT ON rowcall.row FOR EACH ROW WHEN (NEW.number = 700)",
    "K5 batch": "TRIGGER stop BEFORE INSERT ON rowcall.batch FOR EACH ROW WHEN (NEW.number = 3)",
    "K5 rows in, inside COMMIT": """CONSTRAINT TRIGGER stop AFTER INSERT ON rowcall.row DEFERRABLE INITIALLY DEFERRED
                                    FOR EACH ROW WHEN (NEW.number = 700)""",
    "duplicates": "TRIGGER stop BEFORE INSERT ON rowcall.duplicate FOR EACH ROW WHEN (NEW.row_number > 500)",
    "K11 all rows in": "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state = 'COLUMN_MAPPING')",
    "K11 starting": "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state = 'PROCESSING')",
}
_WRITING: dict[str, LiteralString] = {
    "K7 target write": "TRIGGER stop AFTER INSERT ON parcel FOR EACH ROW WHEN (NEW.code = 'P001790')",
    "K8 outcomes": "TRIGGER stop AFTER INSERT ON rowcall.outcome FOR EACH ROW WHEN (NEW.row_number = 1790)",
    "K8 batch marked": """TRIGGER stop AFTER UPDATE ON rowcall.batch FOR EACH ROW
                          WHEN (NEW.state = 'done' AND NEW.first_row = 401)""",
    "K9 inside COMMIT": """TRIGGER stop AFTER UPDATE ON rowcall.batch FOR EACH ROW
                           WHEN (NEW.state = 'done' AND NEW.first_row = 401) EXECUTE FUNCTION gate_in_commit()""",
    # the rows before it that are refused keep an importer from coming here before it tries halves
    "K12 splitting a refused batch": "TRIGGER stop BEFORE INSERT ON parcel FOR EACH ROW WHEN (NEW.code = 'P000599')",
    "K11 ending": "TRIGGER stop BEFORE UPDATE ON rowcall.job FOR EACH ROW WHEN (NEW.state LIKE 'COMPLETED%')",
}
MOMENTS = _BEFORE | _WRITING
"""By name: what stands between CREATE and EXECUTE of a trigger that stops it there."""
