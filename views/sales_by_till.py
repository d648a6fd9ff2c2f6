"""How much does each till sell? A refund still counts as a receipt, and its amount is subtracted."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Sum, View

SALES_BY_TILL = View(
    name="sales_by_till",
    source=POS_TRANSACTIONS,
    dimensions={"currency": "currency", "till": "till"},
    metrics={
        "receipts": Count(),
        "sale_tx": Count("is_sale"),
        "net_sales": Sum("gross_sales - returns_value"),
    },
)
