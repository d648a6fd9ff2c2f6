"""A question that comes again word for word is not read again, but everything is looked at that could change it."""

from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from master_dataset.registry.stores import Store
from serving_layer.keys.authenticator import Authenticator
from serving_layer.keys.rates import RateLimiter
from serving_layer.query.resolve import MetricsRequest
from tests.support import World, receipt
from tests.support.world_api import Asking

NET = "/v1/metrics/net_sales"
DAY = {"from_": "2026-11-21", "to": "2026-11-22"}
CELLS = "/v1/views/sales/cells"


class AskingRecent(Asking):
    """What an answer rests on is as it was at the first question, unless newer is asked for."""

    recent_seconds = 1e9


@pytest.fixture
def world() -> World:
    world = World(*(Store(id=id_, timezone="UTC", tenant=tenant) for id_, tenant in (("1", "default"), ("2", "acme"))))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[MetricsRequest]:
    """The requests that the route has parsed."""
    from serving_layer.api import metrics  # noqa: PLC0415 - what it calls is replaced

    found: list[MetricsRequest] = []
    whole = metrics.MetricQuery.to_request

    def to_request(self: metrics.MetricQuery, metric: str) -> MetricsRequest:
        found.append(whole(self, metric))
        return found[-1]

    monkeypatch.setattr(metrics.MetricQuery, "to_request", to_request)
    return found


def value(body: dict[str, object]) -> object:
    return body["series"][0]["points"][0]["value"]  # type: ignore[index]


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_the_same_question_has_the_same_response_and_is_read_once(
    world: World, read: list[MetricsRequest], format_: str
) -> None:
    asking = Asking(world)

    first, again = (asking.response(NET, **DAY, format=format_) for _ in range(2))

    assert (again.status_code, again.content, dict(again.headers)) == (200, first.content, dict(first.headers))
    assert len(read) == 1


def test_another_question_is_another_question(world: World, read: list[MetricsRequest]) -> None:
    asking = Asking(world)

    bodies = [asking.body(NET, **DAY, grain=grain) for grain in ("day", "hour", "day", "hour")]

    assert [body["grain"] for body in bodies] == ["day", "hour", "day", "hour"]
    assert len(read) == 2


def test_an_event_a_publication_and_a_registry_each_make_another_answer(world: World) -> None:
    asking = Asking(world)
    shown = [asking.body(NET, **DAY)]

    world.receive(receipt("2026-11-21T09:05:00Z", minor=50), "2026-11-21T10:01:00Z")
    shown.append(asking.body(NET, **DAY))
    world.rebuild("2026-11-21T10:10:00Z")
    shown.append(asking.body(NET, **DAY))
    world.stores["3"] = Store(id="3", timezone="UTC", tenant="default")
    shown.append(asking.body(NET, **DAY))

    assert [value(body) for body in shown] == [1.0, 1.5, 1.5, 1.5]
    assert [body["as_of"]["publication"] for body in shown] == [1, 1, 2, 2]
    assert [len(body["series"]) for body in shown] == [1, 1, 1, 2]


def test_a_caller_who_has_the_answer_gets_304_even_if_its_body_was_never_requested(
    world: World, read: list[MetricsRequest]
) -> None:
    tag = Asking(world).response(NET, **DAY).headers["etag"]
    asking = Asking(world)  # another process: it has never made the body
    read.clear()

    known = [asking.response(NET, **DAY, known=tag) for _ in range(2)]
    whole = asking.response(NET, **DAY)
    then = asking.response(NET, **DAY, known=f'W/"other", {tag}')

    assert [each.status_code for each in (*known, whole, then)] == [304, 304, 200, 304]
    assert {each.headers["etag"] for each in (*known, whole, then)} == {tag}
    assert "content-type" not in then.headers
    assert len(read) == 2


def test_any_answer_at_all_is_the_routes_to_say(world: World) -> None:
    asking = Asking(world)

    said = [asking.response(NET, **DAY, known="*").status_code for _ in range(2)]

    assert said == [304, 304]


def test_what_is_kept_for_one_tenant_is_not_shown_to_another(world: World) -> None:
    asking = Asking(world)
    acme = asking.keys.make("acme", "read")

    shown = [asking.body(NET, **DAY, key=key)["series"][0]["store"] for key in (None, acme, None, acme)]

    assert shown == ["1", "2", "1", "2"]


def test_a_key_that_was_revoked_opens_no_answer_that_is_kept(world: World) -> None:
    asking = Asking(world)
    key = asking.keys.make("default", "read")
    asking.body(NET, **DAY, key=key)

    asking.keys.kept.clear()

    assert asking.refusal(NET, **DAY, key=key)["status"] == 401


def test_every_question_counts_once_towards_the_rate_of_its_key_kept_or_not(world: World) -> None:
    asking = Asking(world)
    asking.app.state.authenticator = Authenticator(asking.app.state.authenticator.keys, RateLimiter(3, 3))

    said = []
    for minor in (1, 2, 3, 4):  # each time the answer is another one, so the question is looked up and then read
        world.receive(receipt("2026-11-21T09:05:00Z", minor=minor), f"2026-11-21T10:01:0{minor}Z")
        said.append(asking.response(NET, **DAY).status_code)

    assert said == [200, 200, 200, 429]


def test_a_kept_answer_counts_under_the_pattern_of_its_route(world: World) -> None:
    asking = Asking(world)
    labels = {"route": "/v1/views/{view}/cells", "status": "200"}
    before = REGISTRY.get_sample_value("galatea_request_seconds_count", labels) or 0

    for _ in range(3):
        asking.body(CELLS, **DAY)

    assert (REGISTRY.get_sample_value("galatea_request_seconds_count", labels) or 0) - before == 3


@pytest.mark.parametrize("path", [NET, CELLS])
def test_whoever_wants_no_answer_of_a_moment_ago_says_so(world: World, path: str) -> None:
    asking = AskingRecent(world)
    before = asking.response(path, **DAY)

    world.receive(receipt("2026-11-21T09:05:00Z", minor=50), "2026-11-21T10:01:00Z")
    recent = asking.response(path, **DAY)
    newest = asking.newest(path, **DAY)

    assert recent.content == before.content
    assert newest.content != before.content
    assert asking.response(path, **DAY).content == newest.content


@pytest.mark.parametrize("path", ["/v1/publications", "/v1/freshness"])
def test_a_caller_who_saw_a_publication_gets_no_answer_from_the_one_before(world: World, path: str) -> None:
    asking = AskingRecent(world)
    asking.body(NET, **DAY)
    world.rebuild("2026-11-21T10:10:00Z")

    asking.body(path)

    assert asking.body(NET, **DAY)["as_of"]["publication"] == 2


def test_a_question_that_is_refused_is_refused_again_in_the_same_words(world: World) -> None:
    asking = Asking(world)

    refusals = [asking.refusal(NET, **DAY, store="9") for _ in range(3)]

    assert [each["code"] for each in refusals] == ["unknown_name"] * 3


def test_a_kept_answer_is_not_given_without_the_layer_that_is_part_of_it(world: World) -> None:
    asking = Asking(world)
    asking.body(NET, **DAY)

    world.pointer = replace(world.pointer, generation=0)

    assert asking.refusal(NET, **DAY)["code"] == "speed_unavailable"
