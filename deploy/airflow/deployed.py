"""Which Airflow a deployment has, if it has one."""

from typing import TYPE_CHECKING

from deploy.airflow.client import AirflowClient
from deploy.airflow.component import NAME, local_url
from deploy.local import board

if TYPE_CHECKING:
    from deploy.settings import Settings


def airflow_of(settings: "Settings") -> AirflowClient | None:
    """The one that GALATEA_AIRFLOW_URL names, or that of the local stack if it was started with it, up or down."""
    is_named = settings.airflow_url != local_url(settings)
    return AirflowClient.of(settings) if is_named or NAME in board.read(settings.home) else None
