"""How do customers pay? Amount and number of payments by type; tills that send no payments are left out."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Each, Sum, View

PAYMENTS = View(
    name="payments",
    source=POS_TRANSACTIONS,
    each=Each("payment", of="payments"),
    dimensions={"currency": "currency", "payment_type": "payment.type"},
    metrics={
        "payments": Sum("payment.amount"),
        "payments_count": Count(),
        "payment_receipts": Count("payment.is_first"),
    },
)
