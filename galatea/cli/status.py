"""`galatea status`: the state of the components."""

from pathlib import Path

from deploy.console import print_json, print_message, print_table, stdout
from deploy.local.records import State
from deploy.local.stack import status as read
from deploy.settings import Settings
from galatea.cli.common.options import AsJson


def status(as_json: AsJson = False) -> None:
    """Show the state of every component."""
    found = read(Settings())
    if as_json:
        print_json(found)
        return
    stdout.print(f"home {found['home']}", markup=False)
    stdout.print(f"the operator key is in {Path(found['home'], 'operator.key')}", markup=False)
    rows = [
        (each["name"], each["state"], each["pid"] or "", each.get("url") or each.get("address") or "")
        for each in found["components"]
    ]
    print_table(("component", "state", "pid", "where"), rows)
    if any(each["state"] == State.UNSUPERVISED for each in found["components"]):
        print_message(
            "  the supervisor was killed, so nothing restarts these components: run galatea up, or galatea down"
        )
