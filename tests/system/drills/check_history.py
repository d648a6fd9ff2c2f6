"""Checks the history of a drill: `python -m tests.system.drills.check_history FILE ...` prints a verdict per invariant.

It uses nothing of the product, and nothing of the drill but the history: the expected answers are sums over what the
broker has acknowledged.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from galatea.cli.reference.page import table
from tests.system.drills.history import Line, Operation, read_history

OLDEST_US = 23 * 3_600_000_000
"""What is older on arrival waits for the batch layer."""
Identity = tuple[str, int]
"""Store and number of a receipt."""


class Invariant:
    """What has to hold; the names are those of docs/explanation/drills.md."""

    EXACT = "I02 exact at rest"
    RECOMPUTED = "I02 equal to a full recompute"
    NEVER_MORE = "I03 never more than was sent"
    NEVER_LESS = "I03 never less than before"
    IN_ORDER = "I05 publications in order"
    CONSERVED = "I10 every record is kept"
    TYPED = "I17 refusals are typed"
    EXPLAINED = "I20 corrections are explained"


@dataclass
class Verdict:
    """How often an invariant was checked, how often it was broken, and the first time."""

    checked: int = 0
    broken: int = 0
    first: str = ""


@dataclass(frozen=True)
class Ack:
    """An acknowledged delivery of a receipt. Times in microseconds since 1970."""

    partition: int
    offset: int
    received_us: int
    happened_us: int
    minor: int

    @property
    def is_old(self) -> bool:
        """Whether it waits for the batch layer."""
        return self.received_us - self.happened_us > OLDEST_US


@dataclass
class Checker:
    """What a history has said so far, and the verdicts on it."""

    verdicts: dict[str, Verdict] = field(default_factory=lambda: defaultdict(Verdict))
    faults: Counter[str] = field(default_factory=Counter)
    _sent: dict[Identity, tuple[int, int]] = field(default_factory=dict)  # time and cents
    _sent_of: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _acks: dict[Identity, list[Ack]] = field(default_factory=lambda: defaultdict(list))
    _broken: int = 0
    _shown: dict[str, int] = field(default_factory=dict)
    _publication: int = -1

    def check(self, lines: Iterable[Line]) -> None:
        """Go through a history."""
        handlers: Mapping[str, Callable[[Line], None]] = {
            Operation.SEND: self._send,
            Operation.ACK: self._ack,
            Operation.READ: self._read,
            Operation.REFUSAL: self._refusal,
            Operation.REST: self._rest,
            Operation.FAULT: self._fault,
            Operation.COUNT: self._count,
        }
        for line in lines:
            handlers[line["op"]](line)

    def _send(self, line: Line) -> None:
        if line["number"] is not None and (line["store"], line["number"]) not in self._sent:
            self._sent[line["store"], line["number"]] = (line["happened_us"], line["minor"])
            self._sent_of[line["store"]] += 1

    def _ack(self, line: Line) -> None:
        if line["number"] is None:
            self._broken += 1
            return
        identity = line["store"], line["number"]
        happened_us, minor = self._sent[identity]
        ack = Ack(line["partition"], line["offset"], line["received_us"], happened_us, minor)
        self._acks[identity].append(ack)

    def _read(self, line: Line) -> None:
        for store, value in line["values"].items():
            before, sent = self._shown.get(store, 0), self._sent_of[store]
            self._that(Invariant.NEVER_MORE, value <= sent, line, f"store {store}: {value} of {sent}")
            self._that(Invariant.NEVER_LESS, value >= before, line, f"store {store}: {value} after {before}")
            self._shown[store] = value
        publication = line["publication"]
        in_order = publication >= self._publication
        self._that(Invariant.IN_ORDER, in_order, line, f"publication {publication} after {self._publication}")
        self._publication = publication

    def _refusal(self, line: Line) -> None:
        self._that(Invariant.TYPED, bool(line["code"]), line, "an answer that nobody can read")

    def _rest(self, line: Line) -> None:
        value, waiting = self._due(line["name"], line["cut_us"])
        is_due = (line["value"], line["waiting"]) == (value, waiting)
        found = f"{line['name']} {line['value']} and {line['waiting']} wait, instead of {value} and {waiting}"
        self._that(Invariant.EXACT, is_due, line, found)

    def _due(self, name: str, cut_us: int) -> tuple[int, int]:
        """What an answer at this cut has to say, and how many deliveries wait for the batch layer."""
        firsts = [min(acks, key=lambda each: each.offset) for acks in self._acks.values()]  # all in one partition
        shown = [each for each in firsts if not each.is_old or each.received_us < cut_us]
        waiting = sum(each.is_old and each.received_us >= cut_us for acks in self._acks.values() for each in acks)
        return len(shown) if name == "receipts" else sum(each.minor for each in shown), waiting

    def _fault(self, line: Line) -> None:
        self.faults[" ".join(line[name] for name in ("method", "target") if line[name])] += 1

    def _count(self, line: Line) -> None:
        deliveries = sum(map(len, self._acks.values()))
        differing, cells = line["cells_different"], line["cells_compared"]
        self._that(Invariant.RECOMPUTED, differing == 0 and cells > 0, line, f"{differing} of {cells} cells differ")
        archived, letters = line["archived"], line["dead_letters"].get("not_json", 0)
        is_kept = (archived, letters) == (deliveries, self._broken)
        of_sent = f"{archived} of {deliveries} archived, {letters} of {self._broken} dead letters"
        self._that(Invariant.CONSERVED, is_kept, line, of_sent)
        self._that(Invariant.EXPLAINED, line["unexplained"] == 0, line, f"{line['unexplained']} unexplained")

    def _that(self, invariant: str, holds: bool, line: Line, found: str) -> None:  # noqa: FBT001 - a verdict
        verdict = self.verdicts[invariant]
        verdict.checked += 1
        if not holds:
            verdict.broken += 1
            verdict.first = verdict.first or f"after {line['ms']} ms: {found}"


def main() -> int:
    """Exit 1 if an invariant was broken, or never checked."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.check_history", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    total: dict[str, Verdict] = {name: Verdict() for key, name in vars(Invariant).items() if key.isupper()}
    faults = Counter[str]()
    for path in parser.parse_args().files:
        checker = Checker()
        checker.check(read_history(path))
        faults += checker.faults
        for name, verdict in checker.verdicts.items():
            total[name].checked += verdict.checked
            total[name].broken += verdict.broken
            total[name].first = total[name].first or (f"{path.name} {verdict.first}" if verdict.first else "")
    rows = [(name, f"{each.checked:,}", f"{each.broken:,}", each.first) for name, each in total.items()]
    sys.stdout.write(f"{table(('invariant', 'checked', 'broken', 'first'), rows)}\n\n")
    sys.stdout.write(f"{sum(faults.values()):,} faults of {len(faults)} kinds\n")
    return int(any(each.broken or not each.checked for each in total.values()))


if __name__ == "__main__":
    sys.exit(main())
