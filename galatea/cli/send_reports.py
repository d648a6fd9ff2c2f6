"""`galatea send-reports`: sends the reports of `GALATEA_REPORTS_FILE` whose period has just ended."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.options import AsJson
from galatea.cli.report import fetch, outcome
from galatea.cli.rest import KeyFile
from master_dataset.errors import GalateaError, OperatorError

if TYPE_CHECKING:
    from deploy.reports.recipients import ScheduledReport
    from serving_layer.responses.reports import Report


def send_reports(*, key_file: KeyFile = None, as_json: AsJson = False) -> None:
    """Send the reports of GALATEA_REPORTS_FILE that are due, each recipient once. Safe to repeat.

    A daily report is due when the day is over in every store of the tenant, a weekly one on the day after the week.
    """
    from deploy.reports.recipients import read_reports

    settings = Settings()
    scheduled = read_reports(Path(settings.reports.file)) if settings.reports.file else ()
    done: list[dict[str, Any]] = []
    failures: list[GalateaError] = []
    for each in scheduled:
        try:
            result, refused = _sent(settings, each, key_file)
        except GalateaError as error:  # the other reports have nothing to do with it
            result, refused = {"tenant": each.tenant, "period": each.period, "error": error.message}, [error]
        done.append(result)
        failures += refused
    if as_json:
        print_json({"reports": done})
    elif not scheduled:
        print_message("  no reports are configured: GALATEA_REPORTS_FILE names the file that says who gets which")
    else:
        print_table(("tenant", "period", "from", "result"), [_row(each) for each in done])
    if failures:
        first = failures[0]
        message = f"{len(failures)} of the reports or recipients failed; the first: {first.message}"
        raise OperatorError(message, do=f"{first.do}; then galatea send-reports, which sends what is left")


def _sent(
    settings: Settings, each: "ScheduledReport", key_file: Path | None
) -> tuple[dict[str, Any], list[GalateaError]]:
    """The result of one report, and the recipients' errors."""
    from deploy.reports.delivery import deliver

    report = fetch(settings, each.period, each.tenant, None, key_file)
    if not _is_due(report):
        about = {"tenant": report.tenant, "period": report.period, "first": report.days.first}
        return {**about, "last": report.days.last, "due": False}, []
    done = deliver(report, each.to, settings, pdf=each.pdf)
    return outcome(report, done), [error for _, error in done.refused]


def _is_due(report: "Report") -> bool:
    """Whether its period is the one that ended last: of weeks, only on the day after."""
    return report.over and report.latest_day < report.days.last + timedelta(days=1)


def _row(each: dict[str, Any]) -> tuple[str, str, str, str]:
    if "error" in each:
        said = each["error"]
    elif each.get("due") is False:
        said = "not due today"
    else:
        counts = ((len(each["sent"]), "sent"), (len(each["already_sent"]), "before"), (len(each["refused"]), "refused"))
        said = ", ".join(f"{number} {what}" for number, what in counts if number)
    return each["tenant"], each["period"], str(each.get("first", "")), said
