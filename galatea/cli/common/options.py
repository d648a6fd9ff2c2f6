"""Options that several commands have."""

from datetime import datetime
from typing import Annotated

from typer import Argument, Option

_DAY = ["%Y-%m-%d"]

AsJson = Annotated[bool, Option("--json", help="One JSON object on stdout.")]
By = Annotated[str, Option("--by", help="Author (default: the current user).", show_default=False)]
Views = Annotated[list[str] | None, Argument(metavar="VIEW", help="All views if none is named.")]
First = Annotated[datetime | None, Option("--from", formats=_DAY, help="First UTC day of happened_at.")]
Last = Annotated[datetime | None, Option("--to", formats=_DAY, help="Last UTC day of happened_at.")]
Stores = Annotated[list[str] | None, Option("--store", help="Only days on which this store has events.")]
Full = Annotated[bool, Option("--full", help="Recompute every day.")]
Wait = Annotated[bool, Option("--wait", help="Include everything received before now; waits until the epoch ends.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would change; publish nothing.")]
Why = Annotated[str, Option("--why", help="Reason, recorded with the publication.")]
