"""Corrections of a day of which nothing was shown before: every cell of the run's block is new."""

from collections.abc import Iterator
from typing import Any

from serving_layer.errors import DefinitionNotPublished
from views.core import View
from views.core.cells import read_block


def whole_rows(view: View, block: str, cause: str, events_total: int) -> Iterator[dict[str, Any]]:
    """A row per cell and state with a value, in the block's order; which events are in which cell is not kept.

    DefinitionNotPublished if the block was written for another definition of the view.
    """
    try:
        for key, states in read_block(view, block):
            dimensions = dict(zip(view.dimensions, key.dimensions, strict=True))
            for state, value in zip(view.columns, states, strict=True):
                if value is not None:
                    yield {
                        "window": key.window,
                        "dimensions": dimensions,
                        "state": state,
                        "shown": None,
                        "corrected": value,
                        "difference": value,
                        "cause": cause,
                        "events": [],
                        "events_total": events_total,
                    }
    except KeyError as error:
        message = f"The view `{view.name}` has a state {error} now, which those cells do not have."
        raise DefinitionNotPublished(message, do="Ask for another `view`, or for a newer publication.") from error
