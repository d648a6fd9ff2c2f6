"""Alerts that were told, as they are kept: found by sight and day, and as of when that is all of them."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple, Protocol, Self

import msgspec

from serving_layer.query.timestamps import stamp
from serving_layer.responses.alerts import AlertDetail, AlertState, ListedAlert
from views.alerts.alert import Alert
from views.alerts.open_alerts import is_provisional, standings
from views.core.cut import BEGINNING

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
    def state(self) -> AlertState:
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

    def response(self, cut: datetime) -> ListedAlert:
        """As the API lists it; numbers as they were told. `cut`: see `audited_cut`."""
        alert = self.alert
        resolved, retracted = (_decode(text) if text else None for text in (self.resolved, self.retracted))
        return ListedAlert(
            alert_id=alert.alert_id,
            state=self.state,
            rule=alert.rule,
            version=alert.version,
            tenant=alert.tenant,
            store=alert.store,
            window=alert.window,
            dimensions=alert.dimensions,
            value=alert.value,
            threshold=alert.threshold,
            baseline=alert.baseline,
            sentence=alert.sentence,
            provisional=self.is_provisional(cut),
            late=alert.late,
            raised_at=alert.raised_at,
            place=alert.place,
            publication=alert.publication,
            cause=alert.cause,
            shown=alert.shown,
            corrected=alert.corrected,
            resolved_at=resolved.raised_at if resolved else None,
            resolved_because=resolved.reason if resolved else None,
            retracted_at=retracted.raised_at if retracted else None,
            retracted_because=retracted.reason if retracted else None,
        )

    def detail(self, cut: datetime, kept: "Kept", records: Sequence[Alert]) -> AlertDetail:
        """As the API shows it alone. `kept`: read before the records. `cut`: see `audited_cut`."""
        listed = msgspec.structs.asdict(self.response(cut))
        return AlertDetail(stamp(kept.as_of), stamp(kept.complete_from), **listed, records=records)


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
