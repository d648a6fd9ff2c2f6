"""Texts of a caller that are kept, or handed to a command: short, and without control characters."""

from typing import Annotated

from pydantic import Field, StringConstraints

PRINTED = r"^[^\x00-\x1f\x7f]+$"

Name = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=PRINTED)]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=PRINTED),
    Field(description="Kept in the history."),
]
