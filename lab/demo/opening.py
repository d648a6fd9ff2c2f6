"""The first thing the demo does: the history is sent as soon as it can be taken, while the layers still start."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.console import say
from deploy.local import board
from deploy.registering import register
from lab.demo import history, journey
from lab.demo.journey import Journey
from lab.demo.screen import Stage
from lab.demo.sensors import with_sensors
from master_dataset.kafka.ingest import ingest
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings


class Opening:
    """Reads the data at once, and sends them when all that they need is running."""

    def __init__(self, settings: "Settings") -> None:
        """Begin to read."""
        self._settings = settings
        self._missing = {"kafka", "cassandra"}
        self._pool = ThreadPoolExecutor(1, "opening")
        self._data = self._pool.submit(journey.load)
        self._sent: Future[int] | None = None

    def told(self, component: str, state: str, _seconds: float) -> None:
        """Hear of the stack's components as they start."""
        if state == board.RUNNING:
            self._missing.discard(component)
        if not self._missing and self._sent is None:
            self._sent = self._pool.submit(self._send)

    def result(self) -> tuple[Journey, int]:
        """The data, and how many records the broker acknowledged. To be asked when the stack is up."""
        return self._data.result(), self._sent.result() if self._sent else 0

    def _send(self) -> int:
        data = self._data.result()
        stores = with_sensors(history.stores(data), data)
        register(self._settings, session_of(self._settings.cassandra_address), stores)
        total = len(data.receipts)
        say(f"  {len(stores)} stores registered, {total:,} receipts to send")
        with Stage("history to Kafka") as stage:
            lines = history.messages(data, datetime.now(UTC))
            result = ingest(
                POS_TRANSACTIONS,
                lines,
                self._settings.kafka_bootstrap,
                lambda so_far: stage.step(so_far.acknowledged, total, "receipts"),
            )
        return result.acknowledged
