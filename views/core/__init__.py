"""What a view is made of. No engine is imported here, and none may be."""

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
