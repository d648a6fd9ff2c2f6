"""Claims in real Cassandra: of two drivers that disagree one is refused, and no answer shrinks at a take-over."""

import itertools
from datetime import UTC, datetime

import pytest
from cassandra.cluster import Session

from master_dataset.errors import CheckpointOutOfStepError, GenerationReplacedError
from views.control.generation import Claims, Generation, Generations, Offsets, Reached
from views.control.publication import PointerRow
from views.core.cut import UNIX_EPOCH

NOW = datetime(2026, 3, 7, 9, 0, 3, tzinfo=UTC)
NUMBERS = itertools.count(1)


@pytest.fixture
def generations(shared_cassandra: Session) -> Generations:
    return Generations(shared_cassandra)


def begun(generations: Generations, targets: Offsets | None = None, emit_from: datetime = UNIX_EPOCH) -> Generation:
    """A generation of a number that no other test has."""
    generation = Generation(next(NUMBERS), emit_from, {}, targets or {})
    generations.begin(generation, NOW)
    return generation


def ends(first: int, second: int = 0) -> Offsets:
    return {"t": {0: first, 1: second}}


def wrote(generations: Generations, generation: Generation, micro_batch: int, to: int) -> None:
    """A micro-batch from its claim to its positions."""
    generations.claims.claim(generation.number, micro_batch, ends(to))
    generations.record(generation.number, [Reached("t", 0, to, NOW), Reached("t", 1, 0, None)])


def test_a_micro_batch_follows_the_last_one_or_repeats_it(generations: Generations) -> None:
    claims, number = generations.claims, begun(generations).number

    claims.claim(number, 0, ends(4))
    claims.claim(number, 0, ends(4))
    claims.claim(number, 1, ends(6, 2))

    with pytest.raises(CheckpointOutOfStepError):
        claims.claim(number, 3, ends(9, 2))  # rows of 2 were lost, or Cassandra was put back
    with pytest.raises(CheckpointOutOfStepError):
        claims.claim(number, 0, ends(4))  # the checkpoint was put back


def test_of_two_drivers_that_read_to_different_ends_the_second_is_refused(generations: Generations) -> None:
    claims, number = generations.claims, begun(generations).number
    claims.claim(number, 0, ends(4))

    with pytest.raises(CheckpointOutOfStepError):
        claims.claim(number, 0, ends(5))


def test_a_generation_that_cassandra_does_not_know_claims_nothing(shared_cassandra: Session) -> None:
    with pytest.raises(CheckpointOutOfStepError):
        Claims(shared_cassandra).claim(next(NUMBERS), 0, ends(4))


def test_a_replaced_generation_claims_nothing_more_and_says_up_to_where_it_may_have_written(
    generations: Generations,
) -> None:
    claims, number = generations.claims, begun(generations).number
    claims.claim(number, 0, ends(4))

    may_have_written = claims.replace(number)

    assert may_have_written == ends(4)
    assert claims.replace(number) == ends(4)
    assert claims.is_replaced(number)
    with pytest.raises(GenerationReplacedError):
        claims.claim(number, 1, ends(6))


def test_a_new_generation_waits_for_what_the_old_one_may_have_half_written(generations: Generations) -> None:
    old, new = begun(generations), begun(generations)
    wrote(generations, old, 0, to=4)
    generations.claims.claim(old.number, 1, ends(9))  # some of its rows may be there, its positions are not
    wrote(generations, new, 0, to=4)

    too_early = generations.has_caught_up(new, old.number)
    wrote(generations, new, 1, to=9)

    assert not too_early
    assert generations.has_caught_up(new, old.number)


def test_an_old_generation_goes_on_until_the_new_one_has_come_as_far(generations: Generations) -> None:
    old, new = begun(generations), begun(generations)
    wrote(generations, old, 0, to=4)
    wrote(generations, new, 0, to=3)

    generations.has_caught_up(new, old.number)

    wrote(generations, old, 1, to=5)
    assert not generations.claims.is_replaced(old.number)


def test_the_first_generation_takes_over_at_the_ends_that_it_saw_at_its_start(
    generations: Generations, shared_cassandra: Session
) -> None:
    PointerRow(shared_cassandra).begin(NOW)
    first = begun(generations, ends(4))
    wrote(generations, first, 0, to=3)

    too_early = generations.take_over(first)
    wrote(generations, first, 1, to=4)

    assert not too_early
    assert generations.take_over(first)
    assert generations.pointer().generation == first.number


def test_a_generation_that_begins_behind_the_published_cut_makes_room_for_another_one(
    generations: Generations, shared_cassandra: Session
) -> None:
    PointerRow(shared_cassandra).begin(NOW)  # somebody has rolled back to a cut before it
    late = begun(generations, emit_from=NOW)
    wrote(generations, late, 0, to=4)

    taken_over = generations.take_over(late)

    assert not taken_over
    assert generations.claims.is_replaced(late.number)


def test_a_partition_without_records_keeps_the_time_of_its_last_one(
    generations: Generations, shared_cassandra: Session
) -> None:
    number = begun(generations).number
    generations.record(number, [Reached("t", 0, 4, NOW)])

    generations.record(number, [Reached("t", 0, 6, None)])

    found = shared_cassandra.execute("SELECT * FROM speed_positions WHERE generation = %s", (number,)).one()
    assert (found.position, found.received_at.replace(tzinfo=UTC)) == (6, NOW.replace(microsecond=0))
