"""`galatea doctor`: checks of the machine and the running stack."""

from typer import Exit

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.options import AsJson


def doctor(as_json: AsJson = False) -> None:
    """Check memory, disk, ports, Java, jars, leftover processes and alarms. Exit 1 if the stack cannot start."""
    from deploy.local.checkup import alarm_findings, checkup

    settings = Settings()
    findings = [*checkup(settings), *alarm_findings(settings)]
    if as_json:
        print_json({"findings": [finding._asdict() for finding in findings]})
    else:
        print_table(("", "check", "found"), [("ok" if each.ok else "!!", each.check, each.found) for each in findings])
        for finding in findings:
            if not finding.ok:
                print_message(f"  {finding.check}: {finding.do}")
    if any(finding.blocks for finding in findings):
        raise Exit(1)
