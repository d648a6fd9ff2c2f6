"""Share links: made by keys, opened by tokens, limited, revocable; what is stored of one opens nothing."""

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store
from serving_layer.errors import (
    BadAddressError,
    RateLimitedError,
    ShareEndedError,
    TooManyAtOnceError,
    TooManySavedError,
    UnknownShareError,
)
from serving_layer.keys.authenticator import ConcurrencyLimiter
from serving_layer.keys.key import Caller
from serving_layer.keys.rates import RateLimiter
from serving_layer.saved.addresses import parse_address
from serving_layer.saved.shares import (
    KEPT_FACTOR,
    KEPT_SECONDS,
    REFRESH_SECONDS,
    STALE_SECONDS,
    WRONG_TOKENS_PER_MINUTE,
    ShareLink,
    ShareLinks,
)
from tests.support import World
from tests.support.saved import WorldShares
from tests.support.world_api import EMBEDDER, MOST_SAVED, OPERATOR_KEY, Asking

PATH = "/v1/shares"
STORE_PAGE = {"address": "/stores/12?day=2026-11-21", "hours": 24}
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
STORES = {
    "12": Store(id="12", timezone="UTC"),
    "40": Store(id="40", timezone="UTC"),
    "acme-1": Store(id="acme-1", timezone="UTC", tenant="acme"),
}
READER = Caller("a key", "default", frozenset({"read"}))


class Timed:
    """Links of two processes, with clocks that a test sets."""

    def __init__(self) -> None:
        self.now, self.seconds, self.store = NOW, 0.0, WorldShares()
        self.one, self.other = (ShareLinks(self.store, lambda: self.now, lambda: self.seconds) for _ in range(2))

    def make(self, hours: int = 24) -> tuple[str, ShareLink]:
        page = parse_address("/stores/12"), "default"
        return asyncio.run(self.one.make(READER, page, hours, "", STORES))

    def open(self, token: str, client: str = "192.0.2.1") -> ShareLink:
        return asyncio.run(self.one.open(token, client))


@pytest.fixture
def timed() -> Timed:
    return Timed()


@pytest.fixture
def asking() -> Asking:
    return Asking(World(*STORES.values()))


def test_a_token_opens_its_link_until_it_expires(timed: Timed) -> None:
    token, link = timed.make(hours=1)

    assert timed.open(token) == link
    timed.now += timedelta(hours=1)
    with pytest.raises(ShareEndedError, match="has expired"):
        timed.open(token)


def test_what_is_stored_of_a_link_is_a_digest(timed: Timed) -> None:
    token, link = timed.make()

    assert list(timed.store.digests) == [hashlib.sha256(token.encode()).digest()]
    assert token not in repr(link)
    assert timed.store.seconds[link.id] == 24 * 3600 + KEPT_SECONDS
    with pytest.raises(UnknownShareError):
        timed.open(next(iter(timed.store.digests)).hex())


def test_a_revoked_link_is_closed_at_once_and_elsewhere_within_two_seconds(timed: Timed) -> None:
    token, link = timed.make()
    asyncio.run(timed.other.open(token, ""))

    asyncio.run(timed.one.revoke(READER, link.id))

    with pytest.raises(ShareEndedError, match="was revoked"):
        timed.open(token)
    assert asyncio.run(timed.other.open(token, "")) == link
    timed.seconds = REFRESH_SECONDS
    with pytest.raises(ShareEndedError):
        asyncio.run(timed.other.open(token, ""))
    assert timed.store.seconds[link.id] == KEPT_SECONDS


def test_a_link_that_has_ended_is_kept_no_longer_because_it_is_revoked(timed: Timed) -> None:
    _, revoked = timed.make(hours=24)
    _, expired = timed.make(hours=1)
    asyncio.run(timed.one.revoke(READER, revoked.id))
    timed.now += timedelta(hours=1)
    before = dict(timed.store.seconds), dict(timed.store.kept)

    for each in (revoked, expired):
        asyncio.run(timed.one.revoke(READER, each.id))

    assert (timed.store.seconds, timed.store.kept) == before


def test_a_tenant_cannot_make_and_revoke_links_without_end(timed: Timed) -> None:
    timed.one.most = 2
    for _ in range(KEPT_FACTOR * 2):
        _, link = timed.make()
        asyncio.run(timed.one.revoke(READER, link.id))

    with pytest.raises(TooManySavedError, match="10 share links, most of which have ended"):
        timed.make()
    page = parse_address("/stores/12"), "default"
    asyncio.run(timed.one.make(replace(READER, name="another key"), page, 24, "", STORES))  # which took no room
    timed.store.kept.pop(link.id)  # its time is over
    timed.make()


def test_a_known_link_outlives_cassandra_only_briefly(timed: Timed) -> None:
    token, link = timed.make()
    timed.open(token)
    timed.store.is_away = True

    timed.seconds = STALE_SECONDS - 0.1
    assert timed.open(token) == link
    timed.seconds = STALE_SECONDS
    with pytest.raises(CassandraUnavailableError):
        timed.open(token)


def test_after_ten_wrong_tokens_others_are_refused_and_links_still_open(timed: Timed) -> None:
    token, link = timed.make()
    for number in range(WRONG_TOKENS_PER_MINUTE):
        with pytest.raises(UnknownShareError):
            timed.open(f"{number:043d}")

    with pytest.raises(RateLimitedError):
        timed.open("x" * 43)
    assert timed.open(token) == link
    with pytest.raises(UnknownShareError):
        timed.open("x" * 43, "192.0.2.2")


@pytest.mark.parametrize("token", ["", "x", "x" * 42, "x" * 44, "x" * 42 + "!", "ä" * 43, "x" * 100_000])
def test_a_token_that_is_none_is_not_looked_up(timed: Timed, token: str) -> None:
    with pytest.raises(UnknownShareError):
        timed.open(token)
    assert timed.store.reads == 0


def test_a_reader_shares_a_page_and_gets_its_path_once(asking: Asking) -> None:
    key = asking.keys.make("default")

    made = asking.response(PATH, method="POST", key=key, said=STORE_PAGE)

    said = made.json()
    assert made.status_code == 201
    assert said.pop("path").startswith("/shared/")
    assert (said["stores"], said["state"], said["tenant"]) == (["12"], "open", "default")
    assert asking.body(PATH, key=key)["shares"] == [said]
    assert asking.acts == [(said["made_by"], f"POST {PATH}", 201)]


def test_a_link_to_the_overview_shows_one_tenant_also_if_an_operator_makes_it(asking: Asking) -> None:
    shares = [
        asking.response(PATH, method="POST", key=OPERATOR_KEY, said={"address": "/", "hours": 1} | more).json()
        for more in ({}, {"tenant": "acme"})
    ]

    assert [(each["tenant"], each["stores"]) for each in shares] == [("default", None), ("acme", None)]


@pytest.mark.parametrize("tenant", ["*", "nobody", "acme-1"])
def test_a_link_shows_one_tenant_that_has_stores_also_if_an_operator_makes_it(asking: Asking, tenant: str) -> None:
    said = {"address": "/", "hours": 1, "tenant": tenant}

    refused = asking.refusal(PATH, method="POST", key=OPERATOR_KEY, said=said)

    assert refused["status"] == 404
    assert asking.shares.kept == {}


def test_an_operator_shares_a_store_where_no_store_is_of_the_default_tenant() -> None:
    asking = Asking(World(STORES["acme-1"]))

    made = asking.response(PATH, method="POST", key=OPERATOR_KEY, said={"address": "/stores/acme-1", "hours": 1})

    assert made.json()["tenant"] == "acme"


@pytest.mark.parametrize(
    "change",
    [
        {"address": "//evil.example"},
        {"address": "javascript:alert(1)"},
        {"address": "/stores/12#x"},
        {"address": "/alerts"},
        {"address": "/stores/acme-1"},
        {"address": "/stores/nobody"},
        {"hours": 0},
        {"hours": 90 * 24 + 1},
        {"hours": "1"},
        {"origin": "https://evil.example"},
        {"origin": "*"},
        {"origin": "https://intranet.example https://evil.example"},
        {"tenant": "acme"},
    ],
)
def test_what_a_key_may_not_share_is_refused(asking: Asking, change: dict[str, object]) -> None:
    refused = asking.refusal(PATH, method="POST", key=asking.keys.make("default"), said=STORE_PAGE | change)

    assert refused["status"] in {404, 422}
    assert asking.shares.kept == {}


def test_a_store_of_another_tenant_is_refused_as_an_unknown_one(asking: Asking) -> None:
    key = asking.keys.make("default")

    theirs, unknown = (
        asking.refusal(PATH, method="POST", key=key, said=STORE_PAGE | {"address": f"/stores/{store}"})
        for store in ("acme-1", "acme-2")
    )

    assert theirs | {"title": ""} == unknown | {"title": ""}


def test_nobody_shares_without_a_key_or_beyond_the_limit(asking: Asking) -> None:
    key = asking.keys.make("default")

    assert asking.refusal(PATH, method="POST", said=STORE_PAGE)["code"] == "key_missing"
    made = [asking.response(PATH, method="POST", key=key, said=STORE_PAGE) for _ in range(MOST_SAVED + 1)]
    assert [each.status_code for each in made] == [201] * MOST_SAVED + [409]
    asking.response(f"{PATH}/{made[0].json()['id']}", method="DELETE", key=key)
    assert asking.response(PATH, method="POST", key=key, said=STORE_PAGE).status_code == 201


def test_a_key_lists_and_revokes_its_own_links_and_configurers_those_of_the_tenant(asking: Asking) -> None:
    id_ = asking.response(PATH, method="POST", key=asking.keys.make("default"), said=STORE_PAGE).json()["id"]
    other, theirs = asking.keys.make("default"), asking.keys.make("acme", "read", "configure")

    assert asking.body(PATH, key=other)["shares"] == asking.body(PATH, key=theirs)["shares"] == []
    assert asking.refusal(f"{PATH}/{id_}", method="DELETE", key=other)["status"] == 403
    assert asking.refusal(f"{PATH}/{id_}", method="DELETE", key=theirs)["status"] == 404
    assert asking.refusal(f"{PATH}/{id_}", method="DELETE")["code"] == "key_missing"
    for key in (asking.keys.make("default", "read", "configure"), OPERATOR_KEY):
        assert [each["id"] for each in asking.body(PATH, key=key)["shares"]] == [id_]
    assert asking.response(f"{PATH}/{id_}", method="DELETE", key=OPERATOR_KEY).status_code == 204
    assert asking.body(PATH, key=OPERATOR_KEY)["shares"][0]["state"] == "revoked"


def test_a_page_of_no_store_is_not_shared_as_one_of_all(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving_layer.saved.shares.shown_stores", lambda _: frozenset())

    with pytest.raises(BadAddressError, match="shows no store"):
        timed.make()
    assert timed.store.kept == {}


def test_an_embedder_is_one_of_the_listed_origins(asking: Asking) -> None:
    made = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=STORE_PAGE | {"origin": EMBEDDER})

    assert made.json()["origin"] == EMBEDDER
    assert asking.body(PATH, key=OPERATOR_KEY)["origins"] == [EMBEDDER]


def test_callers_of_links_share_caches_with_nobody_who_sees_something_else() -> None:
    tenant = Caller("a", "default", frozenset({"read"}))
    stores = [None, frozenset({"12"}), frozenset({"40"}), frozenset({"12", "40"}), frozenset[str]()]

    scopes = [Caller("b", "default", frozenset({"read"}), each).visibility_scope for each in stores]

    assert len(set(scopes)) == len(scopes)
    assert scopes[0] == tenant.visibility_scope
    limited = Caller("b", "default", frozenset({"read"}), frozenset({"12"}))
    assert [limited.sees(each) for each in STORES.values()] == [True, False, False]


def test_everybody_who_has_a_link_shares_more_concurrent_requests_than_a_key_has() -> None:
    limiter = ConcurrencyLimiter(1, max_shared=2)
    shared = Caller("share-1", "default", frozenset({"read"}), share="1")

    limiter.enter(READER)
    with pytest.raises(TooManyAtOnceError, match="1 requests of this key"):
        limiter.enter(READER)
    leave = limiter.enter(shared)
    limiter.enter(shared)
    with pytest.raises(TooManyAtOnceError, match="2 requests of this share link"):
        limiter.enter(shared)
    assert leave
    leave(200)
    limiter.enter(shared)


def test_a_link_has_a_rate_of_its_own() -> None:
    rates = RateLimiter(1, 1, shared=2)
    shared = Caller("share-1", "default", frozenset({"read"}), share="1")

    rates.count(shared, "read")
    rates.count(shared, "read")
    with pytest.raises(RateLimitedError, match="share link may send 2"):
        rates.count(shared, "read")
