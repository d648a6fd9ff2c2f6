"""Where tenants are told: what is kept of an endpoint, and what is not."""

from datetime import UTC, datetime

import pytest
from cassandra.cluster import Session

from master_dataset.endpoint import Endpoint, new_secret
from master_dataset.endpoint_table import EndpointTable
from master_dataset.errors import UnknownName

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
ONE = Endpoint("e1", "acme", "https://acme.example/", "secret", 50, int(NOW.timestamp() * 1000))


def test_an_endpoint_is_kept_suspended_resumed_and_removed_with_its_secret(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra)
    table.add(ONE, NOW)
    table.see("e1", NOW, 7, NOW)

    found = table.find("e1")
    table.suspend("e1", NOW)
    suspended = table.find("e1")
    table.suspend("e1", None)
    renewed = new_secret()
    table.renew("e1", renewed)
    resumed = table.find("e1")
    table.remove("e1", NOW)

    assert (found.endpoint, found.endpoint.made_ms, found.waiting) == (ONE, ONE.made_ms, 7)
    assert (found.state, suspended.state) == ("retrying since 2026-11-22 09:00", "suspended since 2026-11-22 09:00")
    assert resumed.endpoint.secret == renewed
    assert shared_cassandra.execute("SELECT secret FROM webhook_endpoints WHERE id = 'e1'").one().secret == ""
    with pytest.raises(UnknownName):
        table.find("e1")
