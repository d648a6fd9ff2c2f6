"""Stores that are registered in the same way all the time, and clocks that do not differ."""

from datetime import timedelta

from master_dataset.registry.stores import Store
from master_dataset.registry.terms_history import TermsHistory, TermsUntil

ONE_CLOCK = timedelta(0)
"""The skew where nothing has a clock of its own."""


def default_terms(_received_us: int) -> TermsHistory:
    """No store was ever registered."""
    return TermsHistory()


def terms_of_stores(*stores: Store) -> TermsUntil:
    """These are registered, and have always been."""
    history = TermsHistory({store.id: store.terms for store in stores})
    return lambda _received_us: history
