"""Saved views over REST: all keys of a tenant see them, and the key that saved one changes it."""

import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.world_api import MOST_SAVED, OPERATOR_KEY, Asking

PATH = "/v1/saved-views"
KOSICE = {"name": "Kosice", "address": "/stores/12?day=2026-11-21"}


@pytest.fixture
def asking() -> Asking:
    return Asking(World(Store(id="12", timezone="UTC"), Store(id="acme-1", timezone="UTC", tenant="acme")))


def test_a_view_is_saved_listed_renamed_and_removed(asking: Asking) -> None:
    key = asking.keys.make("default")

    made = asking.response(PATH, method="POST", key=key, said=KOSICE)
    renamed = asking.response(f"{PATH}/{made.json()['id']}", method="PATCH", key=key, said={"name": "Another"})

    assert made.status_code == 201
    assert renamed.json() == made.json() | {"name": "Another"}
    assert asking.body(PATH, key=asking.keys.make("default")) == {"views": [renamed.json()], "most": MOST_SAVED}
    assert asking.response(f"{PATH}/{made.json()['id']}", method="DELETE", key=key).status_code == 204
    assert asking.views.kept == {}
    assert [act.partition(" ")[0] for _, act, _ in asking.acts] == ["POST", "PATCH", "DELETE"]


def test_another_key_changes_a_view_only_if_it_may_configure(asking: Asking) -> None:
    id_ = asking.response(PATH, method="POST", key=asking.keys.make("default"), said=KOSICE).json()["id"]
    other = asking.keys.make("default")

    refused = asking.refusal(f"{PATH}/{id_}", method="DELETE", key=other)

    assert refused["code"] == "scope_missing"
    configurer = asking.keys.make("default", "read", "configure")
    assert asking.response(f"{PATH}/{id_}", method="DELETE", key=configurer).status_code == 204


def test_views_of_another_tenant_are_unknown(asking: Asking) -> None:
    id_ = asking.response(PATH, method="POST", key=asking.keys.make("default"), said=KOSICE).json()["id"]

    for key in (asking.keys.make("acme", "read", "configure"), OPERATOR_KEY):
        assert asking.body(PATH, key=key)["views"] == []
        assert asking.refusal(f"{PATH}/{id_}", method="PATCH", key=key, said={"name": "x"})["status"] == 404
        assert asking.refusal(f"{PATH}/{id_}", method="DELETE", key=key)["status"] == 404


def test_nobody_saves_without_a_key_or_beyond_the_limit(asking: Asking) -> None:
    key = asking.keys.make("default")

    assert asking.refusal(PATH, method="POST", said=KOSICE)["code"] == "key_missing"
    statuses = [asking.response(PATH, method="POST", key=key, said=KOSICE).status_code for _ in range(MOST_SAVED + 1)]
    assert statuses == [201] * MOST_SAVED + [409]


@pytest.mark.parametrize(
    "change",
    [
        {"address": "//evil.example"},
        {"address": "javascript:alert(1)"},
        {"address": "/stores/12#x"},
        {"address": "/login"},
        {"address": "/v1/stores"},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\u202eb"},
    ],
)
def test_what_is_no_page_or_no_name_is_refused(asking: Asking, change: dict[str, str]) -> None:
    refused = asking.refusal(PATH, method="POST", key=asking.keys.make("default"), said=KOSICE | change)

    assert refused["status"] == 422
    assert asking.views.kept == {}
