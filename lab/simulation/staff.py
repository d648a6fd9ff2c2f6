"""`staff_hours`: planned shifts, worked hours, and later corrections."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from lab.simulation.records import RecordFactory, Records
from lab.simulation.store_day import HOUR_MS, MINUTE_MS, Span, StoreDay, format_instant, random_stream, window_start

LONGEST_SHIFT_MS = 8 * HOUR_MS
BREAK_AFTER_MS = 5 * HOUR_MS
ROLES = ("checkout", "sales_floor", "sales_floor", "other", "checkout")
CORRECTED = 0.1
"""Share of the worked segments."""


class Shift(NamedTuple):
    """`planned`: by the roster. `worked`: by the time clock, without breaks."""

    staff: str
    role: str
    planned: Span
    worked: tuple[Span, ...]

    @property
    def came_ms(self) -> int:
        """When the first worked segment began."""
        return self.worked[0][0]

    @property
    def left_ms(self) -> int:
        """When the last worked segment ended."""
        return self.worked[-1][1]


def roster(day: StoreDay) -> Sequence[Shift]:
    """Fill the opening hours with shifts; a crew has a person for every role."""
    crew = random_stream(day.seed, day.store.id, "crew").randint(2, len(ROLES))
    rng, found = day.rng("roster"), list[Shift]()
    for opens, closes in day.open:
        parts = -(-(closes - opens) // LONGEST_SHIFT_MS)
        edges = [window_start(opens + (closes - opens) * part // parts) for part in range(parts)] + [closes]
        for planned in pairwise(edges):
            for role in ROLES[:crew]:
                staff = f"s-{random_stream(day.seed, day.store.id, 'staff', str(len(found))).getrandbits(32):08x}"
                found.append(Shift(staff, role, planned, _worked(day, rng, planned)))
    return found


def _worked(day: StoreDay, rng: Random, planned: Span) -> tuple[Span, ...]:
    starts = max(planned[0] + rng.randint(-10, 5) * MINUTE_MS, day.begins)
    ends = min(max(planned[1] + rng.randint(-5, 12) * MINUTE_MS, starts + MINUTE_MS), day.ends - 1)
    if ends - starts < BREAK_AFTER_MS:
        return ((starts, ends),)
    pause = starts + (ends - starts) // 2 + rng.randint(-30, 30) * MINUTE_MS
    return ((starts, pause), (pause + rng.randint(20, 40) * MINUTE_MS, ends))


def staff_hours(day: StoreDay, shifts: Sequence[Shift]) -> Records:
    """Send every segment when it ends; some are reversed later and replaced by another one."""
    wire, rng = RecordFactory(day, "staff_hours"), day.rng("corrections")
    for shift in shifts:
        segments = [("planned", shift.planned), *(("worked", span) for span in shift.worked)]
        for kind, (starts, ends) in segments:
            said = {"staff": shift.staff, "kind": kind, "role": shift.role, "started_at": format_instant(starts)}
            yield wire.record(ends, "", said)
            if kind == "worked" and rng.random() < CORRECTED:
                known, right = ends + rng.randint(5, 90) * MINUTE_MS, ends - rng.randint(1, 10) * MINUTE_MS
                yield wire.record(ends, "", {**said, "sign": -1, "revision": 1}, known)
                yield wire.record(max(right, starts), "", said, known)
