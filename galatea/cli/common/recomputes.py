"""Requests and results of the commands that recompute: rebuild, recompute, rollback, corrections."""

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from deploy.audit import end_command
from deploy.console import print_message, print_table

if TYPE_CHECKING:
    from views.control.recompute import LedgerTotals, Recompute, RecomputeRequest


def request_of(  # noqa: PLR0913 - one parameter per option
    views: list[str] | None,
    first: datetime | None,
    last: datetime | None,
    stores: list[str] | None,
    *,
    full: bool,
    wait: bool,
    dry_run: bool,
) -> "RecomputeRequest":
    """Return the recompute that these options request. UnknownNameError, RequestError."""
    from views import view_named
    from views.control.recompute import RecomputeRequest

    for name in views or ():
        view_named(name)
    days = (first.date() if first else None, last.date() if last else None)
    return RecomputeRequest(
        tuple(views or ()), *days, tuple(stores or ()), full, wait, "preview" if dry_run else "publish"
    )


def as_json_object(found: "Recompute") -> dict[str, Any]:
    """Return the JSON of a recompute: its result and counts, and the publication that readers see."""
    report: dict[str, Any] = msgspec.to_builtins(found.report) if found.report else {}
    counted = {name: report.get(name, 0) for name in ("days", "blocks", "repeats", "conflicts", "miskeyed")}
    publication = found.publication if found.publication is not None else report.get("base")
    return {
        "id": found.id,
        "state": found.state,
        **report,
        **counted,
        "publication": publication,
        "problem": found.problem,
    }


def print_recompute(found: "Recompute") -> None:
    """Print the result of a recompute."""
    report: dict[str, Any] = msgspec.to_builtins(found.report) if found.report else {}
    for alarm in report.get("alarms", ()):
        print_message(f"  alarm {alarm}")
    cut = f"{datetime.fromisoformat(report['cut']):%F %T}" if "cut" in report else ""
    if found.state == "unchanged":
        print_message(f"  nothing new: publication {report['base']}, cut {cut} UTC, is up to date")
    elif found.state == "previewed":
        _previewed(report)
        print_message(f"  Next: galatea corrections --recompute {found.id}, or the same without --dry-run")
    elif found.state == "published":
        rebuilt = f"{report['days']} days, {report['blocks']} blocks rebuilt"
        print_message(f"  publication {found.publication}   cut {cut} UTC   {rebuilt}")
        print_message("  {repeats} repeated deliveries, {conflicts} conflicts, {miskeyed} miskeyed".format(**report))
        print_corrections(report.get("corrections"))
        if report["base"]:
            print_message(f"  Undo: galatea rollback {report['base']}")


def one_line(found: "Recompute") -> str:
    """Return the result in one line, for the note of an Airflow task."""
    at = as_json_object(found)
    publication = f"   publication {found.publication}" if found.publication is not None else ""
    return f"{found.state}{publication}   {at['days']:,} days, {at['blocks']:,} blocks   recompute {found.id}"


def _previewed(report: Mapping[str, Any]) -> None:
    stores: dict[tuple[str, str, str], int] = {}
    for each in report.get("partitions", ()):
        key = (each["view"], each["day"], each["why"])
        stores[key] = stores.get(key, 0) + 1
    if not stores:
        print_message("  nothing would be recomputed")
        return
    print_table(("view", "day", "why", "stores"), [(*key, number) for key, number in stores.items()])
    if report["partitions_total"] > len(report["partitions"]):
        print_message(f"  and more: {report['partitions_total']:,} partitions in all")
    print_corrections(report.get("corrections"))


def print_corrections(totals: "LedgerTotals | Mapping[str, Any] | None") -> None:
    """Print how many cells a publication corrected, one line per cause."""
    if totals is None:
        print_message("  corrections: written once the speed layer has read up to the cut")
        return
    found = msgspec.to_builtins(totals)
    if not found["cells"]:
        print_message("  0 cells corrected")
    for cause, own in found["causes"].items():
        print_message(f"  {own['cells']:,} cells corrected: {cause}")


def exit_now() -> NoReturn:
    """Exit without waiting for Spark's Java, which ends with this process."""
    end_command(0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
