"""Who passes, who comes in, and how long do they stay? Device visits, each in the window of its first sighting."""

from datetime import timedelta

from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from views.core import Count, CountDistinct, Histogram, Sum, View
from views.core.aggregates import STAY_EDGES

STAY = "if(is_in_store, stay_ms, null)"

WIFI_VISITS = View(
    name="wifi_visits",
    source=WIFI_SIGHTINGS,
    counts_visits=True,
    settles_after=timedelta(hours=26),
    reads_days=(1, 1),
    metrics={
        "outside": Count("not is_stationary"),
        "in_store": Count("is_in_store"),
        "bounced": Count("is_bounced"),
        "stationary": Count("is_stationary"),
        "stay_ms": Sum(STAY),
        "stay": Histogram(STAY, STAY_EDGES),
        "device": CountDistinct("if(is_in_store, device, null)"),
    },
)
