"""Alert rules: a bound on a metric, a silence, or a level that lasts."""

from decimal import Decimal
from typing import Literal

import msgspec

WindowLength = Literal["15m", "hour", "day"]
Hours = Literal["open", "always"]


class _Rule(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """What every rule has. `stores`: ids; None means every store of the tenant. `on`: whether it is active."""

    id: str
    tenant: str = "default"
    name: str = ""
    stores: tuple[str, ...] | None = None
    on: bool = True

    def watches(self, store: str, tenant: str) -> bool:
        """Whether the rule is active and applies to that store of that tenant."""
        return self.on and tenant == self.tenant and (self.stores is None or store in self.stores)


class Threshold(_Rule, frozen=True, kw_only=True, tag="threshold"):
    """A metric of one window beyond a bound: exactly one of `above` and `below`, in display units.

    With `versus`, the bound is a percentage of the window seven days before.
    `hours`: None means `open` for `below` and `versus`, else `always`.
    """

    metric: str
    window: WindowLength
    above: Decimal | None = None
    below: Decimal | None = None
    versus: Literal["previous_week"] | None = None
    hours: Hours | None = None

    @property
    def only_open(self) -> bool:
        """Whether only windows inside the opening hours count."""
        return self.hours == "open" or (self.hours is None and (self.above is None or self.versus is not None))


class Silence(_Rule, frozen=True, kw_only=True, tag="silence"):
    """No event of a source for this many minutes: from a store, or from a sensor that has sent events before."""

    source: str
    minutes: int
    per: Literal["store", "sensor"] = "store"
    hours: Hours = "open"


class Level(_Rule, frozen=True, kw_only=True, tag="level"):
    """More people than `above` for this many minutes: waiting in one queue, or inside the store."""

    of: Literal["queue", "occupancy"]
    above: int
    minutes: int


Rule = Threshold | Silence | Level

LEVEL_SOURCES = {"queue": "queue_events", "occupancy": "people_counts"}
"""The source from whose events a level is computed."""
