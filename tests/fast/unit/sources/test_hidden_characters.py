"""Characters that nobody sees are refused in names, by field, except where a script needs them."""

# ruff: noqa: RUF001 - letters of other scripts

import io
import json
import unicodedata

import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry.hidden_characters import hidden_character
from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores_file import read

HIDDEN = "\u200b\u200e\u202e\u2060\u2066\u2069\ufeff\u2028\u2029\u00ad\u3164\U000e0041"
VISIBLE = ("Käse", "牛乳 1L", "Mléko\u00a01 l", "حليب ٢", "\u0600١٢", "❤\ufe0f", "नमस्ते", "Ω-3")
PERSIAN = "نوشیدنی\u200cها"


def load(**fields: str) -> None:
    line = json.dumps({"sku": "1", "title": "Milk"} | fields).encode()
    with ProductSpool() as spool:
        read_stream(io.BytesIO(line), spool)


def refusal(**fields: str) -> BadFileError:
    with pytest.raises(BadFileError) as refused:
        load(**fields)
    return refused.value


@pytest.mark.parametrize("character", HIDDEN, ids=lambda each: f"U+{ord(each):04X}")
@pytest.mark.parametrize("field", ["sku", "title", "brand", "category", "gtin"])
def test_a_product_is_refused_by_the_name_of_the_field(field: str, character: str) -> None:
    error = refusal(**{field: f"Mi{character}lk"})

    assert error.code == "bad_text"
    assert f"`{field}` of line 1 has a character that is not visible, U+{ord(character):04X}" in error.message
    assert character not in error.message


@pytest.mark.parametrize("text", VISIBLE)
def test_what_can_be_seen_is_taken(text: str) -> None:
    load(sku=text, title=text, brand=text, category=f"{text}/{text}")

    assert hidden_character(text) is None


def test_joiners_are_taken_in_titles_and_in_words_of_scripts_that_need_them() -> None:
    load(title="क\u094d\u200dष", brand=PERSIAN, category=f"{PERSIAN}/{PERSIAN}")
    load(title="a\u200db")
    read(f"stores: [{{id: '1', name: {PERSIAN}, timezone: UTC, groups: {{region: {PERSIAN}}}}}]")

    assert "`brand`" in refusal(brand="Ac\u200dme").message
    assert "`category`" in refusal(category="Food\u200c/Dairy").message
    assert "`sku`" in refusal(sku=PERSIAN).message


STORE = "stores: [{{id: '{id}', timezone: UTC, name: '{name}', tenant: '{tenant}', groups: {{{group}: '{value}'}}}}]"
GOOD = {"id": "1", "name": "One", "tenant": "acme", "group": "region", "value": "West"}


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\u2066", "\u00ad"])
@pytest.mark.parametrize(
    ("field", "named"),
    [("id", "stores[0].id"), ("name", "stores[0].name"), ("tenant", "stores[0].tenant"), ("value", "groups.region")],
)
def test_a_store_is_refused_by_the_name_of_the_field(field: str, named: str, character: str) -> None:
    with pytest.raises(BadFileError) as refused:
        read(STORE.format(**GOOD | {field: f"a{character}b"}))

    assert refused.value.code == "bad_text"
    assert named in refused.value.message
    assert f"U+{ord(character):04X}" in refused.value.message


def test_the_name_of_a_group_is_shown_with_what_cannot_be_seen_in_it() -> None:
    with pytest.raises(BadFileError, match=r"`re\\u200bgion`"):
        read(STORE.format(**GOOD | {"group": "re\u200bgion"}))


def test_every_format_character_is_hidden_or_drawn() -> None:
    drawn = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]
    shown = [each for each in drawn if hidden_character(each) is None]

    assert len(shown) == 13
