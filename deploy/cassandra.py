"""Connections to Cassandra. Every process connects with these options."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import ConstantReconnectionPolicy, RetryPolicy, RoundRobinPolicy, TokenAwarePolicy

from master_dataset.errors import CassandraUnavailableError


class Address(NamedTuple):
    """Contact points and port of Cassandra, and Galatea's keyspace."""

    contact_points: tuple[str, ...]
    port: int
    keyspace: str | None


CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 15.0
"""Longer than three tries. A node gives up after 4 s if it waits for a replica that is down."""
RECONNECT_SECONDS = 1.0
"""The driver's default policy waits up to ten minutes before it tries a node again."""
_TRIES = 3
"""Including the first one."""


class AnotherNode(RetryPolicy):  # type: ignore[misc]  # the driver has no types
    """Retries a request on another node if one could not serve it in time, as the driver does when a connection ends.

    Every request is idempotent: rows are overwritten by key, and after a compare-and-set that did not apply, the caller
    reads the row, because the first try may have applied.
    """

    def on_read_timeout(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - the driver has no types
        """Retry on the same node, which then asks another replica."""
        return (self.RETRY if retry_num < _TRIES - 1 else self.RETHROW), None

    def on_write_timeout(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - likewise
        """Retry on another node. The row may be written already."""
        return self._next(retry_num)

    def on_unavailable(self, *_: Any, retry_num: int, **_more: Any) -> tuple[int, int | None]:  # noqa: ANN401 - likewise
        """Retry on another node: this one, perhaps just started, knows of too few others. Nothing was written."""
        return self._next(retry_num)

    def _next(self, retry_num: int) -> tuple[int, int | None]:
        return (self.RETRY_NEXT_HOST if retry_num < _TRIES - 1 else self.RETHROW), None


def connect(contact_points: Sequence[str], port: int, keyspace: str | None) -> Session:
    """Open a session that reads and writes at QUORUM and caches its prepared statements.

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
    """Return the one session of this process with that address; also in Spark's workers, which import this function."""
    return connect(address.contact_points, address.port, address.keyspace)
