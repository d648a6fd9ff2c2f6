"""What the flags of an answer say, in words."""

from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop

FLAG_TEXTS = {
    "above_100": gettext_noop("more than 100 %: the two sides do not count the same people"),
    "below_zero": gettext_noop("below zero: the target was exceeded"),
    "device_based": gettext_noop("estimated from Wi-Fi"),
    "device_days": gettext_noop("over several days, a phone counts once a day"),
    "discounts_not_said": gettext_noop("no receipt lists its discounts"),
    "drift_high": gettext_noop("the counts of people entering and leaving differ a lot"),
    "estimate": gettext_noop("an estimate"),
    "loading": gettext_noop("loading history"),
    "low_coverage": gettext_noop("sensor gaps (under 95 % uptime)"),
    "masked": gettext_noop("not shown, because sensors worked for less than half of the time"),
    "no_counterpart": gettext_noop("no data to compare with"),
    "stores_differ": gettext_noop("the two periods do not cover the same stores"),
    "no_net_units": gettext_noop("no more was sold than returned"),
    "no_opening_hours": gettext_noop("the store has no opening hours"),
    "no_source": gettext_noop("no sensor in this store measures it"),
    "no_staff_split": gettext_noop("includes staff"),
    "open_only": gettext_noop("opening hours only"),
    "pairs_cut": gettext_noop("very large receipts are not paired"),
    "partly_said": gettext_noop("receipts that do not say it are left out"),
    "payments_not_said": gettext_noop("no receipt says how it was paid"),
    "planned_only": gettext_noop("from planned hours, because worked hours are not known"),
    "small_sample": gettext_noop("based on few people"),
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
