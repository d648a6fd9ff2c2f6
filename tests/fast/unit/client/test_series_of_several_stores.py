"""Totals and groups as the client has them: decoded, and as rows of a table."""

from decimal import Decimal

import msgspec
import pytest

from galatea.client.answers import Answer, StoreCounts
from galatea.client.connection import Call, Ids, store_ids
from galatea.client.operations import metric

ANSWER = {
    "metric": "net_sales",
    "unit": "money",
    "grain": "day",
    "timezone": None,
    "currency": "EUR",
    "series": [
        {
            "group": {"region": "north"},
            "timezone": None,
            "dimensions": {},
            "stores": {"counted": 2, "missing": 1, "poor": 0},
            "points": [
                {"start": "2026-03-06T23:00:00Z", "date": "2026-03-07", "value": 9.50, "final": True, "share": 95.0}
            ],
        },
        {
            "group": {"region": None},
            "other": True,
            "timezone": "Europe/Bratislava",
            "dimensions": {},
            "points": [{"start": "2026-03-06T23:00:00Z", "date": "2026-03-07", "value": 0.50, "final": False}],
        },
    ],
    "as_of": {
        "publication": 3,
        "cut": "2026-03-08T00:00:00Z",
        "speed_as_of": None,
        "waiting_for_batch": 0,
        "layers": ["batch", "speed"],
    },
}


def answer() -> Answer:
    return msgspec.json.decode(msgspec.json.encode(ANSWER), type=Answer)


def test_a_series_of_several_stores_has_its_group_and_how_many_stores_it_adds_up() -> None:
    north, other = answer().series

    assert (north.store, north.group) == (None, {"region": "north"})
    assert north.stores == StoreCounts(counted=2, missing=1, poor=0)
    assert (other.group, other.other, other.stores) == ({"region": None}, True, None)


def test_groups_counts_and_shares_are_columns() -> None:
    table = answer().to_pandas()

    assert list(table["group_region"]) == ["north", None]
    assert list(table["value"]) == [Decimal("9.5"), Decimal("0.5")]
    assert list(table["other"]) == [False, True]
    assert table["stores_missing"][0] == 1
    assert table["share"][0] == 95


@pytest.mark.parametrize(
    ("ids", "sent"),
    [(7, ["7"]), ("a,b", ["a\\,b"]), ([7, "8"], ["7", "8"]), ("a\\", ["a\\\\"]), ("a\\b", ["a\\b"])],
)
def test_store_ids_are_sent_as_the_api_reads_them(ids: Ids, sent: list[str]) -> None:
    assert store_ids(ids) == sent


def test_a_query_may_name_a_range_instead_of_its_ends() -> None:
    call = next(
        metric("net_sales", range="last_7_days", by=["total", "sku"], top=20, share=True, category="Food/Dairy")
    )

    assert isinstance(call, Call)
    assert set(call.query) == {
        ("category", "Food/Dairy"),
        ("by", "total"),
        ("by", "sku"),
        ("top", "20"),
        ("share", "true"),
        ("range", "last_7_days"),
    }
