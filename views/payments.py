"""How do they pay? Amounts and payments by type; receipts of a till that sends no payments are in no cell."""

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
