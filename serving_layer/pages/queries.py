"""A question of a page: asked of the answers in this process, and shown as the address that gives the same bytes.

Questions that differ in the metric alone, asked as one, so that cells are read once. Scripts do the same.

What one visitor may ask of the answers. The one place where pages say on whose behalf they ask.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from master_dataset.errors import GalateaError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.keys.key import Caller
from serving_layer.query.metrics_answer import MOST_METRICS, MetricsRequest
from serving_layer.query.questions import CellsRequest, MetricRequest
from serving_layer.query.service import QueryService
from serving_layer.query.snapshot import ReadVersion
from serving_layer.query.timeline import Grain
from views.core import View


@dataclass(frozen=True)
class Question:
    """As MetricRequest, as far as pages ask. Stores are always named: all of them would be those of others too."""

    metric: str
    stores: tuple[str, ...]
    start: str
    end: str
    grain: Grain
    by: tuple[str, ...] = ()
    compare: str | None = None
    context: str | None = None
    partial: bool = False

    @property
    def ask(self) -> MetricRequest:
        """As the query service takes it."""
        return MetricRequest(
            self.metric,
            self.stores,
            self.start,
            self.end,
            self.grain,
            by=self.by,
            partial=self.partial,
            compare=self.compare,
            context=self.context,
        )

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """For the address."""
        told = [("store", store) for store in self.stores]
        told += [("from", self.start), ("to", self.end), ("grain", self.grain)]
        told += [("by", name) for name in self.by]
        told += [("compare", self.compare)] if self.compare else []
        told += [("context", self.context)] if self.context else []
        return [*told, ("partial", "true")] if self.partial else told

    @property
    def path(self) -> str:
        """The address of the answer as JSON."""
        return f"/v1/metrics/{quote(self.metric, safe='')}?{urlencode(self.arguments)}"

    def file_path(self, form: str) -> str:
        """The address of its points as a table; what stands beside them does not fit into one."""
        return f"{replace(self, context=None).path}&format={form}"


class Bundle(NamedTuple):
    """In the order of their metrics, so that everybody who asks for the same asks for it in the same words."""

    questions: Sequence[Question]

    @property
    def ask(self) -> MetricsRequest:
        """As the query service takes it."""
        return MetricsRequest(tuple(question.ask for question in self.questions))

    @property
    def apart(self) -> "Sequence[Bundle]":
        """Each of them alone: one that is refused must not take the others along."""
        return [Bundle([question]) for question in self.questions]


def bundles(questions: Iterable[Question]) -> Iterator[Bundle]:
    """All of them, each once."""
    alike: dict[Question, set[Question]] = {}
    for question in questions:
        alike.setdefault(replace(question, metric=""), set()).add(question)
    for group in alike.values():
        ordered = sorted(group, key=lambda each: each.metric)
        for start in range(0, len(ordered), MOST_METRICS):
            yield Bundle(ordered[start : start + MOST_METRICS])


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

    def __init__(self, answers: QueryService, caller: Caller) -> None:
        """`caller`: whose stores are shown."""
        self.all = answers
        self._caller = caller

    async def stores(self) -> list[Store]:
        """The registered stores that the visitor sees, by name."""
        _, known = await self.all.stores.all()
        return sorted(filter(self._caller.sees, known.values()), key=lambda store: (counted(store.name), store.id))

    async def store(self, id_: str) -> Store:
        """One of them. UnknownNameError, also for a store of another tenant."""
        seen = {store.id: store for store in await self.stores()}
        if id_ not in seen:
            raise UnknownNameError("store", id_, seen)
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
        ask = CellsRequest(view.name, (store.id,), *span, partial)
        body = await self.all.cells(ask, await self.all.moment(ask), self._caller)
        return bool(json.loads(body)["cells"])

    async def _bundle(self, bundle: Bundle, moment: ReadVersion) -> dict[Question, Told | Refused]:
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
