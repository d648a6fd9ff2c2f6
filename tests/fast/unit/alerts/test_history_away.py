"""Whatever the driver raises when Cassandra is away, who keeps alerts or asks for rules hears that it is away."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ServerError

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.rule_versions import RuleVersions
from serving_layer.tables.alerts import RuleTables
from speed_layer.alerts.history_table import HistoryTable

AWAY = [
    NoHostAvailable("Unable to complete the operation against any hosts", {}),
    OperationTimedOut(),
    ServerError(0, "no", None),
]


@pytest.mark.parametrize("error", AWAY, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_store_that_is_away_is_said_to_be_away(error: Exception, *, is_prepared: bool) -> None:
    def fail(*_: object) -> Any:
        raise error

    session = SimpleNamespace(prepare=(lambda cql: cql) if is_prepared else fail, execute=fail)

    with pytest.raises(CassandraUnavailableError):
        HistoryTable(session).positions()
    with pytest.raises(CassandraUnavailableError):
        RuleTables(RuleVersions(session, timedelta())).rules("default")
