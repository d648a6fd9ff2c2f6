"""How much do discounts take off? Only receipts that say so: those of a till that sends no discounts are in no cell."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Sum, View

DISCOUNTS = View(
    name="discounts",
    source=POS_TRANSACTIONS,
    where="discount is not null",
    dimensions={"currency": "currency"},
    metrics={
        "discount_receipts": Count(),
        "discounted": Count("discount > 0"),
        "discounts": Sum("discount"),
        "discounts_returned": Sum("discount_returned"),
        "gross_sales": Sum("gross_sales"),
    },
)
