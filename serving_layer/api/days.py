"""Days as they are asked for."""

import re
from datetime import date
from typing import Annotated

from pydantic import BeforeValidator

A_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _as_text(day: object) -> object:
    """A number, also one in a text, would be understood as seconds since 1970, and another day would be answered."""
    if day is not None and not (isinstance(day, str) and A_DAY.fullmatch(day)):
        raise ValueError("a day is a text such as `2026-11-21`")
    return day


Day = Annotated[date, BeforeValidator(_as_text)]
