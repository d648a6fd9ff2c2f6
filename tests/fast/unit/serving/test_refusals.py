"""Every question that cannot be answered gets a problem that says what and what to do; never a smaller number."""

from zoneinfo import ZoneInfo

import pytest
from structlog.testing import capture_logs

from master_dataset.errors import RangeTooLongError
from master_dataset.registry.stores import Store, currency
from serving_layer.limits import Ranges
from serving_layer.query.resolve import query_span
from serving_layer.timeline import Grain
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from views.core.local_time import BusinessDays

NET = "/v1/metrics/net_sales"
DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    return Asking(world)


@pytest.mark.parametrize(
    ("path", "changed", "status", "code"),
    [
        ("/v1/metrics/net_sale", {}, 404, "unknown_name"),
        ("/v1/views/sale/cells", {}, 404, "unknown_name"),
        (NET, {"store": "2"}, 404, "unknown_name"),
        (NET, {"by": "colour"}, 404, "unknown_name"),
        (NET, {"timezone": "Mars/Olympus"}, 422, "bad_question"),
        (NET, {"timezone": "../etc/passwd"}, 422, "bad_question"),
        (NET, {"from_": "2026-11-21T00:00:00"}, 422, "bad_question"),
        (NET, {"from_": "tomorrow"}, 422, "bad_question"),
        (NET, {"from_": "0001-01-01"}, 422, "bad_question"),
        (NET, {"to": "9999-12-31"}, 422, "bad_question"),
        (NET, {"to": "2026-11-21"}, 422, "bad_question"),
        (NET, {"grain": "minute"}, 422, "bad_question"),
        (NET, {"grian": "day"}, 422, "unknown_argument"),
        (NET, {"grain": "hour", "to": "2028-11-22"}, 422, "range_too_long"),
        (NET, {"grain": "year", "to": "2040-11-22"}, 422, "range_too_long"),
        (NET, {"format": "xls"}, 422, "bad_question"),
        (NET, {"format": "csv", "context": "holidays"}, 422, "not_available"),
        (NET, {"format": "csv", "comp": "true"}, 422, "not_available"),
        (NET, {"limit": 0}, 422, "bad_question"),
        (NET, {"limit": 101}, 422, "bad_question"),
        (NET, {"after": "2"}, 422, "bad_question"),
        (NET, {"after": "WzFd"}, 422, "bad_question"),
        (NET, {"after": "WyIxIiwiMiJd"}, 422, "bad_question"),
        (NET, {"after": "%"}, 422, "bad_question"),
        ("/v1/metrics/net_sales,no_such_metric", {}, 404, "unknown_name"),
        ("/v1/metrics/net_sales,", {}, 422, "bad_question"),
        ("/v1/metrics/net_sales,net_sales", {}, 422, "bad_question"),
        ("/v1/metrics/" + ",".join(f"metric_{number}" for number in range(11)), {}, 422, "too_many_metrics"),
        ("/v1/views/sales/cells", {"format": "xls"}, 422, "bad_question"),
        (NET, {"compare": "last_week"}, 404, "unknown_name"),
        (NET, {"compare": ""}, 404, "unknown_name"),
        (NET, {"compare": "holiday:Good Friday"}, 422, "country_unknown"),
        (NET, {"context": "moon"}, 404, "unknown_name"),
        ("/v1/metrics/productivity", {"grain": "day"}, 422, "bad_question"),
        ("/v1/metrics/coverage", {"by": "source"}, 422, "bad_question"),
        (NET, {"hours": "closed"}, 422, "bad_question"),
        (NET, {"store": [str(number) for number in range(101)]}, 422, "too_many_stores"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    asking: Asking, path: str, changed: dict[str, object], status: int, code: str
) -> None:
    problem = asking.refusal(path, **DAY | changed)

    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["title"]
    assert problem["detail"]


def test_a_missing_bound_is_named(asking: Asking) -> None:
    problem = asking.refusal(NET, store="1", to="2026-11-22")

    assert (problem["code"], problem["title"]) == ("missing_argument", "`from` is missing.")


def test_a_range_too_long_names_the_grain_that_fits(asking: Asking) -> None:
    problem = asking.refusal(NET, **DAY | {"grain": "15m", "to": "2028-01-01"})

    assert "grain=day" in problem["detail"]


def test_a_range_of_exactly_400_days_is_answered_and_401_days_are_not(asking: Asking) -> None:
    longest = {"store": "1", "grain": "hour", "from_": "2026-01-01T00:00:00Z"}

    body = asking.body(NET, **longest, to="2027-02-05T00:00:00Z")

    assert len(body["series"][0]["points"]) == 400 * 24
    assert asking.refusal(NET, **longest, to="2027-02-06T00:00:00Z")["code"] == "range_too_long"


@pytest.mark.parametrize(("grain", "most"), [("15m", 2), ("hour", 2), ("day", 3), ("total", 3)])
def test_the_longest_range_is_set_by_the_deployment(grain: Grain, most: int) -> None:
    days, ranges = BusinessDays.of(Store(id="1", timezone="UTC"), ZoneInfo("UTC")), Ranges(fine_days=2, coarse_days=3)

    span = query_span("2026-11-01", f"2026-11-{1 + most:02}", days, grain, ranges)

    assert span.end - span.start == most * 86_400
    with pytest.raises(RangeTooLongError, match=f"at most {most} days"):
        query_span("2026-11-01", f"2026-11-{2 + most:02}", days, grain, ranges)


def test_paths_and_methods_that_do_not_exist_are_problems_too(asking: Asking) -> None:
    assert asking.refusal("/v1/nothing")["code"] == "not_found"
    assert asking.refusal(NET, method="DELETE")["code"] == "method_not_allowed"


def test_a_store_that_is_not_registered_is_seen_by_the_operator_only() -> None:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store="77"), "2026-11-21T09:00:01Z")
    asking = Asking(world)
    question = DAY | {"store": "77"}

    assert asking.refusal(NET, **question)["code"] == "unknown_name"
    assert asking.refusal(NET, **question, key=asking.keys.make("default", "read"))["code"] == "unknown_name"
    assert asking.body(NET, **question, key=OPERATOR_KEY)["series"][0]["points"][0]["value"] == 1


def test_stores_of_two_currencies_answer_with_a_currency_each() -> None:
    stores = [Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", currency=currency("JPY"))]
    world = World(*stores)
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.receive(receipt("2026-11-21T09:00:00Z", minor=700, store="2"), "2026-11-21T09:00:01Z")
    asking = Asking(world)
    both = DAY | {"store": ["1", "2"]}

    each = asking.body(NET, **both)
    one = asking.body(NET, **(DAY | {"store": "2"}))
    apart = asking.body(NET, **both, by="currency")
    counted = asking.body("/v1/metrics/total_transactions_count", **both)

    assert each["currency"] is None
    assert [(series["store"], series["currency"], series["points"][0]["value"]) for series in each["series"]] == [
        ("1", "EUR", 1.0),
        ("2", "JPY", 7),
    ]
    assert (one["currency"], "currency" in one["series"][0]) == ("JPY", False)
    assert [(series["dimensions"], series["points"][0]["value"]) for series in apart["series"]] == [
        ({"currency": "EUR"}, 1.0),
        ({"currency": "JPY"}, 7),
    ]
    assert [series["points"][0]["value"] for series in counted["series"]] == [1, 1]


def test_an_unexpected_error_shows_an_id_and_no_trace_and_is_one_log_event(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(asking.answers.readers.published, "pointer", fail)

    with capture_logs() as logged:
        response = asking.response(NET, **DAY)

    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    [event] = [each for each in logged if each["event"] == "serving.failed"]
    assert response.json()["detail"] == f"Give the operator this id: `{event['id']}`."
    assert "secret" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


def test_browsers_get_headers_to_obey(asking: Asking) -> None:
    headers = asking.response("/healthz").headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
