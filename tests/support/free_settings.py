"""Settings of a stack of its own, beside any other on this machine."""

from pathlib import Path
from typing import Any

from deploy.local.ports import free_ports
from deploy.settings import Settings


def settings_on_free_ports(folder: Path, **more: Any) -> Settings:
    """Settings whose home is in the folder, with free ports for every component that needs one.

    `more`: other settings, by name.
    """
    api, sql, kafka, cassandra = free_ports(4)
    return Settings(
        home=folder / "home", api_port=api, sql_port=sql, kafka_port=kafka, cassandra_port=cassandra, **more
    )
