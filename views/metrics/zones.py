"""What people look at: who entered a zone of the sales floor, and who stayed."""

from views.core.formula import Formula
from views.core.metric import Metric

COUNTS = (
    Metric(
        "zone_traffic_in",
        "Zone entries",
        Formula("enters"),
        "n",
        "zone_traffic",
        note="RetailNext.",
        example={"enters": 20},
    ),
    Metric(
        "dwell_count",
        "Dwells",
        Formula("dwells"),
        "n",
        "zone_traffic",
        note="RetailNext. From 5 seconds, as in Aura Vision.",
        example={"dwells": 8},
    ),
)
RATES = (
    Metric(
        "avg_dwell_duration",
        "Average dwell",
        Formula("dwell_ms / dwells"),
        "ms",
        "zone_traffic",
        note="RetailNext. Aura Vision divides by all who entered.",
        example={"dwell_ms": 480_000, "dwells": 8},
    ),
    Metric(
        "engagement_rate",
        "Engagement",
        Formula("dwells / enters"),
        "percent",
        "zone_traffic",
        ("above_100",),
        note="The name is RetailNext's, for the step from traffic to dwells; the formula is ours.",
        example={"dwells": 8, "enters": 20},
    ),
    Metric(
        "exposure_rate",
        "Exposure",
        Formula("exits / traffic.people_out"),
        "percent",
        "zone_traffic",
        ("above_100",),
        note="RetailNext, which counts people going out by default.",
        example={"exits": 20, "traffic.people_out": 80},
    ),
    Metric(
        "zone_entry_rate",
        "Zone entry",
        Formula("enters / traffic.people_in"),
        "percent",
        "zone_traffic",
        ("above_100",),
        note="Aura Vision. A person who enters again counts again.",
        example={"enters": 20, "traffic.people_in": 80},
    ),
)
