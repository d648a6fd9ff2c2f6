"""Discounts and payments, of receipts that report them. If no receipt does, the value is null, not zero."""

from views.core.formula import Formula
from views.core.metric import Caution, Metric, Only

NO_DISCOUNTS, NO_PAYMENTS = "discounts_not_said", "payments_not_said"
SOME = "partly_said"
SAYS_DISCOUNTS = Only(Formula("discount_receipts"), NO_DISCOUNTS)
SOME_DISCOUNTS = Caution(Formula("sales.receipts - discount_receipts"), SOME)
OF_DISCOUNTS = (NO_DISCOUNTS, SOME)
SAYS_PAYMENTS = Only(Formula("total(payment_receipts)"), NO_PAYMENTS)
SOME_PAYMENTS = Caution(Formula("sales.receipts - total(payment_receipts)"), SOME)
OF_PAYMENTS = (NO_PAYMENTS, SOME)
SAID = {"discount_receipts": 4}
PAID = {"total(payment_receipts)": 4}

DISCOUNTS = (
    Metric(
        "discounts",
        "Discounts",
        Formula("discounts"),
        "money",
        "discounts",
        OF_DISCOUNTS,
        only=SAYS_DISCOUNTS,
        cautions=(SOME_DISCOUNTS,),
        note="Ours. Discounts on sale lines; `gross_sales` is what remains after them.",
        example=SAID | {"discounts": 150},
    ),
    Metric(
        "discounts_returned",
        "Discounts on returns",
        Formula("discounts_returned"),
        "money",
        "discounts",
        OF_DISCOUNTS,
        only=SAYS_DISCOUNTS,
        cautions=(SOME_DISCOUNTS,),
        note="Ours. The amount not refunded because returned items had been sold at a discount.",
        example=SAID | {"discounts_returned": 50},
    ),
    Metric(
        "discount_share",
        "Discount rate",
        Formula("discounts / (gross_sales + discounts)"),
        "percent",
        "discounts",
        OF_DISCOUNTS,
        adds_money=True,
        only=SAYS_DISCOUNTS,
        cautions=(SOME_DISCOUNTS,),
        note="Ours. The share of gross sales before discounts, over receipts that report their discounts.",
        example=SAID | {"discounts": 150, "gross_sales": 1350},
    ),
    Metric(
        "discounted_receipts_share",
        "Receipts with a discount",
        Formula("discounted / discount_receipts"),
        "percent",
        "discounts",
        OF_DISCOUNTS,
        only=SAYS_DISCOUNTS,
        cautions=(SOME_DISCOUNTS,),
        note="Ours. Among receipts that report their discounts.",
        example=SAID | {"discounted": 1},
    ),
)
PAYMENTS = (
    Metric(
        "payments",
        "Payments",
        Formula("payments"),
        "money",
        "payments",
        OF_PAYMENTS,
        only=SAYS_PAYMENTS,
        cautions=(SOME_PAYMENTS,),
        note="Ours. Split it with `by=payment_type`. Money paid out is subtracted.",
        example=PAID | {"payments": 1350},
    ),
    Metric(
        "payments_count",
        "Number of payments",
        Formula("payments_count"),
        "n",
        "payments",
        OF_PAYMENTS,
        only=SAYS_PAYMENTS,
        cautions=(SOME_PAYMENTS,),
        note="Ours. Split it with `by=payment_type`. A receipt can have several payments.",
        example=PAID | {"payments_count": 5},
    ),
    Metric(
        "payment_share",
        "Payment type share",
        Formula("payments / total(payments)"),
        "percent",
        "payments",
        OF_PAYMENTS,
        adds_money=True,
        only=SAYS_PAYMENTS,
        cautions=(SOME_PAYMENTS,),
        note="Ours. By amount. Split it with `by=payment_type`.",
        example=PAID | {"payments": 900, "total(payments)": 1350},
    ),
)
