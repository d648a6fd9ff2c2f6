"""Questions that anybody who reads may ask: metrics, stores, cells, receipts, freshness, publications."""

from datetime import date
from typing import TypedDict, Unpack

import msgspec

from galatea.client.answers import Answer, Answers, Cells
from galatea.client.call import Call, Names, Page, Pages, When, listed, path, query, reader
from galatea.client.listed import Freshness, Metric, Publication, Receipt, Store


class Question(TypedDict, total=False):
    """What may be asked of a metric beside its range; left out is the API's default.

    `store`: ids, all that the key opens if none is named. `grain`: `15m`, `hour`, `day`, `week`, `month`, `year`,
    `hour_of_week` or `total`. `by`: dimensions to split by. `compare`: such as `previous_week`. `hours`: `all` or
    `open`. `timezone`: each store's own if it is left out. `as_of`: the number of a publication. `partial`: answer from
    batch alone, labelled, when speed is missing. `comp`: comparable stores only. `only_covered`: only windows in which
    sensors were alive. `context`: `holidays`, `weather`. `limit`, `after`: so many stores, and the `next` of an answer.
    """

    store: Names
    grain: str
    by: Names
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


def metrics() -> Call[tuple[Metric, ...]]:
    """Every metric: what it is called, how it is made, and from which views."""
    read = reader(_Metrics)
    return Call(path("metrics"), lambda body: read(body).metrics)


def metric(metric: str, *, start: When, end: When, **asked: Unpack[Question]) -> Call[Answer]:
    """One metric over time. `start` is inclusive, `end` exclusive: a local date, or an instant with its offset.

    The other arguments are those of `Question`.
    """
    return Call(path("metrics", metric), reader(Answer), _asked(start, end, asked))


def several(metrics: Names, *, start: When, end: When, **asked: Unpack[Question]) -> Call[Answers]:
    """Several metrics, all of one moment: none is newer than another. Arguments as of `metric`."""
    names, question = listed(metrics), _asked(start, end, asked)
    if len(names) > 1:
        return Call(path("metrics", ",".join(names)), reader(Answers), question)
    read = reader(Answer)  # of one metric the API answers as if it were asked for alone
    return Call(path("metrics", *names), lambda body: _alone(read(body)), question)


def stores() -> Call[tuple[Store, ...]]:
    """Every registered store that the key opens."""
    read = reader(_Stores)
    return Call(path("stores"), lambda body: read(body).stores)


def cells(  # noqa: PLR0913 - what the API asks
    view: str, *, start: When, end: When, store: Names = (), partial: bool = False, as_of: int | None = None
) -> Call[Cells]:
    """The states of each cell from batch, from speed, and merged. Money is in minor units here."""
    question = query(from_=start, to=end, store=listed(store), partial=partial, as_of=as_of)
    return Call(path("views", view, "cells"), reader(Cells), question)


def raw_receipts(store: str, day: date | str, *, limit: int = 1000) -> Pages[Receipt]:
    """Receipts as they were received, newest first, of one store and UTC day of `happened_at`; `limit` in a page."""
    read = reader(_Receipts)

    def ask(after: str | None) -> Call[Page[Receipt]]:
        question = query(store=store, day=day, limit=limit, after=after)
        return Call(path("raw", "pos_transactions"), lambda body: _page(read(body)), question)

    return Pages(ask)


def freshness() -> Call[Freshness]:
    """How far each layer has read, what is left to read, and which alarms stand."""
    return Call(path("freshness"), reader(Freshness))


def publications(*, limit: int = 100) -> Pages[Publication]:
    """Publications, newest first; `limit` in a page."""
    read = reader(_Publications)

    def understood(body: bytes) -> Page[Publication]:
        told = read(body)
        return Page(told.publications, None if told.next is None else str(told.next))

    def ask(before: str | None) -> Call[Page[Publication]]:
        return Call(path("publications"), understood, query(limit=limit, before=before))

    return Pages(ask)


def _asked(start: When, end: When, asked: Question) -> tuple[tuple[str, str], ...]:
    lists = {"store": listed(asked.get("store", ())), "by": listed(asked.get("by", ()))}
    context = ",".join(listed(asked.get("context", ())))
    return query(from_=start, to=end, **{**asked, **lists, "context": context or None})


def _alone(answer: Answer) -> Answers:
    return Answers(answers=(answer,), as_of=answer.as_of, next=answer.next)


class _Metrics(msgspec.Struct):
    metrics: tuple[Metric, ...]


class _Stores(msgspec.Struct):
    stores: tuple[Store, ...]


class _Receipts(msgspec.Struct):
    receipts: tuple[Receipt, ...]
    next: str | None


class _Publications(msgspec.Struct):
    publications: tuple[Publication, ...]
    next: int | None


def _page(told: _Receipts) -> Page[Receipt]:
    return Page(told.receipts, told.next)
