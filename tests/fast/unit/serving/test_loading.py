"""Before the first publication, points that nothing is known of are null; every other value is what it would be."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_layer.store.snapshot import ReadSnapshot
from tests.support.chains import FIRST, LAST, Chain, chains
from tests.support.examples import examples
from tests.support.world_api import Asking

QUESTION = {"from_": str(FIRST), "to": str(LAST)}
METRICS = ("net_sales", "total_transactions_count", "traffic_in", "conversion_rate")


def points(body: dict[str, Any]) -> list[tuple[Any, set[str]]]:
    """The value and flags of each point, series by series."""
    return [(point["value"], set(point.get("flags", ()))) for series in body["series"] for point in series["points"]]


@settings(max_examples=examples(300), deadline=None)
@given(
    chain=chains(),
    metric=st.sampled_from(METRICS),
    by=st.sampled_from(["store", "total"]),
    grain=st.sampled_from(["hour", "day", "total"]),
)
def test_only_what_would_be_zero_or_unknown_is_loading(chain: Chain, metric: str, by: str, grain: str) -> None:
    path, question = f"/v1/metrics/{metric}", {**QUESTION, "by": by, "grain": grain}
    said = Asking(chain.world()).body(path, **question)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadSnapshot, "is_loading", False)
        counted = Asking(chain.world()).body(path, **question)

    assert ("loading" in said["as_of"]) == (chain.cut is None)
    for (value, flags), (known, others) in zip(points(said), points(counted), strict=True):
        assert flags - {"loading"} == others
        if "loading" in flags:
            assert chain.cut is None
            assert (value, known in {0, None}) == (None, True)
        else:
            assert value == known
