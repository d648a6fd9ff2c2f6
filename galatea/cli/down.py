"""`galatea down`: stop the local stack."""

from deploy.console import print_json, print_message
from deploy.local.stack import down as stop
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


def down(as_json: AsJson = False) -> None:
    """Stop every component of this home, including those left behind by a killed supervisor."""
    ended = stop(Settings())
    if as_json:
        print_json({"ended": ended})
    else:
        print_message(f"  stopped {', '.join(ended)}" if ended else "  nothing was running")
