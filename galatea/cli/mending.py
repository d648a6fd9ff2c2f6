"""What a command line says is to be changed in a dead letter."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from master_dataset.errors import BadFile, RequestError

if TYPE_CHECKING:
    from master_dataset.dead_letters.mend import Mend


def mend_of(body: Path | None, put: Sequence[str], named: int) -> "Mend":
    """`named`: how many letters are named. RequestError, BadFile."""
    from master_dataset.dead_letters.mend import Mend, field_of

    if body is not None and put:
        raise RequestError("A record is replaced as a whole or in fields.", do="Leave out --with or --set.")
    if body is not None and named != 1:
        raise RequestError("A whole record is sent instead of one dead letter.", do="Name one ID, or use --set.")
    if body is not None:
        return Mend(_read(body))
    fields = {}
    for each in put:
        pointer, equals, text = each.partition("=")
        if not equals:
            raise RequestError(f"`{each}` sets nothing.", do="Write it as in --set /store=12")
        fields[pointer] = field_of(pointer, text.encode(errors="surrogateescape"))
    return Mend(fields=fields)


def _read(file: Path) -> bytes:
    """One byte more than a record may have is enough to see that it is too large."""
    from master_dataset.parsing.json_bytes import MAX_BYTES

    if str(file) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile(f"`{file}` cannot be read: {error.strerror}.", do="Name a file, or `-`.") from error
