"""The parts of a view. No engine may be imported here."""

from views.core.aggregates import Aggregate, Count, CountDistinct, Histogram, Max, Mean, Min, Sum
from views.core.cells import States
from views.core.view import Each, View

__all__ = [
    "Aggregate",
    "Count",
    "CountDistinct",
    "Each",
    "Histogram",
    "Max",
    "Mean",
    "Min",
    "States",
    "Sum",
    "View",
]
