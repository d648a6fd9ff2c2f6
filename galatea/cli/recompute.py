"""`galatea recompute`: the steps of a recompute, one by one, for schedulers."""

from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.console import ProgressSteps, print_fields, print_json
from deploy.settings import Settings
from galatea.cli.common.options import AsJson, By, DryRun, First, Full, Last, Stores, Views, Wait, Why
from galatea.cli.common.recomputes import as_json_object, exit_now, one_line, print_recompute, request_of

if TYPE_CHECKING:
    from views.control.recompute import Recompute

app = typer.Typer(no_args_is_help=True, help="Run a recompute step by step (plan, compute, publish), or show one.")

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the recompute. Reusing the id resumes an interrupted recompute.")
]


@app.command()
def plan(  # noqa: PLR0913, PLR0917 - one parameter per option
    id_: Id,
    views: Views = None,
    first: First = None,
    last: Last = None,
    store: Stores = None,
    full: Full = False,
    wait: Wait = False,
    dry_run: DryRun = False,
    why: Why = "requested on the command line",
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Record the request, reach a cut, and select what to recompute."""
    from deploy.batch import create_recompute
    from views.control.recompute import checked_id

    requested = request_of(views, first, last, store, full=full, wait=wait, dry_run=dry_run)
    create_recompute(Settings(), requested, why=why, by=by or getuser(), id_=checked_id(id_))
    _step(id_, "plan", as_json=as_json)


@app.command()
def compute(id_: Id, as_json: AsJson = False) -> None:
    """Write the cells of the plan; readers do not see them yet. Work of an interrupted attempt is kept."""
    _step(id_, "compute", as_json=as_json)


@app.command()
def publish(id_: Id, as_json: AsJson = False) -> None:
    """Publish the cells atomically, or finish the preview. Repeating it never publishes twice."""
    _step(id_, "publish", as_json=as_json)


@app.command()
def show(id_: Id, as_json: AsJson = False) -> None:
    """Show the progress or result of a recompute."""
    from deploy.cassandra import session_of
    from views.control.recompute import Recomputes

    found = Recomputes(session_of(Settings().cassandra.address)).find(id_)
    if as_json:
        print_json(as_json_object(found) | {"asked": found.request, "why": found.why, "progress": found.progress})
        return
    print_fields({"id": found.id, "state": found.state, "requested by": found.requested_by, "why": found.why})
    progress = found.progress
    if progress:
        for what, amount in (("partitions", progress.partitions), ("events", progress.events)):
            print_fields({what: f"{amount.done:,} of {amount.total:,}"})
        for what in ("rows_per_second", "seconds_left", "working_on"):
            print_fields({what: getattr(progress, what)})
    if found.problem:
        print_fields({"problem": found.problem.message, "next": found.problem.do})
    print_recompute(found)


def _step(id_: str, name: str, *, as_json: bool) -> None:
    from batch_layer.failures import translated_failures
    from deploy.airflow.client import ProgressAndNote, TaskNote
    from deploy.batch import recompute_job
    from deploy.process import BACKGROUND_NICENESS, lower_priority

    lower_priority(BACKGROUND_NICENESS)  # queries take priority
    settings = Settings()
    note = TaskNote.of_this_process(settings)
    with (
        ProgressSteps(name) as steps,
        recompute_job(settings, id_, ProgressAndNote(steps, note), step=name) as job,
        translated_failures(id_),
    ):
        done: Recompute = getattr(job, name)()
    note.write(one_line(done))
    if as_json:
        print_json(as_json_object(done))
    else:
        print_fields({"id": done.id, "state": done.state})
        print_recompute(done)
    exit_now()
