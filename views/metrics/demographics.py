"""Who comes, as far as a camera can tell. People of unknown age or gender are left out of shares and averages."""

from views.core.formula import Formula
from views.core.metric import Metric

MIDPOINTS = {"0-14": 7, "15-24": 20, "25-34": 30, "35-44": 40, "45-54": 50, "55-64": 60, "65+": 72}
"""Age band to the age that stands for it."""


def _of_bands(*bands: str) -> str:
    return f"people(age_band={bands!r})".replace("'", '"') if len(bands) > 1 else f'people(age_band="{bands[0]}")'


def _of_gender(*genders: str) -> str:
    return f"people(gender={genders!r})".replace("'", '"') if len(genders) > 1 else f'people(gender="{genders[0]}")'


KNOWN_AGE = _of_bands(*MIDPOINTS)
KNOWN_GENDER = _of_gender("female", "male")
YEARS = " + ".join(f"{midpoint} * {_of_bands(band)}" for band, midpoint in MIDPOINTS.items())
PEOPLE = {_of_bands(band): 10 if band in ("25-34", "45-54") else 0 for band in MIDPOINTS}

GENDER = tuple(
    Metric(
        f"{gender}_rate",
        gender.capitalize(),
        Formula(f"{_of_gender(gender)} / {KNOWN_GENDER}"),
        "percent",
        "demographics",
        ("small_sample",),
        note="RetailNext. Among people whose gender is known.",
        example={_of_gender(gender): 21, KNOWN_GENDER: 42},
    )
    for gender in ("female", "male")
)
AGE = (
    Metric(
        "age_band_share",
        "Age bands",
        Formula(f"{KNOWN_AGE} / total({KNOWN_AGE})"),
        "percent",
        "demographics",
        ("small_sample",),
        note="Ours. Among people whose age is known; split it with `by=age_band`.",
        example={KNOWN_AGE: 20, f"total({KNOWN_AGE})": 80},
    ),
    Metric(
        "avg_age",
        "Average age",
        Formula(f"({YEARS}) / {KNOWN_AGE}"),
        "years",
        "demographics",
        ("estimate",),
        note="RetailNext. Each age band counts as its midpoint, the last one as 72.",
        example=PEOPLE | {KNOWN_AGE: 20},
    ),
)
