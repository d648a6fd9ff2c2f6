"""The command line. Each command is a module of this package, which is loaded only when that command runs.

An error becomes one sentence, the next step, and an exit code.
"""

import ast
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from deploy.audit import begin_command, changes_something, end_command
from deploy.console import is_terminal, print_error, print_problem
from deploy.process import (
    arm_failpoints,
    installed_release,
    protect_process,
    start_parent_watchdog,
    tune_garbage_collection,
)
from master_dataset.errors import GalateaError

PANELS = {
    "Start and watch": ("demo", "up", "status", "lag", "doctor", "down"),
    "Send and ask": ("ingest", "ask", "report", "sql", "metrics", "views", "sensors", "simulate"),
    "Publish": ("rebuild", "recompute", "publications", "corrections", "rollback", "verify", "reconcile"),
    "Set up": ("stores", "products", "targets", "annotations", "keys", "alerts", "webhooks", "send_reports"),
    "Maintain": ("dead_letters", "compact", "gc", "export", "speed"),
    "Deploy": ("migrate", "backup", "restore", "run", "jars", "plan_capacity", "prove"),
}
"""The verbs as `--help` lists them."""
GROUPS = (
    "recompute",
    "stores",
    "products",
    "targets",
    "annotations",
    "keys",
    "dead_letters",
    "speed",
    "alerts",
    "webhooks",
)
"""Verbs that have verbs of their own."""
COMMANDS = tuple(name for names in PANELS.values() for name in names if name not in GROUPS)
FORMER_NAMES = {"collect": "gc", "balance": "reconcile"}
"""Hidden aliases, for one release."""
EXIT_CODES = {
    0: "done",
    1: "a fault was found, or a dependency is unavailable",
    2: "wrong use: an argument, a file or a setting",
    3: "a component needs the operator; the supervisor leaves it `failed`",
    75: "a component has to be restarted; the supervisor does so, and waits longer each time",
    130: "interrupted",
}
"""Exit codes of commands and components, with their meanings."""
BAD_SETTING = "bad_setting"
"""Code of an environment variable whose value cannot be used."""
BROKEN = re.compile(r"[\ud800-\udfff]")
"""What Python makes of bytes that are not UTF-8."""
NEVER_LOGS = {"status"}
"""Commands that start faster without the logging library."""


class Commands(TyperGroup):
    """Loads a command's module when the command is called, so that `galatea status` never waits for Spark."""

    _is_listing = False

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return every command, in the order in which a new user needs them."""
        return [name.replace("_", "-") for names in PANELS.values() for name in names]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer's own click
        """Find the command of the first argument; suggest one if there is none."""
        # `suggest_commands` of typer compares with the commands that are loaded, which are none.
        known = self.list_commands(ctx)
        if args and args[0] not in {*known, *FORMER_NAMES} and (near := get_close_matches(args[0], known)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own click
        """List the commands by the first lines of their help, without loading them."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401 - typer's signature
        """Return the command of that name or former name, None if there is none."""
        cmd_name = FORMER_NAMES.get(cmd_name, cmd_name)
        name = cmd_name.replace("-", "_")
        if cmd_name not in self.list_commands(ctx):
            return None
        if self._is_listing:
            panel = next(panel for panel, names in PANELS.items() if name in names)
            return TyperCommand(cmd_name, help=summary(name), rich_help_panel=panel)
        if name not in NEVER_LOGS:
            configure_log()
        module = importlib.import_module(f"galatea.cli.{name}")
        if name in GROUPS:
            for info in module.app.registered_commands:
                info.callback = refusing_broken_text(info.callback)
            group = typer.main.get_group(module.app)
            group.name = cmd_name
            return group
        app = typer.Typer(add_completion=False)
        app.command(name=cmd_name)(refusing_broken_text(getattr(module, name)))
        return typer.main.get_command(app)


def refusing_broken_text(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command refuse texts that are not UTF-8, by the name of the argument. Names of files can be any bytes."""

    @wraps(command)
    def checked(**arguments: object) -> None:
        for name, value in arguments.items():
            texts = value if isinstance(value, list) else [value]
            if any(isinstance(text, str) and BROKEN.search(text) for text in texts):
                raise typer.BadParameter("it is not UTF-8", param_hint=name.rstrip("_").replace("_", "-"))
        command(**arguments)

    return checked


def configure_log(*, always_to_file: bool = False) -> None:
    """Send the log to stderr, or on a terminal to a file of the home: there, stderr is for progress.

    `always_to_file`: also where stderr is no terminal, for a command whose output is a story to read.
    """
    import structlog

    to_file = always_to_file or is_terminal()
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(_log_file() if to_file else sys.stderr))


@cache
def _log_file() -> TextIO:
    from deploy.local.home import make_folder
    from deploy.sections import PathSettings

    home = PathSettings.read({}).resolved().home
    return (make_folder(home, home / "logs") / "commands.log").open("a", encoding="utf-8")


def summary(name: str) -> str:
    """Return the help of a command or group, parsed from its module without loading it."""
    module = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name and name in COMMANDS:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.keyword) and node.arg == "help" and name in GROUPS:
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{name}.py has no help")


app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"galatea {installed_release()}\n")
        raise typer.Exit


@app.callback()
def galatea(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Live and exact metrics for physical stores, on a lambda architecture."""


def main() -> None:
    """Run the command line. It ends with one of `EXIT_CODES`."""
    protect_process()
    tune_garbage_collection()
    start_parent_watchdog()
    try:
        arm_failpoints()
        audit(sys.argv[1:])
        app()
    except SystemExit as ended:
        end_command(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        raise
    except GalateaError as error:
        _end(error)
    except OSError as error:
        from deploy.local.home import home_error
        from deploy.sections import PathSettings

        if (unusable := home_error(PathSettings.read({}).resolved().home, error)) is None:
            end_command(1, type(error).__name__)
            raise
        _end(unusable)
    except ValueError as error:
        from deploy.sections import InvalidSettingsError

        if not isinstance(error, InvalidSettingsError):
            end_command(1, type(error).__name__)
            raise
        end_command(2, BAD_SETTING)
        for problem in error.problems:
            print_problem(BAD_SETTING, problem, "correct the variable, or unset it to use the default")
        sys.exit(2)
    except BaseException as error:
        end_command(130 if isinstance(error, KeyboardInterrupt) else 1, type(error).__name__)
        raise


def _end(error: GalateaError) -> NoReturn:
    """Say what is wrong, and end this process."""
    end_command(error.exit_code, error.code)
    print_error(error)
    sys.stdout.flush()
    if "pyspark" in sys.modules:
        os._exit(error.exit_code)
    sys.exit(error.exit_code)


def audit(words: Sequence[str]) -> None:
    """Record a command that changes something before it runs, so that one that is killed is recorded as well."""
    if changes_something(words):
        from deploy.sections import PathSettings

        begin_command(PathSettings.read({}).resolved().home, words)


if __name__ == "__main__":
    main()
