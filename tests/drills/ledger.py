"""`python -m tests.drills.ledger` (`make ledger`): sums the drills' ledger, and writes the tables of docs/drills.md."""

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.reference.page import table
from tests.drills import own_ledgers
from tests.drills.line import FAIL, PASS, SKIPPED, kept
from tests.drills.matrix import MATRIX

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SEEDED = DOCS / "drills.md", DOCS / "ledger" / "seeded.json"
_MARKED = re.compile(r"(<!-- (matrix|ledger|own|seeded) -->\n).*?(<!-- end -->)", re.DOTALL)
SUMS = ("runs", PASS, FAIL, SKIPPED, "faults", "events sent", "cells compared", "different", "slowest recovery")


def main() -> None:
    """Print the sums, and write the page."""
    sys.stdout.write(ledger() + "\n")
    PAGE.write_text(written(), encoding="utf-8")


def written() -> str:
    """The page with the tables of what is kept now."""
    made = {
        "matrix": matrix(),
        "ledger": ledger(),
        "own": table(own_ledgers.HEAD, own_ledgers.rows()),
        "seeded": seeded(),
    }
    return _MARKED.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n\n{found[3]}", PAGE.read_text(encoding="utf-8"))


def matrix() -> str:
    """Every drill and where it is done."""
    return table(("", "set", "fault", "done by"), [tuple(row) for row in MATRIX])


def ledger() -> str:
    """Of each drill what its lines add up to, and of all."""
    lines = kept()
    drills = sorted({each["drill"] for each in lines})
    rows = [(drill, *_sums([each for each in lines if each["drill"] == drill])) for drill in drills]
    return table(("drill", *SUMS), [*rows, ("**sum**", *_sums(lines))])


def seeded() -> str:
    """Every seeded bug and what caught it."""
    bugs = json.loads(SEEDED.read_text(encoding="utf-8"))["bugs"]
    return table(("bug", "what is done wrong", "how", "caught by", "verdict"), [tuple(each.values()) for each in bugs])


def _sums(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    verdicts = Counter(each["verdict"] for each in lines)
    slowest = max((ms for each in lines for ms in each["recovery_ms"].values()), default=0)
    counts = (
        len(lines), verdicts[PASS], verdicts[FAIL], verdicts[SKIPPED], sum(len(each["faults"]) for each in lines),
        sum(each["sent"]["ok"] for each in lines), sum(each["cells_compared"] for each in lines),
        sum(max(0, each["cells_different"]) for each in lines),  # below 0: nothing was compared
    )  # fmt: skip
    return (*(f"{count:,}" for count in counts), f"{slowest / 1000:.1f} s")


if __name__ == "__main__":
    main()
