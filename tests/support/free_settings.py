"""Settings of a stack of its own, beside any other on this machine."""

from pathlib import Path
from typing import Any

from deploy.local.ports import free_ports
from deploy.settings import Settings


def settings_on_free_ports(folder: Path, **more: Any) -> Settings:
    """Settings whose home is in the folder, with free ports for every component that needs one.

    `more`: other settings, by name. Only a test publishes, unless it says `prompt_correction`.
    """
    api, sql, kafka, cassandra = free_ports(4)
    own = {"home": folder / "home", "prompt_correction": False}
    return Settings(api_port=api, sql_port=sql, kafka_port=kafka, cassandra_port=cassandra, **{**own, **more})
