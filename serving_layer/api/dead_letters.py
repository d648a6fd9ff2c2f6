"""`/v1/dead-letters`: list, show and replay records that could not become events."""

from collections import Counter
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, received_bound
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.queries import DeadLetterFields
from master_dataset.dead_letters.replay import DeadLetterResult
from master_dataset.errors import RequestError
from master_dataset.kafka.record import GREATEST_OFFSET, GREATEST_PARTITION, RecordPosition
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.results import UNIX_EPOCH, Reason
from serving_layer.admin.dead_letters import MAX_REPLAYED, DeadLetterReplayRequest
from serving_layer.api.caller import OperationsOf, Operator
from serving_layer.api.parameters import MAX_PAGE, AfterToken, page_token, read_page_token
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.errors import BadQuestionError
from serving_layer.responses.dead_letters import DeadLetter, DeadLetterPage, DeadLetterReplay, Replayed, ReplayItem
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.schemas import returns

MAX_FIELDS = 20
EXAMPLE: dict[str, Any] = {
    "ids": ["pos_transactions/0/7"],
    "mend": {"set": {"/happened_at": "2026-03-07T09:05:00Z"}},
    "dry_run": True,
}
_MICROSECOND = UNIX_EPOCH.resolution
Id = Annotated[str, StringConstraints(max_length=300, pattern=r"^[^/]+/[0-9]{1,10}/[0-9]{1,19}$")]
Pointer = Annotated[str, StringConstraints(max_length=300, pattern="^/")]
Bound = Annotated[str | None, Field(max_length=40)]


class DeadLetterFilter(BaseModel):
    """Selects dead letters. Bounds are UTC days or instants of receipt."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason | None = None
    source: str | None = Field(None, max_length=256)
    since: Bound = Field(None, alias="from", description="Received at this time or later.")
    until: Bound = Field(None, alias="to", description="Received before this time.")

    def to_query(self, *, replayed: bool | None) -> DeadLetterQuery:
        """Raises UnknownNameError and BadQuestionError."""
        try:
            bounds = received_bound(self.since), received_bound(self.until)
            return DeadLetterQuery(self.reason, self.source, *bounds, replayed)
        except RequestError as error:
            raise refused(error) from error


class DeadLetterListQuery(DeadLetterFilter):
    """Query parameters of a page of dead letters."""

    replayed: bool | None = Field(None, description="Only those that were replayed, or only those that were not.")
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: AfterToken = None

    def to_request(self) -> tuple[DeadLetterQuery, int, DeadLetterCursor | None]:
        """Raises UnknownNameError and BadQuestionError."""
        return self.to_query(replayed=self.replayed), self.limit, read_token(self.after)


class ReplayPatch(BaseModel):
    """How to patch the record: at most one of the fields. With neither, the bytes are sent unchanged."""

    model_config = ConfigDict(extra="forbid")

    body: str | None = Field(
        None, max_length=MAX_BYTES, description="A complete record to send instead of one dead letter."
    )
    fields: dict[Pointer, Any] = Field(
        {}, alias="set", max_length=MAX_FIELDS, description="New values by JSON pointer."
    )


class ReplayQuestion(BaseModel):
    """What to replay: either `ids` or `filter`. A filter selects the oldest that were never replayed."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLE})

    ids: list[Id] = Field([], max_length=MAX_REPLAYED)
    filter: DeadLetterFilter | None = None
    limit: int = Field(100, ge=1, le=MAX_REPLAYED, description="How many that match the filter.", strict=True)
    after: AfterToken = None
    mend: ReplayPatch = Field(ReplayPatch(), description="How to patch the records before they are sent.")
    dry_run: bool = Field(default=False, strict=True, description="Return what each would become, but send nothing.")

    def to_request(self, body: bytes) -> DeadLetterReplayRequest:
        """Return the request to `DeadLetterService`. Raises UnknownNameError and BadQuestionError.

        `body`: the request body as it was sent, so that numbers keep their digits.
        """
        said = self.filter.model_dump(exclude_none=True) if self.filter else {}
        if bool(self.ids) == bool(said):
            message = "Dead letters are selected by `ids` or by a `filter` that is not empty."
            raise BadQuestionError(message, do="Send one of the two.")
        if self.mend.body is not None and (len(self.ids) != 1 or self.mend.fields):
            message = "A complete record replaces exactly one dead letter."
            raise BadQuestionError(message, do="Name one id, and set no other field.")
        query = self.filter.to_query(replayed=None) if self.filter else None
        try:
            positions = tuple(RecordPosition.of(each) for each in self.ids)
        except RequestError as error:
            raise refused(error) from error
        mend = Patch(None if self.mend.body is None else self.mend.body.encode(), exact_fields(body))
        return DeadLetterReplayRequest(positions, query, self.limit, read_token(self.after), mend, self.dry_run)


class _ExactPatch(msgspec.Struct):
    fields: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="set")


class _ExactReplay(msgspec.Struct):
    mend: _ExactPatch = msgspec.field(default_factory=_ExactPatch)


def exact_fields(body: bytes) -> dict[str, bytes]:
    """The values of `mend.set` as they were written: a float would turn 1.10 into 1.1. Raises BadQuestionError."""
    try:
        found = msgspec.json.decode(body, type=_ExactReplay).mend.fields
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadQuestionError("`set` must be an object of JSON pointers.", do='Such as {"/store": 12}.') from error
    return {pointer: bytes(value) for pointer, value in found.items()}


def refused(error: RequestError) -> RequestError:
    """The error with which the REST API rejects a request."""
    return error if error.status != RequestError.status else BadQuestionError(error.message, do=error.do)


def write_token(cursor: DeadLetterCursor) -> str:
    """The page token of a cursor."""
    return page_token((cursor.received_at - UNIX_EPOCH) // _MICROSECOND, *cursor.position)


def read_token(token: str | None) -> DeadLetterCursor | None:
    """The cursor of a page token; None for the first page. Raises BadQuestionError for an invalid token."""
    return None if token is None else read_page_token(token, _cursor)


def _cursor(micros: int, topic: object, partition: int, offset: int) -> DeadLetterCursor:
    position = RecordPosition(str(topic), int(partition), int(offset))
    return DeadLetterCursor(UNIX_EPOCH + micros * _MICROSECOND, position)


MAX_BODY_BYTES = 2_200_000
"""A record as JSON text with most of its characters escaped."""


class ReplayBodyRoute(BodyLimitRoute):
    """A route whose body can hold a complete record."""

    most_bytes = MAX_BODY_BYTES


router = APIRouter(prefix="/v1", tags=["dead letters"], route_class=ReplayBodyRoute)


@router.get("/dead-letters", operation_id="list_dead_letters", responses=returns(DeadLetterPage))
async def list_dead_letters(
    query: Annotated[DeadLetterListQuery, Query()], operations: OperationsOf, _: Operator
) -> Response:
    """Records that could not become events, newest first, without their bytes. Needs the scope `operate`.

    `counts`: the number of matching dead letters by reason; `replayed`: how many of them were replayed. Both are null
    if more than five million would have to be counted. `replays`: when and by whom the record was sent again, which
    fields were `mended`, where it was `sent_to`, and its `outcome` so far: event, duplicate or conflict
    (`duplicate_of`: the delivery that counts), dead_letter (`reason`), waiting (not archived yet) or unknown (the
    broker did not confirm it). `next` is null on the last page.
    """
    listed = await operations.dead_letters.listed(*query.to_request())
    counts = listed.counts
    body = DeadLetterPage(
        counts=None if counts is None else counts.dead_letters,
        replayed=None if counts is None else counts.replayed,
        dead_letters=[described(each) for each in listed.items],
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

    `bytes`: the size of its value. `text` (invalid UTF-8 is escaped) and `base64` are its first 65,536 bytes. `field`:
    the JSON pointer of the invalid field, empty for the whole record.
    """
    stored = (await operations.dead_letters.shown(RecordPosition(topic, partition, offset)))[1]
    return Response(encode(described(stored)), media_type=JSON)


@router.post("/dead-letters/replay", operation_id="replay_dead_letters", responses=returns(Replayed))
async def replay_dead_letters(
    request: Request, replay: ReplayQuestion, operations: OperationsOf, by: Operator
) -> Response:
    """Send dead letters to their topic again, unchanged or patched. Needs the scope `operate`; safe to repeat.

    Each record is parsed first. `outcome`: sent (to `sent_to`; in a dry run: event), duplicate (the event already
    exists as `duplicate_of`; nothing is sent), refused (it would become a dead letter again because of `reason`,
    `field` and `sentence`; nothing is sent) or unknown (the broker did not confirm it in time; send it again, it counts
    once). The dead letter itself is kept. `next`: more match the filter; send it as `after` with the same filter.
    """
    items, following = await operations.dead_letters.replay(replay.to_request(await request.body()), by.name)
    body = Replayed(
        dry_run=replay.dry_run,
        counts=Counter(each.outcome.value for each in items),
        items=[_item(each) for each in items],
        next=None if following is None else write_token(following),
    )
    return Response(encode(body), media_type=JSON)


def _item(item: DeadLetterResult) -> ReplayItem:
    why = item.rejection
    return ReplayItem(
        id=item.position.id,
        outcome=item.outcome,
        sent_to=item.to.id if item.to else None,
        duplicate_of=item.of.id if item.of else None,
        store=item.store,
        reason=why.reason.value if why else None,
        field=why.field if why else None,
        sentence=why.sentence if why else None,
    )


def described(stored: DeadLetterFields) -> DeadLetter:
    """What a response says of a dead letter, with instants in the format of all responses."""
    replays = [DeadLetterReplay(**{**each, "at": iso_instant(each["at"])}) for each in stored["replays"]]
    return DeadLetter(**{**stored, "received_at": iso_instant(stored["received_at"]), "replays": replays})
