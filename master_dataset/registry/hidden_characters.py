"""Characters that nobody sees.

Two names that differ in them alone look the same, and some of them reorder the text around them, so names that people
type and compare must not have any. Two join letters, or keep them apart, in scripts such as Persian and Devanagari, and
in emoji: words that people read may have those.
"""

import unicodedata
from typing import Literal

Joiners = Literal["none", "in_scripts", "any"]
"""Where U+200C and U+200D are allowed: nowhere, behind a character of a script that may need them, or everywhere."""
_JOINERS = "\u200c\u200d"
_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_BLANK_LETTERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2065\u2800\u3164\uffa0\ufffc" + "".join(map(chr, range(0xFE00, 0xFE0E)))
)
"""Letters, marks and variation selectors that are blank."""
_VARIANTS = frozenset("\u180b\u180c\u180d\u180f" + "".join(map(chr, range(0xE0100, 0xE01F0))))
"""They choose the form of the letter before, in Mongolian and Chinese writing."""
_MONGOLIAN = ("\u1820", "\u18aa")
_KEYCAP, _KEYS = "\u20e3", frozenset("0123456789#*")
_EMOJI = frozenset("\u00a9\u00ae\u203c\u2049\u2139\u2194\u25fd\u25fe\u2934\u2935\u3030\u303d")
"""Signs that can be an emoji, beside most of the symbols from U+2100 on."""
_FIRST_SYMBOL = "\u2100"
_OF_EMOJI = "\ufe0e\ufe0f"
"""Whether the sign before is drawn as text or as an emoji."""
_SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Signs that stand around numbers: Unicode counts them as format characters, but they are drawn."""
_FIRST_JOINED = "\u0590"
"""Scripts whose letters are joined come after Latin, Greek, Cyrillic and Armenian."""


def hidden_character(text: str, joiners: Joiners = "none") -> str | None:
    """Say which character of a text nobody sees.

    Args:
        text: the text.
        joiners: where those two characters are allowed.

    Returns:
        The first one, such as `U+200B`; None if there is none.
    """
    if text.isascii() and text.isprintable():
        return None
    for place, character in enumerate(text):
        if character in _JOINERS and joiners != "none":
            before = text[place - 1 : place]
            if joiners == "any" or before >= _FIRST_JOINED:
                continue
        before = text[place - 1 : place]
        if joiners != "any" and character in _OF_EMOJI and not _is_emoji(before, text[place + 1 : place + 2]):
            return f"U+{ord(character):04X}"
        if joiners != "any" and character in _VARIANTS and not _has_variants(before, character):
            return f"U+{ord(character):04X}"
        is_hidden = unicodedata.category(character) in _CATEGORIES or character in _BLANK_LETTERS
        if is_hidden and character not in _SEEN:
            return f"U+{ord(character):04X}"
    return None


def _is_emoji(before: str, after: str) -> bool:
    """Whether a sign can be drawn as text or as an emoji."""
    if before in _KEYS:
        return after == _KEYCAP
    return before in _EMOJI or (before >= _FIRST_SYMBOL and unicodedata.category(before) == "So")


def _has_variants(before: str, selector: str) -> bool:
    """Whether a letter has forms that this character chooses from."""
    if selector < "\ufe00":
        return _MONGOLIAN[0] <= before <= _MONGOLIAN[1]
    return before == "\u3007" or unicodedata.name(before or " ").startswith("CJK ")


_SHORT = {"\0": r"\0", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_ONE_BYTE, _TWO_BYTES = 0xFF, 0xFFFF


def visible(text: str, keep: str = "") -> str:
    r"""Write out the characters of a text that nobody sees, so that it cannot steer a terminal or reorder its line.

    Args:
        text: the text.
        keep: characters that stay as they are, such as a line break.

    Returns:
        The text with `\x1b`, `\0`, `\u202e` and the like in place of those characters. Joiners stay.
    """
    if hidden_character(text, "any") is None:
        return text
    return "".join(each if each in keep or hidden_character(each, "any") is None else _escape(each) for each in text)


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if code <= _ONE_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _TWO_BYTES else f"\\U{code:08x}"
