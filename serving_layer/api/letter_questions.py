"""What may be asked of dead letters over HTTP, as bodies and queries say it."""

import base64
import binascii
from typing import Annotated, Any

import msgspec
import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from master_dataset.dead_letters.letter import Cursor
from master_dataset.dead_letters.mend import Mend
from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.question import LetterQuestion, received_bound
from master_dataset.errors import RequestError
from master_dataset.parsing.dead_letter import Reason
from master_dataset.parsing.event import EPOCH
from master_dataset.parsing.json_bytes import MAX_BYTES
from serving_layer.admin.dead_letters import MOST_REPLAYED, ReplayAsk
from serving_layer.errors import BadQuestion

PAGE = 1000
MOST_FIELDS = 20
EXAMPLE: dict[str, Any] = {
    "ids": ["pos_transactions/0/7"],
    "mend": {"set": {"/happened_at": "2026-03-07T09:05:00Z"}},
    "dry_run": True,
}
_MICROSECOND = EPOCH.resolution
Id = Annotated[str, StringConstraints(max_length=300, pattern=r"^[^/]+/[0-9]{1,10}/[0-9]{1,19}$")]
Pointer = Annotated[str, StringConstraints(max_length=300, pattern="^/")]
Bound = Annotated[str | None, Field(max_length=40)]
Token = Annotated[str | None, Field(max_length=2048, description="`next` of the page before.")]


class LetterFilter(BaseModel):
    """Which dead letters; bounds are UTC days or instants of receipt."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason | None = None
    source: str | None = Field(None, max_length=256)
    since: Bound = Field(None, alias="from", description="Received then or later.")
    until: Bound = Field(None, alias="to", description="Received before that.")

    def chosen(self, *, replayed: bool | None) -> LetterQuestion:
        """UnknownName, BadQuestion."""
        try:
            bounds = received_bound(self.since), received_bound(self.until)
            return LetterQuestion(self.reason, self.source, *bounds, replayed)
        except RequestError as error:
            raise refused(error) from error


class LettersQuestion(LetterFilter):
    """A page of them, newest first."""

    replayed: bool | None = Field(None, description="Only those that were sent again, or that were not.")
    limit: int = Field(100, ge=1, le=PAGE)
    after: Token = None

    def understood(self) -> tuple[LetterQuestion, int, Cursor | None]:
        """UnknownName, BadQuestion."""
        return self.chosen(replayed=self.replayed), self.limit, read_token(self.after)


class MendQuestion(BaseModel):
    """At most one of them. With none the bytes go as they are."""

    model_config = ConfigDict(extra="forbid")

    body: str | None = Field(None, max_length=MAX_BYTES, description="A whole record instead of one dead letter.")
    fields: dict[Pointer, Any] = Field(
        {}, alias="set", max_length=MOST_FIELDS, description="JSON pointer to its value."
    )


class ReplayQuestion(BaseModel):
    """Either `ids` or `filter`. A filter takes the oldest that were never sent again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLE})

    ids: list[Id] = Field([], max_length=MOST_REPLAYED)
    filter: LetterFilter | None = None
    limit: int = Field(100, ge=1, le=MOST_REPLAYED, description="How many that fit the filter.", strict=True)
    after: Token = None
    mend: MendQuestion = MendQuestion()
    dry_run: bool = Field(default=False, strict=True, description="Say what each would become; send nothing.")

    def understood(self, body: bytes) -> ReplayAsk:
        """`body`: as it was sent, for its values digit by digit. UnknownName, BadQuestion."""
        said = self.filter.model_dump(exclude_none=True) if self.filter else {}
        if bool(self.ids) == bool(said):
            message = "Dead letters are named by `ids`, or chosen by a `filter` that says something."
            raise BadQuestion(message, do="Do one of both.")
        if self.mend.body is not None and (len(self.ids) != 1 or self.mend.fields):
            message = "A whole record is sent instead of one dead letter."
            raise BadQuestion(message, do="Name one id, and set no field beside it.")
        question = self.filter.chosen(replayed=None) if self.filter else None
        try:
            places = tuple(Place.of(each) for each in self.ids)
        except RequestError as error:
            raise refused(error) from error
        mend = Mend(None if self.mend.body is None else self.mend.body.encode(), exact_fields(body))
        return ReplayAsk(places, question, self.limit, read_token(self.after), mend, self.dry_run)


class _Set(msgspec.Struct):
    fields: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="set")


class _Asked(msgspec.Struct):
    mend: _Set = msgspec.field(default_factory=_Set)


def exact_fields(body: bytes) -> dict[str, bytes]:
    """The values of `mend.set` as they were written: through a float 1.10 would be another text. BadQuestion."""
    try:
        found = msgspec.json.decode(body, type=_Asked).mend.fields
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadQuestion("`set` is an object of JSON pointers.", do='Such as {"/store": 12}.') from error
    return {pointer: bytes(value) for pointer, value in found.items()}


def refused(error: RequestError) -> RequestError:
    """As a question is refused over HTTP."""
    return error if error.status != RequestError.status else BadQuestion(error.message, do=error.do)


def write_token(cursor: Cursor) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    parts = [(cursor.received_at - EPOCH) // _MICROSECOND, *cursor.place]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_token(token: str | None) -> Cursor | None:
    """The inverse. BadQuestion for anything that `write_token` did not write."""
    if token is None:
        return None
    try:
        micros, topic, partition, offset = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return Cursor(EPOCH + micros * _MICROSECOND, Place(str(topic), int(partition), int(offset)))
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        message = "`after` is no token of this interface."
        raise BadQuestion(message, do="Use `next` of the page before, or leave it out.") from error
