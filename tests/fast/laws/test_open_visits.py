"""Visits of the speed layer, however its micro-batches fall, its driver restarts, and stamps step back in the skew."""

from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.visits.rows import VisitKey, VisitRow, rows_of
from master_dataset.visits.visit import RULES, Sighting, bundles_of
from speed_layer.visits import OpenVisits
from tests.support.examples import examples

SKEW = 5_000
GAP = RULES.gap
BEGIN = 10**12
KNOWN = int(RULES.longest_known.total_seconds() * 1000)
DEVICES = (VisitKey("1", "a", 1), VisitKey("1", "b", 1))
Record = tuple[VisitKey | None, Sighting]
"""Of nobody: a marker, or whatever else lets time pass."""

STEPS = st.sampled_from([0, 1, 60_000, GAP // 2, GAP - 1, GAP, GAP + 1, 2 * GAP])
AGES = st.integers(-RULES.ahead, GAP - RULES.ahead)
DRAWN = st.tuples(STEPS, st.integers(0, SKEW), st.sampled_from([None, *DEVICES]), AGES, st.booleans())
BATCHES = st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=60, max_size=60)
"""How many records each micro-batch has, and whether the driver is another one from there on."""


def records(drawn: list[tuple[int, int, VisitKey | None, int, bool]]) -> list[Record]:
    """In the order of the partition; at last so much time passes that everything closes."""
    now, found = BEGIN, list[Record]()
    for step, back, whose, age, is_inside in drawn:
        now += step
        stamp = max(now - back, BEGIN)
        found.append((whose, Sighting(stamp, stamp - age, is_inside)))
    return [*found, (None, Sighting(now + 20 * GAP, now, is_inside=False))]


def fed(held: OpenVisits, some: Sequence[Record]) -> list[VisitRow]:
    """One micro-batch."""
    found = [row for whose, each in some if whose is not None for row in held.add(0, whose, each)]
    return found + list(held.advance(0, some[-1][1].received)) if some else found


def by_batch(all_: Iterable[Record]) -> list[VisitRow]:
    """What batch makes of all of them."""
    heard = list(all_)
    return [
        row
        for device in DEVICES
        for bundle in bundles_of((each for whose, each in heard if whose == device), GAP)
        for row in rows_of(device, bundle, RULES)
    ]


@settings(max_examples=examples(400), deadline=None)
@given(drawn=st.lists(DRAWN, min_size=1, max_size=50), batches=BATCHES)
def test_speed_makes_the_visits_of_batch_once_each(
    drawn: list[tuple[int, int, VisitKey | None, int, bool]], batches: list[tuple[int, bool]]
) -> None:
    all_ = records(drawn)
    held, made, at = OpenVisits(RULES, SKEW), list[VisitRow](), 0

    for size, is_another in batches:
        if is_another and 0 < at < len(all_):
            held, last = OpenVisits(RULES, SKEW), all_[at - 1][1].received
            fed(held, [each for each in all_[:at] if each[1].received >= last - KNOWN])
        made += fed(held, all_[at : at + size])
        at += size

    assert sorted(made) == sorted(by_batch(all_))
    assert len(held) == 0


def test_a_stamp_that_steps_back_within_the_skew_still_belongs_to_the_visit() -> None:
    device, held = DEVICES[0], OpenVisits(RULES, SKEW)
    first, later = Sighting(BEGIN, BEGIN, is_inside=True), BEGIN + GAP - 1_000

    made = fed(held, [(device, first)])
    made += fed(held, [(None, Sighting(BEGIN + GAP + 1, 0, is_inside=False))])
    made += fed(held, [(device, Sighting(later, later, is_inside=True))])
    made += fed(held, [(None, Sighting(BEGIN + 9 * GAP, 0, is_inside=False))])

    assert [row[-1] for row in made] == [GAP - 1_000]
