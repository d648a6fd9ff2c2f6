"""`/v1/dead-letters`: list, show and replay records that could not become events."""

import base64
import binascii
from collections import Counter
from typing import Annotated, Any

import msgspec
import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, received_bound
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.queries import Told
from master_dataset.dead_letters.replay import DeadLetterResult
from master_dataset.errors import RequestError
from master_dataset.kafka.record import GREATEST_OFFSET, GREATEST_PARTITION, RecordPosition
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.results import EPOCH, Reason
from serving_layer.admin.dead_letters import MAX_REPLAYED, DeadLetterReplayRequest
from serving_layer.api.caller import OperationsOf, Operator
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.errors import BadQuestionError
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.dead_letters import DeadLetter, DeadLetterPage, LetterReplay, Replayed, ReplayItem
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns

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

    def chosen(self, *, replayed: bool | None) -> DeadLetterQuery:
        """UnknownNameError, BadQuestionError."""
        try:
            bounds = received_bound(self.since), received_bound(self.until)
            return DeadLetterQuery(self.reason, self.source, *bounds, replayed)
        except RequestError as error:
            raise refused(error) from error


class LettersQuestion(LetterFilter):
    """A page of them, newest first."""

    replayed: bool | None = Field(None, description="Only those that were sent again, or that were not.")
    limit: int = Field(100, ge=1, le=PAGE)
    after: Token = None

    def understood(self) -> tuple[DeadLetterQuery, int, DeadLetterCursor | None]:
        """UnknownNameError, BadQuestionError."""
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

    ids: list[Id] = Field([], max_length=MAX_REPLAYED)
    filter: LetterFilter | None = None
    limit: int = Field(100, ge=1, le=MAX_REPLAYED, description="How many that fit the filter.", strict=True)
    after: Token = None
    mend: MendQuestion = MendQuestion()
    dry_run: bool = Field(default=False, strict=True, description="Say what each would become; send nothing.")

    def understood(self, body: bytes) -> DeadLetterReplayRequest:
        """`body`: as it was sent, for its values digit by digit. UnknownNameError, BadQuestionError."""
        said = self.filter.model_dump(exclude_none=True) if self.filter else {}
        if bool(self.ids) == bool(said):
            message = "Dead letters are named by `ids`, or chosen by a `filter` that says something."
            raise BadQuestionError(message, do="Do one of both.")
        if self.mend.body is not None and (len(self.ids) != 1 or self.mend.fields):
            message = "A whole record is sent instead of one dead letter."
            raise BadQuestionError(message, do="Name one id, and set no field beside it.")
        question = self.filter.chosen(replayed=None) if self.filter else None
        try:
            places = tuple(RecordPosition.of(each) for each in self.ids)
        except RequestError as error:
            raise refused(error) from error
        mend = Patch(None if self.mend.body is None else self.mend.body.encode(), exact_fields(body))
        return DeadLetterReplayRequest(places, question, self.limit, read_token(self.after), mend, self.dry_run)


class _Set(msgspec.Struct):
    fields: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="set")


class _Asked(msgspec.Struct):
    mend: _Set = msgspec.field(default_factory=_Set)


def exact_fields(body: bytes) -> dict[str, bytes]:
    """The values of `mend.set` as they were written: through a float 1.10 would be another text. BadQuestionError."""
    try:
        found = msgspec.json.decode(body, type=_Asked).mend.fields
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadQuestionError("`set` is an object of JSON pointers.", do='Such as {"/store": 12}.') from error
    return {pointer: bytes(value) for pointer, value in found.items()}


def refused(error: RequestError) -> RequestError:
    """As a question is refused over HTTP."""
    return error if error.status != RequestError.status else BadQuestionError(error.message, do=error.do)


def write_token(cursor: DeadLetterCursor) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    parts = [(cursor.received_at - EPOCH) // _MICROSECOND, *cursor.place]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_token(token: str | None) -> DeadLetterCursor | None:
    """The inverse. BadQuestionError for anything that `write_token` did not write."""
    if token is None:
        return None
    try:
        micros, topic, partition, offset = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return DeadLetterCursor(EPOCH + micros * _MICROSECOND, RecordPosition(str(topic), int(partition), int(offset)))
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        message = "`after` is no token of this interface."
        raise BadQuestionError(message, do="Use `next` of the page before, or leave it out.") from error


MOST_BODY = 2_200_000
"""A record as JSON text, most of whose characters are written as two."""


class ReplayBodyRoute(BodyLimitRoute):
    """A body that may bring a whole record."""

    most_bytes = MOST_BODY


router = APIRouter(prefix="/v1", tags=["dead letters"], route_class=ReplayBodyRoute)


@router.get("/dead-letters", operation_id="list_dead_letters", responses=returns(DeadLetterPage))
async def list_dead_letters(
    asked: Annotated[LettersQuestion, Query()], operations: OperationsOf, _: Operator
) -> Response:
    """Records that could not become events, newest first, without their bytes. Needs the scope `operate`.

    `counts`: how many there are of each reason among all that fit, `replayed`: how many of these were sent again; both
    are null where more than five million would have to be counted. `replays` of a letter: when and by whom it was sent
    again, what was `mended`, `sent_to` where, and its `outcome` as far as it is known by now: event, duplicate or
    conflict (`duplicate_of`: the delivery that counts), dead_letter (`reason`), waiting (not archived yet) or unknown
    (the broker did not confirm it). `next` is null on the last page.
    """
    listed = await operations.letters.listed(*asked.understood())
    counts = listed.counts
    body = DeadLetterPage(
        counts=None if counts is None else counts.letters,
        replayed=None if counts is None else counts.replayed,
        dead_letters=[described(each) for each in listed.told],
        next=None if listed.following is None else write_token(listed.following),
    )
    return Response(encode(body), media_type=JSON)


@router.get("/dead-letters/{topic}/{partition}/{offset}", operation_id="get_dead_letter", responses=returns(DeadLetter))
async def get_dead_letter(
    topic: str,
    partition: Annotated[int, Path(ge=0, le=GREATEST_PARTITION)],
    offset: Annotated[int, Path(ge=0, le=GREATEST_OFFSET)],
    operations: OperationsOf,
    _: Operator,
) -> Response:
    """One dead letter with its bytes, headers and replays. Needs the scope `operate`.

    `bytes`: how many its value has. `text` (what is no UTF-8 escaped) and `base64` are the first 65,536 of them.
    `field` is a JSON pointer to what is wrong, empty for the record as a whole.
    """
    told = (await operations.letters.shown(RecordPosition(topic, partition, offset)))[1]
    return Response(encode(described(told)), media_type=JSON)


@router.post("/dead-letters/replay", operation_id="replay_dead_letters", responses=returns(Replayed))
async def replay_dead_letters(
    request: Request, asked: ReplayQuestion, operations: OperationsOf, by: Operator
) -> Response:
    """Send dead letters to their topic again, as they are or mended. Needs the scope `operate`; safe to repeat.

    Each is judged first by the parser of all layers. `outcome`: sent (`sent_to` where; of a dry run: event), duplicate
    (the event is there already, `duplicate_of`; nothing is sent), refused (it would be a dead letter again: `reason`,
    `field`, `sentence`; nothing is sent) or unknown (the broker did not confirm it in time: send it again, it counts
    once). The dead letter itself stays. `next`: others fit the filter; send it as `after`, with the same filter.
    """
    items, following = await operations.letters.replay(asked.understood(await request.body()), by.name)
    body = Replayed(
        dry_run=asked.dry_run,
        counts=Counter(each.outcome.value for each in items),
        items=[_item(each) for each in items],
        next=None if following is None else write_token(following),
    )
    return Response(encode(body), media_type=JSON)


def _item(item: DeadLetterResult) -> ReplayItem:
    why = item.refusal
    return ReplayItem(
        id=item.place.id,
        outcome=item.outcome,
        sent_to=item.to.id if item.to else None,
        duplicate_of=item.of.id if item.of else None,
        store=item.store,
        reason=why.reason.value if why else None,
        field=why.field if why else None,
        sentence=why.sentence if why else None,
    )


def described(told: Told) -> DeadLetter:
    """What is told of a letter, its instants as every answer writes them."""
    replays = [LetterReplay(**{**each, "at": iso_instant(each["at"])}) for each in told["replays"]]
    return DeadLetter(**{**told, "received_at": iso_instant(told["received_at"]), "replays": replays})
