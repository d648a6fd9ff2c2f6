"""Sensor coverage: for how long the sensors of a store were alive, as a part of the time that they should have been.

Counting intervals prove by themselves that a counter was alive; every other sensor sends heartbeats. Where a store
registers no sensor of a source, nothing is expected, and nothing is flagged. A sensor is covered by its own signals
alone: not by those of one that is not registered, and not more than once by a counter that counts at several lines.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS, WATCHED
from serving_layer.compare.comparable_stores import ENOUGH
from serving_layer.timeline import Period, zone_named
from views.core import View
from views.core.local_time import STEP, Span, first_instant
from views.core.merge import Cell
from views.core.windows import Windows

SENSOR_SOURCES = (PEOPLE_COUNTS.topic, *WATCHED)
"""The sources that sensors feed, in contrast to tills, rosters and forecasts."""
PROOFS = {"traffic": frozenset({PEOPLE_COUNTS.topic}), "coverage": frozenset(WATCHED)}
"""The views whose state `covered_ms` proves that sensors were alive, and of which sources."""
STEP_MS = STEP * 1000
HALF = Fraction(50, 100)
"""Coverage below `ENOUGH` is flagged, below `HALF` the value is masked."""
ALWAYS_START, ALWAYS_END = -(2**40), 2**40
SignalKey = tuple[str, str]
"""By what the signals of a sensor are counted: its source, and its id or its door line, empty for all other lines."""


def signal_key(sensor: Sensor) -> SignalKey:
    """By what the signals of a sensor are counted."""
    return sensor.source, sensor.place if sensor.source == PEOPLE_COUNTS.topic else sensor.id


def key_of_line(line: str | None, registered: Collection[SignalKey]) -> SignalKey:
    """By what the counts at a door line are counted: those of lines that no sensor is registered for together."""
    key = PEOPLE_COUNTS.topic, line or ""
    return key if key in registered else (PEOPLE_COUNTS.topic, "")


def expected_ms_at(window: int, spans: Mapping[Span, int]) -> int:
    """For how long sensors should be alive in a window. `spans`: how many are registered then."""
    return STEP_MS * sum(sensors for span, sensors in spans.items() if span.start <= window < span.end)


def sensor_sources(views: Iterable[View]) -> frozenset[str]:
    """The sources of these views that sensors feed."""
    topics = {view.source.topic for view in views}
    return frozenset(topics & set(SENSOR_SOURCES)) | frozenset(WATCHED if SENSOR_HEARTBEATS.topic in topics else ())


class SensorCoverage:
    """For how long the sensors of one store were alive, of the sources that a query needs."""

    def __init__(
        self, store: Store, sources: frozenset[str], read: Mapping[str, Sequence[Cell]], proofs: Iterable[View]
    ) -> None:
        """Count the time that was covered.

        Args:
            store: whose sensors.
            sources: those that the query needs.
            read: the cells of every view that was read, by its name.
            proofs: the views that prove that sensors were alive.
        """
        self._sources = sources
        self._expected: dict[SignalKey, Counter[Span]] = {}
        for sensor in store.sensors:
            if sensor.source in sources:
                self._expected.setdefault(signal_key(sensor), Counter())[registered_span(store, sensor)] += 1
        self._alive: dict[SignalKey, dict[int, int]] = {}
        for view in proofs:
            for key, window, milliseconds in _covered_cells(view, read.get(view.name, ()), self._expected):
                if key[0] in sources:
                    alive = self._alive.setdefault(key, {})
                    alive[window] = alive.get(window, 0) + milliseconds

    @property
    def is_expected(self) -> bool:
        """Whether the store registers a sensor of these sources."""
        return bool(self._expected)

    def expected_ms(self, period: Period) -> dict[int, int]:
        """For how long all registered sensors should have been alive so far, in milliseconds per point."""
        found: dict[int, int] = {}
        for spans in self._expected.values():
            for span, sensors in spans.items():
                for point, windows in period.counts(Span(span.start, min(span.end, period.begun))).items():
                    found[point] = found.get(point, 0) + sensors * windows * STEP_MS
        return found

    def shares(self, period: Period) -> dict[int, Fraction]:
        """The part of the sensor time that was covered, per point; over windows that are over, so others are absent."""
        return {point: Fraction(*covered) for point, covered in self.covered_ms(period).items()}

    def covered_ms(self, period: Period) -> dict[int, tuple[int, int]]:
        """For how long sensors were alive, and should have been, per point where they should; of windows that are over.

        In milliseconds, over all sensors.
        """
        period = period.ended()
        found: dict[int, int] = {}
        for key, spans in self._expected.items():
            for window, milliseconds in self._alive.get(key, {}).items():
                if period.counts_in(window):
                    point = period.timeline.point_of(window)
                    found[point] = found.get(point, 0) + min(milliseconds, expected_ms_at(window, spans))
        expected = self.expected_ms(period)
        return {point: (found.get(point, 0), all_of) for point, all_of in expected.items() if all_of}

    def share(self, period: Period) -> Fraction | None:
        """The part of the sensor time of all points that was covered; None if nothing is expected."""
        covered = self.covered_ms(period).values()
        expected = sum(all_of for _, all_of in covered)
        return Fraction(sum(alive for alive, _ in covered), expected) if expected else None

    def covered(self, period: Period) -> Windows:
        """The windows in which the sensors of every source were alive for long enough.

        Only sources with registered sensors count. If there are none, any sensor of every source must have been alive.
        """
        sources = {source for source, _ in self._expected} or set(self._sources)
        return Windows.of(
            window for window in period.windows() if all(self._is_covered(window, each) for each in sources)
        )

    def _is_covered(self, window: int, source: str) -> bool:
        if not self._expected:
            return any(alive.get(window, 0) for (of, _), alive in self._alive.items() if of == source)
        due = {key: expected_ms_at(window, spans) for key, spans in self._expected.items() if key[0] == source}
        alive = sum(min(self._alive.get(key, {}).get(window, 0), most) for key, most in due.items())
        return alive >= ENOUGH * sum(due.values())


def registered_span(store: Store, sensor: Sensor) -> Span:
    """The time in which a sensor is expected to be alive; far beyond all events where the registry has no bound."""
    zone = zone_named(store.timezone)
    start = ALWAYS_START if sensor.since is None else first_instant(zone, sensor.since)
    return Span(start, ALWAYS_END if sensor.until is None else first_instant(zone, sensor.until))


def _covered_cells(
    view: View, cells: Iterable[Cell], registered: Collection[SignalKey]
) -> Iterator[tuple[SignalKey, int, int]]:
    """What it is a signal of, window and milliseconds of every cell."""
    state, is_of_counters = list(view.columns).index("covered_ms"), view.source is PEOPLE_COUNTS
    for cell in cells:
        first, *more = cell.key.dimensions  # a door line; or a source, and the id of a sensor
        key = key_of_line(first, registered) if is_of_counters else (first or "", more[0] or "")
        yield key, cell.key.window, int(cell.merged[state] or 0)
