"""How an endpoint is doing, as whoever calls it has seen it last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from master_dataset.webhooks.endpoint import Endpoint

EndpointWord = Literal["ok", "refusing", "retrying", "suspended"]
MOST_BLOCKED = 20
"""So many of the stores that are blocked are told, those that wait longest."""


class Blocking(NamedTuple):
    """A record that is tried again and again, and all of its store behind it. `why`: one sentence."""

    topic: str
    partition: int
    offset: int
    store: str
    since: datetime
    why: str

    @property
    def id(self) -> str:
        """As an operator names it."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class EndpointState:
    """All None: nobody has called it yet.

    `status`: of the last answer; None with `answered_at`: there was none. `records`: told, or not its tenant's, and not
    read or delivered yet. `oldest_at`: when the oldest of those was received that were read and wait. `refusing_since`:
    since when nothing was delivered and all that was settled was refused.
    """

    failing_since: datetime | None = None
    status: int | None = None
    answered_at: datetime | None = None
    delivered_at: datetime | None = None
    records: int = 0
    oldest_at: datetime | None = None
    blocking: Sequence[Blocking] = ()
    seen_at: datetime | None = None
    refusing_since: datetime | None = None


class Registered(NamedTuple):
    """An endpoint, whether it is suspended, and how it is doing. `has_begun`: its place is one of the topic's."""

    endpoint: Endpoint
    suspended_at: datetime | None = None
    state: EndpointState = EndpointState()
    has_begun: bool = False

    @property
    def word(self) -> EndpointWord:
        """`ok`, `refusing`, `retrying` or `suspended`."""
        if self.suspended_at:
            return "suspended"
        return "retrying" if self.state.failing_since else "refusing" if self.state.refusing_since else "ok"

    @property
    def since(self) -> datetime | None:
        """Since when it is what it is; None for one that is well."""
        return self.suspended_at or self.state.failing_since or self.state.refusing_since
