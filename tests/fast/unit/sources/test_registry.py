"""Dropping a file into `sources/` registers it; a source that contradicts itself is refused at import."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import master_dataset.sources
from master_dataset.errors import DefinitionError, UnknownNameError
from master_dataset.fields import Field, Id, Instant, Lines
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import DEFAULT_TERMS, Terms
from master_dataset.source import Record, Source
from master_dataset.sources import registered_sources, source_named
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

DROPPED = """
from tests.fast.unit.sources.test_registry import DOORS
"""


class Opening(msgspec.Struct, frozen=True):
    door: str


def opening(record: Record, _: Terms) -> Opening:
    return Opening(record["door"])


FIELDS: dict[str, Field | Lines] = {"store": Id(), "door": Id(), "at": Instant()}
DOORS = Source(
    topic="doors",
    store="store",
    happened_at="at",
    identity=("store", "door", "at"),
    fields=FIELDS,
    payload=Opening,
    derive=opening,
    content=("door",),
    example={},
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(master_dataset.sources, "__path__", [*master_dataset.sources.__path__, str(tmp_path)])
    registered_sources.cache_clear()
    yield tmp_path
    registered_sources.cache_clear()
    for name in [each for each in sys.modules if each.startswith("master_dataset.sources.dropped")]:
        del sys.modules[name]


def test_a_dropped_file_is_a_registered_source(folder: Path) -> None:
    known = set(registered_sources())
    registered_sources.cache_clear()
    (folder / "dropped_doors.py").write_text(DROPPED)

    found = registered_sources()

    assert set(found) == known | {"doors"}


def test_two_sources_of_one_topic_are_refused(folder: Path) -> None:
    (folder / "dropped_doors.py").write_text(DROPPED)
    (folder / "dropped_twice.py").write_text(
        DROPPED + "from dataclasses import replace\nX = replace(DOORS, content=())\n"
    )

    with pytest.raises(DefinitionError, match="Two sources claim the topic `doors`"):
        registered_sources()


def test_an_unknown_name_says_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        source_named("pos_transaction")

    assert caught.value.do == "Did you mean `pos_transactions`?"
    assert caught.value.exit_code == 2


def test_any_source_parses_without_further_code() -> None:
    parsed = parse(DOORS, b'{"store": 1, "door": "A", "at": "2026-03-07T09:05:00Z"}', lambda _: DEFAULT_TERMS)

    assert isinstance(parsed, Event)
    assert (parsed.store, parsed.identity, parsed.payload.door) == ("1", '["1","A",1772874300000]', "A")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"store": "shop"}, "`doors` names `shop`, which is none of its fields."),
        ({"identity": ("store", "gate")}, "`doors` names `gate`, which is none of its fields."),
        ({"content": ("gate",)}, "`doors` names `gate`, which is none of its payload columns."),
        ({"store": "at"}, "`doors` needs `at` as Id."),
        ({"happened_at": "door"}, "`doors` needs `door` as Instant."),
        ({"identity": ("store",)}, "The identity of `doors` needs `store`, `at` and one field more."),
        ({"fields": {**FIELDS, "door": Lines({})}}, "`door` cannot be part of an identity."),
    ],
)
def test_a_source_that_contradicts_itself_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        replace(DOORS, **change)  # type: ignore[arg-type]

    assert str(caught.value) == message


def test_a_source_survives_the_way_to_a_worker() -> None:
    arrived = pickle.loads(pickle.dumps(POS_TRANSACTIONS))  # noqa: S301 - our own bytes

    assert arrived == POS_TRANSACTIONS
    assert hash(arrived) == hash(POS_TRANSACTIONS)


def test_the_sources_load_neither_engine_nor_arrow_nor_a_driver() -> None:
    imports = "import sys, master_dataset.sources as sources, master_dataset.parsing.parse"
    code = f"{imports}; sources.registered_sources(); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"pyspark", "pyarrow", "confluent_kafka", "cassandra", "fastapi"} & set(loaded)
