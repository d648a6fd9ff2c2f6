"""`galatea run`: one component in the foreground, as a container or systemd runs it."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from deploy.settings import Settings


class Runnable(StrEnum):
    """Galatea's own components. Kafka, Cassandra and Airflow have their own ways to run."""

    ARCHIVE = "archive"
    SPEED = "speed"
    ALERTS = "alerts"
    DISPATCHER = "dispatcher"
    API = "api"
    SQL = "sql"


NEEDS_SPARK = (Runnable.ARCHIVE, Runnable.SPEED)
_HELP = f"{', '.join(Runnable)}; `api-2` and so on up to GALATEA_API_PROCESSES, and the same for archive and speed."


def run(component: Annotated[str, typer.Argument(help=_HELP)]) -> None:
    """Run one component in the foreground, for containers and systemd. It logs to standard output."""
    from deploy.jars import ensure_jars
    from deploy.local.home import make_folder
    from deploy.local.stack import service_environment

    settings = Settings()
    names = {str(each): each for each in Runnable}
    for several, each in (
        (settings.archive, Runnable.ARCHIVE),
        (settings.speed, Runnable.SPEED),
        (settings.api, Runnable.API),
    ):
        names |= dict.fromkeys(several.process_names, each)
    if component not in names:
        raise typer.BadParameter(f"there is no component `{component}`: {', '.join(names)}")
    kind = names[component]
    folder = make_folder(settings.home, settings.home / "run")
    # Left by a previous run, it would make a probe succeed too early; to check the jars takes seconds.
    (folder / f"{component}.ready").unlink(missing_ok=True)
    if kind in NEEDS_SPARK:
        ensure_jars(settings, parts=("spark",))
    environment = {**os.environ, **service_environment(settings, kind)}
    words = [sys.executable, "-P", "-m", f"deploy.services.{kind}", *([component] if component != kind else [])]
    os.execve(sys.executable, words, environment)  # noqa: S606 - no shell
