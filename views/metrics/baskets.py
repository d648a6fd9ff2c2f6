"""Baskets: how much is in them, and what is bought together. Only sale receipts; what they take back stays in."""

from views.core.formula import Formula
from views.core.metric import Caution, Metric

VALUES = (450, 1200, 1800, 12_000)
PIECES = (1, 2, 3, 12)
WITH = "sales_by_sku.sku_receipts(sku=with_sku)"
CUT = Caution(Formula("basket_sizes.pairs_cut"), "pairs_cut")

BASKET_VALUES = (
    Metric(
        "avg_basket_value",
        "Average basket",
        Formula("basket_value / baskets"),
        "money",
        "basket_sizes",
        note="Ours. The value sold per sale receipt; `avg_transaction_value` subtracts returns.",
        example={"basket_value": 15_450, "baskets": 4},
    ),
    Metric(
        "median_basket_value",
        "Median basket",
        Formula("percentile(value, 50)"),
        "money",
        "basket_sizes",
        note="Ours.",
        example={"percentile(value, 50)": VALUES},
    ),
    Metric(
        "p90_basket_value",
        "Basket, 90th percentile",
        Formula("percentile(value, 90)"),
        "money",
        "basket_sizes",
        note="Ours.",
        example={"percentile(value, 90)": VALUES},
    ),
    Metric(
        "baskets_by_value",
        "Baskets by value",
        Formula("bins(value)"),
        "list",
        "basket_sizes",
        adds_money=True,
        note="Ours. Value from (inclusive) to (exclusive), count, and share in percent.",
        example={"bins(value)": VALUES},
    ),
)
BASKET_PIECES = (
    Metric(
        "median_basket_units",
        "Median basket size",
        Formula("percentile(units, 50)"),
        "ratio",
        "basket_sizes",
        note="Ours. Units sold; `avg_items_per_transaction` subtracts returned units.",
        example={"percentile(units, 50)": PIECES},
    ),
    Metric(
        "p90_basket_units",
        "Basket size, 90th percentile",
        Formula("percentile(units, 90)"),
        "ratio",
        "basket_sizes",
        note="Ours.",
        example={"percentile(units, 90)": PIECES},
    ),
    Metric(
        "baskets_by_units",
        "Baskets by size",
        Formula("bins(units)"),
        "list",
        "basket_sizes",
        note="Ours. Units from (inclusive) to (exclusive), count, and share in percent.",
        example={"bins(units)": PIECES},
    ),
    Metric(
        "median_basket_lines",
        "Median lines",
        Formula("percentile(lines, 50)"),
        "ratio",
        "basket_sizes",
        note="Ours. Lines of a sale receipt, as printed.",
        example={"percentile(lines, 50)": PIECES},
    ),
    Metric(
        "p90_basket_lines",
        "Lines, 90th percentile",
        Formula("percentile(lines, 90)"),
        "ratio",
        "basket_sizes",
        note="Ours.",
        example={"percentile(lines, 90)": PIECES},
    ),
    Metric(
        "baskets_by_lines",
        "Baskets by lines",
        Formula("bins(lines)"),
        "list",
        "basket_sizes",
        note="Ours. Lines from (inclusive) to (exclusive), count, and share in percent.",
        example={"bins(lines)": PIECES},
    ),
)
PAIRS = (
    Metric(
        "pair_receipts",
        "Bought together",
        Formula("pair_receipts"),
        "n",
        "basket_pairs",
        ("pairs_cut",),
        cautions=(CUT,),
        note="Ours. Split it with `by=sku,with_sku`; otherwise, a receipt counts once for each of its pairs.",
        example={"pair_receipts": 3},
    ),
    Metric(
        "pair_support",
        "Pair support",
        Formula("pair_receipts / basket_sizes.baskets"),
        "percent",
        "basket_pairs",
        ("pairs_cut",),
        cautions=(CUT,),
        note="Ours. The share of all sale receipts. Split it with `by=sku,with_sku`.",
        example={"pair_receipts": 3, "basket_sizes.baskets": 40},
    ),
    Metric(
        "pair_confidence",
        "Pair confidence",
        Formula("pair_receipts / sales_by_sku.sku_receipts"),
        "percent",
        "basket_pairs",
        ("pairs_cut",),
        cautions=(CUT,),
        note="Ours. Of the receipts that sell `sku`, the share that also sells `with_sku`. "
        "Split it with `by=sku,with_sku`.",
        example={"pair_receipts": 3, "sales_by_sku.sku_receipts": 12},
    ),
    Metric(
        "pair_lift",
        "Pair lift",
        Formula(f"pair_receipts * basket_sizes.baskets / (sales_by_sku.sku_receipts * {WITH})"),
        "ratio",
        "basket_pairs",
        ("pairs_cut",),
        cautions=(CUT,),
        needs_by=("sku", "with_sku"),
        note="Brin et al., SIGMOD 1997 (interest): P(both) / (P(sku) P(with_sku)), of sale receipts. "
        "1 means as often as by chance.",
        example={"pair_receipts": 3, "basket_sizes.baskets": 40, "sales_by_sku.sku_receipts": 12, WITH: 5},
    ),
    Metric(
        "receipts_with_pairs_cut",
        "Receipts not paired",
        Formula("pairs_cut"),
        "n",
        "basket_sizes",
        note="Ours. Sale receipts with too many items for `basket_pairs`.",
        example={"pairs_cut": 2},
    ),
)
