"""The pure stages of a query, without any reading: cells in, a response out."""

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from master_dataset.errors import MixedCurrenciesError
from master_dataset.registry.stores import Store
from serving_layer.products.attribution import StoreProducts
from serving_layer.query.aggregate import QueryStates, SeriesKey, aggregate, combine
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.evaluate import evaluate
from serving_layer.query.fetch import PeriodData, StoreData
from serving_layer.query.render import render
from serving_layer.query.resolve import MetricRequest, ResolvedQuery, resolve
from serving_layer.store.cells import NOTHING_WAITS
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.timeline import Grain, Period
from views.control.publication import Pointer
from views.core.cells import CellKey
from views.core.merge import Cell
from views.metrics import registered_metrics
from views.registry import registered_views

VIEWS = {view.name: view for view in registered_views()}
CATALOGUE = Catalogue(VIEWS, registered_metrics())
NINE, TEN = 1_795_251_600, 1_795_255_200  # 2026-11-21 09:00 and 10:00 UTC
NEXT_DAY = datetime(2026, 11, 22, tzinfo=UTC)
SNAPSHOT = ReadSnapshot(Pointer(1, NEXT_DAY, "manifest", 1, {}), (), ())


ONE, TWO = (Store(id=number, timezone="UTC") for number in ("1", "2"))


def query(*stores: Store, by: tuple[str, ...] = (), grain: Grain = "day") -> ResolvedQuery:
    request = MetricRequest("gross_sales", (), "2026-11-21", "2026-11-22", grain=grain, timezone="UTC", by=by)
    return resolve(request, stores, CATALOGUE)


def sold(window: int, minor: int, currency: str = "EUR", *, is_fresh: bool = False) -> Cell:
    """A cell of sales with one receipt over so many minor units."""
    values = {"receipts": 1, "sale_tx": 1, "gross_sales": minor}
    states = tuple(values.get(name, 0) for name in VIEWS["sales"].columns)
    return Cell(CellKey(window, (currency,)), None if is_fresh else states, states if is_fresh else None, states)


def aggregated(resolved: ResolvedQuery, *cells: Sequence[Cell]) -> QueryStates:
    """The states of the cells of each store."""
    found = []
    for of, here in zip(resolved.stores, cells, strict=True):
        period = Period(of.timeline, of.timeline.end, of.timeline.end)
        now = PeriodData(period, {"sales": here})
        data = StoreData(of, of.timeline.end, now, None, None, NOTHING_WAITS, StoreProducts.without_master())
        found.append(aggregate(resolved, data))
    return combine(resolved, found)


def test_states_are_merged_by_series_key_and_point() -> None:
    resolved = query(ONE, by=("currency",), grain="hour")
    cells = [sold(NINE, 100), sold(NINE + 900, 20), sold(TEN, 3), sold(NINE, 7, "CZK")]

    values = {each.key: each.points for each in evaluate(resolved, aggregated(resolved, cells))}

    assert list(values) == [SeriesKey("1", (("currency", "CZK"),)), SeriesKey("1", (("currency", "EUR"),))]
    assert [[point.value for point in points[9:11]] for points in values.values()] == [[7, 0], [120, 3]]


def test_a_point_with_a_speed_row_is_provisional_and_not_final() -> None:
    resolved = query(ONE)
    states = aggregated(resolved, [sold(NINE, 100), sold(TEN, 20, is_fresh=True)])

    [values] = evaluate(resolved, states)
    response = render(resolved, SNAPSHOT, states, [values], None)

    assert [point.is_provisional for point in values.points] == [True]
    [[point]] = [each.points for each in response.series]
    assert (str(point.value), point.final) == ("1.20", False)


def test_each_store_has_its_own_series() -> None:
    resolved = query(ONE, TWO)

    values = list(evaluate(resolved, aggregated(resolved, [sold(NINE, 1)], [sold(NINE, 2)])))

    assert [(each.key, each.points[0].value) for each in values] == [
        (SeriesKey("1"), Fraction(1)),
        (SeriesKey("2"), Fraction(2)),
    ]


@pytest.mark.parametrize("by", [(), ("currency",)])
def test_amounts_of_two_currencies_are_in_one_answer_only_if_it_is_split(by: tuple[str, ...]) -> None:
    resolved = query(ONE, by=by)
    cells = [sold(NINE, 1), sold(TEN, 1, "CZK")]

    with nullcontext() if by else pytest.raises(MixedCurrenciesError):
        assert aggregated(resolved, cells).currency is None
