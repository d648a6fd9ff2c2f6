"""An argument that cannot be read, is unknown or given twice, is named with what is wanted and an example."""

import re

import pytest

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.openapi_contract import operations
from tests.support.world_api import OPERATOR_KEY, Asking

NET = "/v1/metrics/net_sales"
WEEK = "from=2026-11-21&to=2026-11-28"
PYTHON = re.compile(r"Input should|unable to|parse|String should|Value error|valid (?:integer|boolean)|Field required")


@pytest.fixture(scope="module")
def asking() -> Asking:
    return Asking(World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC")))


WRONG = {
    f"{NET}?{WEEK}&top=x": ("`top=x` is not a whole number.", "Send a whole number, such as `top=10`."),
    f"{NET}?{WEEK}&top=1.5": ("`top=1.5` is not a whole number.", "Send a whole number, such as `top=10`."),
    f"{NET}?{WEEK}&top=0": ("`top=0` is out of range.", "Send at least 1, such as `top=1`."),
    f"{NET}?{WEEK}&limit=abc": ("`limit=abc` is not a whole number.", "Send a whole number, such as `limit=100`."),
    f"{NET}?{WEEK}&limit=101": ("`limit=101` is out of range.", "Send at most 100, such as `limit=100`."),
    f"{NET}?{WEEK}&share=maybe": ("`share=maybe` is neither true nor false.", "Send `share=true` or `share=false`."),
    f"{NET}?{WEEK}&as_of=last": ("`as_of=last` is not a whole number.", "Send a whole number, such as `as_of=1`."),
    f"{NET}?{WEEK}&timezone={'x' * 65}": ("`timezone` is too long.", "At most 64 characters are read."),
    f"{NET}?{WEEK}&brand=": ("`brand` is too short.", "Give it 1 character or more."),
    f"{NET}?{WEEK}&grain=dya": ("There is no `grain=dya`.", "Did you mean `day`?"),
    "/v1/publications?limit=all": ("`limit=all` is not a whole number.", "Send a whole number, such as `limit=100`."),
}


@pytest.mark.parametrize("path", WRONG)
def test_what_is_wanted_is_said_with_an_example(asking: Asking, path: str) -> None:
    problem = asking.refusal(path, key=OPERATOR_KEY)

    assert problem["status"] == 422
    assert (problem["title"], problem["detail"]) == WRONG[path]
    assert not PYTHON.search(problem["title"] + problem["detail"])


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, re.sub(r"\{[^}]*\}", "1", path)) for path, method, _ in operations() if path.startswith("/v1/")],
)
def test_an_argument_that_a_route_does_not_have_is_refused(asking: Asking, method: str, path: str) -> None:
    """Otherwise whoever expects a filter that does not exist would take the answer for a filtered one."""
    problem = asking.request(method, f"{path}?stores=1", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})

    assert (problem.status_code, problem.json().get("code")) == (422, "unknown_argument"), problem.text
    assert "`stores`" in problem.json()["title"]


TWICE = {
    "range=today&range=yesterday": "`range` is given twice: `range=today` and `range=yesterday`.",
    "from=-7d&from=-1d": "`from` is given twice: `from=-7d` and `from=-1d`.",
    "range=today&sort=value&sort=-value": "`sort` is given twice: `sort=value` and `sort=-value`.",
    "range=today&top=1&top=2&top=3": "`top` is given 3 times: `top=1` and `top=2`, ...",
}


@pytest.mark.parametrize("query", TWICE)
def test_an_argument_of_one_value_is_given_once(asking: Asking, query: str) -> None:
    problem = asking.refusal(f"{NET}?{query}")

    assert (problem["status"], problem["code"]) == (422, "bad_question")
    assert problem["title"].rstrip(".") == TWICE[query].rstrip(".")
    assert "once" in problem["detail"]


def parameters(*, is_list: bool) -> list[tuple[str, str, str]]:
    """Method and path of an operation, and the name of a parameter of its query."""
    return [
        (method, re.sub(r"\{[^}]*\}", "1", path), each["name"])
        for path, method, operation in operations()
        for each in operation.get("parameters", [])
        if each["in"] == "query" and ('"array"' in repr(each["schema"]).replace("'", '"')) == is_list
    ]


@pytest.mark.parametrize(("method", "path", "name"), parameters(is_list=False))
def test_every_such_argument_of_every_route_is_refused_twice(asking: Asking, method: str, path: str, name: str) -> None:
    problem = asking.request(method, f"{path}?{name}=1&{name}=2", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})

    assert problem.status_code == 422, problem.text
    assert f"`{name}` is given twice" in problem.json()["title"]


@pytest.mark.parametrize(("method", "path", "name"), parameters(is_list=True))
def test_lists_may_be_repeated(asking: Asking, method: str, path: str, name: str) -> None:
    answer = asking.request(method, f"{path}?{name}=1&{name}=2", headers={"Authorization": f"Bearer {OPERATOR_KEY}"})

    assert "is given" not in answer.text
