"""`staff_hours`: who is planned for which shift, who worked when, and the corrections that somebody makes later."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from lab.simulation.records import Records, Wire
from lab.simulation.shop_day import HOUR_MS, MINUTE_MS, ShopDay, Span, chance, quarter, written

LONGEST_SHIFT_MS = 8 * HOUR_MS
BREAK_AFTER_MS = 5 * HOUR_MS
ROLES = ("checkout", "sales_floor", "sales_floor", "other", "checkout")
CORRECTED = 0.1
"""Of the worked segments."""


class Shift(NamedTuple):
    """`planned`: as the roster says. `worked`: as the time clock says, without breaks."""

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


def roster(day: ShopDay) -> Sequence[Shift]:
    """Fill the opening hours with shifts, each of a crew that has a person for every role."""
    crew = chance(day.seed, day.store.id, "crew").randint(2, len(ROLES))
    drawn, found = day.chance("roster"), list[Shift]()
    for opens, closes in day.open:
        parts = -(-(closes - opens) // LONGEST_SHIFT_MS)
        edges = [quarter(opens + (closes - opens) * part // parts) for part in range(parts)] + [closes]
        for planned in pairwise(edges):
            for role in ROLES[:crew]:
                staff = f"s-{chance(day.seed, day.store.id, 'staff', str(len(found))).getrandbits(32):08x}"
                found.append(Shift(staff, role, planned, _worked(day, drawn, planned)))
    return found


def _worked(day: ShopDay, drawn: Random, planned: Span) -> tuple[Span, ...]:
    starts = max(planned[0] + drawn.randint(-10, 5) * MINUTE_MS, day.begins)
    ends = min(max(planned[1] + drawn.randint(-5, 12) * MINUTE_MS, starts + MINUTE_MS), day.ends - 1)
    if ends - starts < BREAK_AFTER_MS:
        return ((starts, ends),)
    pause = starts + (ends - starts) // 2 + drawn.randint(-30, 30) * MINUTE_MS
    return ((starts, pause), (pause + drawn.randint(20, 40) * MINUTE_MS, ends))


def staff_hours(day: ShopDay, shifts: Sequence[Shift]) -> Records:
    """Send every segment once it is over, and some of them once more: taken back, with another one in its place."""
    wire, drawn = Wire(day, "staff_hours"), day.chance("corrections")
    for shift in shifts:
        segments = [("planned", shift.planned), *(("worked", span) for span in shift.worked)]
        for kind, (starts, ends) in segments:
            said = {"staff": shift.staff, "kind": kind, "role": shift.role, "started_at": written(starts)}
            yield wire.record(ends, "", said)
            if kind == "worked" and drawn.random() < CORRECTED:
                known, right = ends + drawn.randint(5, 90) * MINUTE_MS, ends - drawn.randint(1, 10) * MINUTE_MS
                yield wire.record(ends, "", {**said, "sign": -1, "revision": 1}, known)
                yield wire.record(max(right, starts), "", said, known)
