"""Receipts as tills send them, as JSON lines: made from a seed, of shops and items that do not exist."""

import random
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import orjson

STORES, TILLS, SKUS = 100, 8, 20_000
REPEATED = 10
"""One receipt in so many of a backlog is delivered twice."""
PROBE = "999"
"""The shop of the receipts whose way is timed; nobody else sells there."""


def history(count: int, days: int, seed: int = 7) -> list[bytes]:
    """Receipts of the last days, in order."""
    start = datetime.now(UTC) - timedelta(days=days + 1)
    step = timedelta(days=days) / count
    rng = random.Random(seed)  # noqa: S311 - no secret
    return [line(rng, number, start + step * number) for number in range(count)]


def backlog(count: int, seed: int = 10) -> Iterator[bytes]:
    """`count` receipts of the last hour, in order. One in ten is sent again when a tenth of all have followed it."""
    start, step = datetime.now(UTC) - timedelta(hours=1), timedelta(hours=1) / count
    rng = random.Random(seed)  # noqa: S311 - no secret
    waiting: deque[bytes] = deque()
    for number in range(count):
        waiting.append(line(rng, number, start + step * number))
        yield waiting[-1]
        if len(waiting) > count // REPEATED:
            again = waiting.popleft()
            if number % REPEATED == 0:
                yield again


def live(first: int, seed: int = 8) -> Iterator[bytes]:
    """Receipts of this very moment, without end."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    number = first
    while True:
        number += 1
        yield line(rng, number, datetime.now(UTC))


def line(rng: random.Random, number: int, happened_at: datetime, store: str | None = None) -> bytes:
    """One receipt of 1 to 18 lines."""
    return orjson.dumps(
        {
            "happened_at": happened_at.isoformat(timespec="milliseconds"),
            "operation_id": int(store or rng.randint(1, STORES)),
            "transaction_id": number,
            "vendor_fiscal_module": rng.randint(1, TILLS),
            "transactions": [_line(rng) for _ in range(rng.randint(1, 18))],
        }
    )


def _line(rng: random.Random) -> dict[str, object]:
    sku = 8_580_000 + int(SKUS * rng.random() ** 3)
    price, amount = rng.randint(50, 2000), rng.randint(1, 3)
    total = round(price * amount / 100, 2)
    title = f"Item number {sku} of the shop"
    return {"title": title, "price": price / 100, "amount": amount, "total": total, "sku": str(sku)}
