"""The settings of whoever tells endpoints of alerts."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

from pydantic import Field, field_validator

from deploy.alert_settings import AlertSettings

Networks = Sequence[IPv4Network | IPv6Network]


class WebhookSettings(AlertSettings):
    """Beside the settings of alerts themselves."""

    webhook_networks: str = ""
    """Networks that webhooks may call though they are not public, separated by commas; there also without TLS."""
    dispatcher_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics of whoever tells endpoints of alerts; 0: one that is free."""

    @field_validator("webhook_networks")
    @classmethod
    def _known_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def allowed_networks(self) -> Networks:
        """Those that webhooks may call though they are not public."""
        return _networks(self.webhook_networks)


def _networks(text: str) -> Networks:
    return [ip_network(each.strip()) for each in text.split(",") if each.strip()]
