"""`galatea corrections`: which shown values a publication changed, and why."""

import asyncio
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec
from typer import Argument, Option

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.recomputes import print_corrections
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.responses.encoding import fields_of

if TYPE_CHECKING:
    from serving_layer.admin.corrections import CorrectionsRequest
    from serving_layer.responses.publications import Correction, CorrectionPage
    from views.control.recompute import Cause

SHOWN = ("view", "store", "window", "dimensions", "state", "shown", "corrected", "difference", "cause", "events")


def corrections(  # noqa: PLR0913, PLR0917 - one parameter per option
    number: Annotated[
        int | None,
        Argument(metavar="N", min=0, max=MAX_PUBLICATION, help="Number of a publication (default: the newest)."),
    ] = None,
    recompute: Annotated[
        str | None, Option("--recompute", metavar="ID", help="Corrections of a recompute or preview.")
    ] = None,
    view: Annotated[str | None, Option("--view", help="Only this view.")] = None,
    store: Annotated[str | None, Option("--store", help="Only this store.")] = None,
    cause: Annotated[str | None, Option("--cause", help="Only this cause, such as `unexplained`.")] = None,
    state: Annotated[str | None, Option("--state", help="Only this state, such as `gross_sales`.")] = None,
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="List at most this many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the values that a publication corrected: shown, corrected, difference, cause, and responsible events."""
    from serving_layer.admin.corrections import CorrectionsRequest

    known = cause_named(cause) if cause else None
    page, more = asyncio.run(_page(CorrectionsRequest(number, recompute, view, store, known, limit, state=state)))
    if as_json:
        said = {name: each for name, each in fields_of(page).items() if name != "next"}
        print_json({**said, "more": more})
        return
    rows = page.corrections
    if rows:
        print_table(SHOWN, [_row(row) for row in rows])
    if page.pending:
        print_message(
            "  the ledger has yet to be written: the next rebuild does it, once the speed layer has read up to the cut"
        )
    elif page.totals is not None:
        print_corrections(msgspec.to_builtins(page.totals))
    if more:
        print_message(
            f"  there are more than these {len(rows)}: "
            "use --limit, --view, --store, --state, --cause, or GET /v1/corrections"
        )


async def _page(ask: "CorrectionsRequest") -> "tuple[CorrectionPage, bool]":
    from deploy.wiring import corrections_of, readers_of

    settings = Settings()
    page, following = await corrections_of(settings, readers_of(settings)).page(ask)
    return page, following is not None


def cause_named(word: str) -> "Cause":
    """Return the cause of that name. UnknownNameError."""
    from master_dataset.errors import UnknownNameError
    from views.control.recompute import Cause

    for known in get_args(Cause):
        if known == word:
            named: Cause = known
            return named
    raise UnknownNameError("cause", word, get_args(Cause))


def _row(row: "Correction") -> tuple[object, ...]:
    dimensions = ", ".join(f"{name} {text}" for name, text in row.dimensions.items())
    named = len(row.events)
    events = ", ".join(row.events[:2]) + (f" and {row.events_total - 2} more" if named > 2 else "")  # noqa: PLR2004 - as many as fit
    return (
        *(getattr(row, name) for name in SHOWN[:3]),
        dimensions,
        *(getattr(row, name) for name in SHOWN[4:-1]),
        events,
    )
