"""How big are baskets? Distributions of the value, units and lines of sale receipts.

Items returned in an exchange are not subtracted: the value is that of the items bought.
"""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.basket_pairs import MOST_PAIRED, SOLD
from views.core import Count, Histogram, Sum, View

VALUE_EDGES = (0, *(digit * 10**power for power in range(2, 7) for digit in (1, 2, 5)))
"""Where the bins of values begin, in minor units: 0, 1, 2, 5, 10 ... 50,000.00 of a currency with two digits."""
PIECE_EDGES = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 51)
"""Where the bins of units and lines begin."""

BASKET_SIZES = View(
    name="basket_sizes",
    source=POS_TRANSACTIONS,
    where="is_sale",
    dimensions={"currency": "currency"},
    metrics={
        "baskets": Count(),
        "basket_value": Sum("gross_sales"),
        "value": Histogram("gross_sales", VALUE_EDGES),
        "units": Histogram("units_sold", PIECE_EDGES),
        "lines": Histogram("line_count", PIECE_EDGES),
        "pairs_cut": Count(f"size({SOLD}) > {MOST_PAIRED}"),
    },
)
