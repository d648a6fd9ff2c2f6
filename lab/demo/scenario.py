"""The demo from its first line to its last: a year of history, a rebuild, a live day, a second opinion on all of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.console import say
from deploy.local.nodes import LOOPBACK
from deploy.recompute.recompute import recompute
from lab.demo import history
from lab.demo.journey import Journey
from lab.demo.live import Live
from lab.demo.merged import EveryCell
from lab.demo.oracle import Oracle
from lab.demo.playing import Play
from lab.demo.reading import LAYERS, Reading
from lab.demo.scheduled import Scheduled
from lab.demo.screen import LiveTable, Stage
from lab.demo.sensor_play import SensorPlay
from lab.demo.sensors import Sensors
from lab.demo.trading_day import trading_day
from lab.demo.verdict import Judge, Verdict
from lab.demo.watch import Watch
from lab.simulation.sending import send
from master_dataset.delta.tables import MasterTables
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.control.recompute_request import RecomputeRequest
from views.core.cut import seconds

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

PLAY_SECONDS = 20.0
HISTORY = timedelta(days=400)
BY = "galatea demo"


@dataclass
class Scenario:
    """One run on a stack that is up and has got its history. `sent`: records acknowledged so far.

    `has_airflow`: the rebuild on the way is a run of Airflow; else this process does it. `simulated`: records of
    sensors, which are not among those `sent`.
    """

    settings: "Settings"
    data: Journey
    sent: int
    has_airflow: bool
    simulated: int = 0

    def run(self) -> Verdict:
        """Play it all."""
        with Stage("two days of simulated sensors to Kafka"):
            self.simulated += send(self.sensors.before(), self.settings.kafka_bootstrap)
        with Stage("archive writes the master dataset") as stage:
            self.reading.until_read("archive", stage.step)
        say(f"  {self.rebuild()}")
        with Stage("speed reads the history") as stage:
            self.reading.until_read("speed", stage.step)
        self.play()
        for layer in LAYERS:
            self.reading.until_read(layer, lambda *_: None)
        return self.judge()

    @property
    def reading(self) -> Reading:
        """How far the layers are."""
        return Reading(self.session, self.settings.kafka_bootstrap, POS_TRANSACTIONS.topic)

    @cached_property
    def sensors(self) -> Sensors:
        """The simulated ones."""
        return Sensors.of(self.data, datetime.now(UTC))

    @property
    def session(self) -> "Session":
        """The one session of this process."""
        return session_of(self.settings.cassandra_address)

    def rebuild(self) -> str:
        """Rebuild at a cut that covers all sent so far."""
        with Stage("rebuild") as stage:
            return self._rebuild(stage)

    def _rebuild(self, stage: Stage | None = None) -> str:
        progress = stage or Silent()
        done = recompute(self.settings, RecomputeRequest(wait=True), why="the demo", by=BY, steps=progress)
        report = done.report or {}
        cut = datetime.fromisoformat(report["cut"])
        return f"publication {done.publication} at cut {cut:%H:%M:%S} UTC: {report['days']} days rebuilt"

    def play(self) -> None:
        """Play the live day and rebuild on the way."""
        ends_at = datetime.now(UTC) + timedelta(seconds=PLAY_SECONDS)
        day = trading_day(self.data, ends_at)
        mixed = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in day.counts.items())
        say(f"  a trading day live: {mixed}")
        with self._oracle("200MB") as oracle:
            watch = Watch(
                f"http://{LOOPBACK}:{self.settings.api_port}",
                MasterTables(self.settings.master_uri).path(POS_TRANSACTIONS.topic),
                oracle,
                day.focus,
                [*day.windows, day.late_window],
            )
            bootstrap, sensors = self.settings.kafka_bootstrap, self.sensors.during(day, ends_at)
            with Play(day, bootstrap, PLAY_SECONDS) as play, SensorPlay(sensors, bootstrap, PLAY_SECONDS) as beside:
                with LiveTable(watch) as table:
                    rebuild = Scheduled(self.settings).rebuild if self.has_airflow else self._rebuild
                    said = Live(day, play, watch, table, self.reading).run(rebuild)
                self.sent += play.result().acknowledged
                self.simulated += beside.result()
        say(f"  {said}")
        say(f"  {self.simulated:,} simulated sensor records sent, for {len(self.sensors.stores)} stores")

    def judge(self) -> Verdict:
        """Compare everything."""
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        span = (seconds(today - HISTORY), seconds(today + timedelta(days=2)))
        stores = [str(store) for store in self.data.stores]
        shown = EveryCell(self.session, self.settings.speed_ttl, stores, span)
        with self._oracle("600MB") as oracle, Stage("every merged cell against a full recompute") as stage:
            return Judge(self.settings, oracle, shown).judge(self.sent, stage.step)

    @contextmanager
    def _oracle(self, memory: str) -> Iterator[Oracle]:
        currencies = {str(store): history.DOLLARS.code for store in self.data.stores}
        with Oracle(currencies, self.settings.oldest, memory=memory) as oracle:
            yield oracle


class Silent:
    """A rebuild that draws nothing: the live table is on the screen."""

    def step(self, done: int, total: int, what: str) -> None:
        """Ignore it."""
