"""How many staff there are, and what comes in or is sold for each hour that they work."""

from views.core.formula import Formula
from views.core.metric import Caution, Metric

WORKED = 'labor_ms(kind="worked")'
PLANNED = Caution(Formula('labor.labor_ms(kind="planned")'), "planned_only", Formula(f"labor.{WORKED}"))
"""Something was planned, and nothing worked."""
ON_THE_FLOOR = 'labor.labor_ms(kind="worked", role="sales_floor")'
HOUR = 3_600_000
PLAN_OF = {'labor.labor_ms(kind="planned")': 0, f"labor.{WORKED}": HOUR // 2}

STAFF = (
    Metric(
        "labor_hours",
        "Labour hours",
        Formula(f"labor.{WORKED} / {HOUR}"),
        "hours",
        "labor",
        ("planned_only",),
        cautions=(PLANNED,),
        note="RetailNext. Only segments that were worked.",
        example=PLAN_OF,
    ),
    Metric(
        "staff_count",
        "Staff",
        Formula(f"labor.{WORKED} / store.selected_ms"),
        "ratio",
        "labor",
        ("planned_only",),
        cautions=(PLANNED,),
        note="RetailNext. The average over the elapsed time.",
        example=PLAN_OF | {"store.selected_ms": HOUR // 2},
    ),
)
PER_HOUR = (
    Metric(
        "shopper_per_labor_hour",
        "STAR, visitors per labour hour",
        Formula(f"people_in * {HOUR} / {ON_THE_FLOOR}"),
        "ratio",
        "traffic",
        ("planned_only",),
        cautions=(PLANNED,),
        note="RetailNext, ShopperTrak: one ratio, two names. Only the role sales_floor, as in ShopperTrak.",
        example=PLAN_OF | {"people_in": 10, ON_THE_FLOOR: HOUR // 2},
    ),
    Metric(
        "sales_per_labor_hour",
        "SPLH",
        Formula(f"(gross_sales - returns_value) * {HOUR} / labor.{WORKED}"),
        "money",
        "sales",
        ("planned_only",),
        cautions=(PLANNED,),
        note="Common in retail. All roles count.",
        example=PLAN_OF | {"gross_sales": 941, "returns_value": 359},
    ),
)
