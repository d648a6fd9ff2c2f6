"""A currency says how many decimals money has. Money is counted in minor units: cents, yen, thousandths of a dinar."""

from functools import cache
from typing import NamedTuple

import iso4217

from master_dataset.errors import RequestError


class Currency(NamedTuple):
    """ISO 4217: `EUR` has 2 digits, `JPY` none, `KWD` 3."""

    code: str
    digits: int


DEFAULT_CURRENCY = Currency("EUR", 2)


@cache
def currency(code: str) -> Currency:
    """Look a code up. Codes without a minor unit (gold, test codes) are refused: nothing is sold for them.

    Raises RequestError when the code is not a currency of ISO 4217.
    """
    try:
        entry = iso4217.Currency(code)
    except ValueError:
        entry = None
    if entry is None or entry.exponent is None:
        raise RequestError(f"`{code}` is no currency of ISO 4217.", do="Use a code such as `EUR`, `CZK` or `JPY`.")
    return Currency(entry.code, entry.exponent)
