"""Connections to Cassandra. Every process connects with these options."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from cassandra import AuthenticationFailed, ConsistencyLevel, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import (
    ConstantReconnectionPolicy,
    DCAwareRoundRobinPolicy,
    RetryPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
)
from cassandra.query import named_tuple_factory

from master_dataset.cassandra_tables import unread_rights
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError, OperatorError
from master_dataset.tls import GUIDE, Tls, TlsNames

Args = ParamSpec("Args")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Login:
    """A user, which Cassandra calls a role, and the password."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Address:
    """The way to a cluster, for every client of it. Equal ones have equal hashes, and secrets are not in the `repr`.

    Attributes:
        contact_points: Hosts through which the others are found.
        port: Port of the native protocol.
        keyspace: Galatea's keyspace; None for none.
        login: None if the cluster asks for no login.
        tls: None for unencrypted connections.
        local_dc: Data centre whose nodes are used; if empty, those of every one.
        consistency: Level of reads and writes: a quorum, so that a read sees what was acknowledged before.
    """

    contact_points: tuple[str, ...]
    port: int
    keyspace: str | None = None
    login: Login | None = None
    tls: Tls | None = None
    local_dc: str = ""
    consistency: str = "QUORUM"

    @property
    def places(self) -> str:
        """Host and port of each contact point, as errors show them."""
        return ", ".join(f"{point}:{self.port}" for point in self.contact_points)


NAMES = TlsNames("GALATEA_CASSANDRA", "GALATEA_CASSANDRA_CONTACT_POINTS", "GALATEA_CASSANDRA_TLS")
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


def connect(address: Address) -> Session:
    """Open a session that caches its prepared statements.

    Compare-and-set is always SERIAL. With LOCAL_SERIAL, two data centres could both switch the publication or take the
    same claim.

    Raises:
        CassandraAccessError: Login or certificate are wrong. The statements of the session raise it for missing rights.
        CassandraUnavailableError: No node responds.
    """
    nodes = DCAwareRoundRobinPolicy(address.local_dc) if address.local_dc else RoundRobinPolicy()
    profile = ExecutionProfile(
        row_factory=named_rows,
        load_balancing_policy=TokenAwarePolicy(nodes),
        consistency_level=ConsistencyLevel.name_to_value[address.consistency],
        serial_consistency_level=ConsistencyLevel.SERIAL,
        request_timeout=REQUEST_SECONDS,
        retry_policy=AnotherNode(),
    )
    login = address.login
    cluster = Cluster(
        list(address.contact_points),
        port=address.port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        auth_provider=PlainTextAuthProvider(login.user, login.password) if login else None,
        ssl_context=address.tls.context() if address.tls else None,
        connect_timeout=CONNECT_SECONDS,
        control_connection_timeout=CONNECT_SECONDS,
        compression=False,
        reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
    )
    try:
        session = cluster.connect(address.keyspace)
    except NoHostAvailable as error:
        cluster.shutdown()
        raise _why_not(error, address) from error
    session.prepare = cache(session.prepare)
    session.execute = _explained(session.execute, address)
    return session


def named_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Name the columns of rows as the driver does, which makes a class for each answer. This remembers the classes.

    `ResultSet.was_applied` knows only the driver's own names: read `.one().applied`.
    """
    return list(map(_row_class(tuple(columns)), rows))


@cache
def _row_class(columns: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    [row] = named_tuple_factory(columns, [(None,) * len(columns)])
    make: Callable[[Sequence[Any]], Any] = type(row)._make
    return make


def _why_not(error: NoHostAvailable, address: Address) -> CassandraUnavailableError:
    """Return why no session could be opened, with the setting to change."""
    reasons = list(error.errors.values()) if isinstance(error.errors, dict) else []
    for reason in reasons:
        # A node that cannot read the passwords says so in the same way as one that rejects them.
        if isinstance(reason, AuthenticationFailed) and "Unable to perform authentication" not in str(reason):
            return _not_authenticated(reason, address)
    if address.tls is not None:
        for point in address.contact_points:
            if (problem := address.tls.problem(point, address.port, NAMES)) is not None:
                kind = CassandraUnavailableError if problem.passes else CassandraAccessError
                return kind(f"Cassandra cannot be reached: {problem.message}", do=problem.do)
    if address.local_dc and not reasons:
        message = f"Cassandra at `{address.places}` has no node in the data centre `{address.local_dc}`"
        return CassandraAccessError(message, do="correct GALATEA_CASSANDRA_LOCAL_DC")
    return CassandraUnavailableError(f"Cassandra does not answer at `{address.places}`", do="galatea status")


def _not_authenticated(reason: AuthenticationFailed, address: Address) -> CassandraAccessError:
    if address.login is None:
        message = f"Cassandra at `{address.places}` asks for a login"
        return CassandraAccessError(message, do="set GALATEA_CASSANDRA_USER and GALATEA_CASSANDRA_PASSWORD_FILE")
    message = f"Cassandra at `{address.places}` rejects the user `{address.login.user}`: {reason}"
    do = "correct GALATEA_CASSANDRA_USER and GALATEA_CASSANDRA_PASSWORD, or its file"
    return CassandraAccessError(message, do=do)


def _explained(execute: Callable[Args, Answer], address: Address) -> Callable[Args, Answer]:
    """Let a statement for which the user lacks a right raise our error."""

    @wraps(execute)
    def explained(*args: Args.args, **kwargs: Args.kwargs) -> Answer:
        try:
            return execute(*args, **kwargs)
        except Unauthorized as error:
            if (unread := unread_rights(error)) is not None:
                raise unread from error
            user = f"the user `{address.login.user}`" if address.login else "a client without a login"
            message = f"Cassandra does not allow this to {user}: {error}"
            raise CassandraAccessError(message, do=f"grant the right: {GUIDE}#rights-in-cassandra") from error

    return explained


CLOCK_FOR_DELETION = timedelta(hours=1)
"""By a clock that is days ahead, what was written a moment ago would be old enough to be deleted."""


def refuse_wrong_clock(session: Session, most: timedelta) -> None:
    """Raise OperatorError if the clocks of this machine and of the node that answers differ by more than that."""
    began = datetime.now(UTC)
    there = session.execute("SELECT toTimestamp(now()) AS clock FROM system.local").one().clock.replace(tzinfo=UTC)
    ahead, behind = began - there, there - datetime.now(UTC)
    if max(ahead, behind) > most:
        seconds, side = max((ahead.total_seconds(), "ahead of"), (behind.total_seconds(), "behind"))
        found = f"the clock of this machine is {seconds:,.1f} s {side} that of Cassandra"
        message = f"{found}, and at most {most.total_seconds():g} s is allowed"
        raise OperatorError(message, do="synchronise the clocks (NTP), then run it again; nothing was changed")


@cache
def session_of(address: Address) -> Session:
    """Return the one session of this process with that address; also in Spark's workers, which import this function."""
    return connect(address)
