"""What is sent in the model, how large its world is, and the two views, each in two definitions."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.visits.visit import RULES
from speed_layer.micro_batch import SpeedTimings
from views.core import Count, Max, Min, Sum, View
from views.core.cells import CellKey, States
from views.core.cut import UNIX_EPOCH
from views.core.view import WINDOW

TOPIC = POS_TRANSACTIONS.topic
PARTITIONS = 2
STORES = ("1", "2", "3")
BEGUN = datetime(2026, 3, 7, 20, 30, tzinfo=UTC)
"""An evening, so that days change soon."""
FUTURE = timedelta(hours=1)
SKEW = timedelta(minutes=5)
TIMINGS = SpeedTimings(
    epoch=timedelta(hours=1),
    oldest=timedelta(hours=23),
    remembered=timedelta(hours=24),
    ttl=timedelta(days=3),
    visits=RULES,
    skew=SKEW,
)
_WINDOW_SECONDS = int(WINDOW.total_seconds())


class Fact(NamedTuple):
    """One event as its till knows it."""

    identity: str
    store: str
    happened_at: datetime
    amount: int
    kind: str

    def partition(self, number: int = PARTITIONS) -> int:
        """Where its key puts it, of so many partitions."""
        return int(self.store) % number


class Code(NamedTuple):
    """A version of the product: its views, and the hashes that rows and cells carry."""

    number: int
    views: tuple[View, View]
    definitions: dict[str, str]


def _code(number: int, least: int) -> Code:
    takings = View(
        name="takings",
        source=POS_TRANSACTIONS,
        where=f"amount >= {least}",
        dimensions={"kind": "kind"},
        metrics={"sales": Count(), "total": Sum("amount"), "least": Min("amount"), "most": Max("amount")},
    )
    visits = View(name="visits", source=POS_TRANSACTIONS, metrics={"visits": Count()})
    views = (takings, visits)
    epoch = {"@epoch_seconds": str(int(TIMINGS.epoch.total_seconds()))}
    return Code(number, views, {view.name: view.definition_hash for view in views} | epoch)


LEAST = (0, 6)
"""By version: what a sale has to bring to be in `takings`."""
CODES = (_code(0, LEAST[0]), _code(1, LEAST[1]))


def window_of(happened_at: datetime) -> int:
    """The start of its window, in seconds since 1970."""
    at = int((happened_at - UNIX_EPOCH).total_seconds())
    return at - at % _WINDOW_SECONDS


def contributions(code: Code, fact: Fact) -> list[tuple[View, CellKey, States]]:
    """What the fact adds to each view: their SQL in plain Python."""
    takings, visits = code.views
    window = window_of(fact.happened_at)
    found: list[tuple[View, CellKey, States]] = [(visits, CellKey(window, ()), (1,))]
    if fact.amount >= LEAST[code.number]:
        found.append((takings, CellKey(window, (fact.kind,)), (1, fact.amount, fact.amount, fact.amount)))
    return found
