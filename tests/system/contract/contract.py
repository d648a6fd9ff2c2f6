"""Runs Schemathesis against the real app over a World, as several callers.

The phases `alone` and `stateful` run all its checks with configurations of ours; the phase `default` runs its default
checks without any configuration. `/v1/live` is left out, as its responses never end; `test_live.py` covers it.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec

from master_dataset.registry.floor_plans_file import read_image
from master_dataset.registry.products import Product, ProductSpool
from master_dataset.registry.stores import GroupVersion, Store
from master_dataset.webhooks.endpoint import Endpoint, RegisteredEndpoint
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from serving_layer.api.openapi import EXAMPLES
from tests.support import World, receipt
from tests.support.floor_plans import png
from tests.support.openapi_contract import Document
from tests.support.world_api import Asking
from tests.support.world_clients import served
from tests.system.contract.refusals import Refusal, Request, is_explained

CONFIGS = Path(__file__).parent
CALLERS = ("operator", "tenant", "reader", "nobody")
ALONE = "examples,coverage,fuzzing"
PHASES = {"alone": (ALONE, "schemathesis.toml"), "stateful": ("stateful", "stateful.toml")}
"""Single requests, and sequences in which a response supplies the arguments of the next request."""
VALIDATION = frozenset({"positive_data_acceptance", "negative_data_rejection"})
"""Checks that compare the schema with what is accepted. A schema cannot express every rule; `refusals` has those."""
_GENERATED = re.compile(r"(\d[\d,]*) generated")
_LINKS = re.compile(r"API Links: +(\d+) covered")


class Tried(NamedTuple):
    """What Schemathesis found.

    `cases`: generated requests. `links`: those of the described links that were followed. `rejections`: failed checks
    that a documented error explains.
    """

    caller: str
    phase: str
    cases: int
    links: int
    is_well: bool
    said: str
    rejections: int = 0


class _Check(msgspec.Struct):
    name: str
    status: str


class _Content(msgspec.Struct):
    base64: bytes = msgspec.field(name="$base64", default=b"")


class _Response(msgspec.Struct):
    status_code: int
    content: _Content | None = None


class _Request(msgspec.Struct):
    method: str
    uri: str
    headers: Mapping[str, Sequence[str]] = {}


class _Interaction(msgspec.Struct):
    request: _Request
    response: _Response | None = None


class _Recorder(msgspec.Struct):
    label: str
    checks: Mapping[str, Sequence[_Check]] = {}
    interactions: Mapping[str, _Interaction] = {}


class _Scenario(msgspec.Struct):
    recorder: _Recorder


class _Event(msgspec.Struct):
    """A line of Schemathesis's NDJSON report."""

    scenario: _Scenario | None = msgspec.field(name="ScenarioFinished", default=None)
    end: object = msgspec.field(name="EngineFinished", default=None)
    error: object = msgspec.field(name="NonFatalError", default=None)
    fatal: object = msgspec.field(name="FatalError", default=None)


class _Problem(msgspec.Struct):
    code: str


def deployment() -> Asking:
    """Two tenants with groups, products and targets, two publications, speed rows, dead letters, rules, and more."""
    north = (GroupVersion(None, {"region": "north"}), GroupVersion(date(2026, 3, 7), {"region": "south"}))
    world = World(
        Store(id="1", timezone="Europe/Bratislava", groups=north),
        Store(id="2", timezone="UTC", tenant="acme", groups=north),
    )
    for number, store in enumerate(("1", "2")):
        world.receive(receipt("2026-03-07T09:00:00Z", minor=100, store=store), "2026-03-07T09:00:01Z")
        later = receipt("2026-03-07T11:00:00Z", minor=200 + number, store=store, number=2)
        world.receive(later, "2026-03-07T11:00:01Z")
    world.rebuild("2026-03-07T09:30:00Z")
    world.rebuild("2026-03-07T10:00:00Z")
    asking = Asking(world)
    asking.dead_letters.archive.receive(*[b"{"] * 7, receipt("yesterday", minor=100))
    asking.endpoints.put(RegisteredEndpoint(Endpoint(EXAMPLES["webhook"], "acme", "https://acme.example/", "secret")))
    for tenant, store in (("default", "1"), ("acme", "2")):
        with ProductSpool() as spool:
            spool.add(1, Product("1", "Milk", "Meadow", ("Food", "Dairy"), valid_from=date(2026, 1, 1)))
            asking.products.load(tenant, spool, replace=True)
        asking.targets.load(tenant, {store: {"net_sales": {date(2026, 3, 7): 1_000_000_000}}})
        asking.floor_plans.save(tenant, store, image=read_image(png()))
        rule = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}
        AlertRules(asking.versions).create(RuleAuthor(tenant, world.stores), rule)
        over = asking.alert_tables.raised("2026-03-07T09:00:00Z", tenant=tenant, store=store)
        asking.alert_tables.followed(over, "resolved", "2026-03-07T09:10:00Z")
        asking.alert_tables.raised("2026-03-07T11:00:00Z", tenant=tenant, store=store)
    return asking


def tried(caller: str, phase: str, cases: int, seed: int) -> Tried:
    """All checks, with the configuration of a phase. The same seed generates the same requests.

    `cases`: per operation, or sequences.
    """
    phases, config = PHASES[phase]
    configured = ("--config-file", str(CONFIGS / config))
    options = ("--checks", "all", "--suppress-health-check", "all", "--warnings", "off", "--phases", phases)
    done = _run(caller, cases, seed, configured, options)
    number, links = _counts(done)
    return Tried(caller, phase, number, links, done.returncode == 0 and number > 0, done.stdout + done.stderr)


def tried_by_default(
    caller: str, cases: int, seed: int, *, changed: Callable[[Document], None] | None = None, only: str = ""
) -> Tried:
    """The default phases and checks, without a configuration. Only refusals of `refusals` may fail a check.

    Schemathesis goes on after a failure, so that an expected one hides no other.

    Args:
        caller: who asks.
        cases: per operation.
        seed: generates the same requests again.
        changed: changes what the document says, and not what the API does.
        only: the path of the operations that are tried; all if empty.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.ndjson"
        options = ["--continue-on-failure", "--report", "ndjson", "--report-ndjson-path", str(report)]
        options += ["--include-path", only] if only else []
        done = _run(caller, cases, seed, (), options, changed)
        lines = report.read_bytes().splitlines() if report.exists() else []
    events = [msgspec.json.decode(line, type=_Event) for line in lines]
    failures = [failure for event in events if event.scenario for failure in _failures(event.scenario.recorder)]
    explained = sum(is_documented for _, is_documented in failures)
    unexplained = [str(error) for event in events for error in (event.error, event.fatal) if error is not None]
    unexplained += [said for said, is_documented in failures if not is_documented]
    number, links = _counts(done)
    is_well = not unexplained and number > 0 and any(event.end for event in events)
    said = "\n".join(unexplained) or done.stdout + done.stderr
    return Tried(caller, "default", number, links, is_well, said, explained)


def _failures(recorder: _Recorder) -> Iterator[tuple[str, bool]]:
    """Each failed check in words, and whether the refusal is one that a schema cannot announce."""
    for case, checks in recorder.checks.items():
        interaction = recorder.interactions.get(case)
        for check in checks:
            if check.status != "success":
                refusal = _refusal(interaction.response if interaction else None)
                sent = interaction.request if interaction else None
                said = f"{sent.method} {sent.uri[:300]}" if sent else recorder.label
                is_known = check.name in VALIDATION and bool(refusal and sent and is_explained(_sent(sent), refusal))
                yield f"{recorder.label}: {check.name} with {refusal}: {said}", is_known


def _sent(request: _Request) -> Request:
    size = sum(len(name) + len(value) for name, values in request.headers.items() for value in values)
    return Request(request.method, request.uri, size)


def _refusal(response: _Response | None) -> Refusal | None:
    """The problem in a response; None if there is none in it."""
    if response is None or response.content is None or response.status_code < HTTPStatus.BAD_REQUEST:
        return None
    try:
        return Refusal(response.status_code, msgspec.json.decode(response.content.base64, type=_Problem).code)
    except msgspec.MsgspecError:
        return None


def _run(  # noqa: PLR0913, PLR0917 - the words of a command
    caller: str,
    cases: int,
    seed: int,
    configured: Sequence[str],
    options: Sequence[str],
    changed: Callable[[Document], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    asking = deployment()
    if changed is not None:
        changed(asking.app.openapi())  # it is made once, and kept
    keys = {
        "operator": asking.keys.make("*", "read", "ingest", "operate"),
        "tenant": asking.keys.make("acme", "read", "ingest", "configure"),
        "reader": asking.keys.make("*", "read"),
        "nobody": None,
    }
    key = keys[caller]
    with served(asking) as url, tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "schemathesis.cli", *configured, "run", f"{url}/openapi.json"]
        words += ["--exclude-path-regex", "/v1/live/", "-n", str(cases), "--seed", str(seed), "--no-color", *options]
        words += ["-H", f"Authorization: Bearer {key}"] if key else []
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def _counts(done: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    number, links = (_number(pattern, done.stdout) for pattern in (_GENERATED, _LINKS))
    return number, links


def _number(pattern: re.Pattern[str], said: str) -> int:
    found = pattern.search(said)
    return int(found[1].replace(",", "")) if found else 0
