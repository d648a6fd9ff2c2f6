"""The Kafka key of a record is the text of its store: all deliveries of an event lie in one partition (R3)."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from master_dataset.parsing.dead_letter import Refused
from master_dataset.registry.currency import DEFAULT_CURRENCY
from master_dataset.source import Source

KeyOf = Callable[[bytes], bytes | None]


@cache
def key_of(source: Source[Any]) -> KeyOf:
    """Give a function from a value to its key, quick because it reads the one field.

    The key is None where no store can be read: such a record is no event, whatever else it holds. The reverse does not
    hold, `parse` decides; but an event is always keyed by its `store`.
    """
    store = source.fields[source.store]
    name = source.store
    decoder = msgspec.json.Decoder(msgspec.defstruct("OnlyStore", [(name, int | str)]))

    def key(value: bytes) -> bytes | None:
        try:
            text: str = store.read(getattr(decoder.decode(value), name), DEFAULT_CURRENCY)  # type: ignore[union-attr]
        except (msgspec.MsgspecError, Refused, ValueError, RecursionError):
            return None
        return text.encode()

    return key
