"""What a browser is given beside the numbers: little, from here alone, and as it was vendored."""

import hashlib
import re
from itertools import pairwise

import pytest

from serving_layer.pages.assets import FOLDER, assets
from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import Browsing

MOST_BYTES = 150_000
PAGES = [
    "/",
    "/stores",
    "/stores?view=table",
    "/stores/12",
    "/stores/12?range=year_to_date",
    "/products",
    "/layers",
    "/views",
    "/publications",
    "/stack",
    "/corrections",
    "/recomputes",
    "/login",
    "/dead-letters?reason=bad_time",
    "/dead-letters/pos_transactions/0/0",
    "/dead-letters/pos_transactions/0/1",
]
LINKED = re.compile(r'(?:src|href)="(/static/[^"]+)"')


@pytest.fixture(scope="module")
def operator(lasting: Browsing) -> Browsing:
    asking = lasting.asking
    browsing = Browsing(asking)
    browsing.sign_in(OPERATOR_KEY)
    large = receipt({"happened_at": '"yesterday"', "title": f'"{"<" * 30_000}"'})
    asking.dead_letters.archive.receive(receipt({"happened_at": '"yesterday"'}), large, *[large] * 60)
    return browsing


def test_what_is_vendored_is_what_its_list_says_and_nothing_else() -> None:
    folder = FOLDER / "vendor"
    lines = [line.split() for line in (folder / "CHECKSUMS").read_text().splitlines() if not line.startswith("#")]

    listed = {name: digest for digest, name in lines}
    there = {path.name for path in folder.iterdir()} - {"CHECKSUMS"}
    assert listed == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in there}
    assert "uPlot.LICENSE" in listed


@pytest.mark.parametrize("path", PAGES)
def test_a_page_weighs_at_most_150_kilobytes_with_all_that_it_loads(operator: Browsing, path: str) -> None:
    page = operator.response("GET", path)
    loaded = [operator.response("GET", link) for link in set(LINKED.findall(page.text))]

    assert {each.status_code for each in loaded} == {200}
    assert len(page.content) + sum(len(each.content) for each in loaded) <= MOST_BYTES


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(operator: Browsing, path: str) -> None:
    page = operator.get(path)

    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r'(?:src|href|action)="(?!/|\?|#)[^"]*"', page) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_tells_browsers_what_it_may_load_and_who_may_see_where_from(operator: Browsing, path: str) -> None:
    headers = operator.response("GET", path).headers

    assert headers.get_list("content-security-policy") == [
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ]
    assert headers.get_list("referrer-policy") == ["same-origin"]
    assert headers.get_list("cache-control") == ["no-store"]
    assert headers["x-content-type-options"] == "nosniff"


def test_an_asset_is_kept_for_ever_under_the_address_of_its_content(browsing: Browsing) -> None:
    version = assets()["galatea.css"].version

    named, bare = (browsing.response("GET", f"/static/galatea.css{query}") for query in (f"?v={version}", ""))

    assert named.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert bare.headers["cache-control"] == "no-cache"
    assert named.headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize("name", ["../assets.py", "..%2fassets.py", "vendor", "none.css", "%2e%2e/assets.py"])
def test_nothing_but_assets_can_be_read(lasting: Browsing, name: str) -> None:
    assert lasting.response("GET", f"/static/{name}").status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_headings_are_in_order_and_landmarks_are_there(operator: Browsing, path: str) -> None:
    page = operator.get(path)
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(f"<{landmark}" in page for landmark in ("header", "nav", "main", "footer"))
    assert '<a class="skip" href="#main">' in page
