"""`/dead-letters`: how many there are of each reason, which ones, and many sent again at once. For operators.

The bytes of a record for people: as text with the field that fails, as hex, and as a form can send them back.

`/dead-letters/{topic}/{partition}/{offset}`: one dead letter, looked at, mended and sent again. For operators.
"""

import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, ValidationError

from master_dataset.dead_letters.dead_letter import StoredDeadLetter
from master_dataset.dead_letters.patch import Patch, patch_value, pointer_span
from master_dataset.dead_letters.replay import DeadLetterResult, ReplayStatus
from master_dataset.errors import GalateaError, RequestError
from master_dataset.kafka.record import GREATEST_OFFSET, GREATEST_PARTITION, RecordPosition
from master_dataset.parsing.results import MEANINGS, Reason
from master_dataset.sources import registered_sources
from serving_layer.admin.dead_letters import DeadLetterReplayRequest
from serving_layer.api.dead_letters import LetterFilter, LettersQuestion, described, read_token, refused, write_token
from serving_layer.errors import BadQuestionError
from serving_layer.pages.routing import Fields, OperatorVisit, Visit, first, read_own_form, routes

router = routes()
PATH = "/dead-letters"
PAGE = 50
AT_ONCE = 200
"""DeadLetterService that one form sends again; the next form goes on behind them."""
CHOSEN = ("reason", "source", "from", "to")
REPLAYED = {"": None, "open": False, "replayed": True}


class LettersForm(BaseModel):
    """An empty field asks for nothing."""

    reason: str = Field("", max_length=40)
    source: str = Field("", max_length=256)
    since: str = Field("", alias="from", max_length=40)
    until: str = Field("", alias="to", max_length=40)
    replayed: str = Field("", pattern=f"^({'|'.join(REPLAYED)})$")
    after: str = Field("", max_length=2048)

    @property
    def chosen(self) -> dict[str, str]:
        """What is asked of letters, in the words of the interface; nothing that is empty."""
        said = dict(zip(CHOSEN, (self.reason, self.source, self.since, self.until), strict=True))
        return {name: value for name, value in said.items() if value}

    def path(self, **other: str) -> str:
        """The address of this question, with some of it otherwise."""
        said = {name: value for name, value in ({**self.chosen, "replayed": self.replayed} | other).items() if value}
        return f"{PATH}?{urlencode(said)}" if said else PATH

    @property
    def rest_path(self) -> str:
        """Where REST answers the same."""
        is_replayed = REPLAYED[self.replayed]
        said = self.chosen | ({} if is_replayed is None else {"replayed": str(is_replayed).lower()})
        return f"/v1{PATH}?{urlencode(said)}" if said else f"/v1{PATH}"


@router.get(PATH)
async def get_dead_letters(visit: OperatorVisit, asked: Annotated[LettersForm, Query()]) -> Response:
    """A page of them, newest first."""
    fresh = await visit.fresh()
    more = {"replayed": REPLAYED[asked.replayed], "limit": PAGE} | ({"after": asked.after} if asked.after else {})
    try:
        question = LettersQuestion.model_validate(asked.chosen | more)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise BadQuestionError(f"{wrong['loc'][0]}: {wrong['msg']}.", do="Go back and say it otherwise.") from error
    listed = await visit.operations.letters.listed(*question.understood())
    said = {
        "counts": listed.counts,
        "letters": [described(each) for each in listed.told],
        "asked": asked,
        "following": listed.following and write_token(listed.following),
        "meanings": MEANINGS,
        "reasons": [reason.value for reason in Reason],
        "sources": list(registered_sources()),
        "at_once": AT_ONCE,
    }
    return visit.page("dead_letters.html", fresh, said)


@router.post(f"{PATH}/replay")
async def replay_many(visit: OperatorVisit) -> Response:
    """Send again what fits, or say what that would do; then what became of each."""
    fields = await read_own_form(visit.request, visit.visitor)
    is_trial = first(fields, "do") != "replay"
    try:
        ask = _ask(fields, is_trial=is_trial)
        items, following = await visit.operations.letters.replay(ask, visit.visitor.caller.name)
    except GalateaError as error:
        return await _replayed_page(visit, fields, error.status, {"why": error.message, "do": error.do})
    said: dict[str, object] = {
        "items": [each.shown() for each in items],
        "counts": Counter(each.outcome.value for each in items),
        "following": following and write_token(following),
        "is_trial": is_trial,
    }
    return await _replayed_page(visit, fields, HTTPStatus.OK, said)


def _ask(fields: Fields, *, is_trial: bool) -> DeadLetterReplayRequest:
    chosen = {name: value for name in CHOSEN if (value := first(fields, name))}
    if not chosen:
        raise BadQuestionError(
            "To send all dead letters again is asked for by nothing.", do="Choose some of them first."
        )
    try:
        question = LetterFilter.model_validate(chosen).chosen(replayed=None)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise BadQuestionError(f"{wrong['loc'][0]}: {wrong['msg']}.", do="Go back and say it otherwise.") from error
    pointer, text = first(fields, "pointer"), first(fields, "value")
    try:
        mend = Patch(fields={pointer: patch_value(pointer, text.encode())} if pointer or text else {})
    except RequestError as error:
        raise refused(error) from error
    return DeadLetterReplayRequest(
        (), question, AT_ONCE, read_token(first(fields, "after") or None), mend, dry_run=is_trial
    )


async def _replayed_page(visit: Visit, fields: Fields, status: int, said: dict[str, object]) -> Response:
    names = (*CHOSEN, "pointer", "value", "after")
    filled = {name: first(fields, name) for name in names}
    form = LettersForm.model_validate({name: filled[name] for name in CHOSEN})
    nothing: dict[str, object] = {"items": [], "counts": {}, "following": None, "is_trial": True, "why": "", "do": ""}
    told = nothing | {"said": filled, "back": form.path(replayed="open")} | said
    return visit.page("dead_letters_replayed.html", await visit.fresh(), told, status=status)


MOST_TEXT, MOST_EDITED = 6_000, 12_000
"""Characters, so that a page stays light; the command line and REST have more."""
BEFORE = 2_000
"""So many stand before a field that lies far behind."""
MOST_HEX, LINE = 1_024, 16
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""What no text of HTML can hold, nobody sees, or turns what follows around."""


class Shown(NamedTuple):
    """`inside`: what the failing field says, between what stands before and after it; empty if it is not there."""

    before: str
    inside: str
    after: str
    is_cut: bool


def shown(letter: StoredDeadLetter) -> Shown:
    """As text; what is no UTF-8, and what nobody would see, is escaped."""
    text = (letter.value or b"").decode(errors="backslashreplace")
    first, last = pointer_span(text, letter.field) or (0, 0)
    start = max(0, first - BEFORE) if last > MOST_TEXT else 0
    end = start + MOST_TEXT
    before, inside, after = text[start:first], text[first : min(last, end)], text[max(last, start) : end]
    return Shown(_seen(before), _seen(inside), _seen(after), is_cut=start > 0 or end < len(text))


def edited(letter: StoredDeadLetter) -> str | None:
    """The text that a form shows and sends back as it was; None if the bytes would not come back the same."""
    try:
        text = (letter.value or b"").decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > MOST_EDITED or _UNSEEN.search(text) else text


def sent_back(text: str, letter: StoredDeadLetter) -> bytes:
    """What was written into the form: browsers end lines with CR and LF, whatever was there before."""
    return text.replace("\r\n", "\n").encode() if b"\r" not in (letter.value or b"") else text.encode()


def hex_lines(value: bytes) -> Iterator[str]:
    """Place, bytes and what they say, a line for each 16."""
    for start in range(0, min(len(value), MOST_HEX), LINE):
        line = value[start : start + LINE]
        said = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)  # noqa: PLR2004 - what ASCII prints
        yield f"{start:06x}  {line.hex(' '):<{3 * LINE}} {said}"


def _seen(text: str) -> str:
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


ONE_PATH = "/dead-letters/{topic}/{partition}/{offset}"
MOST_BYTES = 400_000
"""Of its form: what is no letter takes three bytes or more there."""
Partition = Annotated[int, Path(ge=0, le=GREATEST_PARTITION)]
Offset = Annotated[int, Path(ge=0, le=GREATEST_OFFSET)]


@router.get(ONE_PATH)
async def get_dead_letter(visit: OperatorVisit, topic: str, partition: Partition, offset: Offset) -> Response:
    """What it says, why it is no event, and what became of its replays."""
    return await _one_page(visit, RecordPosition(topic, partition, offset))


@router.post(ONE_PATH)
async def replay_one(visit: OperatorVisit, topic: str, partition: Partition, offset: Offset) -> Response:
    """Send it again, or say what it would become. What was sent stands among its replays."""
    place = RecordPosition(topic, partition, offset)
    fields = await read_own_form(visit.request, visit.visitor, MOST_BYTES)
    is_trial, written = first(fields, "do") != "replay", fields.get("body", [""])[0]
    letter, _ = await visit.operations.letters.shown(place)
    body = sent_back(written, letter)
    is_same = body == (letter.value or b"") or (not written and edited(letter) is None)
    ask = DeadLetterReplayRequest((place,), mend=Patch() if is_same else Patch(body), dry_run=is_trial)
    try:
        [item], _ = await visit.operations.letters.replay(ask, visit.visitor.caller.name)
    except GalateaError as error:
        return await _one_page(visit, place, written, refused=error)
    if item.outcome is ReplayStatus.SENT:
        return RedirectResponse(f"{visit.request.url.path}#replays", HTTPStatus.SEE_OTHER)
    return await _one_page(visit, place, written, item=item)


async def _one_page(
    visit: Visit,
    place: RecordPosition,
    written: str | None = None,
    *,
    item: DeadLetterResult | None = None,
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


def _meaning(letter: StoredDeadLetter) -> object:
    return MEANINGS[Reason(letter.reason)]
