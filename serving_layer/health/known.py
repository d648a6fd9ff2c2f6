"""What is known when alarms are judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from serving_layer.admin.ledger import Ledger
from serving_layer.health.watched import Hook, Measured, Noticed
from serving_layer.query.read_snapshot import Basis, expires_at
from views.control.publication import Pointer

Standing = tuple[datetime, str, str] | None
"""Since when, what it means, what to do; None if all is well."""


@dataclass(frozen=True)
class Known:
    """`published_at`, `stats`: of the publication that is pointed at. `noticed`: steps of the clock since then.

    `lag`: the last measurements of every reader. `ttl`: how long speed rows live. `ledgers`: of the last
    publications, newest first. `alerts_as_of`: None as long as nobody has kept any alert. `hooks`: every endpoint of
    webhooks. `odd_alerts`: corrections of alerts that nothing explained, of the last day. `alerts_looked_at`: the
    publication whose numbers alerts were compared with last. `left_out`: of alerts, in the last hour.
    """

    now: datetime
    basis: Basis
    published_at: datetime | None
    stats: Mapping[str, Any]
    noticed: Sequence[Noticed]
    lag: Sequence[Measured]
    ttl: timedelta
    ledgers: Sequence[Ledger] = ()
    alerts_as_of: datetime | None = None
    hooks: Sequence[Hook] = ()
    odd_alerts: Sequence[Noticed] = ()
    alerts_looked_at: int = 0
    left_out: Sequence[Noticed] = ()

    @property
    def ledger(self) -> Ledger | None:
        """The newest one, if there is any."""
        return self.ledgers[0] if self.ledgers else None

    @property
    def pointer(self) -> Pointer:
        """What is published."""
        return self.basis.pointer

    @property
    def covered_until(self) -> datetime:
        """Batch covers what was received before; nothing, as long as nothing but the beginning is published."""
        return self.pointer.cut if self.pointer.publication else self.published_at or self.now

    @property
    def expires_at(self) -> datetime:
        """When merged answers are refused."""
        return expires_at(self.covered_until, self.ttl)
