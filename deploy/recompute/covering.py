"""With which generation of the speed layer may be published, and what is refused because there is none (R12)."""

from collections.abc import Mapping
from datetime import datetime

from master_dataset.errors import CutNotReached, DefinitionNotCovered, NothingPublished
from speed_layer.generation import Generations
from views.control.publication import Pointer


def generation_to_publish(generations: Generations, base: Pointer, current: Mapping[str, str]) -> int:
    """The generation to publish with: of the same definitions, and as far as the one of now (R12). 0: none yet.

    Changes nothing: see `hand_over`.
    """
    if not base.generation or dict(base.definitions) == dict(current):
        return base.generation
    newest = generations.find(generations.greatest())
    if newest is not None and dict(newest.definitions) == dict(current):
        if generations.is_as_far(newest, base.generation):
            return newest.number
        raise _not_caught_up(newest.number)
    message = "the definitions of the views differ from the published ones and no speed layer runs with them"
    raise DefinitionNotCovered(message, do="galatea down, galatea up --detach, then: galatea rebuild")


def hand_over(generations: Generations, base: Pointer, to: int) -> None:
    """Before a publication points at another generation: let the one of now write nothing more.

    CutNotReached if that may have written what `to` has not read yet; it is replaced all the same.
    """
    generation = generations.find(to)
    if generation is not None and to != base.generation and not generations.has_caught_up(generation, base.generation):
        raise _not_caught_up(to)


def _not_caught_up(number: int) -> CutNotReached:
    message = f"generation {number} of the speed layer has the new definitions but has not caught up"
    return CutNotReached(message, do="galatea status; wait a little, then: galatea rebuild")


def refuse_gap(generations: Generations, to: int, cut: datetime) -> None:
    """What was received between a cut and the first rows of the generation would be in neither layer."""
    generation = generations.find(to) if to else None
    if generation is not None and generation.emit_from > cut:
        message = f"the rows of generation {to} of the speed layer begin after the cut {cut:%F %T} UTC"
        raise CutNotReached(message, do="galatea status; when Kafka answers: galatea rebuild")


def refuse_partial(base: Pointer, current: Mapping[str, str]) -> None:
    """A part keeps the published cut, so everything else has to be published already, with the same definitions."""
    if not base.publication:
        raise NothingPublished("nothing is published yet, so a part cannot be recomputed alone", do="galatea rebuild")
    if dict(base.definitions) != dict(current):
        message = "the definitions of the views differ from the published ones, so a part cannot be recomputed alone"
        raise DefinitionNotCovered(message, do="galatea rebuild")
