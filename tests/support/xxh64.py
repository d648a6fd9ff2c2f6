"""XXH64 with Spark's seed, from its published description: what `xxhash64` of a text gives."""

_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SEED = 42


def xxh64(text: str) -> int:
    """The hash as a signed number of 64 bits."""
    data = text.encode()
    rest = data
    if len(data) >= 32:
        lanes = [(_SEED + start) & _MASK for start in (_P1 + _P2, _P2, 0, -_P1)]
        while len(rest) >= 32:
            lanes = [_round(lane, _word(rest[at : at + 8])) for lane, at in zip(lanes, (0, 8, 16, 24), strict=True)]
            rest = rest[32:]
        acc = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            acc = ((acc ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        acc = (_SEED + _P5) & _MASK
    found = _finished((acc + len(data)) & _MASK, rest)
    return found - 2**64 if found >= 2**63 else found


def _finished(acc: int, rest: bytes) -> int:
    while len(rest) >= 8:
        acc = (_rotated(acc ^ _round(0, _word(rest[:8])), 27) * _P1 + _P4) & _MASK
        rest = rest[8:]
    if len(rest) >= 4:
        acc = (_rotated(acc ^ (_word(rest[:4]) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        acc = _rotated(acc ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    acc = (acc ^ acc >> 33) * _P2 & _MASK
    acc = (acc ^ acc >> 29) * _P3 & _MASK
    return acc ^ acc >> 32


def _round(acc: int, word: int) -> int:
    return _rotated((acc + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _word(data: bytes) -> int:
    return int.from_bytes(data, "little")
