"""A line that says no total: price times amount, half-even to the minor unit, and not a hundredth beside it."""

from fractions import Fraction
from random import Random

from master_dataset.sources.pos_transactions import MAX_LINE_TOTAL, priced


def totals_are_exact(lines: int = 5_000) -> None:
    """Worked out with fractions, in currencies of 0, 2 and 3 decimals."""
    chance = Random(1)
    for _ in range(lines):
        digits = chance.choice([0, 2, 2, 3])
        scale = 10 ** (9 - digits)
        price_micro = chance.choice([chance.randint(1, 10**4) * 1000, chance.randint(1, 10**11)])
        amount = chance.choice([1000, 3000, -2000, chance.randint(1, 5000)])
        exact = round(Fraction(price_micro * amount, scale))
        if abs(exact) <= MAX_LINE_TOTAL:
            said = priced(0, ("thing", price_micro, amount, None, None, None), scale).total
            assert said == exact, f"{price_micro} x {amount}: {said} instead of {exact}"
