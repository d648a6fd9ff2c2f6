"""Public holidays of a country and its subdivision, by the `holidays` library. Nothing is fetched."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise

import holidays

from master_dataset.errors import UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.errors import CountryUnknownError

VERSION = version("holidays")
ENGLISH = "en_US"
Names = Mapping[date, tuple[str, ...]]
"""The names of each holiday by its date, in order."""


@lru_cache(maxsize=256)
def names_in(country: str, subdivision: str, year: int, *, english: bool = False) -> Names:
    """Every public holiday of a year, in the country's own language or in English where the library has it.

    NotImplementedError if the library knows no such country or subdivision; where it knows none at all, all of the
    country have the same holidays. The language is always given, or the library would use that of the machine.
    """
    code = country.upper()
    whole = holidays.country_holidays(code)
    part = subdivision.upper().removeprefix(f"{code}-") if whole.subdivisions else None
    language = ENGLISH if english and ENGLISH in whole.supported_languages else whole.default_language
    found = holidays.country_holidays(code, part or None, year, language=language, categories=holidays.PUBLIC)
    return {day: tuple(found.get_list(day)) for day in sorted(found) if day.year == year}


def names_of(store: Store, year: int, *, english: bool = False) -> Names:
    """The public holidays at a store. CountryUnknownError if it has no country, or the library does not know it."""
    if not store.country:
        message = f"The store `{store.id}` has no `country`, so its holidays are not known."
        raise CountryUnknownError(message, do="Set `country` in stores.yaml, then `galatea stores load stores.yaml`.")
    try:
        return names_in(store.country, store.subdivision, year, english=english)
    except NotImplementedError as error:
        message = f"The holidays of the store `{store.id}` are not known: {error}."
        raise CountryUnknownError(message, do="Use ISO 3166 codes, such as `country: SK`, in stores.yaml.") from error


def nearest(store: Store, name: str, first: date, last: date) -> date:
    """The date of the holiday that is nearest to the days from `first` until before `last`.

    Raises:
        UnknownNameError: the country has no holiday of this name.
        CountryUnknownError: as `names_of`.
    """
    years = range(first.year - 1, last.year + 2)
    found = [day for year in years for day in dates(store, name, year)]
    if not found:
        known = {each for year in years for names in names_of(store, year, english=True).values() for each in names}
        do = f"The `holidays` library knows none of {first.year}; use another year."
        raise UnknownNameError(f"public holiday of {store.country}", name, known, do=do)
    return min(found, key=lambda day: (max(first - day, day - last + timedelta(days=1), timedelta(0)), day))


def dates(store: Store, name: str, year: int) -> Sequence[date]:
    """On which dates of a year the holiday begins, by its local or its English name; of days in a row the first."""
    folded = name.casefold()
    days = sorted(
        {
            day
            for english in (False, True)
            for day, names in names_of(store, year, english=english).items()
            if folded in {each.casefold() for each in names}
        }
    )
    return days[:1] + [two for one, two in pairwise(days) if two - one > timedelta(days=1)]


def nearest_of(days: Iterable[date], to: date) -> date | None:
    """The nearest of these dates, the earlier of two; None of none."""
    return min(days, key=lambda day: (abs(day - to), day), default=None)
