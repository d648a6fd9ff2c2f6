"""Runs Schemathesis, with all its checks, against the real app over a World, as several callers.

Left out is `/v1/live`, whose answers have no end: `tests/unit/serving/test_live.py` has it.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from master_dataset.stores import Store
from tests.world import World, receipt
from tests.world.asking import Asking
from tests.world.listening import served

CONFIG = Path(__file__).with_name("schemathesis.toml")
CALLERS = ("operator", "tenant", "nobody")
_GENERATED = re.compile(r"(\d[\d,]*) generated")


class Tried(NamedTuple):
    """`cases`: how many requests were made up. `is_well`: no check failed."""

    caller: str
    cases: int
    is_well: bool
    said: str


def deployment() -> Asking:
    """Two tenants, a publication, something that speed alone has, and dead letters."""
    world = World(Store(id="1", timezone="Europe/Bratislava"), Store(id="2", timezone="UTC", tenant="acme"))
    for number, store in enumerate(("1", "2")):
        world.receive(receipt("2026-03-07T09:00:00Z", minor=100, store=store), "2026-03-07T09:00:01Z")
        later = receipt("2026-03-07T11:00:00Z", minor=200 + number, store=store, number=2)
        world.receive(later, "2026-03-07T11:00:01Z")
    world.rebuild("2026-03-07T10:00:00Z")
    asking = Asking(world)
    asking.letters.archive.receive(*[b"{"] * 7, receipt("yesterday", minor=100))
    return asking


def tried(caller: str, cases: int, seed: int) -> Tried:
    """`cases`: made up per operation and phase. The same seed makes up the same ones."""
    asking = deployment()
    keys = {
        "operator": asking.keys.make("*", "read", "ingest", "operate"),
        "tenant": asking.keys.make("acme", "read", "ingest"),
        "nobody": None,
    }
    with served(asking) as url:
        words = [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", f"{url}/openapi.json",
            "--exclude-path-regex", "/v1/live/", "--checks", "all", "-n", str(cases), "--seed", str(seed), "--no-color",
            "--suppress-health-check", "all", "--warnings", "off",
        ]  # fmt: skip
        if key := keys[caller]:
            words += ["-H", f"Authorization: Bearer {key}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = _GENERATED.search(done.stdout)
    number = int(found[1].replace(",", "")) if found else 0
    return Tried(caller, number, done.returncode == 0 and number > 0, done.stdout + done.stderr)
