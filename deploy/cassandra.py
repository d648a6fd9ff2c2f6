"""Connections to Cassandra: one place says how every process connects."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy, TokenAwarePolicy

from master_dataset.errors import StoreUnavailable

REQUEST_SECONDS = 10.0
RECONNECT_SECONDS = 1.0
"""The driver's own policy waits up to ten minutes before it looks again whether a node is back."""


class Address(NamedTuple):
    """Where Cassandra is, and Galatea's keyspace in it."""

    contact_points: tuple[str, ...]
    port: int
    keyspace: str | None


def connect(contact_points: Sequence[str], port: int, keyspace: str | None) -> Session:
    """A session that reads and writes at QUORUM and caches its prepared statements.

    StoreUnavailable if no node answers.
    """
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()),
        consistency_level=ConsistencyLevel.QUORUM,
        request_timeout=REQUEST_SECONDS,
    )
    cluster = Cluster(
        list(contact_points), port=port, protocol_version=5, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=REQUEST_SECONDS, compression=False,
        reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
    )  # fmt: skip
    try:
        session = cluster.connect(keyspace)
    except NoHostAvailable as error:
        cluster.shutdown()
        places = ", ".join(f"{point}:{port}" for point in contact_points)
        raise StoreUnavailable(f"Cassandra does not answer at `{places}`", do="galatea status") from error
    session.prepare = cache(session.prepare)
    return session


@cache
def session_of(address: Address) -> Session:
    """The one session of this process with that address. In Spark's workers too: the function is sent by name."""
    return connect(address.contact_points, address.port, address.keyspace)
