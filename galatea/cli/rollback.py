"""`galatea rollback`: publish an older publication again."""

from getpass import getuser
from typing import Annotated

from typer import Argument

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson, By, DryRun, Why
from galatea.cli.common.recomputes import exit_now, print_corrections
from serving_layer.admin.publications import MAX_PUBLICATION


def rollback(
    number: Annotated[
        int,
        Argument(metavar="N", min=0, max=MAX_PUBLICATION, help="Number of a publication; see galatea publications."),
    ],
    dry_run: DryRun = False,
    why: Why = "requested on the command line",
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Publish the cells and the cut of publication N again, under a new number. Readers switch to it at once."""
    from deploy.batch import ledgers_of, rollback_of
    from deploy.process import BACKGROUND_NICENESS, lower_priority

    lower_priority(BACKGROUND_NICENESS)  # queries take priority
    settings = Settings()
    with ProgressSteps("rollback") as steps:
        done = rollback_of(settings).run(number, why, by or getuser(), steps, dry_run=dry_run)
        would = "would restore" if dry_run else "restores"
        cut = f"{done.cut:%Y-%m-%d %H:%M:%S} UTC"
        print_message(f"  publication {done.publication} {would} publication {number} (cut {cut})")
        print_message(f"  {done.partitions} (view, day) partitions change")
        if dry_run and done.builds_generation:
            print_message(
                "  a generation of the speed layer would be built first, because the current one starts after that cut"
            )
        ledgers = ledgers_of(settings)
        if not dry_run:
            ledgers.catch_up(steps)
    totals = ledgers.table.totals(str(done.publication)) if not dry_run else None
    if as_json:
        print_json(done._asdict() | {"corrections": totals})
    elif not dry_run:
        print_corrections(totals)
        print_message(f"  Undo: galatea rollback {done.publication - 1}")
    exit_now()
