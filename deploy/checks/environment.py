"""Checks of what is around Galatea's processes: logins, Spark, Airflow, folders, disks, alarms, and the speed layer."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from deploy.airflow.client import AirflowClient
from deploy.airflow.component import local_url
from deploy.cassandra import session_of
from deploy.checks.finding import Finding, attempt, fault, good, hint
from deploy.local.home import RESET_OR_MIGRATE, changed_settings, wider_rights
from deploy.local.records import Records
from deploy.reports.mail import MailServer
from deploy.reports.pdf import chromium_of
from deploy.reports.recipients import read_reports
from deploy.secret_files import operator_key
from deploy.sections import Networks
from deploy.spark import on_cluster
from master_dataset.errors import CassandraUnavailableError
from master_dataset.kafka.connection import PLAINTEXT
from master_dataset.kafka.topics import Topics
from views.control.generation import Generation, Generations

if TYPE_CHECKING:
    from deploy.settings import Settings

GIB = 1 << 30
NEEDED_DISK = 4 * GIB
ALARMS_SECONDS, CONNECT_SECONDS = 10.0, 3.0
SPARK_PORT = 7077


def home_findings(settings: "Settings") -> Iterator[Finding]:
    """Check that no variable differs from what the home remembers: every other command refuses one."""
    if changed := changed_settings(settings):
        yield fault("home", f"`{settings.home}` remembers other settings: {'; '.join(changed)}", RESET_OR_MIGRATE)
    if mode := wider_rights(settings.home):
        found = f"others than its owner can enter `{settings.home}` (mode {mode:o})"
        yield hint("home", found, f"chmod 700 {settings.home}, unless a volume of this deployment alone needs it")


def webhook_findings(settings: "Settings") -> Iterator[Finding]:
    """Check that webhooks may not call more than the operator means: tenants choose what they call."""
    do = "name only the networks of the receivers in GALATEA_WEBHOOK_NETWORKS"
    if found := settings.webhooks.link_local_networks:
        can = "webhooks can call link-local addresses, among them a cloud's metadata service"
        yield fault("webhooks", f"{_allowed(found)}: {can}", do, blocks=False)
    if found := [each for each in settings.webhooks.wide_networks if each not in found]:
        yield hint("webhooks", f"{_allowed(found)}: webhooks can call most of a private network", do)


def _allowed(networks: Networks) -> str:
    return f"GALATEA_WEBHOOK_NETWORKS allows {', '.join(map(str, networks))}"


def remote_findings(settings: "Settings") -> Iterator[Finding]:
    """Check what is outside the home: secured clusters, the Spark master, folders of master dataset and checkpoints."""
    if settings.kafka.security_protocol != PLAINTEXT:
        yield _login("kafka", settings.kafka.bootstrap, lambda: Topics(settings.kafka.connection).reach())
    if settings.cassandra.user or settings.cassandra.is_encrypted:
        yield _login("cassandra", settings.cassandra.contact_points, lambda: session_of(settings.cassandra.address))
    yield from spark_and_folder_findings(settings)


def spark_and_folder_findings(settings: "Settings") -> Iterator[Finding]:
    """Check the Spark master, the object store, and the folders outside of the home."""
    if on_cluster(settings) and settings.spark.master.startswith("spark://"):
        yield _spark(settings.spark.master)
    for name, uri in settings.paths.remote.items():
        yield _object_store(name, uri)
    for name in ("master_uri", "checkpoint_uri"):
        folder = as_folder(getattr(settings.paths, name))
        if folder is not None and settings.home not in folder.parents:
            yield _folder(f"GALATEA_{name.upper()}", folder)


def _login(name: str, where: str, connect: Callable[[], object]) -> Finding:
    """Check that a cluster lets this process in."""

    def enter() -> str:
        connect()
        return f"{where} lets this process in"

    return attempt(name, enter, blocks=False)


def _object_store(setting: str, uri: str) -> Finding:
    """Check that an object store can be written, and that several writers of a table are safe there."""
    from master_dataset.storage import probe  # noqa: PLC0415 - local folders need no client of an object store

    def write() -> str:
        probe(uri, setting)
        return f"{uri} can be written, with conditional PUT"

    return attempt(setting, write, blocks=True)


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


def airflow_finding(settings: "Settings") -> Finding:
    """Check that Airflow lets the user in and knows the DAGs, unless there is none."""
    url = settings.airflow.url
    if url == local_url(settings) and Records(settings.home).pid("airflow") is None:
        return good("airflow", "none; something else has to start `galatea rebuild`")

    def reach() -> str:
        AirflowClient.of(settings).reach()
        return f"{url} lets the user `{settings.airflow.user}` in, and knows the DAGs"

    return attempt("airflow", reach, blocks=False)


def report_findings(settings: "Settings") -> Iterator[Finding]:
    """Check what reports need, as far as it is configured: who gets which, and that the mail server lets Galatea in."""
    if settings.reports.file:
        yield attempt("reports", lambda: _scheduled(settings), blocks=False)
    if settings.smtp.host:
        yield attempt("mail server", lambda: _mail_server(settings), blocks=False)


def _scheduled(settings: "Settings") -> str:
    reports = read_reports(Path(settings.reports.file))
    if any(each.pdf for each in reports):
        chromium_of(settings.reports)
    return f"{len(reports)} to {sum(len(each.to) for each in reports)} recipients"


def _mail_server(settings: "Settings") -> str:
    smtp = settings.smtp
    with MailServer(smtp):
        signed_in = f"lets the user `{smtp.user}` in" if smtp.user else "asks for no user"
        return f"{smtp.host}:{smtp.port} {signed_in}; encrypted: {'no' if smtp.tls == 'none' else smtp.tls}"


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
    return Finding("speed", ok=True, found=f"generation {served} is read{_layout_note(newest)}")


def _layout_note(generation: Generation) -> str:
    """How to leave the layout of former releases."""
    note = ", in the layout of former releases; once none of their processes runs: galatea speed restart"
    return "" if generation.layout.packs_receipts else note


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


def disk_finding(settings: "Settings") -> Finding:
    """Check the free space of the home, and of the local folders of tables and checkpoints."""
    uris = (settings.paths.master_uri, settings.paths.corrected_uri, settings.paths.checkpoint_uri)
    wanted = [settings.home, *filter(None, map(as_folder, uris))]
    there = [next(each for each in (place, *place.parents) if each.exists()) for place in wanted]
    free = min(shutil.disk_usage(place).free for place in there)
    do = "" if free >= NEEDED_DISK else "free some, or set GALATEA_HOME to a folder on another disk"
    return Finding("disk", free >= NEEDED_DISK, f"{free / GIB:.1f} GiB free", do, blocks=free < GIB)
