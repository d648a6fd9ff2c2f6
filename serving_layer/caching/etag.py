"""Entity tags: the name of what an answer rests on, and whether a caller has that answer already (RFC 9110).

Tags are weak. Speed writes rows first and its positions after them, so two answers of one moment may differ by a row
that neither of them promised: they say the same as of their `as_of`, but need not be equal byte by byte.
"""

import hashlib
import re
from collections.abc import Hashable, Iterable, Sequence

import msgspec

ANY = "*"
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_LIST = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")
_BYTES = 16


def etag(question: tuple[object, ...], scope: str, mark: Hashable, made_with: str) -> str:
    """The tag of the answer to a question. Nothing of it can be read back.

    `question`: of which kind it is, all of it, and in which form the answer is wanted. `scope`: who asks, as far as the
    answer depends on that. `mark`: see `Moment`. `made_with`: the fingerprint of the code that answers.
    """
    said = msgspec.json.encode((question, scope, mark, made_with))
    return f'W/"{hashlib.blake2b(said, digest_size=_BYTES).hexdigest()}"'


def has(sent: Sequence[str], tag: str) -> bool:
    """Whether the fields `If-None-Match` of a request name the tag. Weak comparison; `*` names none in particular."""
    if [tag] == sent:  # nearly always: the caller says what it was told
        return True
    field = ",".join(sent)
    return bool(_LIST.fullmatch(field)) and opaque(tag) in _TAG.findall(field)


def has_any(sent: Iterable[str]) -> bool:
    """Whether they say `*`: whatever there is, the caller has it."""
    return [each.strip() for each in sent] == [ANY]


def opaque(tag: str) -> str:
    """What stands between the quotes."""
    return tag.removeprefix("W/").strip('"')
