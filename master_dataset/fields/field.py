"""What every type of a field has in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from master_dataset.registry.currency import Currency

Schema = Mapping[str, Any]
"""A JSON Schema of 2020-12."""


class Field(Protocol):
    """One field of a source. `hint` is what msgspec may let through; `read` decides."""

    @property
    def about(self) -> str:
        """What the field says, for whoever sends it."""

    @property
    def optional(self) -> bool:
        """Absent and null both mean None."""

    @property
    def hint(self) -> Any:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
        """The annotation for the decoder: never stricter than `read`, so that it cannot refuse what `read` takes."""

    @property
    def schema(self) -> Schema:
        """The same for others: never stricter than `read`. Its `description` says what no keyword can."""

    def read(self, value: Any, currency: Currency) -> Any:  # noqa: ANN401 - a parser is where Any ends
        """Give the typed value. JSON numbers arrive as int or finite Decimal. Raises Refused."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """`about`: what the field says; it changes nothing of how the field is read."""

    about: str = field(default="", compare=False)


def absent(field: object) -> Any:  # noqa: ANN401 - typed by its field
    """Give what an optional field counts as where it is left out: mostly None."""
    return getattr(field, "otherwise", None)
