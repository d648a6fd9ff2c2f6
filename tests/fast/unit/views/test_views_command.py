"""`galatea views`: one line per view in the table, everything in JSON."""

import json

from typer.testing import CliRunner

from galatea.cli.main import app
from views import registered_views


def test_the_table_has_one_line_per_view_with_its_dimensions() -> None:
    header, *lines = CliRunner().invoke(app, ["views"]).stdout.splitlines()

    assert header.split() == ["view", "source", "dimensions", "question"]
    assert [line.split()[0] for line in lines] == [view.name for view in registered_views()]
    assert [view.name for view, line in zip(registered_views(), lines, strict=True) if "?" not in line] == []


def test_json_has_the_whole_question_and_the_states() -> None:
    listed = json.loads(CliRunner().invoke(app, ["views", "--json"]).stdout)["views"]

    assert [each["question"] for each in listed] == [view.question for view in registered_views()]
    assert [each["states"] for each in listed] == [list(view.columns) for view in registered_views()]
