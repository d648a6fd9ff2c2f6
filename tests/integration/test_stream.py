"""Ten thousand receipts with all that goes wrong, three rebuilds on the way: nothing lost, nothing twice, all equal."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.integration.conftest import Stack, around_now

RECEIPTS = 10_000
PARTS = 4


def receipt(chance: random.Random, number: int, now: datetime) -> bytes:
    """One of 50 stores; every tenth shares its second with others, every twentieth is days late."""
    late = chance.uniform(2, 9) if number % 20 == 0 else chance.uniform(0, 0.8)
    happened_at = now - timedelta(days=late)
    if number % 10 == 1:
        happened_at = now.replace(microsecond=0) - timedelta(hours=1)
    lines = [
        {
            "title": f"item {chance.randint(1, 99)}",
            "price": chance.randint(1, 9999) / 100,
            "amount": chance.choice([1, 1, 1, 2, 3, -1, 0.734]),
            **({"sku": str(chance.randint(1, 200))} if chance.random() < 0.9 else {}),
        }
        for _ in range(chance.randint(1, 6))
    ]
    body = {
        "happened_at": happened_at.isoformat(timespec="milliseconds"),
        "operation_id": chance.randint(1, 50),
        "transaction_id": number,
        "vendor_fiscal_module": chance.randint(1, 6),
        "transactions": lines,
    }
    return json.dumps(body).encode()


def stream(seed: int) -> list[bytes]:
    """The receipts as they are sent: 1 % broken, 10 % sent again later."""
    chance, now = random.Random(seed), datetime.now(UTC)
    sent: list[bytes] = []
    for number in range(RECEIPTS):
        body = receipt(chance, number, now)
        sent.append(body[:-1] + b"," if number % 100 == 50 else body)
        if number % 10 == 3:
            sent.append(chance.choice(sent))
    return sent


def parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    """The stream in equal parts."""
    size = -(-len(lines) // PARTS)
    return (lines[start : start + size] for start in range(0, len(lines), size))


def value(answer: Any) -> int:
    """The one point of a total."""
    return sum(series["points"][0]["value"] for series in answer["series"])


def test_a_stream_with_everything_wrong_stays_exact_through_three_rebuilds(stack: Stack, tmp_path: Path) -> None:
    lines = stream(seed=20261121)
    broken = sum(not line.endswith(b"}") for line in lines)
    whole = {line for line in lines if line.endswith(b"}")}

    for number, part in enumerate(parts(lines)):
        file = tmp_path / f"part-{number}.jsonl"
        file.write_bytes(b"\n".join(part) + b"\n")
        acknowledged = stack.galatea("ingest", "pos_transactions", str(file))["acknowledged"]
        assert acknowledged == len(part)
        if number:
            stack.galatea("rebuild", *(["--wait"] if number == PARTS - 1 else []))
        verdict = stack.galatea("verify")
        assert verdict["differing"] == 0, verdict

    assert verdict["waiting_for_batch"] == 0
    assert verdict["cells"] > 0
    letters = stack.galatea("dead-letters", "list")["counts"]
    assert letters == {"not_json": broken}
    stores = [str(number) for number in range(1, 51)]
    asked = {"store": stores, "grain": "total", **around_now()}
    receipts = value(stack.get("/v1/metrics/total_transactions_count", **asked))
    duplicates = len(lines) - broken - len(whole)
    assert receipts == len(whole)
    assert len(lines) == receipts + duplicates + sum(letters.values())
