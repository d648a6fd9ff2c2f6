"""What single items say: sales, units, receipts, price and returns of each. Split them with `by=sku`."""

from views.core.formula import Formula
from views.core.metric import Metric, Only

SOLD = {"net_sales": 291, "net_units": 4}
RETURNED = {"returns_value": 109, "sales_by_sku.net_sales": 109}

ITEMS_SOLD = (
    Metric(
        "sku_net_sales",
        "Item sales",
        Formula("net_sales"),
        "money",
        "sales_by_sku",
        note="Ours. Net of returns; lines without an item number are counted in `net_sales` only.",
        example={"net_sales": 291},
    ),
    Metric(
        "sku_units",
        "Item units",
        Formula("net_units"),
        "n",
        "sales_by_sku",
        note="Ours. Units sold minus units returned; a weighed item counts as one unit.",
        example={"net_units": 4},
    ),
    Metric(
        "sku_receipts",
        "Receipts with the item",
        Formula("sku_receipts"),
        "n",
        "sales_by_sku",
        note="Ours. Receipts that sell the item. Without `by=sku`, a receipt counts once for each of its items.",
        example={"sku_receipts": 3},
    ),
    Metric(
        "sku_avg_price",
        "Item price",
        Formula("net_sales / net_units"),
        "money",
        "sales_by_sku",
        ("no_net_units",),
        only=Only(Formula("net_units"), "no_net_units"),
        note="Ours. The average amount per unit, after line discounts.",
        example=SOLD,
    ),
)
ITEMS_RETURNED = (
    Metric(
        "sku_returns_value",
        "Item returns",
        Formula("returns_value"),
        "money",
        "returns_by_sku",
        note="Ours.",
        example={"returns_value": 109},
    ),
    Metric(
        "sku_units_returned",
        "Item units returned",
        Formula("units_returned"),
        "n",
        "returns_by_sku",
        note="Ours.",
        example={"units_returned": 1},
    ),
    Metric(
        "sku_return_rate",
        "Item return rate",
        Formula("returns_value / (sales_by_sku.net_sales + returns_value)"),
        "percent",
        "returns_by_sku",
        ("above_100",),
        adds_money=True,
        note="Ours. By value: returns as a share of sales before returns, like `return_rate`.",
        example=RETURNED,
    ),
)
