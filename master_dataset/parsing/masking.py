"""The one exception to "bytes are kept": what a source must never keep is masked in its dead letters, too."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from master_dataset.parsing.dead_letter import DeadLetter, Reason
from master_dataset.parsing.parse import parse
from master_dataset.source import Source
from master_dataset.terms import DEFAULT_TERMS

_ESCAPED = re.compile(rb"\\u00([0-7][0-9A-Fa-f])")
_MASK = b"*"


def masked(batch: pa.RecordBatch, parsed: Sequence[object], secret: re.Pattern[str]) -> pa.RecordBatch:
    """The batch with the values of its dead letters masked. `parsed`: what became of each record."""
    letters = [isinstance(each, DeadLetter) for each in parsed]
    if not any(letters):
        return batch
    pattern = re.compile(secret.pattern.encode())
    values = [
        _masked(value, pattern, each) if isinstance(each, DeadLetter) and value else value
        for value, each in zip(batch.column("value").to_pylist(), parsed, strict=True)
    ]
    place = batch.schema.get_field_index("value")
    return batch.set_column(place, "value", pa.array(values, pa.binary()))


def hidden(source: Source[Any], line: bytes) -> bytes:
    """The line as it may be sent to a topic: what can be no event of this source loses what must not be kept."""
    if source.masked is None:
        return line
    parsed = parse(source, line, lambda _: DEFAULT_TERMS)
    return _masked(line, re.compile(source.masked.pattern.encode()), parsed) if isinstance(parsed, DeadLetter) else line


def _masked(value: bytes, pattern: re.Pattern[bytes], letter: DeadLetter) -> bytes:
    plain = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), value) if b"\\u00" in value else value
    safe = pattern.sub(lambda found: _MASK * len(found[0]), plain)
    is_found = safe != plain
    # Spelled in a way that the pattern does not see: nothing of it is kept.
    return safe if is_found or letter.reason is not Reason.RAW_MAC_ADDRESS else b""
