"""The demo's product master: the products of its data, with the titles of its receipts."""

from lab.demo.journey import product_master


def test_every_product_of_the_data_has_a_title_and_a_department() -> None:
    products = list(product_master())

    assert len(products) == len({each.sku for each in products}) == 92_331
    assert all(each.title and len(each.category) <= 2 for each in products)
    assert not any("/" in level for each in products for level in each.category)
    assert {each.brand for each in products} == {"National", "Private"}
    [towels] = [each for each in products if each.sku == "18316298"]
    assert (towels.title, towels.category) == ("Paper towels & holders", ("Grocery", "Paper towels"))
