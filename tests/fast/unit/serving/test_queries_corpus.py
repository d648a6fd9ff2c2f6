"""Questions that are no good get a problem that says so, with the code that says it best; the next good one passes."""

from urllib.parse import urlencode

import pytest

from master_dataset.registry.stores import Store
from serving_layer.http.problem_types import PATH
from tests.support import World, receipt
from tests.support.corpus.queries.query_case import DAY, QueryCase, query_cases
from tests.support.world_api import OPERATOR_KEY, Asking

CASES = query_cases()


@pytest.fixture(scope="module")
def asking() -> Asking:
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="acme"))
    for number, store in enumerate(("1", "2")):
        world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store=store, number=number), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


def named(case: QueryCase) -> str:
    return case.name.encode("unicode_escape").decode()


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_question_gets_the_answer_that_it_deserves_and_the_next_good_one_passes(
    asking: Asking, case: QueryCase
) -> None:
    keys = {"operator": OPERATOR_KEY, "tenant": asking.keys.make("default", "read")}
    key = None if case.key is None else keys.get(case.key, case.key)

    response = asking.response(f"{case.path}?{urlencode(case.arguments, doseq=True)}", key=key)

    body = response.json()
    assert (response.status_code, body.get("code")) == (case.status, case.code), response.text
    if case.code is not None:
        assert response.headers["content-type"] == "application/problem+json"
        assert (body["type"], body["status"]) == (f"{PATH}/{case.code}", case.status)
        assert body["title"]
        assert body["detail"]
    assert asking.response(f"/v1/metrics/net_sales?{urlencode(DAY)}").status_code == 200


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 150
