"""The command line: one verb, one file. Every error of ours becomes one sentence, the next step, and an exit code."""

import importlib
import os
import signal
import sys
from typing import Any

import click
import typer
from typer.core import TyperGroup

from deploy.cli.output import complain
from master_dataset.errors import GalateaError

VERBS = (
    "up", "down", "status", "doctor", "ingest", "rebuild", "publications", "verify", "lag", "views", "metrics", "demo",
)  # fmt: skip
GROUPS = ("stores", "dead_letters")


class Verbs(TyperGroup):
    """Reads the file of a verb when it is asked for, so that `galatea status` never waits for Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every verb, in the order of a first day."""
        return [*VERBS, *(group.replace("_", "-") for group in GROUPS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 - click's signature
        """The verb of that name, or None."""
        name = cmd_name.replace("-", "_")
        if name not in (*VERBS, *GROUPS):
            return None
        module = importlib.import_module(f"deploy.cli.{name}")
        if name in GROUPS:
            return typer.main.get_group(module.app)
        app = typer.Typer(add_completion=False)
        app.command(name=cmd_name)(getattr(module, name))
        return typer.main.get_command(app)


app = typer.Typer(cls=Verbs, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def galatea() -> None:
    """Live and exact numbers of physical stores: a lambda-architecture platform."""


def main() -> None:
    """The process edge of the command line. Exit 0 done, 1 a fault was met, 2 asked wrongly, 130 interrupted."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        app()
    except GalateaError as error:
        complain(error)
        sys.stdout.flush()
        os._exit(error.exit_code) if "pyspark" in sys.modules else sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
