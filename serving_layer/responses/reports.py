"""The report of a tenant for a day or a week."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Struct

from serving_layer.responses.alerts import AlertState
from serving_layer.responses.encoding import Instant, Number
from serving_layer.responses.metrics import Provenance, StoreCounts

ReportPeriodName = Literal["daily", "weekly"]


class ReportDates(Struct):
    """Business dates `first` to `last`, both included."""

    first: date
    last: date


class ReportFigure(Struct, kw_only=True):
    """A metric of all stores, or of those with one currency if it is money, against the same days of the week before.

    `name`, `unit`: as the list of metrics has them. `currency`: null if the unit is not money. `value`: null if it is
    not known, which is not zero, and then `reason` says why. `change` in percent; `change_points` instead if the metric
    is a percentage. `final`: neither late events nor a publication of waiting ones can still change the value.
    `stores`: null if there is no value.
    """

    metric: str
    name: str
    unit: str
    currency: str | None
    value: Number | None
    reason: str | None
    before: Number | None
    change: float | None
    change_points: float | None
    final: bool
    stores: StoreCounts | None


class ReportTrendPoint(Struct):
    """Net sales of a day, or of the seven days from a date on. `value`: null if it is not known; `reason` says why."""

    date: date
    value: Number | None
    reason: str | None
    final: bool


class ReportTrend(Struct):
    """Net sales with one currency, oldest first; the last point is the period of the report."""

    currency: str
    points: Sequence[ReportTrendPoint]


class ReportStore(Struct):
    """Net sales of one store; see `ReportFigure`."""

    store: str
    name: str
    currency: str
    value: Number | None
    reason: str | None
    change: float | None
    final: bool


class ReportAlert(Struct):
    """An alert. `raised_at_local`: by the clock of the store. `provisional`: as in `GET /v1/alerts`.

    `currency`: of the store, for amounts in the sentence.
    """

    alert_id: str
    store: str
    name: str
    currency: str
    state: AlertState
    sentence: str
    raised_at: Instant
    raised_at_local: str
    provisional: bool


class ReportAlerts(Struct):
    """Alerts that are open now, and those raised during the period, newest first.

    `as_of`: every event received before was evaluated; null if no alerts are kept here. `open_count`, `raised_count`:
    how many there are; `more`: there are so many that they were not all counted.
    """

    as_of: Instant | None
    open_count: int
    raised_count: int
    more: bool
    open: Sequence[ReportAlert]
    raised: Sequence[ReportAlert]


class ReportSensorGap(Struct):
    """A store whose sensors were alive for less than 95 % of the time.

    `coverage`: for which part, in percent; null if there was no sign of them at all.
    """

    store: str
    name: str
    coverage: Number | None


class ReportCorrection(Struct):
    """What publications changed in the numbers of a store on a date before the period of the report.

    The differences of net sales (null without a `currency`), receipts and visitors: zero if they did not change.
    `reason`: why, in words.
    """

    store: str
    name: str
    date: date
    currency: str | None
    net_sales: Number | None
    receipts: int
    visitors: int
    reason: str


class ReportCorrections(Struct):
    """Corrections that were published from `since` until before `until`, newest date first.

    `count`: how many there are, of which the largest are listed. `complete`: false if there are more than are counted,
    or some are not written yet or not kept any more.
    """

    since: Instant
    until: Instant
    count: int
    complete: bool
    corrections: Sequence[ReportCorrection]


class ReportProvisional(Struct):
    """How much of the net sales with one currency is provisional, in percent; null if nothing was sold or known."""

    currency: str
    percent: float | None


class Report(Struct, kw_only=True):
    """A day or a week of all stores of a tenant, and what of it is final.

    `days`: of the report; `compared`: those that they are compared with. `latest_day`: the last business day that is
    over in every store. `over`: whether the period is over in every store. `final_until`: every event received before
    is counted by a publication; null if nothing is published yet. `final`: every figure is final. `timezone`: null if
    the stores have several. `figures`: a metric of money comes once per currency. `problems`: parts that could not be
    answered, a sentence each.
    """

    tenant: str
    period: ReportPeriodName
    days: ReportDates
    compared: ReportDates
    latest_day: date
    over: bool
    made_at: Instant
    as_of: Provenance
    final_until: Instant | None
    final: bool
    provisional: Sequence[ReportProvisional]
    stores: int
    timezone: str | None
    figures: Sequence[ReportFigure]
    trends: Sequence[ReportTrend]
    best: Sequence[ReportStore]
    weakest: Sequence[ReportStore]
    alerts: ReportAlerts
    sensor_gaps: Sequence[ReportSensorGap]
    corrections: ReportCorrections
    problems: Sequence[str]


_decode = msgspec.json.Decoder(Any, float_hook=Decimal).decode


def read_report(body: bytes) -> Report:
    """A report from its JSON. Amounts keep every digit that was written. msgspec.MsgspecError if it is none."""
    return msgspec.convert(_decode(body), Report)
