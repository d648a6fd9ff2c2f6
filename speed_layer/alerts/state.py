"""The state of following one (topic, partition): plain values, so that it can be saved and compared.

It follows from the last `AlertTimings.horizon` of the log alone, in however many runs it was folded. The exception is a
store with more than `MAX_NAMES` sensors or queues: which of them are followed depends on which came first.
"""

import hashlib
from datetime import timedelta
from typing import Any

import msgspec

from views.alerts.alert import Alert
from views.alerts.timings import AlertTimings

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
QUARTER_MS = 15 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
MAX_NAMES = 1_000
"""Sensors, and queues, that are followed in a store: names come from events, and each takes memory for days."""


class Level(msgspec.Struct):
    """How many there are as of `at_ms`, on the business day that began at `day_s`."""

    at_ms: int
    value: int
    day_s: int


class OpenAlert(msgspec.Struct, frozen=True):
    """An alert that was raised and is not resolved. `since_ms`, `until_s`: of its window. `key`: of its rule."""

    alert: Alert
    key: str
    store: str
    name: str
    since_ms: int
    until_s: int = 0


class State(msgspec.Struct):
    """The fields are saved under their names.

    Attributes:
        log_ms: The greatest receipt time.
        awake_ms: Since when the log has had no gap.
        closed_s: Windows that end by then have been evaluated.
        identities: Hour of receipt to digests of identities, but for those that `Snapshots` has moved out.
        cells: View, store and quarter of an hour to sums.
        signs: Store and sensor (empty: any) to the last sign of life.
        levels: Store and queue to the level.
        episodes: Rule, store and queue to the time since when the level has been above the bound.
        opened: Open alerts by `open_alert_key`.
        known: Ids of raised alerts, and until when they are remembered.
    """

    log_ms: int = 0
    awake_ms: int = 0
    closed_s: int = 0
    identities: dict[int, set[bytes]] = msgspec.field(default_factory=dict)
    cells: dict[str, dict[str, dict[int, list[int]]]] = msgspec.field(default_factory=dict)
    signs: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    levels: dict[str, dict[str, Level]] = msgspec.field(default_factory=dict)
    episodes: dict[str, dict[str, dict[str, int]]] = msgspec.field(default_factory=dict)
    opened: dict[str, OpenAlert] = msgspec.field(default_factory=dict)
    known: dict[str, int] = msgspec.field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Equal for equal states."""
        return _encode({name: _ordered(getattr(self, name)) for name in self.__struct_fields__})

    @classmethod
    def from_bytes(cls, encoded: bytes) -> "State":
        """Parse what `to_bytes` returned. msgspec.MsgspecError for anything else."""
        return _decode(encoded)

    def digest(self) -> str:
        """A hash of the state."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def has_seen(self, identity: bytes) -> bool:
        """Whether the identity is among these."""
        return any(identity in seen for seen in self.identities.values())

    @property
    def identity_count(self) -> int:
        """How many identities are here."""
        return sum(map(len, self.identities.values()))

    def forget(self, hour_ms: int, timings: AlertTimings) -> None:
        """At each full hour of log time, drop whatever no rule can need any more."""
        kept_ms = hour_ms - int(timings.kept / timedelta(milliseconds=1))
        first_hour = timings.first_remembered_hour(hour_ms)
        self.identities = {hour: seen for hour, seen in self.identities.items() if hour >= first_hour}
        self.cells = _without_empty(
            {
                view: _without_empty(
                    {
                        store: {quarter: sums for quarter, sums in own.items() if quarter * 1000 >= kept_ms}
                        for store, own in stores.items()
                    }
                )
                for view, stores in self.cells.items()
            }
        )
        self.levels = _without_empty(
            {
                store: {name: level for name, level in own.items() if level.at_ms >= kept_ms}
                for store, own in self.levels.items()
            }
        )
        self.signs = _without_empty(
            {store: {sensor: at for sensor, at in own.items() if at >= kept_ms} for store, own in self.signs.items()}
        )
        self.known = {alert: until for alert, until in self.known.items() if until > hour_ms}
        self.awake_ms = self.awake_ms if self.awake_ms >= kept_ms else 0
        self.closed_s = self.closed_s if self.closed_s * 1000 >= kept_ms else 0


def _without_empty(found: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in found.items() if each}


def _ordered(each: Any) -> Any:  # noqa: ANN401 - whatever a state is made of
    if isinstance(each, dict):
        return {name: _ordered(each[name]) for name in sorted(each)}
    return sorted(each) if isinstance(each, set) else each


_encode = msgspec.msgpack.Encoder(decimal_format="string").encode
_decode = msgspec.msgpack.Decoder(State).decode
