"""The form of the DAG `recompute`: a preview unless it says otherwise, and only the reason is required."""

import ast
from pathlib import Path
from typing import Any

import pytest

from views.control.recompute import RecomputeRequest

DAGS = Path(__file__).parents[4] / "dags"


def parameters() -> dict[str, dict[str, Any]]:
    """The literal arguments of each Param, read from the source: Airflow takes seconds to import."""
    tree = ast.parse((DAGS / "recompute.py").read_text())
    [form] = [
        each.value for each in tree.body if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "FORM"
    ]
    assert isinstance(form, ast.Dict)
    found = {}
    for name, param in zip(form.keys, form.values, strict=True):
        assert isinstance(name, ast.Constant)
        assert isinstance(param, ast.Call)
        said = {each.arg: each.value for each in param.keywords} | ({"default": param.args[0]} if param.args else {})
        values: dict[str, Any] = {
            key: ast.literal_eval(said[key]) for key in ("type", "enum", "default") if key in said
        }
        found[str(name.value)] = values
    return found


def test_a_run_that_says_nothing_else_is_a_preview() -> None:
    form = {name: param.get("default") for name, param in parameters().items()}

    assert RecomputeRequest.from_form(form) == RecomputeRequest(mode="preview")


def test_only_the_reason_and_what_has_a_default_are_required() -> None:
    required = {name for name, param in parameters().items() if "null" not in param["type"]}

    assert required == {"mode", "full", "reason"}
    assert {name for name in required if "default" not in parameters()[name]} == {"reason"}


@pytest.mark.parametrize("empty", [None, []])
def test_an_empty_list_and_none_mean_everything(empty: object) -> None:
    assert RecomputeRequest.from_form({"views": empty, "stores": empty, "mode": "publish"}) == RecomputeRequest()


def test_scheduled_runs_publish_because_their_dag_has_no_form() -> None:
    assert "params" not in (DAGS / "rebuild_views.py").read_text()
    assert RecomputeRequest.from_form({}).mode == "publish"
