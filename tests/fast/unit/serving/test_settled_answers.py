"""Answers from several views while a micro-batch is being written: each receipt is in all of them, or in none."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import pytest

from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.store.readers import Claim, SpeedBlock
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_sql import AskingSql
from tests.support.world_tables import WorldTables


class HalfWritten(WorldTables):
    """Tables in which the last micro-batch has written one of its views."""

    async def claim(self, generation: int) -> Claim | None:
        claim = await super().claim(generation)
        return claim and Claim(claim.micro_batch, {POS_TRANSACTIONS.topic: {0: self.world.sent + 1}})

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        rows = await super().rows(view, store, received_day, generation, cut)
        return [row for row in rows if view == "sales_by_sku" or row.micro_batch < self.world.micro_batch]


def world_in_two_micro_batches(*, is_published: bool) -> World:
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))
    for number in range(3):
        if number == 2:
            world.begin_micro_batch()
        for store in world.stores:
            at, line = f"2026-03-27T1{number}:00:00Z", {"title": "tea", "sku": "tea", "price": 1, "amount": 1}
            world.receive(receipt(at, [line], store=store, number=number), at)
        if number == 0 and is_published:
            world.rebuild("2026-03-27T10:30:00Z")
    return world


@pytest.mark.parametrize("is_published", [False, True])
@pytest.mark.parametrize("by", ["total", "store"])
@pytest.mark.parametrize("metrics", ["sku_attach_rate", "sku_net_sales,net_sales"])
def test_a_micro_batch_that_is_being_written_is_in_no_view_of_an_answer(
    *, is_published: bool, by: str, metrics: str
) -> None:
    world = world_in_two_micro_batches(is_published=is_published)
    body = Asking(world, HalfWritten(world).readers).body(
        f"/v1/metrics/{metrics}", from_="2026-03-27", to="2026-03-28", by=by
    )

    of_two = 4.0 if by == "total" else 2.0
    expected = 100.0 if metrics == "sku_attach_rate" else of_two
    answers: Sequence[Mapping[str, object]] = body.get("answers", [body])
    values = [point["value"] for each in answers for series in each["series"] for point in series["points"]]  # type: ignore[attr-defined]
    assert set(values) == {expected}


def test_the_newest_rows_are_in_an_answer_from_one_view() -> None:
    world = world_in_two_micro_batches(is_published=False)

    body = Asking(world, HalfWritten(world).readers).body(
        "/v1/metrics/sku_net_sales", from_="2026-03-27", to="2026-03-28", by="total"
    )

    assert body["series"][0]["points"][0]["value"] == 6.0


def test_an_index_shows_what_its_metric_shows() -> None:
    world, of = world_in_two_micro_batches(is_published=True), {"from_": "2026-03-27", "to": "2026-03-28", "store": "1"}
    asking = Asking(world, HalfWritten(world).readers)

    shown = asking.body("/v1/index/sku_attach_rate", **of)["series"][0]["points"][0]["value"]

    assert shown == asking.body("/v1/metrics/sku_attach_rate", **of)["series"][0]["points"][0]["value"] == 100.0


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select value from metrics where metric = 'sku_attach_rate'", 100),
        ("select value from metrics where metric in ('sku_net_sales', 'net_sales')", 2),
        ("select k.sku_net_sales from sales_by_sku_day k join sales_day s using (store)", 2),
        ("select sku_net_sales from sales_by_sku_day", 3),  # one view alone, with the newest rows
    ],
)
def test_a_statement_that_reads_several_views_has_no_half_of_a_micro_batch(statement: str, expected: int) -> None:
    world = world_in_two_micro_batches(is_published=True)
    with AskingSql(world, readers=HalfWritten(world).readers) as sql:
        sql.rows("select sku_net_sales from sales_by_sku_day")  # is kept, and not used for several views

        assert {float(value) for (value,) in sql.rows(statement)} == {expected}
