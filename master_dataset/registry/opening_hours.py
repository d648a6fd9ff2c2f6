"""Opening hours lie on the 15-minute grid, because a window is either open or closed."""

import re

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_PERIODS = 8  # on one day
PERIOD = re.compile(
    r"(?:[01]\d|2[0-3]):(?:00|15|30|45)-(?:(?:[01]\d|2[0-3]):(?:00|15|30|45)|24:00)", re.ASCII
).fullmatch


def off_the_grid(hours: object) -> str | None:
    """Name the first place that is no period on the grid (`.mon[0]`), empty for the whole; None if all is well.

    Right is {weekday: ["HH:MM-HH:MM", ...]} with quarter hours; `24:00` may close a day.
    """
    if not isinstance(hours, dict):
        return ""
    for day, periods in hours.items():
        if day not in WEEKDAYS or not isinstance(periods, list) or len(periods) > MOST_PERIODS:
            return f".{day}"
        for number, period in enumerate(periods):
            if not isinstance(period, str) or not PERIOD(period):
                return f".{day}[{number}]"
    return None
