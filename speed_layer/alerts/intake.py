"""What is read from the topics of alerts: alerts that our own processes have written, and the rest, as dead letters."""

from collections.abc import Callable, Sequence

import msgspec
import structlog

from master_dataset.dead_letters.undelivered import UndeliveredRecord
from master_dataset.parsing.results import Reason
from speed_layer.alerts.fold import LogRecord
from views.alerts.alert import Alert
from views.alerts.signatures import AlertSignatures, RecordPlace

_SENTENCES = {
    Reason.ALERT_NOT_SIGNED: "The record is in a topic of alerts, but was not written by Galatea.",
    Reason.ALERT_NOT_VALID: "The record is in a topic of alerts, but is not a valid alert.",
}
log = structlog.get_logger()


class AlertIntake:
    """Reads records of one topic. Belongs to one thread."""

    def __init__(
        self,
        topic: str,
        signatures: AlertSignatures,
        store: Callable[[Sequence[UndeliveredRecord]], None],
    ) -> None:
        """`store` stores dead letters; it may raise DependencyUnavailableError."""
        self._topic, self._signatures, self._store = topic, signatures, store
        self._rejected: list[UndeliveredRecord] = []

    def alert(self, partition: int, record: LogRecord) -> Alert | None:
        """The alert that a record is; None for a record that `store_rejected` has to store."""
        value, place = record.value or b"", RecordPlace(self._topic, partition, record.offset)
        if not self._signatures.is_ours(place, value, record.headers):
            self._reject(partition, record, Reason.ALERT_NOT_SIGNED)
            return None
        try:
            return Alert.from_json(value)
        except msgspec.ValidationError as error:
            self._reject(partition, record, Reason.ALERT_NOT_VALID, str(error))
            return None

    def store_rejected(self) -> None:
        """Store what was rejected. Call it before the records count as read. DependencyUnavailableError."""
        if self._rejected:
            self._store(self._rejected)
            self._rejected = []

    def refresh(self) -> None:
        """Read where signatures begin, and forget what is not stored: it is read again. DependencyUnavailableError."""
        self._signatures.refresh()
        self._rejected = []

    def _reject(self, partition: int, record: LogRecord, reason: Reason, why: str = "") -> None:
        place = (self._topic, partition, record.offset)
        log.error("alerts.rejected", place="/".join(map(str, place)), reason=reason.value, error=why)
        headers = [(name, value if isinstance(value, bytes) else None) for name, value in record.headers]
        dead_letter = UndeliveredRecord(
            *place, record.received_ms, reason, _SENTENCES[reason], key=None, value=record.value, headers=headers
        )
        self._rejected.append(dead_letter)
