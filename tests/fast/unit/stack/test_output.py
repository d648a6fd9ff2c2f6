"""What the command line prints: tables, suggestions, and sums of lags."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from deploy.console import ProgressSteps, print_table
from galatea.cli.lag import totals_by_reader
from galatea.cli.main import GROUPS, PANELS, app
from master_dataset.kafka.lag import Lag, UnreadRecord


def test_a_long_cell_is_whole_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    why = "because " * 60

    print_table(("publication", "why"), [(1, why)])

    assert why in capsys.readouterr().out


def test_what_looks_like_a_colour_is_shown_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "sentence"), [("1", "[bold]yesterday[/bold] is no time")])

    assert "[bold]yesterday[/bold] is no time" in capsys.readouterr().out


def test_numbers_are_aligned_by_their_last_digit_and_words_by_their_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("count", "reason"), [("7", "not_json"), ("1,234", "9 lives"), ("-", "bad_time")])

    assert capsys.readouterr().out.splitlines()[1:] == ["    7  not_json", "1,234  9 lives ", "    -  bad_time"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("verfy", "verify"), ("dead-leters", "dead-letters"), ("statsu", "status")]
)
def test_a_verb_that_is_nearly_one_is_suggested(typed: str, meant: str) -> None:
    result = CliRunner().invoke(app, [typed])

    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in " ".join(result.output.split())


def test_a_verb_that_resembles_none_suggests_nothing() -> None:
    result = CliRunner().invoke(app, ["xyzzy"])

    assert result.exit_code == 2
    assert "Did you mean" not in result.output


@pytest.mark.parametrize("number", [2**63, 10**30])
@pytest.mark.parametrize("verb", ["corrections", "rollback"])
def test_a_publication_number_that_no_table_can_hold_is_refused_with_the_usage(verb: str, number: int) -> None:
    result = CliRunner().invoke(app, [verb, str(number)])

    assert result.exit_code == 2
    assert f"should be less than or equal to {2**63 - 1}" in " ".join(result.output.replace("│", " ").split())


def test_every_verb_is_in_one_panel_of_the_help() -> None:
    names = [name for panel in PANELS.values() for name in panel]

    assert len(set(names)) == len(names)
    assert set(GROUPS) < set(names)


def test_lags_of_partitions_are_summed_up_per_reader() -> None:
    now = datetime(2026, 11, 26, 12, tzinfo=UTC)
    behind = Lag("sales", 0, 5, 9, UnreadRecord(6, now - timedelta(seconds=2.04)))
    more = Lag("sales", 1, 0, 4, UnreadRecord(3, now - timedelta(seconds=1)))
    done = Lag("visits", 0, 8, 9, None)

    rows = totals_by_reader({"archive": [behind, more, done], "speed": [done]}, now)

    assert rows == [("archive", 4, 2.0, "sales"), ("speed", 0, 0.0, "none")]


def test_without_a_terminal_progress_is_a_line_when_something_else_begins_and_one_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ProgressSteps("rebuild") as steps:
        for done in range(1001):
            steps.step(done, 1000, f"sales   {done} events/s" if done < 600 else "visits")

    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  rebuild: sales   0 events/s 0/1,000",
        "  rebuild: visits 600/1,000",
        "  rebuild: visits 1,000/1,000",
    ]


def test_work_without_a_number_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressSteps("rebuild") as steps:
        steps.step(0, 0, "cut at 02:10:22 UTC")
        steps.step(0, 2, "sales")
        steps.step(2, 2, "sales")
        steps.step(0, 0, "speed reads up to 02:10:22 UTC")

    assert capsys.readouterr().err.splitlines() == [
        "  rebuild: cut at 02:10:22 UTC",
        "  rebuild: sales 0/2",
        "  rebuild: sales 2/2",
        "  rebuild: speed reads up to 02:10:22 UTC",
    ]


def test_without_a_terminal_work_that_says_nothing_is_still_seen_to_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.console.PLAIN_EVERY_SECONDS", 0.1)
    with ProgressSteps("rebuild") as steps:
        steps.step(0, 3, "sales")
        time.sleep(0.5)

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  rebuild: sales 0/3"
    assert lines[1].startswith("  rebuild: sales 0/3, ")
