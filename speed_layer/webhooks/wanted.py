"""What is wanted of whoever calls endpoints, and where it says how they are doing."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from master_dataset.webhooks.endpoint import Endpoint
from master_dataset.webhooks.endpoint_state import EndpointState
from speed_layer.webhooks.delivery import Place


class Wanted(NamedTuple):
    """An endpoint that is not removed. `failing_since`: as it was told last. `skipped`: what it goes on without.

    `has_begun`: the broker knew where it stands.
    """

    endpoint: Endpoint
    is_suspended: bool = False
    failing_since: float | None = None
    skipped: frozenset[Place] = frozenset()
    has_begun: bool = False


class Endpoints(Protocol):
    """All of them. Every method raises Unavailable."""

    async def wanted(self) -> Sequence[Wanted]:
        """Those that are not removed."""

    async def begun(self, endpoint: Endpoint) -> None:
        """From now on the broker knows where it stands."""

    async def suspend(self, endpoint: Endpoint) -> None:
        """Call it no more until somebody resumes it."""

    async def see(self, endpoint: Endpoint, state: EndpointState) -> None:
        """How it is doing."""
