"""Who came in: people counted at the doors, how many are inside, and which hours are the busiest."""

from views.core.formula import Formula
from views.core.metric import Caution, Metric

MOST_DRIFT = Formula("abs(people_in - people_out) - people_in / 20")
"""Above zero if the counters disagree by more than 5 % of those who came in."""
COARSE = ("day", "week", "month", "year", "total")
ORDERED = ("day", "15m", "hour", "week", "month", "year", "total")
HALF_HOUR = ((6, 2), (4, 3))

PEOPLE = (
    Metric(
        "traffic_in",
        "Visitors in",
        Formula("people_in"),
        "n",
        "traffic",
        ("low_coverage",),
        note="RetailNext.",
        example={"people_in": 10},
    ),
    Metric(
        "traffic_out",
        "Visitors out",
        Formula("people_out"),
        "n",
        "traffic",
        ("low_coverage",),
        note="RetailNext.",
        example={"people_out": 5},
    ),
    Metric(
        "group_traffic_in",
        "Groups in",
        Formula("group_in"),
        "n",
        "traffic",
        note="RetailNext. Counted separately; it never replaces `traffic_in`.",
        example={"group_in": 7},
    ),
    Metric(
        "avg_group_size",
        "Group size",
        Formula("grouped_in / group_in"),
        "ratio",
        "traffic",
        note="Ours. Only people in intervals that report groups.",
        example={"grouped_in": 10, "group_in": 7},
    ),
    Metric(
        "staff_traffic_in",
        "Staff in",
        Formula("staff_in"),
        "n",
        "traffic",
        ("no_staff_split",),
        cautions=(Caution(Formula("unsplit"), "no_staff_split"),),
        note="RetailNext. `no_staff_split`: at least one sensor does not tell staff from visitors.",
        example={"staff_in": 3, "unsplit": 0},
    ),
)
INSIDE = (
    Metric(
        "occupancy",
        "People inside",
        Formula("inside(people_in, people_out)"),
        "n",
        "traffic",
        ("drift_high",),
        grains=ORDERED,
        note="Window by window, o = max(0, o + in - out), from the start of the business day regardless of `from`; a "
        "point shows its last window. The floor of 0 and the daily reset are ours.",
        example={"inside(people_in, people_out)": HALF_HOUR},
    ),
    Metric(
        "occupancy_max",
        "Peak occupancy",
        Formula("most_inside(people_in, people_out)"),
        "n",
        "traffic",
        ("drift_high",),
        grains=ORDERED,
        note="Ours. The highest `occupancy` at the end of any window.",
        example={"most_inside(people_in, people_out)": ((9, 1), (2, 8))},
    ),
    Metric(
        "count_drift",
        "Counting drift",
        Formula("people_in - people_out"),
        "n",
        "traffic",
        ("drift_high",),
        cautions=(Caution(MOST_DRIFT, "drift_high"),),
        grains=COARSE,
        whole_days=True,
        note="Ours. Over the whole business days that the range touches; `drift_high` if above 5 % of people in.",
        example={"people_in": 10, "people_out": 5},
    ),
)
SHARES = (
    Metric(
        "entrance_share",
        "Door share",
        Formula("people_in / total(people_in)"),
        "percent",
        "traffic",
        note="Ours. Split it with `by=line`.",
        example={"people_in": 3, "total(people_in)": 12},
    ),
    Metric(
        "power_hours",
        "Power hours",
        Formula("busiest(people_in, 40)"),
        "list",
        "traffic",
        grains=("total", "week", "month", "year"),
        note="The name is ShopperTrak's, the 40 % ours. The fewest hours of the week that account for that share of "
        "people in.",
        example={"busiest(people_in, 40)": {(5, 17): 30, (6, 10): 20, (6, 11): 50}},
    ),
    Metric(
        "traffic_per_open_hour",
        "Visitors per open hour",
        Formula("people_in / store.open_hours"),
        "ratio",
        "traffic",
        ("open_only",),
        note="Merlin.",
        example={"people_in": 120, "store.open_hours": 12},
    ),
)
