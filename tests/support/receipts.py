"""Receipts as a till would send them."""

import json
from collections.abc import Sequence


def receipt(  # noqa: PLR0913 - the fields of a receipt
    happened_at: str,
    lines: Sequence[dict[str, object]] = (),
    *,
    minor: int | None = None,
    number: int = 1,
    till: str = "123",
    store: str = "1",
    payments: Sequence[dict[str, object]] | None = None,
) -> bytes:
    """One receipt. `minor`: a single line of that total instead of `lines`. `payments`: None of an old till."""
    said = [{"title": "thing", "price": minor / 100, "amount": 1, "sku": "1"}] if minor is not None else list(lines)
    return json.dumps(
        {
            "happened_at": happened_at,
            "operation_id": store,
            "transaction_id": number,
            "vendor_fiscal_module": till,
            "transactions": said,
        }
        | ({} if payments is None else {"payments": payments})
    ).encode()
