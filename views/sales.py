"""What did we sell? Amounts and units of every receipt, with returns counted separately."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Sum, View
from views.core.view import flag_counts

SALES = View(
    name="sales",
    source=POS_TRANSACTIONS,
    dimensions={"currency": "currency"},
    metrics={
        "receipts": Count(),
        "sale_tx": Count("is_sale"),
        "return_tx": Count("is_return"),
        "exchange_tx": Count("is_exchange"),
        "zero_tx": Count("is_zero"),
        "gross_sales": Sum("gross_sales"),
        "returns_value": Sum("returns_value"),
        "units_sold": Sum("units_sold"),
        "units_returned": Sum("units_returned"),
        "lines": Sum("line_count"),
        **flag_counts(POS_TRANSACTIONS),
    },
)
