"""Endpoints of a World: kept in a list, called by nobody."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from master_dataset.webhooks.endpoint import Endpoint, RegisteredEndpoint
from serving_layer.responses.webhooks import WebhookTrial
from serving_layer.webhooks.service import RecordPosition

WELL = WebhookTrial("done", 204, None, 12)


@dataclass
class WorldEndpoints:
    """Keeper. `skipped`: endpoint, place and by whom."""

    kept: dict[str, RegisteredEndpoint] = field(default_factory=dict)
    skipped: list[tuple[str, RecordPosition, str]] = field(default_factory=list)

    def put(self, registered: RegisteredEndpoint) -> None:
        """As whoever calls them would leave it."""
        self.kept[registered.endpoint.id] = registered

    async def all(self) -> Sequence[RegisteredEndpoint]:
        return list(self.kept.values())

    async def add(self, endpoint: Endpoint) -> None:
        self.put(RegisteredEndpoint(endpoint))

    async def change(self, endpoint: Endpoint) -> None:
        self.put(self.kept[endpoint.id]._replace(endpoint=endpoint))

    async def remove(self, endpoint: Endpoint) -> None:
        del self.kept[endpoint.id]

    async def resume(self, endpoint: Endpoint) -> None:
        old = self.kept[endpoint.id]
        self.put(old._replace(suspended_at=None, state=replace(old.state, failing_since=None)))

    async def renew(self, endpoint: Endpoint, secret: str) -> None:
        old = self.kept[endpoint.id]
        self.put(old._replace(endpoint=replace(old.endpoint, secret=secret)))

    async def skip(self, endpoint: Endpoint, place: RecordPosition, by: str) -> None:
        self.skipped.append((endpoint.id, place, by))


@dataclass
class WorldTrying:
    """Trying: says what `trial` says."""

    trial: WebhookTrial = WELL
    called: list[Endpoint] = field(default_factory=list)

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        self.called.append(endpoint)
        return self.trial
