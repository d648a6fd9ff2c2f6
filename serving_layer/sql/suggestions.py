"""What a name that does not exist was probably meant to be, for hints."""

from collections.abc import Iterable
from difflib import get_close_matches

from serving_layer.sql.names import PG_CATALOG, PUBLIC
from serving_layer.sql.results import SqlStateError

LIST_TABLES = "`\\d` in psql lists the tables, and so does `information_schema.tables`."
_ECHOED = 200
"""Characters of a name that are repeated."""
LONGEST_NAME = 100
"""Characters of a name that is compared with others."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint with the nearest names: one that is spelled alike, or the tables of a view for its name.

    Args:
        name: what was written.
        known: what could have been.
        otherwise: the hint if nothing is near.
    """
    if len(name) > LONGEST_NAME:
        return otherwise
    written, short = name.lower(), {each for each in known if len(each) <= LONGEST_NAME}
    names = sorted(short, key=lambda each: (len(each), each))
    near = (
        get_close_matches(written, names, n=1, cutoff=0.85)
        or [each for each in names if each.startswith(f"{written}_")][:3]
        or get_close_matches(written, names, n=1, cutoff=0.7)
    )
    if not near:
        return otherwise
    return f"Did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}?"


def missing_relation(name: str, schema: str, known: Iterable[str]) -> SqlStateError:
    """The error for a table that is not there.

    Args:
        name: its name.
        schema: as it was written; empty if none was.
        known: the tables, by schema and name, such as `public.sales_day`, and names that WITH defines.
    """
    of_schema = schema.lower() or (PG_CATALOG if name.lower().startswith("pg_") else PUBLIC)
    names = [table or of for of, _, table in (each.partition(".") for each in known) if not table or of == of_schema]
    named = ".".join(filter(None, (schema, name)))[:_ECHOED]
    hint = did_you_mean(name, names, LIST_TABLES)
    return SqlStateError("42P01", f'The relation "{named}" does not exist.', hint)
