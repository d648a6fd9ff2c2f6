"""What may be done with webhooks, wired from settings: for REST and for the command line."""

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import httpx

from deploy.cassandra import session_of
from deploy.webhooks.endpoints import KeptEndpoints
from deploy.webhooks.trial import TryingWebhooks
from master_dataset.webhooks.endpoint_table import EndpointTable
from serving_layer.webhooks.service import Webhooks

if TYPE_CHECKING:
    from deploy.settings import Settings


def webhooks_of(settings: "Settings") -> Webhooks:
    """Of this deployment."""
    keeper = KeptEndpoints(EndpointTable(session_of(settings.cassandra_address)))
    trying = TryingWebhooks(settings.allowed_networks, httpx.create_ssl_context())
    allowed = settings.allowed_networks
    return Webhooks(keeper, trying, settings.webhooks_per_tenant, partial(datetime.now, UTC), allowed)
