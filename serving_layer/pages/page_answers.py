"""What one visitor may ask of the answers. The one place where pages say on whose behalf they ask."""

import asyncio
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from master_dataset.errors import GalateaError, UnknownName
from master_dataset.registry.stores import Store
from serving_layer.keys.caller import Caller
from serving_layer.pages.bundle import Bundle, bundles
from serving_layer.pages.question import Question
from serving_layer.query.answers import Answers
from serving_layer.query.questions import CellsAsk
from serving_layer.query.read_version import Moment
from views.core import View

Told = dict[str, Any]
_PIECES = re.compile(r"([^0-9]*)([0-9]{0,18})")


class Refused(NamedTuple):
    """A question that was refused: one part of a page says so, the rest is shown."""

    code: str
    message: str
    do: str


def counted(name: str) -> list[tuple[str, int]]:
    """As people sort names: Store 9 before Store 10."""
    return [(text, int(digits or 0)) for text, digits in _PIECES.findall(name.casefold())]


class PageAnswers:
    """Of one request."""

    def __init__(self, answers: Answers, caller: Caller) -> None:
        """`caller`: whose stores are shown."""
        self.all = answers
        self._caller = caller

    async def stores(self) -> list[Store]:
        """The registered stores that the visitor sees, by name."""
        _, known = await self.all.stores.all()
        return sorted(filter(self._caller.sees, known.values()), key=lambda store: (counted(store.name), store.id))

    async def store(self, id_: str) -> Store:
        """One of them. UnknownName, also for a store of another tenant."""
        seen = {store.id: store for store in await self.stores()}
        if id_ not in seen:
            raise UnknownName("store", id_, seen)
        return seen[id_]

    async def tried_all(self, questions: Sequence[Question]) -> Sequence[Told | Refused]:
        """What REST's answers say, all of one publication and one reading of speed; or why there is none."""
        if not questions:
            return []
        try:
            moment = await self.all.moment(questions[0].ask)
        except GalateaError as error:
            return [Refused(error.code, error.message, error.do)] * len(questions)
        told = await asyncio.gather(*(self._bundle(bundle, moment) for bundle in bundles(questions)))
        found = {question: answer for each in told for question, answer in each.items()}
        return [found[question] for question in questions]

    async def tried(self, question: Question) -> Told | Refused:
        """Of one question."""
        return (await self.tried_all([question]))[0]

    async def has_cells(self, view: View, store: Store, span: tuple[str, str], *, partial: bool) -> bool:
        """Whether either layer has a cell of the view in [first, last) of that span."""
        ask = CellsAsk(view.name, (store.id,), *span, partial)
        body = await self.all.cells(ask, await self.all.moment(ask), self._caller)
        return bool(json.loads(body)["cells"])

    async def _bundle(self, bundle: Bundle, moment: Moment) -> dict[Question, Told | Refused]:
        try:
            body = await self.all.metrics(bundle.ask, moment, self._caller)
        except GalateaError as error:
            if len(bundle.questions) == 1:
                return {bundle.questions[0]: Refused(error.code, error.message, error.do)}
            told = await asyncio.gather(*(self._bundle(each, moment) for each in bundle.apart))
            return {question: answer for each in told for question, answer in each.items()}
        found: Told = json.loads(body, parse_float=Decimal)  # as they are written, not through a float
        return dict(zip(bundle.questions, found.get("answers", [found]), strict=True))

    async def is_partial(self) -> bool:
        """Whether the speed layer is missing, so that pages show batch alone and say so."""
        return bool((await self.all.basis()).missing)
