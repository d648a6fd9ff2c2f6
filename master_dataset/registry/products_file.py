"""Files of products: CSV with a header, or JSON Lines. Read in one pass; every error names the line and the field."""

import re
from datetime import date
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from master_dataset.registry.file_rows import FileRows, plain_date
from master_dataset.registry.hidden_characters import Joiners, hidden_character
from master_dataset.registry.products import Product, ProductSpool

SKU_BYTES = 256
TEXT_LENGTH = 200
MOST_LEVELS = 6
GTIN_LENGTHS = (8, 12, 13, 14)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def read_products(file: Path, spool: ProductSpool) -> None:
    """Read a file of products into a spool.

    Args:
        file: UTF-8, with or without a byte order mark. It is JSON Lines if it begins with `{`, and else CSV.
        spool: Gets every product.

    Raises:
        BadFileError: The file cannot be read or is wrong.
    """
    with _ROWS.opened(file) as stream:
        read_stream(stream, spool)


def read_stream(stream: IO[bytes], spool: ProductSpool) -> None:
    """Read products as `read_products` does. Raises BadFileError."""
    for number, fields in _ROWS.read(stream):
        spool.add(number, to_product(number, fields))


# Fields. A validator raises `_wrong(code, why)`: `why` completes the sentence that begins with the field.


def _wrong(code: str, why: str) -> PydanticCustomError:
    return PydanticCustomError("galatea", "{why}", {"code": code, "why": why})


def _text(value: object, joiners: Joiners = "none") -> str:
    if not isinstance(value, str):
        raise _wrong("wrong_type", "must be a text")
    if _CONTROL.search(value):
        raise _wrong("bad_text", "has control characters")
    if hidden := hidden_character(value, joiners):
        raise _wrong("bad_text", f"has a character that is not visible, {hidden}: leave it out")
    return value.strip()


def _word(value: object) -> str:
    return _text(value, "in_scripts")


def _sku(value: object) -> str:
    """As receipts name it: there, blanks around a SKU belong to it, so to leave them out would name another one."""
    text = _text(value)
    if text != value:
        raise _wrong("bad_text", f"has blanks around it: `{str(value)[:TEXT_LENGTH]}`")
    if not 0 < len(text.encode()) <= SKU_BYTES:
        raise _wrong("out_of_range", f"must hold 1 to {SKU_BYTES} bytes")
    return text


def _title(value: object) -> str:
    text = _text(value, "any")
    if not text:
        raise _wrong("missing_field", "is empty")
    return _label(text)


def _label(text: str) -> str:
    if len(text) > TEXT_LENGTH:
        raise _wrong("out_of_range", f"is longer than {TEXT_LENGTH} characters")
    return text


def category_path(value: object) -> tuple[str, ...]:
    """Read a category such as `Food/Dairy/Milk`. Raises PydanticCustomError."""
    text = _word(value)
    levels = tuple(level.strip() for level in text.split("/")) if text else ()
    if not all(levels):
        raise _wrong("bad_category", f"has an empty level: `{text[:TEXT_LENGTH]}`; one is `Food/Dairy/Milk`")
    if len(levels) > MOST_LEVELS:
        raise _wrong("bad_category", f"has {len(levels)} levels, more than {MOST_LEVELS}")
    for level in levels:
        _label(level)
    return levels


def _gtin(text: str) -> str:
    """GS1: the digits from the right, times 1 and 3 by turns, add up to a multiple of 10."""
    if not text:
        return text
    if len(text) not in GTIN_LENGTHS or not (text.isascii() and text.isdigit()):
        raise _wrong("bad_gtin", f"must have {', '.join(map(str, GTIN_LENGTHS))} digits: `{text[:TEXT_LENGTH]}`")
    if sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(reversed(text))) % 10:
        raise _wrong("bad_gtin", f"has a wrong check digit: `{text}`")
    return text


def _day(value: object) -> date | None:
    text = _text(value)
    if not text:
        return None
    try:
        return plain_date(text)
    except ValueError:
        raise _wrong("bad_time", f"is no day: `{text[:TEXT_LENGTH]}`; one is `2026-05-01`") from None


class ProductEntry(BaseModel):
    """A line of the file. See `Product` for what the fields mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sku: Annotated[str, BeforeValidator(_sku)]
    title: Annotated[str, BeforeValidator(_title)]
    brand: Annotated[str, BeforeValidator(_word), AfterValidator(_label)] = ""
    category: Annotated[tuple[str, ...], BeforeValidator(category_path)] = ()
    gtin: Annotated[str, BeforeValidator(_text), AfterValidator(_gtin)] = ""
    valid_from: Annotated[date | None, BeforeValidator(_day)] = None


def to_product(line: int, fields: dict[str, Any]) -> Product:
    """Validate the fields of a line; null counts as missing. Raises BadFileError."""
    try:
        entry = ProductEntry.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as invalid:
        error = invalid.errors(include_url=False, include_input=False)[0]
        name, context = str(error["loc"][0])[:TEXT_LENGTH], error.get("ctx", {})
        if error["type"] == "extra_forbidden":
            raise _ROWS.unknown_field(line, "field", name) from None
        why, code = context.get("why", "is missing"), context.get("code", "missing_field")
        raise _ROWS.error(f"`{name}` of line {line} {why}.", code) from None
    return Product(entry.sku, entry.title, entry.brand, entry.category, entry.gtin, entry.valid_from)


_ROWS = FileRows("products", tuple(ProductEntry.model_fields), ("sku", "title"))
