"""Runs Schemathesis, with all its checks, against the real app over a World, as several callers.

Left out is `/v1/live`, whose answers have no end: `tests/fast/unit/serving/test_live.py` has it.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from master_dataset.registry.stores import Store
from master_dataset.webhooks.endpoint import Endpoint, RegisteredEndpoint
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from serving_layer.api.openapi import EXAMPLES
from tests.support import World, receipt
from tests.support.asking import Asking
from tests.support.listening import served

CONFIGS = Path(__file__).parent
CALLERS = ("operator", "tenant", "reader", "nobody")
ALONE = "examples,coverage,fuzzing"
PHASES = {"alone": (ALONE, "schemathesis.toml"), "stateful": ("stateful", "stateful.toml")}
"""Each question for itself; and sequences, in which an answer says what is asked next."""
_GENERATED = re.compile(r"(\d[\d,]*) generated")
_LINKS = re.compile(r"API Links: +(\d+) covered")


class Tried(NamedTuple):
    """`cases`: how many requests were made up. `links`: how many of those described led from one to the next."""

    caller: str
    phase: str
    cases: int
    links: int
    is_well: bool
    said: str


def deployment() -> Asking:
    """Two tenants, two publications, what speed alone has, dead letters, rules, alerts, and a webhook."""
    world = World(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="UTC", tenant="acme"))
    for number, store in enumerate(("1", "2")):
        world.receive(receipt("2026-03-07T09:00:00Z", minor=100, store=store), "2026-03-07T09:00:01Z")
        later = receipt("2026-03-07T11:00:00Z", minor=200 + number, store=store, number=2)
        world.receive(later, "2026-03-07T11:00:01Z")
    world.rebuild("2026-03-07T09:30:00Z")
    world.rebuild("2026-03-07T10:00:00Z")
    asking = Asking(world)
    asking.letters.archive.receive(*[b"{"] * 7, receipt("yesterday", minor=100))
    asking.endpoints.put(RegisteredEndpoint(Endpoint(EXAMPLES["webhook"], "acme", "https://acme.example/", "secret")))
    for tenant, store in (("default", "1"), ("acme", "2")):
        rule = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}
        AlertRules(asking.versions).create(RuleAuthor(tenant, world.stores), rule)
        over = asking.told.raised("2026-03-07T09:00:00Z", tenant=tenant, store=store)
        asking.told.followed(over, "resolved", "2026-03-07T09:10:00Z")
        asking.told.raised("2026-03-07T11:00:00Z", tenant=tenant, store=store)
    return asking


def tried(caller: str, phase: str, cases: int, seed: int) -> Tried:
    """`phase`: of PHASES. `cases`: made up per operation, or sequences. The same seed makes up the same ones."""
    asking = deployment()
    phases, config = PHASES[phase]
    keys = {
        "operator": asking.keys.make("*", "read", "ingest", "operate"),
        "tenant": asking.keys.make("acme", "read", "ingest", "configure"),
        "reader": asking.keys.make("*", "read"),
        "nobody": None,
    }
    with served(asking) as url:
        words = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--config-file",
            str(CONFIGS / config),
            "run",
            f"{url}/openapi.json",
            "--exclude-path-regex",
            "/v1/live/",
            "--checks",
            "all",
            "-n",
            str(cases),
            "--seed",
            str(seed),
            "--no-color",
            "--suppress-health-check",
            "all",
            "--warnings",
            "off",
            "--phases",
            phases,
        ]
        if key := keys[caller]:
            words += ["-H", f"Authorization: Bearer {key}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    number, links = (_number(pattern, done.stdout) for pattern in (_GENERATED, _LINKS))
    return Tried(caller, phase, number, links, done.returncode == 0 and number > 0, done.stdout + done.stderr)


def _number(pattern: re.Pattern[str], said: str) -> int:
    found = pattern.search(said)
    return int(found[1].replace(",", "")) if found else 0
