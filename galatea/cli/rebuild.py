"""`galatea rebuild`: recompute views from the master dataset and publish them at one cut."""

from getpass import getuser
from typing import Annotated

from typer import Option

from deploy.console import Steps, answer, say
from deploy.settings import Settings
from galatea.cli.recompute_options import (
    DryRun,
    First,
    Full,
    Last,
    Stores,
    Views,
    Wait,
    Why,
    asked_of,
    leave,
    noted,
    shown,
    told,
)


def rebuild(  # noqa: PLR0913, PLR0917 - one parameter per option
    views: Views = None,
    first: First = None,
    last: Last = None,
    store: Stores = None,
    full: Full = False,
    wait: Wait = False,
    dry_run: DryRun = False,
    why: Why = "asked on the command line",
    by: Annotated[str, Option("--by", help="Who asks; the user, if left out.", show_default=False)] = "",
    id_: Annotated[str, Option("--id", help="Take up this one; it is begun if it is not there.")] = "",
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Recompute what was touched since the last publication, or what is named, and switch readers to it at once."""
    from deploy.airflow.client import Noted, TaskNote
    from deploy.batch import create_recompute, run_recompute
    from views.control.recompute import checked_id

    settings = Settings()
    note = TaskNote.of_this_process(settings)
    asked = asked_of(views, first, last, store, full=full, wait=wait, dry_run=dry_run)
    id_ = create_recompute(settings, asked, why=why, by=by or getuser(), id_=checked_id(id_) if id_ else None)
    say(f"  {id_}")
    with Steps("rebuild") as steps:
        done = run_recompute(settings, id_, Noted(steps, note))
    note.write(noted(done))
    if as_json:
        answer(shown(done))
    else:
        told(done)
    leave()
