"""How a file is to be read and what is done with its rows, as requests say it."""

from dataclasses import fields
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, TypeAdapter, ValidationError

from rowcall.api.models.wire import Flag, Name, Text, Wire
from rowcall.api.problems import unfit
from rowcall.errors import Final
from rowcall.formats import Format, ReadOptions
from rowcall.model import Code, Mode
from rowcall.store.jobs import JobConfig, TemplateKey

_MOST = 2**31 - 1
_CONTEXT = TypeAdapter(dict[Text, Text])
_READ_OPTIONS = {option.name for option in fields(ReadOptions)} - {"limits"}


class TemplateName(Wire):
    """A template: the system that writes such files, and which of its kinds."""

    source_system: Name
    variant: Name

    def key(self) -> TemplateKey:
        """The same for the engine."""
        return TemplateKey(self.source_system, self.variant)


class ImportConfig(Wire):
    """How a file is read and what is done with its rows. What isn't said is found out, or as the importer says."""

    mode: Mode | None = None
    """What is done with rows that are there already."""
    mapping: dict[Text, Text] = {}
    """Header to field; headers with a plus between are joined."""
    separators: dict[Text, Annotated[Text, Field(max_length=20)]] = {}
    """Field to what stands between its joined columns, if not a blank."""
    constants: dict[Text, Text] = {}
    """Field to a value for every row."""
    context: dict[Text, Text] = {}
    """What the file is about, as its importer demands; or beside `config`."""
    template: TemplateName | None = None
    """Map the columns as this template has them."""
    ask: Literal["never", "unsure", "always"] | None = None
    """Whether the job waits for a person to settle its columns; as the importer says if not said here."""
    dry_run: Flag = False
    """Do all but write: the outcomes tell what would happen."""
    preview: Flag = False
    """Wait when it is known what would happen, until that is submitted."""
    hold: Flag = False
    """Begin only on `start` or `kickoff`."""
    format: Format | None = None
    """What the file is, if its content doesn't tell."""
    encoding: Text | None = None
    """Such as `utf-8` or `windows-1252`."""
    delimiter: Annotated[Text, Field(min_length=1)] | None = None
    """What is between the cells of a CSV file."""
    quote: Annotated[Text, Field(max_length=1)] | None = None
    """The quote character; "" for none."""
    escape: Literal["doubled", "backslash"] | None = None
    """How a quote within quotes is written."""
    comment: Annotated[Text, Field(min_length=1)] | None = None
    """Lines that begin with it are none of the data."""
    sheet: Text | Annotated[int, Strict(), Field(ge=1, le=_MOST)] | None = None
    """Its name, or its position from 1."""
    header: Annotated[int, Strict(), Field(ge=0, le=_MOST)] | None = None
    """The line of the header, from 1; 0 when there is none."""
    records: Text | None = None
    """The key of a JSON document under which the records lie."""
    ragged: Literal["reject", "pad"] | None = None
    """What becomes of lines with too few cells."""
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal: Literal[".", ","] | None = None

    @classmethod
    def from_text(cls, text: str, *, at: str) -> Self:
        """The configuration that is at some place of a request."""
        try:
            return cls.model_validate_json(text or "{}")
        except ValidationError as error:
            raise unfit(error, at=at) from error

    def about(self, context: str, *, at: str) -> Self:
        """The same with the context that came beside it."""
        try:
            told = _CONTEXT.validate_json(context or "{}")
        except ValidationError as error:
            raise unfit(error, at=at) from error
        for name in told.keys() & self.context.keys():
            if told[name] != self.context[name]:
                raise Final(Code.BAD_CONTEXT, f"`context` and `config` say different things of {name!r}.")
        return self.model_copy(update={"context": {**self.context, **told}})

    def job_config(self) -> JobConfig:
        """The same for the engine."""
        read = self.model_dump(include=_READ_OPTIONS)
        return JobConfig(
            mode=self.mode,
            mapping=self.mapping,
            separators=self.separators,
            constants=self.constants,
            context=self.context,
            template=self.template.key() if self.template else None,
            ask=self.ask,
            dry_run=self.dry_run,
            preview=self.preview,
            read=ReadOptions(**{name: value for name, value in read.items() if value is not None}),
        )
