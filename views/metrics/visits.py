"""Visits of devices that WiFi hears: who passes, who comes in, and for how long."""

from views.core.formula import Formula
from views.core.metric import Metric

UNIQUE = "least(distinct(device), in_store)"
DEVICE_BASED = ("device_based",)
ESTIMATE = ("estimate", "device_days")
SEEN = {"in_store": 4, "outside": 7}
DEVICES = {"distinct(device)": 3, "in_store": 4}
STAYS = (1_213_000, 180_000, 600_000, 300_000)

TRAFFIC = (
    Metric(
        "outside_traffic",
        "Outside traffic intensity",
        Formula("outside"),
        "n",
        "wifi_visits",
        DEVICE_BASED,
        note="Pygmalios. Everyone in range, including those who enter.",
        example={"outside": 7},
    ),
    Metric(
        "in_store_traffic",
        "In-store traffic intensity",
        Formula("in_store"),
        "n",
        "wifi_visits",
        DEVICE_BASED,
        note="Pygmalios.",
        example={"in_store": 4},
    ),
    Metric(
        "passers_by",
        "Did not enter",
        Formula("outside - in_store"),
        "n",
        "wifi_visits",
        DEVICE_BASED,
        note="Bumbee Labs, Aura Vision.",
        example=SEEN,
    ),
)
RATES = (
    Metric(
        "capture_rate",
        "Capture rate",
        Formula("in_store / outside"),
        "percent",
        "wifi_visits",
        DEVICE_BASED,
        note="Aura Vision: in / (in + not entering), so 0 to 100. For in / not entering see `turn_in_ratio`.",
        example=SEEN,
    ),
    Metric(
        "turn_in_ratio",
        "Turn-in ratio",
        Formula("in_store / (outside - in_store)"),
        "percent",
        "wifi_visits",
        ("above_100",),
        note="Bumbee Labs, IMAS; for comparison with what they measured before.",
        example=SEEN,
    ),
    Metric(
        "passby_capture_rate",
        "Capture, door counter",
        Formula("traffic.people_in / outside"),
        "percent",
        "wifi_visits",
        ("above_100", "device_based"),
        note="RetailNext. It mixes people and devices.",
        example={"traffic.people_in": 3, "outside": 7},
    ),
    Metric(
        "bounce_rate",
        "Bounced",
        Formula("bounced / in_store"),
        "percent",
        "wifi_visits",
        note="Cloud4Wi: visits shorter than a threshold, here 5 minutes.",
        example={"bounced": 1, "in_store": 4},
    ),
    Metric(
        "stayed_share",
        "Stayed",
        Formula("(in_store - bounced) / in_store"),
        "percent",
        "wifi_visits",
        note="FortiPresence. 100 minus `bounce_rate`.",
        example={"bounced": 1, "in_store": 4},
    ),
)
STAY = (
    Metric(
        "avg_stay_time",
        "Average stay",
        Formula("stay_ms / in_store"),
        "ms",
        "wifi_visits",
        note="Pygmalios; RetailNext's wireless visit duration.",
        example={"stay_ms": 2_293_000, "in_store": 4},
    ),
    Metric(
        "median_stay_time",
        "Median stay",
        Formula("percentile(stay, 50)"),
        "ms",
        "wifi_visits",
        note="Ours.",
        example={"percentile(stay, 50)": STAYS},
    ),
    Metric(
        "p90_stay_time",
        "Stay, 90th percentile",
        Formula("percentile(stay, 90)"),
        "ms",
        "wifi_visits",
        note="Ours.",
        example={"percentile(stay, 90)": STAYS},
    ),
    Metric(
        "visits_by_stay_time",
        "Visits by stay time",
        Formula("bins(stay)"),
        "list",
        "wifi_visits",
        note="Pygmalios. Milliseconds from (inclusive) to (exclusive), count, and share in percent.",
        example={"bins(stay)": STAYS},
    ),
)
DEVICES_SEEN = (
    Metric(
        "unique_devices",
        "Distinct devices",
        Formula(UNIQUE),
        "n",
        "wifi_visits",
        ESTIMATE,
        note="Device identities change every business day, so over several days a device counts once per day, and the "
        "point carries `device_days`.",
        example=DEVICES,
    ),
    Metric(
        "visit_frequency",
        "Visits per device",
        Formula(f"in_store / {UNIQUE}"),
        "ratio",
        "wifi_visits",
        ESTIMATE,
        note="RetailNext. Bespot uses 14 days, ours uses the lifetime of an identity.",
        example=DEVICES,
    ),
    Metric(
        "repeat_visits_rate",
        "Repeat visits",
        Formula(f"(in_store - {UNIQUE}) / in_store"),
        "percent",
        "wifi_visits",
        ESTIMATE,
        note="RetailNext counts visitors; ours counts visits.",
        example=DEVICES,
    ),
    Metric(
        "randomized_share",
        "Random MACs",
        Formula("randomized / sightings"),
        "percent",
        "wifi_devices",
        note="CDRC scales counts by it; we only show it.",
        example={"randomized": 30, "sightings": 40},
    ),
    Metric(
        "active_devices",
        "Devices now",
        Formula("least(distinct(device), sightings)"),
        "n",
        "wifi_devices",
        ESTIMATE,
        note="Ours. Devices heard, without waiting for visits to end.",
        example={"distinct(device)": 6, "sightings": 15},
    ),
)
