"""Alerts that were told, as they are kept: found by sight and day, and as of when that is all of them."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple, Protocol, Self

import msgspec
import orjson

from serving_layer.query.timestamps import stamp
from views.alerts.alert import Alert
from views.alerts.open_alerts import is_provisional, standings
from views.core.cut import BEGINNING

_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.Decoder(Alert).decode
_MS = timedelta(milliseconds=1)


class Spot(NamedTuple):
    """Where an alert lies among those of a sight: newest first."""

    raised_at: datetime
    alert_id: str


class Told(NamedTuple):
    """An alert and what followed it. Each text is a record of the topic."""

    raised_at: datetime
    alert_id: str
    body: str
    resolved: str | None = None
    retracted: str | None = None

    @property
    def spot(self) -> Spot:
        """Where it lies."""
        return Spot(self.raised_at, self.alert_id)

    @property
    def alert(self) -> Alert:
        """As it was raised."""
        return _decode(self.body)

    @property
    def state(self) -> str:
        """`open` as long as nothing followed."""
        return "retracted" if self.retracted else "resolved" if self.resolved else "open"

    @property
    def following(self) -> Alert | None:
        """What followed last, if anything did."""
        text = self.retracted or self.resolved
        return _decode(text) if text else None

    def is_provisional(self, cut: datetime) -> bool:
        """Whether no publication has covered it yet. `cut`: see `audited_cut`."""
        records = [_decode(text) for text in (self.body, self.retracted, self.resolved) if text]
        [standing] = standings(records).values()
        return is_provisional(standing, (cut - BEGINNING) // _MS)

    def shown(self, cut: datetime) -> dict[str, object]:
        """As the API shows it; numbers as they were told. `cut`: see `audited_cut`."""
        said = {name: orjson.Fragment(_encode(value)) for name, value in msgspec.structs.asdict(self.alert).items()}
        for name in ("kind", "about", "reason"):
            del said[name]
        resolved, retracted = (_decode(text) if text else None for text in (self.resolved, self.retracted))
        return {
            "alert_id": said.pop("alert_id"), "state": self.state, **said, "provisional": self.is_provisional(cut),
            "resolved_at": resolved and resolved.raised_at, "resolved_because": resolved and resolved.reason,
            "retracted_at": retracted and retracted.raised_at, "retracted_because": retracted and retracted.reason,
        }  # fmt: skip


class Kept(NamedTuple):
    """`as_of`: every record received before it is judged, and its alerts are listed; None: nobody has ever kept any.

    `complete_from`: what was told before is gone and was never listed; None: nothing is missing.
    """

    as_of: datetime | None
    complete_from: datetime | None

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """Of all partitions together."""
        times = [part.as_of for part in parts]
        as_of = None if not times or None in times else min(at for at in times if at)
        return cls(as_of, max((part.complete_from for part in parts if part.complete_from), default=None))

    def shown(self) -> dict[str, object]:
        """As every answer about alerts says it."""
        return {"alerts_as_of": stamp(self.as_of), "complete_from": stamp(self.complete_from)}


class AlertReader(Protocol):
    """What is kept. Every method raises StoreUnavailable. How far comes first, then rows: these may only be newer."""

    async def kept(self) -> Kept:
        """How far it goes."""

    async def days(self, sight: str, last: date, limit: int) -> Sequence[date]:
        """UTC days of that sight with alerts, from that day backwards."""

    async def told(self, sight: str, day: date, before: Spot, limit: int) -> Sequence[Told]:
        """Of one day, behind that spot, newest first."""

    async def open_ones(self, sight: str, before: Spot, limit: int) -> Sequence[Told]:
        """Those of which nothing followed yet, behind that spot, newest first."""

    async def records(self, alert_id: str) -> Sequence[str]:
        """Every record of an alert, in any order; none if nobody knows it."""
