"""Wrong keys are counted, logged without their secret, and slowed; valid keys are not slowed by them."""

import asyncio

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from master_dataset.registry.stores import Store
from serving_layer.errors import RateLimitedError
from serving_layer.keys import throttle
from serving_layer.keys.authenticator import MAX_KEY_CHARACTERS, Authenticator
from serving_layer.keys.key import Key
from serving_layer.keys.throttle import (
    LOOKUPS_AT_ONCE,
    LOOKUPS_WAITING,
    MAX_COUNTED,
    LookupThrottle,
    WrongKeyThrottle,
    loggable_id,
)
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

NET = "/v1/metrics/net_sales"
DAY = {"store": "12", "range": "today", "by": "total"}
LIMIT = 3


class Clock:
    """Monotonic seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def asking(clock: Clock) -> Asking:
    """A process that allows three wrong keys a minute."""
    world = World(Store(id="12", timezone="UTC"))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store="12"), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    asking = Asking(world)
    authenticator: Authenticator = asking.app.state.authenticator
    object.__setattr__(authenticator, "throttle", WrongKeyThrottle(LIMIT, clock=clock))
    return asking


def refusals(code: str) -> float:
    return REGISTRY.get_sample_value("galatea_refusals_total", {"code": code}) or 0


def logins(outcome: str) -> float:
    return REGISTRY.get_sample_value("galatea_page_logins_total", {"outcome": outcome}) or 0


def test_wrong_keys_over_rest_are_slowed_and_valid_ones_are_not(asking: Asking, clock: Clock) -> None:
    key, wrong_before, slowed_before = asking.keys.make("default"), refusals("key_wrong"), refusals("too_often")

    said = [asking.response(NET, key=f"wrong {n}", **DAY).status_code for n in range(LIMIT + 2)]
    clock.now += 20.5
    slowed = asking.response(NET, key="wrong", **DAY)

    assert said == [401] * LIMIT + [429] * 2
    assert refusals("key_wrong") - wrong_before == LIMIT
    assert refusals("too_often") - slowed_before == 3
    assert slowed.status_code == 429
    assert slowed.headers["retry-after"] == "40"
    assert asking.response(NET, key=key, **DAY).status_code == 200
    assert asking.response(NET, **DAY).status_code == 200
    clock.now += 40
    assert asking.response(NET, key="wrong", **DAY).status_code == 401


def test_a_wrong_key_counts_once_also_where_the_answer_is_cached(asking: Asking) -> None:
    asking.response(NET, **DAY)
    asking.response(NET, **DAY)

    said = [asking.response(NET, key=f"wrong {n}", **DAY).status_code for n in range(LIMIT + 1)]

    assert said == [401] * LIMIT + [429]


def test_wrong_keys_are_slowed_where_a_body_is_sent(asking: Asking) -> None:
    said = [asking.response("/v1/webhooks", method="POST", key="wrong", said={}).status_code for _ in range(LIMIT + 1)]

    assert said == [401] * LIMIT + [429]


def test_the_log_has_the_address_and_the_id_and_never_the_key(asking: Asking) -> None:
    text = asking.keys.make("default")
    _, id_, secret = text.split("_", 2)
    asking.keys.kept.clear()

    with capture_logs() as logs:
        asking.response(NET, key=text, **DAY)
        asking.response(NET, key=f"galatea_{secret}_x", **DAY)
        asking.response(NET, key="a guess", **DAY)
        asking.response(NET, key="a guess", **DAY)

    refused = [each for each in logs if each["event"] == "keys.refused"]
    assert [each["key"] for each in refused] == [id_, None, None]
    assert {each["address"] for each in refused} == {"127.0.0.1"}
    assert [each["address"] for each in logs if each["event"] == "keys.throttled"] == ["127.0.0.1"]
    assert secret not in str(logs)
    assert "a guess" not in str(logs)


def test_the_sign_in_page_slows_wrong_keys_too(asking: Asking) -> None:
    browsing, key = Browsing(asking), asking.keys.make("default")
    before = [logins("key_wrong"), logins("too_often"), logins("accepted"), refusals("key_wrong")]

    with capture_logs() as logs:
        said = [browsing.sign_in(f"wrong {n}") for n in range(LIMIT + 1)]
    opened = browsing.sign_in(key)

    assert [each.status_code for each in said] == [401] * LIMIT + [429]
    assert "<h1>Sign in</h1>" in said[-1].text
    assert "Wait a minute" in said[-1].text
    assert said[-1].headers["retry-after"] == "60"
    assert opened.status_code == 303
    after = [logins("key_wrong"), logins("too_often"), logins("accepted"), refusals("key_wrong")]
    assert [new - old for new, old in zip(after, before, strict=True)] == [LIMIT, 1, 1, LIMIT]
    assert [each["event"] for each in logs].count("keys.refused") == LIMIT
    assert "wrong 0" not in str(logs)


def test_text_that_is_too_long_for_a_key_is_not_hashed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    text = asking.keys.make("default")
    hashed: list[str] = []

    def matches(_: Key, text: str) -> bool:
        hashed.append(text)
        return False

    monkeypatch.setattr(Key, "matches", matches)

    asking.response(NET, key=text + "x" * MAX_KEY_CHARACTERS, **DAY)

    assert not hashed


def test_each_address_is_counted_on_its_own_and_an_ipv6_network_is_one(clock: Clock) -> None:
    counts = WrongKeyThrottle(1, clock=clock)
    counts.count("2001:db8::1")
    counts.count("::ffff:192.0.2.1")

    assert counts.seconds_to_wait("2001:db8::ffff:2") == 60
    assert counts.seconds_to_wait("192.0.2.1") == 60
    assert counts.seconds_to_wait("2001:db8:0:1::1") == 0
    assert counts.seconds_to_wait("::ffff:192.0.2.2") == 0
    assert counts.seconds_to_wait("") == 0


def test_users_of_an_address_are_counted_on_their_own_as_well(clock: Clock) -> None:
    counts = WrongKeyThrottle(3, 2, clock)
    counts.count("192.0.2.1", "acme")
    counts.count("192.0.2.1", "acme")

    assert counts.seconds_to_wait("192.0.2.1", "acme") == 60
    assert counts.seconds_to_wait("192.0.2.1", "beta") == 0
    assert counts.seconds_to_wait("192.0.2.2", "acme") == 0
    counts.count("192.0.2.1", "beta")
    assert counts.seconds_to_wait("192.0.2.1", "gamma") == 60


def test_the_memory_of_the_throttle_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_COUNTED", 10)
    counts = WrongKeyThrottle(2, 2, clock)
    for n in range(100):
        counts.count(f"192.0.2.{n}", "u" * 10_000)

    assert len(counts) == 20


@pytest.mark.parametrize(
    "text", ["", "a guess", "galatea", "galatea_x_y", "galatea_0123456789AB_x", "x_0123456789ab_y"]
)
def test_what_has_not_the_form_of_a_key_has_no_id(text: str) -> None:
    assert loggable_id(f"Bearer {text}") is None
    assert loggable_id("Bearer galatea_0123456789ab_secret") == "0123456789ab"


async def nothing() -> str | None:
    return None


async def something() -> str | None:
    return "found"


def limited(clock: Clock, address: str) -> LookupThrottle:
    """After three unknown secrets of an address."""
    lookups = LookupThrottle("sessions", LIMIT, clock)
    for _ in range(LIMIT):
        assert asyncio.run(lookups.look_up(address, nothing)) is None
    return lookups


def test_after_many_unknown_secrets_others_are_refused_for_a_minute_and_right_ones_are_found(clock: Clock) -> None:
    lookups = limited(clock, "192.0.2.1")

    with pytest.raises(RateLimitedError, match="unknown sessions"):
        asyncio.run(lookups.look_up("192.0.2.1", nothing))
    assert asyncio.run(lookups.look_up("192.0.2.1", something)) == "found"
    assert asyncio.run(lookups.look_up("192.0.2.2", nothing)) is None
    clock.now += throttle.WINDOW_SECONDS
    assert asyncio.run(lookups.look_up("192.0.2.1", nothing)) is None


def test_addresses_of_one_ipv6_network_are_one_and_few_networks_are_remembered(clock: Clock) -> None:
    lookups = limited(clock, "2001:db8::1")

    with pytest.raises(RateLimitedError):
        asyncio.run(lookups.look_up("2001:db8::ffff", nothing))

    async def many() -> None:
        for number in range(MAX_COUNTED + 1):
            await lookups.look_up(f"10.0.{number // 256}.{number % 256}", nothing)

    asyncio.run(many())
    assert len(lookups) == MAX_COUNTED


def test_beyond_the_limit_few_secrets_of_a_network_are_looked_up_at_once_and_few_wait(clock: Clock) -> None:
    lookups, reading = limited(clock, "192.0.2.1"), []

    async def crowd() -> list[str | BaseException | None]:
        go_on = asyncio.Event()

        async def slow() -> str | None:
            reading.append(1)
            await go_on.wait()
            return "found"

        asking = [asyncio.ensure_future(lookups.look_up("192.0.2.1", slow)) for _ in range(LOOKUPS_WAITING + 1)]
        refused, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        assert [type(each.exception()) for each in refused] == [RateLimitedError]
        assert len(reading) == LOOKUPS_AT_ONCE
        go_on.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    assert asyncio.run(crowd()).count("found") == LOOKUPS_WAITING
    assert asyncio.run(lookups.look_up("192.0.2.1", something)) == "found"
