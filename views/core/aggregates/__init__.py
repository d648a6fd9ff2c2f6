"""Aggregates: states that merge, and how they are presented."""

from views.core.aggregates.aggregate import Aggregate, Shown, State
from views.core.aggregates.column import Column, Value
from views.core.aggregates.count import Count
from views.core.aggregates.count_distinct import CountDistinct
from views.core.aggregates.histogram import Histogram
from views.core.aggregates.max import Max
from views.core.aggregates.mean import Mean
from views.core.aggregates.min import Min
from views.core.aggregates.sum import Sum

__all__ = [
    "Aggregate",
    "Column",
    "Count",
    "CountDistinct",
    "Histogram",
    "Max",
    "Mean",
    "Min",
    "Shown",
    "State",
    "Sum",
    "Value",
]
