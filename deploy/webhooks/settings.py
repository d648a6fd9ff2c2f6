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
    webhook_suspend_hours: float = Field(default=24.0, gt=0, le=720)
    """After how many hours of failures an endpoint of webhooks is called no more until it is resumed."""
    webhooks_per_tenant: int = Field(default=10, ge=1, le=1000)
    """How many endpoints of webhooks a tenant may have: each is a consumer group of its own."""
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
