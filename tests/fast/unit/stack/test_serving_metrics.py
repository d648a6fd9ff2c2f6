"""Prometheus metrics of the API are read at scrape time, and say if nothing can be read."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import get_args

from deploy.services.api_metrics import ServingMetrics
from master_dataset.errors import CassandraUnavailableError
from serving_layer.health.alarms import RULES
from serving_layer.health.freshness import FreshnessService
from serving_layer.health.watched import LagMeasurement
from tests.support import World
from tests.support.process_metrics import WorldWatch
from tests.support.world import at
from tests.support.world_api import Asking
from views.control.recompute import Cause

TTL = timedelta(days=7)
CUT = at("2026-11-21T09:00:00Z")


class Down(WorldWatch):
    """A store that does not answer."""

    async def lag(self, reader: str) -> Sequence[LagMeasurement]:
        raise CassandraUnavailableError(f"no answer about {reader}", do="galatea status")


def metrics_of(watch: WorldWatch, now: datetime) -> dict[str, float]:
    """Each sample's name and labels to its value."""
    freshness = FreshnessService(Asking(watch.world).answers, watch, TTL, lambda: now)

    async def scrape() -> dict[str, float]:
        states = {"speed": "running", "archive": "backing_off"}
        metrics = ServingMetrics(freshness, asyncio.get_running_loop(), lambda: states)
        families = await asyncio.to_thread(lambda: list(metrics.collect()))
        samples = [sample for family in families for sample in family.samples]
        return {" ".join((each.name, *each.labels.values())): each.value for each in samples}

    return asyncio.run(scrape())


def test_publication_ages_and_every_alarm_are_exported() -> None:
    world = World()
    world.rebuild(CUT)
    world.pass_time(CUT + timedelta(seconds=20))

    values = metrics_of(WorldWatch(world), CUT + timedelta(days=5))

    assert values["galatea_cassandra_up"] == 1
    assert (values["galatea_store_up"], values["galatea_publications_total"], values["galatea_generation"]) == (1, 1, 1)
    assert values["galatea_cut_age_seconds"] == timedelta(days=5).total_seconds()
    assert values["galatea_speed_as_of_age_seconds"] == values["galatea_cut_age_seconds"] - 20
    alarms_now = {name: values[f"galatea_alarm {name}"] for name in RULES}
    assert alarms_now == dict.fromkeys(RULES, 0) | {"speed_rows_expire": 1}


def test_the_newest_ledger_is_exported_by_cause() -> None:
    world = World()
    world.rebuild(CUT)
    totals = {"cells": 7, "rows": 9, "causes": {"waited": {"cells": 7}}}
    world.ledgers["1"] = world.ledgers["1"]._replace(totals=totals)
    world.rebuild(CUT + timedelta(hours=1))
    del world.ledgers["2"]

    values = metrics_of(WorldWatch(world), CUT + timedelta(hours=2))

    corrected = {name: value for name, value in values.items() if name.startswith("galatea_corrections ")}
    assert corrected == {f"galatea_corrections {cause}": 0 for cause in get_args(Cause)} | {
        "galatea_corrections waited": 7
    }


def test_without_cassandra_only_running_processes_are_reported() -> None:
    assert metrics_of(Down(World()), CUT) == {
        "galatea_component_running speed": 1,
        "galatea_component_running archive": 0,
        "galatea_cassandra_up": 0,
        "galatea_store_up": 0,
    }
