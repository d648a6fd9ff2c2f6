"""What pages say: the numbers of REST, in words of people, and what to do where there are none."""

import html
import json
import re
from dataclasses import replace
from datetime import date

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store, currency
from serving_layer.admin.ledger import Ledger
from serving_layer.pages.queries import natural_order
from serving_layer.store.readers import Position
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing
from tests.support.world_tables import WorldTables

GRID_ROW = r'<th scope="row">(\w+ \d+ \w+)</th>(.*?)</tr>'


def test_stores_are_shown_by_name_with_today_against_the_same_weekday(browsing: Browsing) -> None:
    page = browsing.words("/stores?sort=name")

    assert page.index("Ginza 40") < page.index("Kosice 12")
    assert "€15.50 +55.0 % €15.50 by 10:30, was €10.00" in page
    assert "20 % of it provisional" in page


def test_names_with_numbers_are_sorted_as_people_count() -> None:
    names = ["Store 367", "store 9", "Store 10", "Ginza", "Ginza 2", "9" * 5000]

    assert sorted(names, key=natural_order) == ["9" * 5000, "Ginza", "Ginza 2", "store 9", "Store 10", "Store 367"]


def test_a_store_shows_its_day_and_what_it_is_compared_with(browsing: Browsing) -> None:
    page = browsing.words("/stores/12")

    assert "Sat, 21 Nov 2026, so far" in page
    assert "Changes are compared with Sat 14 Nov, both up to 10:30." in page
    assert "open 08:00\N{EN DASH}20:00" in page
    assert "provisional" in page


def test_every_number_on_a_page_can_be_read_over_rest_and_is_the_same(browsing: Browsing) -> None:
    page = browsing.get("/stores/12")
    found = re.findall(r'data-query="([^"]+)"[^>]*data-show="value"[^>]*>([^<]+)<', page)

    texts = {html.unescape(path): text for path, text in found}
    answers = {path: json.loads(browsing.get(path))["series"][0]["points"][-1]["value"] for path in texts}
    sales = next(path for path in texts if path.startswith("/v1/metrics/net_sales"))
    assert len(texts) > 2
    assert (texts[sales], answers[sales]) == ("15.50", 15.5)
    assert all(float(text.replace(",", "")) == pytest.approx(answers[path], abs=0.06) for path, text in texts.items())


def test_a_day_that_has_not_begun_has_no_numbers(browsing: Browsing) -> None:
    page = browsing.words("/stores/12?day=2027-01-01")

    assert "This day hasn't started." in page
    assert "Average receipt" not in page


def test_a_past_day_is_requested_by_its_date(browsing: Browsing) -> None:
    page = browsing.get("/stores/12?day=2026-11-14")

    assert "Sat, 14 Nov 2026" in page
    assert ">10.00</span>" in page
    assert 'data-state="final">final' in page


def test_a_day_that_is_none_is_refused_in_words(browsing: Browsing) -> None:
    assert "is not a date" in browsing.get("/stores/12?day=yesterday", status=422)


def test_charts_give_their_numbers_as_files_and_as_something_to_paste(browsing: Browsing) -> None:
    page = html.unescape(browsing.get("/stores/12"))

    assert "&format=csv" in page
    assert 'curl -H "Authorization: Bearer $GALATEA_KEY" \'http://galatea/v1/metrics/net_sales?store=12&from=' in page
    assert "httpx.get('http://galatea/v1/metrics/net_sales', params=arguments, headers=key)" in page


def test_money_is_written_with_the_digits_of_its_currency(world: World) -> None:
    lines = [{"title": "tea", "price": 5400, "amount": 1, "sku": "1"}]
    world.receive(receipt("2026-11-21T08:30:00Z", lines, store="40", number=9), "2026-11-21T09:30:00Z")

    page = Browsing(Asking(world)).get("/stores")

    assert 'data-part="before">¥</span><span class="number"><span data-query="/v1/metrics/net_sales?store=40' in page
    assert ">5,400</span>" in page


def test_a_holiday_is_named(world: World) -> None:
    page = Browsing(Asking(world)).get("/stores/12?day=2026-11-01")

    assert "holiday: sviatok všetkých svätých" in page.lower()


def test_without_stores_the_next_step_is_named() -> None:
    world = World(Store(id="1", timezone="UTC", tenant="acme"))

    browsing = Browsing(Asking(world))

    for path in ("/", "/stores"):
        page = browsing.get(path)
        assert "No store is registered yet" in page
        assert "galatea stores load stores.yaml" in page
    assert "No store is registered yet." in browsing.get("/products")


def test_a_store_is_found_by_a_part_of_its_name(browsing: Browsing) -> None:
    assert "Ginza" not in browsing.get("/stores?q=kosi")
    assert "No store matches" in browsing.get("/stores?q=nobody")


def test_layers_show_the_cut_between_batch_and_speed(browsing: Browsing) -> None:
    page = browsing.get("/layers")

    assert "cut: 21 Nov, 09:00 UTC" in page
    assert "31 min 00 s" in page


def test_layers_without_a_publication_say_what_to_do() -> None:
    world = World()
    world.receive(receipt("2026-11-21T09:20:00Z", minor=310), "2026-11-21T09:20:01Z")

    assert "galatea rebuild" in Browsing(Asking(world)).get("/layers")


def test_publications_are_listed_newest_first(browsing: Browsing) -> None:
    page = browsing.get("/publications")

    assert 'data-state="final">current<' in page
    assert "21 Nov 2026, 09:00" in page


def test_the_grid_says_what_is_final_provisional_missing_or_closed(world: World) -> None:
    row = {
        "window": 1794643200,
        "dimensions": {"currency": "EUR"},
        "state": "gross_sales",
        "shown": 1,
        "corrected": 1000,
        "difference": 999,
        "cause": "waited",
        "events": [],
        "events_total": 1,
    }
    totals = {"cells": 1, "rows": 1, "causes": {"waited": {"cells": 1}}}
    world.ledgers["1"] = Ledger("1", "run-1", 0, at("2026-11-21T09:01:00Z"), totals)
    world.corrections["run-1", "sales"] = {("12", date(2026, 11, 14)): json.dumps([row])}
    page = Browsing(Asking(world)).get("/views?view=sales")

    rows = re.findall(GRID_ROW, page)
    states = {day: re.findall(r'<td title="([^"]+)"', cells) for day, cells in rows}
    assert states["Sat 21 Nov"] == ["no data yet", "provisional"]
    assert states["Fri 20 Nov"] == ["no data yet", "missing"]
    assert states["Sun 15 Nov"] == ["no data yet", "closed"]
    assert states["Sat 14 Nov"] == ["no data yet", "corrected"]
    assert states["Fri 13 Nov"] == ["no data yet", "no data yet"]


def test_a_day_is_missing_after_data_of_the_weeks_before_and_today_may_still_come(world: World) -> None:
    world.pass_time("2026-11-27T06:00:00Z")

    page = Browsing(Asking(world)).get("/views?view=sales")

    states = {day: re.findall(r'<td title="([^"]+)"', cells) for day, cells in re.findall(GRID_ROW, page)}
    assert [states[day][1] for day in ("Fri 27 Nov", "Thu 26 Nov")] == ["not started", "missing"]
    world.pass_time("2026-12-14T12:00:00Z")
    later = Browsing(Asking(world)).get("/views?view=sales")
    states = {day: re.findall(r'<td title="([^"]+)"', cells) for day, cells in re.findall(GRID_ROW, later)}
    assert {states[day][1] for day in ("Sat 12 Dec", "Tue 1 Dec")} == {"missing"}


def test_a_store_without_the_sensor_misses_nothing(browsing: Browsing) -> None:
    page = browsing.get("/views?view=traffic")

    states = dict(re.findall(GRID_ROW, page))
    assert set(re.findall(r'<td title="([^"]+)"', states["Fri 20 Nov"])) == {"no sensor"}


def test_a_view_that_there_is_not_is_refused_with_the_nearest_name(browsing: Browsing) -> None:
    assert "Did you mean sales?" in browsing.words("/views?view=sale", status=404)


def test_the_stack_says_which_readers_were_never_seen(browsing: Browsing) -> None:
    assert "never seen" in browsing.get("/stack")
    browsing.sign_in()
    assert "has not reported yet" in browsing.get("/stack")


def test_without_speed_pages_show_batch_alone_and_say_so(world: World) -> None:
    class WithoutSpeed(WorldTables):
        async def positions(self, generation: int) -> list[Position]:
            message = f"Generation {generation} does not answer."
            raise CassandraUnavailableError(message, do="Wait.")

    browsing = Browsing(Asking(world, readers=WithoutSpeed(world).readers))

    for path in ("/", "/stores", "/stores/12"):
        page = browsing.get(path)
        assert "The speed layer is missing." in page
        assert ">12.40</span>" in page


def test_a_store_whose_money_has_two_currencies_says_so_and_the_others_are_shown(world: World) -> None:
    world.stores["13"] = replace(world.stores["12"], id="13", name="Presov")
    world.receive(receipt("2026-11-21T09:25:00Z", minor=500, store="13", number=7), "2026-11-21T09:25:01Z")
    world.stores["13"] = replace(world.stores["13"], currency=currency("CZK"))
    world.receive(receipt("2026-11-21T09:26:00Z", minor=500, store="13", number=8), "2026-11-21T09:26:01Z")

    browsing = Browsing(Asking(world))

    for path in ("/stores", "/stores?view=table"):
        page = browsing.get(path)
        assert "has amounts in CZK and EUR." in page
        assert ">15.50</span>" in page


def test_one_number_that_is_refused_does_not_take_the_others_along(world: World) -> None:
    definitions = {name: was for name, was in world.definitions.items() if name != "traffic"}
    world.pointer = replace(world.pointer, definitions=definitions)

    page = Browsing(Asking(world)).words("/stores/12")

    assert "The view traffic is defined as" in page
    assert "Net sales €15.50" in page


def test_corrections_are_shown_to_operators_with_their_cause(world: World) -> None:
    browsing = Browsing(Asking(world))
    browsing.sign_in(OPERATOR_KEY)

    page = browsing.get("/corrections")

    assert "No differences. Published numbers are correct." in page
    assert "is not a valid token" in browsing.get("/corrections?after=x", status=422)


def test_corrections_are_filtered_by_state_in_the_address(world: World) -> None:
    row = {"window": 1794643200, "dimensions": {"currency": "EUR"}, "shown": 1, "corrected": 1000, "difference": 999}
    row |= {"cause": "waited", "events": ["a receipt"], "events_total": 1}
    totals = {"cells": 1, "rows": 102, "causes": {"waited": {"cells": 1}}}
    world.rebuild("2026-11-21T09:30:00Z")
    world.ledgers["2"] = Ledger("2", "run-2", 1, at("2026-11-21T09:31:00Z"), totals)
    sold = [row | {"state": "gross_sales", "window": 1794643200 + 900 * number} for number in range(101)]
    world.corrections["run-2", "sales"] = {("12", date(2026, 11, 14)): json.dumps([row | {"state": "receipts"}, *sold])}
    browsing = Browsing(Asking(world))
    browsing.sign_in(OPERATOR_KEY)

    everything, filtered = browsing.get("/corrections"), browsing.get("/corrections?state=gross_sales&store=12")

    assert ('title="receipts"' in everything, 'title="receipts"' in filtered) == (True, False)
    assert '<option value="gross_sales" selected>' in filtered
    following = re.search(r'<a rel="next" href="([^"]+)"', filtered)
    assert following
    assert "state=gross_sales" in following[1]
    assert 'href="/v1/corrections?store=12&amp;state=gross_sales&amp;limit=1000"' in filtered
    assert "No correction matches." in browsing.words("/corrections?state=returns_value")
    second = browsing.get(html.unescape(following[1]))
    assert second.count('title="gross_sales"') == 1


def test_what_no_sensor_feeds_is_named_once(browsing: Browsing) -> None:
    page = browsing.words("/stores/12")

    lacking = "Visitors, Conversion, People outside and inside, Visits by stay time, Queue"
    assert f"Not shown, because no sensor in this store measured it in this period: {lacking}." in page
    assert page.count("Capture") == page.count("Outside") == 0
    assert "no sensor" in browsing.words("/stores")
    assert "No sensor in this store measures it" in browsing.words("/")


def test_a_day_without_anything_says_whether_the_store_was_closed(browsing: Browsing) -> None:
    assert "nothing was sold: the store is closed." in browsing.words("/stores/12?day=2026-11-15")
    assert "nothing was sold in this period." in browsing.words("/stores/12?day=2026-11-13")


def test_a_page_of_today_knows_how_long_today_lasts(browsing: Browsing) -> None:
    until_midnight_in_bratislava = 13 * 3600 + 29 * 60 + 1

    assert f'data-lasts="{until_midnight_in_bratislava}"' in browsing.get("/stores/12")
    assert "data-lasts" not in browsing.get("/stores/12?day=2026-11-21")


def test_stores_turn_when_the_first_of_their_days_ends(browsing: Browsing) -> None:
    until_midnight_in_tokyo = 5 * 3600 + 29 * 60 + 1

    assert f'data-lasts="{until_midnight_in_tokyo}"' in browsing.get("/stores")


def test_the_reference_lists_the_operations(browsing: Browsing) -> None:
    assert "GET /v1/recomputes" in browsing.words("/docs")
