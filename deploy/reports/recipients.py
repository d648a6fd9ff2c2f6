"""`reports.yaml`: who gets which report."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from deploy.reports.address import mail_address
from master_dataset.errors import BadFileError
from master_dataset.registry.hidden_characters import visible
from master_dataset.registry.tenants import wrong_tenant
from master_dataset.registry.yaml_text import read_text, read_yaml
from serving_layer.pages.language import Language
from serving_layer.responses.reports import ReportPeriodName

MOST_BYTES = 1024 * 1024
MOST_REPORTS, MOST_RECIPIENTS = 1000, 100


def _tenant(name: str) -> str:
    if wrong := wrong_tenant(name):
        raise ValueError(wrong)
    return name


class ScheduledReport(BaseModel):
    """A report that is sent whenever a period is over, in a `language`. `pdf`: the mail has it as a PDF, too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: Annotated[str, AfterValidator(_tenant)]
    period: ReportPeriodName
    to: tuple[Annotated[str, AfterValidator(mail_address)], ...] = Field(min_length=1, max_length=MOST_RECIPIENTS)
    pdf: bool = False
    language: Language = "en"


class ReportsFile(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reports: tuple[ScheduledReport, ...] = Field(max_length=MOST_REPORTS)


def read_reports(file: Path) -> tuple[ScheduledReport, ...]:
    """Read who gets which report.

    Raises:
        BadFileError: The file cannot be read, or a field is wrong; the error names it.
    """
    name = f"`{file}` of GALATEA_REPORTS_FILE"
    unreadable = "correct GALATEA_REPORTS_FILE, or the rights of the file"
    text = read_text(file, MOST_BYTES, if_too_long="list fewer reports", if_unreadable=unreadable)
    try:
        return ReportsFile.model_validate(read_yaml(text, most_characters=MOST_BYTES, surrogates=True)).reports
    except BadFileError as error:
        raise BadFileError(f"{name}: {error.message}", do=error.do) from error
    except ValidationError as error:
        wrong = error.errors()[0]
        place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in wrong["loc"]).lstrip(".")
        message = f"{name}: `{visible(place) or 'reports'}`: {wrong['msg'].removeprefix('Value error, ')}"
        raise BadFileError(message, do="correct the field: docs/how-to/reports.md lists them") from error
