"""Who has written a record of alerts or of their corrections: Galatea's own processes sign each one in a header.

Records from before the first signed one of their partition count as they are: a former release has written them. That
place is recorded by the process that signs, when it begins and nobody before it can write any more. Clusters on which
strangers can write to the topics are thus guarded from the upgrade on, whatever they write.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from master_dataset.secrets_key import Purpose, SecretsKey

SIGNATURE_HEADER: Final = "galatea-mac"
_ALERTS: Purpose = "alerts"
Headers = Iterable[tuple[str, bytes | str | None]]


class RecordPlace(NamedTuple):
    """The place of a record in a topic."""

    topic: str
    partition: int
    offset: int


class FirstSigned(Protocol):
    """Where it is recorded which record of each partition is the first that has to be signed.

    Every method raises DependencyUnavailableError.
    """

    def read(self) -> Mapping[tuple[str, int], int]:
        """Topic and partition to the offset, for those where it is known."""

    def write(self, topic: str, partition: int, offset: int) -> None:
        """Record it, in place of what is recorded."""


class AlertSignatures:
    """Signs records, and says which ones are ours."""

    def __init__(self, key: SecretsKey, first_signed: FirstSigned) -> None:
        """`key`: of the deployment. Nothing is read before `refresh` or `begin`."""
        self._key, self._first_signed = key, first_signed
        self._first: dict[tuple[str, int], int] = {}

    def headers(self, topic: str, value: bytes) -> list[tuple[str, str | bytes | None]]:
        """The headers of a record that this process writes."""
        return [(SIGNATURE_HEADER, self._key.sign(_ALERTS, topic.encode(), value))]

    def is_ours(self, place: RecordPlace, value: bytes, headers: Headers) -> bool:
        """Whether one of our processes has written this record, or a former release may have."""
        first = self._first.get((place.topic, place.partition))
        if first is None or place.offset < first:
            return True
        macs = [mac for name, mac in headers if name == SIGNATURE_HEADER and isinstance(mac, bytes)]
        return len(macs) == 1 and self._key.has_signed(macs[0], _ALERTS, place.topic.encode(), value)

    def refresh(self) -> None:
        """Read where signatures begin. DependencyUnavailableError.

        What is known stays known while this process runs: deleting the row in between has no effect.
        """
        self._first |= self._first_signed.read()

    def begin(self, topic: str, ends: Mapping[int, int]) -> None:
        """Record that from now on every record is signed, unless that is known.

        Args:
            topic: The topic.
            ends: Its partitions with their ends. Nobody may be writing unsigned records any more.

        Raises:
            DependencyUnavailableError: It is not recorded.
        """
        self.refresh()
        for partition, end in ends.items():
            known = self._first.get((topic, partition))
            if known is None or known > end:  # beyond the end: of a topic that was recreated since
                self._first_signed.write(topic, partition, end)
        self.refresh()
