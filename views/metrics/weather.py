"""What the weather was: shown next to other numbers, never used to calculate them."""

from views.core.formula import Formula
from views.core.metric import Metric, Only

SEEN = Only(Formula("temperature_mc_n"))
"""No observation is no dry day."""

WEATHER = (
    Metric(
        "temperature_avg",
        "Temperature",
        Formula("temperature_mc_sum / temperature_mc_n / 1000"),
        "celsius",
        "weather",
        note="The mean of all observations, equally weighted.",
        example={"temperature_mc_sum": 14_900, "temperature_mc_n": 2},
    ),
    Metric(
        "precipitation",
        "Precipitation",
        Formula("precipitation_um / 1000"),
        "mm",
        "weather",
        only=SEEN,
        note="The sum of all observations.",
        example={"precipitation_um": 250, "temperature_mc_n": 2},
    ),
)
