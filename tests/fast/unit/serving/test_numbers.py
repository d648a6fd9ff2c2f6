"""Money is written from whole numbers, never through a float."""

import pytest

from serving_layer.query.render import money
from serving_layer.responses.encoding import encode


@pytest.mark.parametrize(
    ("minor", "digits", "text"),
    [
        (582, 2, "5.82"),
        (-5, 2, "-0.05"),
        (0, 2, "0.00"),
        (5, 0, "5"),
        (1234, 3, "1.234"),
        (10**20 + 1, 2, "1000000000000000000.01"),
    ],
)
def test_an_amount_has_the_digits_of_its_currency(minor: int, digits: int, text: str) -> None:
    assert encode(money(minor, digits)).decode() == text
