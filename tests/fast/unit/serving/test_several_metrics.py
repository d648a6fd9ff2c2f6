"""Several metrics in one answer are of one moment: a quotient fits the sums that stand beside it."""

import csv
import io
from collections.abc import Sequence
from datetime import date, datetime

import pytest

from master_dataset.errors import RangeTooLongError
from serving_layer.query import answer
from serving_layer.query.answer import MOST_BYTES, refuse_long
from serving_layer.responses.encoding import encode
from serving_layer.store.readers import SpeedBlock
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_tables import WorldTables

DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
BOTH = "net_sales,total_transactions_count"


class BusyTables(WorldTables):
    """A till that sells something whenever rows are read: rows come before the positions that promise them."""

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        found = await super().rows(view, store, received_day, generation, cut)
        number = len(self.world.of(store)) + 1
        self.world.receive(receipt("2026-11-21T09:10:00Z", minor=100, number=number), "2026-11-21T09:10:01Z")
        return found


@pytest.fixture
def world() -> World:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    return world


def test_several_metrics_are_the_answers_of_each_and_what_all_rest_on(world: World) -> None:
    asking = Asking(world)

    both = asking.body(f"/v1/metrics/{BOTH}", **DAY)

    assert both["answers"] == [asking.body(f"/v1/metrics/{name}", **DAY) for name in BOTH.split(",")]
    assert both["as_of"] == {
        "publication": 0,
        "cut": "1970-01-01T00:00:00Z",
        "speed_as_of": "2026-11-21T09:00:01Z",
        "layers": ["speed"],
        "loading": True,
    }
    assert "next" not in both


def test_one_metric_is_answered_as_ever(world: World) -> None:
    body = Asking(world).body("/v1/metrics/net_sales", **DAY)

    assert set(body) == {"metric", "unit", "grain", "timezone", "series", "as_of", "currency"}


def test_what_comes_while_several_are_answered_is_in_all_of_them_or_in_none(world: World) -> None:
    asking = Asking(world, BusyTables(world).readers)

    body = asking.body("/v1/metrics/net_sales,total_transactions_count,avg_transaction_value", **DAY)

    money, count, mean = (each["series"][0]["points"][0]["value"] for each in body["answers"])
    assert money == count
    assert mean == 1.0


def test_each_metric_has_its_own_grain_unless_one_is_requested(world: World) -> None:
    asking = Asking(world)

    own = asking.body("/v1/metrics/net_sales,productivity", **DAY)["answers"]
    rejected = asking.refusal("/v1/metrics/net_sales,productivity", **DAY, grain="day")

    assert own[0]["grain"] == "day" != own[1]["grain"]
    assert rejected["code"] == "bad_question"


def test_pages_of_several_metrics_have_one_next(world: World) -> None:
    asking = Asking(world)

    body = asking.body(f"/v1/metrics/{BOTH}", **DAY, limit=1)

    assert body["next"] is None
    assert all("next" not in each for each in body["answers"])


def test_a_table_has_the_rows_of_all_metrics(world: World) -> None:
    text = Asking(world).response(f"/v1/metrics/{BOTH}", **DAY, format="csv").text

    rows = list(csv.DictReader(io.StringIO(text)))

    assert [(row["metric"], row["value"], row["unit"], row["currency"]) for row in rows] == [
        ("net_sales", "1.00", "money", "EUR"),
        ("total_transactions_count", "1", "n", ""),
    ]


def test_ten_metrics_are_answered_together(world: World) -> None:
    listed = [each["metric"] for each in Asking(world).body("/v1/metrics")["metrics"] if not each["grains"]]

    body = Asking(world).body(f"/v1/metrics/{','.join(listed[:10])}", **DAY)

    assert [each["metric"] for each in body["answers"]] == listed[:10]


def test_an_answer_that_would_be_too_long_is_refused_with_what_to_do() -> None:
    refuse_long(MOST_BYTES)

    with pytest.raises(RangeTooLongError, match="32 MiB") as refused:
        refuse_long(MOST_BYTES + 1)

    assert "grain" in refused.value.do


def test_cells_that_would_be_too_many_are_refused_with_what_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    [cell] = Asking(world).body("/v1/views/sales/cells", **DAY)["cells"]

    monkeypatch.setattr(answer, "MOST_BYTES", len(encode(cell)) - 1)
    refused = Asking(world).refusal("/v1/views/sales/cells", **DAY)

    assert refused["code"] == "range_too_long"
    assert refused["detail"] == "Use a shorter range, or fewer stores."

    monkeypatch.setattr(answer, "MOST_BYTES", len(encode(cell)))
    assert Asking(world).body("/v1/views/sales/cells", **DAY)["cells"] == [cell]
