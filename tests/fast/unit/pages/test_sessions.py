"""A key is pasted once; the cookie that stands for it says nothing, and ends with it."""

from datetime import UTC, datetime

import pytest

from serving_layer.pages import sessions
from serving_layer.pages.sessions import COOKIE, LIFETIME_SECONDS, Sessions
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import ORIGIN, Browsing


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
    assert browsing.asking.app.state.sessions.of(before) is None


def test_signing_out_ends_the_session_on_both_sides(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)
    id_ = browsing.cookies[COOKIE]

    assert browsing.send("/logout", form_of="/").status_code == 303

    assert COOKIE not in browsing.cookies
    assert browsing.asking.app.state.sessions.of(id_) is None


def test_a_revoked_key_ends_its_sessions(asking: Asking, browsing: Browsing) -> None:
    browsing.sign_in(asking.keys.make("acme"))
    assert "Of another" in browsing.get("/")

    asking.keys.kept.clear()

    assert "<h1>Sign in</h1>" in browsing.get("/", status=401)
    assert COOKIE not in browsing.cookies
    assert "Kosice" in browsing.get("/")


def test_a_session_ends_after_eight_hours() -> None:
    now = 0.0
    known = Sessions(lambda: now)
    session = known.begin("a key")

    now = LIFETIME_SECONDS - 1.0
    assert known.of(session.id) == session
    now = float(LIFETIME_SECONDS)
    assert known.of(session.id) is None


def test_of_too_many_sessions_the_oldest_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)
    known = Sessions(lambda: 0.0)

    first, second, third = known.begin("1"), known.begin("2"), known.begin("3")

    assert [known.of(each.id) is not None for each in (first, second, third)] == [False, True, True]


def test_a_session_does_not_say_its_key_when_it_is_printed() -> None:
    assert "galatea_secret" not in repr(Sessions(lambda: 0.0).begin("galatea_secret"))


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://galatea.evil.example", "http://galatea:81"]
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
    token = asking.app.state.sessions.token(asking.app.state.sessions.of(one.cookies[COOKIE]))

    assert other.post("/recomputes", f"token={token}&reason=because").status_code == 403


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
