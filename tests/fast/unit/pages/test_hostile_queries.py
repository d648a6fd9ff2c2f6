"""Whatever stands in the query of an address: a page, or a refusal that says what to do."""

from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.world_clients import Browsing

PATHS = ("/", "/stores", "/stores/12", "/products", "/views", "/annotations", "/alerts", "/sensors")
DATES = st.sampled_from(
    ("2026-11-21", "2026-02-29", "2026-03-29", "1970-01-01", "0001-01-01", "9999-12-31", "9000-12-31")
)
WORDS = st.sampled_from(
    ("", "custom", "today", "none", "hour", "month", "previous_year", "year_to_date", "table", "\x00")
)
VALUES = DATES | WORDS | st.dates().map(str) | st.text(max_size=20) | st.integers(-(10**20), 10**20).map(str)
NAMES = ("range", "first", "last", "day", "compare", "grain", "q", "group", "sort", "view", "page", "store", "category")
QUERIES = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=5)
"""Also with a parameter twice."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), query=QUERIES)
def test_no_query_string_is_an_error_of_ours(browsing: Browsing, path: str, query: list[tuple[str, str]]) -> None:
    written = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in query])

    response = browsing.response("GET", f"{path}?{written}", {"Accept": "text/html"})

    assert response.status_code in (200, 404, 422), (response.status_code, written)
    assert "<h1" in response.text


@pytest.mark.parametrize(
    "query", ["%ff=%fe", "range=%ff", "first=%00&last=%00", "&&&=&", "day[]=1", "page=1e3", "q=%F0%9F"]
)
@pytest.mark.parametrize("path", PATHS)
def test_what_is_no_text_is_read_as_text(lasting: Browsing, path: str, query: str) -> None:
    assert lasting.response("GET", f"{path}?{query}").status_code in (200, 422)


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-14", "9999-12-18", "9999-12-31"])
@pytest.mark.parametrize("name", ["first", "last", "day"])
@pytest.mark.parametrize("path", PATHS)
def test_the_first_and_the_last_date_are_pages_or_refused(lasting: Browsing, path: str, name: str, day: str) -> None:
    assert lasting.response("GET", f"{path}?{name}={day}").status_code in (200, 422)


@pytest.mark.parametrize("id_", ["../12", "12/..", "%00", "12?", "\u202e12", "x" * 3000, "12%2f"])
def test_an_id_of_no_store_is_not_found(lasting: Browsing, id_: str) -> None:
    assert lasting.response("GET", f"/stores/{quote(id_, safe='')}").status_code in (404, 422)


@pytest.mark.parametrize("days", ["1971-01-01", "1971-01-02", "2198-12-31", "2199-12-31"])
@pytest.mark.parametrize("compare", ["previous_week", "previous_period", "previous_year", "none"])
def test_the_ends_of_the_calendar_are_pages(lasting: Browsing, days: str, compare: str) -> None:
    for path in PATHS:
        assert lasting.get(f"{path}?day={days}&compare={compare}")
