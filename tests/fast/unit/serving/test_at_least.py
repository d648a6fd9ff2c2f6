"""Answers that contain what a token names, or that are as new as demanded."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx
import pytest

from serving_layer.service import Clocks
from serving_layer.store.at_least import MOST_WAITING, MOST_WAITING_OF_TENANT, AtLeast, Demand, Opening
from serving_layer.store.snapshot import ReadSnapshot
from tests.support import World, receipt
from tests.support.world_api import Asking, Body
from views.control.token import EventToken, TopicEnds, topic_tag

NET = "/v1/metrics/net_sales"
DAY: dict[str, Any] = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
AT = "2026-11-21T09:00:01Z"
SALE = receipt("2026-11-21T09:00:00Z", minor=100)
TOPIC = "pos_transactions"


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def posted(asking: Asking, said: bytes = SALE, at: str = AT, **headers: str) -> str:
    """The token of an event that the broker has received, and nobody has read."""
    asking.clock_us = ms(at) * 1000
    response = asking.sent(said, **headers)
    assert response.status_code == 202, response.text
    return response.headers["galatea-token"]


def value(body: Body) -> object:
    [series] = body["series"]
    [point] = series["points"]
    return point["value"]


def ask(asking: Asking, token: str, **more: Any) -> httpx.Response:
    return asking.response(NET, at_least=token, **DAY | more)


class Waiting(Asking):
    """Somebody who waits sees what happens meanwhile: `then` is called before each further look."""

    step = 1
    then: Callable[[], None] = staticmethod(lambda: None)

    def clocks(self, monotonic: Callable[[], float]) -> Clocks:
        async def sleep(_: float) -> None:
            self.then()
            await asyncio.sleep(0)

        return Clocks(monotonic, self.world.now, sleep)


def test_an_answer_contains_what_was_sent_or_is_refused_with_how_far_it_is() -> None:
    asking = Asking(World())
    token = posted(asking)

    refused = ask(asking, token)
    asking.world.receive(SALE, AT)
    answered = ask(asking, token)

    body = refused.json()
    assert (refused.status_code, body["code"], refused.headers["retry-after"]) == (503, "not_yet", "2")
    assert body["progress"]["positions"] == [{"topic": TOPIC, "partition": 0, "position": 0, "needed": 1}]
    assert (answered.status_code, value(answered.json())) == (200, 1.0)


def test_a_token_may_come_in_the_header_too_and_both_count() -> None:
    asking = Asking(World())
    first, second = posted(asking), posted(asking, receipt("2026-11-21T09:00:02Z", minor=100, number=2))
    asking.world.receive(SALE, AT)

    def status(header: str, **argument: str) -> int:
        query = {name.rstrip("_"): each for name, each in (DAY | argument).items()}
        return asking.request("GET", NET, params=query, headers={"Galatea-At-Least": header}).status_code

    assert [status(first), status(second), status(first, at_least=second), status(f"{first}, {second}")] == [
        200,
        503,
        503,
        503,
    ]


def test_a_repeated_request_is_not_answered_from_the_cache_of_one_without_a_demand() -> None:
    asking = Asking(World())
    query = {name.rstrip("_"): each for name, each in DAY.items()}
    assert [asking.request("GET", NET, params=query).status_code for _ in range(2)] == [200, 200]

    demanded = asking.request("GET", NET, params=query, headers={"Galatea-At-Least": posted(asking)})

    assert demanded.status_code == 503


def test_who_waits_gets_the_answer_as_soon_as_speed_has_read_that_far() -> None:
    asking = Waiting(World())
    token, looks = posted(asking), list[int]()

    def then() -> None:
        looks.append(1)
        if len(looks) == 3:
            asking.world.receive(SALE, AT)

    asking.then = then

    response = ask(asking, token)

    assert (response.status_code, len(looks)) == (200, 3)
    assert value(response.json()) == 1.0


def test_what_is_contained_already_costs_no_question_to_kafka() -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.world.receive(SALE, AT)
    asked = asking.topics.asked

    assert ask(asking, token).status_code == 200
    assert asking.topics.asked == asked


def test_a_publication_contains_what_was_received_before_its_cut_even_without_speed() -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.world.receive(SALE, AT)
    asking.world.rebuild("2026-11-21T09:00:00Z")
    asking.world.pointer = replace(asking.world.pointer, generation=0)

    before = ask(asking, token, partial="true")
    asking.world.rebuild("2026-11-21T09:05:00Z")
    after = ask(asking, token, partial="true")

    assert (before.status_code, before.json()["code"]) == (503, "not_yet")
    assert (after.status_code, value(after.json())) == (200, 1.0)


def test_an_event_that_is_too_old_for_speed_is_contained_once_it_is_published() -> None:
    asking = Asking(World())
    old = receipt("2026-11-20T09:00:00Z", minor=100)
    token = posted(asking, old)
    asking.world.receive(old, AT)
    days = {"from_": "2026-11-20", "to": "2026-11-21"}

    before = ask(asking, token, **days)
    asking.world.rebuild("2026-11-21T09:05:00Z")
    after = ask(asking, token, **days)

    assert before.status_code == 503
    assert before.json()["progress"] == {
        "cut": "1970-01-01T00:00:00Z",
        "cut_needed": "2026-11-21T09:00:01.001Z",
        "positions": [],
    }
    assert (after.status_code, value(after.json())) == (200, 1.0)


def test_a_duplicate_is_contained_once_it_was_read() -> None:
    asking = Asking(World())
    posted(asking)
    again = posted(asking)
    asking.world.receive(SALE, AT)
    assert ask(asking, again).status_code == 503

    asking.world.receive(SALE, AT)

    assert value(ask(asking, again).json()) == 1.0


def test_an_answer_has_a_token_of_what_it_contains_and_no_other_process_answers_with_less() -> None:
    ahead, behind = World(), World()
    ahead.receive(SALE, AT)
    one, lagging = Asking(ahead), Asking(behind)
    lagging.topics.ends = {TOPIC: {0: 1}}
    token = ask(one, "").headers["galatea-token"]

    assert ask(one, token).status_code == 200
    assert ask(lagging, token).json()["code"] == "not_yet"
    behind.receive(SALE, AT)
    assert ask(lagging, token).headers["galatea-token"] == token


def test_an_answer_after_a_publication_needs_its_cut() -> None:
    world = World()
    world.receive(SALE, AT)
    world.rebuild("2026-11-21T09:00:00Z")
    world.rebuild("2026-11-21T09:05:00Z")
    token = ask(Asking(world), "").headers["galatea-token"]
    world.restore(1)
    asking = Asking(world)
    asking.topics.ends = {TOPIC: {0: 1}}

    refused = ask(asking, token).json()

    assert refused["progress"]["cut_needed"] == "2026-11-21T09:05:00Z"


def test_tokens_of_sent_events_add_up_over_the_requests_that_bring_the_former_one() -> None:
    asking = Asking(World())
    first = posted(asking)

    both = EventToken.of_text(posted(asking, at="2026-11-21T09:00:05Z", galatea_at_least=first))

    assert (both.first_ms, both.last_ms) == (ms(AT), ms("2026-11-21T09:00:05Z"))
    assert dict(both.topics[TOPIC].ends) == {0: 2}


def test_without_an_accepted_event_there_is_no_token_of_its_own() -> None:
    asking = Asking(World())

    response = asking.sent(b"7", galatea_at_least="1~5~~")

    assert (response.status_code, response.json()["token"]) == (422, None)
    assert response.headers["galatea-token"] == "1~5~~"


def test_events_are_accepted_while_kafka_does_not_say_which_topic_it_is_but_have_no_token() -> None:
    asking = Asking(World())
    asking.topics.is_away = True

    response = asking.sent(SALE)

    assert (response.status_code, response.json()["token"]) == (202, None)
    assert "galatea-token" not in response.headers


def refusal(asking: Asking, token: EventToken | str, **more: object) -> Body:
    text = token if isinstance(token, str) else token.text()
    found: Body = asking.refusal(NET, at_least=text, **DAY | more)
    return found


def of_topic(partition: int = 0, end: int = 1, topic: str = TOPIC, id_: str = "an id that Kafka gave") -> EventToken:
    return EventToken({topic: TopicEnds(topic_tag(id_), {partition: end})}, ms(AT), ms(AT))


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("nonsense", "`at_least` is no token"),
        ("1~e677d21fdc00~~", "an instant in the far future"),
        ("1~~fffffffffffffff~", "an instant in the far future"),
        (of_topic(topic="elsewhere"), "`elsewhere`, which is not that of a source"),
        (of_topic(id_="another"), "another topic `pos_transactions`"),
        (of_topic(partition=7), "partition 7 of `pos_transactions`, which has 1 partitions"),
        (of_topic(end=2**50), "which ends at 0"),
    ],
)
def test_a_token_that_is_broken_or_of_something_else_is_refused_by_name(token: EventToken | str, says: str) -> None:
    asking = Waiting(World())

    found = refusal(asking, token)

    assert (found["status"], found["code"]) == (422, "bad_question")
    assert says in found["title"]


def test_a_token_that_is_too_long_is_refused() -> None:
    assert refusal(Asking(World()), "1" * 9000)["status"] == 422


def test_after_the_topics_were_created_again_a_token_is_refused_at_once() -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.topics.ids = dict.fromkeys(asking.topics.ids, "another id")
    asking.world.receive(SALE, AT)

    assert "created again" in refusal(asking, token)["title"]


def test_a_generation_that_does_not_say_whose_positions_it_has_proves_nothing() -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.world.receive(SALE, AT)
    asking.topics.recorded = {}

    assert ask(asking, token).status_code == 503


@pytest.mark.parametrize(("opened", "status"), [(None, 503), (ms(AT) + 1, 503), (ms(AT), 200)])
def test_in_a_partition_that_opened_later_an_event_counts_as_received_then(opened: int | None, status: int) -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.world.receive(SALE, AT)
    asking.topics.grown = [Opening(0, 1, opened)]

    assert ask(asking, token).status_code == status


def test_while_kafka_does_not_answer_who_waits_hears_that_it_is_not_there_yet() -> None:
    asking = Waiting(World())
    token = posted(asking)
    asking.topics.is_away = True

    assert ask(asking, token).json()["code"] == "not_yet"


# Past publications


def test_a_publication_that_was_named_contains_it_or_never_will() -> None:
    asking = Asking(World())
    token = posted(asking)
    asking.world.receive(SALE, AT)
    asking.world.rebuild("2026-11-21T09:00:00Z")
    asking.world.rebuild("2026-11-21T09:05:00Z")

    assert "never will" in refusal(asking, token, as_of=1)["title"]
    assert value(ask(asking, token, as_of=2).json()) == 1.0
    assert "Leave one of them out" in refusal(asking, "", as_of=2, max_staleness="5s")["detail"]


# How old an answer may be


def test_an_answer_is_as_new_as_demanded_if_speed_has_read_to_the_ends_of_that_time() -> None:
    asking = Waiting(World())
    asking.world.receive(SALE, AT)
    asking.topics.ends = {TOPIC: {0: 1}}
    assert asking.response(NET, max_staleness="0s", **DAY).status_code == 200

    asking.topics.ends = {TOPIC: {0: 2}}
    late = asking.response(NET, max_staleness="0s", **DAY)
    still_new = asking.response(NET, max_staleness="1h", **DAY)

    assert (late.status_code, late.json()["code"]) == (503, "not_yet")
    assert late.json()["progress"]["positions"] == [{"topic": TOPIC, "partition": 0, "position": 1, "needed": 2}]
    assert still_new.status_code == 200
    assert still_new.headers["galatea-token"]


def test_without_kafka_nobody_knows_how_old_an_answer_is() -> None:
    asking = Waiting(World())
    asking.topics.is_away = True

    assert asking.response(NET, max_staleness="5s", **DAY).json()["code"] == "broker_unavailable"


@pytest.mark.parametrize("text", ["5", "s", "-1s", "5 s", "1d", "1e3s", "٣s"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    found = Asking(World()).refusal(NET, max_staleness=text, **DAY)

    assert (found["code"], "max_staleness" in found["title"]) == ("bad_question", True)


# All routes


@pytest.mark.parametrize(
    "path",
    [NET, "/v1/views/sales/cells", "/v1/sensors", "/v1/index/net_sales", "/v1/metrics/net_sales,sku_net_sales"],
)
def test_every_question_about_events_knows_tokens(path: str) -> None:
    asking = Asking(World())
    token = posted(asking)

    refused = asking.response(path, at_least=token, **DAY)
    asking.world.receive(SALE, AT)
    answered = asking.response(path, at_least=token, **DAY)

    assert (refused.json()["code"], answered.status_code) == ("not_yet", 200)
    assert answered.headers["galatea-token"]
    known = asking.response(path, at_least=token, known=answered.headers["etag"], **DAY)
    assert (known.status_code, known.headers["galatea-token"]) == (304, answered.headers["galatea-token"])


def test_a_live_answer_waits_for_nothing() -> None:
    found = Asking(World()).refusal("/v1/live/net_sales", max_staleness="5s", **DAY)

    assert found["code"] == "bad_question"


@pytest.mark.parametrize(
    ("tenants", "said"),
    [
        (["acme"] * (MOST_WAITING_OF_TENANT + 1) + ["beta"], "of this tenant"),
        ([str(number // MOST_WAITING_OF_TENANT) for number in range(MOST_WAITING + 1)], f"{MOST_WAITING} requests "),
    ],
)
def test_only_so_many_requests_wait_at_once_and_a_tenant_leaves_places_to_others(tenants: list[str], said: str) -> None:
    asking = Asking(World())
    waits = AtLeast(asking.topics, [TOPIC], 1.0, lambda: 0.0)
    snapshot = ReadSnapshot(replace(asking.world.pointer, generation=1), (), ())
    demand = Demand(EventToken.of_text(posted(asking)))
    asleep, all_asleep = [], asyncio.Event()

    async def again() -> ReadSnapshot:
        return snapshot

    async def hang(_: float) -> None:
        asleep.append(1)
        if len(asleep) == len(tenants) - 1:
            all_asleep.set()
        await asyncio.Event().wait()

    async def crowd() -> Any:
        sleep: Callable[[float], Awaitable[None]] = hang
        waiting = [asyncio.ensure_future(waits.wait(demand, snapshot, again, sleep, each)) for each in tenants]
        done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await all_asleep.wait()
        for each in others:
            each.cancel()
        [first] = done
        return first.exception()

    refused = asyncio.run(crowd())
    assert refused.code == "too_busy"
    assert said in refused.message
