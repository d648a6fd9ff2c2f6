"""Every metric has a case beside it that the reference works out, and every flag a meaning."""

import pytest

from galatea.cli.reference.catalogue_pages import FLAGS, UNITS
from tests.support import World
from tests.support.world_api import Asking
from views.core.metric import Metric, of_nothing, worked
from views.metrics import registered_metrics
from views.registry import registered_views

METRICS = registered_metrics()
VIEWS = {view.name: view for view in registered_views()}
ZERO = {
    "active_devices",
    "count_drift",
    "dwell_count",
    "group_traffic_in",
    "gross_sales",
    "in_store_traffic",
    "labor_hours",
    "net_items_count",
    "net_sales",
    "occupancy",
    "occupancy_max",
    "outside_traffic",
    "pair_receipts",
    "passers_by",
    "queue_abandoned",
    "queue_joins",
    "queue_served",
    "receipts_with_pairs_cut",
    "return_transactions_count",
    "returns_value",
    "sales_transactions_count",
    "sku_net_sales",
    "sku_receipts",
    "sku_returns_value",
    "sku_units",
    "sku_units_returned",
    "staff_traffic_in",
    "total_transactions_count",
    "traffic_in",
    "traffic_out",
    "unique_devices",
    "zone_traffic_in",
}
"""Those that the catalogue marks as sums: without events 0 and not null."""


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_the_example_of_a_metric_names_all_its_terms_and_has_a_value(metric: Metric) -> None:
    assert metric.formula.names <= set(metric.example)
    assert worked(metric, VIEWS) is not None
    assert metric.note


def test_every_metric_is_listed_with_its_definition() -> None:
    listed = {each["metric"]: each for each in Asking(World()).body("/v1/metrics")["metrics"]}

    assert set(listed) == set(METRICS)
    assert listed["capture_rate"] == {
        "metric": "capture_rate",
        "name": "Capture rate",
        "formula": "in_store / outside",
        "unit": "percent",
        "views": ["wifi_visits"],
        "flags": ["device_based"],
        "grains": [],
        "needs_by": [],
        "note": METRICS["capture_rate"].note,
    }


def test_of_nothing_sums_are_zero_and_everything_else_is_null() -> None:
    assert {name for name, metric in METRICS.items() if of_nothing(metric, VIEWS) is not None} == ZERO


def test_every_flag_and_every_unit_has_a_meaning() -> None:
    assert {flag for metric in METRICS.values() for flag in metric.flags} <= set(FLAGS)
    assert {metric.unit for metric in METRICS.values()} == set(UNITS)
