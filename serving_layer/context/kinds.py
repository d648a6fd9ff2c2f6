"""The kinds of context that `context=` can ask for, and the rows that an answer shows of them."""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from master_dataset.errors import UnknownNameError
from serving_layer.context.holidays import PublicHolidays
from serving_layer.context.weather import ObservedWeather
from serving_layer.errors import NotAvailableError
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.responses.metrics import Context, Holidays, Weather
from serving_layer.store.cells import MergedCells

if TYPE_CHECKING:
    from serving_layer.query.resolve import ResolvedQuery


class ContextKind(Protocol):
    """One kind of context."""

    @property
    def name(self) -> str:
        """Its value in `context=`, and its field in the answer."""

    @property
    def views(self) -> Sequence[str]:
        """The views that it reads; without them it is not available."""

    async def rows(self, query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Holidays | Weather:
        """The rows of all stores of the query, and where they come from. Reads from the snapshot of the answer.

        Raises:
            DefinitionNotPublishedError, CellMissingError: as for the cells of the metric itself.
        """


KINDS: dict[str, ContextKind] = {kind.name: kind for kind in (PublicHolidays(), ObservedWeather())}
NAMES = tuple(KINDS)


def context_names(text: str, views: Container[str]) -> tuple[str, ...]:
    """Parse `context=`: names of kinds, separated by commas.

    Args:
        text: the value of the parameter.
        views: the names of the registered views.

    Raises:
        UnknownNameError: no kind has this name.
        NotAvailableError: a view that the kind reads is not registered.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KINDS:
            raise UnknownNameError("context", name, NAMES)
        if not all(view in views for view in KINDS[name].views):
            message = f"`context={name}` is not answered: there is no view that it could be read from."
            raise NotAvailableError(message, do=f"Leave `{name}` out of `context`.")
    return names


async def context_rows(query: "ResolvedQuery", snapshot: ReadSnapshot, cells: MergedCells) -> Context:
    """The rows of every kind that the query asks for, by its name."""
    return cast("Context", {name: await KINDS[name].rows(query, snapshot, cells) for name in query.context})
