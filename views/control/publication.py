"""What readers see: one pointer row, read once per request and changed only by a lightweight transaction (R10).

The pointer lies in the partition of the publications, so one conditional batch changes both or neither. An unknown
outcome of a switch is settled by reading the history at SERIAL: if it names our run, the switch was ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Pointer:
    """`cut`: batch covers what was received before it. `manifest`: the run whose manifest names the cells, or "".

    `generation`: whose speed rows count from the cut on; 0 while there are none. `definitions`: view name to the hash
    that the published cells and the speed rows were made with.
    """

    publication: int
    cut: datetime
    manifest: str
    generation: int
    definitions: Mapping[str, str]


SERIES = "galatea"
"""The partition of the publications."""

SELECT_POINTER = (
    "SELECT current, current_cut, current_manifest, current_generation, current_definitions "
    "FROM publications WHERE series = 'galatea' LIMIT 1"
)
