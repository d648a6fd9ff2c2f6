"""Webhook endpoints and the state of their deliveries, in Cassandra."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from cassandra.query import UNSET_VALUE

from master_dataset.errors import UnknownNameError
from master_dataset.kafka.record import RecordPosition
from master_dataset.secrets_key import SealedTextError, SecretsKey
from master_dataset.webhooks.endpoint import BlockedRecord, Endpoint, EndpointState, RegisteredEndpoint

if TYPE_CHECKING:
    from cassandra.cluster import Session

log = structlog.get_logger()
SKIPPED_FOR = timedelta(days=30)
"""How long a skip is remembered: as long as the backlog of a suspended endpoint may be kept."""
_COLUMNS = "failing_since, status, answered_at, delivered_at, waiting, oldest_at, blocking, seen_at, refusing_since"


class EndpointTable:
    """The tables of endpoints. The row of a removed endpoint stays, without its secret.

    Secrets are encrypted for the id and the tenant of the row, so that no other row can use them. A process of a former
    release may still write one in clear, which then counts.
    """

    def __init__(self, session: "Session", secrets_key: SecretsKey) -> None:
        """`session` uses Galatea's keyspace. `secrets_key` encrypts the secrets."""
        self._session, self._secrets_key = session, secrets_key
        self._reported: set[str] = set()
        prepare = session.prepare
        self._all = prepare(
            "SELECT id, tenant, url, secret, sealed_secret, most_alerts, created_at, suspended_at, removed_at, "
            "begun_at FROM webhook_endpoints"
        )
        self._states = prepare(f"SELECT id, {_COLUMNS} FROM webhook_states")  # noqa: S608 - our own columns
        self._insert = prepare(
            "INSERT INTO webhook_endpoints (id, tenant, url, sealed_secret, most_alerts, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._change = prepare("UPDATE webhook_endpoints SET url = ?, most_alerts = ? WHERE id = ?")
        self._remove = prepare(
            "UPDATE webhook_endpoints SET removed_at = ?, secret = null, sealed_secret = null WHERE id = ?"
        )
        self._suspend = prepare("UPDATE webhook_endpoints SET suspended_at = ? WHERE id = ?")
        self._begin = prepare("UPDATE webhook_endpoints SET begun_at = ? WHERE id = ?")
        self._resume = prepare("UPDATE webhook_endpoints SET suspended_at = null, begun_at = null WHERE id = ?")
        self._forgive = prepare("UPDATE webhook_states SET failing_since = null WHERE id = ?")
        # Compare-and-set, as below: of two such writes the later one counts, whatever the clocks of their hosts say.
        self._renew = prepare("UPDATE webhook_endpoints SET sealed_secret = ?, secret = null WHERE id = ? IF EXISTS")
        self._encrypt = prepare(
            "UPDATE webhook_endpoints SET sealed_secret = ?, secret = null WHERE id = ? IF secret = ?"
        )
        self._see = prepare(f"INSERT INTO webhook_states (id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")  # noqa: S608 - likewise
        self._skip = prepare(
            "INSERT INTO webhook_skips (id, topic, partition, offset, asked_at, asked_by) VALUES (?, ?, ?, ?, ?, ?) "
            "USING TTL ?"
        )
        self._skips = prepare("SELECT id, topic, partition, offset FROM webhook_skips")

    def all(self) -> Sequence[RegisteredEndpoint]:
        """Return the endpoints that are not removed, oldest first."""
        states = {row.id: _state(row) for row in self._session.execute(self._states)}
        found = []
        for row in self._session.execute(self._all):
            if row.removed_at is None and None not in (row.tenant, row.url, row.created_at):
                made = int(row.created_at.replace(tzinfo=UTC).timestamp() * 1000)
                endpoint = Endpoint(row.id, row.tenant, row.url, self._secret(row), row.most_alerts or 1, made)
                suspended_at = _utc(row.suspended_at) or (None if endpoint.secret else endpoint.made_at)
                state, in_clear = states.get(row.id, EndpointState()), bool(row.secret)
                found.append(RegisteredEndpoint(endpoint, suspended_at, state, row.begun_at is not None, in_clear))
        return sorted(found, key=lambda each: (each.endpoint.made_ms, each.endpoint.id))

    def _secret(self, row: Any) -> str:  # noqa: ANN401 - the driver's own rows
        """Empty if there is none that was encrypted with this key for this row."""
        if row.secret:
            return str(row.secret)
        try:
            return self._secrets_key.open(row.sealed_secret or "", row.id, row.tenant)
        except SealedTextError:
            if row.id not in self._reported:
                self._reported.add(row.id)
                log.error("webhook.secret_not_readable", endpoint=row.id, do=f"galatea webhooks rotate {row.id}")  # noqa: TRY400 - there is nothing more to know
            return ""

    def find(self, id_: str) -> RegisteredEndpoint:
        """Return one endpoint. UnknownNameError if it does not exist."""
        known = {each.endpoint.id: each for each in self.all()}
        if id_ not in known:
            raise UnknownNameError("webhook", id_, known)
        return known[id_]

    def skips(self) -> Mapping[str, frozenset[RecordPosition]]:
        """Return the skipped records by endpoint."""
        found: dict[str, set[RecordPosition]] = defaultdict(set)
        for row in self._session.execute(self._skips):
            found[row.id].add(RecordPosition(row.topic, row.partition, row.offset))
        return {id_: frozenset(positions) for id_, positions in found.items()}

    def add(self, endpoint: Endpoint, now: datetime) -> None:
        """Add an endpoint."""
        values = (endpoint.id, endpoint.tenant, endpoint.url, self._sealed(endpoint), endpoint.batch)
        self._session.execute(self._insert, (*values, now))

    def change(self, id_: str, url: str, batch: int) -> None:
        """Change URL and batch size. Delivery continues at its position."""
        self._session.execute(self._change, (url, batch, id_))

    def remove(self, id_: str, now: datetime) -> None:
        """Remove an endpoint and its secret."""
        self._session.execute(self._remove, (now, id_))

    def suspend(self, id_: str, now: datetime) -> None:
        """Suspend deliveries until `resume`."""
        self._session.execute(self._suspend, (now, id_))

    def resume(self, id_: str) -> None:
        """Resume deliveries. The time of failure starts again, or it would be suspended at once.

        If the broker has lost its position, it starts with the alerts since it was made.
        """
        self._session.execute(self._forgive, (id_,))
        self._session.execute(self._resume, (id_,))

    def begin(self, id_: str, now: datetime) -> None:
        """Record that its consumer group has committed a position."""
        self._session.execute(self._begin, (now, id_))

    def renew(self, endpoint: Endpoint) -> None:
        """Replace the secret by that of `endpoint`."""
        self._session.execute(self._renew, (self._sealed(endpoint), endpoint.id))

    def encrypt(self, endpoint: Endpoint) -> None:
        """Encrypt a secret that is stored in clear, unless it was replaced meanwhile."""
        self._session.execute(self._encrypt, (self._sealed(endpoint), endpoint.id, endpoint.secret))

    def _sealed(self, endpoint: Endpoint) -> str:
        return self._secrets_key.seal(endpoint.secret, endpoint.id, endpoint.tenant)

    def skip(self, id_: str, position: tuple[str, int, int], by: str, now: datetime) -> None:
        """Skip a record that blocks its store."""
        self._session.execute(self._skip, (id_, *position, now, by, int(SKIPPED_FOR.total_seconds())))

    def see(self, id_: str, state: EndpointState, now: datetime) -> None:
        """Write the state. Fields that a process does not know before its first call stay as they were."""
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
