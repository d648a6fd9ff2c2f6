"""The checks of `galatea doctor`: the machine, the settings and the running stack."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil

from deploy.airflow.component import is_installed
from deploy.checks.environment import (
    GIB,
    disk_finding,
    generation_finding,
    home_findings,
    remote_findings,
    report_findings,
    webhook_findings,
)
from deploy.checks.finding import Finding
from deploy.jars import FORMER_KAFKA, missing_jars
from deploy.java import find_java
from deploy.local.kafka import kafka_part, kafka_version
from deploy.local.ports import holder, is_free
from deploy.local.records import Records
from deploy.local.stack import components, jar_parts
from deploy.local.supervisor import SUPERVISOR
from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from deploy.settings import Settings


NEEDED_MEMORY = 6 * GIB
"""Of the whole stack with a rebuild, and of the machine itself."""
MORE_BROKER, MORE_CASSANDRA = GIB // 2, 3 * GIB // 4
"""Memory of each further node."""
MORE_AIRFLOW = 3 * GIB // 4
"""Memory of Airflow and the commands that its tasks run in parallel."""


def checkup(settings: "Settings") -> list[Finding]:
    """Run all checks. Return every finding, good ones too."""
    running = Records(settings.home).pid(SUPERVISOR) is not None
    findings = [
        *home_findings(settings),
        _python(),
        _java(),
        _jars(settings),
        _memory(settings, running=running),
        disk_finding(settings),
        _copies(settings),
        *_former_kafka(settings),
        *remote_findings(settings),
        *report_findings(settings),
        *webhook_findings(settings),
    ]
    leftovers = list(_leftovers(settings, running=running))
    return [
        *findings,
        *leftovers,
        *([generation_finding(settings)] if running else []),
        *([] if running or leftovers else _ports(settings)),
    ]  # leftovers hold their own ports


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", ok=True, found=version)


def _java() -> Finding:
    try:
        java = find_java()
    except OperatorError as error:
        return Finding("java", ok=False, found=error.message, do=error.do, blocks=True)
    return Finding("java", ok=True, found=f"{java.version}{' (bundled)' if java.bundled else ''}")


def _jars(settings: "Settings") -> Finding:
    missing = len(missing_jars(settings, jar_parts(settings)))
    do = "galatea up fetches them; without network copy the cache folder of another machine (GALATEA_CACHE_DIR)"
    return Finding(
        "jars", ok=not missing, found=f"{missing} missing" if missing else "all verified", do=do if missing else ""
    )


def _memory(settings: "Settings", *, running: bool) -> Finding:
    free = psutil.virtual_memory().available
    nodes = (settings.kafka.brokers - 1) * MORE_BROKER + (settings.cassandra.nodes - 1) * MORE_CASSANDRA
    needed = NEEDED_MEMORY + nodes + _more_heap(settings) + (MORE_AIRFLOW if is_installed() else 0)
    ok = running or free >= needed
    without_speed = ",".join(component.name for component in components(settings) if component.name != "speed")
    do = "" if ok else f"close something, or leave a part out: galatea up --only {without_speed}"
    return Finding("memory", ok, f"{free / GIB:.1f} GiB free, all parts take {needed / GIB:.1f}", do)


def _more_heap(settings: "Settings") -> int:
    """Bytes of heap beyond those of one archive and one speed process with the default settings."""
    both = (settings.archive, settings.speed)
    return sum(each.processes * each.heap_mb - type(each)().heap_mb for each in both) * 2**20


def _copies(settings: "Settings") -> Finding:
    nodes = (settings.kafka.brokers, settings.cassandra.nodes)
    if nodes == (1, 1):
        found = "one node each: acknowledged data survives crashes, not the loss of the disk"
    else:
        topics, tables = nodes
        found = f"topics in {topics}, tables in {tables}: of three nodes one may be lost; all are on this machine"
    return Finding("copies", ok=True, found=found)


def _former_kafka(settings: "Settings") -> Iterator[Finding]:
    part = kafka_part(settings.home)
    if part == FORMER_KAFKA:
        found = f"{kafka_version(part)}, which formatted this home: a power cut may split a transaction of alerts; "
        found += f"a new home runs {kafka_version()}"
        yield Finding("kafka", ok=True, found=found)


def _leftovers(settings: "Settings", *, running: bool) -> Iterator[Finding]:
    records = Records(settings.home)
    left = [] if running else [name for name in records.names() if records.session(name)]
    if left:
        yield Finding("leftovers", ok=False, found=f"{', '.join(left)} without a supervisor", do="galatea down")


def _ports(settings: "Settings") -> Iterator[Finding]:
    for component in components(settings, airflow=True):
        host = component.host
        for port, setting in component.ports.items():
            if is_free(port, host):
                yield Finding(f"port {port}", ok=True, found=f"free for {component.name}")
            else:
                do = f"end that process, or set {setting} to a free port"
                yield Finding(f"port {port}", ok=False, found=f"held by {holder(port, host)}", do=do, blocks=True)
