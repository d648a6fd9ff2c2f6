"""Alerts and the rules that raise them."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from serving_layer.responses.encoding import Instant
from views.alerts.alert import Alert, AlertCause, LogPosition, Window
from views.alerts.rule import Level, Silence, Threshold

AlertState = Literal["open", "resolved", "retracted"]


class ListedAlert(Struct):
    """An alert as it was raised, and what followed it.

    `provisional`: no publication with which alerts were compared covers its window yet. `value`, `threshold` and
    `baseline` are in the unit that people read. Of what a publication raised: its number, the cause, and the value
    that was shown and the corrected one.
    """

    alert_id: str
    state: AlertState
    rule: str
    version: int
    tenant: str
    store: str
    window: Window
    dimensions: Mapping[str, str]
    value: Decimal | None
    threshold: Decimal
    baseline: Decimal | None
    sentence: str
    provisional: bool
    late: bool
    raised_at: Instant
    place: LogPosition | None
    publication: int | None
    cause: AlertCause | None
    shown: Decimal | None
    corrected: Decimal | None
    resolved_at: Instant | None
    resolved_because: str | None
    retracted_at: Instant | None
    retracted_because: str | None


class AlertPage(Struct):
    """Alerts, newest first. `next`: the `after` of the next page, null on the last.

    `alerts_as_of`: every event received before was judged, and its alerts are listed; null if nobody keeps alerts here.
    `complete_from`: earlier alerts are missing; null if none is.
    """

    alerts_as_of: Instant | None
    complete_from: Instant | None
    alerts: Sequence[ListedAlert]
    next: str | None


class AlertDetail(Struct):
    """One alert as in a list, with every record of it: as it was raised, then resolved or retracted."""

    alerts_as_of: Instant | None
    complete_from: Instant | None
    alert_id: str
    state: AlertState
    rule: str
    version: int
    tenant: str
    store: str
    window: Window
    dimensions: Mapping[str, str]
    value: Decimal | None
    threshold: Decimal
    baseline: Decimal | None
    sentence: str
    provisional: bool
    late: bool
    raised_at: Instant
    place: LogPosition | None
    publication: int | None
    cause: AlertCause | None
    shown: Decimal | None
    corrected: Decimal | None
    resolved_at: Instant | None
    resolved_because: str | None
    retracted_at: Instant | None
    retracted_because: str | None
    records: Sequence[Alert]


class AlertRule(Struct):
    """A version of a rule. `effective_at`: it holds for events received from then on. `in_words`: what it says.

    `unreadable`: a newer release may have written it, so `rule` is null and nothing is watched until it is replaced.
    """

    id: str
    tenant: str
    version: int
    effective_at: Instant
    removed: bool
    unreadable: bool
    in_words: str | None
    rule: Threshold | Silence | Level | None


class AlertRuleList(Struct):
    """The rules of a tenant, by id, and how many it may have at `most`."""

    rules: Sequence[AlertRule]
    most: int


class AlertRuleVersions(Struct):
    """Every version of a rule, newest first. `next`: the `before` of the next page, null on the last."""

    versions: Sequence[AlertRule]
    next: int | None


class RuleProblem(Struct):
    """Why a rule would be refused: the field to change, what is wrong with it, and what to do."""

    field: str
    title: str
    detail: str
    code: str


class RulePreview(Struct):
    """What a rule would be: whether it would be accepted, and if not, why.

    `fires`: `never` or `always` where that is what is wrong with it. `stores_total`: how many stores it would watch,
    and some of them in `stores`. `before`: the rule of that id as it is, null if there is none.
    """

    accepted: bool
    fires: str | None
    problem: RuleProblem | None
    in_words: str | None
    stores: Sequence[str]
    stores_total: int
    effective_at: Instant | None
    rule: Threshold | Silence | Level | None
    before: Threshold | Silence | Level | None
