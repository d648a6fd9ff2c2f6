"""Who is around now? Devices heard over WiFi, without waiting for visits to end."""

from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from views.core import Count, CountDistinct, View
from views.core.view import flag_counts

WIFI_DEVICES = View(
    name="wifi_devices",
    source=WIFI_SIGHTINGS,
    dimensions={"zone": "if(is_inside, 'inside', 'outside')"},
    metrics={
        "sightings": Count(),
        "randomized": Count("is_randomized"),
        "device": CountDistinct("device"),
        **flag_counts(WIFI_SIGHTINGS),
    },
)
