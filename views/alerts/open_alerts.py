"""What the log says of each alert by now: whether it stands or was taken back, and by which record.

    raised -> resolved (corrected) or retracted

What was taken back stays so: if it is true after all, another alert is raised, whose id follows from the first one's.
So whoever asks for a record twice asks for the same.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from views.alerts.alert import Alert, following_id, instant_ms

CORRECTED = "corrected"
"""The reason of a resolved alert that was over because later events said otherwise."""
GRACE_MS = 120_000
"""How long after its end a window is judged, by the relay and by publications: `grace` of `Bounds`."""


class Standing(NamedTuple):
    """Of one alert. `last`: the record that took it back, or else the one that raised it. `is_over`: resolved."""

    raised: Alert
    last: Alert
    is_over: bool = False

    @property
    def is_taken_back(self) -> bool:
        """Whether it was said not to be true."""
        return self.last is not self.raised

    @property
    def is_corrected(self) -> bool:
        """Whether the relay took it back, as later events said otherwise. It does not tell the same window again."""
        return self.last.reason == CORRECTED and self.last.publication is None

    @property
    def successor(self) -> str:
        """Of one that was taken back: the id under which it is raised again if it is true after all."""
        return following_id(self.raised.alert_id, "raised")


def standings(log: Iterable[Alert], asked: Iterable[Alert] = ()) -> Mapping[str, Standing]:
    """By the id under which each was raised. `log`: in order, of all there is.

    What follows an alert counts also where it is read first: each is about an id.

    `asked`: what publications asked for, in order; what the log has not yet of it will come behind all that it has.
    """
    found: dict[str, Standing] = {}
    early: dict[str, list[Alert]] = {}
    seen: set[str] = set()
    for record in chain(log, asked):
        if record.alert_id in seen:
            continue
        seen.add(record.alert_id)
        if record.kind == "raised":
            standing = Standing(record, record)
            for follower in early.pop(record.alert_id, ()):
                standing = _followed(standing, follower)
            found[record.alert_id] = standing
        elif (about := found.get(record.about or "")) is not None:
            found[about.raised.alert_id] = _followed(about, record)
        else:
            early.setdefault(record.about or "", []).append(record)
    return found


def _followed(about: Standing, record: Alert) -> Standing:
    last = record if _takes_back(record) and not about.is_taken_back else about.last
    return about._replace(last=last, is_over=about.is_over or record.kind == "resolved")


def is_confirmed(standing: Standing, cut_ms: int) -> bool:
    """Whether the publication with that cut has looked at it and left it as it is, standing or taken back before.

    Nothing is sent then. Silences and levels have no end, and are never confirmed.
    """
    end = standing.raised.window.end
    if end is None:
        return False
    rests_on_speed = standing.last.publication is None and standing.last.raised_ms >= cut_ms
    return instant_ms(end) + GRACE_MS <= cut_ms and not rests_on_speed


def is_provisional(standing: Standing, cut_ms: int) -> bool:
    """Whether no publication has said it, or confirmed it yet. `cut_ms`: of the last one that looked at alerts."""
    return standing.last.provisional and not is_confirmed(standing, cut_ms)


def _takes_back(record: Alert) -> bool:
    return record.kind == "retracted" or record.reason == CORRECTED
