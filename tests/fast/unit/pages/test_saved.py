"""`/saved` and `/annotations`: forms of sessions, and what hostile names and addresses come to."""

import re
from urllib.parse import quote, urlencode

import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.world_api import EMBEDDER, OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

HOSTILE = "<script>alert('x')</script>"
ADDRESS = "/stores/12?day=2026-11-21&a=%22%3E"


def send(browsing: Browsing, **fields: str) -> int:
    return browsing.send("/saved", form_of="/saved", **fields).status_code


def sign_in(asking: Asking, *scopes: str) -> Browsing:
    browsing = Browsing(asking)
    browsing.sign_in(asking.keys.make("default", *scopes))  # type: ignore[arg-type]
    return browsing


def test_the_form_of_a_page_has_its_whole_address(asking: Asking) -> None:
    browsing = sign_in(asking)

    page = browsing.get(ADDRESS)

    assert page.count('name="address" value="/stores/12?day=2026-11-21&amp;a=%22%3E"') == 2
    assert 'action="/saved"' in browsing.get("/")


def test_without_a_session_there_is_no_such_form(browsing: Browsing) -> None:
    assert 'action="/saved"' not in browsing.get("/stores/12")
    assert 'action="/saved"' not in browsing.get("/saved")
    assert browsing.post("/saved", "do=save&name=x&address=/").status_code == 401
    assert browsing.asking.views.kept == {}


def test_a_view_is_saved_opened_renamed_and_removed(asking: Asking) -> None:
    browsing = sign_in(asking)

    assert send(browsing, do="save", name=HOSTILE, address=ADDRESS) == 303
    page = browsing.get("/saved")
    assert HOSTILE not in page
    assert f'<a href="{ADDRESS.replace("&", "&amp;")}">' in page
    [view] = asking.views.kept.values()
    assert send(browsing, do="rename", id=view.id, name="Another") == 303
    assert "Another" in browsing.get("/saved")
    assert send(browsing, do="remove", id=view.id) == 303
    assert asking.views.kept == {}


def test_a_link_is_made_shown_once_opened_and_revoked(asking: Asking) -> None:
    browsing = sign_in(asking)

    response = browsing.send(
        "/saved", form_of="/saved", do="share", address="/stores/12", hours="24", embedder=EMBEDDER
    )

    assert response.status_code == 201
    found = re.search(r"http://galatea(/shared/[\w-]{43})", response.text)
    assert found
    assert "Kosice" in Browsing(asking).get(found[1])
    assert "/shared/" not in browsing.get("/saved")
    [link] = asking.shares.kept.values()
    assert (link.origin, link.stores) == (EMBEDDER, frozenset({"12"}))
    assert send(browsing, do="revoke", id=link.id) == 303
    Browsing(asking).get(found[1], status=410)
    assert [act for _, act, _ in asking.acts] == [f"POST /saved share {link.id}", f"POST /saved revoke {link.id}"]


def test_the_audit_log_names_the_action_and_the_id_of_a_form(asking: Asking) -> None:
    browsing = sign_in(asking, "read", "configure")

    send(browsing, do="save", name="x", address="/")
    [view] = asking.views.kept.values()
    send(browsing, do="remove", id=view.id)
    send(browsing, do="revoke", id="a" * 1000)
    browsing.send("/annotations", form_of="/annotations", do="add", first_day="2026-11-21", kind="note", text="x")
    [note] = asking.annotations.kept.values()
    browsing.send("/annotations", form_of="/annotations", do="remove", id=note.id)

    assert [(act, status) for _, act, status in asking.acts] == [
        (f"POST /saved save {view.id}", 303),
        (f"POST /saved remove {view.id}", 303),
        (f"POST /saved revoke {'a' * 64}", 404),
        (f"POST /annotations add {note.id}", 303),
        (f"POST /annotations remove {note.id}", 303),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"do": "save", "name": "x", "address": "//evil.example"},
        {"do": "save", "name": "x", "address": "javascript:alert(1)"},
        {"do": "save", "name": "x", "address": "/stores/12#x"},
        {"do": "save", "name": "x", "address": "/login"},
        {"do": "save", "name": "x"},
        {"do": "save", "name": "a\u202eb", "address": "/"},
        {"do": "share", "address": "/alerts", "hours": "1"},
        {"do": "share", "address": "/", "hours": "99999999999"},
        {"do": "share", "address": "/", "hours": "٣"},
        {"do": "share", "address": "/"},
        {"do": "share", "address": "/", "hours": "1", "embedder": "https://evil.example"},
        {"do": "share", "address": "/stores/acme-1", "hours": "1"},
        {"do": "share", "address": "/", "hours": "1", "tenant": "acme"},
        {"do": "rename", "id": "nobodys", "name": "x"},
        {"do": "remove", "id": "nobodys"},
        {"do": "revoke", "id": "nobodys"},
        {"do": ""},
    ],
)
def test_a_form_that_asks_for_something_else_is_refused(asking: Asking, fields: dict[str, str]) -> None:
    assert send(sign_in(asking), **fields) in {404, 422}
    assert (asking.views.kept, asking.shares.kept) == ({}, {})


def test_a_form_without_the_token_of_its_session_is_refused(asking: Asking) -> None:
    browsing = sign_in(asking, "read", "configure")
    forms = {
        "/saved": {"do": "save", "name": "x", "address": "/"},
        "/annotations": {"do": "add", "kind": "note", "text": "x", "first_day": "2026-11-21"},
    }

    for path, fields in forms.items():
        assert browsing.post(path, urlencode(fields)).status_code == 403
    assert (asking.views.kept, asking.annotations.kept) == ({}, {})


def test_an_annotation_is_added_listed_and_removed(asking: Asking) -> None:
    browsing = sign_in(asking, "read", "configure")
    fields = {"first_day": "2026-11-21", "kind": "outage", "text": HOSTILE, "stores": "12, 40"}

    added = browsing.send("/annotations", form_of="/annotations", do="add", **fields)

    assert added.status_code == 303
    [note] = asking.annotations.kept.values()
    assert note.stores == ("12", "40")
    assert HOSTILE not in browsing.get("/annotations")
    assert "outage" in browsing.words("/annotations?store=40")
    assert "No annotations between" in browsing.words("/annotations?first=2026-11-22")
    removed = browsing.send("/annotations", form_of="/annotations", do="remove", id=note.id)
    assert (removed.status_code, asking.annotations.kept) == (303, {})


@pytest.mark.parametrize(
    "change",
    [{"first_day": ""}, {"first_day": "x"}, {"last_day": "2020-01-01"}, {"text": ""}, {"kind": "x"}, {"stores": "x"}],
)
def test_an_annotation_that_is_wrong_is_refused_in_words(asking: Asking, change: dict[str, str]) -> None:
    fields = {"first_day": "2026-11-21", "kind": "note", "text": "x"} | change

    browsing = sign_in(asking, "read", "configure")

    status = browsing.send("/annotations", form_of="/annotations", do="add", **fields).status_code

    assert status == (404 if "stores" in change else 422)
    assert asking.annotations.kept == {}


def test_a_form_takes_ids_with_blanks_and_commas_in_them() -> None:
    ids = ["North, 3", "12 b"]
    asking = Asking(World(*(Store(id=each, timezone="UTC") for each in ids)))
    browsing = sign_in(asking, "read", "configure")
    page = browsing.get(f"/annotations?store={quote(ids[0])}")
    assert 'name="stores" maxlength="4000" value="North\\, 3"' in page

    fields = {"first_day": "2026-11-21", "kind": "note", "text": "x", "stores": "North\\, 3, 12 b"}
    added = browsing.send("/annotations", form_of="/annotations", do="add", **fields)

    assert added.status_code == 303
    [note] = asking.annotations.kept.values()
    assert note.stores == tuple(sorted(ids))


def test_a_reader_sees_annotations_and_changes_none(asking: Asking) -> None:
    browsing = sign_in(asking)

    assert "Add an annotation" not in browsing.get("/annotations")
    added = browsing.send("/annotations", form_of="/", do="add", first_day="2026-11-21", kind="note", text="x")
    assert added.status_code == 403


@pytest.mark.parametrize("query", ["first=x", "first=2026-13-01", "store=nobody", "tenant=acme"])
def test_a_filter_that_is_wrong_is_refused(asking: Asking, query: str) -> None:
    assert sign_in(asking).response("GET", f"/annotations?{query}").status_code in {404, 422}


@pytest.mark.parametrize("tenant", ["*", "nobody"])
def test_forms_of_operators_name_a_tenant_that_has_stores(asking: Asking, tenant: str) -> None:
    operator = Browsing(asking)
    operator.sign_in(OPERATOR_KEY)
    note = {"do": "add", "first_day": "2026-11-21", "kind": "note", "text": "x", "tenant": tenant}

    assert send(operator, do="share", address="/", hours="1", tenant=tenant) == 404
    assert operator.send("/annotations", form_of="/annotations", **note).status_code == 404
    assert operator.response("GET", f"/annotations?tenant={tenant}").status_code == 404
    assert (asking.shares.kept, asking.annotations.kept) == ({}, {})


def test_operators_see_the_links_of_all_tenants(asking: Asking) -> None:
    for tenant in ("default", "acme"):
        key = asking.keys.make(tenant)
        said = {"address": "/", "hours": 1}
        assert asking.response("/v1/shares", method="POST", key=key, said=said).status_code == 201
    operator = Browsing(asking)
    operator.sign_in(OPERATOR_KEY)

    page = operator.words("/saved")

    assert "all stores of the tenant default" in page
    assert "all stores of the tenant acme" in page
