"""Signatures of alerts with a key of their own, and the place of the first signed record in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from master_dataset.secrets_key import SecretsKey
from views.alerts.signatures import AlertSignatures

SECRETS_KEY = SecretsKey("k" * 43)


@dataclass
class MemoryFirstSigned:
    """Implements `FirstSigned`."""

    places: dict[tuple[str, int], int] = field(default_factory=dict)

    def read(self) -> Mapping[tuple[str, int], int]:
        return dict(self.places)

    def write(self, topic: str, partition: int, offset: int) -> None:
        self.places[topic, partition] = offset


def signatures_of(first_signed: MemoryFirstSigned | None = None, key: SecretsKey = SECRETS_KEY) -> AlertSignatures:
    """Nothing has to be signed before somebody begins to sign."""
    made = AlertSignatures(key, first_signed or MemoryFirstSigned())
    made.refresh()
    return made
