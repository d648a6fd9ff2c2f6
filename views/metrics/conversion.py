"""Who came in and bought: tills and door counters together."""

from views.core.formula import Formula
from views.core.metric import Metric

NET = "(sales.gross_sales - sales.returns_value)"
YIELD = Formula(f"{NET} / people_in")
SOLD = {"sales.gross_sales": 941, "sales.returns_value": 359}

BUYERS = (
    Metric(
        "conversion_rate",
        "Conversion",
        Formula("sales.sale_tx / people_in"),
        "percent",
        "traffic",
        ("above_100", "low_coverage"),
        note="RetailNext, Aura Vision, eMarketer, Bumbee Labs. Values above 100 are flagged, not capped.",
        example={"sales.sale_tx": 3, "people_in": 10},
    ),
    Metric(
        "group_conversion_rate",
        "Group conversion",
        Formula("sales.sale_tx / group_in"),
        "percent",
        "traffic",
        ("above_100",),
        note="RetailNext.",
        example={"sales.sale_tx": 3, "group_in": 7},
    ),
)
MONEY = (
    Metric(
        "shopper_yield",
        "Sales per visitor",
        YIELD,
        "money",
        "traffic",
        ("low_coverage",),
        note="RetailNext, eMarketer. VisionArea reports it per 100 visitors.",
        example=SOLD | {"people_in": 10},
    ),
    Metric(
        "productivity",
        "Productivity by hours in week",
        YIELD,
        "money",
        "traffic",
        ("low_coverage",),
        grains=("hour_of_week",),
        note="Pygmalios names tills and people counters as its sources, so we divide by visitors: `shopper_yield` "
        "by hour of the week.",
        example=SOLD | {"people_in": 10},
    ),
    Metric(
        "missed_sales",
        "Missed opportunity",
        Formula(f"people_in * (store.conversion_target / 100 - sales.sale_tx / people_in) * {NET} / sales.sale_tx"),
        "money",
        "traffic",
        ("below_zero",),
        note="Sensormatic's what-if: visitors x (target - conversion) x ATV, with the store's `conversion_target`; "
        "below zero if the store exceeded its target.",
        example=SOLD | {"people_in": 10, "store.conversion_target": 40, "sales.sale_tx": 3},
    ),
)
