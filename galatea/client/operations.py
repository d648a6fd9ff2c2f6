"""The operations of the REST API: what a call sends, and how its response is decoded.

Each function makes the call, or the pages or steps of calls, of one method of `Client` and `AsyncClient`, which have
the same arguments and docstrings. "Returns" is what the methods return; every method also raises `ClientError`.
"""

import codecs
from collections.abc import Mapping
from datetime import date
from http import HTTPStatus
from typing import Literal, TypedDict, Unpack

import msgspec

from galatea.client.answers import Answer, Answers, Cells, LoadedFile, Metric, Receipt, SensorHealth, Store
from galatea.client.connection import (
    Call,
    Ids,
    Names,
    Page,
    Pages,
    Pause,
    Steps,
    When,
    as_list,
    checked_text,
    decoder,
    path,
    query,
    send,
    store_ids,
)
from galatea.client.errors import NotReadyError
from galatea.client.publications import Correction, Freshness, Publication, Recompute, RolledBack
from galatea.client.whole_answers import MetricOptions, whole_answers

Day = date | str
"""A UTC day."""


def metrics() -> Call[tuple[Metric, ...]]:
    """List the metrics.

    Returns:
        Every metric with its id, formula, unit and views.
    """
    decode = decoder(_MetricList)
    return Call(path("metrics"), lambda body: decode(body).metrics)


def metric(
    metric: str, *, start: When | None = None, end: When | None = None, **options: Unpack[MetricOptions]
) -> Steps[Answer]:
    """Query one metric over time, for any number of stores.

    Args:
        metric: its id, such as `net_sales`.
        start: inclusive; a local date of the store, an instant with its offset, or relative, such as `-7d`.
        end: exclusive; as `start`; by default the end of today.
        options: see `MetricOptions`.

    Returns:
        A series per store (or group, or total) and combination of dimensions. A value is None if it cannot be known.

    Raises:
        NotFoundError: there is no such metric, store or publication.
        ResponseError: the API does not accept the arguments; the error says which.
        VersionChangedError: the data changed again and again while pages of stores were read.
        AnswerTooLongError: there are more than 10,000 stores, or too many points.
        ValueError: a datetime has no time zone.
    """
    [answer] = (yield from whole_answers([metric], start, end, options)).answers
    return answer


def several(
    metrics: Names, *, start: When | None = None, end: When | None = None, **options: Unpack[MetricOptions]
) -> Steps[Answers]:
    """Query several metrics at once, all computed from the same data.

    Args:
        metrics: their ids.
        start: inclusive; a local date of the stores, or an instant with its offset.
        end: exclusive; as `start`.
        options: see `MetricOptions`.

    Returns:
        An answer per metric, in the order of `metrics`.

    Raises:
        NotFoundError: there is no such metric, store or publication.
        ResponseError: the API does not accept the arguments; the error says which.
        VersionChangedError: the data changed again and again while pages of stores were read.
        AnswerTooLongError: there are more than 10,000 stores, or too many points.
        ValueError: a datetime has no time zone.
    """
    return (yield from whole_answers(as_list(metrics), start, end, options))


def stores() -> Call[tuple[Store, ...]]:
    """List the registered stores.

    Returns:
        Every store that the key can see, by id.
    """
    decode = decoder(_StoreList)
    return Call(path("stores"), lambda body: decode(body).stores)


def sensors(  # noqa: PLR0913 - the arguments of the API
    *,
    start: When | None = None,
    end: When | None = None,
    range: str | None = None,  # noqa: A002 - the name in the API
    store: Ids = (),
    state: Names = (),
    hours: Literal["all", "open"] = "all",
    silent_after: int = 30,
    as_of: int | None = None,
    partial: bool = False,
    limit: int = 25,
) -> Pages[SensorHealth]:
    """Read the health of registered sensors, over at most 31 business days.

    Args:
        start: inclusive; a local date of the store, an instant with its offset, or relative, such as `-7d`. By default
            the last seven business days with today.
        end: exclusive; as `start`; by default the end of today.
        range: such as `last_7_days`, instead of `start` and `end`.
        store: ids; by default all stores that the key can see.
        state: only sensors in one of these states: `ok`, `gaps`, `silent`, `never`, `unknown`.
        hours: which time counts for coverage: `all`, or only inside the opening hours (`open`).
        silent_after: a sensor is silent after so many open minutes without a signal.
        as_of: number of the publication to read; by default the newest, and speed.
        partial: accept an answer from batch alone while speed is missing.
        limit: stores per request.

    Returns:
        An iterator over all sensors, by store. A page is requested when it is reached.

    Raises:
        NotFoundError: there is no such store or publication.
        ResponseError: the API does not accept the arguments; the error says which.
        ValueError: a datetime has no time zone.
    """
    decode = decoder(_SensorPage)

    def decode_page(body: bytes) -> Page[SensorHealth]:
        page = decode(body)
        return Page(page.sensors, page.next)

    def call(after: str | None) -> Call[Page[SensorHealth]]:
        arguments = query(
            from_=start,
            to=end,
            range=range,
            store=store_ids(store),
            state=as_list(state),
            hours=hours,
            silent_after=silent_after,
            as_of=as_of,
            partial=partial,
            limit=limit,
            after=after,
        )
        return Call(path("sensors"), decode_page, arguments, has_token=True)

    return Pages(call)


def cells(  # noqa: PLR0913 - the arguments of the API
    view: str, *, start: When, end: When, store: Ids = (), partial: bool = False, as_of: int | None = None
) -> Call[Cells]:
    """Read the states of each cell from batch, from speed, and merged.

    Args:
        view: its name, such as `sales`.
        start: inclusive; a local date of the stores, or an instant with its offset.
        end: exclusive; as `start`.
        store: ids; by default all stores that the key can see.
        partial: accept an answer from batch alone while speed is missing.
        as_of: number of the publication to read; None for the newest, and speed.

    Returns:
        The cells of the range; money is in minor units.

    Raises:
        NotFoundError: there is no such view, store or publication.
        ResponseError: the API does not accept the arguments; the error says which.
        ValueError: a datetime has no time zone.
    """
    arguments = query(from_=start, to=end, store=store_ids(store), partial=partial, as_of=as_of)
    return Call(path("views", view, "cells"), decoder(Cells), arguments, has_token=True)


def raw_receipts(store: str, day: Day, *, limit: int = 1000) -> Pages[Receipt]:
    """Read receipts as they were received.

    Args:
        store: id of the store.
        day: UTC day of `happened_at`.
        limit: receipts per request at most; it returns fewer if they are large.

    Returns:
        An iterator over all receipts of the day, newest first. A page is requested when it is reached.

    Raises:
        AccessDeniedError: the key may not read receipts.
        NotFoundError: there is no such store.
    """
    decode = decoder(_ReceiptPage)

    def decode_page(body: bytes) -> Page[Receipt]:
        page = decode(body)
        return Page(page.receipts, page.next)

    def call(after: str | None) -> Call[Page[Receipt]]:
        arguments = query(store=store, day=day, limit=limit, after=after)
        return Call(path("raw", "pos_transactions"), decode_page, arguments)

    return Pages(call)


def freshness() -> Call[Freshness]:
    """Read how far each layer has come.

    Returns:
        How far each layer has read, what is left to read, and which alarms are active.
    """
    return Call(path("freshness"), decoder(Freshness))


def publications(*, limit: int = 100) -> Pages[Publication]:
    """List the publications.

    Args:
        limit: publications per request.

    Returns:
        An iterator over all publications, newest first. A page is requested when it is reached.
    """
    decode = decoder(_PublicationPage)

    def decode_page(body: bytes) -> Page[Publication]:
        page = decode(body)
        return Page(page.publications, None if page.next is None else str(page.next))

    def call(before: str | None) -> Call[Page[Publication]]:
        return Call(path("publications"), decode_page, query(limit=limit, before=before))

    return Pages(call)


def recompute(  # noqa: PLR0913 - the arguments of the API
    *,
    reason: str,
    views: Names = (),
    first: Day | None = None,
    last: Day | None = None,
    stores: Names = (),
    full: bool = False,
    mode: Literal["publish", "preview"] = "publish",
) -> Call[str]:
    """Start a recompute from the master dataset. It is never retried: a second request would start another one.

    Args:
        reason: for the history of publications.
        views: names; by default all.
        first: the first UTC day of `happened_at`; None for the oldest.
        last: the last UTC day, included; None for the newest.
        stores: ids; only days on which one of them has events. By default all.
        full: recompute every day, whether it was touched since the last publication or not.
        mode: `preview` writes corrections but publishes nothing.

    Returns:
        The id of the recompute, before anything is done. Pass it to `wait` or `recompute_state`.

    Raises:
        AccessDeniedError: the key has no scope `operate`.
        ResponseError: the API does not accept the arguments; the error says which.
    """
    body = {
        "views": as_list(views),
        "from": first,
        "to": last,
        "stores": as_list(stores),
        "full": full,
        "mode": mode,
        "reason": reason,
    }
    decode, success = decoder(_StartedRecompute), frozenset({HTTPStatus.ACCEPTED})
    return Call(path("recomputes"), lambda answer: decode(answer).id, success=success, **_post(body))


def recompute_state(id: str) -> Call[Recompute]:  # noqa: A002 - the name in the API
    """Read a recompute as it is now.

    Args:
        id: of the recompute.

    Returns:
        Its state, progress and report.

    Raises:
        NotFoundError: there is no such recompute.
    """
    return Call(path("recomputes", id), decoder(Recompute))


def wait(id: str, *, every: float = 1.0, at_most: float = 3600.0) -> Steps[Recompute]:  # noqa: A002 - the name in the API
    """Wait for the end of a recompute.

    Args:
        id: of the recompute.
        every: seconds between two requests.
        at_most: seconds to wait in all.

    Returns:
        The recompute once it has ended, whatever its outcome: check `state`.

    Raises:
        NotFoundError: there is no such recompute.
        NotReadyError: it had not ended after `at_most` seconds.
    """
    waited = 0.0
    while not (found := (yield from send(recompute_state(id)))).has_ended:
        if waited >= at_most:
            raise NotReadyError(f"The recompute `{id}` is {found.state} after {waited:g} seconds. Wait for it again.")
        yield Pause(every)
        waited += every
    return found


def rollback(publication: int, *, reason: str, dry_run: bool = False) -> Call[RolledBack]:
    """Publish again what an older publication said. It is never retried.

    Args:
        publication: its number.
        reason: for the history of publications.
        dry_run: say what would be published, and change nothing.

    Returns:
        What was published; readers see it by then.

    Raises:
        AccessDeniedError: the key has no scope `operate`.
        NotFoundError: there is no such publication, or its cells were deleted.
    """
    body = {"reason": reason, "dry_run": dry_run}
    return Call(path("publications", publication, "rollback"), decoder(RolledBack), **_post(body))


def corrections(  # noqa: PLR0913 - the arguments of the API
    publication: int | None = None,
    *,
    recompute: str | None = None,
    view: str | None = None,
    store: str | None = None,
    cause: str | None = None,
    state: str | None = None,
    limit: int = 1000,
) -> Pages[Correction]:
    """Read what a publication, or a previewed recompute, changed in what readers see.

    Args:
        publication: its number; None for the newest.
        recompute: id of a previewed recompute; None for a publication.
        view: only of this view; None for all.
        store: only of this store; None for all.
        cause: only of this cause, such as `waited`; None for all.
        state: only of this state of a view, such as `gross_sales`; None for all.
        limit: corrections per request.

    Returns:
        An iterator over all corrections, by view, store and day. A page is requested when it is reached.

    Raises:
        AccessDeniedError: the key has no scope `operate`.
        NotFoundError: there is no such publication or recompute.
        NotReadyError: the ledger is not written yet.
    """
    decode = decoder(_CorrectionPage)

    def decode_page(body: bytes) -> Page[Correction]:
        page = decode(body)
        if page.pending:
            raise NotReadyError("The corrections are not written yet. Ask again in a moment.")
        return Page(page.corrections, page.next)

    def call(after: str | None) -> Call[Page[Correction]]:
        filters = query(view=view, store=store, cause=cause, state=state)
        arguments = query(publication=publication, recompute=recompute) + filters + query(limit=limit, after=after)
        return Call(path("corrections"), decode_page, arguments)

    return Pages(call)


def load_products(file: bytes, *, tenant: str | None = None, replace: bool = False) -> Call[LoadedFile]:
    """Load what SKUs are called and which categories they are in, all or none.

    Args:
        file: CSV with a header, or JSON Lines: `sku`, `title`, `brand`, `category`, `gtin`, `valid_from`; at most 8 MB.
        tenant: whose products they are; by default the operator's own tenant.
        replace: remove the SKUs that the file lacks; by default they stay.

    Returns:
        What the tenant has now; queries use it within a second.

    Raises:
        AccessDeniedError: the key has no scope `operate`.
        ResponseError: the file has a mistake; the error names its line and field. Nothing was loaded.
    """
    return _load("products", file, tenant, replace=replace)


def load_targets(file: bytes, *, tenant: str | None = None, replace: bool = False) -> Call[LoadedFile]:
    """Load what stores should reach on a business day, all or none.

    Args:
        file: CSV with a header, or JSON Lines: `store`, `day`, `metric`, `value`; at most 8 MB.
        tenant: whose targets they are; by default the operator's own tenant.
        replace: remove the targets that the file lacks; by default they stay.

    Returns:
        What the tenant has now; queries with `compare="target"` use it within a second.

    Raises:
        AccessDeniedError: the key has no scope `operate`.
        ResponseError: the file has a mistake; the error names its line and field. Nothing was loaded.
    """
    return _load("targets", file, tenant, replace=replace)


def _load(kind: str, file: bytes, tenant: str | None, *, replace: bool) -> Call[LoadedFile]:
    """A load is safe to repeat."""
    is_lines = file.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    return Call(
        path(kind),
        decoder(LoadedFile),
        query(tenant=tenant, replace=replace),
        method="POST",
        body=file,
        headers={"Content-Type": "application/x-ndjson" if is_lines else "text/csv"},
    )


class _Post(TypedDict):
    method: str
    body: bytes
    headers: Mapping[str, str]
    is_repeatable: bool


def _post(body: Mapping[str, object]) -> _Post:
    """The arguments of a `Call` that starts something, so it must not be sent twice. None is left out of the body."""
    return {
        "method": "POST",
        "body": msgspec.json.encode({name: _sent(name, value) for name, value in body.items() if value is not None}),
        "headers": {"Content-Type": "application/json"},
        "is_repeatable": False,
    }


def _sent(name: str, value: object) -> object:
    """A value of a body. ValueError if a text in it cannot be sent."""
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str):
            checked_text(f"argument `{name}`", text)
    return value


class _MetricList(msgspec.Struct):
    metrics: tuple[Metric, ...]


class _StoreList(msgspec.Struct):
    stores: tuple[Store, ...]


class _SensorPage(msgspec.Struct):
    sensors: tuple[SensorHealth, ...]
    next: str | None


class _ReceiptPage(msgspec.Struct):
    receipts: tuple[Receipt, ...]
    next: str | None


class _PublicationPage(msgspec.Struct):
    publications: tuple[Publication, ...]
    next: int | None


class _StartedRecompute(msgspec.Struct):
    id: str


class _CorrectionPage(msgspec.Struct):
    corrections: tuple[Correction, ...]
    pending: bool
    next: str | None
