"""The tutorial's commands on the shared stack, from the registration of a store to the replayed record.

`tests/system/deployments/test_documented_commands.py` runs all of them, also those that start a stack or Spark.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.conftest import Stack
from tests.support.documented import ROOT, Block, Shell, blocks

PAGE = ROOT / "docs" / "tutorial" / "first-receipts.md"
SECTIONS = {block.section.partition(".")[0]: block.section for block in blocks(PAGE)}
DEAD_LETTER = "pos_transactions/1/3"
"""On a fresh stack."""


@pytest.fixture
def shell(stack: Stack, tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path, stack.environment, stack.settings.api.port) as running:
        yield running


def written_for(store: str, block: Block) -> str:
    """The block for another store than `1`, which other tests use."""
    text = block.text.replace('id: "1"', f'id: "{store}"').replace("store=1&", f"store={store}&")
    return text.replace('"operation_id": 1,', f'"operation_id": "{store}",')


def value_of(printed: str) -> float | None:
    """The value of the metric, which is the first of the answers."""
    first, _ = json.JSONDecoder().raw_decode(printed[printed.index("{") :])  # curl prints no line between two answers
    series = first.get("series")
    return series[0]["points"][0]["value"] if series else None


def test_the_tutorials_commands_print_what_it_says(stack: Stack, shell: Shell) -> None:
    store = f"tutorial-{uuid4().hex[:8]}"
    commands = {
        number: [written_for(store, each) for each in blocks(PAGE) if each.section == SECTIONS[number]]
        for number in "2347"
    }

    [registered] = commands["2"]
    assert store in shell.run(registered)
    before = {each["id"] for each in stack.galatea("dead-letters", "list")["dead_letters"]}
    [sent] = commands["3"]
    shell.run(sent)
    [query] = commands["4"]
    shell.until(query, lambda printed: value_of(printed) == 4.58)
    listed, replayed = commands["7"]
    dead_letter = shell.until(
        "galatea dead-letters list --json",
        lambda printed: bool({each["id"] for each in json.loads(printed)["dead_letters"]} - before),
    )
    [id_] = {each["id"] for each in json.loads(dead_letter)["dead_letters"]} - before
    assert "wrong_type" in shell.run(listed.replace(DEAD_LETTER, id_))
    shell.run(replayed.replace(DEAD_LETTER, id_))
    shell.until(query, lambda printed: value_of(printed) == 7.78)
