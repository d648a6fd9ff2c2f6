"""Before a publication points at another generation, the one of now writes nothing more: but not for a preview."""

from datetime import timedelta

import pytest

from batch_layer.publish import generation_to_publish, hand_over, refuse_gap, refuse_partial
from deploy.services.speed import begin
from master_dataset.errors import CutNotReachedError, DefinitionNotCoveredError, GenerationReplacedError
from tests.fast.model.facts import BEGUN, CODES, TOPIC
from tests.fast.model.tables import Tables
from views.control.generation import Generation, Generations, Reached
from views.control.publication import PointerRow, Publication

OLD, NEW = (code.definitions for code in CODES)


def a_served_and_a_new_generation() -> tuple[Generations, Generation, Generation]:
    """The old one has claimed up to 8 and recorded up to 5, as far as the new one has read."""
    tables = Tables()
    PointerRow(tables).begin(BEGUN)
    generations = Generations(tables)
    old = begin(generations, {}, OLD, BEGUN, {})
    assert generations.take_over(old)
    generations.claims.claim(old.number, 0, {TOPIC: {0: 8}})
    generations.record(old.number, [Reached(TOPIC, 0, 5, BEGUN)])
    new = begin(generations, {}, NEW, BEGUN, {})
    generations.record(new.number, [Reached(TOPIC, 0, 5, BEGUN)])
    return generations, old, new


def test_a_preview_with_changed_definitions_lets_the_old_generation_write_on() -> None:
    generations, old, new = a_served_and_a_new_generation()

    chosen = generation_to_publish(generations, generations.pointer(), NEW)

    assert chosen == new.number
    generations.claims.claim(old.number, 1, {TOPIC: {0: 9}})


def test_a_publication_waits_until_the_new_generation_has_read_what_the_old_one_may_have_written() -> None:
    generations, old, new = a_served_and_a_new_generation()
    base = generations.pointer()

    with pytest.raises(CutNotReachedError):
        hand_over(generations, base, new.number)
    generations.record(new.number, [Reached(TOPIC, 0, 8, BEGUN)])
    hand_over(generations, base, new.number)

    with pytest.raises(GenerationReplacedError):
        generations.claims.claim(old.number, 1, {TOPIC: {0: 9}})


def test_a_cut_before_the_first_rows_of_the_generation_is_refused() -> None:
    generations, old, _ = a_served_and_a_new_generation()

    refuse_gap(generations, old.number, old.emit_from)
    refuse_gap(generations, 0, old.emit_from - timedelta(days=1))  # without speed there is no row to miss
    with pytest.raises(CutNotReachedError, match="begin after the cut"):
        refuse_gap(generations, old.number, old.emit_from - timedelta(seconds=1))


def test_a_number_that_another_process_has_begun_is_refused_and_the_same_beginning_again_is_not() -> None:
    generations, old, _ = a_served_and_a_new_generation()

    generations.begin(old, BEGUN)

    with pytest.raises(GenerationReplacedError, match="started by another process"):
        generations.begin(Generation(old.number, BEGUN, NEW, {}), BEGUN)


def a_restored_pointer() -> tuple[Generations, Generation]:
    """A publication without cells and speed rows, and a generation that has to read five records first."""
    tables = Tables()
    pointer = PointerRow(tables)
    pointer.begin(BEGUN)
    assert pointer.publish(pointer.read(), Publication(7, BEGUN, "", 0, BEGUN, "me", "restored"))
    generations = Generations(tables)
    return generations, begin(generations, {TOPIC: {0: 5}}, NEW, BEGUN, {})


def test_after_a_restore_the_first_publication_points_at_the_new_generation() -> None:
    """Without a record that comes later, it would never take over."""
    generations, new = a_restored_pointer()
    base = generations.pointer()

    assert generation_to_publish(generations, base, NEW) == 0
    generations.record(new.number, [Reached(TOPIC, 0, 5, BEGUN)])
    assert not generations.take_over(new)  # before a rebuild, batch has nothing
    assert generation_to_publish(generations, base, NEW) == new.number
    hand_over(generations, base, new.number)
    generations.claims.claim(new.number, 0, {TOPIC: {0: 6}})


def test_after_a_restore_a_generation_of_other_views_is_not_pointed_at() -> None:
    generations, new = a_restored_pointer()
    generations.record(new.number, [Reached(TOPIC, 0, 5, BEGUN)])

    assert generation_to_publish(generations, generations.pointer(), OLD) == 0


def test_after_a_restore_a_part_cannot_be_published_alone() -> None:
    generations, _ = a_restored_pointer()

    with pytest.raises(DefinitionNotCoveredError):
        refuse_partial(generations.pointer(), NEW)
