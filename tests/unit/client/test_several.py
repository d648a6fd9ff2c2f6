"""Several metrics in one question, against the shape that the API promises."""

import httpx
import pytest

from tests.world.calling import answering

AS_OF = {"publication": 3, "cut": "2026-11-18T00:00:00Z", "speed_as_of": None, "layers": ["batch"]}


def told(metric: str, unit: str, value: float) -> dict[str, object]:
    point = {"start": "2026-11-16T23:00:00Z", "value": value, "final": True}
    series = [{"store": "1", "timezone": "Europe/Bratislava", "dimensions": {}, "points": [point]}]
    as_of = AS_OF | {"waiting_for_batch": 2}
    return {"metric": metric, "unit": unit, "grain": "day", "timezone": None, "series": series, "as_of": as_of}


def door(request: httpx.Request) -> httpx.Response:
    assert request.url.raw_path.startswith(b"/v1/metrics/net_sales,conversion_rate?from=2026-11-17&to=2026-11-18")
    answers = [told("net_sales", "money", 2.5), told("conversion_rate", "percent", 24.5)]
    return httpx.Response(200, json={"answers": answers, "as_of": AS_OF, "next": "token"})


def test_several_metrics_are_of_one_moment() -> None:
    asked = answering(door)

    answers = asked.several(["net_sales", "conversion_rate"], start="2026-11-17", end="2026-11-18")

    assert [answer.metric for answer in answers.answers] == ["net_sales", "conversion_rate"]
    assert str(answers["conversion_rate"].points[0].value) == "24.5"
    assert (answers.as_of.publication, answers.as_of.waiting_for_batch, answers.next) == (3, None, "token")
    assert answers["net_sales"].as_of.waiting_for_batch == 2
    assert [row["metric"] for row in answers.to_rows()] == ["net_sales", "conversion_rate"]


def test_a_metric_that_was_not_asked_for_is_a_key_error() -> None:
    answers = answering(door).several(["net_sales", "conversion_rate"], start="2026-11-17", end="2026-11-18")

    with pytest.raises(KeyError):
        answers["traffic_in"]
