"""What pages ask the query service for, and on whose behalf.

A page's numbers are metric queries: the same query is answered in this process when the page is rendered, and by REST
when the page's script asks again, so both show the same number.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from master_dataset.errors import GalateaError
from master_dataset.registry.stores import Store
from serving_layer.api.parameters import write_id
from serving_layer.keys.key import Caller
from serving_layer.pages.recent import MANY_STORES, RecentAnswers
from serving_layer.query.cells import CellsRequest
from serving_layer.query.ranges import AskedRange, RangeName
from serving_layer.query.resolve import MOST_METRICS, MetricRequest, MetricsRequest, Sort
from serving_layer.query.sensor_health import SensorsRequest
from serving_layer.responses.metrics import CellsResponse, MetricResponse, MetricsResponse, Provenance
from serving_layer.responses.sensors import SensorList
from serving_layer.service import QueryService
from serving_layer.store.readers import RawReceiptPage, ReceiptPlace
from serving_layer.store.snapshot import ReadSnapshot, ReadVersion
from serving_layer.timeline import Grain
from views.core import View

_PASSING, _UNAVAILABLE = (408, 429), 500
"""The statuses of errors that may be gone a moment later: these, and from the last one on."""
_DIGITS = re.compile(r"([^0-9]*)([0-9]{0,18})")


@dataclass(frozen=True)
class PageQuery:
    """A metric query of a page. Without names of stores it is about all that the visitor can see, as their total is.

    Its range has bounds, or a name and no bounds.
    """

    metric: str
    stores: tuple[str, ...] = ()
    start: str = ""
    end: str = ""
    grain: Grain = "day"
    by: tuple[str, ...] = ()
    compare: str | None = None
    context: str | None = None
    partial: bool = False
    range: RangeName | None = None
    sort: Sort | None = None
    top: int | None = None
    share: bool = False
    category: tuple[str, ...] = ()
    sku: tuple[str, ...] = ()

    @property
    def request(self) -> MetricRequest:
        """As the query service takes it."""
        return MetricRequest(
            self.metric,
            self.stores,
            self.start or None,
            self.end or None,
            grain=self.grain,
            by=self.by,
            partial=self.partial,
            compare=self.compare,
            context=self.context,
            sort=self.sort,
            top=self.top,
            range=self.range,
            share=self.share,
            category=self.category,
            sku=self.sku,
        )

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The query parameters of the REST address."""
        arguments = [("store", write_id(store)) for store in self.stores]
        arguments += [("range", self.range)] if self.range else [("from", self.start), ("to", self.end)]
        arguments += [("grain", self.grain), *(("by", name) for name in self.by)]
        arguments += [("sort", self.sort)] if self.sort else []
        arguments += [("top", str(self.top))] if self.top else []
        arguments += [("share", "true")] if self.share else []
        arguments += [("category", name) for name in self.category]
        arguments += [("sku", name) for name in self.sku]
        arguments += [("compare", self.compare)] if self.compare else []
        arguments += [("context", self.context)] if self.context else []
        return [*arguments, ("partial", "true")] if self.partial else arguments

    @property
    def path(self) -> str:
        """The REST address of the same answer."""
        return f"/v1/metrics/{quote(self.metric, safe='')}?{urlencode(self.arguments)}"

    def file_path(self, file_format: str) -> str:
        """The REST address of the points as a file, without the context, which no table has room for."""
        return f"{replace(self, context=None).path}&format={file_format}"


class QueryFailure(NamedTuple):
    """Why a query has no answer. Its part of the page shows this; the rest of the page is shown as usual.

    `may_pass`: the same query may have an answer a moment later.
    """

    code: str
    message: str
    do: str
    may_pass: bool = False

    @classmethod
    def of(cls, error: GalateaError) -> "QueryFailure":
        """The failure that an error stands for."""
        return cls(error.code, error.message, error.do, error.status in _PASSING or error.status >= _UNAVAILABLE)


QueryResult = MetricResponse | QueryFailure
OtherQueries = Callable[[Mapping["PageQuery", QueryResult]], Sequence["PageQuery"]]
"""Which queries follow from answers."""


class _Dependence(NamedTuple):
    """What the version of an answer depends on, beside the snapshot: on the day of which stores, on which masters."""

    is_partial: bool
    is_relative: bool
    reads_products: bool
    reads_targets: bool
    stores: tuple[str, ...]

    @classmethod
    def of(cls, request: MetricRequest) -> "_Dependence":
        """That of a request. Stores do not matter if it depends on nothing else."""
        is_relative = AskedRange(request.start, request.end, request.range).is_relative
        depends = is_relative or request.reads_products or request.reads_targets
        stores = tuple(request.stores) if depends else ()
        return cls(request.partial, is_relative, request.reads_products, request.reads_targets, stores)

    @property
    def depends(self) -> bool:
        """Whether it is more than the snapshot."""
        return self.is_relative or self.reads_products or self.reads_targets


class QueryBatch(NamedTuple):
    """Queries that differ in the metric only, answered together so that cells are read once.

    They are ordered by metric, so equal batches have equal requests and share a cached response.
    """

    queries: Sequence[PageQuery]

    @property
    def request(self) -> MetricsRequest:
        """As the query service takes it."""
        return MetricsRequest(tuple(query.request for query in self.queries))


def batches(queries: Iterable[PageQuery]) -> Iterator[QueryBatch]:
    """All queries, each once, in as few batches as REST allows."""
    groups: dict[PageQuery, set[PageQuery]] = {}
    for query in queries:
        groups.setdefault(replace(query, metric=""), set()).add(query)
    for group in groups.values():
        ordered = sorted(group, key=lambda query: query.metric)
        for start in range(0, len(ordered), MOST_METRICS):
            yield QueryBatch(ordered[start : start + MOST_METRICS])


class PageQueries:
    """The query service on behalf of the visitor of one page. Only here do pages say whose stores they read."""

    def __init__(
        self,
        service: QueryService,
        caller: Caller,
        asked: set[str] | None = None,
        recent: "RecentAnswers[Mapping[PageQuery, QueryResult]] | None" = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            service: answers.
            caller: whose stores are visible.
            asked: collects the addresses in REST of all queries; None where nobody needs them.
            recent: answers about many stores that may be some seconds old; None where they may not.
        """
        self.service = service
        self.snapshot: ReadSnapshot | None = None
        """What the numbers of the page are from, if they may be some seconds old; None if they are new."""
        self._caller, self._asked, self._recent = caller, asked, recent
        self._first: dict[bool, ReadVersion] = {}
        self._versions: dict[_Dependence, ReadVersion] = {}
        self._reading = asyncio.Lock()

    async def stores(self) -> list[Store]:
        """The registered stores that the visitor can see, by name."""
        _, stores = await self.service.stores.all()
        return sorted(
            filter(self._caller.sees, stores.values()), key=lambda store: (natural_order(store.name), store.id)
        )

    async def store(self, id_: str) -> Store:
        """One of them. UnknownNameError, also for a store of another tenant."""
        return await self.service.stores.registered(id_, self._caller)

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> RawReceiptPage:
        """A page of the receipts of one of them; see `QueryService.receipts`."""
        return await self.service.receipts(self._caller, store, day, after, limit)

    async def answer_all(self, queries: Sequence[PageQuery]) -> Sequence[QueryResult]:
        """The answers, in order: of all calls from one publication and one reading of how far the speed layer is."""
        if not queries:
            return []
        self._note(queries)
        found = await self._answers_to(queries)
        return [found[query] for query in queries]

    async def answer_recent(
        self, queries: Sequence[PageQuery], others: OtherQueries
    ) -> Mapping[PageQuery, QueryResult]:
        """As `answer_all`, of a page that asks only once; about many stores the answers may be some seconds old.

        Args:
            queries: the queries; there is at least one.
            others: more queries, which follow from `queries` and their answers and from nothing else. They read a
                product master or targets only if one of `queries` does.

        Returns:
            The answers to all of them.
        """
        self._note(queries)
        try:
            version = await self._version_of_all(queries)
        except GalateaError as error:
            failed: dict[PageQuery, QueryResult] = dict.fromkeys(queries, QueryFailure.of(error))
            return failed | dict.fromkeys(others(failed), QueryFailure.of(error))

        async def computed(_version: ReadVersion) -> Mapping[PageQuery, QueryResult]:
            found = await self._answers_to(queries)
            return found | await self._answers_to([query for query in others(found) if query not in found])

        if self._recent is None or await self._visible() < MANY_STORES:
            found = await computed(version)
        else:
            recent = await self._recent.get((self._caller.visibility_scope, tuple(queries)), version, computed)
            found, self.snapshot = recent.result, recent.version.snapshot
        self._note(found)
        return found

    async def _version(self, request: MetricRequest) -> ReadVersion:
        """What an answer is computed from: the snapshot of the page, with the day and the products of this request."""
        of = _Dependence.of(request)
        async with self._reading:
            if of not in self._versions:
                self._versions[of] = await self._read_version(request, of)
            return self._versions[of]

    async def _read_version(self, request: MetricRequest, of: "_Dependence") -> ReadVersion:
        first = self._first.get(request.partial)  # one without the speed layer is for requests alone that allow it
        if first is not None and not of.depends:
            return first._replace(now=None, products=(), targets=())
        found = await self.service.read_version(request, self._caller)
        first = self._first.setdefault(request.partial, found)
        return found._replace(snapshot=first.snapshot, registry=first.registry)

    async def _version_of_all(self, queries: Sequence[PageQuery]) -> ReadVersion:
        """What the answers to all of these are computed from: equal as long as none of them changes."""
        versions = [await self._version(batch.queries[0].request) for batch in batches(queries)]
        return versions[0]._replace(
            now=max((each.now for each in versions if each.now is not None), default=None),
            products=tuple({master.tenant: master for each in versions for master in each.products}.values()),
            targets=tuple({found.tenant: found for each in versions for found in each.targets}.values()),
        )

    async def _visible(self) -> int:
        """How many stores the visitor can see."""
        _, stores = await self.service.stores.all()
        return sum(map(self._caller.sees, stores.values()))

    def _note(self, queries: Iterable[PageQuery]) -> None:
        if self._asked is not None:
            self._asked.update(query.path for query in queries)

    async def _answers_to(self, queries: Sequence[PageQuery]) -> dict[PageQuery, QueryResult]:
        answered = await asyncio.gather(*(self._answer_batch(batch) for batch in batches(queries)))
        return {query: result for each in answered for query, result in each.items()}

    async def answer(self, query: PageQuery) -> QueryResult:
        """The answer to one query."""
        return (await self.answer_all([query]))[0]

    async def has_cells(self, view: View, store: Store, span: tuple[str, str], *, partial: bool) -> bool:
        """Whether either layer has a cell of the view in that span, [first, last)."""
        request = CellsRequest(view.name, (store.id,), *span, partial)
        body = await self.service.cells(request, await self.service.read_version(request, self._caller), self._caller)
        return bool(msgspec.json.decode(body, type=CellsResponse).cells)

    async def sensors(self, request: SensorsRequest) -> SensorList:
        """The health of registered sensors. Raises as the query service does."""
        version = await self.service.read_version(request, self._caller)
        return msgspec.json.decode(await self.service.sensors(request, version, self._caller), type=SensorList)

    async def provenance(self) -> Provenance:
        """What an answer for the visitor would be computed from now."""
        return await self.service.provenance(self._caller)

    async def is_partial(self) -> bool:
        """Whether the speed layer is missing, so that pages show batch alone and say so."""
        return bool((await self.service.snapshot()).missing)

    async def _answer_batch(self, batch: QueryBatch) -> dict[PageQuery, QueryResult]:
        try:
            version = await self._version(batch.queries[0].request)
            body = await self.service.metrics(batch.request, version, self._caller)
        except GalateaError as error:
            if len(batch.queries) == 1:
                return {batch.queries[0]: QueryFailure.of(error)}
            # One query that fails must not fail the others: each is asked alone.
            answered = await asyncio.gather(*(self._answer_batch(QueryBatch([each])) for each in batch.queries))
            return {query: result for each in answered for query, result in each.items()}
        return dict(zip(batch.queries, _answers(body, len(batch.queries)), strict=True))


def is_complete(results: Mapping[PageQuery, QueryResult]) -> bool:
    """Whether every query has an answer, or a reason why it has none that lasts."""
    return not any(isinstance(result, QueryFailure) and result.may_pass for result in results.values())


def _answers(body: bytes, count: int) -> Sequence[MetricResponse]:
    """The answers in the body of a response. Decimals keep every digit that was written."""
    fields = json.loads(body, parse_float=Decimal)
    if count == 1:
        return [msgspec.convert(fields, MetricResponse)]
    return msgspec.convert(fields, MetricsResponse).answers


def natural_order(name: str) -> list[tuple[str, int]]:
    """A sort key that puts "Store 9" before "Store 10"."""
    return [(text, int(digits or 0)) for text, digits in _DIGITS.findall(name.casefold())]
