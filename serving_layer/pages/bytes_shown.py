"""The bytes of a record for people: as text with the field that fails, as hex, and as a form can send them back."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from master_dataset.dead_letters.letter import Letter
from master_dataset.dead_letters.pointer import span

MOST_TEXT, MOST_EDITED = 6_000, 12_000
"""Characters, so that a page stays light; the command line and REST have more."""
BEFORE = 2_000
"""So many stand before a field that lies far behind."""
MOST_HEX, LINE = 1_024, 16
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""What no text of HTML can hold, nobody sees, or turns what follows around."""


class Shown(NamedTuple):
    """`inside`: what the failing field says, between what stands before and after it; empty if it is not there."""

    before: str
    inside: str
    after: str
    is_cut: bool


def shown(letter: Letter) -> Shown:
    """As text; what is no UTF-8, and what nobody would see, is escaped."""
    text = (letter.value or b"").decode(errors="backslashreplace")
    first, last = span(text, letter.field) or (0, 0)
    start = max(0, first - BEFORE) if last > MOST_TEXT else 0
    end = start + MOST_TEXT
    before, inside, after = text[start:first], text[first : min(last, end)], text[max(last, start) : end]
    return Shown(_seen(before), _seen(inside), _seen(after), is_cut=start > 0 or end < len(text))


def edited(letter: Letter) -> str | None:
    """The text that a form shows and sends back as it was; None if the bytes would not come back the same."""
    try:
        text = (letter.value or b"").decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > MOST_EDITED or _UNSEEN.search(text) else text


def sent_back(text: str, letter: Letter) -> bytes:
    """What was written into the form: browsers end lines with CR and LF, whatever was there before."""
    return text.replace("\r\n", "\n").encode() if b"\r" not in (letter.value or b"") else text.encode()


def hex_lines(value: bytes) -> Iterator[str]:
    """Place, bytes and what they say, a line for each 16."""
    for start in range(0, min(len(value), MOST_HEX), LINE):
        line = value[start : start + LINE]
        said = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)  # noqa: PLR2004 - what ASCII prints
        yield f"{start:06x}  {line.hex(' '):<{3 * LINE}} {said}"


def _seen(text: str) -> str:
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
