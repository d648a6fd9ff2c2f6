"""Folds a log record by record: each changes the state and may lead to alerts. Pure: no I/O, no clock.

The result depends on (partition, offset, receipt time, bytes) alone, so everyone who folds the same records gets the
same alerts and the same state, in whatever batches. Records pass the checks of the speed layer (R5): parse, future,
duplicate, age.
"""

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from confluent_kafka import murmur2

from master_dataset.parsing.parse import Headers, is_marker, parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import DEFAULT_TERMS, Terms
from master_dataset.source import Source
from speed_layer.alerts import levels, silences, thresholds
from speed_layer.alerts.identities import NoIdentities, SavedIdentities
from speed_layer.alerts.scan import Emitter, Scan, to_ms
from speed_layer.alerts.state import HOUR_MS, State
from views.alerts.alert import Alert, LogPosition
from views.alerts.rule import LEVEL_SOURCES
from views.alerts.rule_history import RuleHistory, RuleSet
from views.alerts.rule_metrics import alertable_views
from views.alerts.shop_clock import ShopClock
from views.alerts.timings import AlertTimings
from views.core.local_time import round_down


class LogRecord(NamedTuple):
    """A record of a topic. `received_ms`: the broker's timestamp."""

    offset: int
    received_ms: int
    value: bytes | None
    headers: Headers = ()


class Fold:
    """Follows one (topic, partition).

    Events whose store belongs to another partition are skipped and counted as `misrouted`: if two partitions counted
    one store, each would miss a part of its events, and an alert could be emitted twice.
    """

    def __init__(  # noqa: PLR0913 - what is followed, and how
        self,
        source: Source[Any],
        partition: int,
        timings: AlertTimings,
        state: State | None = None,
        partitions: int = 1,
        *,
        home: int | None = None,
        saved: SavedIdentities | None = None,
    ) -> None:
        """Follow it.

        Args:
            source: The source of the topic.
            partition: The partition whose records these are.
            timings: What is remembered, and for how long.
            state: None to start from nothing.
            partitions: How many partitions the stores are spread over.
            home: The partition whose stores are followed; None: this one. Another one has them by now, and inherits
                what is known about them.
            saved: The identities that are no longer in the state; None: there are none.
        """
        self.state = state or State()
        self._saved = saved or NoIdentities()
        self.misrouted = 0
        self._source, self._partition, self._timings, self._partitions = source, partition, timings, partitions
        self._home = partition if home is None else home
        self._has_sensors = "sensor_id" in source.columns
        self._has_intervals = "interval_ms" in source.columns
        self._counts = bool(alertable_views(source.topic)) or source.topic in LEVEL_SOURCES.values()

    @property
    def place(self) -> tuple[int, int]:
        """The partition whose records are folded, and the one whose stores are followed."""
        return self._partition, self._home

    def step(self, record: LogRecord, history: RuleHistory) -> Sequence[Alert]:
        """The alerts that this record leads to, in a fixed order."""
        state, before = self.state, self.state.log_ms
        state.log_ms = max(before, record.received_ms)
        if state.log_ms - before > to_ms(self._timings.blind):
            state.awake_ms = state.log_ms
        rule_set = history.at(state.log_ms)
        emitter = Emitter(state, LogPosition(self._source.topic, self._partition, record.offset))
        scan = Scan(self._source.topic, state, rule_set, self._timings, emitter)
        is_new_hour = state.log_ms // HOUR_MS > before // HOUR_MS
        if is_new_hour:
            hour_ms = state.log_ms // HOUR_MS * HOUR_MS
            state.forget(hour_ms, self._timings)
            self._saved.forget(self._timings.first_remembered_hour(hour_ms))
        pulse = to_ms(self._timings.pulse)
        if state.log_ms // pulse > before // pulse:
            # Within an hour, open alerts can only be of other rules if the rule set has changed.
            if is_new_hour or history.at(before // pulse * pulse) is not rule_set:
                _resolve_changed(scan)
            _tick(scan)
        event = self._countable_event(record, rule_set)
        if event is not None:
            self._count(scan, event, rule_set.shops[event.store])
        return emitter.emitted

    def _countable_event(self, record: LogRecord, rule_set: RuleSet) -> Event[Any] | None:
        """The event, if it counts: of a registered store of this partition, new, and young enough."""
        if is_marker(record.headers) or not rule_set.has_shops:
            return None
        received_us = record.received_ms * 1000
        event = parse(
            self._source, record.value, partial(_terms, rule_set), received_us=received_us, headers=record.headers
        )
        if not isinstance(event, Event) or event.store not in rule_set.shops:
            return None
        if murmur2(event.store.encode(), self._partitions) != self._home:
            self.misrouted += 1
            return None
        identity = blake2b(event.identity.encode(), digest_size=16).digest()
        if self._counts:  # duplicates do not matter for signs of life
            if self.state.has_seen(identity) or self._saved.has(identity):
                return None
            self.state.identities.setdefault(self.state.log_ms // HOUR_MS, set()).add(identity)
        is_old = record.received_ms - event.happened_ms > to_ms(self._timings.oldest)
        return None if is_old else event

    def _count(self, scan: Scan, event: Event[Any], shop: ShopClock) -> None:
        quarter = round_down(event.happened_ms // 1000)
        for alertable in alertable_views(self._source.topic):
            own = self.state.cells.setdefault(alertable.view.name, {}).setdefault(event.store, {})
            added = alertable.contribution(event.payload)
            own[quarter] = [a + b for a, b in zip(own.get(quarter, [0] * len(added)), added, strict=True)]
        payload = event.payload
        lasted = payload.interval_ms if self._has_intervals else 0
        sensor = payload.sensor_id if self._has_sensors else silences.ANY
        silences.on_event(scan, shop, sensor, event.happened_ms + lasted)
        levels.on_event(scan, shop, payload, event.happened_ms)
        thresholds.on_event(scan, shop, quarter)


def _tick(scan: Scan) -> None:
    thresholds.on_tick(scan)
    silences.on_tick(scan)
    levels.on_tick(scan)


def _resolve_changed(scan: Scan) -> None:
    """Resolve alerts whose rule was changed or deleted, or no longer watches the store, or whose store was removed."""
    for key, open_ in sorted(scan.state.opened.items()):
        shop = scan.rule_set.shops.get(open_.store)
        rules = scan.rule_set.rules_of(scan.topic, shop) if shop else ()
        if open_.key not in {each.key for each in rules}:
            scan.emitter.resolve(key, "rule_changed", "The rule was changed or deleted.")


def _terms(rule_set: RuleSet, store: str) -> Terms:
    shop = rule_set.shops.get(store)
    return shop.store.terms if shop else DEFAULT_TERMS
