"""Dead letters as an operator reads them: those of the archive, and the conflicts that rebuilds have found."""

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.errors import RequestError, UnknownName
from master_dataset.parsing.dead_letter import Reason
from master_dataset.sources import registered_sources

TABLES = ("dead_letters", "conflicts")
_SHOWN_BYTES = 4096


@dataclass(frozen=True)
class Letter:
    """One record that is no event: its place, why, and its bytes."""

    topic: str
    partition: int
    offset: int
    received_at: datetime
    reason: str
    field: str
    sentence: str
    key: bytes | None
    value: bytes | None

    @property
    def id(self) -> str:
        """topic/partition/offset."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    def summary(self) -> dict[str, Any]:
        """Without the bytes."""
        shown = {"id": self.id, "reason": self.reason, "field": self.field, "sentence": self.sentence}
        return {**shown, "received_at": self.received_at}

    def whole(self) -> dict[str, Any]:
        """With the bytes: the text where they are UTF-8, and base64 in any case; long values are cut to 4,096 bytes."""
        value = self.value or b""
        start = value[:_SHOWN_BYTES]
        return {
            **self.summary(),
            "key": None if self.key is None else self.key.decode(errors="backslashreplace"),
            "bytes": len(value),
            "text": start.decode(errors="backslashreplace"),
            "base64": base64.b64encode(start).decode(),
        }


class DeadLetters:
    """Reads both tables, without Spark."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root

    def counts(self, reason: str | None = None, source: str | None = None) -> dict[str, int]:
        """Reason code to the number of places, most first."""
        table = self._read(["topic", "partition", "offset", "reason"], _filter(reason, source))
        return dict(Counter(table["reason"].to_pylist()).most_common())

    def newest(self, reason: str | None, source: str | None, limit: int) -> list[Letter]:
        """The latest received first."""
        table = self._read(list(Letter.__annotations__), _filter(reason, source))
        order = pc.sort_indices(table, sort_keys=[("received_at", "descending"), ("offset", "descending")])
        return [Letter(**row) for row in table.take(order[:limit]).to_pylist()]

    def find(self, identity: str) -> Letter:
        """RequestError if that is no id, UnknownName if there is no such dead letter."""
        topic, _, place = identity.partition("/")
        partition, _, offset = place.partition("/")
        if not (partition.isdecimal() and offset.isdecimal()):
            raise RequestError(
                f"`{identity}` is no id of a dead letter", do="topic/partition/offset, as `list` shows it"
            )
        where = (
            (pc.field("topic") == topic)
            & (pc.field("partition") == int(partition))
            & (pc.field("offset") == int(offset))
        )
        found = self._read(list(Letter.__annotations__), where).to_pylist()
        if not found:
            raise UnknownName("dead letter", identity, [])
        return Letter(**found[0])

    def _read(self, columns: list[str], where: pc.Expression | None) -> pa.Table:
        """One row per place: an archive that lost its checkpoint may have kept a record twice."""
        parts = list(self._parts(columns, where))
        if not parts:
            return pa.table({name: [] for name in columns})
        table = pa.concat_tables(parts)
        places = table.select(["topic", "partition", "offset"]).append_column("row", pa.array(range(table.num_rows)))
        first = places.group_by(["topic", "partition", "offset"]).aggregate([("row", "min")])["row_min"]
        return table.take(first)

    def _parts(self, columns: list[str], where: pc.Expression | None) -> Iterator[pa.Table]:
        for name in TABLES:
            path = f"{self._root}/{name}"
            if DeltaTable.is_deltatable(path):
                yield DeltaTable(path).to_pyarrow_dataset().to_table(columns=columns, filter=where)


def _filter(reason: str | None, source: str | None) -> pc.Expression | None:
    if reason is not None and reason not in list(Reason):
        raise UnknownName("reason", reason, list(Reason))
    if source is not None and source not in registered_sources():
        raise UnknownName("source", source, registered_sources())
    conditions = [
        pc.field(name) == value for name, value in (("reason", reason), ("topic", source)) if value is not None
    ]
    return None if not conditions else conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1]
