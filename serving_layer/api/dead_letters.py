"""`/v1/dead-letters`: records that could not become events, looked at, mended and sent again."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from master_dataset.dead_letters.desk import Told
from master_dataset.dead_letters.item import Item
from master_dataset.dead_letters.place import GREATEST_OFFSET, GREATEST_PARTITION, Place
from serving_layer.api.bounded import Bounded
from serving_layer.api.caller import OperationsOf, Operator
from serving_layer.api.letter_questions import LettersQuestion, ReplayQuestion, write_token
from serving_layer.query.timestamps import stamp
from serving_layer.responses.dead_letters import DeadLetter, DeadLetterPage, LetterReplay, Replayed, ReplayItem
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns

MOST_BODY = 2_200_000
"""A record as JSON text, most of whose characters are written as two."""


class WithARecord(Bounded):
    """A body that may bring a whole record."""

    most_bytes = MOST_BODY


router = APIRouter(prefix="/v1", tags=["dead letters"], route_class=WithARecord)


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
    told = (await operations.letters.shown(Place(topic, partition, offset)))[1]
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


def _item(item: Item) -> ReplayItem:
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
    replays = [LetterReplay(**{**each, "at": stamp(each["at"])}) for each in told["replays"]]
    return DeadLetter(**{**told, "received_at": stamp(told["received_at"]), "replays": replays})
