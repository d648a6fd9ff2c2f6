"""The registered views in plain Python: what one receipt adds to each. A second opinion on their Spark SQL text."""

from collections.abc import Iterator

from master_dataset.parsing.event import Event
from master_dataset.sources.pos_transactions import Receipt
from views.core import States, View
from views.core.cells import CellKey

WINDOW_SECONDS = 900
Contribution = tuple[CellKey, States]


def contributions(view: View, event: Event[Receipt]) -> Iterator[Contribution]:
    """The cells that the event reaches, each with what it adds."""
    at = event.happened_ms // 1000
    window = at - at % WINDOW_SECONDS
    for dimensions, states in _RULES[view.name](event.payload):
        yield CellKey(window, dimensions), states


def _sales(said: Receipt) -> Iterator[tuple[tuple[str, ...], States]]:
    kinds = (1, int(said.is_sale), int(said.is_return), int(said.is_exchange), int(said.is_zero))
    sums = (said.gross_sales, said.returns_value, said.units_sold, said.units_returned, said.line_count)
    yield (said.currency,), (*kinds, *sums)


def _by_sku(said: Receipt) -> Iterator[tuple[tuple[str, ...], States]]:
    for item in said.items:
        yield (said.currency, item.sku), (item.net_sales, item.net_units, int(item.is_sale))


def _by_till(said: Receipt) -> Iterator[tuple[tuple[str, ...], States]]:
    yield (said.currency, said.till), (1, int(said.is_sale), said.gross_sales - said.returns_value)


_RULES = {"sales": _sales, "sales_by_sku": _by_sku, "sales_by_till": _by_till}
