"""The demo from start to end: four weeks of history, a rebuild, a live day, and an independent check of all of it.

The history is sent as soon as Kafka and Cassandra run, while the layers still start. The rebuild in between is a run of
Airflow where it is installed. A demo that stays then loads the rest of the year, and receipts keep arriving.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

import httpx
from stamina import retry

from deploy.airflow.client import REBUILD, AirflowClient, Task
from deploy.airflow.component import NAME as AIRFLOW
from deploy.batch import recompute
from deploy.cassandra import session_of
from deploy.console import print_message
from deploy.local.records import State, read_states
from lab.demo.chart import sales_chart
from lab.demo.journey import (
    DOLLARS,
    FIRST_DAYS,
    ZONES,
    Journey,
    before_this_quarter,
    load_journey,
    product_master,
    receipt_messages,
)
from lab.demo.live import WINDOW_SECONDS, LiveTable, WatchedDay, WindowReader
from lab.demo.oracle import Oracle
from lab.demo.progress import LAYERS, LayerProgress, Stage
from lab.demo.sensors import SimulatedSensors, sensor_playback, with_sensors
from lab.demo.shops import registry_entries
from lab.demo.top_products import Ask, TopProducts, ask_top_products, compare_top_products, days_passed
from lab.demo.trading_day import ReceiptPlayback, featured_store, trading_day
from lab.demo.trickle import trickle
from lab.demo.verdict import CellComparison, DemoResult, MergedCellReader
from lab.simulation.output import PacedSending, send
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import AirflowUnavailableError, DependencyUnavailableError, OperatorError
from master_dataset.kafka.ingest import ingest
from master_dataset.registry.products import ProductSpool, ProductTables
from master_dataset.registry.registration import register
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.control.publication import PointerRow
from views.control.recompute import RecomputeRequest, Report
from views.core.cut import seconds

if TYPE_CHECKING:
    import pandas as pd
    from cassandra.cluster import Session

    from deploy.settings import Settings


TENANT = "default"
"""Of all stores of the demo."""


class HistoryLoader:
    """Reads the data at once, and sends the last four weeks of them as soon as Kafka and Cassandra run."""

    def __init__(self, settings: "Settings") -> None:
        """Start to read."""
        self._settings = settings
        self._missing = {"kafka", "cassandra"}
        self._pool = ThreadPoolExecutor(1, "opening")
        self._data = self._pool.submit(load_journey)
        self._sent: Future[int] | None = None
        self._loaded_at = before_this_quarter(datetime.now(UTC))

    def on_state(self, component: str, state: str, _seconds: float) -> None:
        """Called with every change of a component's state."""
        if state == State.RUNNING:
            self._missing.discard(component)
        if not self._missing and self._sent is None:
            self._sent = self._pool.submit(self._send)

    def result(self) -> tuple[Journey, int, datetime]:
        """Return the data, the number of acknowledged records, and when they were moved to end today.

        Call it when the stack is up.
        """
        sent = self._sent.result() if self._sent else 0
        return self._data.result(), sent, self._loaded_at

    def _send(self) -> int:
        data = self._data.result()
        self._loaded_at = before_this_quarter(datetime.now(UTC))
        stores = with_sensors(registry_entries(data, self._loaded_at), data)
        session = session_of(self._settings.cassandra.address)
        register(self._settings.paths.master_uri, session, stores, skew=self._settings.layers.skew)
        with ProductSpool() as spool:
            for line, product in enumerate(product_master(), 1):
                spool.add(line, product)
            products = ProductTables(session).load(TENANT, spool, replace=True)
        print_message(f"  {len(stores)} stores registered, {products.count:,} products")
        return send_receipts(data, data.since(FIRST_DAYS), self._loaded_at, self._settings)


def send_receipts(data: Journey, receipts: "pd.DataFrame", loaded_at: datetime, settings: "Settings") -> int:
    """Send receipts of the data, moved so that the data end on the day of `loaded_at`. Return how many were sent."""
    total, messages = receipt_messages(data, receipts, loaded_at)
    with Stage("receipts to Kafka") as stage:
        result = ingest(
            POS_TRANSACTIONS,
            messages,
            settings.kafka.connection,
            lambda so_far: stage.step(so_far.acknowledged, total, "receipts"),
        )
    return result.acknowledged


LOOK_SECONDS, ASK_AIRFLOW_SECONDS, START_SECONDS = 1.0, 15.0, 300.0
Answer = TypeVar("Answer")
FAILED = {"failed", "upstream_failed"}


@dataclass(frozen=True)
class AirflowRebuild:
    """Rebuilds as a run of Airflow, started now instead of by its schedule."""

    settings: "Settings"

    def rebuild(self) -> str:
        """Start the run, wait until it has published, and return what. Raises OperatorError if it fails.

        Raises AirflowUnavailableError if Airflow, which starts while the history is read, is not up after minutes.
        """
        run, deadline = f"demo-{uuid.uuid4()}", time.monotonic() + START_SECONDS
        while read_states(self.settings.home).get(AIRFLOW) == State.STARTING and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        published = PointerRow(session_of(self.settings.cassandra.address))
        before, publish = published.read().publication, Task(REBUILD, run, "publish")
        self._call(lambda client: client.begin_rebuild(run, "the demo"))
        asked = time.monotonic()
        while (pointer := published.read()).publication == before:
            if time.monotonic() - asked >= ASK_AIRFLOW_SECONDS:  # a request costs Airflow more than Cassandra
                asked = time.monotonic()
                if self._call(lambda client: client.state_of(publish)) in FAILED:
                    do = f"open {self.settings.airflow.url}/dags/{REBUILD}/runs/{run}"
                    raise OperatorError(f"Airflow's run `{run}` of `{REBUILD}` has failed", do=do)
            time.sleep(LOOK_SECONDS)
        return f"Airflow has published {pointer.publication} at cut {pointer.cut:%H:%M:%S} UTC"

    def _call(self, ask: Callable[[AirflowClient], Answer]) -> Answer:
        return retry(on=AirflowUnavailableError, attempts=None, timeout=START_SECONDS, wait_max=2.0)(ask)(
            AirflowClient.of(self.settings)
        )


PLAY_SECONDS = 20.0
CHART_HOURS = 20
"""What the speed layer has certainly counted: it leaves events older than 23 hours to batch."""
WATCH_SECONDS = 10.0
ASK_SECONDS = 120.0
"""Per question about all stores, while the layers still work on the receipts."""
HISTORY = timedelta(days=400)
BY = "galatea demo"


@dataclass
class Scenario:
    """One run on a stack that is up and has got its history.

    Attributes:
        settings: Of the demo.
        data: All of it.
        sent: How many records are acknowledged so far.
        loaded_at: The history ends then, and its last day is that day in each store's time zone.
        has_airflow: Whether the rebuild on the way is a run of Airflow; else this process does it.
        began: When the demo began, as `time.monotonic` says.
        simulated: How many records of sensors, which are not among those `sent`.
    """

    settings: "Settings"
    data: Journey
    sent: int
    loaded_at: datetime
    has_airflow: bool
    began: float
    simulated: int = 0

    def run(self) -> DemoResult:
        """Play it all, but for what a demo that stays does afterwards."""
        self._until_read()
        self.first_look()
        with Stage("simulated sensors to Kafka"):
            self.simulated += send(self.sensors.before(), self.settings.kafka.connection)
        print_message(f"  {self.rebuild()}")
        products = self.top_products()
        self.play()
        for layer in LAYERS:
            self.reading.until_read(layer, lambda *_: None)
        return replace(self.compare(), products=products)

    def first_look(self) -> None:
        """Draw the last day of the chain, and compare the busiest store with a recompute: nothing is published yet.

        OperatorError if a number differs.
        """
        store = self.featured
        ends = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        hours = [ends - timedelta(hours=number) for number in range(CHART_HOURS, 0, -1)]
        with self._client(ASK_SECONDS) as client, self._oracle("200MB") as oracle:
            print_message(sales_chart(self._asking(client), hours[0], ends))
            windows = [seconds(hour) + quarter for hour in hours for quarter in range(0, 3600, WINDOW_SECONDS)]
            master = MasterTables(self.settings.paths.master_uri).path(POS_TRANSACTIONS.topic)
            found = WindowReader(client, master, oracle, store, windows).read()
        if not found.is_equal:
            raise OperatorError(f"numbers of store {store} differ: {found.rows}", do="galatea verify")
        sold = sum(row.merged is not None for row in found.rows)
        compared = f"{len(found.rows)} quarters of an hour, {sold} with sales, compared with a recompute: 0 differing"
        print_message(f"  store {store}: {compared}")
        print_message(f"  {time.monotonic() - self.began:.0f} s after the start")

    @cached_property
    def featured(self) -> str:
        """The store to look at first."""
        return featured_store(self.data)

    def keep_arriving(self) -> PacedSending:
        """Return receipts and sensor records that arrive until the context is left."""
        return trickle(self.data, self.sensors.shops, self.settings.kafka.connection)

    def load_year(self) -> str:
        """Load what comes before the first four weeks, and rebuild. Return what is published then."""
        self.sent += send_receipts(self.data, self.data.before(FIRST_DAYS), self.loaded_at, self.settings)
        self.simulated += send(self.sensors.of_the_year(), self.settings.kafka.connection)
        self._until_read()
        return self.rebuild()

    def _until_read(self) -> None:
        for layer, what in zip(LAYERS, ("archive writes the master dataset", "speed reads the receipts"), strict=True):
            with Stage(what) as stage:
                self.reading.until_read(layer, stage.step)

    @property
    def reading(self) -> LayerProgress:
        """How far the layers are."""
        return LayerProgress(self.session, self.settings.kafka.connection, POS_TRANSACTIONS.topic)

    @cached_property
    def sensors(self) -> SimulatedSensors:
        """The simulated ones."""
        return SimulatedSensors.of(self.data, self.loaded_at, datetime.now(UTC))

    @property
    def session(self) -> "Session":
        """The one session of this process."""
        return session_of(self.settings.cassandra.address)

    def rebuild(self) -> str:
        """Rebuild at a cut that covers all sent so far."""
        with Stage("rebuild") as stage:
            return self._rebuild(stage)

    def _rebuild(self, stage: Stage | None = None) -> str:
        progress = stage or NoProgress()
        done = recompute(self.settings, RecomputeRequest(wait=True), why="the demo", by=BY, steps=progress)
        report = done.report or Report()
        cut = f"{report.cut:%H:%M:%S}" if isinstance(report.cut, datetime) else "-"
        return f"publication {done.publication} at cut {cut} UTC: {report.days} days rebuilt"

    def top_products(self) -> TopProducts:
        """Show the best products of each department, and compare them with the data. Only the history is sent."""
        with self._client(ASK_SECONDS) as client:
            ask = self._asking(client)
            with Stage("top products by department"):
                shown = ask_top_products(ask)
        passed = days_passed(self.loaded_at, datetime.now(UTC), ZONES)
        sent = [self.loaded_at.astimezone(ZoneInfo(zone)) for zone in ZONES]
        until = [at.hour * 3600 + at.minute * 60 + at.second for at in sent]
        found = compare_top_products(shown, passed=passed, until=until)
        for department, products in groupby(found.products, key=lambda each: each.department):
            best = ", ".join(f"{each.title or each.sku} {each.cents / 100:,.2f}" for each in products)
            print_message(f"  {department}: {best}")
        return found

    def _asking(self, client: httpx.Client) -> Ask:
        """Return what asks the REST API. DependencyUnavailableError if it does not answer."""

        def ask(path: str, query: Mapping[str, str]) -> Any:  # noqa: ANN401 - an answer's JSON
            try:
                return client.get(path, params=query).raise_for_status().json()
            except httpx.HTTPError as error:
                message = f"the REST API did not answer `{path}`: {error}"
                log = self.settings.home / "logs" / "api.log"
                raise DependencyUnavailableError(message, do=f"see {log}") from error

        return ask

    def _client(self, timeout: float) -> httpx.Client:
        own = self.settings
        return httpx.Client(base_url=own.api_url, trust_env=False, verify=own.api_trust, timeout=timeout)

    def play(self) -> None:
        """Play the live day and rebuild on the way."""
        ends_at = datetime.now(UTC) + timedelta(seconds=PLAY_SECONDS)
        day = trading_day(self.data, self.sensors.shops, self.loaded_at, ends_at)
        mixed = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in day.counts.items())
        print_message(f"  a trading day live: {mixed}")
        with self._oracle("200MB") as oracle:
            watch = WindowReader(
                self._client(WATCH_SECONDS),
                MasterTables(self.settings.paths.master_uri).path(POS_TRANSACTIONS.topic),
                oracle,
                day.focus,
                [*day.windows, day.late_window],
            )
            kafka, sensors = self.settings.kafka.connection, self.sensors.during(day, ends_at)
            with (
                ReceiptPlayback(day, kafka, PLAY_SECONDS) as play,
                sensor_playback(sensors, kafka, PLAY_SECONDS) as beside,
            ):
                with LiveTable(watch) as table:
                    rebuild = AirflowRebuild(self.settings).rebuild if self.has_airflow else self._rebuild
                    said = WatchedDay(day, play, watch, table, self.reading).run(rebuild)
                self.sent += play.result().acknowledged
                self.simulated += beside.result()
        print_message(f"  {said}")
        print_message(f"  {self.simulated:,} simulated sensor records sent, for {len(self.sensors.stores)} stores")

    def compare(self) -> DemoResult:
        """Compare everything."""
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        span = (seconds(today - HISTORY), seconds(today + timedelta(days=2)))
        stores = [str(store) for store in self.data.stores]
        shown = MergedCellReader(self.session, self.settings.speed.ttl, stores, span)
        with self._oracle("600MB") as oracle, Stage("every merged cell against a full recompute") as stage:
            return CellComparison(self.settings, oracle, shown).run(self.sent, stage.step)

    @contextmanager
    def _oracle(self, memory: str) -> Iterator[Oracle]:
        currencies = {str(store): DOLLARS.code for store in self.data.stores}
        with Oracle(currencies, self.settings.speed.oldest, memory=memory) as oracle:
            yield oracle


class NoProgress:
    """A rebuild that draws nothing: the live table is on the screen."""

    def step(self, done: int, total: int, what: str) -> None:
        """Ignore it."""
