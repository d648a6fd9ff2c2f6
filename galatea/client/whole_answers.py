"""Answers about any number of stores, all of one version.

A response of the API holds a limited number of stores, unless its series are sorted: it then holds all of them, as long
as they have few enough points. `metric` and `several` therefore ask as they were asked, then for sorted series unless
stores are named, and for pages if that is refused. Events that arrive in between would make pages of different
versions, so pages that are older than the newest are read again until all are of one `as_of`; if that does not happen,
an error says so.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypedDict

import msgspec

from galatea.client.answers import Answer, Answers, AsOf, Context, Series
from galatea.client.connection import (
    Call,
    Ids,
    Names,
    Steps,
    When,
    as_list,
    decoder,
    path,
    query,
    send,
    store_ids,
)
from galatea.client.errors import AnswerTooLongError, ResponseError, VersionChangedError

STORES_PER_PAGE, FEW_STORES = 100, 10
"""The most that the API allows, and about as many as have few enough quarter hours in the longest range."""
MAX_STORES = 10_000
MAX_POINTS = 2_000_000
"""Of an answer that is put together from pages."""
MAX_ROUNDS = 10
"""How often pages are read until all are of one version."""
TOO_MANY_STORES, TOO_LONG = "too_many_stores", "range_too_long"


class MetricOptions(TypedDict, total=False):
    """Optional arguments of `metric` and `several`. What is left out has the default of the API.

    Attributes:
        range: such as `last_7_days` or `month_to_date`, instead of `start` and `end`.
        store: ids; by default all stores that the key can see. More than fit in one response are read in pages, all
            of one version.
        grain: `15m`, `hour`, `day`, `week`, `month`, `year`, `weekday`, `hour_of_week` or `total`.
        by: what has a series of its own: dimensions, and `total` or `group:<name>` instead of each store.
        sort: order of the series: `value`, `-value`, `change`, `-change` or `name`.
        top: how many series to keep; the others are added up in one.
        share: adds to each value its percentage of the total.
        attributes: `as_then` for the groups and products of each day, or `current`.
        category: only products of this category or below, by its path; a list: of any of them.
        brand: only products of this brand; a list: of any of them.
        sku: only these SKUs.
        compare: such as `previous_week`; then points have `before` and `change`.
        hours: `all` or `open`.
        timezone: an IANA name; by default that of each store.
        as_of: number of the publication to read; by default the newest, and speed.
        partial: accept an answer from batch alone while speed is missing.
        comp: only comparable stores.
        only_covered: only windows with sensor coverage.
        context: `holidays`, `weather` or both.
        limit: stores per answer, to read pages yourself.
        after: the `next` of the answer before.
        at_least: a token of events that the answer has to contain; `read_your_writes` does that by itself.
        max_staleness: such as `5s`: the answer contains everything that was received until so long before the request.
    """

    range: str
    store: Ids
    grain: str
    by: Names
    sort: str
    top: int
    share: bool
    attributes: str
    category: Names
    brand: Names
    sku: Ids
    compare: str
    hours: str
    timezone: str
    as_of: int
    partial: bool
    comp: bool
    only_covered: bool
    context: Names
    limit: int
    after: str
    at_least: str
    max_staleness: str


def whole_answers(
    metrics: Sequence[str], start: When | None, end: When | None, options: MetricOptions
) -> Steps[Answers]:
    """Ask for metrics: one answer, read in pages if it is about more stores than one response holds.

    Args:
        metrics: their ids.
        start: as of `metric`.
        end: as of `metric`.
        options: as of `metric`; with `limit` or `after`, the one page that they ask for.

    Raises:
        ResponseError: the API does not accept the arguments.
        VersionChangedError: the pages were never of one version.
        AnswerTooLongError: there are more stores or points than `MAX_STORES` and `MAX_POINTS`.
    """
    try:
        return (yield from send(_call(metrics, start, end, options)))
    except ResponseError as error:
        if error.code not in {TOO_MANY_STORES, TOO_LONG} or not _has_pages(options):
            raise
        is_long = error.code == TOO_LONG
        if is_long and 0 < len(_named(options)) <= FEW_STORES:
            raise
    if not options.get("store") and not is_long:
        try:
            return (yield from _sorted_by_store(metrics, start, end, options))
        except ResponseError as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
    if not is_long:
        try:
            return together((yield from _of_one_version(_pages(metrics, start, end, options, STORES_PER_PAGE))))
        except ResponseError as error:
            if error.code != TOO_LONG:
                raise
    return together((yield from _of_one_version(_pages(metrics, start, end, options, FEW_STORES))))


def _sorted_by_store(
    metrics: Sequence[str], start: When | None, end: When | None, options: MetricOptions
) -> Steps[Answers]:
    """The series of all stores in one response, in the order that pages would have."""
    by = _split(options)
    sorted_: MetricOptions = {"sort": "name", "by": by if "store" in by else ["store", *by]}
    answers = yield from send(_call(metrics, start, end, {**options, **sorted_}))
    each = tuple(
        msgspec.structs.replace(answer, series=tuple(sorted(answer.series, key=lambda series: series.store or "")))
        for answer in answers.each
    )
    return Answers(answers=each, as_of=answers.as_of)


def _split(options: MetricOptions) -> list[str]:
    """The parts of `by`."""
    return [part.strip() for each in as_list(options.get("by", ())) for part in each.split(",")]


def _has_pages(options: MetricOptions) -> bool:
    """Whether series of different stores have nothing to do with each other, so that pages can be put together."""
    by = _split(options)
    adds_up = any(name == "total" or name.startswith("group:") for name in by)
    is_ranked = any(options.get(name) for name in ("sort", "top", "share"))
    return not (adds_up or is_ranked or options.get("limit") or options.get("after"))


Place = str | int | None
"""Where a page begins: a token of the API, or a position in the list of stores; None: at the beginning."""


class _Page(NamedTuple):
    answers: Answers
    following: Place
    stores: int

    @property
    def version(self) -> AsOf:
        """The data that it was computed from. What waits is counted for the stores of the page alone."""
        return msgspec.structs.replace(self.answers.as_of, waiting_for_batch=None)


ReadPage = Callable[[Place], Steps[_Page]]


def _named(options: MetricOptions) -> list[str]:
    """The stores that are named, in their order and each once."""
    given = options.get("store", ())
    return list(dict.fromkeys(map(str, [given] if isinstance(given, int | str) else given)))


def _pages(
    metrics: Sequence[str], start: When | None, end: When | None, options: MetricOptions, stores: int
) -> ReadPage:
    """Reads a page of so many of the stores that are named, in their order and each once, or of all."""
    named = _named(options)

    def of_all(place: Place) -> Steps[_Page]:
        at: MetricOptions = {"limit": stores}
        if isinstance(place, str):
            at["after"] = place
        answers = yield from send(_call(metrics, start, end, {**options, **at}))
        return _Page(answers, answers.next, stores)

    def of_named(place: Place) -> Steps[_Page]:
        first = place if isinstance(place, int) else 0
        last = first + stores
        answers = yield from send(_call(metrics, start, end, {**options, "store": named[first:last]}))
        return _Page(answers, last if last < len(named) else None, stores)

    return of_named if named else of_all


def _of_one_version(read: ReadPage) -> Steps[list[Answers]]:
    """All pages, those of older versions read again; also one that begins elsewhere now, because stores came or went.

    Raises:
        VersionChangedError, AnswerTooLongError: see `whole_answers`.
    """
    kept: dict[Place, _Page] = {}
    newest: AsOf | None = None
    for _ in range(MAX_ROUNDS):
        walked: list[_Page] = []
        place: Place = None
        while not walked or place is not None:
            page = kept.get(place)
            if page is None or page.version != newest:
                page = kept[place] = yield from read(place)
                newest = page.version
            walked.append(page)
            _refuse_long(walked)
            place = page.following
        if all(page.version == newest for page in walked):
            return [page.answers for page in walked]
    message = f"Events arrived while {len(walked)} pages of stores were read, {MAX_ROUNDS} times."
    do = "Add the stores up with `by`, read one publication with `as_of`, or read pages with `limit` and `after`."
    raise VersionChangedError(f"{message} {do}")


def _refuse_long(pages: Sequence[_Page]) -> None:
    points = sum(len(series.points) for page in pages for each in page.answers.each for series in each.series)
    if sum(page.stores for page in pages) > MAX_STORES or points > MAX_POINTS:
        message = f"The answer is about more than {MAX_STORES:,} stores, or has more than {MAX_POINTS:,} points."
        do = "Add the stores up with `by`, ask with a coarser `grain`, or read pages with `limit` and `after`."
        raise AnswerTooLongError(f"{message} {do}")


def together(pages: Sequence[Answers]) -> Answers:
    """The answers of pages of one version as if they were one, which has the stores of all of them.

    If pages have different currencies, each series has its own, and the answer none.
    """
    answers = tuple(_one(each) for each in zip(*(page.answers for page in pages), strict=True))
    [first, *_] = pages
    as_of = answers[0].as_of if first.as_of.waiting_for_batch is not None else first.as_of
    return Answers(answers=answers, as_of=as_of)


def _one(pages: Sequence[Answer]) -> Answer:
    currencies = {page.currency for page in pages if page.series}
    zones = {page.timezone for page in pages if page.series}
    ranges = {page.range for page in pages if page.series}
    waiting = sum(page.as_of.waiting_for_batch or 0 for page in pages)
    return msgspec.structs.replace(
        pages[0],
        series=tuple(each for page in pages for each in _series(page, has_own=len(currencies) > 1)),
        as_of=msgspec.structs.replace(pages[0].as_of, waiting_for_batch=waiting),
        timezone=zones.pop() if len(zones) == 1 else None,
        currency=currencies.pop() if len(currencies) == 1 else None,
        range=ranges.pop() if len(ranges) == 1 else None,
        partial=any(page.partial for page in pages),
        flags=tuple(dict.fromkeys(flag for page in pages for flag in page.flags)),
        event_flags=dict(sum((Counter(page.event_flags) for page in pages), Counter())),
        left_out=tuple(each for page in pages for each in page.left_out),
        context=_context([page.context for page in pages if page.context]),
        next=None,
    )


def _series(page: Answer, *, has_own: bool) -> Iterable[Series]:
    """`has_own`: whether each series says its currency, because the answer cannot."""
    if not has_own:
        return page.series
    return (msgspec.structs.replace(each, currency=each.currency or page.currency) for each in page.series)


def _context(pages: Sequence[Context]) -> Context | None:
    if not pages:
        return None
    found: Context = {}
    if holidays := [page["holidays"] for page in pages if "holidays" in page]:
        rows = tuple(row for each in holidays for row in each.rows)
        unknown = tuple(store for each in holidays for store in each.unknown)
        found["holidays"] = msgspec.structs.replace(holidays[0], rows=rows, unknown=unknown)
    if weather := [page["weather"] for page in pages if "weather" in page]:
        found["weather"] = msgspec.structs.replace(weather[0], rows=tuple(row for each in weather for row in each.rows))
    return found


def _call(metrics: Sequence[str], start: When | None, end: When | None, options: MetricOptions) -> Call[Answers]:
    """One request. For one metric the API answers with that metric alone."""
    lists = {name: as_list(options.get(name, ())) for name in ("by", "category", "brand")}  # type: ignore[arg-type]
    lists |= {"store": store_ids(options.get("store", ())), "sku": store_ids(options.get("sku", ()))}
    context = ",".join(as_list(options.get("context", ())))
    arguments = query(from_=start, to=end, **{**options, **lists, "context": context or None})
    if len(metrics) > 1:
        return Call(path("metrics", ",".join(metrics)), decoder(Answers), arguments, has_token=True)
    decode = decoder(Answer)

    def decode_one(body: bytes) -> Answers:
        answer = decode(body)
        return Answers(answers=(answer,), as_of=answer.as_of, next=answer.next)

    return Call(path("metrics", *metrics), decode_one, arguments, has_token=True)
