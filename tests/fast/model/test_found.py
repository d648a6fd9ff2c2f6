"""What the model has found in the product, so that it stays found."""

import pytest

from batch_layer.publish import generation_to_publish
from deploy.services.speed import begin
from master_dataset.errors import DefinitionNotCoveredError
from tests.fast.model.facts import BEGUN, CODES, TOPIC
from tests.fast.model.tables import Tables
from views.control.generation import Generations, Reached
from views.control.publication import PointerRow

OLD, NEW = (code.definitions for code in CODES)


def begun() -> Generations:
    tables = Tables()
    PointerRow(tables).begin(BEGUN)
    return Generations(tables)


def test_before_the_first_publication_a_generation_of_other_definitions_is_not_published_either() -> None:
    generations = begun()
    first = begin(generations, {}, OLD, BEGUN, {})
    assert generations.take_over(first)

    with pytest.raises(DefinitionNotCoveredError):
        generation_to_publish(generations, generations.pointer(), NEW)

    second = begin(generations, {}, NEW, BEGUN, {})
    assert generation_to_publish(generations, generations.pointer(), NEW) == second.number


def test_a_generation_takes_over_when_it_has_read_what_the_old_one_may_have_half_written() -> None:
    generations = begun()
    old = begin(generations, {}, OLD, BEGUN, {})
    assert generations.take_over(old)
    generations.claims.claim(old.number, 0, {TOPIC: {0: 8, 1: 1}})  # and then it crashed among its rows
    new = begin(generations, {}, OLD, BEGUN, {})

    generations.record(new.number, [Reached(TOPIC, 0, 8, BEGUN)])
    before = generations.take_over(new)
    generations.record(new.number, [Reached(TOPIC, 1, 1, None)])
    after = generations.take_over(new)

    assert (before, after) == (False, True)
