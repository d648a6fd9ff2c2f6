"""A report in people's words: the lines and rows that a mail, a page and a PDF have in common."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

from msgspec import UNSET

from serving_layer.pages import figures
from serving_layer.pages.language import UNKNOWN
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import Point
from serving_layer.responses.reports import (
    Report,
    ReportAlert,
    ReportCorrection,
    ReportFigure,
    ReportSensorGap,
    ReportStore,
    ReportTrend,
)

LABELS = {
    "net_sales": "Net sales",
    "traffic_in": "Visitors",
    "conversion_rate": "Conversion",
    "avg_transaction_value": "Average receipt",
    "total_transactions_count": "Receipts",
}
SUBJECT_CURRENCIES = 3
MOST_SUBJECT, LEAST_TENANT = 200, 20
"""Characters of a subject, and of the tenant's name in it if it is longer."""
SMALL_PERCENT = 0.5
"""Less than this is written as "less than 1 %"."""


class FigureRow(NamedTuple):
    """`change`: with its sign, empty if it is not known. `direction`: `up`, `down`, `level` or empty."""

    name: str
    value: str
    change: str
    direction: str
    before: str
    notes: Sequence[str]


class BarRow(NamedTuple):
    """`width`: of the bar, in percent of the greatest value; 0 for none."""

    label: str
    value: str
    width: int
    is_final: bool
    note: str


class Trend(NamedTuple):
    """Bars of one currency, oldest first."""

    title: str
    bars: Sequence[BarRow]


class Part(NamedTuple):
    """A heading with lines below. `intro`: a sentence before them; empty if there is none."""

    title: str
    intro: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Document:
    """A report as it is shown.

    Attributes:
        subject: of a mail.
        title: `Daily report`, of whom, and for when.
        dates: the days of the report, in words.
        lead: what it is compared with.
        certainty: what is final and what is not, sentence by sentence.
        is_final: whether every figure is final.
        figures: a row per metric and currency.
        trends: bars per currency.
        stores: lists of stores with their title.
        parts: alerts, sensors, corrections and problems.
        made: when the report was made, and from what.
    """

    subject: str
    title: str
    dates: str
    lead: str
    certainty: Sequence[str]
    is_final: bool
    figures: Sequence[FigureRow]
    trends: Sequence[Trend]
    stores: Sequence[tuple[str, Sequence[FigureRow]]]
    parts: Sequence[Part]
    made: str

    @classmethod
    def of(cls, report: Report) -> "Document":
        """The words of a report."""
        dates = _dates(report.days.first, report.days.last)
        return cls(
            subject=_subject(report, dates),
            title=f"{'Daily' if report.period == 'daily' else 'Weekly'} report: {report.tenant}",
            dates=dates,
            lead=_lead(report),
            certainty=list(_certainty(report)),
            is_final=report.final,
            figures=[_figure_row(each) for each in report.figures],
            trends=[_trend(each, report) for each in report.trends],
            stores=list(_stores(report)),
            parts=[*_alerts(report), *_sensors(report), _corrections(report), *_problems(report)],
            made=_made(report),
        )


# When


def day_text(day: date) -> str:
    """A date as people write it: `Fri 20 Nov 2026`."""
    return f"{day:%a} {day.day} {day:%b %Y}"


def _short_day(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b}"


def _dates(first: date, last: date) -> str:
    return day_text(first) if first == last else f"{_short_day(first)} to {day_text(last)}"


def _clock(text: str, zone: str | None) -> str:
    """An instant by the clock of the stores, or in UTC if they have several."""
    at = datetime.fromisoformat(text).astimezone(ZoneInfo(zone or "UTC"))
    return f"{_short_day(at.date())}, {at:%H:%M} {'UTC' if zone in (None, 'UTC') else f'({zone})'}"


# Lines


def _subject(report: Report, dates: str) -> str:
    """The subject, whose end says what matters: where it is too long, the name of the tenant is cut."""
    sales = [each for each in report.figures if each.metric == "net_sales"]
    said = [f"{_value(each)}{f' ({change})' if (change := _change(each)) else ''}" for each in sales]
    more = len(said) - SUBJECT_CURRENCIES
    shown = ", ".join(said[:SUBJECT_CURRENCIES]) or UNKNOWN
    if more > 0:
        shown += f" and {more} more {'currency' if more == 1 else 'currencies'}"
    end = f", {report.period} report for {dates}: net sales {shown}" + ("" if report.final else ", provisional")
    tenant = " ".join(report.tenant.split())
    room = max(MOST_SUBJECT - len(end), LEAST_TENANT)
    return (tenant if len(tenant) <= room else f"{tenant[: room - 1]}\N{HORIZONTAL ELLIPSIS}") + end


def _lead(report: Report) -> str:
    stores = f"{report.stores} {'store' if report.stores == 1 else 'stores'}"
    if not report.stores:
        return "No store is registered yet."
    compared = _dates(report.compared.first, report.compared.last)
    return f"{stores}, compared with {compared}."


def _certainty(report: Report) -> Iterable[str]:
    if not report.over:
        yield "This period is not over: its figures are up to the last full quarter of an hour."
    if report.final_until is None:
        yield "History is still loading: nothing is published yet, so no figure is final."
    else:
        yield f"Final up to {_clock(report.final_until, report.timezone)}; {_provisional(report)}."
    if isinstance(report.as_of.missing, list | tuple):
        yield "The live layer could not be read: what was received after that time is missing."


def _provisional(report: Report) -> str:
    if report.final:
        return "every figure of this report is final, and only a late event can still change one"
    shares = [
        f"{_percent(each.percent)} of net sales in {each.currency}" for each in report.provisional if each.percent
    ]
    if not shares:
        return "figures marked as provisional can still change with the next publication"
    return f"{' and '.join(shares)} can still change with the next publication"


def _percent(share: float) -> str:
    return "less than 1 %" if share < SMALL_PERCENT else f"{share:.0f} %"


def _made(report: Report) -> str:
    published = f"publication {report.as_of.publication}" if report.as_of.publication else "no publication yet"
    speed = report.as_of.speed_as_of
    live = f", live data received until {_clock(speed, report.timezone)}" if speed else ""
    return f"Made {_clock(report.made_at, report.timezone)} from {published}{live}."


# Figures


def _value(of: ReportFigure | ReportStore, unit: str = "money") -> str:
    return _number(of.value, of.unit if isinstance(of, ReportFigure) else unit, of.currency)


def _number(value: Number | None, unit: str, code: str | None) -> str:
    return str(figures.figure(value, unit, code or "")) if code or unit != "money" else UNKNOWN


def _change(of: ReportFigure | ReportStore) -> str:
    return figures.change(_point(of))


def _point(of: ReportFigure | ReportStore) -> Point:
    """A point with the same change, as pages write it."""
    points = of.change_points if isinstance(of, ReportFigure) and of.unit == "percent" else UNSET
    return Point(start="", value=None, final=of.final, change=of.change, change_points=points)


def _figure_row(of: ReportFigure) -> FigureRow:
    notes = [of.reason] if of.reason else []
    if of.stores is not None and of.stores.missing and of.value is not None:
        counted = f"{of.stores.counted} {'store' if of.stores.counted == 1 else 'stores'}"
        notes.append(f"of {counted}; {of.stores.missing} without a sensor")
    if of.stores is not None and of.stores.poor:
        notes.append(f"sensors had gaps in {of.stores.poor} {'store' if of.stores.poor == 1 else 'stores'}")
    if not of.final and of.value is not None:
        notes.append("provisional")
    before = f"was {_number(of.before, of.unit, of.currency)}" if of.before is not None else "nothing to compare with"
    return FigureRow(
        LABELS.get(of.metric, of.name),
        _value(of),
        _change(of),
        figures.direction(_point(of)),
        before if of.value is not None else "",
        notes,
    )


def _stores(report: Report) -> Iterable[tuple[str, Sequence[FigureRow]]]:
    several = len({each.currency for each in report.best}) > 1
    for title, every in (("Best stores", report.best), ("Weakest stores", report.weakest)):
        for code in dict.fromkeys(each.currency for each in every):
            rows = [_store_row(each) for each in every if each.currency == code]
            yield f"{title} in {code}" if several else title, rows


def _store_row(of: ReportStore) -> FigureRow:
    notes = [of.reason] if of.reason else [] if of.final else ["provisional"]
    return FigureRow(of.name, _value(of), _change(of), figures.direction(_point(of)), "", notes)


def _trend(of: ReportTrend, report: Report) -> Trend:
    greatest = max((float(each.value) for each in of.points if each.value is not None), default=0.0)
    bars = []
    for each in of.points:
        width = 0 if each.value is None or greatest <= 0 else round(100 * max(float(each.value), 0.0) / greatest)
        label = _short_day(each.date) if report.period == "daily" else f"from {_short_day(each.date)}"
        note = each.reason or ("" if each.final else "provisional")
        bars.append(BarRow(label, _number(each.value, "money", of.currency), width, each.final, note))
    length = "14 days" if report.period == "daily" else "8 weeks"
    return Trend(f"Net sales in {of.currency}, the last {length}", bars)


# Parts


def _alerts(report: Report) -> Iterable[Part]:
    of = report.alerts
    if of.as_of is None:
        yield Part("Alerts", "No alert has been evaluated here yet.", [])
        return
    more = "at least " if of.more else ""
    raised = f"{more}{of.raised_count} raised in this period, {more}{of.open_count} open now."
    yield Part("Open alerts", raised, [_alert(each) for each in of.open])
    is_open = {each.alert_id for each in of.open}
    ended = [each for each in of.raised if each.alert_id not in is_open]
    if ended:
        yield Part("Also raised in this period", "", [_alert(each) for each in ended])


def _alert(of: ReportAlert) -> str:
    at = datetime.fromisoformat(of.raised_at_local)
    notes = [*([] if of.state == "open" else [of.state]), *(["provisional"] if of.provisional else [])]
    said = ", ".join([of.sentence.rstrip("."), *notes])
    return f"{_short_day(at.date())}, {at:%H:%M}, {of.name}: {said}."


def _sensors(report: Report) -> Iterable[Part]:
    if report.sensor_gaps:
        yield Part("Sensors with gaps", "", [_gap(each) for each in report.sensor_gaps])


def _gap(of: ReportSensorGap) -> str:
    if of.coverage is None:
        return f"{of.name}: no sign of its sensors."
    return f"{of.name}: sensors were alive for {of.coverage:.0f} % of the time."


_UNCOUNTED = "Not all corrections {} could be counted."


def _corrections(report: Report) -> Part:
    of = report.corrections
    when = f"from {_clock(of.since, report.timezone)} to {_clock(of.until, report.timezone)}"
    lines = [_correction(each) for each in of.corrections]
    intro = f"Nothing that earlier reports said was corrected {when}."
    if of.count > len(lines):
        intro = f"The largest {len(lines)} of {of.count}, published {when}:"
    elif of.count:
        intro = f"Published {when}:"
    if not of.complete:
        intro = f"{intro} Not all corrections of that time could be counted." if of.count else _UNCOUNTED.format(when)
    return Part("Corrections of earlier days", intro, lines)


def _correction(of: ReportCorrection) -> str:
    changes = []
    if of.net_sales:
        amount = figures.figure(abs(Decimal(of.net_sales)), "money", of.currency or "")
        changes.append(f"net sales {amount} {'higher' if of.net_sales > 0 else 'lower'}")
    for number, one, many in ((of.receipts, "receipt", "receipts"), (of.visitors, "visitor", "visitors")):
        if number:
            changes.append(f"{abs(number):,} {one if abs(number) == 1 else many} {'more' if number > 0 else 'fewer'}")
    return f"{_short_day(of.date)}, {of.name}: {', '.join(changes)}: {of.reason}."


def _problems(report: Report) -> Iterable[Part]:
    if report.problems:
        yield Part("What could not be answered", "", list(report.problems))
