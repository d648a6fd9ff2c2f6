"""The language of a page: texts from a catalogue, and numbers, money and dates as readers of that language write them.

A request has one language, and every function that a page calls writes in it, so it is kept in the context of the
request instead of being handed through. Texts are English in the code; `locales/LANGUAGE.po` holds translations, and a
text without one stays English. `static/live.js` writes numbers in the language that the page names in `<html lang>`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime, time
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, localcontext
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Literal, cast, get_args
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from babel.dates import format_date, format_datetime, format_skeleton
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, get_currency_symbol
from fastapi import Request

Language = Literal["en", "de", "sk", "es"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
NAMES: dict[Language, str] = {"en": "English", "de": "Deutsch", "sk": "Slovenčina", "es": "Español"}
"""Each in itself, as its readers look for it."""
COOKIE = "galatea_language"
COOKIE_SECONDS = 365 * 86_400
FOLDER = Path(__file__).parent / "locales"
MINUS, UNKNOWN = "\N{MINUS SIGN}", "\N{EN DASH}"
MAX_ACCEPTED = 20
"""How many languages of a header are read."""
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""For amounts of more digits than decimals usually have."""
_ENGLISH: Language = "en"
_BRITISH = "en_GB"
"""Days before months and a 24-hour clock, as most English-speaking countries have them."""
_current: ContextVar[Language] = ContextVar("language", default=_ENGLISH)


@contextmanager
def use_language(language: Language) -> Iterator[None]:
    """Write in this language until the end of the block."""
    token = _current.set(language)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Language:
    """The language of this request."""
    return _current.get()


def language_of(request: Request) -> Language:
    """The language that a visitor chose, or else the first of those that their browser asks for; or else English."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in LANGUAGES:
        return chosen
    accepted = request.headers.get("accept-language", "").split(",", MAX_ACCEPTED)[:MAX_ACCEPTED]
    wanted = [each.partition(";")[0].strip().lower().replace("-", "_") for each in accepted]
    return cast("Language", negotiate_locale([each for each in wanted if each], LANGUAGES) or _ENGLISH)


# Texts


def gettext(text: str) -> str:
    """A text in the language of this request."""
    return translations(current()).gettext(text)


def ngettext(one: str, many: str, number: int) -> str:
    """The form of a text for that number, in the language of this request."""
    return translations(current()).ngettext(one, many, number)


def gettext_noop(text: str) -> str:
    """Mark a text for the catalogue where it is defined; it is translated where it is shown."""
    return text


@cache
def translations(language: Language) -> NullTranslations:
    """The translations into a language."""
    if language == _ENGLISH:
        return NullTranslations()
    compiled = BytesIO()
    with (FOLDER / f"{language}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return GNUTranslations(compiled)


# Numbers


def number(value: object, digits: int) -> str:
    """A number with that many decimals, in groups of thousands, and with a real minus sign."""
    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    with localcontext(EXACT):
        return format_decimal(value, pattern, _locale()).replace("-", MINUS)  # type: ignore[arg-type]  # any number


def currency_symbol(code: str) -> str:
    """`$`, `€` or, for a currency whose symbol few readers know, its code."""
    return get_currency_symbol(code, _locale())


def has_symbol_first() -> bool:
    """Whether the symbol of a currency precedes the number."""
    pattern: str = _locale().currency_formats["standard"].pattern
    return pattern.startswith("\N{CURRENCY SIGN}")


# Dates


def day(of: date, skeleton: str = "MMMEd") -> str:
    """A date in the order of the language.

    Args:
        of: the date, or an instant in the time zone of the reader.
        skeleton: which parts it has, as Unicode writes them: `MMMEd` is "Sat 21 Nov".
    """
    return format_skeleton(skeleton, of if isinstance(of, datetime) else datetime.combine(of, time()), locale=_dates())


def long_day(of: date) -> str:
    """A date with its weekday and year: "Saturday 21 November 2026"."""
    return format_date(of, "full", locale=_dates())


def clock(at: datetime | None, zone: str, pattern: str = "HH:mm") -> str:
    """The local time of an instant; a dash for None."""
    return UNKNOWN if at is None else format_datetime(at.astimezone(ZoneInfo(zone)), pattern, locale=_dates())


def moment(at: datetime | None, zone: str, skeleton: str = "MMMEd") -> str:
    """The local date and time of an instant; a dash for None."""
    if at is None:
        return UNKNOWN
    there = at.astimezone(ZoneInfo(zone))
    return f"{day(there, skeleton)}, {clock(at, zone)}"


def _locale() -> Locale:
    return _parsed(current())


def _dates() -> Locale:
    return _parsed(_BRITISH if current() == _ENGLISH else current())


_parsed = cache(Locale.parse)
