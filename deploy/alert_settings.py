"""The settings of whoever makes alerts, and of their rules."""

from pydantic import Field

from deploy.limits import LimitSettings


class AlertSettings(LimitSettings):
    """Beside the limits of whoever asks."""

    alerts_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics of the alert relay; 0 likewise."""
    alerts_stuck_seconds: float = Field(default=45.0, gt=0)
    """How long the alert relay may make no progress before it is ended and started again, in seconds."""
    alerts_tick_seconds: float = Field(default=15.0, gt=0, le=60)
    """How often time is let pass in topics that a rule of alerts watches while nothing arrives, in seconds."""
    alerts_identities_mb: int = Field(default=256, ge=1)
    """Memory that the identities of the last day may take in the alert relay, in MB; beyond it the relay stops."""
    alert_rules_seconds: float = Field(default=60.0, ge=1)
    """How long after it is written a version of a rule begins to hold, in seconds; more than the skew."""
    alert_rules_per_tenant: int = Field(default=100, ge=1, le=10_000)
    """How many rules of alerts a tenant may have."""
