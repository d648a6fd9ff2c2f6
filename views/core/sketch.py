"""How many different ones there are, roughly: HLL sketches of 4,096 registers, as DataSketches writes them.

Kept as base64 of one canonical form: coupons in order, registers as a union leaves them. So two sketches of the same
values are equal as text, in whatever order they were made and united. Up to 384 values the estimate is exact; beyond,
its standard error is 1.6 % (https://datasketches.apache.org/docs/HLL/HllSketches.html).
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable

from datasketches import hll_sketch, hll_union, tgt_hll_type

LG_K = 12
_TYPE = tgt_hll_type.HLL_8
_COUPONS_AT = {2: 8, 3: 12}
"""Of sketches that still list their values: words of the preamble to the byte at which the coupons begin."""
_FLAGS, _OUT_OF_ORDER = 5, 0x10
_HISTORY = slice(8, 16)
"""Of sketches with registers: an estimate that depends on the order of values, which is no part of what was seen."""


def sketch_of(hashes: Iterable[int | None]) -> str | None:
    """The sketch of these 64-bit hashes; None if there is none. The values that Spark's `hll_sketch_agg` would take."""
    made = hll_sketch(LG_K, _TYPE)
    for each in hashes:
        if each is not None:
            made.update(each)
    return None if made.is_empty() else _written(_united(made))


def united(left: str, right: str) -> str:
    """The sketch of what either has seen."""
    return _written(_united(_read(left), _read(right)))


def estimate(sketch: str) -> float:
    """How many different values it has seen: the same for every order of merges."""
    read = _read(sketch)
    return float(_united(read, read).get_estimate())


def canonical(sketch: bytes) -> str:
    """The text of any sketch of that size, such as one that Spark made."""
    return _written(_united(hll_sketch.deserialize(sketch)))


def _read(text: str) -> hll_sketch:
    return hll_sketch.deserialize(b64decode(text))


def _united(*sketches: hll_sketch) -> hll_sketch:
    union = hll_union(LG_K)
    for each in sketches:
        union.update(each)
    return union.get_result(_TYPE)


def _written(sketch: hll_sketch) -> str:
    data = bytearray(sketch.serialize_compact())
    at = _COUPONS_AT.get(data[0] & 0x3F)
    if at is None:
        data[_FLAGS] |= _OUT_OF_ORDER
        data[_HISTORY] = bytes(8)
    else:
        coupons = struct.unpack(f"<{(len(data) - at) // 4}I", data[at:])
        data[at:] = struct.pack(f"<{len(coupons)}I", *sorted(coupons))
    return b64encode(data).decode()
