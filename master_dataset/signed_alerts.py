"""The table `signed_alerts`: which record of each partition is the first that has to be signed. Its rows are signed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.secrets_key import Purpose, SecretsKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra.cluster import Session

_ALERTS: Purpose = "alerts"


class SignedAlertsTable:
    """Implements `FirstSigned`. A row that somebody else has written counts as none."""

    def __init__(self, session: "Session", secrets_key: SecretsKey) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._secrets_key = session, secrets_key

    def read(self) -> Mapping[tuple[str, int], int]:
        """See `FirstSigned`."""
        select = self._session.prepare("SELECT topic, partition, first_offset, mac FROM signed_alerts")
        try:
            rows = list(self._session.execute(select))
        except CASSANDRA_UNAVAILABLE as error:
            raise _away(error) from error
        return {
            (row.topic, row.partition): row.first_offset
            for row in rows
            if row.first_offset is not None
            and self._secrets_key.has_signed(row.mac, _ALERTS, *_parts(row.topic, row.partition, row.first_offset))
        }

    def write(self, topic: str, partition: int, offset: int) -> None:
        """See `FirstSigned`."""
        insert = self._session.prepare(
            "INSERT INTO signed_alerts (topic, partition, first_offset, mac) VALUES (?, ?, ?, ?)"
        )
        mac = self._secrets_key.sign(_ALERTS, *_parts(topic, partition, offset))
        try:
            self._session.execute(insert, (topic, partition, offset, mac))
        except CASSANDRA_UNAVAILABLE as error:
            raise _away(error) from error


def _parts(topic: str, partition: int, offset: int) -> "Sequence[bytes]":
    """More parts than a record has, so that neither signature stands for the other."""
    return (b"first signed", topic.encode(), str(partition).encode(), str(offset).encode())


def _away(error: Exception) -> CassandraUnavailableError:
    message = f"it cannot be read or recorded which alerts are signed: {type(error).__name__}"
    return CassandraUnavailableError(message, do="galatea status")
