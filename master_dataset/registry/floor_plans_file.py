"""What operators send for a floor plan: the bytes of an image, and zones as JSON, YAML or lines of text."""

import io
import math
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import imagesize
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from master_dataset.errors import BadFileError, BadFloorPlanError
from master_dataset.fields import LABEL_BYTES
from master_dataset.registry.floor_plans import Corner, DrawnZone, PlanImage, Rectangle
from master_dataset.registry.hidden_characters import hidden_character
from master_dataset.registry.yaml_text import read_yaml

MOST_BYTES = 2_000_000
LEAST_SIDE, MOST_SIDE, MOST_PIXELS = 50, 10_000, 25_000_000
MOST_ZONES, MOST_CORNERS = 200, 64
MOST_TEXT = 200_000
"""Bytes of zones as text."""
_LEAST_AREA = 1e-6
"""Of the image: a thousandth of each side."""
_DECIMALS = 6
_SHOWN = 100
"""Characters of a wrong value that an error repeats."""
_OF_RECTANGLE = 4
IMAGE = "image"


# Images


def read_image(content: bytes) -> PlanImage:
    """Read the kind and the size of an image from its content; nothing of it is decoded.

    Raises:
        BadFloorPlanError: It is no PNG, JPEG or WebP, or too large.
    """
    if len(content) > MOST_BYTES:
        message = f"The image has {len(content):,} bytes, more than {MOST_BYTES:,}."
        raise BadFloorPlanError(IMAGE, message, do="Save it smaller, as PNG with few colours or as WebP.")
    media_type = _media_type(content)
    if media_type is None:
        raise _unknown_kind(content)
    width, height = imagesize.get(io.BytesIO(content))
    if min(width, height) <= 0:
        message = f"The image begins as `{media_type}`, but its header has no size."
        raise BadFloorPlanError(IMAGE, message, do="Open it in an image editor and export it again.")
    if min(width, height) < LEAST_SIDE or max(width, height) > MOST_SIDE or width * height > MOST_PIXELS:
        message = (
            f"The image has {width:,} by {height:,} pixels; each side may have {LEAST_SIDE} to {MOST_SIDE:,}, "
            f"and all of it {MOST_PIXELS:,}."
        )
        raise BadFloorPlanError(IMAGE, message, do="Scale it; 1,600 pixels across are plenty.")
    return PlanImage(media_type, width, height, content)


def load_image(file: Path) -> PlanImage:
    """Read an image file. BadFloorPlanError as `read_image`, and if the file cannot be read."""
    return read_image(_content(file, MOST_BYTES, IMAGE))


def _media_type(content: bytes) -> str | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/webp" if content.startswith(b"RIFF") and content[8:12] == b"WEBP" else None


def _unknown_kind(content: bytes) -> BadFloorPlanError:
    if not content:
        return BadFloorPlanError(IMAGE, "The image is empty.", do="Choose a PNG, JPEG or WebP file.")
    if b"<svg" in content[:4096].lower():
        message = "The image is SVG, which can contain scripts, so it is not accepted."
        return BadFloorPlanError(IMAGE, message, do="Export it as PNG.")
    return BadFloorPlanError(IMAGE, "The image is no PNG, JPEG or WebP.", do="Export it as PNG, JPEG or WebP.")


# Zones

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Length = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class RectangleEntry(BaseModel):
    """Its upper left corner and its size, as fractions of the image."""

    model_config = ConfigDict(extra="forbid")

    x: Fraction
    y: Fraction
    width: Length
    height: Length


class ZoneEntry(BaseModel):
    """A zone with either a `rectangle` or a `polygon`: at least three corners, `[x, y]` each, as fractions."""

    model_config = ConfigDict(extra="forbid")

    zone: Annotated[str, StringConstraints(min_length=1, max_length=LABEL_BYTES)]
    rectangle: RectangleEntry | None = None
    polygon: (
        Annotated[
            list[Annotated[list[Fraction], Field(min_length=2, max_length=2)]],
            Field(min_length=3, max_length=MOST_CORNERS),
        ]
        | None
    ) = None


class ZonesEntry(BaseModel):
    """All zones of a floor plan."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"zones": [{"zone": "shoes", "rectangle": {"x": 0.1, "y": 0.2, "width": 0.3, "height": 0.25}}]}
        },
    )

    zones: Annotated[list[ZoneEntry], Field(max_length=MOST_ZONES)]

    def drawn(self, known: Collection[str]) -> tuple[DrawnZone, ...]:
        """Convert them.

        Args:
            known: The zones that the store has registered; none: any is accepted.

        Raises:
            BadFloorPlanError: A zone is unknown, is there twice, or has no area; names its field.
        """
        named = ((f"zones[{number}]", entry) for number, entry in enumerate(self.zones))
        return _checked(((place, _drawn(place, entry)) for place, entry in named), known)


def load_zones(file: Path, known: Collection[str]) -> tuple[DrawnZone, ...]:
    """Read a YAML or JSON file with a list `zones`. BadFloorPlanError names the field that is wrong."""
    try:
        document = read_yaml(_content(file, MOST_TEXT, "zones").decode(), most_characters=MOST_TEXT)
    except UnicodeDecodeError as error:
        raise BadFloorPlanError("zones", f"`{file}` is not UTF-8.", do="Save it as UTF-8.") from error
    except BadFileError as error:
        do = f"{error.do} docs/how-to/floor-plan.md has an example."
        raise BadFloorPlanError("zones", error.message, do=do) from error
    try:
        return ZonesEntry.model_validate(document).drawn(known)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in wrong["loc"]).removeprefix(".")
        message = f"`{field or 'zones'}`: {wrong['msg'][:1].lower()}{wrong['msg'][1:]}."
        raise BadFloorPlanError(field or "zones", message, do="Correct it; nothing was changed.") from None


def read_lines(text: str, known: Collection[str]) -> tuple[DrawnZone, ...]:
    """Read a zone from each line, in percent of the image: `shoes 10 20 30 25`, or corners `shoes 10,20 40,20 40,45`.

    Args:
        text: `zone x y width height`, or `zone x,y x,y x,y`.
        known: The zones that the store has registered; none: any is accepted.

    Raises:
        BadFloorPlanError: Names the first line that is wrong.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MOST_ZONES:
        raise _wrong("zones", f"has more than {MOST_ZONES} lines")
    return _checked(((f"line {number}", _drawn_line(f"line {number}", line)) for number, line in lines), known)


def write_lines(zones: Iterable[DrawnZone]) -> str:
    """Write zones as `read_lines` reads them."""
    return "\n".join(f"{each.zone} {_shape(each)}" for each in zones)


def _shape(drawn: DrawnZone) -> str:
    if drawn.rectangle:
        return " ".join(map(_percent, drawn.rectangle))
    return " ".join(f"{_percent(corner.x)},{_percent(corner.y)}" for corner in drawn.corners)


def _percent(value: float) -> str:
    return f"{100 * value:.4f}".rstrip("0").rstrip(".")


def _drawn(place: str, entry: ZoneEntry) -> DrawnZone:
    if (entry.rectangle is None) == (entry.polygon is None):
        raise _wrong(place, "needs either `rectangle` or `polygon`")
    if entry.rectangle:
        shape = entry.rectangle
        corners = _of_rectangle(f"{place}.rectangle", (shape.x, shape.y, shape.width, shape.height))
    else:
        corners = tuple(Corner(round(x, _DECIMALS), round(y, _DECIMALS)) for x, y in entry.polygon or ())
    return DrawnZone(entry.zone.strip(), corners)  # as in lines, where spaces separate


def _drawn_line(place: str, line: str) -> DrawnZone:
    words = line.split()
    of_polygon = len(list(takewhile(lambda word: "," in word, reversed(words))))
    zone, *shape = line.rsplit(maxsplit=of_polygon or _OF_RECTANGLE)
    if len(shape) < (of_polygon or _OF_RECTANGLE):
        raise _wrong(place, "must be `zone x y width height` or `zone x,y x,y x,y`, in percent")
    if not of_polygon:
        return DrawnZone(zone, _of_rectangle(place, [_fraction(place, word) for word in shape]))
    corners = tuple(Corner(*(_fraction(place, part) for part in _pair(place, word))) for word in shape)
    return DrawnZone(zone, corners)


def _pair(place: str, word: str) -> Sequence[str]:
    parts = word.split(",")
    if len(parts) != 2:  # noqa: PLR2004 - x and y
        raise _wrong(place, f"has a corner that is no `x,y`: `{word[:_SHOWN]}`")
    return parts


def _fraction(place: str, word: str) -> float:
    try:
        percent = float(word.rstrip("%"))
    except ValueError:
        percent = math.nan
    if not 0 <= percent <= 100:  # noqa: PLR2004 - percent; NaN is not in there either
        raise _wrong(place, f"has `{word[:_SHOWN]}` where a number from 0 to 100 should be")
    return round(percent / 100, _DECIMALS)


def _of_rectangle(place: str, numbers: Iterable[float]) -> tuple[Corner, ...]:
    found = Rectangle(*(round(number, _DECIMALS) for number in numbers))
    if found.x + found.width > 1 + _LEAST_AREA or found.y + found.height > 1 + _LEAST_AREA:
        raise _wrong(place, "reaches beyond the edge of the image")
    return tuple(Corner(min(x, 1.0), min(y, 1.0)) for x, y in found.corners)


def _checked(drawn: Iterable[tuple[str, DrawnZone]], known: Collection[str]) -> tuple[DrawnZone, ...]:
    found: dict[str, DrawnZone] = {}
    for place, each in drawn:
        name, field = each.zone, f"{place}.zone" if place.endswith("]") else place
        if not 0 < len(name.encode()) <= LABEL_BYTES or not name.isprintable() or hidden_character(name, "any"):
            raise _wrong(field, f"must name a zone in 1 to {LABEL_BYTES} bytes that can be seen")
        if known and name not in known:
            do = f"Use one of: {', '.join(f'`{zone}`' for zone in sorted(known))}."
            raise BadFloorPlanError(field, f"`{field}` is no zone of the store: `{name}`.", do=do)
        if name in found:
            raise _wrong(field, f"is there twice: `{name}`")
        if len(each.corners) < 3 or len(each.corners) > MOST_CORNERS:  # noqa: PLR2004 - a triangle
            raise _wrong(place, f"must have 3 to {MOST_CORNERS} corners")
        if _area(each.corners) < _LEAST_AREA:
            raise _wrong(place, "has no area")
        found[name] = each
    return tuple(found.values())


def _area(corners: Sequence[Corner]) -> float:
    following = (*corners[1:], corners[0])
    return abs(sum(a.x * b.y - b.x * a.y for a, b in zip(corners, following, strict=True))) / 2


def _wrong(field: str, why: str) -> BadFloorPlanError:
    return BadFloorPlanError(field, f"`{field}` {why}.", do="Correct it; nothing was changed.")


def _content(file: Path, most: int, field: str) -> bytes:
    """The bytes of a file, at most one more than `most`. BadFloorPlanError."""
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        message = f"`{file}` cannot be read: {error.strerror}."
        raise BadFloorPlanError(field, message, do="Name a file that exists.") from error
    if len(content) > most:
        raise BadFloorPlanError(field, f"`{file}` has more than {most:,} bytes.", do="Save it smaller.")
    return content
