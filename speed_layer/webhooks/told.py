"""What a webhook needs to know of an alert's record: whose it is, and by which id a receiver drops its repetition."""

import msgspec


class Told(msgspec.Struct, frozen=True):
    """Two fields of `views.alerts.alert.Alert`. Each record has an id of its own: that an alert is over is news."""

    alert_id: str
    tenant: str


_READ = msgspec.json.Decoder(Told)


def told(value: bytes) -> Told | None:
    """None if it is no record of an alert: who writes the topic writes nothing else, so it is nobody's."""
    try:
        return _READ.decode(value)
    except msgspec.DecodeError:
        return None
