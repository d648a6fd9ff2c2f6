"""Ledgers of drills that have a stack and a line of their own, summed up in the same words."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.system.drills.ledger_files import lines_of

Told = Mapping[str, Any]


class Own(NamedTuple):
    """`counted`: fields of a line that say how much was done. `none`: those that are to be 0, empty or left out.

    `equal`: pairs of fields that are to be the same; what is no field's name is a value. `naive`: runs of a relay that
    many would write, which have to fail.
    """

    name: str
    ids: tuple[str, ...]
    counted: tuple[str, ...]
    none: tuple[str, ...]
    equal: tuple[tuple[str, object], ...] = ()
    naive: bool = False


ALERTS = (("kills", "sent", "seen"), ("lost", "twice", "phantom", "torn", "orphans", "missed"))
OWN = (
    Own("alerts", ("D19", "D20"), *ALERTS),
    Own("alerts", ("D19", "D20"), *ALERTS, naive=True),
    Own("killed", ("D07", "D24"), ("kills", "asked"), ("torn", "differing"), (("publications", 1),)),
    Own("posting", ("D04",), ("kills", "sent"), ("differing",), (("events", "shown"), ("minor", "shown_minor"))),
    Own("damaged", ("D09",), ("files", "answered", "refused"), ("wrong",), (("restored", True),)),
    Own("hostile", ("D26",), ("connections", "accepted"), ("wrong",), (("accepted", "counted"),)),
    Own("mixed", ("D32",), ("sent", "cells"), ("differing", "wrong")),
    Own("week", ("D32",), ("kills", "sent", "cells"), ("differing", "differing_in_the_end")),
)
HEAD = ("ledger", "drills", "runs", "in all", "well", "not well", "the last one")


def rows() -> list[tuple[str, ...]]:
    """One for each ledger."""
    return [_row(own, lines) for own in OWN if (lines := _lines(own))]


def wrong(own: Own, line: Told) -> list[str]:
    """What of a line is not as it has to be."""
    found = [f"{name} {line[name]}" for name in own.none if line.get(name)]
    pairs = [(name, line[name], line.get(str(other), other)) for name, other in own.equal]
    return found + [f"{name} {here}, not {there}" for name, here, there in pairs if here != there]


def _row(own: Own, lines: Sequence[Told]) -> tuple[str, ...]:
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


def _lines(own: Own) -> list[Told]:
    told = lines_of(own.name)
    return [line for line in told if bool(line.get("plan", {}).get("naive")) == own.naive]
