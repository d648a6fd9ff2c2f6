"""A report in people's words: the lines and rows that a mail, a page and a PDF have in common.

They are in the language that `use_language` says. REST has reasons and alerts in English; here they are translated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import Store, currency
from serving_layer.pages import figures, language
from serving_layer.pages.language import UNKNOWN, gettext_noop, ngettext
from serving_layer.pages.language import gettext as _
from serving_layer.pages.sentences import translated
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
    "net_sales": gettext_noop("Net sales"),
    "traffic_in": gettext_noop("Visitors"),
    "conversion_rate": gettext_noop("Conversion"),
    "avg_transaction_value": gettext_noop("Average receipt"),
    "total_transactions_count": gettext_noop("Receipts"),
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
        title: "Daily report", and of whom.
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
        title = _("Daily report: {tenant}") if report.period == "daily" else _("Weekly report: {tenant}")
        return cls(
            subject=_subject(report, dates),
            title=title.format(tenant=report.tenant),
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


def _dates(first: date, last: date) -> str:
    if first == last:
        return language.day(first, "yMMMEd")
    from_ = language.day(first, "MMMd" if first.year == last.year else "yMMMd")
    return f"{from_} \N{EN DASH} {language.day(last, 'yMMMd')}"


def _short_day(day: date) -> str:
    return language.day(day, "MMMEd")


def _clock(text: str, zone: str | None) -> str:
    """An instant by the clock of the stores, or in UTC if they have several."""
    shown = language.moment(datetime.fromisoformat(text), zone or "UTC")
    return f"{shown} UTC" if zone in (None, "UTC") else f"{shown} ({zone})"


# Lines


def _subject(report: Report, dates: str) -> str:
    """The subject, whose end says what matters: where it is too long, the name of the tenant is cut."""
    sales = [each for each in report.figures if each.metric == "net_sales"]
    said = [f"{_value(each)}{f' ({change})' if (change := _change(each)) else ''}" for each in sales]
    more = len(said) - SUBJECT_CURRENCIES
    shown = ", ".join(said[:SUBJECT_CURRENCIES]) or UNKNOWN
    if more > 0:
        text = ngettext("{sales} and {number} more currency", "{sales} and {number} more currencies", more)
        shown = text.format(sales=shown, number=more)
    daily, weekly = _("daily report for {dates}: net sales {sales}"), _("weekly report for {dates}: net sales {sales}")
    end = ", " + (daily if report.period == "daily" else weekly).format(dates=dates, sales=shown)
    end += "" if report.final else ", " + _("provisional")
    tenant = " ".join(report.tenant.split())
    room = max(MOST_SUBJECT - len(end), LEAST_TENANT)
    return (tenant if len(tenant) <= room else f"{tenant[: room - 1]}\N{HORIZONTAL ELLIPSIS}") + end


def _lead(report: Report) -> str:
    if not report.stores:
        return _("No store is registered yet.")
    text = ngettext("{number} store, compared with {dates}.", "{number} stores, compared with {dates}.", report.stores)
    return text.format(number=report.stores, dates=_dates(report.compared.first, report.compared.last))


def _certainty(report: Report) -> Iterable[str]:
    if not report.over:
        yield _("This period is not over: its figures are up to the last full quarter of an hour.")
    if report.final_until is None:
        yield _("History is still loading: nothing is published yet, so no figure is final.")
    else:
        yield _("Final up to {time}.").format(time=_clock(report.final_until, report.timezone))
        yield _provisional(report)
    if isinstance(report.as_of.missing, list | tuple):
        yield _("The live layer could not be read: what was received after that time is missing.")


def _provisional(report: Report) -> str:
    if report.final:
        return _("Every figure of this report is final; only a late event can still change one.")
    of = _("{share} of net sales in {currency}")
    shares = [
        of.format(share=_percent(each.percent), currency=each.currency) for each in report.provisional if each.percent
    ]
    if not shares:
        return _("Figures marked as provisional can still change with the next publication.")
    return _("Can still change with the next publication: {shares}.").format(shares=", ".join(shares))


def _percent(share: float) -> str:
    return _("less than 1 %") if share < SMALL_PERCENT else f"{figures.rounded(share, 0)} %"


def _made(report: Report) -> str:
    time, speed = _clock(report.made_at, report.timezone), report.as_of.speed_as_of
    if not report.as_of.publication:
        made = _("Created {time}; nothing is published yet.").format(time=time)
    else:
        made = _("Created {time} from publication {number}.").format(time=time, number=report.as_of.publication)
    if not speed:
        return made
    received = _("Live data received until {time}.").format(time=_clock(speed, report.timezone))
    return f"{made} {received}"


def _name(store: str, name: str) -> str:
    """A store as people call it: REST has an English name for those that have none."""
    return _("Store {id}").format(id=store) if name == f"Store {store}" else name


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
    notes = [_reason(of.reason)] if of.reason else []
    if of.stores is not None and of.stores.missing and of.value is not None:
        text = ngettext(
            "of {number} store; {missing} without a sensor",
            "of {number} stores; {missing} without a sensor",
            of.stores.counted,
        )
        notes.append(text.format(number=of.stores.counted, missing=of.stores.missing))
    if of.stores is not None and of.stores.poor:
        text = ngettext("sensors had gaps in {number} store", "sensors had gaps in {number} stores", of.stores.poor)
        notes.append(text.format(number=of.stores.poor))
    if not of.final and of.value is not None:
        notes.append(_("provisional"))
    before = _("nothing to compare with")
    if of.before is not None:
        before = _("was {number}").format(number=_number(of.before, of.unit, of.currency))
    return FigureRow(
        _(LABELS[of.metric]) if of.metric in LABELS else of.name,
        _value(of),
        _change(of),
        figures.direction(_point(of)),
        before if of.value is not None else "",
        notes,
    )


def _reason(text: str) -> str:
    """Why there is no value: one of our own reasons, or the sentence of an error."""
    known = _(text)
    return known if known != text else translated(text)


def _stores(report: Report) -> Iterable[tuple[str, Sequence[FigureRow]]]:
    several = len({each.currency for each in report.best}) > 1
    titles = (
        (_("Best stores"), _("Best stores in {currency}"), report.best),
        (_("Weakest stores"), _("Weakest stores in {currency}"), report.weakest),
    )
    for title, with_currency, every in titles:
        for code in dict.fromkeys(each.currency for each in every):
            rows = [_store_row(each) for each in every if each.currency == code]
            yield with_currency.format(currency=code) if several else title, rows


def _store_row(of: ReportStore) -> FigureRow:
    notes = [_reason(of.reason)] if of.reason else [] if of.final else [_("provisional")]
    return FigureRow(_name(of.store, of.name), _value(of), _change(of), figures.direction(_point(of)), "", notes)


def _trend(of: ReportTrend, report: Report) -> Trend:
    greatest = max((float(each.value) for each in of.points if each.value is not None), default=0.0)
    bars = []
    for each in of.points:
        width = 0 if each.value is None or greatest <= 0 else round(100 * max(float(each.value), 0.0) / greatest)
        day = _short_day(each.date)
        label = day if report.period == "daily" else _("from {day}").format(day=day)
        note = _reason(each.reason) if each.reason else "" if each.final else _("provisional")
        bars.append(BarRow(label, _number(each.value, "money", of.currency), width, each.final, note))
    days, weeks = _("Net sales in {currency}, the last 14 days"), _("Net sales in {currency}, the last 8 weeks")
    return Trend((days if report.period == "daily" else weeks).format(currency=of.currency), bars)


# Parts


def _alerts(report: Report) -> Iterable[Part]:
    of = report.alerts
    if of.as_of is None:
        yield Part(_("Alerts"), _("No alert has been evaluated here yet."), [])
        return
    raised = _("Raised in this period: {raised}. Open now: {open}.")
    if of.more:
        raised = _("Raised in this period: at least {raised}. Open now: at least {open}.")
    numbers = {"raised": figures.count(of.raised_count), "open": figures.count(of.open_count)}
    yield Part(_("Open alerts"), raised.format(**numbers), [_alert(each) for each in of.open])
    is_open = {each.alert_id for each in of.open}
    ended = [each for each in of.raised if each.alert_id not in is_open]
    if ended:
        yield Part(_("Also raised in this period"), "", [_alert(each) for each in ended])


STATES: Mapping[str, str] = {"open": "", "resolved": gettext_noop("resolved"), "retracted": gettext_noop("retracted")}


def _alert(of: ReportAlert) -> str:
    at = datetime.fromisoformat(of.raised_at_local)
    state = STATES.get(of.state, of.state)
    notes = [*([_(state)] if state else []), *([_("provisional")] if of.provisional else [])]
    store = Store(of.store, "UTC", of.name, currency=currency(of.currency))
    said = ", ".join([translated(of.sentence, store).rstrip("."), *notes])
    name = _name(of.store, of.name)
    where = "" if name in said else f", {name}"
    return f"{_short_day(at.date())}, {at:%H:%M}{where}: {said}."


def _sensors(report: Report) -> Iterable[Part]:
    if report.sensor_gaps:
        yield Part(_("Sensors with gaps"), "", [_gap(each) for each in report.sensor_gaps])


def _gap(of: ReportSensorGap) -> str:
    name = _name(of.store, of.name)
    if of.coverage is None:
        return _("{store}: no sign of its sensors.").format(store=name)
    text = _("{store}: sensors worked for {percent} % of the time.")
    return text.format(store=name, percent=figures.rounded(of.coverage, 0))


def _corrections(report: Report) -> Part:
    of = report.corrections
    when = {"since": _clock(of.since, report.timezone), "until": _clock(of.until, report.timezone)}
    lines = [_correction(each) for each in of.corrections]
    if of.count > len(lines):
        intro = _("The largest {shown} of {count}, published from {since} to {until}:")
    elif of.count:
        intro = _("Published from {since} to {until}:")
    elif of.complete:
        intro = _("No number in earlier reports was corrected from {since} to {until}.")
    else:
        intro = _("Not all corrections from {since} to {until} could be counted.")
    intro = intro.format(shown=len(lines), count=figures.count(of.count), **when)
    if of.count and not of.complete:
        intro = " ".join([intro, _("Not all corrections of that time could be counted.")])
    return Part(_("Corrections of earlier days"), intro, lines)


def _correction(of: ReportCorrection) -> str:
    changes = []
    if of.net_sales:
        text = _("net sales {amount} higher") if of.net_sales > 0 else _("net sales {amount} lower")
        changes.append(text.format(amount=figures.figure(abs(Decimal(of.net_sales)), "money", of.currency or "")))
    if number := abs(of.receipts):
        more = ngettext("{number} more receipt", "{number} more receipts", number)
        fewer = ngettext("{number} fewer receipt", "{number} fewer receipts", number)
        changes.append((more if of.receipts > 0 else fewer).format(number=figures.count(number)))
    if number := abs(of.visitors):
        more = ngettext("{number} more visitor", "{number} more visitors", number)
        fewer = ngettext("{number} fewer visitor", "{number} fewer visitors", number)
        changes.append((more if of.visitors > 0 else fewer).format(number=figures.count(number)))
    return f"{_short_day(of.date)}, {_name(of.store, of.name)}: {', '.join(changes)}: {_reason(of.reason)}."


def _problems(report: Report) -> Iterable[Part]:
    if report.problems:
        yield Part(_("What could not be answered"), "", [translated(each) for each in report.problems])
