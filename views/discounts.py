"""How much do discounts take off? Only receipts that report them: tills that send no discounts are left out."""

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
