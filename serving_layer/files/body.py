"""The body of an answer, read back without losing a digit. A table is made of it, so the two cannot differ."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from serving_layer.files.table import Cell, Kind

Body = dict[str, Any]
BASIS: Mapping[str, Kind] = {
    "publication": Kind.WHOLE,
    "cut": Kind.INSTANT,
    "speed_as_of": Kind.INSTANT,
    "waiting_for_batch": Kind.WHOLE,
    "layers": Kind.TEXT,
    "missing": Kind.TEXT,
}
"""What a row rests on, as columns: a file outlives the headers that it came with."""
JOINT = ";"

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def read(body: bytes) -> Body:
    """What was written, with every number as it was written."""
    found: Body = _decoder.decode(body)
    return found


def as_json(value: object) -> str:
    """A part of it as JSON text again."""
    return _encoder.encode(value).decode()


def joined(names: Sequence[str]) -> str | None:
    """Several names in one cell; None for none."""
    return JOINT.join(names) or None


def basis_of(as_of: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of `BASIS`."""
    told = {**as_of, "layers": joined(as_of["layers"]), "missing": joined(as_of.get("missing", ()))}
    return tuple(told[name] for name in BASIS)
