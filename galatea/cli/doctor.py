"""`galatea doctor`: what is missing on this machine, and what to do about it."""

from typing import Annotated

from typer import Exit, Option

from deploy.console import answer, say, table
from deploy.settings import Settings


def doctor(as_json: Annotated[bool, Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Check memory, disk, ports, Java, jars, leftovers, and alarms of what runs. Exit 1 if something blocks."""
    from deploy.local.checkup import alarmed, checkup

    settings = Settings()
    findings = [*checkup(settings), *alarmed(settings)]
    if as_json:
        answer({"findings": [finding._asdict() for finding in findings]})
    else:
        table(("", "check", "found"), [("ok" if each.ok else "!!", each.check, each.found) for each in findings])
        for finding in findings:
            if not finding.ok:
                say(f"  {finding.check}: {finding.do}")
    if any(finding.blocks for finding in findings):
        raise Exit(1)
