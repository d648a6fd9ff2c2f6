"""`/dead-letters/{topic}/{partition}/{offset}`: one dead letter, looked at, mended and sent again. For operators."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response
from fastapi.responses import RedirectResponse

from master_dataset.dead_letters.item import Item, Outcome
from master_dataset.dead_letters.letter import Letter
from master_dataset.dead_letters.meanings import MEANINGS
from master_dataset.dead_letters.mend import Mend
from master_dataset.dead_letters.place import GREATEST_OFFSET, GREATEST_PARTITION, Place
from master_dataset.errors import GalateaError
from master_dataset.parsing.dead_letter import Reason
from serving_layer.admin.dead_letters import ReplayAsk
from serving_layer.api.dead_letters import described
from serving_layer.pages.bytes_shown import edited, hex_lines, sent_back, shown
from serving_layer.pages.forms import first, read_own_form
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import OperatorVisit, Visit

router = routes()
PATH = "/dead-letters/{topic}/{partition}/{offset}"
MOST_BYTES = 400_000
"""Of its form: what is no letter takes three bytes or more there."""
Partition = Annotated[int, Path(ge=0, le=GREATEST_PARTITION)]
Offset = Annotated[int, Path(ge=0, le=GREATEST_OFFSET)]


@router.get(PATH)
async def get_dead_letter(visit: OperatorVisit, topic: str, partition: Partition, offset: Offset) -> Response:
    """What it says, why it is no event, and what became of its replays."""
    return await _shown(visit, Place(topic, partition, offset))


@router.post(PATH)
async def replay(visit: OperatorVisit, topic: str, partition: Partition, offset: Offset) -> Response:
    """Send it again, or say what it would become. What was sent stands among its replays."""
    place = Place(topic, partition, offset)
    fields = await read_own_form(visit.request, visit.visitor, MOST_BYTES)
    is_trial, written = first(fields, "do") != "replay", fields.get("body", [""])[0]
    letter, _ = await visit.operations.letters.shown(place)
    body = sent_back(written, letter)
    is_same = body == (letter.value or b"") or (not written and edited(letter) is None)
    ask = ReplayAsk((place,), mend=Mend() if is_same else Mend(body), dry_run=is_trial)
    try:
        [item], _ = await visit.operations.letters.replay(ask, visit.visitor.caller.name)
    except GalateaError as error:
        return await _shown(visit, place, written, refused=error)
    if item.outcome is Outcome.SENT:
        return RedirectResponse(f"{visit.request.url.path}#replays", HTTPStatus.SEE_OTHER)
    return await _shown(visit, place, written, item=item)


async def _shown(
    visit: Visit,
    place: Place,
    written: str | None = None,
    *,
    item: Item | None = None,
    refused: GalateaError | None = None,
) -> Response:
    """`written`: what was filled in, so that nothing has to be said twice."""
    letter, told = await visit.operations.letters.shown(place)
    text = edited(letter) or "" if written is None else written
    said = {
        "letter": described(told),
        "shown": shown(letter),
        "hexed": list(hex_lines(letter.value or b"")),
        "written": text,
        "written_rows": min(max(text.count("\n") + 2, 8), 24),
        "is_editable": edited(letter) is not None,
        "item": item.shown() if item else None,
        "meaning": _meaning(letter),
        "why": refused.message if refused else "",
        "do": refused.do if refused else "",
    }
    status = refused.status if refused else HTTPStatus.OK
    return visit.page("dead_letter.html", await visit.fresh(), said, status=status)


def _meaning(letter: Letter) -> object:
    return MEANINGS[Reason(letter.reason)]
