"""What statements may allocate: texts made from a number, and everything that DuckDB does not count."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support import World
from tests.support.world_sql import AskingSql

LIMITED = """
from deploy.process import limit_memory
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.sandbox import Limits, Sandbox

limit_memory(2048)
sandbox = Sandbox("UTC", Limits())
for statement in (
    "SELECT len(range(400000000))",
    "WITH a AS (SELECT repeat('x', 10000000) t), b AS (SELECT t || t || t || t || t || t || t || t t FROM a),"
    "c AS (SELECT t || t || t || t || t || t || t || t t FROM b), d AS (SELECT t || t || t || t t FROM c) "
    "SELECT length(t) FROM d",
):
    try:
        sandbox.query(statement)
    except SqlStateError as error:
        print(error.code)
print(sandbox.query("SELECT 1").rows)
"""


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    with AskingSql(World()) as asking:
        yield asking


@pytest.mark.parametrize(
    "expression",
    ["repeat('x', 10000001)", "repeat('abcde', 2000001)", "lpad('x', 2000000000, 'y')", "rpad('x', 10000001, 'y')"],
)
def test_no_function_makes_a_text_of_any_length(sql: AskingSql, expression: str) -> None:
    refused = sql.refusal(f"select length({expression})")

    assert (refused.code, bool(refused.hint)) == ("54000", True)


def test_texts_of_usual_lengths_are_those_of_postgresql(sql: AskingSql) -> None:
    made = "select repeat('ab', 2), repeat(null, 3), repeat('ab', -1), lpad('7', 3, '0'), rpad('7', 3, 'xy')"

    assert sql.rows(made) == [("abab", None, "", "007", "7xy")]


def test_a_process_refuses_what_would_take_its_machine_and_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["53200", "53200", "[(1,)]"]
