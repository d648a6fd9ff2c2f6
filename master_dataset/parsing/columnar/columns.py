"""Field types as columns: how msgspec decodes a cell, and how numpy and Arrow type and check all cells at once.

A cell is sure if `Field.read` surely returns the value that the column holds for it. The others cost nothing but time:
their records go to the reader of single records. So a check may be stricter than `Field.read`, and never looser.

The decoded cell of an optional field that is absent is a sentinel. A sender who really sends it is counted with one key
too few, which the count of quotes shows; see ADR 0070.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.fields import (
    BIGINT_MAX,
    ID_BYTES,
    LABEL_BYTES,
    Choice,
    Device,
    Field,
    Flag,
    Id,
    Instant,
    Label,
    Lines,
    Minor,
    Scaled,
    Sign,
    Text,
    Whole,
    Word,
)
from master_dataset.fields.texts import HASH, WORD
from master_dataset.fields.times import AFTER_LAST_MS, FIRST_MS

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Members = list[tuple[str, Any] | tuple[str, Any, Any]]
"""Names, types and defaults, as `msgspec.defstruct` takes them."""

EXACT = 10**15
"""Decimal numbers of at most 15 digits that become one float are equal: float64 tells all of them apart."""
UNSURE_NUMBER = r":[ \t\r\n]*-?(?:[0-9.]{16}|[0-9.]+[eE])"
"""In a record with a number of more than 15 digits, or with an exponent, which may make a float 0 that is not 0."""
SURE_INSTANT = (
    r"^(?:[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"|[0-9]{2}(?:0[48]|[2468][048]|[13579][26])-02-29)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)$"
)
"""Instants of days that exist, so that no cell makes Arrow refuse a column. It reads at most 6 decimals of a second."""
_POWERS = 10.0 ** np.arange(19)
_ABSENT_TEXT, _ABSENT_WHOLE, _ABSENT_NUMBER = "\0", -(2**63), -1e300


class LineColumns(NamedTuple):
    """The lines of all records, one after the other. `offsets`: where those of each record begin, and where all end."""

    offsets: Ints
    columns: Mapping[str, pa.Array]

    @property
    def lengths(self) -> Ints:
        """How many lines each record has; none where the list is absent."""
        return np.diff(self.offsets)

    @property
    def parents(self) -> Ints:
        """The number of the record of each line."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)


class Column(NamedTuple):
    """The cells of a field, typed.

    Attributes:
        values: As `Field.read` returns them, in Arrow; LineColumns of a list. Anything where not sure.
        sure: Which cells are sure; None: all.
        quoted: How many keys and strings each cell is in its record.
    """

    values: Any
    sure: Mask | None
    quoted: Ints | int


class ColumnType(Protocol):
    """The column of one field of a source."""

    @property
    def member(self) -> tuple[Any, ...]:
        """The type and, where the field is optional, the sentinel of an absent one."""

    def column(self, cells: list[Any], digits: Ints) -> Column:
        """Type the decoded cells. `digits`: those of the currency of each."""


def as_mask(booleans: pa.Array) -> Mask:
    """Null counts as true: an optional field may be null."""
    mask: Mask = booleans.fill_null(True).to_numpy(zero_copy_only=False)  # noqa: FBT003 - a value, not a switch
    return mask


def offsets_of(lengths: Ints) -> Ints:
    """Return where each list begins, and where all end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def sums(values: npt.NDArray[Any], offsets: Ints) -> Ints:
    """Return the sums of the values between each offset and the next."""
    until = offsets_of(values)
    return until[offsets[1:]] - until[offsets[:-1]]


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _present(cells: pa.Array, absent: object, quoted: int) -> tuple[pa.Array, Ints]:
    """Return the cells with null for absent ones, and how many keys and strings each is: null is a key alone."""
    is_absent = pc.fill_null(pc.equal(cells, pa.scalar(absent, cells.type)), False)  # noqa: FBT003 - a value
    missing = is_absent.to_numpy(zero_copy_only=False)
    is_null = cells.is_null().to_numpy(zero_copy_only=False)
    return pc.if_else(is_absent, None, cells), np.where(missing, 0, np.where(is_null, 1, quoted))


@dataclass(frozen=True)
class _Texts:
    """Texts that match a pattern and have at most that many bytes."""

    hint: Any
    optional: bool = False
    most_bytes: int | None = None
    pattern: str | None = None

    @property
    def member(self) -> tuple[Any, ...]:
        return (self.hint | None, _ABSENT_TEXT) if self.optional else (self.hint,)

    def column(self, cells: list[Any], _: Ints) -> Column:
        texts = pa.array(cells, pa.string())
        quoted: Ints | int = 2
        if self.optional:
            texts, quoted = _present(texts, _ABSENT_TEXT, 2)
            texts = pc.if_else(pc.equal(texts, ""), None, texts)
        sure = None
        if self.most_bytes is not None:
            sure = as_mask(pc.less_equal(pc.binary_length(texts), self.most_bytes))
        if self.pattern is not None:
            sure = _both(sure, as_mask(pc.match_substring_regex(texts, self.pattern)))
        return Column(texts, sure, quoted)


@dataclass(frozen=True)
class _Ids:
    member = (
        Annotated[int, msgspec.Meta(ge=-BIGINT_MAX, le=BIGINT_MAX)]
        | Annotated[str, msgspec.Meta(min_length=1, max_length=ID_BYTES)],
    )

    def column(self, cells: list[Any], _: Ints) -> Column:
        kinds = list(map(type, cells))
        texts = pa.array(cells if int not in kinds else list(map(str, cells)), pa.string())
        quoted = 2 if int not in kinds else 1 + np.array([kind is str for kind in kinds], np.int64)
        return Column(texts, as_mask(pc.less_equal(pc.binary_length(texts), ID_BYTES)), quoted)


@dataclass(frozen=True)
class _Instants:
    optional: bool

    @property
    def member(self) -> tuple[Any, ...]:
        return (str | None, _ABSENT_TEXT) if self.optional else (str,)

    def column(self, cells: list[Any], _: Ints) -> Column:
        texts = pa.array(cells, pa.string())
        quoted: Ints | int = 2
        if self.optional:
            texts, quoted = _present(texts, _ABSENT_TEXT, 2)
        is_written_well = pc.match_substring_regex(texts, SURE_INSTANT)
        readable = pc.if_else(is_written_well, texts, pa.scalar("1970-01-01T00:00:00Z"))
        micros = readable.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        millis = pc.divide(micros, 1000)  # rounds to 0, which matters only before FIRST_MS
        within = pc.and_(pc.greater_equal(micros, FIRST_MS * 1000), pc.less(millis, AFTER_LAST_MS))
        return Column(millis, as_mask(pc.and_(is_written_well, within)), quoted)


@dataclass(frozen=True)
class _Wholes:
    """Whole numbers, whose bounds msgspec checks. `otherwise`: what an absent one is."""

    hint: Any
    optional: bool
    otherwise: int | None

    @property
    def member(self) -> tuple[Any, ...]:
        return (self.hint | None, _ABSENT_WHOLE) if self.optional else (self.hint,)

    def column(self, cells: list[Any], _: Ints) -> Column:
        numbers = pa.array(cells, pa.int64())
        if not self.optional:
            return Column(numbers, None, 1)
        numbers, quoted = _present(numbers, _ABSENT_WHOLE, 1)
        return Column(numbers if self.otherwise is None else numbers.fill_null(self.otherwise), None, quoted)


@dataclass(frozen=True)
class _Flags:
    member = (bool | None, None)  # null in a record is not sure, as the sentinel is null

    def column(self, cells: list[Any], _: Ints) -> Column:
        flags = pa.array(cells, pa.bool_())
        return Column(flags.fill_null(False), None, flags.is_valid().cast(pa.int64()).to_numpy())  # noqa: FBT003


@dataclass(frozen=True)
class _Numbers:
    """JSON numbers as whole numbers of their smallest unit. `decimals`: None for those of the currency."""

    decimals: int | None
    below: int
    optional: bool

    @property
    def member(self) -> tuple[Any, ...]:
        return (float | None, _ABSENT_NUMBER) if self.optional else (float,)

    def column(self, cells: list[Any], digits: Ints) -> Column:
        numbers = pa.array(cells, pa.float64())
        quoted: Ints | int = 1
        if self.optional:
            numbers, quoted = _present(numbers, _ABSENT_NUMBER, 1)
        floats = numbers.fill_null(0.0).to_numpy()
        scale = _POWERS[digits if self.decimals is None else self.decimals]
        with np.errstate(over="ignore"):
            scaled = np.rint(floats * scale)
        # The quotient of whole numbers is a decimal of at most 15 digits. So is what was sent, and both are one float.
        sure: Mask = (scaled / scale == floats) & (np.abs(scaled) < min(self.below, EXACT))
        wholes = np.where(sure, scaled, 0.0).astype(np.int64)
        return Column(pa.array(wholes, mask=numbers.is_null().to_numpy(zero_copy_only=False)), sure, quoted)


class _ListsOfLines:
    """Lines within a record: the columns of all lines at once."""

    def __init__(self, name: str, lines: Lines) -> None:
        self.types = column_types(lines.fields) or {}
        self.struct = struct_of(name, self.types)
        self.optional, self.most = lines.optional, lines.most

    @property
    def member(self) -> tuple[Any, ...]:
        hint: Any = list[self.struct]  # type: ignore[name-defined]
        return (hint | None, msgspec.UNSET) if self.optional else (hint,)

    def column(self, cells: list[Any], digits: Ints) -> Column:
        quoted: Ints = np.ones(len(cells), np.int64)
        if self.optional:
            quoted = np.array([cell is not msgspec.UNSET for cell in cells], np.int64)
            cells = [cell or () for cell in cells]
        lengths = np.fromiter(map(len, cells), np.int64, len(cells))
        lines = LineColumns(offsets_of(lengths), {})
        parents = lines.parents
        columns = typed(self.types, list(chain.from_iterable(cells)), digits[parents])
        sure: Mask = lengths <= (len(parents) if self.most is None else self.most)
        for column in columns.values():
            whole = column.quoted * lengths if isinstance(column.quoted, int) else sums(column.quoted, lines.offsets)
            quoted += whole
            if column.sure is not None and not column.sure.all():
                sure[parents[~column.sure]] = False
        return Column(lines._replace(columns={name: each.values for name, each in columns.items()}), sure, quoted)


def typed(types: Mapping[str, ColumnType], structs: Sequence[Any], digits: Ints) -> Mapping[str, Column]:
    """Return the columns of decoded structs of these types, by name."""
    return {name: each.column(list(map(attrgetter(name), structs)), digits) for name, each in types.items()}


def struct_of(name: str, types: Mapping[str, ColumnType]) -> type[msgspec.Struct]:
    """Return the struct that msgspec decodes into. Without the garbage collector, which would visit every line."""
    members: Members = [(key, *each.member) for key, each in types.items()]
    return msgspec.defstruct(name, members, kw_only=True, gc=False)


def column_types(fields: Mapping[str, Field | Lines]) -> Mapping[str, ColumnType] | None:
    """Return the column of each field; None if a field has a type that is not known as a column."""
    found = {name: _TYPES[type(field)](name, field) for name, field in fields.items() if type(field) in _TYPES}
    known = all(each.types for each in found.values() if isinstance(each, _ListsOfLines))
    return found if known and len(found) == len(fields) else None


def has_decimals(types: Mapping[str, ColumnType]) -> bool:
    """Whether a record may have numbers that are decoded as floats."""
    return any(
        isinstance(each, _Numbers) or (isinstance(each, _ListsOfLines) and has_decimals(each.types))
        for each in types.values()
    )


def _label(_: str, __: Field) -> _Texts:
    return _Texts(Annotated[str, msgspec.Meta(min_length=1)], most_bytes=LABEL_BYTES)


def _bounded(field: Whole) -> Any:  # noqa: ANN401 - a type form
    return Annotated[int, msgspec.Meta(ge=field.least, le=field.most)]


_TYPES: Mapping[type, Callable[[str, Any], ColumnType]] = {
    Id: lambda _, __: _Ids(),
    Label: _label,
    Device: lambda _, __: _Texts(str, pattern=f"^{HASH.pattern}$"),
    Word: lambda _, __: _Texts(str, pattern=f"^{WORD.pattern}$"),
    Choice: lambda _, field: _Texts(Literal[field.words]),
    Text: lambda _, field: _Texts(str, field.optional, field.max_bytes),
    Instant: lambda _, field: _Instants(field.optional),
    Flag: lambda _, __: _Flags(),
    Sign: lambda _, field: _Wholes(Literal[-1, 1], field.optional, field.otherwise),
    Whole: lambda _, field: _Wholes(_bounded(field), field.optional, field.otherwise),
    Minor: lambda _, field: _Numbers(None, EXACT, field.optional),
    Scaled: lambda _, field: _Numbers(field.decimals, field.below, field.optional),
    Lines: _ListsOfLines,
}
"""By exact type: a subclass may read otherwise."""


def all_sure(columns: Iterable[Column], number: int) -> Mask:
    """Return which records have only sure cells."""
    sure: Mask = np.ones(number, np.bool_)
    for column in columns:
        if column.sure is not None:
            sure &= column.sure
    return sure
