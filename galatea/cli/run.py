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


def run(component: Annotated[Runnable, typer.Argument(help="Which one.")]) -> None:
    """Run one component in the foreground, for containers and systemd. It logs to standard output."""
    from deploy.jars import ensure_jars

    settings = Settings()
    if component in NEEDS_SPARK:
        ensure_jars(settings, parts=("spark",))
    folder = settings.home / "run"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{component}.ready").unlink(missing_ok=True)  # of a run before: a probe must not believe it
    environment = {**os.environ, **settings.as_user(component).environment()}
    os.execve(sys.executable, [sys.executable, "-P", "-m", f"deploy.services.{component}"], environment)  # noqa: S606 - no shell
