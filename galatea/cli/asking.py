"""The options by which a recompute is asked for."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

if TYPE_CHECKING:
    from views.control.recompute_request import RecomputeRequest

_DAY = ["%Y-%m-%d"]

Views = Annotated[list[str] | None, Argument(metavar="VIEW", help="All views if none is named.")]
First = Annotated[datetime | None, Option("--from", formats=_DAY, help="First UTC day of happened_at.")]
Last = Annotated[datetime | None, Option("--to", formats=_DAY, help="Last UTC day of happened_at.")]
Stores = Annotated[list[str] | None, Option("--store", help="Only days on which this store has events.")]
Full = Annotated[bool, Option("--full", help="Recompute every day.")]
Wait = Annotated[bool, Option("--wait", help="Cut after everything received before now; waits for the epoch to end.")]
DryRun = Annotated[bool, Option("--dry-run", help="Say what would change, and publish nothing.")]
Why = Annotated[str, Option("--why", help="Kept with the publication.")]


def asked_of(  # noqa: PLR0913 - one parameter per option
    views: list[str] | None,
    first: datetime | None,
    last: datetime | None,
    stores: list[str] | None,
    *,
    full: bool,
    wait: bool,
    dry_run: bool,
) -> "RecomputeRequest":
    """What these options ask for. UnknownName, RequestError."""
    from views import view_named
    from views.control.recompute_request import RecomputeRequest

    for name in views or ():
        view_named(name)
    days = (first.date() if first else None, last.date() if last else None)
    return RecomputeRequest(
        tuple(views or ()), *days, tuple(stores or ()), full, wait, "preview" if dry_run else "publish"
    )
