"""Which days a rebuild reads again: each on which a visit was open at the base's cut, and is over at the new one."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from batch_layer.plan import Planner
from master_dataset.visits.visit import RULES
from views.control.publication import Pointer
from views.control.recompute import RecomputeRequest
from views.core.cut import UNIX_EPOCH
from views.registry import registered_views

BEGIN = UNIX_EPOCH + timedelta(days=20_000)
EPOCH, GAP = timedelta(minutes=5), timedelta(milliseconds=RULES.gap)
[VISITS] = [view for view in registered_views() if view.counts_visits]
SIGHTINGS, DEVICES, CUTS = 120, 4, 12


@dataclass(frozen=True)
class Heard:
    """The table of sightings, with the day of each and when it was received."""

    rows: list[tuple[date, datetime]]
    version: int = 1

    def days(self, _: object) -> set[date]:
        return {day for day, _ in self.rows}

    def days_received(self, since: datetime, before: datetime) -> set[date]:
        return {day for day, received_at in self.rows if since <= received_at < before}

    def days_stepped_back(self, *_: object) -> set[date]:
        return set()


def heard(chance: Random) -> list[list[datetime]]:
    """By device, when it was heard: in and out of range for three days."""
    hours = timedelta(hours=72)
    return [
        sorted(BEGIN + hours * chance.random() + timedelta(minutes=chance.choice([0, 10, 29])) for _ in range(30))
        for _ in range(DEVICES)
    ]


def closings(devices: list[list[datetime]]) -> dict[date, list[datetime]]:
    """By day of a sighting, when the bundles that it is in were over: nothing had come for longer than the gap."""
    found: dict[date, list[datetime]] = defaultdict(list)
    for times in devices:
        days: set[date] = set()
        for number, at in enumerate(times):
            days.add(at.date())
            if number + 1 == len(times) or times[number + 1] - at > GAP:
                for day in days:
                    found[day].append(at + GAP)
                days = set()
    return found


def every_visit_that_ends_is_read(seeds: int = 20) -> None:
    """R12: what was open at the base's cut and is over at the new one is part of what is recomputed."""
    for seed in range(seeds):
        chance = Random(seed)
        devices = heard(chance)
        master: Any = Heard([(at.date(), at) for times in devices for at in times])
        topic = VISITS.source.topic
        definitions = {VISITS.name: VISITS.definition_hash}
        cuts = sorted({BEGIN + EPOCH * chance.randint(1, 900) for _ in range(CUTS)})
        for base, cut in pairwise(cuts):
            pointer = Pointer(1, base, "run-1", 1, definitions)
            planner = Planner([VISITS], {topic: master}, pointer, {topic: 1}, EPOCH, GAP)
            plan = planner.plan(RecomputeRequest(), cut, 1, definitions)
            ended = {day for day, times in closings(devices).items() if any(base <= at < cut for at in times)}
            assert ended <= plan.days, f"seed {seed}, {base} to {cut}: {ended - plan.days} are not read"
