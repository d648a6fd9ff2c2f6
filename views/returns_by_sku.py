"""Which items are returned? The value and units of return lines, by item number."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Each, Sum, View

RETURNED = "if(units_returned > 0, filter(lines, l -> l.amount < 0 and l.sku is not null), null)"

RETURNS_BY_SKU = View(
    name="returns_by_sku",
    source=POS_TRANSACTIONS,
    each=Each("line", of=RETURNED),
    dimensions={"currency": "currency", "sku": "line.sku"},
    metrics={
        "returns_value": Sum("-line.total"),
        "units_returned": Sum("if(line.amount % 1000 = 0, -line.amount div 1000, 1)"),
        "return_lines": Count(),
    },
)
