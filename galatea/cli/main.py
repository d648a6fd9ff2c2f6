"""The command line: one verb, one file. Every error of ours becomes one sentence, the next step, and an exit code."""

import ast
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from deploy.audit import CHANGES, Audit
from deploy.console import print_error, print_message
from deploy.process import arm_failpoints, start_parent_watchdog, tune_garbage_collection
from master_dataset.errors import GalateaError

VERBS = (
    "up",
    "down",
    "status",
    "doctor",
    "ingest",
    "rebuild",
    "rollback",
    "publications",
    "corrections",
    "verify",
    "reconcile",
    "compact",
    "gc",
    "export",
    "lag",
    "views",
    "metrics",
    "simulate",
    "prove",
    "demo",
)
FORMER = {"collect": "gc", "balance": "reconcile"}
"""Names that verbs had before: understood for one more release, and not listed."""
GROUPS = ("recompute", "stores", "keys", "dead_letters", "speed", "alerts", "webhooks")


class Verbs(TyperGroup):
    """Reads the file of a verb when it is asked for, so that `galatea status` never waits for Spark."""

    _is_listing = False

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - typer's signature
        """Every verb, in the order of a first day."""
        return [name.replace("_", "-") for name in (*VERBS, *GROUPS) if Path(__file__).with_name(f"{name}.py").exists()]

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own click
        """List the verbs by the first lines of their texts, without loading them."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401 - typer's signature
        """The verb of that name, or None."""
        cmd_name = FORMER.get(cmd_name, cmd_name)
        name = cmd_name.replace("-", "_")
        if cmd_name not in self.list_commands(ctx):
            return None
        if self._is_listing:
            return TyperCommand(cmd_name, help=summary(name))
        log_to_stderr()
        module = importlib.import_module(f"galatea.cli.{name}")
        if name in GROUPS:
            group = typer.main.get_group(module.app)
            group.name = cmd_name
            return group
        app = typer.Typer(add_completion=False)
        app.command(name=cmd_name)(getattr(module, name))
        return typer.main.get_command(app)


def log_to_stderr() -> None:
    """Send what a verb logs to stderr: stdout is its answer."""
    import structlog

    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def summary(name: str) -> str:
    """Return the help of a verb or a group, read from its file without loading it."""
    module = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name and name in VERBS:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.keyword) and node.arg == "help" and name in GROUPS:
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{name}.py says nothing of what it does")


app = typer.Typer(cls=Verbs, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def galatea() -> None:
    """Live and exact numbers of physical stores: a lambda-architecture platform."""


def main() -> None:
    """The process edge of the command line. Exit 0 done, 1 a fault was met, 2 asked wrongly, 130 interrupted."""
    tune_garbage_collection()
    start_parent_watchdog()
    try:
        arm_failpoints()
        audited(sys.argv[1:])
        app()
    except GalateaError as error:
        print_error(error)
        sys.stdout.flush()
        os._exit(error.exit_code) if "pyspark" in sys.modules else sys.exit(error.exit_code)
    except ValueError as error:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        for wrong in error.errors():
            name = "_".join(("GALATEA", *(str(part) for part in wrong["loc"]))).upper()
            print_message(
                f"BadSetting: `{name}`: {wrong['msg']}. Next: correct the variable, or unset it for the default"
            )
        sys.exit(2)


def audited(words: Sequence[str]) -> None:
    """Write down what is asked for, if it would change something: whoever is killed has asked all the same."""
    if " ".join(words[:1]) in CHANGES or " ".join(words[:2]) in CHANGES:
        from deploy.settings import Settings

        Audit(Settings().home).command(words)


if __name__ == "__main__":
    main()
