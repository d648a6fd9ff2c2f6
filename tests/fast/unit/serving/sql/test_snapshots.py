"""Statements of a transaction read one snapshot, whatever arrives, is published or is collected between them."""

# ruff: noqa: S608 - statements of a test

import io
import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import Store
from serving_layer.sql.session import Session
from serving_layer.store.readers import Claim, Position
from tests.support import World, receipt
from tests.support.examples import examples
from tests.support.world_sql import AskingSql
from tests.support.world_tables import WorldStores, WorldTables

DAY = "2026-03-06"
VIEWS = (
    "select sum(sale_tx)::bigint from sales_day",
    "select sum(net_sales)::bigint from sales_hour",
    "select sum(sku_receipts)::bigint from sales_by_sku_day",
    "select sum(net_sales)::bigint from sales_by_sku_15m",
    "select sum(receipts)::bigint from sales_by_till_day",
    "select sum(value)::bigint from metrics where metric = 'total_transactions_count'",
)
"""Each is the number of receipts that were sold here, from four views."""


class RecordedTables(WorldTables):
    """Positions of the speed layer may lag behind its rows while a micro-batch is being written."""

    recorded: Sequence[Position] | None = None
    claimed = True

    async def positions(self, generation: int) -> Sequence[Position]:
        return await super().positions(generation) if self.recorded is None else self.recorded

    async def claim(self, generation: int) -> Claim | None:
        return await super().claim(generation) if self.claimed else None


class Till:
    """Sells one thing for one euro at a time, each in a micro-batch of its own."""

    def __init__(self) -> None:
        self.world = World()
        self.tables = RecordedTables(self.world)
        self.sold = 0
        self.sell()

    def sell(self) -> None:
        self.sold += 1
        at = datetime.fromisoformat(f"{DAY}T09:00:00Z") + timedelta(minutes=self.sold)
        self.world.begin_micro_batch()
        self.world.receive(receipt(f"{at:%Y-%m-%dT%H:%M:%SZ}", minor=100, number=self.sold), at)

    def rebuild(self) -> None:
        at = datetime.fromisoformat(f"{DAY}T09:00:00Z") + timedelta(minutes=self.sold)
        self.world.rebuild(at.replace(minute=at.minute // 5 * 5))


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def sql(till: Till) -> Iterator[AskingSql]:
    with AskingSql(till.world, readers=till.tables.readers) as asking:
        yield asking


def begun(sql: AskingSql) -> Session:
    session = sql.open()
    sql.answer("begin", session=session)
    return session


def counted(sql: AskingSql, session: Session | None = None) -> list[int]:
    return [sql.rows(view, session=session)[0][0] for view in VIEWS]


def test_tables_that_are_read_at_different_moments_agree(sql: AskingSql, till: Till) -> None:
    session, (first, *others) = begun(sql), VIEWS
    assert sql.rows(first, session=session) == [(1,)]

    for _ in range(12):
        till.sell()
    till.rebuild()
    till.sell()

    assert [sql.rows(view, session=session) for view in (*others, first)] == [[(1,)]] * len(VIEWS)
    joined = "select sum(a.net_sales) - sum(b.net_sales) from sales_day a join sales_by_sku_day b using (store, day)"
    assert sql.rows(joined, session=session) == [(Decimal("0.00"),)]
    assert counted(sql) == [14] * len(VIEWS)
    sql.answer("commit", session=session)
    assert counted(sql, session) == [14] * len(VIEWS)


@pytest.mark.parametrize("store", [None, Store(id="1", timezone="UTC", tenant="other")])
def test_a_transaction_that_reads_a_store_which_was_removed_or_given_away_has_ended(
    sql: AskingSql, till: Till, store: Store | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begun(sql)
    assert sql.rows("select count(*) from receipts", session=session) == [(1,)]

    till.world.stores.pop("1")
    if store:
        till.world.stores["1"] = store
    monkeypatch.setattr(WorldStores, "version", AsyncMock(return_value="another"))
    till.sell()

    refused = sql.refusal("select count(*) from receipts", session=session)
    assert (refused.code, refused.message.startswith("The store `1`")) == ("72000", True)


def test_products_that_are_loaded_meanwhile_are_read_by_the_next_transaction(sql: AskingSql) -> None:
    def load(title: str) -> None:
        with ProductSpool() as spool:
            read_stream(io.BytesIO(f"sku,title\n1,{title}\n2,Tea\n".encode()), spool)
            sql.rest.products.load("default", spool, replace=True)

    load("Milk")
    session = begun(sql)
    assert sql.rows("select title from products where sku = '1'", session=session) == [("Milk",)]
    load("Oat drink")

    assert sql.rows("select title from products order by sku", session=session) == [("Milk",), ("Tea",)]
    assert sql.rows("select title from products order by sku") == [("Oat drink",), ("Tea",)]


def test_receipts_and_alerts_are_as_they_are_when_a_statement_first_reads_a_part_of_them(
    sql: AskingSql, till: Till
) -> None:
    def read(column: str) -> list[tuple[int]]:
        statement = f"select count({column}) from receipts union all select count({column}) from alerts"
        return list(sql.rows(statement, session=session))

    session = begun(sql)
    assert counted(sql, session) == [1] * len(VIEWS)
    assert read("store") == [(1,), (0,)]

    till.sell()
    sql.rest.alert_tables.raised(f"{DAY}T09:05:00Z")

    assert read("store") == [(1,), (0,)]
    assert read("store || 'x'") == [(1,), (0,)]
    both = "select count(till || store) from receipts union all select count(rule || store) from alerts"
    assert sql.rows(both, session=session) == [(2,), (1,)]
    assert counted(sql, session) == [1] * len(VIEWS)


def test_receipts_of_a_transaction_are_of_the_days_that_have_events_in_its_snapshot(sql: AskingSql, till: Till) -> None:
    session, read = begun(sql), "select transaction_id from receipts order by happened_at"
    assert counted(sql, session) == [1] * len(VIEWS)

    till.world.begin_micro_batch()
    till.world.receive(receipt("2026-03-07T08:00:00Z", minor=100, number=70), "2026-03-07T08:00:01Z")
    till.world.pass_time("2026-03-07T08:01:00Z")

    assert sql.rows(read, session=session) == [("1",)]
    assert sql.rows(read) == [("1",), ("70",)]


def test_publications_end_with_that_of_the_snapshot_and_say_which_of_them_were_collected_meanwhile(
    sql: AskingSql, till: Till
) -> None:
    till.rebuild()
    till.rebuild()
    session, read = begun(sql), "select publication, collected from publications where publication > 0 order by 1"
    assert sql.rows(read, session=session) == [(1, False), (2, False)]

    till.rebuild()
    till.world.collect(1)

    assert sql.rows(read, session=session) == [(1, False), (2, False)]
    assert sql.rows("select publication from publications where collected and cut is not null", session=session) == [
        (1,)
    ]
    assert sql.rows(read) == [(1, True), (2, False), (3, False)]


def test_corrections_end_with_the_publication_of_the_snapshot_and_appear_once_they_are_written(
    sql: AskingSql, till: Till
) -> None:
    def correct(publication: int) -> None:
        till.world.ledgers[str(publication)] = ledgers[publication]
        row = {"window": 1772787600, "dimensions": {"currency": "EUR"}, "state": "gross_sales", "shown": 1}
        row |= {"corrected": 2, "difference": 1, "cause": "waited", "events": [], "events_total": publication}
        till.world.corrections[f"run-{publication}", "sales"] = {("1", date(2026, 3, 6)): json.dumps([row])}

    till.rebuild()
    till.rebuild()
    ledgers = {number: till.world.ledgers.pop(str(number)) for number in (1, 2)}
    correct(1)
    session, read = begun(sql), "select publication, events_total from corrections order by 1"
    assert sql.rows(read, session=session) == [(1, 1)]

    till.rebuild()
    ledgers[3] = till.world.ledgers.pop("3")
    correct(2)
    correct(3)

    assert sql.rows(read, session=session) == [(1, 1)]
    assert sql.rows("select publication, store from corrections order by 1", session=session) == [(1, "1"), (2, "1")]
    assert sql.rows(read) == [(1, 1), (2, 2), (3, 3)]


@settings(max_examples=examples(60, least=6), deadline=None)
@given(data=st.data())
def test_whatever_happens_between_statements_all_are_of_the_first_one(data: st.DataObject) -> None:
    till = Till()
    with AskingSql(till.world, readers=till.tables.readers) as sql:
        session, known = begun(sql), None
        for step in data.draw(st.lists(st.sampled_from(["sell", "rebuild", *VIEWS]), min_size=4, max_size=16)):
            if step == "sell":
                till.sell()
            elif step == "rebuild":
                till.rebuild()
            else:
                known = known or till.sold
                assert sql.rows(step, session=session) == [(known,)], step


def test_the_snapshot_is_of_the_first_statement_and_not_of_begin(sql: AskingSql, till: Till) -> None:
    session = begun(sql)
    till.sell()

    assert counted(sql, session) == [2] * len(VIEWS)


def test_a_micro_batch_that_is_being_written_is_read_by_transactions_once_it_is_complete(
    sql: AskingSql, till: Till
) -> None:
    till.tables.recorded = sql.run(till.tables.positions(1))
    till.sell()

    assert counted(sql) == [2] * len(VIEWS)
    session = begun(sql)
    assert counted(sql, session) == [1] * len(VIEWS)

    till.tables.recorded = None
    assert counted(sql, session) == [1] * len(VIEWS)
    assert counted(sql, begun(sql)) == [2] * len(VIEWS)


def test_a_generation_that_has_claimed_nothing_has_nothing_complete(sql: AskingSql, till: Till) -> None:
    till.tables.claimed = False

    assert sql.rows("select count(*) from sales_day", session=begun(sql)) == [(0,)]


def test_a_micro_batch_is_complete_where_every_partition_was_read_to_its_end() -> None:
    claim = Claim(7, {"a": {0: 5, 1: 9}, "b": {0: 0}})

    assert claim.last_complete([Position("a", 0, 5, None), Position("a", 1, 9, None)]) == 7
    assert claim.last_complete([Position("a", 0, 5, None), Position("a", 1, 12, None)]) == 7
    assert claim.last_complete([Position("a", 0, 5, None), Position("a", 1, 8, None)]) == 6
    assert claim.last_complete([Position("a", 0, 5, None)]) == 6
    assert Claim(0, {"a": {0: 1}}).last_complete([]) == -1


def test_a_snapshot_whose_publication_was_collected_ends_with_a_named_error(sql: AskingSql, till: Till) -> None:
    for _ in range(9):
        till.sell()
    till.rebuild()
    session, (first, second, *_) = begun(sql), VIEWS
    assert sql.rows(first, session=session) == [(10,)]
    till.rebuild()
    till.world.collect(1)

    refused = sql.refusal(second, session=session)

    assert (refused.code, "collected" in refused.message, "ROLLBACK" in str(refused.hint)) == ("72000", True, True)
    assert sql.refusal(first, session=session).code == "25P02"
    sql.answer("rollback", session=session)
    assert counted(sql, begun(sql)) == [10] * len(VIEWS)


def test_a_snapshot_whose_rows_may_have_expired_ends_with_a_named_error(sql: AskingSql, till: Till) -> None:
    for _ in range(9):
        till.sell()
    till.rebuild()
    session, (first, second, *_) = begun(sql), VIEWS
    assert sql.rows(first, session=session) == [(10,)]
    till.world.stand_still("2026-03-20T00:00:00Z")

    refused = sql.refusal(second, session=session)

    assert (refused.code, "speed rows live" in refused.message) == ("72000", True)
