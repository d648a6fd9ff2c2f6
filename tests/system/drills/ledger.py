"""`python -m tests.system.drills.ledger` (`make ledger`): prints the sums of the drills' ledgers."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from galatea.cli.reference.page import table
from tests.system.drills import own_ledgers
from tests.system.drills.ledger_files import lines_of
from tests.system.drills.line import FAIL, PASS, SKIPPED
from tests.system.drills.matrix import MATRIX

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "drills.md"
_MATRIX = re.compile(r"(<!-- matrix -->\n).*?(<!-- end -->)", re.DOTALL)
SUMS = ("runs", PASS, FAIL, SKIPPED, "faults", "events sent", "cells compared", "different", "slowest recovery")


def main() -> None:
    """Print the sums of all ledgers."""
    sys.stdout.write(f"{ledger()}\n\n{table(own_ledgers.HEAD, own_ledgers.rows())}\n")


def written() -> str:
    """The page of drills with the table of all drills as the code has it now."""
    return _MATRIX.sub(lambda found: f"{found[1]}\n{matrix()}\n\n{found[2]}", PAGE.read_text(encoding="utf-8"))


def matrix() -> str:
    """Every drill and where it is done."""
    return table(("", "set", "fault", "done by"), [tuple(row) for row in MATRIX])


def ledger() -> str:
    """Of each drill what its lines add up to, and of all."""
    lines = lines_of("drills")
    drills = sorted({each["drill"] for each in lines})
    rows = [(drill, *_sums([each for each in lines if each["drill"] == drill])) for drill in drills]
    return table(("drill", *SUMS), [*rows, ("**sum**", *_sums(lines))])


def _sums(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    verdicts = Counter(each["verdict"] for each in lines)
    slowest = max((ms for each in lines for ms in each["recovery_ms"].values()), default=0)
    counts = (
        len(lines),
        verdicts[PASS],
        verdicts[FAIL],
        verdicts[SKIPPED],
        sum(len(each["faults"]) for each in lines),
        sum(each["sent"]["ok"] for each in lines),
        sum(each["cells_compared"] for each in lines),
        sum(max(0, each["cells_different"]) for each in lines),  # below 0: nothing was compared
    )
    return (*(f"{count:,}" for count in counts), f"{slowest / 1000:.1f} s")


if __name__ == "__main__":
    main()
