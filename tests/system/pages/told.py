"""Alerts of the invented shops, and the rules that they come from."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from serving_layer.alerts.history import HistoryCoverage
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from tests.support.asking import Asking
from views.alerts.alert import Window

RULES: tuple[dict[str, object], ...] = (
    {"kind": "level", "id": "queue", "name": "Queue too long", "of": "queue", "above": 4, "minutes": 3},
    {"kind": "silence", "id": "tills", "name": "No receipts", "source": "pos_transactions", "minutes": 20},
    {"kind": "threshold", "id": "returns", "metric": "returns_value", "window": "hour", "above": 100, "stores": ["12"]},
    {
        "kind": "threshold",
        "id": "weak-hour",
        "name": "Weak hour",
        "metric": "net_sales",
        "window": "hour",
        "below": 50,
        "versus": "previous_week",
    },
)


def tell(asking: Asking, now: datetime) -> None:
    """What was told until then. A loop may run in this thread already, so nothing is asked over REST."""
    rules, author = AlertRules(asking.versions), RuleAuthor("default", asking.world.stores)
    for rule in RULES:
        rules.create(author, rule)
    asking.versions.rows[:] = [row._replace(effective_at=now - timedelta(days=3)) for row in asking.versions.rows]
    told = asking.told
    told.known = HistoryCoverage(now - timedelta(seconds=1), None)
    told.raised(
        _at(now, 6),
        store="12",
        sentence="The queue Q1 of store 12 has been above 4 for 3 minutes.",
        dimensions={"queue": "Q1"},
    )
    told.raised(
        _at(now, 25),
        store="40",
        rule="weak-hour",
        value=Decimal(182_300),
        baseline=Decimal(410_900),
        threshold=Decimal(50),
        window=_hour(now, 2),
        sentence="Net sales of store 40: 182300, more than 50 % below the 410900 of the same time a week before.",
    )
    late = told.raised(
        _at(now, 200),
        store="12",
        rule="returns",
        value=Decimal("129.90"),
        threshold=Decimal(100),
        late=True,
        window=_hour(now, 4),
        sentence="Returns value of store 12: 129.90, above 100.",
    )
    told.followed(late, "resolved", _at(now, 130))
    wrong = told.raised(
        _at(now, 310),
        store="7",
        rule="tills",
        value=Decimal(20),
        threshold=Decimal(20),
        sentence="The source pos_transactions of store 7 has been silent for 20 minutes.",
    )
    told.followed(wrong, "retracted", _at(now, 126), reason="waited")
    for day in range(1, 4):
        id_ = told.raised(
            _at(now, day * 1440 + 65 * day),
            store="12",
            dimensions={"queue": "Q1"},
            sentence="The queue Q1 of store 12 has been above 4 for 3 minutes.",
        )
        told.followed(id_, "resolved", _at(now, day * 1440 + 65 * day - 9))


def _at(now: datetime, minutes: int) -> str:
    at = now - timedelta(minutes=minutes)
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hour(now: datetime, back: int) -> Window:
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)
    return Window(
        start.isoformat().replace("+00:00", "Z"), (start + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    )
