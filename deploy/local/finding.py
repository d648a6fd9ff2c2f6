"""What a look at one thing found."""

from typing import NamedTuple


class Finding(NamedTuple):
    """`blocks`: nothing starts until it is mended. `do` is the next step, or "" where all is well."""

    check: str
    ok: bool
    found: str
    do: str = ""
    blocks: bool = False
