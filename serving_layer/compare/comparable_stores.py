"""Comparable stores (`comp=true`): those that had settled before the query begins, and whose sensors were alive.

`left_out` decides what the registry can decide, before anything is read; `low_coverage` needs what was measured.
"""

from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from master_dataset.registry.stores import Store
from serving_layer.responses.metrics import LeftOut

ENOUGH = Fraction(95, 100)
"""The part of the time of all sensors that must be covered for their zeroes to be trusted."""
SETTLES_IN = timedelta(days=364)
"""A store is comparable so long after it opened, unless its `comp_start_date` says otherwise."""


class FirstDates(NamedTuple):
    """The first local date of the query, and of what it is compared with; None if it is compared with nothing."""

    since: date
    compared_since: date | None


def left_out(store: Store, dates: FirstDates) -> LeftOut | None:
    """Why the store is not comparable, or None if it is: the first condition that it does not meet."""
    return next((found for condition in CONDITIONS if (found := condition(store, dates))), None)


def _has_settled(store: Store, dates: FirstDates) -> LeftOut | None:
    starts = store.comp_start_date or (store.open_since and store.open_since + SETTLES_IN)
    if starts is None:
        return _open_since_unknown(store)
    if starts > dates.since:
        return LeftOut(store.id, "not_comparable_yet", f"It is comparable from {starts} on.")
    return None


def _was_open(store: Store, dates: FirstDates) -> LeftOut | None:
    if dates.compared_since is None:
        return None
    if store.open_since is None:
        return _open_since_unknown(store)
    if store.open_since > dates.compared_since:
        return LeftOut(store.id, "not_open_before", f"It is open since {store.open_since}.")
    return None


def _open_since_unknown(store: Store) -> LeftOut:
    return LeftOut(store.id, "open_since_unknown", "Say `open_since` in stores.yaml.")


def low_coverage(store: Store, share: Fraction | None) -> LeftOut | None:
    """Why the store is not comparable by what was measured, or None if it is.

    Args:
        store: the store.
        share: the part of its sensor time that was covered, the lesser of both periods; None if it registers no sensor
            that the metric needs.
    """
    if share is None or share >= ENOUGH:
        return None
    return LeftOut(store.id, "low_coverage", f"Its sensors were alive for {float(100 * share):.1f} % of the time.")


CONDITIONS: tuple[Callable[[Store, FirstDates], LeftOut | None], ...] = (_has_settled, _was_open)
