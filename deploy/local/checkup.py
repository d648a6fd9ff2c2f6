"""The checks of `galatea doctor`: the machine, the settings, the running stack and its alarms."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import httpx
import psutil

from deploy.airflow.component import is_installed
from deploy.cassandra import session_of
from deploy.jars import missing_jars
from deploy.java import find_java
from deploy.local.ports import holder, is_free
from deploy.local.records import Records
from deploy.local.stack import components
from deploy.local.supervisor import SUPERVISOR
from deploy.secret_files import operator_key
from deploy.spark import on_cluster
from master_dataset.errors import CassandraUnavailableError, GalateaError, OperatorError
from master_dataset.kafka.connection import PLAINTEXT
from master_dataset.kafka.topics import Topics
from views.control.generation import Generation, Generations

if TYPE_CHECKING:
    from deploy.settings import Settings


GIB = 1 << 30
NEEDED_MEMORY = 6 * GIB
"""Of the whole stack with a rebuild, and of the machine itself."""
MORE_BROKER, MORE_CASSANDRA = GIB // 2, 3 * GIB // 4
"""Memory of each further node."""
MORE_AIRFLOW = 3 * GIB // 4
"""Memory of Airflow and the commands that its tasks run in parallel."""
NEEDED_DISK = 4 * GIB
ALARMS_SECONDS, CONNECT_SECONDS = 10.0, 3.0
SPARK_PORT = 7077


class Finding(NamedTuple):
    """One result. `do` is the next step, "" if all is well. If `blocks`, nothing starts until it is fixed."""

    check: str
    ok: bool
    found: str
    do: str = ""
    blocks: bool = False


def checkup(settings: "Settings") -> list[Finding]:
    """Run all checks. Return every finding, good ones too."""
    running = Records(settings.home).pid(SUPERVISOR) is not None
    findings = [
        _python(),
        _java(),
        _jars(settings),
        _memory(settings, running=running),
        _disk(settings),
        _copies(settings),
        *remote_findings(settings),
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
    missing = len(missing_jars(settings))
    do = "galatea up fetches them; without network copy the cache folder of another machine (GALATEA_CACHE_DIR)"
    return Finding(
        "jars", ok=not missing, found=f"{missing} missing" if missing else "all verified", do=do if missing else ""
    )


def _memory(settings: "Settings", *, running: bool) -> Finding:
    free = psutil.virtual_memory().available
    nodes = (settings.kafka.brokers - 1) * MORE_BROKER + (settings.cassandra.nodes - 1) * MORE_CASSANDRA
    needed = NEEDED_MEMORY + nodes + (MORE_AIRFLOW if is_installed() else 0)
    ok = running or free >= needed
    without_speed = ",".join(component.name for component in components(settings) if component.name != "speed")
    do = "" if ok else f"close something, or leave a part out: galatea up --only {without_speed}"
    return Finding("memory", ok, f"{free / GIB:.1f} GiB free, all parts take {needed / GIB:.1f}", do)


def _disk(settings: "Settings") -> Finding:
    wanted = [settings.home, as_folder(settings.paths.master_uri) or settings.home]
    there = [next(each for each in (place, *place.parents) if each.exists()) for place in wanted]
    free = min(shutil.disk_usage(place).free for place in there)
    do = "" if free >= NEEDED_DISK else "free some, or set GALATEA_HOME to a folder on another disk"
    return Finding("disk", free >= NEEDED_DISK, f"{free / GIB:.1f} GiB free", do, blocks=free < GIB)


def _copies(settings: "Settings") -> Finding:
    nodes = (settings.kafka.brokers, settings.cassandra.nodes)
    if nodes == (1, 1):
        found = "one node each: acknowledged data survives crashes, not the loss of the disk"
    else:
        topics, tables = nodes
        found = f"topics in {topics}, tables in {tables}: of three nodes one may be lost; all are on this machine"
    return Finding("copies", ok=True, found=found)


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


def remote_findings(settings: "Settings") -> Iterator[Finding]:
    """Check what is outside the home: secured clusters, the Spark master, folders of master dataset and checkpoints."""
    if settings.kafka.security_protocol != PLAINTEXT:
        yield _login("kafka", settings.kafka.bootstrap, lambda: Topics(settings.kafka.connection).reach())
    if settings.cassandra.user or settings.cassandra.is_encrypted:
        yield _login("cassandra", settings.cassandra.contact_points, lambda: session_of(settings.cassandra.address))
    if on_cluster(settings) and settings.spark.master.startswith("spark://"):
        yield _spark(settings.spark.master)
    for name in ("master_uri", "checkpoint_uri"):
        folder = as_folder(getattr(settings.paths, name))
        if folder is not None and settings.home not in folder.parents:
            yield _folder(f"GALATEA_{name.upper()}", folder)


def _login(name: str, where: str, connect: Callable[[], object]) -> Finding:
    """Check that a cluster lets this process in."""
    try:
        connect()
    except GalateaError as error:
        return Finding(name, ok=False, found=error.message, do=error.do)
    return Finding(name, ok=True, found=f"{where} lets this process in")


def as_folder(uri: str) -> Path | None:
    """Return the folder, None if the URI is not one."""
    return None if "://" in uri else Path(uri)


def _spark(url: str) -> Finding:
    places = [urlsplit(f"//{place}") for place in url.removeprefix("spark://").split(",")]
    silent = [place.netloc for place in places if not _answers(place.hostname or "", place.port or SPARK_PORT)]
    ok = len(silent) < len(places)  # of several masters one leads
    do = "" if ok else "start the Spark master and its workers, or correct GALATEA_SPARK_MASTER"
    return Finding("spark", ok, f"{url} {'answers' if ok else 'does not answer'}", do)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _folder(setting: str, folder: Path) -> Finding:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    ok = os.access(there, os.W_OK)
    do = "" if ok else f"mount it here as on every worker, or correct {setting}"
    return Finding(setting, ok, f"{folder} {'can' if ok else 'cannot'} be written", do)


def generation_finding(settings: "Settings") -> Finding:
    """Check which generation of the speed layer is served, and what a newer one still has to read."""
    try:
        generations = Generations(session_of(settings.cassandra.address))
    except CassandraUnavailableError as error:
        return Finding("speed", ok=False, found=error.message, do="galatea status, then logs/cassandra.log")
    served = generations.pointer().generation
    newest = generations.find(generations.greatest())
    if newest is None:
        return Finding("speed", ok=False, found="no generation was begun yet", do="galatea status, then logs/speed.log")
    if newest.number > served:
        return _coming(generations, newest, served, settings.definitions)
    if generations.claims.is_replaced(served):
        do = "galatea status: the speed process has to run"
        return Finding("speed", ok=False, found=f"generation {served} was replaced, no other was begun", do=do)
    return Finding("speed", ok=True, found=f"generation {served} is read")


def _coming(generations: Generations, newest: Generation, served: int, current: Mapping[str, str]) -> Finding:
    done, total = generations.progress(newest, served)
    read = f"generation {served} is read" if served else "none is read yet"
    found = f"{read}; {newest.number} takes over after at most {total - done:,} more records"
    pointer = generations.pointer()
    if pointer.publication and dict(pointer.definitions) != current:
        return Finding("speed", ok=False, found=f"{read}; {newest.number} has new definitions", do="galatea rebuild")
    return Finding("speed", ok=True, found=found)


def alarm_findings(settings: "Settings") -> list[Finding]:
    """Ask the REST interface for open alarms, if it runs. Return one finding per alarm, or one that there is none."""
    if Records(settings.home).pid("api") is None:
        return []
    url, trust = f"{settings.api_url}/v1/freshness", settings.api_trust
    headers = {"Authorization": f"Bearer {operator_key(settings.home / 'operator.key')}"}
    try:
        answer = httpx.get(url, headers=headers, timeout=ALARMS_SECONDS, trust_env=False, verify=trust)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        return [Finding("alarms", ok=False, found=f"not known: {error}", do="galatea status")]
    alarms = [
        Finding(each["name"], ok=False, found=f"since {each['since']}: {each['meaning']}", do=each["do"])
        for each in answer.json()["alarms"]
    ]
    return alarms or [Finding("alarms", ok=True, found="none")]
