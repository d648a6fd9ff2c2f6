"""What becomes of valid inputs: bytes, words, numbers and brackets change, repeat, vanish, or become extreme."""

import re
from collections.abc import Callable, Sequence
from random import Random

MOST_BYTES = 200_000
"""Of a mutated input: more only makes every check slow."""
_TEXTS = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        *("\0", "\x1b[2J", "\x7f", "\r", "\n", "\r\n", "\t", "\u2028", "\ufeff", "\u200b", "\u202e", "\u2066"),
        *(
            "\ud800",
            "\udfff",
            "\ud83d",
            "\U0010ffff",
            "\U0001f468\u200d\U0001f469",
            "e\u0301\u0301",
            "\u0130",
            "\u00df",
        ),
        *(
            "\ufffd",
            "\u0661",
            "\u2153",
            "\u00b2",
            "\uff11",
            "%00",
            "%ff",
            "%c0%af",
            "%",
            "%zz",
            "+",
            "../../etc/passwd",
        ),
        *("'", '"', "`", "\\", "\\'", '\\"', "--", "/*", "*/", ";", "#", "$$", "$1", "{{7*7}}", "=cmd|' /C calc'!A0"),
        *("null", "true", "NaN", "Infinity", "-Infinity", "None", "[]", "{}", "()", "<!--", "]]>", "&x;", "\u00a0"),
    )
)
NASTY_TEXTS = (*_TEXTS, b"\xff", b"\xc0\xaf", b"\xfe\xff", b"\x80", b"\xf4\x90\x80\x80")
NASTY_NUMBERS = tuple(
    text.encode()
    for text in (
        *(
            "0",
            "-0",
            "-1",
            "1",
            "00",
            "1e1",
            "1e400",
            "-1e400",
            "1e-400",
            "0.1",
            "0.0000000001",
            ".5",
            "5.",
            "+1",
            "1_0",
        ),
        *("127", "128", "255", "256", "32767", "32768", "65535", "65536", "2147483647", "2147483648", "-2147483649"),
        *("4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
        *("18446744073709551616", "170141183460469231731687303715884105728", "9" * 40, "9" * 400, "9" * 5000),
        *("1" + "0" * 308, "0x10", "1e999999999", "1e-999999999", "0." + "0" * 300 + "1", "1" * 20 + ".5"),
        *(
            "0001-01-01",
            "9999-12-31",
            "10000-01-01",
            "2026-02-29",
            "2026-03-29T02:30",
            "24:00",
            "23:59:60",
            "1970-01-01",
        ),
        *("2026-03-07T09:05:00Z", "2026-03-07T09:05:00+23:59", "2026-W10-1", "2026-066", "20260307", "-2026-03-07"),
    )
)
OPENINGS = (b"(", b"[", b"{", b"- ", b'{"a":', b"[[", b"<", b"'", b'"', b"/*", b"case when ", b"not ", b"-", b"&a [")
CLOSINGS = {b"(": b")", b"[": b"]", b"{": b"}", b'{"a":': b"}", b"[[": b"]]", b"<": b">", b"/*": b"*/", b"&a [": b"]"}
_WORDS = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?|[\x80-\xff]+|\s+|[^A-Za-z0-9_\s]")
_NUMBER = re.compile(rb"-?[0-9]+(?:[.:-][0-9]+)*")
Mutation = Callable[[bytes, Sequence[bytes], Random, Sequence[bytes]], bytes]


def mutated(value: bytes, pool: Sequence[bytes], chance: Random, words: Sequence[bytes] = ()) -> bytes:
    """The input after one or more mutations. `pool`: of others, parts of which are put in; `words`: of its language."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        value = chance.choice(MUTATIONS)(value, pool, chance, words)[:MOST_BYTES]
    return value


def _place(value: bytes, chance: Random) -> int:
    return chance.randint(0, len(value))


def _span(value: bytes, chance: Random) -> tuple[int, int]:
    begin = _place(value, chance)
    return begin, min(len(value), begin + chance.choice((1, 1, 2, 4, 8, 16, 64)))


def _tokens(value: bytes) -> list[bytes]:
    return _WORDS.findall(value[:20_000]) or [b""]


def _flip(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    if not value:
        return b"\0"
    at = chance.randrange(len(value))
    return value[:at] + bytes([value[at] ^ (1 << chance.randrange(8))]) + value[at + 1 :]


def _any_byte(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    at = _place(value, chance)
    return value[:at] + bytes([chance.randrange(256)]) + value[at + chance.randrange(2) :]


def _without(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    begin, end = _span(value, chance)
    return value[:begin] + value[end:]


def _cut(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    at = _place(value, chance)
    return value[:at] if chance.random() < 0.5 else value[at:]


def _repeated(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    begin, end = _span(value, chance)
    times = chance.choice((2, 2, 2, 3, 10, 100, 1000))
    return value[:begin] + value[begin:end] * times + value[end:]


def _nasty(value: bytes, _: Sequence[bytes], chance: Random, words: Sequence[bytes]) -> bytes:
    at = _place(value, chance)
    text = chance.choice(words if words and chance.random() < 0.4 else NASTY_TEXTS)
    return value[:at] + text + value[at + chance.randrange(3) :]


def _word_exchanged(value: bytes, pool: Sequence[bytes], chance: Random, words: Sequence[bytes]) -> bytes:
    tokens = _tokens(value)
    at = chance.randrange(len(tokens))
    source = words if words and chance.random() < 0.5 else _tokens(chance.choice(pool))
    tokens[at] = chance.choice(source)
    return b"".join(tokens)


def _word_moved(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    tokens = _tokens(value)
    moved = tokens.pop(chance.randrange(len(tokens)))
    for _copy in range(chance.choice((0, 1, 1, 2))):
        tokens.insert(chance.randint(0, len(tokens)), moved)
    return b"".join(tokens)


def _word_wrecked(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    tokens = _tokens(value)
    at = chance.randrange(len(tokens))
    tokens[at] = chance.choice(NASTY_TEXTS) if chance.random() < 0.7 else tokens[at] * chance.choice((2, 50, 5000))
    return b"".join(tokens)


def _number(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    found = list(_NUMBER.finditer(value[:20_000]))
    if not found:
        return value + chance.choice(NASTY_NUMBERS)
    at = chance.choice(found)
    return value[: at.start()] + chance.choice(NASTY_NUMBERS) + value[at.end() :]


def _nested(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    begin, end = _span(value, chance)
    opening = chance.choice(OPENINGS)
    depth = chance.choice((1, 2, 5, 20, 60, 300, 2000))
    closing = CLOSINGS.get(opening, opening) if chance.random() < 0.8 else b""
    return value[:begin] + opening * depth + value[begin:end] + closing * depth + value[end:]


def _spliced(value: bytes, pool: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    other = chance.choice(pool)
    if chance.random() < 0.5:
        return value[: _place(value, chance)] + other[_place(other, chance) :]
    begin, end = _span(other, chance)
    at = _place(value, chance)
    return value[:at] + other[begin:end] + value[at:]


def _lines_changed(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    lines = value.split(b"\n")
    at = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines[at] = b" " * chance.choice((1, 2, 4)) + lines[at]
        case _:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def _other_case(value: bytes, _: Sequence[bytes], chance: Random, __: Sequence[bytes]) -> bytes:
    begin, end = _span(value, chance)
    return value[:begin] + value[begin:end].swapcase() + value[end:]


MUTATIONS: Sequence[Mutation] = (
    *(_flip, _any_byte, _without, _cut, _repeated, _nasty, _nasty, _word_exchanged, _word_exchanged, _word_exchanged),
    *(
        _word_moved,
        _word_moved,
        _word_wrecked,
        _number,
        _number,
        _nested,
        _spliced,
        _spliced,
        _lines_changed,
        _other_case,
    ),
)
