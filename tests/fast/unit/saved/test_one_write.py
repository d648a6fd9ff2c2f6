"""What a file loads is one write of Cassandra: if it is too large for that, nothing is sent."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import InvalidRequest
from cassandra.query import BatchStatement

from master_dataset.errors import BadFileError
from master_dataset.registry.one_write import MOST_BYTES, one_write
from master_dataset.registry.rule_versions import RuleEdit, RuleVersions
from serving_layer.saved.annotations import MAX_ANNOTATIONS, MAX_STORES, MAX_TEXT, Annotation
from serving_layer.tables.async_session import AsyncSession
from serving_layer.tables.saved import AnnotationTables

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = date(2026, 11, 21)
STORES = tuple(map(str, range(MAX_STORES)))


def notes(number: int, stores: tuple[str, ...] = (), text: str = "x" * MAX_TEXT) -> list[Annotation]:
    note = Annotation("default", DAY, DAY, "note", text, stores, "a key of 24 characters..", NOW).with_id()
    return [note] * number


class Session:
    """A driver session that collects what is written. `refuses`: what it raises instead."""

    def __init__(self, refuses: Exception | None = None) -> None:
        self.refuses = refuses
        self.written: list[object] = []

    def execution_profile_clone_update(self, *_: object, **__: object) -> None:
        """Nothing of it matters here."""

    def prepare(self, cql: str) -> str:
        return cql.replace("?", "%s")  # a batch then takes it without a cluster

    def execute(self, statement: object, *_: object) -> Any:
        if isinstance(statement, str) and statement.startswith("SELECT"):
            return SimpleNamespace(one=lambda: None)
        self._write(statement)
        return SimpleNamespace(one=lambda: SimpleNamespace(applied=True))

    def execute_async(self, statement: object, *_: object, **__: object) -> Any:
        failed: list[Exception] = []
        try:
            self._write(statement)
        except InvalidRequest as error:
            failed.append(error)

        def add_callbacks(done: Any, fail: Any) -> None:
            fail(failed[0]) if failed else done(None)

        return SimpleNamespace(add_callbacks=add_callbacks, has_more_pages=False)

    def _write(self, statement: object) -> None:
        if self.refuses:
            raise self.refuses
        self.written.append(statement)


def put(session: Any, annotations: list[Annotation]) -> None:
    asyncio.run(AnnotationTables(AsyncSession(session)).put(annotations))


def rules(session: Any, number: int, body: str) -> Any:
    edits = [RuleEdit(f"default/{each}", body, 0) for each in range(number)]
    return RuleVersions(session, timedelta(seconds=2), lambda: NOW).follow_all(edits)


@pytest.mark.parametrize(
    "annotations",
    [
        notes(MAX_ANNOTATIONS, STORES),
        notes(1_000, STORES, "x"),
        notes(MAX_ANNOTATIONS, text="\N{GRINNING FACE}" * MAX_TEXT),
    ],
    ids=["largest", "many stores", "long texts"],
)
def test_annotations_that_are_too_large_at_once_are_refused_before_a_write(annotations: list[Annotation]) -> None:
    session = Session()

    with pytest.raises(BadFileError, match="more than the 4,194,304 bytes that can be written at once") as refused:
        put(session, annotations)
    assert (refused.value.status, refused.value.code) == (422, "bad_file")
    assert refused.value.do.startswith("Split the file")
    assert session.written == []


@pytest.mark.parametrize(
    "annotations", [notes(MAX_ANNOTATIONS), notes(200, STORES)], ids=["all of a tenant", "many stores"]
)
def test_annotations_far_above_the_threshold_of_batches_are_one_write(annotations: list[Annotation]) -> None:
    session = Session()

    put(session, annotations)
    assert len(session.written) == 1


def test_rules_that_are_too_large_at_once_are_refused_before_a_write() -> None:
    session = Session()

    with pytest.raises(BadFileError, match="4,194,304 bytes") as refused:
        rules(session, 10, "x" * (MOST_BYTES // 10))
    assert refused.value.do.startswith("Split the file")
    assert session.written == []


def test_rules_below_that_are_one_write() -> None:
    session = Session()

    assert len(rules(session, 1_000, "x" * 1_000)) == 1_000
    assert [type(each) for each in session.written] == [str, BatchStatement]  # the permit, and all of them


def test_what_cassandra_refuses_is_no_error_of_the_program() -> None:
    refusal = InvalidRequest('Error from server: code=2200 [Invalid query] message="Batch too large"')

    for write in (lambda: put(Session(refusal), notes(2)), lambda: rules(Session(refusal), 2, "{}")):
        with pytest.raises(BadFileError, match=r"Cassandra refuses .*Batch too large") as refused:
            write()
        assert refused.value.do.startswith("Split the file")


def test_every_part_of_a_row_counts() -> None:
    half = "x" * (MOST_BYTES // 2)
    with one_write([(half, 1, DAY, None)]):
        pass
    for rows in ([(half,), (half,)], [(half, half)], [({half, half + "x"},)]):
        with pytest.raises(BadFileError), one_write(rows):
            pass
