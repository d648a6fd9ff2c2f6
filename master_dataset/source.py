"""A source is a kind of event, declared as data: its topic, typed fields, identity and payload."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from master_dataset.errors import DefinitionError
from master_dataset.fields import Field, Id, Instant, Lines, absent
from master_dataset.parsing.results import Payload
from master_dataset.registry.stores import Terms

RECORD_COLUMNS = frozenset(
    {
        "kind",
        "topic",
        "partition",
        "offset",
        "received_at",
        "store",
        "happened_at",
        "day",
        "identity",
        "identity_hash",
        "payload_hash",
        "reason",
        "field",
        "sentence",
        "key",
        "value",
        "headers",
    }
)
"""Columns beside the payload: see `master_dataset.parsing.rows`."""
Record = Mapping[str, Any]
"""The typed values of one record by field name; None for an optional field that is absent."""


@dataclass(frozen=True)
class Source(Generic[Payload]):
    """A source: one topic, one schema, one identity.

    Args:
        topic: Name of the source and of its topic.
        store: The field with the id of the store.
        happened_at: The field with the time of the event.
        identity: Fields that identify an event; they include store and time.
        fields: Field name to its type.
        payload: A frozen Struct, whose fields are the payload columns of the master table.
        derive: Makes the payload from a typed record; may raise InvalidRecordError.
        content: Payload columns with what the sender said beside the identity. They alone decide whether two deliveries
            conflict; all other columns are derived from them, and can be added without causing conflicts.
        content_later: Payload columns that became content after records were stored, null where a record does not say
            them. They are content only of records that say one, so the hash of all others stays what tables hold.
        example: A record as a sender would write it.
        masked: Pattern of what must never be stored, not even in a dead letter; None for nothing.
        flags: Values of the column `flags`, with their meaning: oddities of events that count all the same.

    Raises:
        DefinitionError: The source contradicts itself.
    """

    topic: str
    store: str
    happened_at: str
    identity: tuple[str, ...]
    fields: Mapping[str, Field | Lines]
    payload: type[Payload]
    derive: Callable[[Record, Terms], Payload]
    content: tuple[str, ...]
    example: Record
    content_later: tuple[str, ...] = ()
    masked: re.Pattern[str] | None = None
    flags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise DefinitionError, at import, if the source contradicts itself."""
        for name in (self.store, self.happened_at, *self.identity, *self.example):
            if name not in self.fields:
                self._raise_unknown(name, "fields", self.fields)
        for name, kind in ((self.store, Id), (self.happened_at, Instant)):
            if not isinstance(self.fields[name], kind):
                raise DefinitionError(f"`{self.topic}` needs `{name}` as {kind.__name__}.", do="Change its type.")
        for name in self.identity:
            if (absent(self.fields[name]) is None and self.fields[name].optional) or isinstance(
                self.fields[name], Lines
            ):
                raise DefinitionError(f"`{name}` cannot be part of an identity.", do="Name fields every record has.")
        if not {self.store, self.happened_at} < set(self.identity):
            message = f"The identity of `{self.topic}` needs `{self.store}`, `{self.happened_at}` and one field more."
            raise DefinitionError(message, do="Deliveries of an event are looked for in its store and day: add them.")
        self._check_columns()
        for name in (*self.content, *self.content_later, *(["flags"] if self.flags else [])):
            if name not in self.columns:
                self._raise_unknown(name, "payload columns", self.columns)

    def __hash__(self) -> int:
        """Hash by topic: it is unique, and a source is looked up for every record."""
        return hash(self.topic)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the payload columns, in order."""
        return self.payload.__struct_fields__

    def _check_columns(self) -> None:
        if taken := set(self.columns) & RECORD_COLUMNS:
            message = f"`{self.topic}` has a payload column `{min(taken)}`, which every record has already."
            raise DefinitionError(message, do="Rename it.")

    def _raise_unknown(self, name: str, where: str, known: Mapping[str, object] | tuple[str, ...]) -> None:
        message = f"`{self.topic}` names `{name}`, which is none of its {where}."
        raise DefinitionError(message, do=f"Use one of: {', '.join(known)}.")
