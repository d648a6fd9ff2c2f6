"""`galatea down`: stop the local stack."""

from typing import Annotated

from typer import Option

from deploy.console import print_json, print_message
from deploy.local.stack import down as stop
from deploy.settings import Settings


def down(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Stop every component of this home, including those that a killed supervisor left."""
    ended = stop(Settings())
    if as_json:
        print_json({"ended": ended})
    else:
        print_message(f"  stopped {', '.join(ended)}" if ended else "  nothing was running")
