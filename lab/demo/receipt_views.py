"""The views that the demo has a second opinion on: those over receipts. Its sensors are simulated and not compared."""

from collections.abc import Sequence

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core.view import View
from views.registry import registered_views


def receipt_views() -> Sequence[View]:
    """Give them by name."""
    return [view for view in registered_views() if view.source.topic == POS_TRANSACTIONS.topic]
