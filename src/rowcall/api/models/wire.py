"""What everything that goes over the wire has in common, and the texts and numbers that it takes."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from rowcall.engine.corrections.edit import MOST_TEXT
from rowcall.model import ROW_STATUSES

Flag = Annotated[bool, Strict()]
"""True or false in a body, and not 1 or "no"."""
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""What PostgreSQL takes for a text: no NUL, and no half of a surrogate pair."""
RowStatus = Annotated[Text, Field(json_schema_extra={"enum": list(ROW_STATUSES)})]
RowNumber = Annotated[int, Field(ge=1, le=2**63 - 1)]
CellText = Annotated[Text, Field(max_length=MOST_TEXT)]


class Wire(BaseModel):
    """Names in camelCase; nothing beside what is declared."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", use_attribute_docstrings=True
    )


Name = Annotated[Text, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f/]*[^\x00-\x1f/\s][^\x00-\x1f/]*$")]
"""What people call something: no control characters, no slash, not blank."""
