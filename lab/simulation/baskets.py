"""`pos_transactions`: what a shop without real receipts sells. Prices, weights and returns are made up."""

from collections.abc import Sequence
from random import Random
from typing import Any

from lab.simulation.record import Records, Wire
from lab.simulation.shop_day import ShopDay

GOODS = (
    ("Milk 1 l", 109),
    ("Bread 500 g", 189),
    ("Butter 250 g", 259),
    ("Coffee 250 g", 499),
    ("Eggs 10", 329),
    ("Pasta 500 g", 119),
    ("Tomatoes", 289),
    ("Apples", 199),
    ("Chocolate", 149),
    ("Water 1.5 l", 69),
    ("Cheese 300 g", 379),
    ("Yoghurt", 79),
    ("Tea 40 g", 229),
    ("Soap", 139),
    ("Olive oil 0.5 l", 799),
)
"""Title, and price in hundredths."""
WEIGHED = ("Tomatoes", "Apples")
TILLS = 3
MOST_LINES = 8
RETURNS = 0.02
"""Of the receipts."""
PER_DAY = 100_000


def pos_transactions(day: ShopDay, receipts: Sequence[int]) -> Records:
    """Print a receipt at each of these instants."""
    wire, drawn = Wire(day, "pos_transactions"), day.chance("baskets")
    first = day.begins // 86_400_000 * PER_DAY
    for number, at in enumerate(receipts):
        lines = [_line(drawn) for _ in range(min(1 + round(drawn.expovariate(0.5)), MOST_LINES))]
        if drawn.random() < RETURNS:
            lines = [{**lines[0], "amount": -lines[0]["amount"]}]
        said = {"transaction_id": first + number, "vendor_fiscal_module": 1 + number % TILLS, "transactions": lines}
        yield wire.record(at, "", said)


def _line(drawn: Random) -> dict[str, Any]:
    number = drawn.randrange(len(GOODS))
    title, hundredths = GOODS[number]
    amount = drawn.randint(150, 2500) / 1000 if title in WEIGHED else drawn.choices((1, 2, 3), (8, 3, 1))[0]
    return {"title": title, "price": hundredths / 100, "amount": amount, "sku": f"sim-{1000 + number}"}
