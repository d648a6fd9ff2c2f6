"""Connections to Cassandra. Every process connects with the settings below."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from cassandra import ConsistencyLevel, OperationTimedOut, RequestExecutionException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import ConstantReconnectionPolicy, RetryPolicy, RoundRobinPolicy, TokenAwarePolicy
from cassandra.protocol import ErrorMessage

from master_dataset.errors import CassandraUnavailableError


class Address(NamedTuple):
    """Where Cassandra is, and Galatea's keyspace in it."""

    contact_points: tuple[str, ...]
    port: int
    keyspace: str | None


CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 15.0
"""Longer than the three tries of a ring, whose nodes give up after 4 s when they have asked a lost one."""
RECONNECT_SECONDS = 1.0
"""The driver's own policy waits up to ten minutes before it looks again whether a node is back."""
FAILURES = (RequestExecutionException, OperationTimedOut, NoHostAvailable, ErrorMessage)
"""What the driver raises when the nodes do not answer, or too few of them, or do not know what became of a switch."""
_TRIES = 3
"""The first one included."""


class AnotherNode(RetryPolicy):  # type: ignore[misc]  # the driver has no types
    """What one node could not do in time is asked of another, as the driver itself does when a connection ends.

    All of ours may be asked twice: rows are overwritten by key, and who gets a compare-and-set that did not apply looks
    whether the row says what it wanted, because the first try may have done it.
    """

    def on_read_timeout(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - the driver has no types
        """A replica did not answer in time. The same node, warned, asks another replica, before it knows of a loss."""
        return (self.RETRY if retry_num < _TRIES - 1 else self.RETHROW), None

    def on_write_timeout(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - likewise
        """Too few replicas acknowledged in time; the row may be written."""
        return self._next(retry_num)

    def on_unavailable(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - likewise
        """A node, perhaps one that has just started, knows of too few others. Nothing was done."""
        return self._next(retry_num)

    def _next(self, retry_num: int) -> tuple[int, int | None]:
        return (self.RETRY_NEXT_HOST if retry_num < _TRIES - 1 else self.RETHROW), None


def connect(contact_points: Sequence[str], port: int, keyspace: str | None) -> Session:
    """A session that reads and writes at QUORUM and caches its prepared statements.

    CassandraUnavailableError if no node answers.
    """
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()),
        consistency_level=ConsistencyLevel.QUORUM,
        request_timeout=REQUEST_SECONDS,
        retry_policy=AnotherNode(),
    )
    cluster = Cluster(
        list(contact_points),
        port=port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=CONNECT_SECONDS,
        compression=False,
        reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
    )
    try:
        session = cluster.connect(keyspace)
    except NoHostAvailable as error:
        cluster.shutdown()
        places = ", ".join(f"{point}:{port}" for point in contact_points)
        raise CassandraUnavailableError(f"Cassandra does not answer at `{places}`", do="galatea status") from error
    session.prepare = cache(session.prepare)
    return session


@cache
def session_of(address: Address) -> Session:
    """The one session of this process with that address. In Spark's workers too: the function is sent by name."""
    return connect(address.contact_points, address.port, address.keyspace)
