"""Checks the history of a drill: `python -m tests.system.drills.check_history FILE ...` prints a verdict per invariant.

It uses nothing of the product, and nothing of the drill but the history: the expected answers are sums over what the
broker has acknowledged. Every drill on a running stack is checked so in the end.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.system.drills.history import Line, Operation, read_history

UNAVAILABLE = 503
OLDEST_US = 23 * 3_600_000_000
"""What is older on arrival waits for the batch layer."""
Identity = tuple[str, int]
"""Store and number of a receipt."""


class Invariant:
    """What has to hold; the numbers are those of docs/explanation/drills.md. Each has to be checked at least once."""

    WHOLE = "the history is whole"
    KNOWN = "I01 the outcome of every send is known"
    PLACED = "I01 every delivery has a place of its own, those of a store in one partition"
    EXACT = "I02 exact at rest (I13: what is too old waits)"
    NEVER_TOO_MUCH = "I02 never too much at rest"
    RECOMPUTED = "I02 equal to a full recompute"
    NEVER_MORE = "I03 never more than was sent"
    NEVER_LESS = "I03 never less than before"
    IN_ORDER = "I05 publications in order"
    CONSERVED = "I10 every record is kept"
    TYPED = "I17 an answer, or a typed refusal"
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
    _firsts: dict[Identity, Ack] = field(default_factory=dict)  # all of a receipt are in one partition
    _old: list[tuple[Identity, Ack]] = field(default_factory=list)
    _young: Counter[str] = field(default_factory=Counter)  # receipts and cents that do not wait
    _received: int = 0
    _places: set[tuple[int, int]] = field(default_factory=set)
    _partition_of: dict[str, int] = field(default_factory=dict)
    _broken: int = 0
    _shown: dict[str, int] = field(default_factory=dict)
    _publication: int = -1

    def check(self, lines: Iterable[Line]) -> None:
        """Go through a history, to its end."""
        handlers: Mapping[str, Callable[[Line], None]] = {
            Operation.SEND: self._send,
            Operation.ACK: self._ack,
            Operation.UNKNOWN: self._unknown,
            Operation.READ: self._read,
            Operation.REFUSAL: self._refusal,
            Operation.REST: self._rest,
            Operation.FAULT: self._fault,
            Operation.COUNT: self._count,
        }
        line: Line = {"ms": 0}
        counts = 0
        try:
            for line in lines:
                handlers[line["op"]](line)
                counts += line["op"] == Operation.COUNT
        except EOFError:
            self._that(Invariant.WHOLE, line, "it has no end", holds=False)
        self._that(Invariant.WHOLE, line, f"everything was counted {counts} times", holds=counts == 1)
        for name, value in vars(Invariant).items():
            if name.isupper() and not self.verdicts[value].checked:
                self.verdicts[value] = Verdict(0, 1, "never checked")

    def _send(self, line: Line) -> None:
        if line["number"] is not None and (line["store"], line["number"]) not in self._sent:
            self._sent[line["store"], line["number"]] = (line["happened_us"], line["minor"])
            self._sent_of[line["store"]] += 1

    def _unknown(self, line: Line) -> None:
        self._that(Invariant.KNOWN, line, f"receipt {line['number']} of store {line['store']}", holds=False)

    def _ack(self, line: Line) -> None:
        self._that(Invariant.KNOWN, line, "", holds=True)
        place = line["partition"], line["offset"]
        partition = self._partition_of.setdefault(line["store"], line["partition"])
        is_placed = place not in self._places and partition == line["partition"]
        self._that(Invariant.PLACED, line, f"partition and offset {place} of store {line['store']}", holds=is_placed)
        self._places.add(place)
        if line["number"] is None:
            self._broken += 1
            return
        identity = line["store"], line["number"]
        happened_us, minor = self._sent[identity]
        ack = Ack(line["partition"], line["offset"], line["received_us"], happened_us, minor)
        self._received += 1
        if ack.is_old:
            self._old.append((identity, ack))
        former = self._firsts.get(identity)
        if former is None or ack.offset < former.offset:
            self._firsts[identity] = ack
            for each, times in ((former, -1), (ack, 1)):
                if each is not None and not each.is_old:
                    self._young.update(receipts=times, minor=times * each.minor)

    def _read(self, line: Line) -> None:
        for store in self._shown.keys() | line["values"].keys():
            value = line["values"].get(store, 0)
            before, sent = self._shown.get(store, 0), self._sent_of[store]
            self._that(Invariant.NEVER_MORE, line, f"store {store}: {value} of {sent}", holds=value <= sent)
            self._that(Invariant.NEVER_LESS, line, f"store {store}: {value} after {before}", holds=value >= before)
            self._shown[store] = value
        self._that(Invariant.TYPED, line, "", holds=True)
        publication = line["publication"]
        in_order = publication >= self._publication
        self._that(Invariant.IN_ORDER, line, f"publication {publication} after {self._publication}", holds=in_order)
        self._publication = publication

    def _refusal(self, line: Line) -> None:
        is_typed = bool(line["code"]) and line["status"] == UNAVAILABLE
        self._that(
            Invariant.TYPED, line, f"{line['status']} {line['code'] or 'and nobody can read it'}", holds=is_typed
        )

    def _rest(self, line: Line) -> None:
        value, waiting = self._due(line["name"], line["cut_us"])
        found = f"{line['name']} {line['value']} and {line['waiting']} wait, instead of {value} and {waiting}"
        if line["value"] is not None:
            is_too_much = line["value"] > value or line["waiting"] > waiting
            self._that(Invariant.NEVER_TOO_MUCH, line, found, holds=not is_too_much)
        if line["is_last"]:
            is_due = (line["value"], line["waiting"]) == (value, waiting)
            self._that(Invariant.EXACT, line, found, holds=is_due)

    def _due(self, name: str, cut_us: int) -> tuple[int, int]:
        """What an answer at this cut has to say, and how many deliveries wait for the batch layer."""
        received = [(identity, ack) for identity, ack in self._old if ack.received_us < cut_us]
        old = [ack for identity, ack in received if self._firsts[identity] is ack]
        waiting = len(self._old) - len(received)
        more = len(old) if name == "receipts" else sum(each.minor for each in old)
        return self._young[name] + more, waiting

    def _fault(self, line: Line) -> None:
        self.faults[" ".join(line[name] for name in ("method", "target") if line[name])] += 1

    def _count(self, line: Line) -> None:
        differing, cells = line["cells_different"], line["cells_compared"]
        is_equal = differing == 0 and cells > 0 and line["is_published"]
        found = f"{differing} of {cells} cells differ, published: {line['is_published']}"
        self._that(Invariant.RECOMPUTED, line, found, holds=is_equal)
        archived, letters = line["archived"], line["dead_letters"].get("not_json", 0)
        is_kept = (archived, letters) == (self._received, self._broken)
        of_sent = f"{archived} of {self._received} archived, {letters} of {self._broken} dead letters"
        self._that(Invariant.CONSERVED, line, of_sent, holds=is_kept)
        self._that(Invariant.EXPLAINED, line, f"{line['unexplained']} unexplained", holds=line["unexplained"] == 0)

    def _that(self, invariant: str, line: Line, found: str, *, holds: bool) -> None:
        verdict = self.verdicts[invariant]
        verdict.checked += 1
        if not holds:
            verdict.broken += 1
            verdict.first = verdict.first or f"after {line['ms']} ms: {found}"


def broken(path: Path) -> list[str]:
    """What of a history is broken, in words."""
    checker = Checker()
    checker.check(read_history(path))
    found = [(name, verdict) for name, verdict in checker.verdicts.items() if verdict.broken]
    return [f"{name}: {verdict.first}, {verdict.broken} of {verdict.checked}" for name, verdict in found]


def main() -> int:
    """Exit 1 if an invariant was broken, or not checked in one of the files."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.check_history", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    total: dict[str, Verdict] = {}
    faults = Counter[str]()
    for path in parser.parse_args().files:
        checker = Checker()
        checker.check(read_history(path))
        faults += checker.faults
        for name, verdict in checker.verdicts.items():
            first = f"{path.name}, {verdict.first}" if verdict.broken else ""
            sum_ = total.setdefault(name, Verdict())
            sum_.checked, sum_.broken = sum_.checked + verdict.checked, sum_.broken + verdict.broken
            sum_.first = sum_.first or first
    for name, sum_ in sorted(total.items()):
        sys.stdout.write(f"{sum_.checked:12,} checked  {sum_.broken:6,} broken  {name}  {sum_.first}\n")
    sys.stdout.write(f"{sum(faults.values()):,} faults of {len(faults)} kinds\n")
    return int(any(each.broken for each in total.values()))


if __name__ == "__main__":
    sys.exit(main())
