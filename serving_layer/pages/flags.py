"""What the flags of an answer say, in words."""

from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import noted

FLAG_TEXTS = {
    "above_100": noted("more than 100 %: the two sides do not count the same people"),
    "below_zero": noted("below zero: the target was exceeded"),
    "device_based": noted("estimated from Wi-Fi"),
    "device_days": noted("over several days, a phone counts once a day"),
    "discounts_not_said": noted("no receipt lists its discounts"),
    "drift_high": noted("the counts of people entering and leaving differ a lot"),
    "estimate": noted("an estimate"),
    "loading": noted("loading history"),
    "low_coverage": noted("sensor gaps (under 95 % uptime)"),
    "masked": noted("not shown, because sensors worked for less than half of the time"),
    "no_counterpart": noted("no data to compare with"),
    "stores_differ": noted("the two periods do not cover the same stores"),
    "no_net_units": noted("no more was sold than returned"),
    "no_opening_hours": noted("the store has no opening hours"),
    "no_source": noted("no sensor in this store measures it"),
    "no_staff_split": noted("includes staff"),
    "open_only": noted("opening hours only"),
    "pairs_cut": noted("very large receipts are not paired"),
    "partly_said": noted("receipts that do not say it are left out"),
    "payments_not_said": noted("no receipt says how it was paid"),
    "planned_only": noted("from planned hours, because worked hours are not known"),
    "small_sample": noted("based on few people"),
}
DESCRIPTIVE_FLAGS = frozenset(
    {
        "device_based",
        "device_days",
        "drift_high",
        "estimate",
        "low_coverage",
        "open_only",
        "pairs_cut",
        "partly_said",
        "small_sample",
    }
)
"""They describe a number, and do not say why there is none."""


def flag_text(flag: str) -> str:
    """What a flag says, in the language of the page; an unknown flag as it is."""
    return _(FLAG_TEXTS[flag]) if flag in FLAG_TEXTS else flag.replace("_", " ")
