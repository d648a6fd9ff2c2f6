"""The checks of `galatea doctor --deployment`: everything that a deployment depends on, on any clusters."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from deploy.checks.cassandra import cassandra_findings
from deploy.checks.certificates import certificate_findings
from deploy.checks.environment import (
    airflow_finding,
    alarm_findings,
    disk_finding,
    generation_finding,
    home_findings,
    report_findings,
    spark_and_folder_findings,
    webhook_findings,
)
from deploy.checks.finding import Finding, Group, fault, good, hint
from deploy.checks.kafka import kafka_findings
from deploy.local.rights import RIGHTS, Rights, all_rights
from deploy.settings import FUTURE
from master_dataset.errors import UnknownNameError

if TYPE_CHECKING:
    from deploy.settings import Settings

ALERTS_LOOK_BACK = timedelta(days=13)
"""How far back alert rules compare."""
EVERY_PROCESS = "all processes"
API, REBUILDS_OF_API = "api", "api, for the rebuilds that it starts"


def deployment_groups(settings: "Settings", process: str = "") -> Iterator[Group]:
    """Run the checks, system by system.

    Args:
        settings: The settings.
        process: The process whose rights are checked; if empty, those of every process: on a secured local stack each
            as its own user, elsewhere all as the one user of the settings. For `api`, also those of rebuilds, unless
            prompt correction is off.

    Yields:
        A group of findings as soon as it is complete.

    Raises:
        UnknownNameError: There is no such process.
    """
    users = users_of(settings, process)
    topics_of = RIGHTS[process] if process else all_rights()
    yield Group("settings", list(setting_findings(settings)))
    yield Group("certificates", list(certificate_findings(settings)))
    yield Group("kafka", list(kafka_findings(settings, users, topics_of)))
    of_cassandra = list(cassandra_findings(settings, users))
    yield Group("cassandra", of_cassandra)
    yield Group("spark and disk", [disk_finding(settings), *spark_and_folder_findings(settings)])
    is_readable = not process and not any(each.blocks for each in of_cassandra)
    running = [generation_finding(settings)] if is_readable else []
    yield Group("running", [airflow_finding(settings), *report_findings(settings), *running, *alarm_findings(settings)])


def users_of(settings: "Settings", process: str) -> Mapping[str, tuple["Settings", Rights]]:
    """Return names of processes, or of all together, to their settings and rights. UnknownNameError.

    The API starts rebuilds, for late events on its own account: as `batch` on a secured local stack, elsewhere with its
    own login.
    """
    if process and process not in RIGHTS:
        raise UnknownNameError("process", process, RIGHTS)
    if process:
        own = {process: (settings.as_user(process), RIGHTS[process])}
        rebuilds = {REBUILDS_OF_API: (settings.as_user(process).as_user("batch"), RIGHTS["batch"])}
        return own | (rebuilds if process == API and settings.batch.prompt_correction else {})
    if settings.stack.secure:
        return {name: (settings.as_user(name), rights) for name, rights in RIGHTS.items()}
    return {EVERY_PROCESS: (settings, all_rights())}


def setting_findings(settings: "Settings") -> Iterator[Finding]:
    """Say which times the cut rests on. Settings that break its rules are refused before this."""
    yield from home_findings(settings)
    speed, kafka = settings.speed, settings.kafka
    found = f"A {_hours(speed.oldest)} + F {_hours(FUTURE)} <= D {_hours(speed.remembered)}"
    kept = f"speed rows {speed.ttl.days} days + D <= records {kafka.retention_days} days"
    yield good("rules of the cut", f"{found}; {kept}; skew {settings.layers.skew_seconds:g} s")
    if settings.layers.skew_seconds == 0:
        do = "set GALATEA_SKEW_SECONDS to what NTP keeps clocks within, 5 by default"
        yield fault("skew", "GALATEA_SKEW_SECONDS=0: clocks of several machines are never equal", do, blocks=False)
    if kafka.retention <= ALERTS_LOOK_BACK:
        days = ALERTS_LOOK_BACK.days
        found = f"GALATEA_KAFKA_RETENTION_DAYS={kafka.retention_days}: alert rules look {days} days back"
        yield hint("retention", found, f"GALATEA_KAFKA_RETENTION_DAYS={days + 1} galatea migrate")
    yield from webhook_findings(settings)


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):g} h"
