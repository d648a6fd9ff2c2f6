"""One immutable fact, as received: what every source has in common, and a typed payload of its own."""

from datetime import UTC, date, datetime, timedelta
from typing import Generic, TypeVar

import msgspec

Payload = TypeVar("Payload", bound=msgspec.Struct)  # frozen; its fields are the payload columns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, Generic[Payload], frozen=True, gc=False):
    """What the master dataset keeps of a record, besides its place and its bytes.

    `identity` is canonical text: equal for two deliveries of the same event and for nothing else. `identity_hash` only
    finds candidates, because 64 bits can collide. Equal identity with another `payload_hash` is a conflict.
    """

    topic: str
    store: str
    happened_ms: int  # since 1970 UTC; finer digits are cut
    identity: str
    identity_hash: int  # signed 64 bit, of topic and identity
    payload_hash: int  # signed 64 bit, of what the sender said; blind to key order, spacing and unknown fields
    payload: Payload

    @property
    def happened_at(self) -> datetime:
        """The instant in UTC."""
        return EPOCH + timedelta(milliseconds=self.happened_ms)

    @property
    def day(self) -> date:
        """The UTC day of `happened_at`: the partition of the master table."""
        return self.happened_at.date()
