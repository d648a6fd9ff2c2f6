"""How many events carry each flag of their source: counted beside the states, and told with every answer of them."""

from collections.abc import Mapping
from typing import Any

from master_dataset.source import Source
from views.core.aggregates import Count
from views.core.shape import Shape

_PREFIX = "flag_"


def flag_counts(source: Source[Any]) -> dict[str, Count]:
    """A metric for each flag, for a view that counts every event of the source once."""
    return {f"{_PREFIX}{flag}": Count(f"array_contains(flags, '{flag}')") for flag in source.flags}


def flags_counted(shape: Shape) -> Mapping[str, int]:
    """Each flag that the view counts, with the place of its column among the states."""
    return {name.removeprefix(_PREFIX): place for place, name in enumerate(shape.columns) if name.startswith(_PREFIX)}
