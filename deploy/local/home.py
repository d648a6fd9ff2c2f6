"""The settings that a home was set up with, which every later command reads from it.

Those that decide what numbers mean cannot differ from one command to the next; `galatea migrate` changes them. Ports
are only defaults: a variable that is set takes precedence.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from deploy.local.nodes import has_started
from deploy.secret_files import write_private

if TYPE_CHECKING:
    from deploy.settings import Settings

FIXED = (
    "epoch_seconds",
    "visit_gap_seconds",
    "skew_seconds",
    "kafka_partitions",
    "kafka_retention_days",
    "speed_ttl_days",
    "oldest_hours",
    "remembered_hours",
)
"""Names of the settings that decide what numbers mean. Only `galatea migrate` changes them."""
SUPERVISED = "GALATEA_SUPERVISED"
"""Set for processes of a stack that runs: they keep the settings that it was started with until it is restarted."""
RESET_OR_MIGRATE = "unset the variable; or change the home while its stack runs: galatea migrate"
"""What to do about a variable that differs from what the home remembers."""
PORTS = ("api_port", "sql_port", "kafka_port", "cassandra_port", "airflow_port")
_FILE = "settings.json"


def recorded_settings(home: Path) -> Mapping[str, str]:
    """Return the recorded settings as variables have them, by name. Empty: this home was not set up yet."""
    file = home / _FILE
    return orjson.loads(file.read_bytes()) if file.exists() and has_started(home) else {}


def changed_settings(settings: "Settings") -> Sequence[str]:
    """Describe each setting that decides what numbers mean, and differs from what its home recorded."""
    recorded, texts = recorded_settings(settings.home), settings.texts()
    changed = [name for name in FIXED if recorded.get(name, texts[name]) != texts[name]]
    return [f"GALATEA_{name.upper()}={texts[name]} instead of {recorded[name]}" for name in changed]


def record_settings(settings: "Settings") -> None:
    """Record them for the commands that follow."""
    values = settings.texts()
    write_private(settings.home / _FILE, orjson.dumps({name: values[name] for name in (*FIXED, *PORTS)}).decode())
