"""`python -m tests.system.drills.ledger` (`make ledger`): prints the totals of the ledgers."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from galatea.cli.reference.page import table
from tests.system.drills.ledger_line import FAIL, PASS, SKIPPED, lines_of
from tests.system.drills.matrix import MATRIX

LineFields = Mapping[str, Any]


class Own(NamedTuple):
    """`counted`: fields of a line that say how much was done. `none`: those that are to be 0, empty or left out.

    `equal`: pairs of fields that have to be equal; anything else than a field name is a value. `naive`: runs of a naive
    alert processor, or of brokers without what they need, which have to fail.
    """

    name: str
    ids: tuple[str, ...]
    counted: tuple[str, ...]
    none: tuple[str, ...]
    equal: tuple[tuple[str, object], ...] = ()
    naive: bool = False


ALERTS = (("kills", "sent", "seen"), ("lost", "twice", "phantom", "premature", "orphans", "missed"))
POWER = (
    ("cuts", "acknowledged", "transactions"),
    ("lost", "twice", "out_of_order", "incomplete", "aborted_visible", "low_watermarks", "positions", "hanging"),
)
OWN = (
    Own("alerts", ("D19", "D20"), *ALERTS),
    Own("alerts", ("D19", "D20"), *ALERTS, naive=True),
    Own("killed", ("D07", "D24"), ("kills", "requests"), ("mixed", "differing"), (("publications", 1),)),
    Own("posting", ("D04",), ("kills", "sent"), ("differing",), (("events", "shown"), ("minor", "shown_minor"))),
    Own("damaged", ("D09",), ("files", "answered", "refused"), ("wrong",), (("restored", True),)),
    Own("hostile", ("D26",), ("connections", "accepted"), ("wrong",), (("accepted", "counted"),)),
    Own("mixed", ("D32",), ("sent", "cells"), ("differing", "wrong")),
    Own("power", ("D03",), *POWER),
    Own("power", ("D03",), *POWER, naive=True),
    Own("day", ("D34",), ("hours", "sent", "publications", "cells"), ("differing", "wrong")),
    Own("week", ("D32",), ("kills", "sent", "cells"), ("differing", "differing_in_the_end")),
    Own("fuzz", (), ("minutes", "inputs", "accepted"), ("failures",)),
)
HEAD = ("ledger", "drills", "runs", "total", "passed", "failed", "last run")


def rows() -> list[tuple[str, ...]]:
    """One for each ledger."""
    return [_row(own, lines) for own in OWN if (lines := _lines(own))]


def wrong(own: Own, line: LineFields) -> list[str]:
    """What of a line is not as it has to be."""
    found = [f"{name} {line[name]}" for name in own.none if line.get(name)]
    pairs = [(name, line[name], line.get(str(other), other)) for name, other in own.equal]
    return found + [f"{name} {here}, not {there}" for name, here, there in pairs if here != there]


def _row(own: Own, lines: Sequence[LineFields]) -> tuple[str, ...]:
    faults = [wrong(own, line) for line in lines]
    bad = sum(bool(found) != own.naive for found in faults)
    sums = ", ".join(f"{sum(line[name] for line in lines):,} {name}" for name in own.counted)
    last = "; ".join(faults[-1]).replace("|", "/") or "well"
    return (
        f"{own.name}, naive" if own.naive else own.name,
        " ".join(own.ids),
        str(len(lines)),
        sums,
        str(len(lines) - bad),
        str(bad),
        last,
    )


def _lines(own: Own) -> list[LineFields]:
    all_lines = lines_of(own.name)
    return [line for line in all_lines if bool(line.get("plan", {}).get("naive")) == own.naive]


PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "drills.md"
_MATRIX = re.compile(r"(<!-- matrix -->\n).*?(<!-- end -->)", re.DOTALL)
SUMS = ("runs", PASS, FAIL, SKIPPED, "faults", "events sent", "cells compared", "different", "slowest recovery")


def main() -> None:
    """Print the sums of all ledgers."""
    sys.stdout.write(f"{ledger()}\n\n{table(HEAD, rows())}\n")


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
