"""The home of the demo, in which nobody else has data, and the settings that make it quick enough to watch."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deploy.local.home import make_home
from deploy.local.ports import free_ports, is_free
from deploy.local.stack import supervisor
from deploy.sections import PathSettings
from deploy.settings import Settings
from master_dataset.errors import OperatorError

PACE = {
    "GALATEA_EPOCH_SECONDS": "2",
    "GALATEA_ARCHIVE_SECONDS": "2",
    "GALATEA_RECORDS_PER_BATCH": "160000",  # a year of days costs a micro-batch more than its records do
    "GALATEA_SKEW_SECONDS": "1",  # one machine has one clock
    "GALATEA_PROMPT_CORRECTION": "false",  # the demo rebuilds itself, and shows what waits until then
}
PORTS = (
    "GALATEA_API_PORT",
    "GALATEA_SQL_PORT",
    "GALATEA_KAFKA_PORT",
    "GALATEA_CASSANDRA_PORT",
    "GALATEA_AIRFLOW_PORT",
)
HALF_AN_HOUR = timedelta(minutes=30)
ELSEWHERE = ("GALATEA_MASTER_URI", "GALATEA_CHECKPOINT_URI")
MARK = "demo"
"""A file of this name says that a home was made by `--once`, which may throw it away."""


def settings_of_the_demo(*, once: bool) -> Settings:
    """Read the settings, with the demo's pace where the environment says nothing, in a fresh home.

    The demo that stays uses GALATEA_HOME itself, so that every command finds it. `--once` uses the folder `demo-once`
    in it, which it removes if all was equal and keeps otherwise, and moves to free ports where others are taken.
    OperatorError if the home holds data already, or if data would lie outside of it.
    """
    for name in (name for name in ELSEWHERE if os.environ.get(name)):
        raise OperatorError(f"{name} is set, and the demo keeps all its data in its home", do=f"unset {name}")
    home = PathSettings.read({}).resolved().home
    if once:
        home /= "demo-once"
        os.environ["GALATEA_HOME"] = str(home)
    _make_fresh(home, once=once)  # a home that exists may have recorded other settings
    first = datetime.now(UTC) + HALF_AN_HOUR  # hourly, but not while the demo itself rebuilds
    for name, value in {**PACE, "GALATEA_REBUILD_SCHEDULE": f"{first.minute} * * * *"}.items():
        os.environ.setdefault(name, value)
    if once:
        _move_aside(Settings())
    settings = Settings()
    os.environ.update(settings.environment())  # components are child processes, which inherit it
    return settings


def remove(home: Path) -> None:
    """Throw a home of `--once` away, and the folder around it if nothing else is in it."""
    shutil.rmtree(home)
    if not any(home.parent.iterdir()):
        home.parent.rmdir()


def _move_aside(settings: Settings) -> None:
    wanted = {name: settings.values()[name.removeprefix("GALATEA_").lower()] for name in PORTS}
    taken = [name for name, port in wanted.items() if not (is_free(port) and is_free(port + 1))]
    for name, port in zip(taken, free_ports(len(taken)), strict=True):
        os.environ[name] = str(port)


def _make_fresh(home: Path, *, once: bool) -> None:
    mark = home / MARK
    if home.exists() and any(home.iterdir()):
        if not (once and mark.exists()):
            message = f"`{home}` holds data already, and the demo starts from nothing"
            do = f"galatea up to go on with it, or GALATEA_HOME={_another(home)} galatea demo"
            raise OperatorError(message, do=do)
        _end_what_is_left(Settings.ignoring_record())
        shutil.rmtree(home)
    make_home(home)
    if once:
        mark.write_text("made by `galatea demo --once`, which removes it\n")


def _end_what_is_left(settings: Settings) -> None:
    """End the components of a demo that was killed. OperatorError if one is still being played."""
    with supervisor(settings):
        pass


def _another(home: Path) -> Path:
    number = 2
    while home.with_name(f"{home.name}-{number}").exists():
        number += 1
    return home.with_name(f"{home.name}-{number}")
