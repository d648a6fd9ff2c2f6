"""A source is a kind of event, said as data: its topic, its typed fields, its identity, and what follows from them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from master_dataset.errors import DefinitionError
from master_dataset.fields import Field, Id, Instant, Lines, absent
from master_dataset.parsing.results import Payload
from master_dataset.registry.stores import Terms

OF_EVERY_RECORD = frozenset(
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
Record = Mapping[str, Any]  # the values of one record, by field name; typed, an absent optional field is None


@dataclass(frozen=True)
class Source(Generic[Payload]):
    """One topic, one schema, one identity.

    `payload` is a frozen Struct: its fields are the payload columns of the master table. `derive` makes it from the
    typed record and may raise Refused. `content` names the columns that hold what the sender said beside the identity;
    all others follow from them. So they alone decide whether two deliveries conflict, and a new column does not.
    `example`: a record as somebody would send it. `masked`: what must not be kept, not even of a dead letter.
    `flags`: what may be odd about an event that counts all the same, with its meaning; the column `flags` has them.
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
    masked: re.Pattern[str] | None = None
    flags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse, at import, a source that contradicts itself."""
        for name in (self.store, self.happened_at, *self.identity, *self.example):
            if name not in self.fields:
                self._refuse(name, "fields", self.fields)
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
        self._refuse_taken()
        for name in (*self.content, *(["flags"] if self.flags else [])):
            if name not in self.columns:
                self._refuse(name, "payload columns", self.columns)

    def __hash__(self) -> int:
        """Hash by topic: a source is looked up for every record, and no two may share a topic anyway."""
        return hash(self.topic)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the payload columns, in order."""
        return self.payload.__struct_fields__

    def _refuse_taken(self) -> None:
        if taken := set(self.columns) & OF_EVERY_RECORD:
            message = f"`{self.topic}` has a payload column `{min(taken)}`, which every record has already."
            raise DefinitionError(message, do="Rename it.")

    def _refuse(self, name: str, where: str, known: Mapping[str, object] | tuple[str, ...]) -> None:
        message = f"`{self.topic}` names `{name}`, which is none of its {where}."
        raise DefinitionError(message, do=f"There is: {', '.join(known)}.")
