"""What was the weather? Shown next to other numbers, never used to calculate them."""

from master_dataset.sources.weather_observations import WEATHER_OBSERVATIONS
from views.core import Max, Mean, Min, Sum, View

WEATHER = View(
    name="weather",
    source=WEATHER_OBSERVATIONS,
    dimensions={"provider": "provider"},
    metrics={
        "temperature_mc": Mean("temperature_mc"),
        "coldest_mc": Min("temperature_mc"),
        "warmest_mc": Max("temperature_mc"),
        "precipitation_um": Sum("precipitation_um"),
        "wind_mm_s": Mean("wind_mm_s"),
        "cloud_permille": Mean("cloud_permille"),
    },
)
