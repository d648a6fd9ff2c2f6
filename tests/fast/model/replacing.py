"""What replaces a generation, and without which rule."""

from datetime import datetime

import orjson

from tests.fast.model.facts import TOPIC
from tests.fast.model.rules import Rule
from tests.fast.model.tables import Tables
from views.control.generation import Claims, Generation, Generations, Offsets


def generations_without(rule: Rule | None, tables: Tables) -> Generations:
    """The product's own, or without that rule."""
    if rule is Rule.TARGETS:
        return _AtOnce(tables)
    generations = Generations(tables)
    if rule is Rule.HALF_WRITTEN:
        generations.claims = _ByPositions(tables)
    if rule is Rule.OLD_DRIVER_ENDS:
        return _WithoutFence(tables)
    return generations


class _AtOnce(Generations):
    def has_caught_up(self, generation: Generation, served: int) -> bool:
        return generation.number >= served


class _ByPositions(Claims):
    def replace(self, number: int, wanted_from: datetime | None = None) -> Offsets:  # noqa: ARG002 - nobody rolls back here
        super().replace(number)
        return {}


class _WithoutFence(Generations):
    """Looks how far the old one may have written, and moves readers a while later: the old one may have gone on."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.claims = _WithoutReplacing(tables)
        self._was: dict[int, bool] = {}

    def has_caught_up(self, generation: Generation, served: int) -> bool:
        has = super().has_caught_up(generation, served)
        had, self._was[generation.number] = self._was.get(generation.number, False), has
        return had if served else has


class _WithoutReplacing(Claims):
    def replace(self, number: int, wanted_from: datetime | None = None) -> Offsets:  # noqa: ARG002 - nobody asks
        found = self._state(number)
        ends = orjson.loads(found.claimed_ends)[TOPIC] if found.claimed_ends else {}
        return {TOPIC: {int(partition): at for partition, at in ends.items()}}
