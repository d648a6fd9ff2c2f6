"""Raw receipts in real Cassandra: the first delivery is shown, whatever the order and the requests they come in."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from master_dataset.parsing.rows import rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.store.readers import RECEIPT_PAGE_BYTES, RawReceipt, RawReceiptPage
from serving_layer.tables import AsyncSession, ReceiptTables, receipts
from speed_layer.receipts import ReceiptBlockWriter, ReceiptWriter
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(microsecond=123456)
TTL_SECONDS = 86_400
Sent = tuple[str, str, datetime]
"""Store, title, and when it was received."""


def parsed(sent: Sequence[Sent], number: int = 1, happened_at: datetime = NOW - HOUR) -> pa.RecordBatch:
    happened = happened_at.isoformat(timespec="milliseconds")
    own = {"transaction_id": str(number), "happened_at": f'"{happened}"'}
    values = [receipt({"operation_id": f'"{store}"', "title": f'"{title}"'} | own) for store, title, _ in sent]
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * len(sent), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": [POS_TRANSACTIONS.topic] * len(sent),
            "partition": pa.array([0] * len(sent), pa.int32()),
            "offset": pa.array(range(len(sent)), pa.int64()),
            "timestamp": pa.array([at for _, _, at in sent], pa.timestamp("us", tz="UTC")),
        }
    )
    [found] = rows(POS_TRANSACTIONS, iter([batch]), default_terms)
    return found


def portions(store: str, *, earliest_first: bool, together: bool) -> Sequence[Sequence[Sent]]:
    """Two deliveries of one receipt, of which Milk was received first: in one micro-batch or two, in either order."""
    sent = [(store, "Milk", NOW), (store, "Beer", NOW + timedelta(seconds=1))]
    ordered = sent if earliest_first else sent[::-1]
    return [ordered] if together else [[each] for each in ordered]


def kept(session: Session, store: str) -> list[Any]:
    columns = "day, happened_at, received_at, value, writetime(value) AS at, ttl(value) AS ttl, operation_id"
    rows = session.execute(f"SELECT {columns} FROM raw_pos_transactions")  # noqa: S608 - the names above
    return [row for row in rows if row.operation_id == store]


@pytest.mark.parametrize("earliest_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_the_delivery_that_was_received_first_stays(
    shared_cassandra: Session, *, earliest_first: bool, together: bool
) -> None:
    store = f"{earliest_first}-{together}"
    write = ReceiptWriter(lambda: shared_cassandra, TTL_SECONDS)

    for own in portions(store, earliest_first=earliest_first, together=together):
        write(parsed(own))()

    [row] = kept(shared_cassandra, store)
    assert "Milk" in row.value
    assert row.received_at.replace(tzinfo=UTC) == NOW.replace(microsecond=123000)
    assert row.happened_at.replace(tzinfo=UTC) == (NOW - HOUR).replace(microsecond=123000)
    assert row.day.date() == (NOW - HOUR).date()
    assert row.at == -int(NOW.timestamp() * 1_000_000)
    assert 0 < row.ttl <= TTL_SECONDS - HOUR.total_seconds()


def test_a_receipt_that_is_older_than_receipts_are_shown_is_not_written(shared_cassandra: Session) -> None:
    write = ReceiptWriter(lambda: shared_cassandra, int(HOUR.total_seconds()))

    write(parsed([("old", "Milk", NOW)]))()

    assert not kept(shared_cassandra, "old")


def pages(session: Session, store: str, day: date, page_bytes: int = RECEIPT_PAGE_BYTES) -> Sequence[RawReceiptPage]:
    tables = ReceiptTables(AsyncSession(session), page_bytes)

    async def read() -> list[RawReceiptPage]:
        found = [await tables.receipts(store, day, None, limit=1000)]
        while found[-1].has_more:
            found.append(await tables.receipts(store, day, found[-1].receipts[-1].place, limit=1000))
        return found

    return asyncio.run(read())


def shown(session: Session, store: str) -> Sequence[RawReceipt]:
    """All receipts of an hour ago."""
    return [each for page in pages(session, store, (NOW - HOUR).date()) for each in page.receipts]


def test_pages_end_by_bytes_and_follow_each_other_without_a_gap(
    shared_cassandra: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "ROWS_AT_ONCE", 3)
    in_rows = ReceiptWriter(lambda: shared_cassandra, TTL_SECONDS)
    in_blocks = ReceiptBlockWriter(lambda: shared_cassandra, TTL_SECONDS)
    wanted: list[tuple[datetime, str]] = []
    for number in range(40):
        title, happened = "x" * (100 if number % 5 else 900), NOW - (1 + number % 4) * HOUR
        write = in_rows if number % 3 == 0 else in_blocks
        write(parsed([("large", title, NOW)], number, happened))()
        wanted.append((happened.replace(microsecond=123000), str(number)))
    wanted.sort(key=lambda each: (-each[0].timestamp(), each[1]))

    days = sorted({happened.date() for happened, _ in wanted}, reverse=True)
    found = [page for day in days for page in pages(shared_cassandra, "large", day, page_bytes=3000)]

    places = [each.place for page in found for each in page.receipts]
    assert [(place.happened_at, place.transaction_id) for place in places] == wanted
    sizes = [sum(len(each.value) for each in page.receipts) for page in found]
    assert all(1500 < size <= 3000 for page, size in zip(found, sizes, strict=True) if page.has_more)


@pytest.mark.parametrize("earliest_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("former", [True, False])
def test_the_delivery_that_was_received_first_is_shown(
    shared_cassandra: Session, *, earliest_first: bool, together: bool, former: bool
) -> None:
    store = f"blocks-{earliest_first}-{together}-{former}"
    write = ReceiptBlockWriter(lambda: shared_cassandra, TTL_SECONDS)

    for own in portions(store, earliest_first=earliest_first, together=together):
        write(parsed(own))()
        write(parsed(own))()
    if former:  # a generation before had written rows
        ReceiptWriter(lambda: shared_cassandra, TTL_SECONDS)(parsed([(store, "Beer", NOW + timedelta(seconds=1))]))()

    [receipt] = shown(shared_cassandra, store)
    assert "Milk" in receipt.value
    assert receipt.received_at == NOW.replace(microsecond=123000)
    assert receipt.place.happened_at == (NOW - HOUR).replace(microsecond=123000)
    blocks = list(shared_cassandra.execute("SELECT store, ttl(block) AS ttl FROM receipt_blocks"))
    own_blocks = [row for row in blocks if row.store == store]
    assert len(own_blocks) == (1 if together else 2)  # a replay writes the same ones
    assert all(0 < row.ttl <= TTL_SECONDS - HOUR.total_seconds() for row in own_blocks)


def test_an_old_receipt_is_in_no_block(shared_cassandra: Session) -> None:
    write = ReceiptBlockWriter(lambda: shared_cassandra, int(HOUR.total_seconds()))

    write(parsed([("old", "Milk", NOW)]))()

    assert not shown(shared_cassandra, "old")
