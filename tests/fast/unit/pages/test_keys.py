"""The page of keys: listed without secrets, created with a form that shows the key once, revoked."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from serving_layer.keys.key import Key
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import TOKEN, Browsing, words

NEW = {"name": "Till 7", "tenant": "acme", "scopes": "read", "days": "30"}


@pytest.fixture
def operator(browsing: Browsing) -> Browsing:
    browsing.sign_in(OPERATOR_KEY)
    return browsing


def test_a_key_is_created_shown_once_and_opens_what_it_may(operator: Browsing) -> None:
    token = TOKEN.search(operator.get("/keys"))
    assert token

    response = operator.post("/keys", urlencode([("token", token[1]), *NEW.items(), ("scopes", "ingest")]))

    found = re.search(r'<pre[^>]*id="new-key"[^>]*>(galatea_[^<]+)</pre>', response.text)
    [key] = operator.asking.keys.kept
    assert found
    assert key.matches(found[1])
    assert (key.tenant, key.scopes, key.name) == ("acme", frozenset({"read", "ingest"}), "Till 7")
    assert key.expires_at
    assert key.expires_at - key.created_at == timedelta(days=30)
    assert response.headers["cache-control"] == "no-store"
    assert operator.asking.acts[-1] == ("operator", f"POST /keys {key.id}", 200)
    page = operator.get("/keys")
    assert f"Till 7 {key.id} active acme ingest, read" in words(page)
    assert found[1].split("_", 2)[2] not in page  # the secret may have underscores itself


@pytest.mark.parametrize("tenant", ["acme\n\n12", "\u202eemca", "\u00e9" * 200])
def test_a_key_is_of_a_tenant_that_stores_can_have(operator: Browsing, tenant: str) -> None:
    response = operator.send("/keys", form_of="/keys", **{**NEW, "tenant": tenant})

    assert response.status_code == 422
    assert operator.asking.keys.kept == []


def test_each_scope_says_all_that_it_allows(operator: Browsing) -> None:
    page = operator.words("/keys")

    assert "share pages by link for up to 90 days (read)" in page
    assert "floor plans and annotations, and what other keys saved or shared (configure)" in page


def test_a_key_is_revoked(operator: Browsing) -> None:
    text = operator.asking.keys.make("default", "read")
    id_ = text.split("_")[1]

    response = operator.send("/keys/revoke", form_of="/keys", id=id_)

    assert response.headers["location"] == f"/keys?revoked={id_}"
    page = operator.words(f"/keys?revoked={id_}")
    assert f"Revoked. Key {id_} is refused within two seconds; while Cassandra does not respond, within five." in page
    assert "Links made with it stay open until they expire" in page
    assert f"a test {id_} revoked default read" in page
    assert operator.asking.keys.kept[0].revoked_at is not None
    assert operator.asking.response("/v1/stores", key=text).status_code == 401
    assert operator.send("/keys/revoke", form_of="/keys", id="nobodys").status_code == 404


def test_keys_that_have_ended_come_last(operator: Browsing) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    operator.asking.keys.kept = [Key.new("acme", ["read"], "old", began, began + timedelta(days=1))[1]]
    operator.asking.keys.make("default", "operate")

    page = operator.words("/keys")

    assert page.index("a test") < page.index("old")
    assert "expired acme read 1 Jan 2026 2 Jan 2026" in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"scopes": "operate"}, "a key for one tenant cannot have it. Use the tenant *"),
        ({"scopes": "admin"}, "There is no scope admin"),
        ({"scopes": ""}, "Choose what the key may do."),
        ({"days": "0"}, "Write 1 to 3650."),
        ({"days": "9" * 40}, "Write 1 to 3650."),
        ({"name": "x" * 300}, "Choose a shorter one."),
        ({"name": "Till\u202e7"}, "has a character that is not visible, U+202E"),
    ],
)
def test_what_is_wrong_is_said_above_the_form_as_it_was_filled_in(
    operator: Browsing, fields: dict[str, str], said: str
) -> None:
    response = operator.send("/keys", form_of="/keys", **(NEW | fields))

    assert response.status_code in {400, 404, 422}
    assert said in words(response.text)
    assert '<option value="acme" selected>' in response.text
    assert operator.asking.keys.kept == []


def test_forms_of_other_pages_change_no_key(operator: Browsing) -> None:
    operator.asking.keys.make("default", "read")

    refused = [
        operator.send("/keys", form_of="/nowhere", **NEW),
        operator.send("/keys", form_of="/keys", origin="http://evil", **NEW),
        operator.send("/keys/revoke", form_of="/nowhere", id=operator.asking.keys.kept[0].id),
    ]

    assert [each.status_code for each in refused] == [403, 403, 403]
    assert [each.revoked_at for each in operator.asking.keys.kept] == [None]
