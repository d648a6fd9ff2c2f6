"""Names that somebody else chose are text, wherever they stand."""

from functools import cache

import pytest

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}",
    "{% raw %}",
    "'; DROP TABLE stores; --",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\u202egnp.exe",
    "a\u0000b",
    "&lt;b&gt;",
)
RAW = ("<script>alert", "<img src=x", "<svg onload", "</title><svg")


@cache
def of(name: str, id_: str) -> Browsing:
    world = World(Store(id=id_, timezone="UTC", name=name))
    world.receive(receipt("2026-11-21T08:10:00Z", minor=1240, store=id_), "2026-11-21T08:10:01Z")
    world.rebuild("2026-11-21T08:15:00Z")
    return Browsing(Asking(world))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["/", "/stores", "/stores?view=table&q=a", "/stores/1", "/products?store=1", "/views"])
def test_a_hostile_name_stays_text(name: str, path: str) -> None:
    page = of(name, "1").get(path)

    assert [raw for raw in RAW if raw in page] == []
    assert ">49<" not in page


@pytest.mark.parametrize("id_", ['<script>alert(1)</script>"', "a/b c?d&e=f", "{{7*7}}", "'$(reboot)'"])
def test_a_hostile_id_stays_text_and_can_be_followed(id_: str) -> None:
    browsing = of("Shop", id_)
    page = browsing.get("/stores")
    link = page.split('<h2><a href="')[1].split('"')[0]

    shown = browsing.get(link.replace("&amp;", "&"))

    assert "<h1>Shop</h1>" in shown
    assert "<script>alert" not in page + shown


def test_a_search_is_shown_as_text(browsing: Browsing) -> None:
    page = browsing.get("/stores?q=%3Cscript%3Ealert(1)%3C/script%3E%22")

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_unknown_name_in_an_address_is_shown_as_text(browsing: Browsing) -> None:
    assert "<script>alert" not in browsing.get("/stores/%3Cscript%3Ealert(1)%3C/script%3E", status=404)
