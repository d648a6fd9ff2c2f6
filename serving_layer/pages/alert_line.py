"""An alert as a line of a page: what, where, since when, how far beyond its bound, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Self

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import Told
from serving_layer.pages.figures import NOTHING
from views.alerts.alert import Alert

MINUS = "\N{MINUS SIGN}"
BECAUSE = {
    "over": "it is over",
    "corrected": "later events changed the number",
    "heard": "it was heard again",
    "closed": "the store closed",
    "rule_changed": "the rule was changed",
    "forgotten": "it is no longer waited for",
    "waited": "late events, which a publication counts",
    "late": "events that came when the window was judged already",
    "definition changed": "the metric is defined otherwise now",
    "miskeyed": "events under the key of another store",
    "rolled back": "a publication was rolled back",
    "again": "later events took it back and still later ones did not",
    "unexplained": "nobody knows why the numbers differ",
}
"""Why an alert was resolved or retracted, in words; any other reason stands as it is."""


@dataclass(frozen=True)
class AlertLine:
    """`zone`: of the store. `since`: from when on it holds; `until`: when its window ends, None if nobody knows.

    `ended_at`, `ended`: when and how; None and empty as long as it is open. `certainty`: final, once a publication has
    looked at its window, or has said itself what it says; what has no window that ends stays provisional.
    """

    alert: Alert
    store: Store | None
    state: str
    since: datetime
    until: datetime | None
    raised_at: datetime
    against: str
    certainty: Literal["provisional", "final"]
    ended_at: datetime | None
    ended: str

    @classmethod
    def of(cls, told: Told, stores: Mapping[str, Store], cut: datetime) -> Self:
        """`cut`: see `audited_cut`."""
        alert, following = told.alert, told.following
        until = datetime.fromisoformat(alert.window.end) if alert.window.end else None
        return cls(
            alert,
            stores.get(alert.store),
            told.state,
            datetime.fromisoformat(alert.window.start),
            until,
            told.raised_at,
            _against(alert),
            "provisional" if told.is_provisional(cut) else "final",
            datetime.fromisoformat(following.raised_at) if following else None,
            _ended(following),
        )

    @property
    def zone(self) -> str:
        """In which its times are shown."""
        return self.store.timezone if self.store else "UTC"

    @property
    def place(self) -> str:
        """What the store is called."""
        return self.store.name or self.alert.store if self.store else self.alert.store


def plain(value: Decimal | None) -> str:
    """A number as people write it: no zeros behind, no exponent."""
    if value is None:
        return NOTHING
    text = f"{value:,f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def _against(alert: Alert) -> str:
    if alert.baseline is not None:
        return f"{plain(alert.value)}, a week before {plain(alert.baseline)}; bound {plain(alert.threshold)} %"
    return f"{plain(alert.value)}, bound {plain(alert.threshold)}"


def _ended(following: Alert | None) -> str:
    if following is None:
        return ""
    reason = following.reason or ""
    return f"{following.kind}: {BECAUSE.get(reason, reason)}" if reason else following.kind
