"""What the log says of each alert by now: whether it stands or was taken back, and by which record.

    raised -> resolved (corrected) or retracted -> reinstated -> retracted -> ...

Each record's id follows from the one before it, so whoever asks for the next one twice asks for the same.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from views.alerts.alert import Alert, instant_ms

CORRECTED = "corrected"
"""The reason of a resolved alert that was over because later events said otherwise."""


class Standing(NamedTuple):
    """Of one alert. `last`: the newest of its records that says whether it is true."""

    raised: Alert
    last: Alert

    @property
    def is_taken_back(self) -> bool:
        """Whether it was said not to be true."""
        return self.last.kind in {"resolved", "retracted"}

    @property
    def shown(self) -> Alert:
        """The record whose value readers have."""
        return self.last if self.last.kind != "resolved" else self.raised


def standings(log: Iterable[Alert], asked: Iterable[Alert] = ()) -> Mapping[str, Standing]:
    """By the id under which each was raised. `log`: in order, of all there is.

    `asked`: what publications asked for, in order; what the log has not yet of it will come behind all that it has.
    """
    found: dict[str, Standing] = {}
    seen: set[str] = set()
    for record in (*log, *asked):
        if record.alert_id in seen:
            continue
        seen.add(record.alert_id)
        if record.kind == "raised":
            found[record.alert_id] = Standing(record, record)
        elif record.raised in found and _says_whether(record):
            found[record.raised] = found[record.raised]._replace(last=record)
    return found


def is_confirmed(standing: Standing, cut_ms: int, grace_ms: int) -> bool:
    """Whether the publication with that cut has looked at it and left it standing: it is provisional no more.

    Nothing is sent then. Silences and levels have no end, and stay provisional. `grace_ms`: see `Bounds`.
    """
    end = standing.raised.window.end
    if end is None or standing.is_taken_back:
        return False
    rests_on_speed = standing.last.publication is None and standing.last.raised_ms >= cut_ms
    return instant_ms(end) + grace_ms <= cut_ms and not rests_on_speed


def _says_whether(record: Alert) -> bool:
    return record.kind != "resolved" or record.reason == CORRECTED
