"""Characters that nobody sees are refused in names, by field, except where a script needs them."""

# ruff: noqa: RUF001 - letters of other scripts

import io
import json
import unicodedata

import pytest

from master_dataset.errors import BadFileError, RequestError
from master_dataset.registry.hidden_characters import hidden_character, visible
from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores_file import read
from master_dataset.registry.tenants import checked_tenant

HIDDEN = "\u200b\u200e\u202e\u2060\u2066\u2069\ufeff\u2028\u2029\u00ad\u3164\U000e0041\ufe00\u17b4\ufffc\ue000"
VISIBLE = (
    "Käse",
    "牛乳 1L",
    "Mléko\u00a01 l",
    "حليب ٢",
    "\u0600١٢",
    "❤\ufe0f",
    "1\ufe0f\u20e3",
    "ℹ\ufe0f",
    "葛\U000e0100城",
    "नमस्ते",
    "Ω-3",
)
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
    assert "`brand`" in refusal(brand="Ac\ufe0fme").message
    for text in ("A1\ufe0f", "A+\ufe0f", "A°\ufe0f", "é\U000e0100", "葛\u180b"):
        assert "`sku`" in refusal(sku=text).message
    assert "`sku`" in refusal(sku="A\U000e0100").message


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


CONTROL = {"U+202E": r"\u202e", "U+0000": r"\0", "U+D800": r"\ud800", "U+001B": r"\e"}
"""As YAML writes them."""
TEXT_FIELDS = ("id", "name", "tenant", "timezone", "country", "subdivision", "day_starts_at", "week_starts_on")
VALUE_FIELDS = ("currency", "floor_m2", "open_since", "comp_start_date", "conversion_target")


def store_refusal(field: str, value: str) -> BadFileError:
    fields = {"id": "a", "timezone": "UTC"} | {field: value}
    with pytest.raises(BadFileError) as refused:
        read(f"stores: [{{{', '.join(f'{name}: {each}' for name, each in fields.items())}}}]")
    assert f"{refused.value.message}{refused.value.do}".isprintable()
    return refused.value


@pytest.mark.parametrize("code", CONTROL)
@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_control_characters_are_refused_in_every_text_of_a_store(field: str, code: str) -> None:
    error = store_refusal(field, f'"a{CONTROL[code]}b"')

    assert error.code == "bad_text"
    assert f"`stores[0].{field}` has a character that is not visible, {code}" in error.message


@pytest.mark.parametrize("code", CONTROL)
@pytest.mark.parametrize("field", ["id", "source", "line", "zone", "queue"])
def test_control_characters_are_refused_in_every_text_of_a_sensor(field: str, code: str) -> None:
    sensor = {"id": "s", "source": "people_counts"} | {field: f'"a{CONTROL[code]}b"'}
    entry = ", ".join(f"{name}: {each}" for name, each in sensor.items())

    error = store_refusal("sensors", f"[{{{entry}}}]")

    assert error.code == "bad_text"
    assert f"`stores[0].sensors[0].{field}` has a character that is not visible, {code}" in error.message


@pytest.mark.parametrize("code", CONTROL)
@pytest.mark.parametrize("field", VALUE_FIELDS)
def test_errors_write_control_characters_out(field: str, code: str) -> None:
    error = store_refusal(field, f'"a{CONTROL[code]}b"')

    assert f"a{CONTROL[code].replace('e', 'x1b') if code == 'U+001B' else CONTROL[code]}b" in error.message


@pytest.mark.parametrize("code", CONTROL)
def test_errors_write_control_characters_of_unknown_fields_out(code: str) -> None:
    unknown = f'"x{CONTROL[code]}"'

    assert store_refusal(unknown, "1").code == "unknown_field"
    assert "`stores[0].zones[0].x\\" in store_refusal("zones", f"[{{id: a, {unknown}: b}}]").message
    assert "sensors[0].x\\" in store_refusal("sensors", f"[{{id: a, source: people_counts, {unknown}: b}}]").message
    assert "`stores[0].opening_hours" in store_refusal("opening_hours", f"{{{unknown}: [08:00-20:00]}}").message


def test_a_store_cannot_belong_to_all_tenants() -> None:
    assert "`stores[0].tenant` is `*`, which means all tenants" in store_refusal("tenant", "'*'").message
    assert "`stores[0].tenant` is longer than 256 bytes" in store_refusal("tenant", "x" * 257).message


@pytest.mark.parametrize("name", ["", "*", "a\0", "a\u202eb", "\ud800", "\x1b[2J", "a\n", "x" * 257, "\u00e4" * 129])
def test_a_name_that_no_tenant_can_have_is_refused(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        checked_tenant(name)

    assert refused.value.message.isprintable()


@pytest.mark.parametrize("name", ["acme", "010", "Käse & Co", "x" * 256, "**"])
def test_a_tenant_may_have_any_name_that_can_be_seen(name: str) -> None:
    assert checked_tenant(name) == name


def test_hidden_characters_are_written_out() -> None:
    assert visible("a\x1b[2J\0b\u202ec\ud800\U000e0041\x9b\n") == r"a\x1b[2J\0b\u202ec\ud800\U000e0041\x9b\n"
    assert visible("a\n\tb\x07", keep="\n\t") == "a\n\tb\\x07"
    for text in (*VISIBLE, PERSIAN, "👩\u200d🚀"):
        assert visible(text) == text
