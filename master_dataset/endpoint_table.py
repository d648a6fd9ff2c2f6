"""The endpoints in Cassandra: read by whoever calls them, changed by operators."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from master_dataset.endpoint import Endpoint
from master_dataset.errors import UnknownName

if TYPE_CHECKING:
    from cassandra.cluster import Session


class Registered(NamedTuple):
    """An endpoint and how it is doing. `waiting`: records that were read for it and not delivered yet."""

    endpoint: Endpoint
    suspended_at: datetime | None
    failing_since: datetime | None
    waiting: int

    @property
    def state(self) -> str:
        """For people."""
        if self.suspended_at:
            return f"suspended since {self.suspended_at:%Y-%m-%d %H:%M}"
        return f"retrying since {self.failing_since:%Y-%m-%d %H:%M}" if self.failing_since else "active"


class EndpointTable:
    """One row for each; rows stay when an endpoint is removed, without its secret."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        prepare = session.prepare
        self._all = prepare(
            "SELECT id, tenant, url, secret, most_alerts, created_at, suspended_at, removed_at FROM webhook_endpoints"
        )
        self._states = prepare("SELECT id, failing_since, waiting FROM webhook_states")
        self._insert = prepare(
            "INSERT INTO webhook_endpoints (id, tenant, url, secret, most_alerts, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._remove = prepare("UPDATE webhook_endpoints SET removed_at = ?, secret = '' WHERE id = ?")
        self._suspend = prepare("UPDATE webhook_endpoints SET suspended_at = ? WHERE id = ?")
        self._renew = prepare("UPDATE webhook_endpoints SET secret = ? WHERE id = ?")
        self._see = prepare("INSERT INTO webhook_states (id, failing_since, waiting, seen_at) VALUES (?, ?, ?, ?)")

    def all(self) -> Sequence[Registered]:
        """Those that are not removed, the oldest first."""
        states = {row.id: row for row in self._session.execute(self._states)}
        found = []
        for row in self._session.execute(self._all):
            if row.removed_at is not None or row.url is None:
                continue
            state = states.get(row.id)
            failing, waiting = (state.failing_since, state.waiting) if state else (None, 0)
            made = int(row.created_at.replace(tzinfo=UTC).timestamp() * 1000)
            endpoint = Endpoint(row.id, row.tenant, row.url, row.secret, row.most_alerts, made)
            found.append(Registered(endpoint, _utc(row.suspended_at), _utc(failing), waiting or 0))
        return sorted(found, key=lambda each: (each.endpoint.made_ms, each.endpoint.id))

    def find(self, id_: str) -> Registered:
        """One of them. UnknownName."""
        known = {each.endpoint.id: each for each in self.all()}
        if id_ not in known:
            raise UnknownName("endpoint", id_, known)
        return known[id_]

    def add(self, endpoint: Endpoint, now: datetime) -> None:
        """Call it from now on."""
        values = (endpoint.id, endpoint.tenant, endpoint.url, endpoint.secret, endpoint.batch)
        self._session.execute(self._insert, (*values, now))

    def remove(self, id_: str, now: datetime) -> None:
        """Call it no more, and forget its secret."""
        self._session.execute(self._remove, (now, id_))

    def suspend(self, id_: str, since: datetime | None) -> None:
        """Call it no more until it is resumed. `since` None resumes it."""
        self._session.execute(self._suspend, (since, id_))

    def renew(self, id_: str, secret: str) -> None:
        """Sign with another secret from now on."""
        self._session.execute(self._renew, (secret, id_))

    def see(self, id_: str, failing_since: datetime | None, waiting: int, now: datetime) -> None:
        """How it is doing."""
        self._session.execute(self._see, (id_, failing_since, waiting, now))


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None
