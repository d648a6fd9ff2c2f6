"""What is wrong with an argument, in the words of the API: which one, what was given, what is wanted, an example.

FastAPI finds it out with pydantic, whose sentences are about types of Python. It ignores unknown arguments, and reads
the last one of an argument that is given several times: both are refused here.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_origin

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Cookie, Header, Path
from fastapi.routing import APIRoute

from master_dataset.errors import UnknownNameError
from serving_layer.errors import BadQuestionError

MAX_ECHOED = 100
"""Characters of an argument that are repeated in a problem."""
DAY, INSTANT = "2026-11-21", "2026-11-21T09:00:00Z"
_EXAMPLES = {"top": 10, "limit": 100, "last": 28}
"""Better examples of whole numbers than 1."""
_QUOTED = re.compile("'([^']*)'")


class InvalidArgument(NamedTuple):
    """A sentence on what is wrong, and one on what to send."""

    title: str
    do: str


class _Wrong(NamedTuple):
    """What pydantic says. `given`: as `name=value`, or the name if the value is long or no single one."""

    name: str
    value: str
    given: str
    context: Mapping[str, Any]
    is_query: bool

    def such_as(self, value: object) -> str:
        return f"`{self.name}={value}`" if self.is_query else f"`{value}`"


def invalid_argument(error: Mapping[str, Any]) -> InvalidArgument:
    """One of the errors of pydantic in our words. The value is not repeated if it is not a short text or number."""
    place = [str(part) for part in error["loc"]]
    is_query = place[0] in ("query", "path", "header")
    name = place[1] if is_query and len(place) > 1 else ".".join(place[1:] or place)
    value = error.get("input")
    is_shown = isinstance(value, str | int | float) and len(str(value)) <= MAX_ECHOED and str(value).isprintable()
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    given = f"`{name}={shown}`" if is_shown else f"`{name}`"
    wrong = _Wrong(name, shown[:MAX_ECHOED], given, error.get("ctx") or {}, is_query)
    kind = str(error["type"])
    for kinds, say in _SENTENCES:
        if kind in kinds:
            return say(wrong)
    if kind.startswith(("date", "time")):
        return _date(wrong, DAY if kind.startswith("date_") and not kind.startswith("datetime") else INSTANT)
    said = str(error["msg"]).removeprefix("Value error, ")
    return InvalidArgument(f"{given} cannot be read.", f"{said[:1].upper()}{said[1:]}.")


def _choice(wrong: _Wrong) -> InvalidArgument:
    unknown = UnknownNameError(wrong.name, wrong.value, _QUOTED.findall(wrong.context["expected"]))
    return InvalidArgument(f"There is no `{wrong.name}={wrong.value}`.", unknown.do)


def _whole(wrong: _Wrong) -> InvalidArgument:
    do = f"Send a whole number, such as {wrong.such_as(_EXAMPLES.get(wrong.name, 1))}."
    return InvalidArgument(f"{wrong.given} is not a whole number.", do)


def _number(wrong: _Wrong) -> InvalidArgument:
    return InvalidArgument(f"{wrong.given} is not a number.", f"Send a number, such as {wrong.such_as(1.5)}.")


def _flag(wrong: _Wrong) -> InvalidArgument:
    do = f"Send {wrong.such_as('true')} or {wrong.such_as('false')}."
    return InvalidArgument(f"{wrong.given} is neither true nor false.", do)


def _date(wrong: _Wrong, example: str) -> InvalidArgument:
    what = "date" if example == DAY else "date with a time and an offset"
    return InvalidArgument(f"{wrong.given} is not a {what}.", f"Send one such as {wrong.such_as(example)}.")


_BOUNDS = {
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "multiple_of": "a multiple of {}",
}


def _bound(wrong: _Wrong) -> InvalidArgument:
    [(name, value)] = [(name, wrong.context[name]) for name in _BOUNDS if name in wrong.context]
    example = f", such as {wrong.such_as(value)}" if name in ("ge", "le") else ""
    return InvalidArgument(f"{wrong.given} is out of range.", f"Send {_BOUNDS[name].format(value)}{example}.")


def _length(wrong: _Wrong) -> InvalidArgument:
    """Of a text, which has characters, or a list."""
    of = "items" if "actual_length" in wrong.context else "characters"
    if "max_length" in wrong.context:
        most = wrong.context["max_length"]
        return InvalidArgument(f"`{wrong.name}` is too long.", f"At most {most:,} {of} are read.")
    least = wrong.context["min_length"]
    words = {"characters": "character", "items": "item"}[of] if least == 1 else of
    return InvalidArgument(f"`{wrong.name}` is too short.", f"Give it {least:,} {words} or more.")


def _text(wrong: _Wrong) -> InvalidArgument:
    return InvalidArgument(f"`{wrong.name}` is not a text.", "Send a text.")


def _pattern(wrong: _Wrong) -> InvalidArgument:
    do = "Leave out control characters, and write it as `/docs` describes it."
    return InvalidArgument(f"`{wrong.name}` has characters or a form that it cannot have.", do)


def _list(wrong: _Wrong) -> InvalidArgument:
    return InvalidArgument(f"`{wrong.name}` is not a list.", "Send a list, also of a single item.")


def _object(wrong: _Wrong) -> InvalidArgument:
    return InvalidArgument(f"`{wrong.name}` is not a JSON object.", "Send a JSON object, with the fields in `/docs`.")


def _json(wrong: _Wrong) -> InvalidArgument:
    return InvalidArgument("The body is not valid JSON.", f"Correct it at or before character {wrong.name}.")


_SENTENCES: Sequence[tuple[frozenset[str], Callable[[_Wrong], InvalidArgument]]] = (
    (frozenset({"int_parsing", "int_type", "int_from_float", "int_parsing_size"}), _whole),
    (frozenset({"float_parsing", "float_type", "finite_number", "decimal_parsing", "decimal_type"}), _number),
    (frozenset({"bool_parsing", "bool_type"}), _flag),
    (
        frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}),
        _bound,
    ),
    (frozenset({"string_too_long", "string_too_short", "too_long", "too_short"}), _length),
    (frozenset({"string_type", "string_unicode"}), _text),
    (frozenset({"string_pattern_mismatch"}), _pattern),
    (frozenset({"list_type", "tuple_type", "set_type"}), _list),
    (frozenset({"dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type"}), _object),
    (frozenset({"literal_error", "enum"}), _choice),
    (frozenset({"json_invalid"}), _json),
)


def refuse_unread(request: Request) -> None:
    """Refuse an argument that would not be read: one that the route does not have, or one of one value given twice.

    Raises:
        BadQuestionError: names the argument that is given twice. Lists, such as `store`, may be repeated.
        RequestValidationError: names the arguments that the route does not have.
    """
    given = request.query_params.multi_items()
    route = request.scope.get("route")
    if not given or not isinstance(route, APIRoute):
        return
    fields = {
        field.alias: field
        for field in get_flat_params(route.dependant)
        if not isinstance(field.field_info, Path | Header | Cookie)
    }
    if unknown := [(name, value) for name, value in given if name not in fields]:
        raise RequestValidationError(
            [{"type": "extra_forbidden", "loc": ("query", name), "msg": "", "input": value} for name, value in unknown]
        )
    for name, times_given in Counter(name for name, _ in given).items():
        if times_given > 1 and get_origin(fields[name].field_info.annotation) is not list:
            values = [value[:MAX_ECHOED] for each, value in given if each == name]
            shown = " and ".join(f"`{name}={value}`" for value in values[:2])
            times = "twice" if len(values) == len(("one", "two")) else f"{len(values)} times"
            message = f"`{name}` is given {times}: {shown}{', ...' if len(values) > len(values[:2]) else ''}."
            raise BadQuestionError(message, do=f"Give `{name}` once.")
