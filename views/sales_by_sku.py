"""Which items do we sell? Lines without an item number are counted in `sales` only."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Each, Sum, View

SALES_BY_SKU = View(
    name="sales_by_sku",
    source=POS_TRANSACTIONS,
    each=Each("item", of="items"),
    dimensions={"currency": "currency", "sku": "item.sku"},
    metrics={
        "net_sales": Sum("item.net_sales"),
        "net_units": Sum("item.net_units"),
        "sku_receipts": Count("item.is_sale"),
    },
)
