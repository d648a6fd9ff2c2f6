"""Metrics from tills alone: money, receipts, units, and what follows from them."""

from views.core.formula import Formula
from views.core.metric import Metric, Only

UNITS = Formula("units_sold - units_returned")
NET = "(gross_sales - returns_value)"
MONEY_OF = {"gross_sales": 941, "returns_value": 359}

MONEY = (
    Metric(
        "net_sales",
        "Net sales",
        Formula("gross_sales - returns_value"),
        "money",
        "sales",
        note="eMarketer: sales, net of returns.",
        example=MONEY_OF,
    ),
    Metric(
        "gross_sales",
        "Gross sales",
        Formula("gross_sales"),
        "money",
        "sales",
        note="Ours. Line discounts are already subtracted.",
        example={"gross_sales": 941},
    ),
    Metric(
        "returns_value",
        "Returns",
        Formula("returns_value"),
        "money",
        "sales",
        note="Ours.",
        example={"returns_value": 359},
    ),
    Metric(
        "return_rate",
        "Return rate",
        Formula("returns_value / gross_sales"),
        "percent",
        "sales",
        ("above_100",),
        adds_money=True,
        note="Ours. By value.",
        example=MONEY_OF,
    ),
)
RECEIPTS = (
    Metric(
        "sales_transactions_count",
        "Sale receipts",
        Formula("sale_tx"),
        "n",
        "sales",
        note="RetailNext. An exchange counts as a sale receipt.",
        example={"sale_tx": 3},
    ),
    Metric(
        "return_transactions_count",
        "Return receipts",
        Formula("return_tx"),
        "n",
        "sales",
        note="RetailNext.",
        example={"return_tx": 1},
    ),
    Metric(
        "total_transactions_count",
        "Receipts",
        Formula("receipts"),
        "n",
        "sales",
        note="RetailNext adds sale and return receipts; ours also counts those that are neither.",
        example={"receipts": 4},
    ),
    Metric(
        "net_items_count",
        "Units",
        UNITS,
        "n",
        "sales",
        note="RetailNext: units sold minus units returned.",
        example={"units_sold": 8, "units_returned": 2},
    ),
)
AVERAGES = (
    Metric(
        "avg_transaction_value",
        "ATV",
        Formula(f"{NET} / sale_tx"),
        "money",
        "sales",
        note="RetailNext, net. Aura Vision: total sales divided by transactions.",
        example=MONEY_OF | {"sale_tx": 3},
    ),
    Metric(
        "avg_items_per_transaction",
        "UPT, basket size",
        Formula(f"({UNITS.text}) / sale_tx"),
        "ratio",
        "sales",
        note="RetailNext, Aura Vision, IMAS.",
        example={"units_sold": 8, "units_returned": 2, "sale_tx": 3},
    ),
    Metric(
        "average_unit_retail",
        "AUR",
        Formula(f"{NET} / ({UNITS.text})"),
        "money",
        "sales",
        ("no_net_units",),
        only=Only(UNITS, "no_net_units"),
        note="RetailNext. Null unless more units were sold than returned.",
        example=MONEY_OF | {"units_sold": 8, "units_returned": 2},
    ),
)
SHARES = (
    Metric(
        "sku_attach_rate",
        "Item share",
        Formula("sku_receipts / sales.sale_tx"),
        "percent",
        "sales_by_sku",
        note="Ours. Split it with `by=sku`.",
        example={"sku_receipts": 1, "sales.sale_tx": 3},
    ),
    Metric(
        "till_share",
        "Till share",
        Formula("net_sales / (sales.gross_sales - sales.returns_value)"),
        "percent",
        "sales_by_till",
        adds_money=True,
        note="Ours. Split it with `by=till`.",
        example={"net_sales": 291, "sales.gross_sales": 941, "sales.returns_value": 359},
    ),
)
PER_STORE = (
    Metric(
        "sales_per_sq_m",
        "Sales per area",
        Formula(f"{NET} / store.floor_m2"),
        "money",
        "sales",
        note="RetailNext: sales per square unit.",
        example=MONEY_OF | {"store.floor_m2": 200},
    ),
    Metric(
        "sales_per_open_hour",
        "Sales per open hour",
        Formula(f"{NET} / store.open_hours"),
        "money",
        "sales",
        ("open_only",),
        note="Merlin.",
        example=MONEY_OF | {"store.open_hours": 12},
    ),
)
