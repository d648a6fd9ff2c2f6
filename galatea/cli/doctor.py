"""`galatea doctor`: checks of the machine and the running stack, or of everything that a deployment depends on."""

from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from master_dataset.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deploy.checks.finding import Finding, Group

Deployment = Annotated[
    bool,
    Option(
        "--deployment",
        help="Check the clusters instead: versions, topics, tables, rights, clocks, certificates, releases.",
    ),
]
Process = Annotated[
    str,
    Option("--process", help="With --deployment: check the rights of this process only.", show_default=False),
]


def doctor(deployment: Deployment = False, process: Process = "", as_json: AsJson = False) -> None:
    """Check memory, disk, ports, Java, jars, leftover processes and alarms; with --deployment, your clusters.

    Exit 1 if something keeps Galatea from starting.
    """
    settings = Settings.ignoring_record()
    if process and not deployment:
        raise RequestError("--process is for the checks of a deployment", do="add --deployment")
    if deployment:
        from deploy.checks.deployment import deployment_groups

        findings = _print_groups(deployment_groups(settings, process), as_json=as_json)
    else:
        from deploy.checks.environment import alarm_findings
        from deploy.local.checkup import checkup

        findings = [*checkup(settings), *alarm_findings(settings)]
        if as_json:
            print_json({"findings": [finding._asdict() for finding in findings]})
        else:
            _print_findings(findings)
    if any(finding.blocks for finding in findings):
        raise Exit(1)


def _print_groups(groups: "Iterable[Group]", *, as_json: bool) -> "Sequence[Finding]":
    if as_json:
        known = list(groups)
        listed = [{"group": group.name, **each._asdict()} for group in known for each in group.findings]
        print_json({"findings": listed})
        return [each for group in known for each in group.findings]
    findings: list[Finding] = []
    for group in groups:
        print_message(f"{group.name}:")
        _print_findings(group.findings)
        findings += group.findings
    return findings


def _mark(finding: "Finding") -> str:
    if not finding.ok:
        return "!!"
    return "hint" if finding.do else "ok"


def _print_findings(findings: "Sequence[Finding]") -> None:
    print_table(("", "check", "found"), [(_mark(each), each.check, each.found) for each in findings])
    for finding in findings:
        if finding.do:
            print_message(f"  {finding.check}: {finding.do}")
