"""Lists alerts a page at a time, in bounded memory: what is looked at for one page is bounded, whatever is asked."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, get_args

import orjson

from master_dataset.errors import UnknownName
from serving_layer.alerts.history import AlertReader, Kept, Spot, Told
from serving_layer.responses.encoding import encoded
from views.alerts.alert import Alert
from views.core.cut import BEGINNING

State = Literal["open", "resolved", "retracted"]
STATES: tuple[State, ...] = get_args(State)
MOST_LOOKED_AT = 5_000
"""Alerts of one page that are looked at; where few of them fit, a page is short and says where to go on."""
_CHUNK = 500
_DAYS = 366
END = datetime(2200, 1, 1, tzinfo=UTC)
_GREATEST = "g"
"""Behind every id."""


@dataclass(frozen=True)
class AlertsAsk:
    """`sight`: whose. `stores`: none means all. Bounds are of `raised_at`: from inclusive, until exclusive."""

    sight: str
    stores: frozenset[str] = frozenset()
    rule: str | None = None
    state: State | tuple[State, ...] | None = None
    since: datetime = BEGINNING
    until: datetime = END
    limit: int = 100
    after: Spot | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """Those that fit."""
        return self.state if isinstance(self.state, tuple) else (self.state,) if self.state else STATES

    @property
    def before(self) -> Spot:
        """Behind which spot the page begins."""
        last = Spot(self.until - timedelta(milliseconds=1), _GREATEST)
        return last if self.after is None else min(last, self.after)

    def fits(self, told: Told) -> bool:
        """Whether it is asked for, but for its time."""
        alert = told.alert
        if self.rule is not None and alert.rule != self.rule:
            return False
        return (not self.stores or alert.store in self.stores) and (self.state is None or told.state in self.states)


class Page(NamedTuple):
    """`following`: behind which spot the next page begins; None: there is none."""

    kept: Kept
    told: Sequence[Told]
    following: Spot | None


class Alerts:
    """Of every tenant."""

    def __init__(self, reader: AlertReader) -> None:
        """`reader`: what is kept."""
        self._reader = reader

    async def kept(self) -> Kept:
        """How far lists go. StoreUnavailable."""
        return await self._reader.kept()

    async def page(self, ask: AlertsAsk) -> Page:
        """Newest first. StoreUnavailable."""
        kept = await self._reader.kept()  # before the rows
        found: list[Told] = []
        looked_at, last = 0, ask.before
        rows = self._open_ones(ask) if ask.state == "open" else self._every(ask)
        async for told in rows:
            if told.raised_at < ask.since:
                break
            if len(found) == ask.limit or looked_at == MOST_LOOKED_AT:
                return Page(kept, found, last)
            looked_at, last = looked_at + 1, told.spot
            if ask.fits(told):
                found.append(told)
        return Page(kept, found, None)

    async def one(self, sight: str | None, alert_id: str) -> tuple[Told, list[Alert]]:
        """An alert and every record of it, in their order. `sight`: None: everybody's. UnknownName."""
        records = {"raised": "", "resolved": "", "retracted": ""}
        for body in await self._reader.records(alert_id):
            records[orjson.loads(body)["kind"]] = body
        raised = records["raised"]
        said = orjson.loads(raised) if raised else {"tenant": None}
        if not raised or (sight is not None and said["tenant"] != sight):
            do = "Use an id that `GET /v1/alerts` gave."
            raise UnknownName("alert", alert_id, (), do=do)
        told = Told(datetime.fromisoformat(said["raised_at"]), alert_id, *(text or None for text in records.values()))  # type: ignore[arg-type]  # the first is there
        return told, [encoded(text, Alert) for text in records.values() if text]

    async def _open_ones(self, ask: AlertsAsk) -> AsyncIterator[Told]:
        before = ask.before
        while rows := await self._reader.open_ones(ask.sight, before, _CHUNK):
            for told in rows:
                yield told
            before = rows[-1].spot

    async def _every(self, ask: AlertsAsk) -> AsyncIterator[Told]:
        last = ask.before.raised_at.astimezone(UTC).date()
        while days := await self._reader.days(ask.sight, last, _DAYS):
            for day in days:
                if day < ask.since.astimezone(UTC).date():
                    return
                before = ask.before
                while rows := await self._reader.told(ask.sight, day, before, _CHUNK):
                    for told in rows:
                        yield told
                    before = rows[-1].spot
            last = days[-1] - timedelta(days=1)
