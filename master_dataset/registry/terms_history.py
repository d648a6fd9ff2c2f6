"""How the records of each store are read, by when they were received (ADR 0083).

A change of the registered stores counts for records that the broker receives from an instant on. So whoever reads a
record, and however often, reads it in the same way: the archive at once, and each generation of the speed layer again.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from master_dataset.parsing.results import UNIX_EPOCH
from master_dataset.registry.stores import DEFAULT_TERMS, Terms

TermsOf = Callable[[str], Terms]
"""The terms by which the records of a store are parsed, by its id."""
_MICROSECOND = timedelta(microseconds=1)


class FormerTerms(NamedTuple):
    """How records of a store were read that were received before `until`, and not before an earlier change of it."""

    store: str
    until: datetime
    terms: Terms


class TermsHistory:
    """The terms of all stores, now and before each change."""

    def __init__(self, current: Mapping[str, Terms] = MappingProxyType({}), former: Iterable[FormerTerms] = ()) -> None:
        """`current`: by store, since the last change of it. Stores that are in neither have the default terms."""
        self.current = current
        self.former = sorted(former, key=lambda each: each.until)
        self._read: dict[int, TermsOf] = {}  # by the number of changes that come before

    @cached_property
    def _changes_us(self) -> list[int]:
        return sorted({microseconds(each.until) for each in self.former})

    def at(self, received_us: int) -> TermsOf:
        """Return how records are read that were received at an instant, in microseconds since 1970."""
        number = bisect_right(self._changes_us, received_us)
        if number not in self._read:
            self._read[number] = self._after(number)
        return self._read[number]

    def is_steady(self, first_us: int, last_us: int) -> bool:
        """Return whether records that were received from the first to the last instant are read in the same way."""
        return bisect_right(self._changes_us, first_us) == bisect_right(self._changes_us, last_us)

    def knows(self, store: str) -> bool:
        """Return whether the store was ever changed."""
        return any(each.store == store for each in self.former)

    def _after(self, changes: int) -> TermsOf:
        terms = dict(self.current)
        for each in reversed(self.former):
            if bisect_right(self._changes_us, microseconds(each.until)) > changes:  # the change is yet to come
                terms[each.store] = each.terms
        return lambda store: terms.get(store, DEFAULT_TERMS)


TermsUntil = Callable[[int], TermsHistory]
"""The history with every change up to an instant, in microseconds since 1970."""


def microseconds(instant: datetime) -> int:
    """Return an instant in microseconds since 1970."""
    return (instant - UNIX_EPOCH) // _MICROSECOND
