"""What is bought together? The number of sale receipts that sell both SKUs of a pair; `sku` sorts before `with_sku`.

Only receipts that sell two to five SKUs are paired, so each adds to at most ten cells. Larger ones would need a cell
for almost every pair of lines; they are left out, and `basket_sizes` counts them as `pairs_cut`.
"""

from itertools import combinations

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Each, View

MOST_PAIRED = 5
"""The SKUs of a receipt that is paired: n of them make n (n - 1) / 2 cells."""
SOLD = "if(array_contains(items.is_sale, false), filter(items, i -> i.is_sale), items)"
"""The items that a receipt sells. A function per element is slow, so it is only called where something came back."""


def _all_pairs(number: int) -> str:
    pairs = [f"named_struct('sku', s[{a}], 'with_sku', s[{b}])" for a, b in combinations(range(number), 2)]
    return f"array({', '.join(pairs)})"


_CASES = " ".join(f"when {number} then {_all_pairs(number)}" for number in range(2, MOST_PAIRED + 1))
_PAIRED = f"transform(array(sort_array({SOLD}.sku)), s -> case size(s) {_CASES} end)[0]"
PAIRS = f"if(size({SOLD}) between 2 and {MOST_PAIRED}, {_PAIRED}, null)"

BASKET_PAIRS = View(
    name="basket_pairs",
    source=POS_TRANSACTIONS,
    each=Each("pair", of=PAIRS),
    dimensions={"sku": "pair.sku", "with_sku": "pair.with_sku"},
    metrics={"pair_receipts": Count()},
)
