"""`/dead-letters`: dead letters counted by reason and listed, one with its bytes, and the forms that replay them.

For operators. A dead letter is replayed as it is, as an edited record, or many at once with one field set.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from http import HTTPStatus
from typing import Annotated, Literal, NamedTuple
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
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from serving_layer.admin.dead_letters import DeadLetterReplayRequest
from serving_layer.api.dead_letters import (
    DeadLetterFilter,
    DeadLetterListQuery,
    described,
    read_token,
    refused,
    write_token,
)
from serving_layer.errors import BadQuestionError
from serving_layer.pages.cells import source_name
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.routing import Form, OperatorVisit, Visit, invalid_field, page_router
from serving_layer.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import BusinessDays

router = page_router()


# The list

PATH = "/dead-letters"
PAGE_SIZE = 50
REPLAY_LIMIT = 200
"""Dead letters that one form replays; the next form continues after them."""
FILTERS = ("reason", "source", "from", "to")
FILTER_NAMES = {
    "reason": gettext_noop("Reason"),
    "source": gettext_noop("Source"),
    "from": gettext_noop("From"),
    "to": gettext_noop("To"),
}
REPLAYED = {"": None, "open": False, "replayed": True}


class DeadLettersPageFilter(BaseModel):
    """The query string. An empty field does not filter."""

    reason: str = Field("", max_length=40)
    source: str = Field("", max_length=256)
    since: str = Field("", alias="from", max_length=40)
    until: str = Field("", alias="to", max_length=40)
    replayed: str = Field("", pattern=f"^({'|'.join(REPLAYED)})$")
    after: str = Field("", max_length=2048)

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, as REST names them."""
        filters = dict(zip(FILTERS, (self.reason, self.source, self.since, self.until), strict=True))
        return {name: value for name, value in filters.items() if value}

    def path(self, **changes: str) -> str:
        """The address of this page, with some filters changed."""
        filters = {**self.filters, "replayed": self.replayed} | changes
        filters = {name: value for name, value in filters.items() if value}
        return f"{PATH}?{urlencode(filters)}" if filters else PATH

    @property
    def rest_path(self) -> str:
        """The address of the same dead letters in REST."""
        is_replayed = REPLAYED[self.replayed]
        filters = self.filters | ({} if is_replayed is None else {"replayed": str(is_replayed).lower()})
        return f"/v1{PATH}?{urlencode(filters)}" if filters else f"/v1{PATH}"


@router.get(PATH)
async def get_dead_letters(visit: OperatorVisit, query: Annotated[DeadLettersPageFilter, Query()]) -> Response:
    """A page of dead letters, newest first, and how many there are of each reason."""
    fresh = await visit.fresh()
    more = {"replayed": REPLAYED[query.replayed], "limit": PAGE_SIZE} | ({"after": query.after} if query.after else {})
    try:
        question = DeadLetterListQuery.model_validate(query.filters | more)
    except ValidationError as error:
        raise invalid_field(error) from error
    listing = await visit.operations.dead_letters.listed(*question.to_request())
    values = {
        "counts": listing.counts,
        "dead_letters": [described(each) for each in listing.items],
        "query": query,
        "following": listing.following and write_token(listing.following),
        "meanings": MEANINGS,
        "reasons": [reason.value for reason in Reason],
        "sources": list(registered_sources()),
        "source_name": source_name,
        "filter_names": FILTER_NAMES,
        "replay_limit": REPLAY_LIMIT,
    }
    return visit.page("dead_letters.html", fresh, values)


@router.post(f"{PATH}/replay")
async def replay_many(visit: OperatorVisit) -> Response:
    """Replay all that match, or say what that would do; then the outcome of each."""
    form = await visit.form()
    try:
        request = _replay_request(form)
        items, following = await visit.operations.dead_letters.replay(request, visit.visitor.caller.name)
    except GalateaError as error:
        return await _replayed_page(visit, form, [], None, error)
    return await _replayed_page(visit, form, items, following and write_token(following))


OUTCOME_NAMES = {
    "event": gettext_noop("become events"),
    "sent": gettext_noop("sent"),
    "duplicate": gettext_noop("exist already"),
    "refused": gettext_noop("still invalid, not sent"),
    "unknown": gettext_noop("not confirmed by Kafka"),
}


def _is_trial(form: Form) -> bool:
    return form.text("do") != "replay"


def _replay_request(form: Form) -> DeadLetterReplayRequest:
    filters = form.texts(*FILTERS)
    if not filters:
        raise BadQuestionError(
            _("Without a filter, all dead letters would be sent again."), do=_("Choose a reason, source or time first.")
        )
    try:
        query = DeadLetterFilter.model_validate(filters).to_query(replayed=None)
    except ValidationError as error:
        raise invalid_field(error) from error
    pointer, text = form.text("pointer"), form.text("value")
    try:
        patch = Patch(fields={pointer: patch_value(pointer, text.encode())} if pointer or text else {})
    except RequestError as error:
        raise refused(error) from error
    after = read_token(form.text("after") or None)
    return DeadLetterReplayRequest((), query, REPLAY_LIMIT, after, patch, dry_run=_is_trial(form))


async def _replayed_page(
    visit: Visit,
    form: Form,
    items: list[DeadLetterResult],
    following: str | None,
    error: GalateaError | None = None,
) -> Response:
    values = {
        "fields": {name: form.text(name) for name in (*FILTERS, "pointer", "value", "after")},
        "items": [each.shown() for each in items],
        "counts": Counter(each.outcome.value for each in items),
        "following": following,
        "is_trial": _is_trial(form) or error is not None,
        "error": error,
        "filter_names": FILTER_NAMES,
        "outcome_names": OUTCOME_NAMES,
        "back": _back_path(form),
    }
    status = error.status if error else HTTPStatus.OK
    return visit.page("dead_letters_replayed.html", await visit.fresh(), values, status=status)


def _back_path(form: Form) -> str:
    """The list with the same filters, or without any if it could not have them."""
    try:
        filters = DeadLettersPageFilter.model_validate(form.texts(*FILTERS))
    except ValidationError:
        filters = DeadLettersPageFilter.model_validate({})
    return filters.path(replayed="open")


# One dead letter

ONE_PATH = "/dead-letters/{topic}/{partition}/{offset}"
MAX_FORM_BYTES = 400_000
"""In a form, what is no letter or digit takes three bytes or more."""
Partition = Annotated[int, Path(ge=0, le=GREATEST_PARTITION)]
Offset = Annotated[int, Path(ge=0, le=GREATEST_OFFSET)]


class ReplayedFilter(BaseModel):
    """The query string: where the event counts that this dead letter was just sent as. Empty if nothing was."""

    store: str = Field("", max_length=256)
    day: date | Literal[""] = ""


class CountsIn(NamedTuple):
    """The store and business day whose numbers have an event."""

    store: Store
    day: date


@router.get(ONE_PATH)
async def get_dead_letter(
    visit: OperatorVisit, topic: str, partition: Partition, offset: Offset, query: Annotated[ReplayedFilter, Query()]
) -> Response:
    """Its bytes, why it is not an event, and the outcome of its replays."""
    shown = Shown(counts_in=await _counts_in(visit, query))
    return await _dead_letter_page(visit, RecordPosition(topic, partition, offset), shown)


async def _counts_in(visit: Visit, query: ReplayedFilter) -> CountsIn | None:
    store = next((each for each in await visit.queries.stores() if each.id == query.store), None)
    return CountsIn(store, query.day) if store and query.day else None


def _sent_path(path: str, item: DeadLetterResult, stores: Mapping[str, Store]) -> str:
    """The page of a dead letter that was sent, with where its event counts if its store is registered."""
    store, at = stores.get(item.store or ""), item.happened_at
    if store is None or at is None:
        return f"{path}#replays"
    day = BusinessDays.of(store, zone_named(store.timezone)).day_of(seconds(at))
    return f"{path}?{urlencode({'store': store.id, 'day': day.isoformat()})}#replays"


@router.post(ONE_PATH)
async def replay_one(visit: OperatorVisit, topic: str, partition: Partition, offset: Offset) -> Response:
    """Replay it, or say what would become of it. Once sent, its page lists it among the replays."""
    position = RecordPosition(topic, partition, offset)
    form = await visit.form(MAX_FORM_BYTES)
    text = form.get("body", [""])[0]
    stored, _ = await visit.operations.dead_letters.shown(position)
    body = edited_bytes(text, stored)
    is_unchanged = body == (stored.value or b"") or (not text and editable_text(stored) is None)
    patch = Patch() if is_unchanged else Patch(body)
    request = DeadLetterReplayRequest((position,), patch=patch, dry_run=_is_trial(form))
    try:
        [item], _ = await visit.operations.dead_letters.replay(request, visit.visitor.caller.name)
    except GalateaError as error:
        return await _dead_letter_page(visit, position, Shown(text, error=error))
    if item.outcome is ReplayStatus.SENT:
        stores = {store.id: store for store in await visit.queries.stores()}
        return RedirectResponse(_sent_path(visit.request.url.path, item, stores), HTTPStatus.SEE_OTHER)
    return await _dead_letter_page(visit, position, Shown(text, item))


class Shown(NamedTuple):
    """What the page of a dead letter shows besides it.

    `edited`: the text as it was filled in; None for the record as it is. `item`, `error`: the result of the form.
    `counts_in`: where the event counts that it was just sent as.
    """

    edited: str | None = None
    item: DeadLetterResult | None = None
    error: GalateaError | None = None
    counts_in: CountsIn | None = None


async def _dead_letter_page(visit: Visit, position: RecordPosition, shown: Shown) -> Response:
    edited, item, error, counts_in = shown
    stored, history = await visit.operations.dead_letters.shown(position)
    text = editable_text(stored) or "" if edited is None else edited
    values = {
        "dead_letter": described(history),
        "record": record_text(stored),
        "hex_lines": list(hex_lines(stored.value or b"")),
        "text": text,
        "text_rows": min(max(text.count("\n") + 2, 8), 24),
        "is_editable": editable_text(stored) is not None,
        "item": item.shown() if item else None,
        "meaning": MEANINGS[Reason(stored.reason)],
        "error": error,
        "counts_in": counts_in,
        "source_name": source_name,
    }
    return visit.page("dead_letter.html", await visit.fresh(), values, status=error.status if error else HTTPStatus.OK)


# The bytes of a record as text

MAX_TEXT, MAX_EDITABLE = 6_000, 12_000
"""Characters, so that the page stays light. The command line and REST show the whole record."""
BEFORE_FIELD = 2_000
"""How many characters are shown before a field that is far behind the start."""
MAX_HEX, HEX_WIDTH = 1_024, 16
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Characters that HTML cannot hold, that nobody sees, or that reverse the text after them."""


class RecordText(NamedTuple):
    """A record as text. `inside`: the field that is wrong, empty if it is absent. `is_cut`: a part was left out."""

    before: str
    inside: str
    after: str
    is_cut: bool


def record_text(stored: StoredDeadLetter) -> RecordText:
    """The record with everything escaped that is not UTF-8 or that nobody would see."""
    text = (stored.value or b"").decode(errors="backslashreplace")
    first, last = pointer_span(text, stored.field) or (0, 0)
    start = max(0, first - BEFORE_FIELD) if last > MAX_TEXT else 0
    end = start + MAX_TEXT
    before, inside, after = text[start:first], text[first : min(last, end)], text[max(last, start) : end]
    is_cut = start > 0 or end < len(text)
    return RecordText(_escaped(before), _escaped(inside), _escaped(after), is_cut)


def editable_text(stored: StoredDeadLetter) -> str | None:
    """The text for a form. None if a form could not send the same bytes back, or it is too long."""
    try:
        text = (stored.value or b"").decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > MAX_EDITABLE or _INVISIBLE.search(text) else text


def edited_bytes(text: str, stored: StoredDeadLetter) -> bytes:
    """The bytes of an edited text. Browsers send CR LF; without a CR in the record, that was LF."""
    return text.replace("\r\n", "\n").encode() if b"\r" not in (stored.value or b"") else text.encode()


def hex_lines(value: bytes) -> Iterator[str]:
    """Offset, bytes and printable characters of the first bytes, 16 per line."""
    for start in range(0, min(len(value), MAX_HEX), HEX_WIDTH):
        line = value[start : start + HEX_WIDTH]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)  # noqa: PLR2004 - printable ASCII
        yield f"{start:06x}  {line.hex(' '):<{3 * HEX_WIDTH}} {text}"


def _escaped(text: str) -> str:
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
