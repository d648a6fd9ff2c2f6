"""Who visits? People by age band and gender, as far as a camera can tell."""

from master_dataset.sources.demographics import DEMOGRAPHICS as SOURCE
from views.core import Sum, View
from views.core.view import flag_counts

DEMOGRAPHICS = View(
    name="demographics",
    source=SOURCE,
    dimensions={"age_band": "age_band", "gender": "gender"},
    metrics={"people": Sum("people"), **flag_counts(SOURCE)},
)
