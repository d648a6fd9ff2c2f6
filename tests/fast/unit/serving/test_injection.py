"""A text that would mean something to a database, a spreadsheet or a browser is data: kept and shown as it is."""

import csv
import io
import json
from typing import Any
from urllib.parse import quote

import pytest

from master_dataset.registry.stores import Store
from serving_layer.files.formats import FORMULA, without_formula
from tests.support import World
from tests.support.corpus.case import receipt
from tests.support.corpus.injection.injection_case import InjectionCase, injection_cases
from tests.support.world_api import OPERATOR_KEY, Asking

CASES = injection_cases()
TOPIC = "pos_transactions"
DAY = {"from_": "2026-03-07", "to": "2026-03-08"}
NET = "/v1/metrics/net_sales"
PARAMETERS = (
    "store",
    "timezone",
    "from_",
    "to",
    "grain",
    "by",
    "compare",
    "context",
    "format",
    "hours",
    "after",
    "as_of",
)
PATHS = (
    "/v1/metrics/{}",
    "/v1/views/{}/cells",
    "/v1/index/{}",
    "/v1/live/{}",
    "/v1/recomputes/{}",
    "/v1/{}",
    "/static/{}",
)
REFUSED = {404, 422}


def named(case: InjectionCase) -> str:
    return case.name


def sold(case: InjectionCase, number: int) -> bytes:
    """A receipt all of whose texts are this one."""
    said = json.dumps(case.text)
    texts = dict.fromkeys(("title", "sku", "vendor_fiscal_module", "transaction_id", "unknown"), said)
    return receipt({**texts, "happened_at": f'"2026-03-07T09:{number // 60:02}:{number % 60:02}Z"'})


@pytest.fixture(scope="module")
def asking() -> Asking:
    """Each text is the name of a store, and of an article and a till in store 1."""
    world = World(
        Store(id="1", timezone="UTC"),
        *(Store(id=f"named-{number}", timezone="UTC", name=case.text) for number, case in enumerate(CASES)),
    )
    asking = Asking(world)
    for number, case in enumerate(CASES):
        assert asking.sent(sold(case, number)).status_code == 202
    for number, value in enumerate(asking.broker.values(TOPIC)):
        world.receive(value, f"2026-03-07T10:{number // 60:02}:{number % 60:02}Z")
    world.rebuild("2026-03-07T10:01:30Z")
    return asking


def dimensions(asking: Asking, metric: str, dimension: str) -> list[str]:
    body = asking.body(f"/v1/metrics/{metric}", store="1", by=dimension, key=OPERATOR_KEY, **DAY)
    return [series["dimensions"][dimension] for series in body["series"]]


def rows(asking: Asking, metric: str, dimension: str) -> list[dict[str, str]]:
    """Of the file, as a spreadsheet reads it."""
    parameters: dict[str, Any] = {"store": "1", "by": dimension, "key": OPERATOR_KEY, "format": "csv", **DAY}
    response = asking.response(f"/v1/metrics/{metric}", **parameters)
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


def test_it_is_kept_byte_for_byte(asking: Asking) -> None:
    sent = [sold(case, number) for number, case in enumerate(CASES)]

    assert asking.broker.values(TOPIC) == sent


@pytest.mark.parametrize(("metric", "dimension"), [("sku_attach_rate", "sku"), ("till_share", "till")])
def test_it_is_answered_as_it_was_sent(asking: Asking, metric: str, dimension: str) -> None:
    assert sorted(dimensions(asking, metric, dimension)) == sorted(case.text for case in CASES)


@pytest.mark.parametrize(("metric", "dimension"), [("sku_attach_rate", "sku"), ("till_share", "till")])
def test_no_cell_of_a_file_is_a_formula(asking: Asking, metric: str, dimension: str) -> None:
    found = rows(asking, metric, dimension)

    assert len(found) == len(CASES)
    assert not [row for row in found if None in row or None in row.values()]
    assert not [cell for row in found for cell in row.values() if FORMULA.search(cell)]
    assert {row[dimension] for row in found} == {without_formula(case.text) for case in CASES}


def test_a_name_is_shown_as_it_is(asking: Asking) -> None:
    stores = asking.body("/v1/stores", key=OPERATOR_KEY)["stores"]

    assert {store["name"] for store in stores if store["id"] != "1"} == {case.text for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_in_any_argument_it_is_one_that_nobody_knows(asking: Asking, case: InjectionCase) -> None:
    for name in PARAMETERS:
        response = asking.response(NET, **{"store": "1", **DAY, name: case.text})

        assert response.status_code in REFUSED, (name, response.text)
        assert is_harmless(response)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_in_any_path_it_is_a_place_that_nobody_knows(asking: Asking, case: InjectionCase) -> None:
    if case.text in {".", ".."} or case.text.endswith("/"):
        return  # a client takes them away before it asks, and an address with a last slash leads to the one without
    for path in PATHS:
        response = asking.response(path.format(quote(case.text, safe="")), key=OPERATOR_KEY, store="1", **DAY)

        assert response.status_code in REFUSED, (path, response.text)
        assert is_harmless(response)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_as_a_source_or_an_argument_of_its_own_it_is_unknown(asking: Asking, case: InjectionCase) -> None:
    source = asking.response(
        f"/v1/events/{quote(case.text, safe='')}x", method="POST", key=OPERATOR_KEY, said=receipt()
    )
    argument = asking.response(NET, **{"store": "1", **DAY, f"{case.text}x": "1"})

    assert (source.status_code, argument.status_code) == (404, 422)
    assert is_harmless(source)
    assert is_harmless(argument)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_as_a_reason_it_is_stored_or_rejected_and_as_a_store_it_is_requested(
    asking: Asking, case: InjectionCase
) -> None:
    said = {"reason": case.text, "stores": [case.text]}

    response = asking.response("/v1/recomputes", method="POST", key=OPERATOR_KEY, said=said)

    assert response.status_code == (202 if case.is_printed and case.text.strip() else 422)
    if response.status_code == 202:
        assert asking.recomputing.requests[-1].stores == (case.text,)
        assert asking.world.recomputes[response.json()["id"]].why == case.text.strip()


def is_harmless(response: Any) -> bool:
    """A problem in one piece of JSON, and no header that the text has made."""
    problem_code = response.headers["content-type"] == "application/problem+json" and response.json()["code"]
    return bool(problem_code) and not any("injected" in name or "cookie" in name for name in response.headers)
