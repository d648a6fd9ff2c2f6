"""The endpoints in Cassandra: read by whoever calls them, changed by operators."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cassandra.query import UNSET_VALUE

from master_dataset.errors import UnknownNameError
from master_dataset.webhooks.endpoint import BlockedRecord, Endpoint, EndpointState, RegisteredEndpoint

if TYPE_CHECKING:
    from cassandra.cluster import Session

SKIPPED_FOR = timedelta(days=30)
"""So long it is known that a record was skipped: as long as a suspended endpoint's backlog may be kept."""
_COLUMNS = "failing_since, status, answered_at, delivered_at, waiting, oldest_at, blocking, seen_at, refusing_since"
Place = tuple[str, int, int]


class EndpointTable:
    """One row for each; rows stay when an endpoint is removed, without its secret."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        prepare = session.prepare
        self._all = prepare(
            "SELECT id, tenant, url, secret, most_alerts, created_at, suspended_at, removed_at, begun_at "
            "FROM webhook_endpoints"
        )
        self._states = prepare(f"SELECT id, {_COLUMNS} FROM webhook_states")  # noqa: S608 - our own columns
        self._insert = prepare(
            "INSERT INTO webhook_endpoints (id, tenant, url, secret, most_alerts, created_at) VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._change = prepare("UPDATE webhook_endpoints SET url = ?, most_alerts = ? WHERE id = ?")
        self._remove = prepare("UPDATE webhook_endpoints SET removed_at = ?, secret = '' WHERE id = ?")
        self._suspend = prepare("UPDATE webhook_endpoints SET suspended_at = ? WHERE id = ?")
        self._begin = prepare("UPDATE webhook_endpoints SET begun_at = ? WHERE id = ?")
        self._resume = prepare("UPDATE webhook_endpoints SET suspended_at = null, begun_at = null WHERE id = ?")
        self._forgive = prepare("UPDATE webhook_states SET failing_since = null WHERE id = ?")
        self._renew = prepare("UPDATE webhook_endpoints SET secret = ? WHERE id = ?")
        self._see = prepare(f"INSERT INTO webhook_states (id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")  # noqa: S608 - likewise
        self._skip = prepare(
            "INSERT INTO webhook_skips (id, topic, partition, offset, asked_at, asked_by) VALUES (?, ?, ?, ?, ?, ?) "
            "USING TTL ?"
        )
        self._skips = prepare("SELECT id, topic, partition, offset FROM webhook_skips")

    def all(self) -> Sequence[RegisteredEndpoint]:
        """Those that are not removed, the oldest first."""
        states = {row.id: _state(row) for row in self._session.execute(self._states)}
        found = []
        for row in self._session.execute(self._all):
            if row.removed_at is None and row.url is not None:
                made = int(row.created_at.replace(tzinfo=UTC).timestamp() * 1000)
                endpoint = Endpoint(row.id, row.tenant, row.url, row.secret, row.most_alerts, made)
                state = states.get(row.id, EndpointState())
                found.append(RegisteredEndpoint(endpoint, _utc(row.suspended_at), state, row.begun_at is not None))
        return sorted(found, key=lambda each: (each.endpoint.made_ms, each.endpoint.id))

    def find(self, id_: str) -> RegisteredEndpoint:
        """One of them. UnknownNameError."""
        known = {each.endpoint.id: each for each in self.all()}
        if id_ not in known:
            raise UnknownNameError("webhook", id_, known)
        return known[id_]

    def skips(self) -> Mapping[str, frozenset[Place]]:
        """By endpoint, the records that it goes on without."""
        found: dict[str, set[Place]] = defaultdict(set)
        for row in self._session.execute(self._skips):
            found[row.id].add((row.topic, row.partition, row.offset))
        return {id_: frozenset(places) for id_, places in found.items()}

    def add(self, endpoint: Endpoint, now: datetime) -> None:
        """Call it from now on."""
        values = (endpoint.id, endpoint.tenant, endpoint.url, endpoint.secret, endpoint.batch)
        self._session.execute(self._insert, (*values, now))

    def change(self, id_: str, url: str, batch: int) -> None:
        """Call it there, and with so many alerts at most. It goes on where it stood."""
        self._session.execute(self._change, (url, batch, id_))

    def remove(self, id_: str, now: datetime) -> None:
        """Call it no more, and forget its secret."""
        self._session.execute(self._remove, (now, id_))

    def suspend(self, id_: str, now: datetime) -> None:
        """Call it no more until it is resumed."""
        self._session.execute(self._suspend, (now, id_))

    def resume(self, id_: str) -> None:
        """Call it again. How long it has failed counts anew, or it would be suspended at once.

        If the broker has forgotten where it stood, it begins where it was made.
        """
        self._session.execute(self._forgive, (id_,))
        self._session.execute(self._resume, (id_,))

    def begin(self, id_: str, now: datetime) -> None:
        """From now on the broker knows where it stands."""
        self._session.execute(self._begin, (now, id_))

    def renew(self, id_: str, secret: str) -> None:
        """Sign with another secret from now on."""
        self._session.execute(self._renew, (secret, id_))

    def skip(self, id_: str, place: Place, by: str, now: datetime) -> None:
        """Go on without this record."""
        self._session.execute(self._skip, (id_, *place, now, by, int(SKIPPED_FOR.total_seconds())))

    def see(self, id_: str, state: EndpointState, now: datetime) -> None:
        """How it is doing. What a process that has not called it yet does not know stays as it was."""
        unknown: Any = UNSET_VALUE
        called = state.answered_at is not None
        blocking = json.dumps([[*each._replace(since=each.since.isoformat())] for each in state.blocking])  # type: ignore[arg-type]
        values = (
            state.failing_since,
            state.status if called else unknown,
            state.answered_at or unknown,
            state.delivered_at or unknown,
            state.records,
            state.oldest_at,
            blocking,
            now,
            state.refusing_since if called else unknown,
        )
        self._session.execute(self._see, (id_, *values))


def _state(row: Any) -> EndpointState:  # noqa: ANN401 - the driver's own rows
    blocking = [
        BlockedRecord(topic, partition, offset, store, datetime.fromisoformat(since), why)
        for topic, partition, offset, store, since, why in json.loads(row.blocking or "[]")
    ]
    return EndpointState(
        _utc(row.failing_since),
        row.status,
        _utc(row.answered_at),
        _utc(row.delivered_at),
        row.waiting or 0,
        _utc(row.oldest_at),
        tuple(blocking),
        _utc(row.seen_at),
        _utc(row.refusing_since),
    )


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None
