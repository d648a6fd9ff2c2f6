"""`galatea rebuild`: recompute views from the master dataset and publish them at one cut."""

from getpass import getuser
from typing import Annotated

from typer import Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson, By, DryRun, First, Full, Last, Stores, Views, Wait, Why
from galatea.cli.common.recomputes import as_json_object, exit_now, one_line, print_recompute, request_of


def rebuild(  # noqa: PLR0913, PLR0917 - one parameter per option
    views: Views = None,
    first: First = None,
    last: Last = None,
    store: Stores = None,
    full: Full = False,
    wait: Wait = False,
    dry_run: DryRun = False,
    why: Why = "requested on the command line",
    by: By = "",
    id_: Annotated[str, Option("--id", help="Id of the recompute to resume; an unknown id starts a new one.")] = "",
    as_json: AsJson = False,
) -> None:
    """Recompute what changed since the last publication, or what is named, and publish it atomically."""
    from deploy.airflow.client import ProgressAndNote, TaskNote
    from deploy.batch import create_recompute, run_recompute
    from deploy.process import BACKGROUND_NICENESS, lower_priority
    from views.control.recompute import checked_id

    lower_priority(BACKGROUND_NICENESS)  # queries take priority
    settings = Settings()
    note = TaskNote.of_this_process(settings)
    request = request_of(views, first, last, store, full=full, wait=wait, dry_run=dry_run)
    id_ = create_recompute(settings, request, why=why, by=by or getuser(), id_=checked_id(id_) if id_ else None)
    print_message(f"  {id_}")
    with ProgressSteps("rebuild") as steps:
        done = run_recompute(settings, id_, ProgressAndNote(steps, note))
    note.write(one_line(done))
    if as_json:
        print_json(as_json_object(done))
    else:
        print_recompute(done)
    exit_now()
