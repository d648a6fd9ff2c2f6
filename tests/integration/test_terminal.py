"""What long commands leave on a terminal: whole lines, finished bars, and no lines of a log."""

import os
import sys
from pathlib import Path

from tests.integration.conftest import Stack
from tests.support.terminal import BAR, Recording, Size, record

GALATEA = str(Path(sys.executable).with_name("galatea"))


def shown(stack: Stack, *words: str) -> Recording:
    """A command on the stack, in a terminal that becomes narrower, then wider."""
    environment = {**os.environ, **stack.environment}
    environment.pop("NO_COLOR", None)
    return record([GALATEA, *words], Size(120, 40), environment, {2.0: Size(80, 40), 4.0: Size(110, 40)})


def test_a_rebuild_leaves_finished_bars_and_whole_lines(stack: Stack) -> None:
    found = shown(stack, "rebuild", "--wait")

    lines = [line for line in found.left() if line]
    assert (found.code, found.torn()) == (0, []), lines
    bars = [line for line in lines if BAR.fullmatch(line)]
    assert len(bars) == 1, lines
    done, total = bars[0].split("━")[-1].split()[0].split("/")
    assert done == total
