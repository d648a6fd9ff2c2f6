"""Alerts as the relay writes them, of any tenant and store, numbered by their `value`."""

from decimal import Decimal

from master_dataset.kafka.consumer import Record
from views.alerts.alert import TOPIC, Alert, Kind, Window, following_id, raised_id


def alert(tenant: str, store: str, number: int, kind: Kind = "raised") -> Alert:
    """The same arguments give the same alert, id and all."""
    window = Window(f"2026-11-22T09:00:00.{number % 1000:03}Z")
    raised = raised_id("queue", number // 1000, (tenant, store), window, {})
    return Alert(
        alert_id=raised if kind == "raised" else following_id(raised, kind),
        kind=kind,
        about=None if kind == "raised" else raised,
        rule="queue",
        version=number // 1000,
        tenant=tenant,
        store=store,
        window=window,
        dimensions={},
        value=Decimal(number),
        threshold=Decimal(4),
        sentence="More than 4 wait.",
        raised_at="2026-11-22T09:00:00.000Z",
    )


def record(tenant: str, store: str, number: int, offset: int = 0) -> Record:
    """The alert as it lies in the topic."""
    return Record(TOPIC, 0, offset, store.encode(), alert(tenant, store, number).to_json(), 1_800_000_000_000)
