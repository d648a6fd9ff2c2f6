"""The settings that a home was set up with, which every later command reads from it.

Those that decide what numbers mean cannot differ from one command to the next; `galatea migrate` changes them. Ports
are only defaults: a variable that is set takes precedence.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.json_files import read_json, write_json
from deploy.local.nodes import has_started
from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from deploy.settings import Settings

PRIVATE, _OTHERS = 0o700, 0o077
_NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})

_MARKS = ("logs/commands.log", "nodes.json", "operator.key", "secrets.key", "settings.json")
"""What only a home has."""
_PREPARED = frozenset(
    {"alerts", "backups", "cassandra", "checkpoints", "kafka", "logs", "lost+found", "master", "spark"}
)
"""Folders that may be there before the first start, such as disks of their own."""

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


def make_home(home: Path) -> None:
    """Create the home for its owner alone, or remove the rights of others. OperatorError.

    That of another owner, such as the root of a mounted volume, stays as it is; `galatea doctor` says so. A folder that
    others may need, because it is no home, is refused.
    """
    try:
        home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if (mode := wider_rights(home)) and home.stat().st_uid == os.geteuid():
            _refuse_folder_of_others(home)
            home.chmod(PRIVATE)
            from deploy.console import print_message  # rarely needed, and slow to import

            print_message(f"  others could read the home {home} (mode {mode:o}); now only its owner can (700)")
    except OSError as error:
        raise _unusable(home, error) from error


def _refuse_folder_of_others(home: Path) -> None:
    if any((home / name).exists() for name in _MARKS):
        return
    if foreign := sorted({each.name for each in home.iterdir()} - _PREPARED):
        message = f"the home `{home}` is open to others and holds `{foreign[0]}`, so it is no home of Galatea"
        do = "set GALATEA_HOME to a folder of its own; or, if it is one, remove the rights of others: chmod 700"
        raise OperatorError(message, do=do)


def make_folder(home: Path, folder: Path) -> Path:
    """Create a folder of a home, and the home. Returns the folder. OperatorError."""
    make_home(home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(home, error) from error
    return folder


def wider_rights(home: Path) -> int:
    """Return the mode of a home that others can enter; 0 if none can, or there is none."""
    mode = stat.S_IMODE(home.stat().st_mode) if home.exists() else 0
    return mode if mode & _OTHERS else 0


def home_error(home: Path, error: OSError) -> OperatorError | None:
    """Return the sentence for an error of the system if it says that the home cannot be written; else None."""
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno not in _NOT_WRITABLE or where is None or not (where == home or home in where.parents):
        return None
    return _unusable(home, error)


def _unusable(home: Path, error: OSError) -> OperatorError:
    why = "it is a file" if home.is_file() else error.strerror or error
    message = f"the home `{home}` cannot be used: {why}"
    return OperatorError(message, do="set GALATEA_HOME to a folder that this user may write to")


def recorded_settings(home: Path) -> Mapping[str, str]:
    """Return the recorded settings as variables have them, by name. Empty: this home was not set up yet."""
    do = "put back a copy, or delete it and set each of the variables GALATEA_... that this home was made with"
    recorded: Mapping[str, str] = read_json(home / _FILE, {}, do) if has_started(home) else {}
    return recorded


def changed_settings(settings: "Settings") -> Sequence[str]:
    """Describe each setting that decides what numbers mean, and differs from what its home recorded."""
    recorded, texts = recorded_settings(settings.home), settings.texts()
    changed = [name for name in FIXED if recorded.get(name, texts[name]) != texts[name]]
    return [f"GALATEA_{name.upper()}={texts[name]} instead of {recorded[name]}" for name in changed]


def record_settings(settings: "Settings") -> None:
    """Record them for the commands that follow."""
    values = settings.texts()
    write_json(settings.home / _FILE, {name: values[name] for name in (*FIXED, *PORTS)})
