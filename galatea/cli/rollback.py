"""`galatea rollback`: show readers again what an older publication said."""

from getpass import getuser
from typing import Annotated

from typer import Argument, Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.recompute_options import exit_now, print_corrections


def rollback(
    number: Annotated[int, Argument(metavar="N", help="Of a publication, see galatea publications.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    why: Annotated[str, Option("--why", help="Kept with the publication.")] = "asked on the command line",
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Publish again, under a new number, the cells and the cut of publication N. Readers see all of it at once."""
    from deploy.batch import ledgers_of, rollback_of

    settings = Settings()
    with ProgressSteps("rollback") as steps:
        done = rollback_of(settings).run(number, why, getuser(), steps, dry_run=dry_run)
        would = "would show" if dry_run else "shows"
        cut = f"{done.cut:%Y-%m-%d %H:%M:%S} UTC"
        print_message(f"  publication {done.publication} {would} again what {number} said, cut {cut}")
        print_message(f"  {done.partitions} days of views are of another run")
        if dry_run and done.builds_generation:
            print_message(
                "  a generation of the speed layer would be built first: the one of now begins after that cut"
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
