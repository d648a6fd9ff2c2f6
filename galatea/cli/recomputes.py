"""How a recompute is shown at a terminal."""

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from deploy.console import say, table

if TYPE_CHECKING:
    from batch_layer.recompute.recompute import Recompute


def shown(found: "Recompute") -> dict[str, Any]:
    """One object: what became of it, and what was counted. `publication`: what readers see of it, or see unchanged."""
    report = dict(found.report or {})
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


def told(found: "Recompute") -> None:
    """In words."""
    report = dict(found.report or {})
    for alarm in report.get("alarms", ()):
        say(f"  alarm {alarm}")
    cut = f"{datetime.fromisoformat(report['cut']):%F %T}" if "cut" in report else ""
    if found.state == "unchanged":
        say(f"  nothing is new: publication {report['base']} at {cut} UTC says it all")
    elif found.state == "previewed":
        _previewed(report)
        say(f"  Next: galatea corrections --recompute {found.id}, or the same without --dry-run")
    elif found.state == "published":
        rebuilt = f"{report['days']} days, {report['blocks']} blocks rebuilt"
        say(f"  publication {found.publication}   cut {cut} UTC   {rebuilt}")
        say("  {repeats} repeated deliveries, {conflicts} conflicts, {miskeyed} miskeyed".format(**report))
        corrections(report.get("corrections"))
        if report["base"]:
            say(f"  Undo: galatea rollback {report['base']}")


def noted(found: "Recompute") -> str:
    """In one line, for whoever looks at a scheduler's tasks."""
    at = shown(found)
    publication = f"   publication {found.publication}" if found.publication is not None else ""
    return f"{found.state}{publication}   {at['days']:,} days, {at['blocks']:,} blocks   recompute {found.id}"


def _previewed(report: Mapping[str, Any]) -> None:
    places: dict[tuple[str, str, str], int] = {}
    for each in report.get("partitions", ()):
        key = (each["view"], each["day"], each["why"])
        places[key] = places.get(key, 0) + 1
    if not places:
        say("  nothing would be recomputed")
        return
    table(("view", "day", "why", "stores"), [(*key, number) for key, number in places.items()])
    if report["partitions_total"] > len(report["partitions"]):
        say(f"  and more: {report['partitions_total']:,} partitions in all")
    corrections(report.get("corrections"))


def corrections(totals: Mapping[str, Any] | None) -> None:
    """What readers' numbers change by, in a line for each cause."""
    if totals is None:
        say("  corrections: written when the speed layer has read up to the cut")
        return
    if not totals["cells"]:
        say("  0 cells corrected")
    for cause, own in totals["causes"].items():
        say(f"  {own['cells']:,} cells corrected: {cause}")


def leave() -> NoReturn:
    """Spark's Java ends with this process; nothing is left to wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
