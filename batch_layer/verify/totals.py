"""Totals and groups of a recompute, added up by a rule of its own and compared with the answers of the serving layer.

The rule knows nothing of queries. A cell belongs to the date on the wall clock of its store, or to the day before as
long as the business day has not begun; to the groups whose version had begun by that date; and to the currency of its
receipts:

    answer(metric, by=total | group:<name>, day)  ==  formula over all recomputed cells of that group and day

Workers add up the cells that they have recomputed. The driver holds an entry per group and business day, however many
stores and cells there are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson

from master_dataset.errors import GalateaError
from master_dataset.registry.stores import DEFAULT_CURRENCY, Store, currency
from master_dataset.registry.time_zones import zone_named
from views.control.publication import Pointer
from views.core.cells import CellKey, States
from views.core.formula import FormulaValue, Term
from views.core.local_time import FIRST_ANSWERED, LAST_ANSWERED, ONE_DAY
from views.core.metric import MASKED, Metric, of_nothing
from views.core.view import View

if TYPE_CHECKING:
    from views.core.aggregates import Value

TOTAL, GROUP = "total", "group:"
DAYS_AT_ONCE = 92
"""The most business days of one question."""
_CURRENCY = "currency"
_DECODER = msgspec.json.Decoder(float_hook=Decimal)

Selected = tuple[str | None, ...]
"""The values of the dimensions by which terms choose cells, in the order of the view."""


class TotalKey(NamedTuple):
    """What is one number of an answer.

    Attributes:
        by: `total`, or `group:` and its name.
        group: the value of the group; None for a total, and for stores that are in no such group.
        currency: of the cells; None where the view has no currency.
        day: the business day.
        part: the UTC day whose windows alone count; None for all windows of the business day.
    """

    by: str
    group: str | None
    currency: str | None
    day: date
    part: date | None


class TotalsQuestion(NamedTuple):
    """A question whose answer is compared: a metric by business day. `start`, `end`: as a request of the API has it."""

    metric: str
    by: str
    start: str
    end: str
    part: date | None


class TotalsSnapshot(NamedTuple):
    """What answers are computed from: both layers at the end of an epoch, and the registered stores."""

    pointer: Pointer
    epoch: datetime
    stores: Mapping[str, Store]


Answers = Callable[[TotalsSnapshot, Sequence[TotalsQuestion]], Iterator[bytes | GalateaError]]
"""Answers questions in order, each with the JSON of the API, or with the error for which it is refused."""


class ComparedTotals(NamedTuple):
    """How many numbers were compared, how many differ, how many were masked, and differences in words.

    A masked value depends on sensor coverage as well, which the cells of its view do not have: it is not compared.
    """

    totals: int
    differing: int
    masked: int
    examples: list[str]

    @classmethod
    def of_all(cls, compared: Sequence["ComparedTotals"]) -> "ComparedTotals":
        """Several comparisons as one."""
        return cls(
            sum(each.totals for each in compared),
            sum(each.differing for each in compared),
            sum(each.masked for each in compared),
            [example for each in compared for example in each.examples],
        )


def compared_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """The metrics that follow from the cells of one view and business day alone, without the registry."""
    return [
        metric
        for metric in metrics
        if len(metric.views) == 1
        and not metric.facts
        and not metric.is_open_only
        and not metric.whole_days
        and not any(term.is_sequential for term in metric.terms.values())
        and (not metric.grains or "day" in metric.grains)
        and (metric.unit == "money" or not metric.is_of_money)
    ]


def business_day(store: Store, window: int) -> date:
    """The business day of a window, as the wall clock of the store shows it."""
    zone = zone_named(store.timezone)
    local = datetime.fromtimestamp(window, zone)
    begins = datetime.combine(local.date(), time.fromisoformat(store.day_starts_at))
    # The hour that clocks repeat may lie around the beginning of the day, which counts from its first pass.
    has_passed = local.fold == 1 and begins.replace(tzinfo=zone).timestamp() <= window
    return local.date() if local.replace(tzinfo=None) >= begins or has_passed else local.date() - ONE_DAY


def group_of(store: Store, name: str, day: date) -> str | None:
    """The value of a group by the last version that had begun by the business day."""
    begun = [version for version in store.groups if version.valid_from is None or version.valid_from <= day]
    return max(begun, key=lambda each: each.valid_from or date.min).values.get(name) if begun else None


@dataclass(frozen=True)
class TotalsRule:
    """Adds up recomputed cells of one view, in Spark's workers.

    Attributes:
        view: of the cells.
        selecting: the places of the dimensions by which terms choose cells.
        stores: the registered stores by id; cells of others are in no total.
        groups: the names of all groups.
        by_part: whether UTC days are compared one by one, because not all of them are.
    """

    view: View
    selecting: tuple[int, ...]
    stores: Mapping[str, Store]
    groups: tuple[str, ...]
    by_part: bool

    @classmethod
    def of(cls, view: View, metrics: Iterable[Metric], stores: Mapping[str, Store], *, by_part: bool) -> "TotalsRule":
        """The rule for the metrics of a view."""
        chosen = {name for metric in metrics for term in metric.terms.values() for name, _ in term.where}
        selecting = tuple(place for place, name in enumerate(view.dimensions) if name in chosen)
        groups = sorted({name for store in stores.values() for name in store.group_names})
        return cls(view, selecting, stores, tuple(groups), by_part)

    def add_up(self, blocks: Iterable[tuple[str, date, Mapping[CellKey, States]]]) -> str:
        """The totals of the cells of stores and UTC days, as text for `RecomputedTotals.add`."""
        found: dict[tuple[TotalKey, Selected], States] = {}
        for id_, utc_day, cells in blocks:
            store = self.stores.get(id_)
            if store is None:
                continue
            for (day, code, selected), states in self._by_day(store, cells).items():
                named = ((f"{GROUP}{name}", group_of(store, name, day)) for name in self.groups)
                for by, group in ((TOTAL, None), *named):
                    key = TotalKey(by, group, code, day, utc_day if self.by_part else None), selected
                    found[key] = self.view.merge(found[key], states) if key in found else states
        return orjson.dumps([[*key, selected, states] for (key, selected), states in found.items()]).decode()

    def _by_day(
        self, store: Store, cells: Mapping[CellKey, States]
    ) -> Mapping[tuple[date, str | None, Selected], States]:
        dimensions = list(self.view.dimensions)
        money = dimensions.index(_CURRENCY) if _CURRENCY in dimensions else None
        days = {window: business_day(store, window) for window in {key.window for key in cells}}
        found: dict[tuple[date, str | None, Selected], States] = {}
        for key, states in cells.items():
            code = None if money is None else key.dimensions[money]
            own = days[key.window], code, tuple(key.dimensions[place] for place in self.selecting)
            found[own] = self.view.merge(found[own], states) if own in found else states
        return found


class RecomputedTotals:
    """What workers have added up of one view, and the values that metrics have by it."""

    def __init__(self, rule: TotalsRule) -> None:
        """`rule`: what the workers added up by."""
        self._rule = rule
        self._states: dict[TotalKey, dict[Selected, States]] = {}

    def add(self, text: str) -> None:
        """Merge what one call of `TotalsRule.add_up` returned."""
        for by, group, code, day, part, selected, states in orjson.loads(text):
            key = TotalKey(by, group, code, date.fromisoformat(day), date.fromisoformat(part) if part else None)
            own, chosen, new = self._states.setdefault(key, {}), tuple(selected), tuple(states)
            own[chosen] = self._rule.view.merge(own[chosen], new) if chosen in own else new

    def values(self, metric: Metric, by: str, part: date | None) -> Mapping[TotalKey, FormulaValue]:
        """The value of a metric by group and business day, wherever there are cells. Money is apart by currency."""
        parts: dict[TotalKey, list[tuple[Selected, States]]] = {}
        for key, states in self._states.items():
            if (key.by, key.part) == (by, part):
                own = key if metric.is_of_money else key._replace(currency=None)
                parts.setdefault(own, []).extend(states.items())
        return {key: self._value(metric, own) for key, own in parts.items()}

    def _value(self, metric: Metric, parts: Sequence[tuple[Selected, States]]) -> FormulaValue:
        return metric.value({text: self._term(term, parts) for text, term in metric.terms.items()})[0]

    def _term(self, term: Term, parts: Sequence[tuple[Selected, States]]) -> FormulaValue:
        view, names = self._rule.view, [list(self._rule.view.dimensions)[place] for place in self._rule.selecting]
        where = {names.index(name): values for name, values in term.where}
        chosen = [states for own, states in parts if all(own[place] in values for place, values in where.items())]
        merged = view.merge_all(chosen)
        picked: dict[str, Value] = dict(zip(view.columns, merged, strict=True)) if merged else {}
        nothing = {name: 0 if column.by == "sum" else None for name, column in view.columns.items()}
        return term.value(view, [(picked or nothing)[name] for name in term.columns(view)])


class TotalsComparison:
    """Compares the answers about one view with what its recomputed cells add up to."""

    def __init__(self, rule: TotalsRule, metrics: Iterable[Metric]) -> None:
        """Compares nothing yet.

        Args:
            rule: what workers add up the cells of the view by.
            metrics: those of the view that are compared.
        """
        self._rule, self._recomputed = rule, RecomputedTotals(rule)
        self._metrics = {metric.id: metric for metric in metrics}
        self._days: set[date] = set()

    def add(self, day: date, text: str | None) -> None:
        """Note that a UTC day has cells on either side, and what recomputed cells add up to, if anything."""
        self._days.add(day)
        if text is not None:
            self._recomputed.add(text)

    def run(self, answers: Answers, snapshot: TotalsSnapshot) -> ComparedTotals | None:
        """Ask for the total and for each group, for all days, and compare every value.

        None if nothing is published yet: answers say `loading` instead of a value then.
        """
        if not snapshot.pointer.publication:
            return None
        questions = self.questions()
        asked = zip(questions, answers(snapshot, questions), strict=True)
        return ComparedTotals.of_all([self.compare(*each) for each in asked])

    def questions(self) -> list[TotalsQuestion]:
        """Every question. Together those of a metric and group are about each window once."""
        kinds = (TOTAL, *(f"{GROUP}{name}" for name in self._rule.groups))
        return [
            TotalsQuestion(metric, by, *bounds) for bounds in self._bounds() for metric in self._metrics for by in kinds
        ]

    def _bounds(self) -> Iterator[tuple[str, str, date | None]]:
        """Of the days that can be asked for."""
        if self._rule.by_part:
            days = filter(_is_answered, sorted(self._days))
            yield from ((f"{day}T00:00:00Z", f"{day + ONE_DAY}T00:00:00Z", day) for day in days)
            return
        near = {day + shift * ONE_DAY for day in self._days for shift in (-1, 0, 1)}
        around = dict.fromkeys(filter(_is_answered, sorted(near)))
        first = None
        for day in around:
            first = first or day
            if day + ONE_DAY not in around or (day - first).days + 1 == DAYS_AT_ONCE:
                yield str(first), str(day + ONE_DAY), None
                first = None

    def compare(self, question: TotalsQuestion, answer: bytes | GalateaError) -> ComparedTotals:
        """Compare one answer. One that is refused differs as a whole."""
        if isinstance(answer, GalateaError):
            return ComparedTotals(1, 1, 0, [f"{question.metric} by {question.by}: {answer}"])
        metric = self._metrics[question.metric]
        recomputed = self._recomputed.values(metric, question.by, question.part)
        about = {key: value for key, value in recomputed.items() if self._is_about(question, key)}
        points = _points(_DECODER.decode(answer), metric, question)
        shown = {key: point["value"] for key, point in points.items()}
        masked = {key for key, point in points.items() if MASKED in point.get("flags", ())}
        expected = {key: value for key, value in about.items() if key not in masked}
        empty = of_nothing(metric, {self._rule.view.name: self._rule.view})
        more = [key for key in shown.keys() - expected.keys() if shown[key]]
        wrong = [key for key, value in expected.items() if not is_same(metric, key.currency, shown.get(key), value)]
        wrong += [key for key in more if not is_same(metric, key.currency, shown[key], empty)]
        examples = [_example(metric, key, shown, expected) for key in wrong[:3]]
        return ComparedTotals(len(expected) + len(more), len(wrong), len(about) - len(expected), examples)

    @staticmethod
    def _is_about(question: TotalsQuestion, key: TotalKey) -> bool:
        return question.part is not None or question.start <= str(key.day) < question.end


def _is_answered(day: date) -> bool:
    return FIRST_ANSWERED <= day <= LAST_ANSWERED


def _points(body: Mapping[str, Any], metric: Metric, question: TotalsQuestion) -> dict[TotalKey, Mapping[str, Any]]:
    """The points of an answer by what they are of."""
    found = {}
    for series in body["series"]:
        [group] = series["group"].values() or [None]
        code = (series.get("currency") or body.get("currency")) if metric.is_of_money else None
        for point in series["points"]:
            day = date.fromisoformat(point["date"])
            found[TotalKey(question.by, group, code, day, question.part)] = point
    return found


def is_same(metric: Metric, code: str | None, shown: Any, value: FormulaValue) -> bool:  # noqa: ANN401 - JSON
    """Whether an answer shows this value: sums to the last digit, all others as the nearest double."""
    if value is None or shown is None:
        return value is None and shown is None
    if not isinstance(value, Fraction):
        return [item["count"] for item in shown] == [item["count"] for item in value]
    exact = value / 10 ** currency(code or DEFAULT_CURRENCY.code).digits if metric.unit == "money" else value
    is_written_out = metric.formula.is_sum and metric.unit in ("money", "n")
    return Fraction(shown) == exact if is_written_out else float(shown) == float(exact)


def _example(metric: Metric, key: TotalKey, shown: Mapping[TotalKey, Any], expected: Mapping[TotalKey, object]) -> str:
    of = " ".join(filter(None, (key.by, key.group, key.currency)))
    return f"{metric.id} by {of} on {key.day}: answered {shown.get(key)}, recomputed {expected.get(key)}"
