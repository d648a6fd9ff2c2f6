"""A metric beside what a model expected of it."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType, field

from serving_layer.responses.encoding import Instant, Number
from serving_layer.responses.metrics import AsOf


class Interval(Struct):
    """Where the index of an ordinary point lies in `interval_percent` of all cases."""

    low: float
    high: float


class IndexConditions(Struct):
    """The conditions of a point; null if nothing was observed. `temperature`: a band of degrees Celsius."""

    temperature: str | None
    rain: bool | None
    holidays: Sequence[str]


class IndexPoint(Struct, kw_only=True):
    """`value` of the metric, `expected` by the model, and `index`: 100 x value / expected.

    `index` and `interval` are null, and a flag says why, where there is too little history. `points_used`: of the same
    hour of the week in the history.
    """

    start: Instant
    value: Number | None
    expected: float | None
    index: float | None
    interval: Interval | None
    points_used: int
    conditions: IndexConditions
    flags: Sequence[str] | UnsetType = UNSET
    final: bool


class IndexHistory(Struct):
    """The history that the model was fitted to, and how many points with a value it has."""

    start: Instant = field(name="from")
    end: Instant = field(name="to")
    points: int


class IndexFactors(Struct):
    """What the base of an hour of the week is multiplied by, by band of temperature, and `wet` or `dry`."""

    temperature: Mapping[str, float]
    rain: Mapping[str, float]


class IndexSeries(Struct, kw_only=True):
    """The points of one store. `history`: null if the store has none."""

    store: str
    timezone: str
    unit: str
    currency: str | UnsetType | None = UNSET
    flags: Sequence[str] | UnsetType = UNSET
    history: IndexHistory | None
    factors: IndexFactors
    points: Sequence[IndexPoint]


class IndexResponse(Struct):
    """A metric beside what a model expected, a series per store."""

    metric: str
    kind: str
    grain: str
    history_weeks: int
    interval_percent: int
    series: Sequence[IndexSeries]
    as_of: AsOf
