"""`/dead-letters`: how many there are of each reason, which ones, and many sent again at once. For operators."""

from collections import Counter
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Response
from pydantic import BaseModel, Field, ValidationError

from master_dataset.dead_letters.meanings import MEANINGS
from master_dataset.dead_letters.mend import Mend, field_of
from master_dataset.errors import GalateaError, RequestError
from master_dataset.parsing.dead_letter import Reason
from master_dataset.sources import registered_sources
from serving_layer.admin.dead_letters import ReplayAsk
from serving_layer.api.dead_letters import described
from serving_layer.api.letter_questions import LetterFilter, LettersQuestion, read_token, refused, write_token
from serving_layer.errors import BadQuestion
from serving_layer.pages.forms import Fields, first, read_own_form
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import OperatorVisit, Visit

router = routes()
PATH = "/dead-letters"
PAGE = 50
AT_ONCE = 200
"""Letters that one form sends again; the next form goes on behind them."""
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
        raise BadQuestion(f"{wrong['loc'][0]}: {wrong['msg']}.", do="Go back and say it otherwise.") from error
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
async def replay(visit: OperatorVisit) -> Response:
    """Send again what fits, or say what that would do; then what became of each."""
    fields = await read_own_form(visit.request, visit.visitor)
    is_trial = first(fields, "do") != "replay"
    try:
        ask = _ask(fields, is_trial=is_trial)
        items, following = await visit.operations.letters.replay(ask, visit.visitor.caller.name)
    except GalateaError as error:
        return await _done(visit, fields, error.status, {"why": error.message, "do": error.do})
    said: dict[str, object] = {
        "items": [each.shown() for each in items],
        "counts": Counter(each.outcome.value for each in items),
        "following": following and write_token(following),
        "is_trial": is_trial,
    }
    return await _done(visit, fields, HTTPStatus.OK, said)


def _ask(fields: Fields, *, is_trial: bool) -> ReplayAsk:
    chosen = {name: value for name in CHOSEN if (value := first(fields, name))}
    if not chosen:
        raise BadQuestion("To send all dead letters again is asked for by nothing.", do="Choose some of them first.")
    try:
        question = LetterFilter.model_validate(chosen).chosen(replayed=None)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise BadQuestion(f"{wrong['loc'][0]}: {wrong['msg']}.", do="Go back and say it otherwise.") from error
    pointer, text = first(fields, "pointer"), first(fields, "value")
    try:
        mend = Mend(fields={pointer: field_of(pointer, text.encode())} if pointer or text else {})
    except RequestError as error:
        raise refused(error) from error
    return ReplayAsk((), question, AT_ONCE, read_token(first(fields, "after") or None), mend, dry_run=is_trial)


async def _done(visit: Visit, fields: Fields, status: int, said: dict[str, object]) -> Response:
    names = (*CHOSEN, "pointer", "value", "after")
    filled = {name: first(fields, name) for name in names}
    form = LettersForm.model_validate({name: filled[name] for name in CHOSEN})
    nothing: dict[str, object] = {"items": [], "counts": {}, "following": None, "is_trial": True, "why": "", "do": ""}
    told = nothing | {"said": filled, "back": form.path(replayed="open")} | said
    return visit.page("dead_letters_replayed.html", await visit.fresh(), told, status=status)
