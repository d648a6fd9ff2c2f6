"""Each bug, put into the product for as long as its check runs, is caught; without it the check passes."""

import pytest

from master_dataset.sources import registered_sources
from serving_layer.api.state import router
from tests.model.campaign import run
from tests.seeded.bug import Bug, Kind, holds
from tests.seeded.bugs import BUGS
from tests.seeded.line import Line, LineGone

HERE = [bug for bug in BUGS if bug.check is not None]
CHECKS = {bug.check: bug.name for bug in HERE if bug.changes}


@pytest.mark.parametrize("bug", HERE, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_caught(bug: Bug) -> None:
    caught = bug.is_caught()

    assert caught, f"{bug.says}: {bug.caught_by} held all the same"


@pytest.mark.parametrize("check", CHECKS, ids=CHECKS.values())
def test_without_a_bug_its_check_passes(check: object) -> None:
    assert callable(check)

    assert holds(check)


def test_without_a_rule_taken_away_histories_do_not_differ() -> None:
    counted = run(range(30))

    assert counted.different == ()


def test_there_are_thirty_seven_of_which_those_that_are_impossible_say_why() -> None:
    impossible = [bug for bug in BUGS if bug.kind is Kind.IMPOSSIBLE]

    assert len({bug.name for bug in BUGS}) == 37
    assert [bug.name for bug in impossible] == ["age_before_duplicates", "watermark_without_backlog"]
    assert all(bug.caught_by and not bug.changes for bug in impossible)


def test_a_bug_whose_line_is_gone_is_not_taken_for_caught() -> None:
    moved = Line("views.core.cut:is_fresh", "epoch >= the_cut", "epoch > cut")

    with pytest.raises(LineGone), moved.on():
        pass


def test_a_bug_in_a_route_leaves_one_route_behind() -> None:
    bug = Line("serving_layer.api.state:list_stores", " if caller.sees(stores[store])", "")
    before = [*router.routes]

    with bug.on():
        pass

    assert router.routes == before


def test_every_identity_says_when_its_event_happened() -> None:
    without = [topic for topic, source in registered_sources().items() if "happened_at" not in source.identity]

    assert without == []
