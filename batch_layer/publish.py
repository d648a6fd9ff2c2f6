"""The switch to a new publication, and the checks that allow it (R11, R12).

A publication points at one generation of the speed layer, made with the same definitions and read as far as the one
before. The switch itself is one compare-and-set; if its outcome is unknown, the history decides.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import structlog

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import (
    CutNotReachedError,
    DefinitionNotCoveredError,
    NothingPublishedError,
    PublicationMovedError,
)
from views.control.generation import Generations
from views.control.publication import Pointer, PointerRow, Publication


def generation_to_publish(generations: Generations, base: Pointer, current: Mapping[str, str]) -> int:
    """The generation to publish with: same definitions, and as far as the current one (R12). 0: none yet.

    Where none is current although something was published, a backup was restored: the newest one serves, if it has read
    what the topics had at its start. Otherwise it takes over by itself once it has. Changes nothing: see `hand_over`.
    """
    if dict(base.definitions) == dict(current) or not (base.generation or base.publication):
        return base.generation
    newest = generations.find(generations.greatest())
    if newest is not None and dict(newest.definitions) == dict(current):
        if generations.is_as_far(newest, base.generation):
            return newest.number
        if base.generation:
            raise _not_caught_up(newest.number)
    if not base.generation:
        return 0
    message = "the definitions of the views differ from the published ones and no speed layer runs with them"
    raise DefinitionNotCoveredError(message, do="galatea down, galatea up --detach, then: galatea rebuild")


def hand_over(generations: Generations, base: Pointer, to: int) -> None:
    """Stop the current generation from writing, before a publication points at another one.

    CutNotReachedError if it may have written what `to` has not read yet; it is replaced in any case.
    """
    generation = generations.find(to)
    if generation is not None and to != base.generation and not generations.has_caught_up(generation, base.generation):
        raise _not_caught_up(to)


def _not_caught_up(number: int) -> CutNotReachedError:
    message = f"generation {number} of the speed layer has the new definitions but has not caught up"
    return CutNotReachedError(message, do="galatea status; wait a little, then: galatea rebuild")


def refuse_gap(generations: Generations, to: int, cut: datetime) -> None:
    """Events received between the cut and the first rows of the generation would be in neither layer."""
    generation = generations.find(to) if to else None
    if generation is not None and generation.emit_from > cut:
        message = f"the rows of generation {to} of the speed layer begin after the cut {cut:%F %T} UTC"
        raise CutNotReachedError(message, do="galatea status; once Kafka responds: galatea rebuild")


def refuse_partial(base: Pointer, current: Mapping[str, str]) -> None:
    """A partial recompute keeps the published cut, so everything else must be published with the same definitions."""
    if not base.publication:
        raise NothingPublishedError(
            "nothing is published yet, so a part cannot be recomputed alone", do="galatea rebuild"
        )
    if dict(base.definitions) != dict(current):
        message = "the definitions of the views differ from the published ones, so a part cannot be recomputed alone"
        raise DefinitionNotCoveredError(message, do="galatea rebuild")


log = structlog.get_logger()


def publish(pointer: PointerRow, base: Pointer, new: Publication) -> None:
    """Switch readers to `new`. PublicationMovedError if somebody else has published since `base` was read.

    A generation with the same definitions that took over in the meantime is kept: it starts at the base's cut or
    before. After a failure, or a retry that found its own first attempt, the history decides: if its row is ours, so is
    the switch. Raises what the driver raised if nothing was published at all.
    """
    now = pointer.read()
    if now.publication == base.publication and dict(now.definitions) == dict(new.definitions):
        base, new = replace(base, generation=now.generation), replace(new, generation=now.generation)
    failure = None
    try:
        if pointer.publish(base, new):
            return
    except CASSANDRA_UNAVAILABLE as error:
        log.warning("rebuild.outcome_unknown", publication=new.number)
        failure = error
    found = pointer.publication(new.number)
    if found is None and failure is not None:
        raise failure
    if found is None or found.manifest != new.manifest:
        message = f"somebody else published after publication {base.publication}, on which this run was based"
        raise PublicationMovedError(message, do="galatea rebuild")
