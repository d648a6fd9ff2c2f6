"""How long people wait at a checkout, how many give up, and how long the line is."""

from views.core.formula import Formula
from views.core.metric import Metric

WAITS = (240_000, 90_000, 60_000)

COUNTS = (
    Metric(
        "queue_joins",
        "Joined the queue",
        Formula("joins"),
        "n",
        "queue",
        note="Aura Vision, Ariadne.",
        example={"joins": 5},
    ),
    Metric(
        "queue_served",
        "Served",
        Formula("served"),
        "n",
        "queue",
        note="Aura Vision, Ariadne.",
        example={"served": 3},
    ),
    Metric(
        "queue_abandoned",
        "Left the queue",
        Formula("abandoned"),
        "n",
        "queue",
        note="Aura Vision, Ariadne.",
        example={"abandoned": 1},
    ),
)
TIMES = (
    Metric(
        "avg_queue_wait",
        "Average wait",
        Formula("wait_ms / served"),
        "ms",
        "queue",
        note="Pit Crew, Ariadne. Only people who were served; those who gave up are counted separately.",
        example={"wait_ms": 390_000, "served": 3},
    ),
    Metric(
        "avg_service_time",
        "Average service",
        Formula("service_ms / services"),
        "ms",
        "queue",
        note="Pit Crew, Ariadne.",
        example={"service_ms": 100_000, "services": 2},
    ),
    Metric(
        "median_queue_wait",
        "Median wait",
        Formula("percentile(wait, 50)"),
        "ms",
        "queue",
        note="Ours.",
        example={"percentile(wait, 50)": WAITS},
    ),
    Metric(
        "p90_queue_wait",
        "Wait, 90th percentile",
        Formula("percentile(wait, 90)"),
        "ms",
        "queue",
        note="Ours.",
        example={"percentile(wait, 90)": WAITS},
    ),
)
RATES = (
    Metric(
        "queue_abandonment_rate",
        "Abandonment",
        Formula("abandoned / (served + abandoned)"),
        "percent",
        "queue",
        note="Ariadne, Pygmalios. Pit Crew divides by completed services, which can exceed 100 %.",
        example={"abandoned": 1, "served": 3},
    ),
    Metric(
        "queue_service_level",
        "Service level",
        Formula("within_target / served"),
        "percent",
        "queue",
        note="Pit Crew counts waits above the target; ours is the share served within 180 seconds.",
        example={"within_target": 2, "served": 3},
    ),
)
LENGTH = (
    Metric(
        "avg_queue_length",
        "Average length",
        Formula("person_ms / store.selected_ms"),
        "ratio",
        "queue_length",
        ("low_coverage",),
        note="Aura Vision. Total waiting time divided by elapsed time.",
        example={"person_ms": 690_000, "store.selected_ms": 1_800_000},
    ),
    Metric(
        "max_queue_length",
        "Longest line",
        Formula("length_after"),
        "n",
        "queue_peak",
        note="Aura Vision. Null if no sensor reported how many people were waiting.",
        example={"length_after": 4},
    ),
)
