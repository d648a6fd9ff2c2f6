"""`/receipts`: the receipts of one store in one hour, as a click on a chart opens them.

They are those that speed keeps for a few days; the numbers of the hour are there for ever, so both are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Query, Response

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter
from master_dataset.registry.stores import Store, Terms, currency
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Line, Receipt
from serving_layer.errors import BadQuestionError
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.overview import code_of_store
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.store.readers import RawReceipt, RawReceiptPage, ReceiptPlace

router = page_router()
MOST = 200
"""How many receipts are shown of an hour at most, the newest first; fewer if they are large."""
HOUR, MILLISECOND = timedelta(hours=1), timedelta(milliseconds=1)
FIRST, LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
METRICS = ("net_sales", "total_transactions_count", "avg_transaction_value")


@dataclass(frozen=True)
class ShownReceipt:
    """A receipt as people read it. `total`: in minor units. `raw`: its JSON, where it cannot be read any more."""

    at: datetime
    till: str
    number: str
    total: int | None
    units: int | None
    lines: Sequence[Line]
    raw: str = ""


@router.get("/receipts")
async def get_receipts(
    visit: ReaderVisit,
    id_: Annotated[str, Query(alias="store", min_length=1, max_length=256)],
    start: Annotated[datetime, Query(alias="from")],
) -> Response:
    """The receipts from an instant until an hour later."""
    store = await visit.queries.store(id_)
    if start.tzinfo is None or not FIRST <= start <= LAST:
        raise BadQuestionError("`from` is not a time with an offset.", do="Open an hour from the chart of a store.")
    fresh = await visit.fresh()
    end = start + HOUR
    found = await _between(visit.queries, store, start.astimezone(UTC), end.astimezone(UTC))
    is_partial = bool(fresh.snapshot.missing)
    queries = [
        PageQuery(metric, (store.id,), start.isoformat(), end.isoformat(), "total", partial=is_partial)
        for metric in METRICS
    ]
    answers = await visit.queries.answer_all(queries)
    numbers = {
        query.metric: None
        if isinstance(result, QueryFailure) or not result.series
        else result.series[0].points[-1].value
        for query, result in zip(queries, answers, strict=True)
    }
    own = currency(code_of_store(answers[0], store))
    values = {
        "store": store,
        "start": start,
        "end": end,
        "day": BusinessDay.of(store, start).today,
        "receipts": [_shown(each, store.terms._replace(currency=own)) for each in found.receipts],
        "has_more": found.has_more,
        "most": len(found.receipts),
        "numbers": numbers,
        "currency": own,
        "query": queries[0],
        "is_partial": is_partial,
    }
    return visit.page("receipts.html", fresh, values)


async def _between(queries: PageQueries, store: Store, start: datetime, end: datetime) -> RawReceiptPage:
    """The receipts of [start, end) that are shown, as one page."""
    found: list[RawReceipt] = []
    last = end - MILLISECOND
    for day in sorted({start.date(), last.date()}, reverse=True):
        after = ReceiptPlace(last, "", "") if day == last.date() else None
        page = await queries.receipts(store.id, day, after, MOST + 1)
        own = [receipt for receipt in page.receipts if receipt.place.happened_at >= start]
        found += own
        if page.has_more and len(own) == len(page.receipts):  # what follows may be of this hour, too
            return RawReceiptPage(found[:MOST], has_more=True)
    return RawReceiptPage(found[:MOST], has_more=len(found) > MOST)


def _shown(receipt: RawReceipt, terms: Terms) -> ShownReceipt:
    parsed = parse(POS_TRANSACTIONS, receipt.value.encode(), lambda _store: terms)
    at, till, number = receipt.place
    if isinstance(parsed, DeadLetter):  # the store has other terms than it had then
        return ShownReceipt(at, till, number, None, None, (), receipt.value)
    payload: Receipt = parsed.payload
    total = payload.gross_sales - payload.returns_value
    return ShownReceipt(at, till, number, total, payload.units_sold - payload.units_returned, payload.lines)
