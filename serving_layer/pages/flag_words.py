"""What a flag of a number says, in words."""

WORDS = {
    "above_100": "more than 100 %: the two sides do not count the same people",
    "below_zero": "below zero: the target was passed",
    "device_based": "counted by phones, not by people",
    "device_days": "over several days a device counts once a day",
    "drift_high": "more people went in than out, or the other way round",
    "estimate": "an estimate",
    "low_coverage": "sensors were alive for less than 95 % of the time",
    "masked": "sensors were alive for less than half of the time, so nothing is shown",
    "no_counterpart": "nothing to compare with",
    "no_net_units": "no more was sold than was returned",
    "no_opening_hours": "the store has no opening hours",
    "no_source": "no sensor of this store feeds it",
    "no_staff_split": "staff and visitors are not told apart",
    "open_only": "of opening hours alone",
    "planned_only": "planned hours are known, worked ones are not",
    "small_sample": "few people are behind it",
}

DESCRIBING = frozenset(
    {"device_based", "device_days", "drift_high", "estimate", "low_coverage", "open_only", "small_sample"}
)
"""They say what a number is, not why there is none."""


def in_words(flag: str) -> str:
    """The sentence of a flag; a flag without one stands for itself."""
    return WORDS.get(flag, flag.replace("_", " "))
