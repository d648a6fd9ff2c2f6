"""An in-memory log for alert rules: stores that send, time that passes, and the emitted alerts."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from master_dataset.registry.stores import WEEKDAYS, Store
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from views.alerts.alert import Alert
from views.alerts.rule_history import RuleHistory, rule_version, store_version
from views.alerts.rule_validation import parse_rule
from views.alerts.timings import AlertTimings

FOR_EVER = 2**60
MARKER = (("galatea-marker", b"1"),)
SHOP = Store(
    id="1", timezone="Europe/Bratislava", opening_hours=dict.fromkeys(WEEKDAYS, ("08:00-20:00",)), tenant="default"
)


def rule_history_of(*rules: dict[str, Any], stores: Sequence[Store] = (SHOP,), since_ms: int = 0) -> RuleHistory:
    """Rules as somebody writes them, effective from then on."""
    versions = [store_version(store, 1, 0) for store in stores]
    return RuleHistory([*versions, *(rule_version(parse_rule(rule), 1, since_ms) for rule in rules)], FOR_EVER)


def at_ms(text: str) -> int:
    """`2026-03-07 10:00`, as the clock in the shop shows it in winter."""
    return int(datetime.fromisoformat(f"{text}+01:00").timestamp() * 1000)


def value(topic: str, happened: int, **fields: Any) -> bytes:
    """An event as its sender writes it, in store 1 unless said otherwise."""
    stamp = datetime.fromtimestamp(happened / 1000).astimezone().isoformat(timespec="milliseconds")
    example = {k: v for k, v in registered_sources()[topic].example.items() if k not in {"joined_at", "group_in"}}
    return json.dumps({**example, "happened_at": stamp, **fields}).encode()


class WorldLog:
    """One topic and partition, and the fold that follows it."""

    def __init__(self, topic: str, rule_history: RuleHistory) -> None:
        self.topic, self.rule_history = topic, rule_history
        self.fold = Fold(registered_sources()[topic], 0, AlertTimings())
        self.entries: list[LogRecord] = []
        self.emitted: list[Alert] = []
        self._number = 0

    def receive(self, received: int, bytes_: bytes | None, headers: Any = ()) -> Sequence[Alert]:
        entry = LogRecord(len(self.entries), received, bytes_, headers)
        self.entries.append(entry)
        raised = self.fold.step(entry, self.rule_history)
        self.emitted += raised
        return raised

    def pass_until(self, received: int, every_ms: int = 15_000) -> Sequence[Alert]:
        """Markers, as while nothing happens. What they lead to."""
        before = len(self.emitted)
        at = self.fold.state.log_ms or received - every_ms
        while at < received:
            at = min(at + every_ms, received)
            self.receive(at, b"", MARKER)
        return self.emitted[before:]

    def send(self, happened: int, late_ms: int = 1000, **fields: Any) -> Sequence[Alert]:
        """An event a second after it happened, and all the markers before it."""
        received = happened + late_ms
        before = len(self.emitted)
        self.pass_until(received)
        self._number += 1
        if self.topic == "pos_transactions":
            fields.setdefault("transaction_id", self._number)
        self.receive(received, value(self.topic, happened, **fields))
        return self.emitted[before:]

    def sold(self, happened: int, euros: float, amount: int = 1, **fields: Any) -> Sequence[Alert]:
        """A receipt of one line; a negative amount is a return."""
        line = {"title": "thing", "price": abs(euros), "amount": amount}
        return self.send(happened, transactions=[line], **fields)
