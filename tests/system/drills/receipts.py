"""A hostile stream, and what has to come of it: worked out from the stream alone, with none of the product's code."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

STORES = [str(number) for number in range(1, 21)]
Identity = tuple[str, int, int, str]


@dataclass(frozen=True)
class Sent:
    """One line. `identity`: None for one that is broken. `minor`: what the receipt adds up to, in cents."""

    line: bytes
    identity: Identity | None
    minor: int = 0


@dataclass
class Expected:
    """What everything that was handed to a producer so far may add up to at most, and has to in the end."""

    firsts: dict[Identity, Sent] = field(default_factory=dict)
    sent: int = 0
    broken: int = 0
    conflicts: int = 0

    def add(self, each: Sent) -> None:
        """The first that is sent of an identity counts: an identity is one store's, and a store is one partition's."""
        self.sent += 1
        if each.identity is None:
            self.broken += 1
        else:
            self.conflicts += self.firsts.setdefault(each.identity, each).line != each.line

    @property
    def receipts(self) -> int:
        """Events."""
        return len(self.firsts)

    @property
    def minor(self) -> int:
        """Net sales in cents."""
        return sum(each.minor for each in self.firsts.values())


def stream(seed: int, receipts: int, now: datetime) -> list[Sent]:
    """The lines in the order in which they are sent.

    A tenth is sent again, half of that much later; a twentieth is days old; a tenth shares its second with others; a
    hundredth is broken, and one in two hundred comes again with another content.
    """
    chance = random.Random(seed)
    keyed: list[tuple[float, Sent]] = []
    for number in range(receipts):
        place = number + chance.uniform(0, 50)  # shuffled, a little
        each = _receipt(chance, number, now)
        if number % 100 == 50:
            keyed.append((place, Sent(each.line[:-1] + b",", None)))
            continue
        keyed.append((place, each))
        if number % 10 == 3:
            keyed.append((place + chance.choice([1, chance.uniform(0, receipts)]), each))
        if number % 200 == 7:
            other = each.line.replace(b'"Milk"', b'"Beer"', 1)
            keyed.append((place + chance.uniform(1, receipts / 2), Sent(other, each.identity, each.minor)))
    return [each for _, each in sorted(keyed, key=lambda pair: pair[0])]


def _receipt(chance: random.Random, number: int, now: datetime) -> Sent:
    late = timedelta(days=chance.uniform(2, 9)) if number % 20 == 0 else timedelta(hours=chance.uniform(0, 9))
    happened_at = now - timedelta(hours=11) - late
    if number % 10 == 1:
        happened_at = now.replace(microsecond=0) - timedelta(hours=12)
    amounts = [(chance.randint(1, 9999), chance.randint(1, 3)) for _ in range(chance.randint(1, 5))]
    told = happened_at.isoformat(timespec="milliseconds")
    store, till = chance.choice(STORES), chance.randint(1, 6)
    body = {
        "happened_at": told,
        "operation_id": store,
        "transaction_id": number,
        "vendor_fiscal_module": till,
        "transactions": [
            {"title": "Milk" if place == 0 else f"item {place}", "price": price / 100, "amount": amount}
            for place, (price, amount) in enumerate(amounts)
        ],
    }
    minor = sum(price * amount for price, amount in amounts)
    return Sent(json.dumps(body).encode(), (store, till, number, told), minor)


def split(lines: Sequence[Sent], share: float) -> tuple[Sequence[Sent], Sequence[Sent]]:
    """The first part, and the rest."""
    place = int(len(lines) * share)
    return lines[:place], lines[place:]
