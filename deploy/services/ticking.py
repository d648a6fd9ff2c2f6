"""Lets time pass for alerts: what is registered is noted, and ticks are written, again and again."""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog
from cassandra import DriverException
from prometheus_client import Counter

from deploy.cassandra import FAILURES
from master_dataset.errors import Unavailable
from master_dataset.registry.stores import Store
from views.alerts.rule_history import Book

NOT_TICKED = Counter(
    "galatea_alerts_tick_failures", "Rounds in which stores were not noted for alerts, or ticks not written."
)
_NAP_SECONDS = 1.0

log = structlog.get_logger()


class Notes(Protocol):
    """The book, into which facts of stores are written. Every method raises StoreUnavailable."""

    def note(self, stores: Mapping[str, Store], beat: Callable[[], None]) -> None:
        """Write down what is registered and not said yet."""

    def read(self) -> Book:
        """As of now."""


class Ticks(Protocol):
    """Writes ticks."""

    def tick(self, book: Book) -> None:
        """Into what a rule watches. BrokerUnavailable."""


class Ticking:
    """A lane of its own: if it ends, the process does."""

    def __init__(
        self, notes: Notes, stores: Callable[[], Mapping[str, Store]], ticks: Ticks, beat: Callable[[], None]
    ) -> None:
        """`stores`: those that are registered; may raise what the driver does. `beat`: it gets on."""
        self._notes, self._stores, self._ticks, self._beat = notes, stores, ticks, beat

    def run(self, seconds: float) -> None:
        """Until the process ends, a round after so many seconds."""
        while True:
            self.once()
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                self._beat()
                time.sleep(min(left, _NAP_SECONDS))

    def once(self) -> None:
        """One round. What passes by itself is logged and counted, and tried again in the next one."""
        for step in (self._note, self._tick):
            try:
                step()
            except (Unavailable, DriverException, *FAILURES) as error:
                NOT_TICKED.inc()
                log.warning("alerts.no_tick", why=str(error))
            self._beat()

    def _note(self) -> None:
        stores = self._stores()
        self._beat()
        self._notes.note(stores, self._beat)

    def _tick(self) -> None:
        book = self._notes.read()
        self._beat()
        self._ticks.tick(book)
