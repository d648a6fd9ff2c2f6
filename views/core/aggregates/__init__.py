"""Aggregates: states that merge, and how they are presented."""

from views.core.aggregates.aggregate import Aggregate, State
from views.core.aggregates.column import Column, Value
from views.core.aggregates.count import Count
from views.core.aggregates.max import Max
from views.core.aggregates.mean import Mean
from views.core.aggregates.min import Min
from views.core.aggregates.sum import Sum

__all__ = ["Aggregate", "Column", "Count", "Max", "Mean", "Min", "State", "Sum", "Value"]
