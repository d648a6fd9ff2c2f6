"""The tables that are lists: stores and their groups, products, receipts, publications, corrections and alerts.

They hold what the routes of the same names list, of the caller's stores and tenant alone.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from sys import getsizeof

import orjson
import pyarrow as pa

from master_dataset.registry.products import Product, ProductMaster, Versions
from master_dataset.registry.stores import M2_DECIMALS, PERCENT_DECIMALS
from serving_layer.admin.corrections import CorrectionPosition, CorrectionsRequest, CorrectionsService
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.alerts.history import END, AlertListing, AlertsRequest, AuditReader, audited_cut
from serving_layer.products.reader import ProductFilter, ProductReader
from serving_layer.responses.alerts import ListedAlert
from serving_layer.responses.publications import Correction
from serving_layer.sql.table import (
    DATE,
    FLAG,
    INSTANT,
    PRECISION,
    TEXT,
    WHOLE,
    ListTable,
    Needed,
    Reading,
    Rows,
    TableColumn,
)
from serving_layer.sql.view_tables import days_with_cells
from serving_layer.store.readers import PublicationEntry, PublishedReader, ReceiptReader
from views.core import View
from views.core.cells import WAITING
from views.core.cut import UNIX_EPOCH

PAGE = 500
DECIMALS = 18
NUMBER = pa.decimal128(PRECISION, DECIMALS)
"""Numbers of any unit: sums in full, and ratios with 18 decimals."""
STORE = "store"
MILLISECOND = timedelta(milliseconds=1)


class StoresTable(ListTable):
    """The stores that the caller sees."""

    name, about = "stores", "The stores of the tenant, as `stores.yaml` registers them."
    key = (STORE,)
    bounded = frozenset({STORE})
    is_of_version = True
    columns = (
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn("name", TEXT),
        TableColumn("tenant", TEXT),
        TableColumn("timezone", TEXT),
        TableColumn("currency", TEXT, "ISO 4217."),
        TableColumn("country", TEXT, "ISO 3166."),
        TableColumn("subdivision", TEXT, "ISO 3166-2."),
        TableColumn("floor_m2", pa.decimal128(18, M2_DECIMALS)),
        TableColumn("open_since", DATE),
        TableColumn("comp_start_date", DATE, "From when on it is a comparable store."),
        TableColumn("conversion_target", pa.decimal128(9, PERCENT_DECIMALS), "Percent of visitors who should buy."),
        TableColumn("day_starts_at", TEXT, "Local time at which business days begin."),
        TableColumn("week_starts_on", TEXT),
        TableColumn("opening_hours", TEXT, "JSON: weekday to periods of local time."),
    )

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per store."""
        rows = Rows(self.columns, needed)
        for store in reading.chosen(needed):
            rows.add(
                {
                    STORE: store.id,
                    "name": store.name or None,
                    "tenant": store.tenant,
                    "timezone": store.timezone,
                    "currency": store.currency.code,
                    "country": store.country or None,
                    "subdivision": store.subdivision or None,
                    "floor_m2": _rounded(store.floor_m2, M2_DECIMALS),
                    "open_since": store.open_since,
                    "comp_start_date": store.comp_start_date,
                    "conversion_target": _rounded(store.conversion_target, PERCENT_DECIMALS),
                    "day_starts_at": store.day_starts_at,
                    "week_starts_on": store.week_starts_on,
                    "opening_hours": orjson.dumps(store.opening_hours).decode(),
                }
            )
        return rows.table()


class StoreAttributesTable(ListTable):
    """The groups that stores are in."""

    name, about = "store_attributes", "The groups that stores are in, and when: one row for each version."
    bounded = frozenset({STORE, "name"})
    is_of_version = True
    columns = (
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn("name", TEXT, "Name of the group, such as region."),
        TableColumn("value", TEXT),
        TableColumn("valid_from", DATE, "First business day; null: from its first day on."),
        TableColumn("valid_to", DATE, "The business day after the last one; null: until now."),
    )

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per store, version of its groups, and group."""
        rows, names = Rows(self.columns, needed), needed.values.get("name")
        for store in reading.chosen(needed):
            ends = [version.valid_from for version in store.groups[1:]] + [None]
            for version, end in zip(store.groups, ends, strict=False):
                for name, value in sorted(version.values.items()):
                    if names is None or name in names:
                        at = {"valid_from": version.valid_from, "valid_to": end}
                        rows.add({STORE: store.id, "name": name, "value": value, **at})
        return rows.table()


class ProductsTable(ListTable):
    """The product master of the tenant."""

    name, about = "products", "What SKUs are called, and which categories they are in: one row for each version."
    bounded = frozenset({"sku"})
    columns = (
        TableColumn("sku", TEXT),
        TableColumn("title", TEXT),
        TableColumn("brand", TEXT),
        TableColumn("category", TEXT, "Path, such as Food/Dairy/Milk."),
        TableColumn("department", TEXT, "First level of the category."),
        TableColumn("gtin", TEXT),
        TableColumn("valid_from", DATE, "First business day; null: always."),
        TableColumn("valid_to", DATE, "The business day after the last one; null: until now."),
    )

    def __init__(self, products: ProductReader) -> None:
        """`products`: of all tenants."""
        self._products = products

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per version of a product."""
        rows = Rows(self.columns, needed)
        tenants = {store.tenant for store in reading.stores.values()} | {reading.caller.tenant}
        for tenant in sorted(each for each in tenants if each and reading.caller.tenant in (None, each)):
            if tenant not in reading.masters:
                reading.masters[tenant] = await self._products.master(tenant)
            async for versions in self._versions(reading.masters[tenant], needed.values.get("sku")):
                reading.budget.add(len(versions), self.name, "Filter `sku`.")
                ends = [version.valid_from for version in versions[1:]] + [None]
                for product, end in zip(versions, ends, strict=True):
                    rows.add(
                        {
                            "sku": product.sku,
                            "title": product.title,
                            "brand": product.brand or None,
                            "category": "/".join(product.category) or None,
                            "department": product.category[0] if product.category else None,
                            "gtin": product.gtin or None,
                            "valid_from": product.valid_from,
                            "valid_to": end,
                        }
                    )
        return rows.table()

    async def _versions(self, master: ProductMaster | None, skus: frozenset[str] | None) -> AsyncIterator[Versions]:
        """The versions of each product, oldest first."""
        if master is None:
            return
        if skus is not None:
            for versions in (await self._products.versions(master, skus)).values():
                yield versions
            return
        place = None
        while True:
            page = await self._products.page_of(master, ProductFilter(), PAGE, place)
            by_sku: dict[str, list[Product]] = {}
            for product in page.products:
                by_sku.setdefault(product.sku, []).append(product)
            for of_sku in by_sku.values():
                yield tuple(of_sku)
            place = page.following
            if place is None:
                return


class ReceiptsTable(ListTable):
    """Receipts as they were received."""

    name, about = "receipts", "Receipts as tills sent them, as JSON."
    key = (STORE, "happened_at", "till", "transaction_id")
    time = "happened_at"
    bounded = frozenset({STORE})
    reads_speed = True
    columns = (
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn("happened_at", INSTANT),
        TableColumn("received_at", INSTANT),
        TableColumn("till", TEXT),
        TableColumn("transaction_id", TEXT),
        TableColumn("receipt", TEXT, "JSON."),
    )

    def __init__(self, receipts: ReceiptReader, view: View) -> None:
        """`view`: counts every receipt, so with those that wait for batch it says on which days there are any."""
        self._receipts, self._view = receipts, view

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per receipt."""
        rows = Rows(self.columns, needed)
        if needed.span.is_empty:
            return rows.table()
        first, last = (None if at is None else _utc_date(at) for at in needed.span)
        for store in reading.chosen(needed):
            for day in sorted(await days_with_cells(reading, [self._view, WAITING], store)):
                if (first is None or day >= first) and (last is None or day <= last):
                    await self._read_day(reading, rows, store.id, day)
        return rows.table()

    async def _read_day(self, reading: Reading, rows: Rows, store: str, day: date) -> None:
        after = None
        while True:
            page = await self._receipts.receipts(store, day, after, PAGE)
            text = sum(getsizeof(each.value) for each in page.receipts) if rows.has("receipt") else 0
            reading.budget.add(len(page.receipts), self.name, "Filter `happened_at` and `store`.", text)
            for receipt in page.receipts:
                place = receipt.place
                rows.add(
                    {
                        STORE: store,
                        "happened_at": place.happened_at,
                        "received_at": receipt.received_at,
                        "till": place.till,
                        "transaction_id": place.transaction_id,
                        "receipt": receipt.value,
                    }
                )
            if not page.has_more:
                return
            after = page.receipts[-1].place


def _utc_date(at: date | datetime) -> date:
    return at.astimezone(UTC).date() if isinstance(at, datetime) else at


class PublicationsTable(ListTable):
    """The publications, up to the one that the transaction reads."""

    name, about = "publications", "Publications, up to the one that is read."
    key = ("publication",)
    columns = (
        TableColumn("publication", WHOLE),
        TableColumn("cut", INSTANT, "Events received before are in its cells."),
        TableColumn("published_at", INSTANT),
        TableColumn("published_by", TEXT, "For operators alone."),
        TableColumn("reason", TEXT, "For operators alone: it may name other tenants."),
        TableColumn("collected", FLAG, "Its cells are deleted."),
        TableColumn("restores", WHOLE, "The publication whose cells it published again."),
    )

    def __init__(self, published: PublishedReader) -> None:
        """`published`: the history."""
        self._published = published

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per publication."""
        rows = Rows(self.columns, needed)
        newest = reading.version.snapshot.pointer.publication
        async for entry in history(self._published, newest):
            reading.budget.add(1, self.name, "Query fewer tables at once.")
            rows.add(
                {
                    "publication": entry.publication,
                    "cut": entry.cut,
                    "published_at": entry.published_at,
                    "published_by": entry.by if reading.caller.is_operator else None,
                    "reason": entry.why if reading.caller.is_operator else None,
                    "collected": entry.collected_at is not None,
                    "restores": entry.stats.get("restores"),
                }
            )
        return rows.table()


async def history(published: PublishedReader, newest: int) -> AsyncIterator[PublicationEntry]:
    """The publications up to the newest one that counts, newest first."""
    before = min(newest + 1, MAX_PUBLICATION)
    while page := await published.history(before, PAGE):
        for entry in page:
            yield entry
        before = page[-1].publication


class CorrectionsTable(ListTable):
    """What publications corrected."""

    name, about = "corrections", "What publications corrected: a row for each changed cell and state."
    bounded = frozenset({STORE, "publication", "view"})
    columns = (
        TableColumn("publication", WHOLE),
        TableColumn("view", TEXT),
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn("start", INSTANT, "When the window begins."),
        TableColumn("dimensions", TEXT, "JSON."),
        TableColumn("state", TEXT),
        TableColumn("shown", TEXT, "What readers were shown; money in minor units. Null: nothing."),
        TableColumn("corrected", TEXT, "What they are shown now. Null: nothing."),
        TableColumn("cause", TEXT),
        TableColumn("events_total", WHOLE, "How many events are responsible."),
    )

    def __init__(self, corrections: CorrectionsService, published: PublishedReader, views: Sequence[str]) -> None:
        """`published`: the history; `views`: their names."""
        self._corrections, self._published, self._views = corrections, published, frozenset(views)

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per corrected cell."""
        rows, stores = Rows(self.columns, needed), {store.id for store in reading.chosen(needed)}
        numbers, views = needed.values.get("publication"), self._views & needed.values.get("view", self._views)
        async for entry in history(self._published, reading.version.snapshot.pointer.publication):
            if not entry.publication or (numbers is not None and str(entry.publication) not in numbers):
                continue
            for view in sorted(views):
                async for each in self._of(entry.publication, view, stores):
                    reading.budget.add(1, self.name, "Filter `publication`, `view` and `store`.")
                    rows.add(_correction(entry.publication, each))
        return rows.table()

    async def _of(self, publication: int, view: str, stores: Collection[str]) -> AsyncIterator[Correction]:
        start: CorrectionPosition | None = None
        only = next(iter(stores)) if len(stores) == 1 else None
        while True:
            asked = CorrectionsRequest(publication, view=view, store=only, limit=PAGE, start=start, among=stores)
            page, start = await self._corrections.page(asked)
            for each in page.corrections:
                yield each
            if start is None:
                return


def _correction(publication: int, each: Correction) -> Mapping[str, object]:
    return {
        "publication": publication,
        "view": each.view,
        STORE: each.store,
        "start": _instant(each.window),
        "dimensions": orjson.dumps(each.dimensions).decode(),
        "state": each.state,
        "shown": None if each.shown is None else str(each.shown),
        "corrected": None if each.corrected is None else str(each.corrected),
        "cause": each.cause,
        "events_total": each.events_total,
    }


class AlertsTable(ListTable):
    """The alerts of the tenant."""

    name, about = "alerts", "Alerts that were raised, and what followed them."
    key = ("alert_id",)
    time = "raised_at"
    bounded = frozenset({STORE, "rule", "state"})
    columns = (
        TableColumn("alert_id", TEXT),
        TableColumn("state", TEXT, "open, resolved or retracted."),
        TableColumn("rule", TEXT),
        TableColumn("version", WHOLE, "Of the rule."),
        TableColumn(STORE, TEXT, "Id of the store."),
        TableColumn("window_start", INSTANT),
        TableColumn("window_end", INSTANT),
        TableColumn("dimensions", TEXT, "JSON."),
        TableColumn("value", NUMBER),
        TableColumn("threshold", NUMBER),
        TableColumn("baseline", NUMBER),
        TableColumn("sentence", TEXT),
        TableColumn("provisional", FLAG),
        TableColumn("late", FLAG),
        TableColumn("raised_at", INSTANT),
        TableColumn("resolved_at", INSTANT),
        TableColumn("resolved_because", TEXT),
        TableColumn("retracted_at", INSTANT),
        TableColumn("retracted_because", TEXT),
        TableColumn("publication", WHOLE, "The one that raised it, if it was one."),
    )

    def __init__(self, alerts: AlertListing, audits: AuditReader, published: PublishedReader) -> None:
        """`audits`: say which publication alerts were compared with last."""
        self._alerts, self._audits, self._published = alerts, audits, published

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """One row per alert."""
        rows = Rows(self.columns, needed)
        since, until = (at if isinstance(at, datetime) else None for at in needed.span)
        since, until = max(since or UNIX_EPOCH, UNIX_EPOCH), min(until or END, END - MILLISECOND) + MILLISECOND
        if since >= until:
            return rows.table()
        stores, states = needed.values.get(STORE), needed.values.get("state")
        rules = needed.values.get("rule")
        if any(values is not None and not values for values in (stores, states, rules)):
            return rows.table()
        rule = next(iter(rules)) if rules is not None and len(rules) == 1 else None
        asked = AlertsRequest(
            reading.caller.visibility_scope, stores or frozenset(), rule, None, since, until, limit=PAGE
        )
        cut = await audited_cut(self._audits, self._published)
        while True:
            page = await self._alerts.page(asked)
            reading.budget.add(len(page.alerts), self.name, "Filter `raised_at` and `store`.")
            for found in page.alerts:
                rows.add(_alert(found.response(cut)))
            if page.following is None:
                return rows.table()
            asked = replace(asked, after=page.following)


def _alert(each: ListedAlert) -> Mapping[str, object]:
    return {
        "alert_id": each.alert_id,
        "state": each.state,
        "rule": each.rule,
        "version": each.version,
        STORE: each.store,
        "window_start": _instant(each.window.start),
        "window_end": _instant(each.window.end),
        "dimensions": orjson.dumps(each.dimensions).decode(),
        "value": number_of(each.value),
        "threshold": number_of(each.threshold),
        "baseline": number_of(each.baseline),
        "sentence": each.sentence,
        "provisional": each.provisional,
        "late": each.late,
        "raised_at": _instant(each.raised_at),
        "resolved_at": _instant(each.resolved_at),
        "resolved_because": each.resolved_because,
        "retracted_at": _instant(each.retracted_at),
        "retracted_because": each.retracted_because,
        "publication": each.publication,
    }


def number_of(value: object) -> Decimal | None:
    """A number for a column of type `NUMBER`, with at most 18 decimals; a float as it is written. None for others."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if not isinstance(value, Decimal | int):
        return None
    with localcontext(prec=PRECISION):
        return round(Decimal(value), DECIMALS)


def _rounded(value: Decimal | int | None, decimals: int) -> Decimal | None:
    return None if value is None else round(Decimal(value), decimals)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
