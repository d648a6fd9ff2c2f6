"""Raw receipts in real Cassandra: the first delivery is shown, whatever the order and the requests they come in."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from master_dataset.parsing.rows import rows
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.store.readers import RawReceipt
from serving_layer.tables import AsyncSession, ReceiptTables
from speed_layer.receipts import ReceiptBlockWriter, ReceiptWriter
from tests.support.corpus.case import receipt

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(microsecond=123456)
TTL_SECONDS = 86_400
Sent = tuple[str, str, datetime]
"""Store, title, and when it was received."""


def parsed(sent: Sequence[Sent]) -> pa.RecordBatch:
    happened = (NOW - HOUR).isoformat(timespec="milliseconds")
    values = [
        receipt({"operation_id": f'"{store}"', "title": f'"{title}"', "happened_at": f'"{happened}"'})
        for store, title, _ in sent
    ]
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
    [found] = rows(POS_TRANSACTIONS, iter([batch]), lambda _store: DEFAULT_TERMS)
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


def shown(session: Session, store: str, limit: int = 1000) -> Sequence[RawReceipt]:
    """All receipts of an hour ago, read in pages."""
    tables, day = ReceiptTables(AsyncSession(session)), (NOW - HOUR).date()

    async def read() -> list[RawReceipt]:
        found, after = list[RawReceipt](), None
        while page := await tables.receipts(store, day, after, limit):
            found += page
            after = page[-1].place
        return found

    return asyncio.run(read())


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
