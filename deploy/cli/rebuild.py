"""`galatea rebuild`: recompute views from the master dataset and publish them at one cut."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from getpass import getuser
from typing import Annotated, NoReturn

from typer import Argument, Option

from deploy.cli.output import Steps, answer, say, table
from deploy.settings import Settings
from master_dataset.errors import RequestError

Day = Annotated[datetime | None, Option(formats=["%Y-%m-%d"])]


def rebuild(  # noqa: PLR0913, PLR0917 - one parameter per option
    views: Annotated[list[str] | None, Argument(metavar="VIEW", help="All views if none is named.")] = None,
    first: Annotated[
        datetime | None, Option("--from", formats=["%Y-%m-%d"], help="First UTC day of happened_at.")
    ] = None,
    last: Annotated[datetime | None, Option("--to", formats=["%Y-%m-%d"], help="Last UTC day of happened_at.")] = None,
    store: Annotated[list[str] | None, Option("--store", help="Only days on which this store has events.")] = None,
    full: Annotated[bool, Option("--full", help="Recompute every day.")] = False,
    wait: Annotated[
        bool, Option("--wait", help="Cut after everything received before now; waits for the epoch to end.")
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be recomputed; publish nothing.")] = False,
    why: Annotated[str, Option("--why", help="Kept with the publication.")] = "asked on the command line",
    as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Recompute what was touched since the last publication, or what is named, and switch readers to it at once."""
    from batch_layer.asked import Asked
    from batch_layer.plan import Plan
    from deploy.rebuilding import Rebuilding

    if first and last and first > last:
        raise RequestError(f"--from `{first:%Y-%m-%d}` is after --to `{last:%Y-%m-%d}`", do="swap them")
    days = (first.date() if first else None, last.date() if last else None)
    asked = Asked(tuple(views or ()), *days, tuple(store or ()), full)
    rebuilding = Rebuilding(Settings())
    spark = None if dry_run else rebuilding.starting_spark(full=full)
    with Steps("rebuild") as steps:
        plan: Plan = rebuilding.plan(asked, wait=wait, progress=steps)
        for alarm in plan.alarms:
            say(f"  alarm {alarm}")
        if spark is None or rebuilding.is_published(plan):
            _planned(plan, dry_run=dry_run, as_json=as_json)
            _leave()
        outcome = rebuilding.run(plan, spark.result, why=why, by=getuser(), progress=steps)
    if as_json:
        answer(asdict(outcome))
    else:
        cut = f"{outcome.cut:%Y-%m-%d %H:%M:%S} UTC"
        say(f"  publication {outcome.publication}   cut {cut}   {outcome.days} days, {outcome.blocks} blocks rebuilt")
        say(f"  {outcome.repeats} repeated deliveries, {outcome.conflicts} conflicts, {outcome.miskeyed} miskeyed")
    _leave()


def _planned(plan: "Plan", *, dry_run: bool, as_json: bool) -> None:  # type: ignore[name-defined]  # noqa: F821
    rows = [(view.name, day.isoformat()) for view, days in plan.work for day in sorted(days)]
    if as_json:
        key = "would_rebuild" if dry_run else "rebuilt"
        cut = plan.cut.astimezone(UTC)
        answer(
            {"publication": plan.base.publication, "cut": cut, key: [{"view": view, "day": day} for view, day in rows]}
        )
    elif rows:
        table(("view", "day"), rows)
    else:
        say(f"  nothing is new: publication {plan.base.publication} at {plan.cut:%Y-%m-%d %H:%M:%S} UTC says it all")


def _leave() -> NoReturn:
    """Spark's Java ends with this process; nothing is left to wait for."""
    import sys

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
