"""`galatea send-reports`: sends the reports of `GALATEA_REPORTS_FILE` that are due."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.rest import KeyFile, rest_client
from galatea.cli.common.tenants import warn_of_unknown_tenants
from galatea.cli.report import fetch, outcome
from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deploy.reports.due import DueReport
    from deploy.reports.recipients import ScheduledReport
    from serving_layer.responses.reports import Report


def send_reports(*, key_file: KeyFile = None, as_json: AsJson = False) -> None:
    """Send the reports of GALATEA_REPORTS_FILE that are due, each recipient once. Safe to repeat.

    A report is due when its day or week is over in every store of the tenant. Each recipient gets every period since
    the last one that they got, at most 7 days or 2 weeks; a new recipient gets only the newest one.
    Tenants without stores are left out, with a warning.
    """
    from deploy.reports.due import DueReports
    from deploy.reports.recipients import read_reports

    settings = Settings()
    scheduled = read_reports(Path(settings.reports.file)) if settings.reports.file else ()

    def report_of(each: "ScheduledReport", day: date | None) -> "Report":
        return fetch(settings, each.period, each.tenant, None if day is None else day.isoformat(), key_file)

    due = DueReports(settings, report_of)
    left_out = _without_stores(settings, [each.tenant for each in scheduled], key_file)
    done = [result for each in scheduled if each.tenant not in left_out for result in due.send(each)]
    if as_json:
        print_json({"reports": [_json(each) for each in done]})
    elif not scheduled:
        print_message("  no reports are configured: GALATEA_REPORTS_FILE names the file that says who gets which")
    else:
        print_table(("tenant", "period", "from", "result"), [_row(each) for each in done])
    failures = [error for each in done for error in each.failures]
    if failures:
        first = failures[0]
        message = f"{len(failures)} of the reports or recipients failed; the first: {first.message}"
        raise OperatorError(message, do=f"{first.do}; then galatea send-reports, which sends what is left")


def _without_stores(settings: Settings, tenants: "Sequence[str]", key_file: Path | None) -> list[str]:
    """The tenants that have no store, each with a warning."""
    if not tenants:
        return []
    with rest_client(settings, key_file) as galatea:
        return warn_of_unknown_tenants(tenants, galatea.stores())


def _json(each: "DueReport") -> dict[str, Any]:
    about = {} if each.report is None else {"first": each.report.days.first, "last": each.report.days.last}
    said: dict[str, Any] = {"tenant": each.scheduled.tenant, "period": each.scheduled.period, **about}
    if each.report is not None and each.delivery is not None:
        said = outcome(each.report, each.delivery)
    return said if each.error is None else said | {"error": each.error.message}


def _row(each: "DueReport") -> tuple[str, str, str, str]:
    said = [each.error.message] if each.error else []
    if done := each.delivery:
        counts = {"sent": done.sent, "already sent": done.already, "refused": done.refused, "deferred": done.deferred}
        said = [f"{len(addresses)} {what}" for what, addresses in counts.items() if addresses] + said
    first = str(each.report.days.first) if each.report else ""
    return each.scheduled.tenant, each.scheduled.period, first, ", ".join(said)
