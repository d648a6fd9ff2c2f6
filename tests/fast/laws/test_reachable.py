"""Whatever was published, rolled back, died or goes on: what somebody may still ask stays, and all else goes."""

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from batch_layer.maintenance.reachable import (
    HistoryEntry,
    LiveRecomputes,
    Reachable,
    RecomputeState,
    Retention,
    RunCells,
    kept_publications,
)

NOW = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)
DAY = date(2026, 3, 1)
HOUR = timedelta(hours=1)
STATES = ["asked", "planned", "computing", "computed", "published", "previewed", "unchanged", "failed", None]


class History(NamedTuple):
    """Publications by age, and recomputes."""

    entries: list[HistoryEntry]
    manifests: dict[str, set[str]]
    works: dict[str, RecomputeState]
    held: set[str]
    keep: Retention


@st.composite
def histories(draw: st.DrawFn) -> History:
    ages = sorted(draw(st.lists(st.integers(0, 1000), max_size=8, unique=True)), reverse=True)
    names = ["", *(f"run-{draw(st.integers(1, number))}" for number in range(1, len(ages) + 1))]  # also rolled back
    entries = [
        HistoryEntry(number, names[number], NOW - (ages[number - 1] if number else 2000) * HOUR, draw(st.booleans()))
        for number in range(len(names))
    ]
    runs = st.sets(st.sampled_from([f"run-{number}" for number in range(1, 9)]), max_size=3)
    manifests = {name: draw(runs) | {name} for name in names if name}
    work = st.builds(
        RecomputeState, st.sampled_from(STATES), st.none() | st.integers(0, 500).map(lambda age: NOW - age * HOUR)
    )
    works = draw(st.dictionaries(st.sampled_from(["a", "b.7", "run-9"]), work))
    keep = Retention(draw(st.integers(1, 4)), timedelta(days=draw(st.integers(1, 10))))
    return History(entries, manifests, works, draw(st.sets(st.sampled_from(["a", "gone"]))), keep)


def reach_of(history: History, stay: set[int]) -> Reachable:
    living = LiveRecomputes(history.works, history.held, history.keep, NOW)
    named = {each.manifest for each in history.entries if each.number in stay and each.manifest}
    return Reachable({RunCells("sales", DAY, run) for name in named for run in history.manifests[name]}, living)


@given(histories())
def test_a_publication_stays_while_it_is_new_was_shown_lately_or_is_current(history: History) -> None:
    current = history.entries[-1].number

    stay = kept_publications(history.entries, current, history.keep, NOW)

    whole = [each for each in history.entries if each.manifest and not each.is_collected]
    for entry in history.entries:
        newer = sum(each.number > entry.number for each in whole)
        replaced_at = [each.published_at for each in history.entries if each.number == entry.number + 1]
        is_wanted = newer < history.keep.publications or (
            bool(replaced_at) and replaced_at[0] > NOW - history.keep.shown
        )
        assert (entry.number in stay) == (entry.number == current or (entry in whole and is_wanted))


@given(histories())
def test_no_cell_of_a_kept_publication_goes_and_no_other_stays_but_for_work_that_is_alive(history: History) -> None:
    stay = kept_publications(history.entries, history.entries[-1].number, history.keep, NOW)

    reach = reach_of(history, stay)

    needed = {
        run for each in history.entries if each.number in stay for run in history.manifests.get(each.manifest, ())
    }
    for number in range(1, 9):
        assert reach.keeps(RunCells("sales", DAY, f"run-{number}")) == (f"run-{number}" in needed)
        assert not reach.keeps(RunCells("sales_by_till", DAY, f"run-{number}"))


@given(histories(), st.sampled_from(["", "#1", "#23"]))
def test_runs_of_a_recompute_stay_as_long_as_it_is_worked_on_or_may_be_resumed(history: History, run: str) -> None:
    reach = reach_of(history, set())

    for id_, work in history.works.items():
        age = None if work.updated_at is None else NOW - work.updated_at
        is_held = id_ in history.held
        is_young = age is None or age < timedelta(days=2)
        is_shown = work.state == "previewed" and age is not None and age < history.keep.shown
        assert reach.keeps(RunCells("sales", DAY, f"{id_}{run}")) == (is_held or is_young or is_shown)
    assert reach.keeps(RunCells("sales", DAY, f"gone{run}")) == ("gone" in history.held)
    assert not reach.keeps(RunCells("sales", DAY, f"nobody{run}"))
