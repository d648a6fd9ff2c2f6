"""Tables of the command line: nothing is cut, and nothing in a cell is taken for a colour."""

import pytest

from deploy.console import print_table


def test_a_long_cell_is_whole_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    why = "because " * 60

    print_table(("publication", "why"), [(1, why)])

    assert why in capsys.readouterr().out


def test_what_looks_like_a_colour_is_shown_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "sentence"), [("1", "[bold]yesterday[/bold] is no time")])

    assert "[bold]yesterday[/bold] is no time" in capsys.readouterr().out
