"""A key is pasted once; the cookie that stands for it says nothing, and ends with it."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from ipaddress import ip_network
from urllib.parse import urlencode

import httpx
import pytest

from master_dataset.errors import CassandraUnavailableError
from serving_layer.errors import RateLimitedError
from serving_layer.keys.rates import RateLimiter
from serving_layer.keys.throttle import LookupThrottle
from serving_layer.pages.sessions import (
    COOKIE,
    ENCRYPTED_COOKIE,
    LIFETIME_SECONDS,
    MAX_SESSIONS,
    MAX_SESSIONS_OF_KEY,
    REFRESH_SECONDS,
    UNKNOWN_PER_MINUTE,
    UNKNOWN_SECONDS,
    Session,
    SessionCache,
    Sessions,
    StoredSession,
)
from tests.support.world_api import OPERATOR_KEY, Asking, WorldSessions
from tests.support.world_clients import ORIGIN, TOKEN, Browsing, listening, words

BEGAN = datetime(2026, 11, 21, 9, tzinfo=UTC)


class Counting(WorldSessions):
    """Sessions that count how often one is looked up."""

    reads = 0

    async def get(self, digest: bytes) -> StoredSession | None:
        self.reads += 1
        return await super().get(digest)


def session_of(asking: Asking, id_: str | None) -> Session | None:
    found: Session | None = asyncio.run(asking.app.state.sessions.of(id_))
    return found


def test_a_good_key_begins_a_session_and_leads_back(browsing: Browsing) -> None:
    response = browsing.sign_in(OPERATOR_KEY, following="/layers")

    assert (response.status_code, response.headers["location"]) == (303, "/layers")
    assert "Sign out" in browsing.get("/")


def test_the_cookie_is_for_us_alone_and_holds_no_key(browsing: Browsing) -> None:
    cookie = browsing.sign_in(OPERATOR_KEY).headers["set-cookie"]

    assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={8 * 3600}"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert OPERATOR_KEY not in cookie


def test_over_https_the_cookie_is_sent_over_https_alone(asking: Asking) -> None:
    browsing = Browsing(asking, "https://galatea")

    response = browsing.send("/login", form_of="/login", origin="https://galatea", key=OPERATOR_KEY)

    assert "Secure" in response.headers["set-cookie"]
    assert response.headers["set-cookie"].startswith(f"{ENCRYPTED_COOKIE}=")
    assert "Path=/;" in response.headers["set-cookie"]
    assert "Domain" not in response.headers["set-cookie"]


def test_a_cookie_that_another_host_could_have_set_counts_for_nothing_over_https(asking: Asking) -> None:
    session = asyncio.run(asking.app.state.sessions.begin(OPERATOR_KEY))
    over_http, over_https = Browsing(asking), Browsing(asking, "https://galatea")
    for browsing in (over_http, over_https):
        browsing.cookies.set(COOKIE, session.id)

    assert "Sign out" in over_http.get("/")
    assert "Sign out" not in over_https.get("/")
    over_https.cookies.set(ENCRYPTED_COOKIE, session.id)
    assert "Sign out" in over_https.get("/")
    over_http.cookies.set(ENCRYPTED_COOKIE, "x" * 43)
    assert "Sign out" not in over_http.get("/")


@pytest.mark.parametrize("proxies", [["127.0.0.0/8"], []], ids=["named", "unnamed"])
def test_behind_a_proxy_that_encrypts_the_cookies_are_sent_over_https_alone(asking: Asking, proxies: list[str]) -> None:
    with listening(asking.app, proxies=[ip_network(each) for each in proxies]) as url:
        own = {"Host": "galatea.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
        with httpx.Client(base_url=url, headers=own, trust_env=False) as client:
            asked = {"Origin": "https://galatea.example"}
            signed_in = client.post("/login", headers=asked, data={"key": OPERATOR_KEY})
            language = client.post("/language", headers=asked, data={"language": "de"})

    for response in (signed_in, language):
        assert response.status_code == 303
        assert "Secure" in response.headers["set-cookie"]


@pytest.mark.parametrize("key", ["", "nonsense", "galatea_0_x", "ключ", "x" * 5000])
def test_a_key_that_opens_nothing_is_refused_in_words(browsing: Browsing, key: str) -> None:
    response = browsing.sign_in(key)

    assert response.status_code == 401
    assert "unknown, expired or revoked" in response.text
    assert "set-cookie" not in response.headers
    assert key == "" or key not in response.text


@pytest.mark.parametrize("following", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "/\n/x"])
def test_nobody_is_led_elsewhere_after_signing_in(browsing: Browsing, following: str) -> None:
    assert browsing.sign_in(OPERATOR_KEY, following=following).headers["location"] == "/"


def test_signing_in_again_ends_the_session_before(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)
    before = browsing.cookies[COOKIE]

    browsing.sign_in(OPERATOR_KEY)

    assert browsing.cookies[COOKIE] != before
    assert session_of(browsing.asking, before) is None


def test_signing_out_ends_the_session_on_both_sides(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)
    id_ = browsing.cookies[COOKIE]

    assert browsing.send("/logout", form_of="/").status_code == 303

    assert COOKIE not in browsing.cookies
    assert session_of(browsing.asking, id_) is None


def test_a_revoked_key_ends_its_sessions(asking: Asking, browsing: Browsing) -> None:
    browsing.sign_in(asking.keys.make("acme"))
    assert "Of another" in browsing.get("/")

    asking.keys.kept.clear()

    assert "<h1>Sign in</h1>" in browsing.get("/", status=401)
    assert COOKIE not in browsing.cookies
    assert "Kosice" in browsing.get("/")


HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
NOTE = {"do": "add", "first_day": "2026-11-21", "kind": "note", "text": 'Till "3" & more', "stores": "12"}


def fields_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the form on a page that has this action."""
    form = page.partition(f'action="{action}"')[2].partition("</form>")[0]
    return {unescape(name): unescape(value) for name, value in HIDDEN.findall(form)}


def refused_form(asking: Asking, browsing: Browsing, path: str = "/annotations", **fields: str) -> httpx.Response:
    """The response to a form whose session has ended meanwhile."""
    browsing.sign_in(asking.keys.make("default", "read", "configure"))
    found = TOKEN.search(browsing.get("/annotations"))
    assert found
    asking.keys.kept.clear()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ORIGIN}
    headers["Referer"] = f"{ORIGIN}/annotations?store=12&first=2026-11-01"
    return browsing.response("POST", path, headers, urlencode({"token": found[1], **fields}))


def test_what_was_typed_when_the_session_ended_is_sent_again_after_signing_in(
    asking: Asking, browsing: Browsing
) -> None:
    refused = refused_form(asking, browsing, **NOTE)
    assert refused.status_code == 401
    assert "Your session has ended. Sign in, and you can send again what you typed." in words(refused.text)
    kept = fields_of(refused.text, "/login")
    assert kept["following"] == "/annotations?store=12&first=2026-11-01"

    wrong = browsing.post("/login", urlencode(kept | {"key": "galatea_0_x"}))
    assert fields_of(wrong.text, "/login") == kept
    key = asking.keys.make("default", "read", "configure")
    again = browsing.post("/login", urlencode(kept | {"key": key}))

    assert asking.annotations.kept == {}
    assert 'href="/annotations?store=12&amp;first=2026-11-01"' in again.text
    fields = fields_of(again.text, "/annotations")
    assert "unsent.token" not in kept
    assert fields.pop("token")
    assert fields == NOTE
    assert browsing.post("/annotations", urlencode(fields_of(again.text, "/annotations"))).status_code == 303
    [note] = asking.annotations.kept.values()
    assert note.text == NOTE["text"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/keys", {"name": "x", "scopes": "read"}),
        ("/keys/revoke", {"id": "x"}),
        ("/annotations", {"text": "x" * 16_384}),
    ],
)
def test_a_form_that_is_not_kept_says_that_it_was_not_saved(
    asking: Asking, browsing: Browsing, path: str, fields: dict[str, str]
) -> None:
    refused = refused_form(asking, browsing, path, **fields)

    assert refused.status_code == 401
    assert "Your session has ended. What you typed was not saved." in words(refused.text)
    assert "unsent" not in refused.text


@pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example", "/keys", "/keys?x", "/login", ""])
def test_no_form_is_sent_elsewhere_after_signing_in(browsing: Browsing, path: str) -> None:
    fields = {"key": OPERATOR_KEY, "following": "/layers", "unsent_path": path, "unsent.name": "x"}

    response = browsing.post("/login", urlencode(fields))

    assert (response.status_code, response.headers["location"]) == (303, "/layers")


def test_a_form_of_another_site_is_not_kept(browsing: Browsing) -> None:
    refused = browsing.post("/annotations", "do=add&text=x", origin="https://evil.example")

    assert refused.status_code == 401
    assert "unsent" not in refused.text


def test_signing_in_leads_back_to_the_whole_address(asking: Asking) -> None:
    asking.app.state.authenticator.keys._anonymous = None  # noqa: SLF001 - as a stack without an anonymous tenant is made
    browsing = Browsing(asking)

    page = browsing.get("/stores/12?day=2026-11-14&range=custom", status=401)

    assert fields_of(page, "/login")["following"] == "/stores/12?day=2026-11-14&range=custom"
    assert fields_of(browsing.get("/login?x=1"), "/login")["following"] == "/"


def test_a_session_ends_after_eight_hours() -> None:
    now = BEGAN
    known = Sessions(WorldSessions(), lambda: 0.0, lambda: now)
    session = asyncio.run(known.begin("a key"))

    now = BEGAN + timedelta(seconds=LIFETIME_SECONDS - 1)
    assert asyncio.run(known.of(session.id)) == session
    now = BEGAN + timedelta(seconds=LIFETIME_SECONDS)
    assert asyncio.run(known.of(session.id)) is None


def test_what_is_stored_of_a_session_opens_nothing() -> None:
    store = WorldSessions()
    known = Sessions(store, lambda: 0.0, lambda: BEGAN)
    one, other = asyncio.run(known.begin("galatea_secret")), asyncio.run(known.begin("galatea_secret"))

    stored = [(digest, each.sealed) for digest, each in store.kept.items()]

    assert len({sealed for _, sealed in stored}) == 2
    for digest, sealed in stored:
        for session in (one, other):
            assert not {session.id.encode(), session.key.encode()} & {digest, sealed}
            assert session.key.encode() not in sealed
        assert asyncio.run(known.of(digest.hex())) is None


def test_a_row_that_is_of_another_session_is_no_session() -> None:
    store = WorldSessions()
    known = Sessions(store, lambda: 0.0, lambda: BEGAN)
    one = asyncio.run(known.begin("a key"))
    (digest,) = store.kept
    other = asyncio.run(known.begin("another key"))
    store.kept[digest] = next(row for place, row in store.kept.items() if place != digest)

    fresh = Sessions(store, lambda: 0.0, lambda: BEGAN)

    assert asyncio.run(fresh.of(one.id)) is None
    assert asyncio.run(fresh.of(other.id)) == other


def test_a_session_is_read_again_once_it_is_two_seconds_old() -> None:
    clock, store = [0.0], WorldSessions()
    one, two = (Sessions(store, lambda: clock[0], lambda: BEGAN) for _ in range(2))
    session = asyncio.run(one.begin("a key"))
    assert asyncio.run(two.of(session.id)) == session

    asyncio.run(one.end(session))

    assert asyncio.run(one.of(session.id)) is None
    assert asyncio.run(two.of(session.id)) == session
    clock[0] = REFRESH_SECONDS
    assert asyncio.run(two.of(session.id)) is None


def test_a_known_session_goes_on_while_nothing_can_be_read_and_no_other_begins(asking: Asking) -> None:
    known, unknown = Browsing(asking), Browsing(Asking(asking.world, beside=asking))
    known.sign_in(OPERATOR_KEY)
    unknown.cookies = known.cookies

    asking.sessions.is_away = True

    assert "Sign out" in known.get("/")
    assert "Cassandra did not answer" in unknown.get("/", status=503)
    assert unknown.response("GET", "/v1/stores").json()["code"] == "store_unavailable"
    assert Browsing(asking).sign_in(OPERATOR_KEY).status_code == 503
    with pytest.raises(CassandraUnavailableError):
        asyncio.run(asking.app.state.sessions.end(session_of(asking, known.cookies[COOKIE])))


def test_a_session_that_was_found_exists_until_it_is_ended_or_expires() -> None:
    clock, now, store = [0.0], [BEGAN], WorldSessions()
    one, two = (Sessions(store, lambda: clock[0], lambda: now[0]) for _ in range(2))
    session, other = (asyncio.run(one.begin("a key")) for _ in range(2))
    assert asyncio.run(two.exists(session))

    asyncio.run(one.end(session))

    assert not asyncio.run(one.exists(session))
    clock[0] = REFRESH_SECONDS
    assert not asyncio.run(two.exists(session))
    assert asyncio.run(two.exists(other))
    now[0] = other.ends_at
    assert not asyncio.run(two.exists(other))


def test_a_known_session_exists_while_nothing_can_be_read_and_nobody_knows_of_another() -> None:
    clock, store = [0.0], WorldSessions()
    one, two = (Sessions(store, lambda: clock[0], lambda: BEGAN) for _ in range(2))
    session = asyncio.run(one.begin("a key"))
    store.is_away, clock[0] = True, REFRESH_SECONDS

    assert asyncio.run(one.exists(session))
    with pytest.raises(CassandraUnavailableError):
        asyncio.run(two.exists(session))


def test_an_unknown_cookie_is_looked_up_once_a_minute_and_takes_no_place_of_a_session() -> None:
    clock, store = [0.0], Counting()
    known = Sessions(store, lambda: clock[0], lambda: BEGAN)
    session = asyncio.run(known.begin("a key"))
    store.kept.clear()

    for _ in range(3):
        assert asyncio.run(known.of("x" * 43, "192.0.2.1")) is None
        clock[0] += REFRESH_SECONDS / 4
    assert store.reads == 1
    assert asyncio.run(known.of(session.id)) == session
    assert len(known._known) == 1  # noqa: SLF001 - what is in memory is what this is about
    clock[0] = UNKNOWN_SECONDS
    asyncio.run(known.of("x" * 43, "192.0.2.1"))
    assert store.reads == 2


def test_a_key_that_begins_many_sessions_pushes_out_none_of_another_key() -> None:
    store = Counting()
    sessions = Sessions(store, lambda: 0.0, lambda: BEGAN)
    other = asyncio.run(sessions.begin("another key"))

    async def begin_many() -> list[Session]:
        return [await sessions.begin("a key") for _ in range(MAX_SESSIONS + 1)]

    begun = asyncio.run(begin_many())
    store.is_away = True

    assert asyncio.run(sessions.of(other.id)) == other
    assert asyncio.run(sessions.of(begun[-MAX_SESSIONS_OF_KEY].id)) == begun[-MAX_SESSIONS_OF_KEY]
    with pytest.raises(CassandraUnavailableError):
        asyncio.run(sessions.of(begun[-MAX_SESSIONS_OF_KEY - 1].id))


def test_a_key_has_so_many_sessions_of_all_processes_together_and_takes_none_from_another() -> None:
    store, now = WorldSessions(), BEGAN
    one, other = (Sessions(store, lambda: 0.0, lambda: now) for _ in range(2))

    async def begin_many() -> tuple[Session, list[Session]]:
        nonlocal now
        foreign, own = await one.begin("another key"), []
        for number in range(MAX_SESSIONS_OF_KEY + 3):
            now += timedelta(seconds=1)
            own.append(await (one, other)[number % 2].begin("a key"))
        return foreign, own

    foreign, own = asyncio.run(begin_many())
    elsewhere = Sessions(store, lambda: 0.0, lambda: now)

    assert [asyncio.run(elsewhere.of(each.id)) for each in own] == [None] * 3 + own[3:]
    assert asyncio.run(elsewhere.of(foreign.id)) == foreign
    assert len(store.kept) == MAX_SESSIONS_OF_KEY + 1


def test_a_session_that_was_ended_leaves_its_place_to_the_next_one() -> None:
    store = WorldSessions()
    sessions = Sessions(store, lambda: 0.0, lambda: BEGAN)
    first = asyncio.run(sessions.begin("a key"))

    for _ in range(MAX_SESSIONS_OF_KEY + 3):
        asyncio.run(sessions.end(asyncio.run(sessions.begin("a key"))))

    assert asyncio.run(sessions.of(first.id)) == first
    assert [len(each) for each in store.owned.values()] == [1]


def test_where_memory_is_full_the_key_with_the_most_sessions_gives_up_its_oldest() -> None:
    cache = SessionCache(most=4, most_of_key=3)
    for number, key in enumerate(("a", "a", "b", "b", "a", "c", "b")):
        cache.put(bytes([number]), 0.0, Session(str(number), key, BEGAN))
        cache.get(b"\x00")

    kept = [number for number in range(7) if cache.get(bytes([number]))]
    assert kept == [0, 3, 5, 6]
    cache.remove(b"\x00")
    cache.remove(b"\x00")
    assert len(cache) == 3


def test_unknown_cookies_of_one_address_are_limited_and_sessions_go_on() -> None:
    store = Counting()
    one, other = (Sessions(store, lambda: 0.0, lambda: BEGAN) for _ in range(2))
    session = asyncio.run(other.begin("a key"))
    for number in range(UNKNOWN_PER_MINUTE):
        assert asyncio.run(one.of(f"{number:043d}", "192.0.2.1")) is None

    with pytest.raises(RateLimitedError):
        asyncio.run(one.of("x" * 43, "192.0.2.1"))
    assert asyncio.run(one.of(session.id, "192.0.2.1")) == session
    assert asyncio.run(one.of("x" * 43, "192.0.2.2")) is None


def test_a_browser_that_was_left_open_counts_once_however_often_it_asks() -> None:
    clock = [0.0]
    sessions = Sessions(Counting(), lambda: clock[0], lambda: BEGAN)
    for _ in range(2 * UNKNOWN_PER_MINUTE):
        assert asyncio.run(sessions.of("x" * 43, "192.0.2.1")) is None
        clock[0] += UNKNOWN_SECONDS
    for number in range(UNKNOWN_PER_MINUTE - 1):
        assert asyncio.run(sessions.of(f"{number:043d}", "192.0.2.1")) is None


def test_a_cookie_of_no_session_is_taken_away(asking: Asking) -> None:
    browsing = Browsing(asking)
    browsing.cookies.set(COOKIE, "x" * 43)
    refused = browsing.response("GET", "/keys")
    assert refused.status_code == 401
    assert f'{COOKIE}=""' in refused.headers["set-cookie"]


def test_whoever_sends_too_many_unknown_cookies_is_told_and_can_still_sign_in(asking: Asking) -> None:
    browsing = Browsing(asking)
    stopped = LookupThrottle("sessions", UNKNOWN_PER_MINUTE, lambda: 0.0)
    asking.app.state.sessions._lookups = stopped  # noqa: SLF001 - the clock of the process goes on whenever it is read
    for number in range(UNKNOWN_PER_MINUTE):
        browsing.cookies.set(COOKIE, f"{number:043d}")
        browsing.get("/layers")
    browsing.cookies.set(COOKIE, "y" * 43)

    assert "Too many unknown sessions" in browsing.words("/layers", status=429)
    assert browsing.response("GET", "/v1/stores").json()["code"] == "too_often"
    assert browsing.sign_in(OPERATOR_KEY).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "x" * 42, "x" * 44, "x" * 42 + "!", "ä" * 43])
def test_a_cookie_that_is_none_of_ours_is_not_looked_up(cookie: str) -> None:
    store = WorldSessions()
    store.is_away = True

    assert asyncio.run(Sessions(store, lambda: 0.0, lambda: BEGAN).of(cookie)) is None


def test_a_key_may_not_sign_in_as_often_as_it_likes(asking: Asking) -> None:
    key = asking.keys.make("acme")
    object.__setattr__(asking.app.state.authenticator, "rates", RateLimiter(1, 1))

    assert Browsing(asking).sign_in(key).status_code == 303
    assert Browsing(asking).sign_in(key).status_code == RateLimitedError.status
    assert len(asking.sessions.kept) == 1


def test_a_session_does_not_say_its_key_or_its_cookie_when_it_is_printed() -> None:
    session = asyncio.run(Sessions(WorldSessions(), lambda: 0.0, lambda: BEGAN).begin("galatea_secret"))

    assert "galatea_secret" not in repr(session)
    assert session.id not in repr(session)


def test_over_https_a_form_of_an_unencrypted_page_is_refused(asking: Asking) -> None:
    browsing = Browsing(asking, "https://galatea")

    response = browsing.send("/login", form_of="/login", origin="http://galatea", key=OPERATOR_KEY)

    assert (response.status_code, "set-cookie" in response.headers) == (403, False)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://galatea.evil.example", "http://galatea:81", "http://["]
)
@pytest.mark.parametrize("path", ["/login", "/logout", "/recomputes"])
def test_a_form_from_elsewhere_is_refused(browsing: Browsing, path: str, origin: str | None) -> None:
    browsing.sign_in(OPERATOR_KEY)

    response = browsing.send(path, form_of="/", origin=origin, key=OPERATOR_KEY, reason="because")

    assert response.status_code == 403
    assert "was not sent by a page of this address" in response.text
    assert browsing.asking.recomputing.requests == []


@pytest.mark.parametrize("token", ["", "token=", "token=" + "0" * 64, "token=%F0%9F%99%82"])
def test_a_form_without_the_token_of_its_session_is_refused(browsing: Browsing, token: str) -> None:
    browsing.sign_in(OPERATOR_KEY)

    response = browsing.post("/recomputes", f"{token}&reason=because")

    assert response.status_code == 403
    assert browsing.asking.recomputing.requests == []


def test_the_token_of_one_session_is_not_good_in_another(asking: Asking) -> None:
    one, other = Browsing(asking), Browsing(asking)
    one.sign_in(OPERATOR_KEY)
    other.sign_in(OPERATOR_KEY)
    session = session_of(asking, one.cookies[COOKIE])

    assert session is not None
    assert other.post("/recomputes", f"token={session.token}&reason=because").status_code == 403


def test_a_form_that_is_too_long_or_none_is_refused(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)
    kind = {"Origin": ORIGIN, "Content-Type": "application/json"}

    assert browsing.post("/recomputes", "a=" + "x" * 70_000).status_code == 413
    assert browsing.response("POST", "/recomputes", kind, "{}").status_code == 422
    assert browsing.post("/recomputes", "&".join(f"a{n}=1" for n in range(3000))).status_code == 422


def test_a_key_that_expires_takes_its_session_along(asking: Asking, browsing: Browsing) -> None:
    text = asking.keys.make("acme")
    browsing.sign_in(text)
    [key] = asking.keys.kept

    object.__setattr__(key, "expires_at", datetime(2026, 11, 21, 9, tzinfo=UTC))

    browsing.get("/", status=401)
