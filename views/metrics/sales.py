"""What the tills alone can say: money, receipts, pieces, and what follows from them."""

from views.core.formula import Formula
from views.core.metric import Metric, Only

UNITS = Formula("units_sold - units_returned")
NET = "(gross_sales - returns_value)"

MONEY = (
    Metric("net_sales", "Net sales", Formula("gross_sales - returns_value"), "money", "sales"),
    Metric("gross_sales", "Gross sales", Formula("gross_sales"), "money", "sales"),
    Metric("returns_value", "Returns", Formula("returns_value"), "money", "sales"),
    Metric(
        "return_rate",
        "Return rate",
        Formula("returns_value / gross_sales"),
        "percent",
        "sales",
        ("above_100",),
        adds_money=True,
    ),
)
RECEIPTS = (
    Metric("sales_transactions_count", "Sale receipts", Formula("sale_tx"), "n", "sales"),
    Metric("return_transactions_count", "Return receipts", Formula("return_tx"), "n", "sales"),
    Metric("total_transactions_count", "Receipts", Formula("receipts"), "n", "sales"),
    Metric("net_items_count", "Units", UNITS, "n", "sales"),
)
AVERAGES = (
    Metric("avg_transaction_value", "ATV", Formula(f"{NET} / sale_tx"), "money", "sales"),
    Metric("avg_items_per_transaction", "UPT, basket size", Formula(f"({UNITS.text}) / sale_tx"), "ratio", "sales"),
    Metric(
        "average_unit_retail", "AUR", Formula(f"{NET} / ({UNITS.text})"), "money", "sales",
        ("no_net_units",), only=Only(UNITS, "no_net_units"),
    ),
)  # fmt: skip
SHARES = (
    Metric("sku_attach_rate", "Item share", Formula("sku_receipts / sales.sale_tx"), "percent", "sales_by_sku"),
    Metric(
        "till_share", "Till share", Formula("net_sales / (sales.gross_sales - sales.returns_value)"), "percent",
        "sales_by_till", adds_money=True,
    ),
)  # fmt: skip
PER_STORE = (
    Metric("sales_per_sq_m", "Sales per area", Formula(f"{NET} / store.floor_m2"), "money", "sales"),
    Metric(
        "sales_per_open_hour", "Sales per open hour", Formula(f"{NET} / store.open_hours"), "money", "sales",
        ("open_only",),
    ),
)  # fmt: skip
